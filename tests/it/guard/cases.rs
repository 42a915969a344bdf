//! The table of cases that were worked out by hand from the published rules.

use std::{fs, path::Path};

use afterimage::{guard::SentRequest, id::Millis};
use serde_json::{Value, json};

use super::{guard, recorded};

/// A block, as the table writes it.
#[derive(Clone)]
struct Block {
    kind: char,
    tokens: usize,
    changed: Option<usize>,
    mark: Option<char>,
}

impl Block {
    /// Reads `U100@7*` and how often it is there, as in `R10^30*`.
    fn read(word: &str) -> Vec<Self> {
        let mark = word.chars().last().filter(|c| "*!".contains(*c));
        let word = word.trim_end_matches(['*', '!']);
        let (word, times) = word.split_once('^').unwrap_or((word, "1"));
        let (word, changed) = match word.split_once('@') {
            Some((word, at)) => (word, Some(at.parse().unwrap())),
            None => (word, None),
        };
        let (kind, tokens) = (word.chars().next().unwrap(), word[1..].parse().unwrap());
        let times: usize = times.parse().unwrap();
        let block = Self { kind, tokens, changed, mark: None };
        let mut blocks = vec![block; times];
        blocks.last_mut().unwrap().mark = mark;
        blocks
    }

    /// Its text without `taken` tokens that stand before it.
    fn text(&self, taken: usize) -> String {
        let mut words = vec!["word"; self.tokens - taken];
        if let Some(at) = self.changed {
            words[at.saturating_sub(taken)] = "other";
        }
        words.join(" ")
    }

    fn marked(&self, mut value: Value, is_openai: bool) -> Value {
        match self.mark {
            Some(_) if is_openai => {
                value["prompt_cache_breakpoint"] = json!({ "mode": "explicit" });
            }
            Some('!') => value["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
            Some(_) => value["cache_control"] = json!({ "type": "ephemeral" }),
            None => {}
        }
        value
    }
}

/// The request that the table writes as these words.
fn body(api: &str, model: &str, words: &str) -> Value {
    let mut body = json!({ "model": model });
    let (mut tools, mut system, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for word in words.split(' ').flat_map(repeated) {
        match word.split_once('=') {
            Some(("effort", value)) => body["reasoning"] = json!({ "effort": value }),
            Some((name, value)) => body[name] = json!(value),
            None if word == "auto" => body["cache_control"] = json!({ "type": "ephemeral" }),
            None if word == "explicit" => {
                body["prompt_cache_options"] = json!({ "mode": "explicit" });
            }
            None => {
                let blocks: Vec<Block> = word.split('+').flat_map(Block::read).collect();
                match blocks[0].kind {
                    'T' => tools.push(tool(api, &blocks[0], tools.len())),
                    'S' => system.push(blocks[0].clone()),
                    _ => messages.push(message(api, &blocks)),
                }
            }
        }
    }
    if !tools.is_empty() {
        body["tools"] = json!(tools);
    }
    match api {
        "messages" if !system.is_empty() => {
            let block =
                |of: &Block| of.marked(json!({ "type": "text", "text": of.text(0) }), false);
            body["system"] = json!(system.iter().map(block).collect::<Vec<_>>());
        }
        "responses" if !system.is_empty() => body["instructions"] = json!(system[0].text(0)),
        _ => assert!(system.is_empty()),
    }
    body[if api == "responses" { "input" } else { "messages" }] = json!(messages);
    body
}

/// `20x(A10;U10)` and `9xU100` word by word.
fn repeated(word: &str) -> Vec<&str> {
    let Some((times, of)) =
        word.split_once('x').filter(|_| word.starts_with(|c: char| c.is_ascii_digit()))
    else {
        return vec![word];
    };
    let words: Vec<&str> = of.trim_matches(['(', ')']).split(';').collect();
    words.repeat(times.parse().unwrap())
}

fn tool(api: &str, block: &Block, index: usize) -> Value {
    let (name, description) = (format!("tool{index}"), block.text(0));
    match api {
        "chat" => {
            json!({ "type": "function", "function": { "name": name, "description": description } })
        }
        _ => block.marked(json!({ "name": name, "description": description }), false),
    }
}

/// The tokens that the role of a message costs.
const ROLE: usize = 4;

fn message(api: &str, blocks: &[Block]) -> Value {
    let kind = blocks[0].kind;
    let (is_openai, is_item) = (api != "messages", api == "responses");
    match (kind, is_item) {
        ('C', true) => {
            return json!({ "type": "function_call", "call_id": "c", "name": "n", "arguments": blocks[0].text(2) });
        }
        ('R', true) => {
            return json!({ "type": "function_call_output", "call_id": "c", "output": blocks[0].text(1) });
        }
        _ => {}
    }
    let content = |(at, block): (usize, &Block)| {
        let role = if at == 0 { ROLE } else { 0 };
        let content = match block.kind {
            'C' => {
                json!({ "type": "tool_use", "id": "c", "name": "n", "input": { "q": block.text(role + 2) } })
            }
            'R' => {
                json!({ "type": "tool_result", "tool_use_id": "c", "content": block.text(role + 1) })
            }
            _ if is_item => json!({ "type": "input_text", "text": block.text(role) }),
            _ => json!({ "type": "text", "text": block.text(role) }),
        };
        block.marked(content, is_openai)
    };
    let role = match kind {
        'D' if api == "chat" => "system",
        'D' => "developer",
        'U' | 'R' => "user",
        _ => "assistant",
    };
    json!({ "role": role, "content": blocks.iter().enumerate().map(content).collect::<Vec<_>>() })
}

#[test]
fn forecasts_are_exactly_those_of_the_published_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/guard/cases.tsv");
    let table = fs::read_to_string(path).unwrap();
    let guard = guard();
    let mut cases = 0;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [_, model, api, gap, previous, next, expected] = cells.as_slice() else {
            panic!("{line}")
        };
        let bodies: Vec<Value> = [previous, next]
            .iter()
            .filter(|of| ***of != "-")
            .map(|of| body(api, model, of))
            .collect();
        let requests = recorded(api, &bodies);
        assert_eq!(requests.len(), bodies.len(), "{line}");
        let start = Millis::new(0);
        let seconds: i64 = gap.parse().unwrap_or(0);
        let next = SentRequest::new(requests.last().unwrap()).at(Millis::new(seconds * 1_000));
        let previous = (requests.len() > 1).then(|| SentRequest::new(&requests[0]).at(start));
        let prediction = guard.predict(previous.as_ref(), &next).unwrap();
        let found = match &prediction.cache {
            Ok(of) => format!("{} {} {} {}", of.read, of.write, of.write_long, of.lost),
            Err(reason) => reason.as_str().to_owned(),
        };
        assert_eq!(found, *expected, "{line}\n{prediction:?}");
        cases += 1;
    }
    assert!(cases >= 90, "{cases}");
}
