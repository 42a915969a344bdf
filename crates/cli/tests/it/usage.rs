//! Usage as it was reported: its sums equal those that are computed from the raw files, by code that
//! shares nothing with the readers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use afterimage_testkit::data;
use serde_json::{Value, json};
use support::{json as answer, json_lines, out, run};

/// Input, cache read, cache write, output, reasoning, and the cost.
#[derive(Debug, Default, PartialEq)]
struct Sums([u64; 5], f64);

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

impl Sums {
    fn add(&mut self, figures: [u64; 5], cost: &Value) {
        self.0.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        if let Some(cost) = cost.as_f64() {
            self.1 += cost;
        }
    }

    /// Anthropic's own convention.
    fn messages(&mut self, usage: &Value) {
        let compactions = usage["iterations"].as_array().into_iter().flatten();
        let compactions = compactions.filter(|of| of["type"] == "compaction");
        for of in std::iter::once(usage).chain(compactions) {
            let (read, write) = (
                number(&of["cache_read_input_tokens"]),
                number(&of["cache_creation_input_tokens"]),
            );
            let input = number(&of["input_tokens"]) + read + write;
            let thinking = number(&of["output_tokens_details"]["thinking_tokens"]);
            self.add([input, read, write, number(&of["output_tokens"]), thinking], &Value::Null);
        }
    }

    /// That of Chat Completions and Responses.
    fn openai(&mut self, usage: &Value) {
        let [input, output] = if usage["prompt_tokens"].is_null() {
            ["input_tokens", "output_tokens"]
        } else {
            ["prompt_tokens", "completion_tokens"]
        };
        let details = |of: &str| usage[format!("{of}_details")].clone();
        self.add(
            [
                number(&usage[input]),
                number(&details(input)["cached_tokens"]),
                number(&usage["cache_creation_input_tokens"]),
                number(&usage[output]),
                number(&details(output)["reasoning_tokens"]),
            ],
            &usage["cost"],
        );
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The last usage of each message, in the session and in the files of its subagents.
fn claude_code(path: &Path) -> Sums {
    let mut files = vec![path.to_owned()];
    if let Ok(beside) = fs::read_dir(path.with_extension("").join("subagents")) {
        files.extend(beside.map(|entry| entry.unwrap().path()));
    }
    let mut last = BTreeMap::new();
    for (line, record) in files.iter().flat_map(|file| lines(file)).enumerate() {
        let message = &record["message"];
        if record["type"] == "assistant" && message["usage"].is_object() {
            let id = message["id"].as_str().map_or_else(|| line.to_string(), str::to_owned);
            last.insert(id, message["usage"].clone());
        }
    }
    let mut sums = Sums::default();
    last.values().for_each(|usage| sums.messages(usage));
    sums
}

fn pi(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for record in lines(path) {
        let usage = &record["message"]["usage"];
        let [input, output, read, write] =
            ["input", "output", "cacheRead", "cacheWrite"].map(|key| number(&usage[key]));
        sums.add([input + read + write, read, write, output, 0], &usage["cost"]["total"]);
    }
    sums
}

/// A usage whose total is that of the one before is the same, written again. What a turn cost counts
/// where no answer of it says so.
fn codex(path: &Path) -> Sums {
    let (mut sums, mut total) = (Sums::default(), Value::Null);
    let records = lines(path);
    let has_answers = records.iter().any(|record| record["payload"]["type"] == "token_count");
    for record in records {
        let turn = &record["payload"]["usage"];
        if record["payload"]["type"] == "turn.completed" && turn.is_object() && !has_answers {
            let keys = ["input_tokens", "cached_input_tokens", "", "output_tokens", ""];
            sums.add(keys.map(|key| number(&turn[key])), &Value::Null);
        }
        let info = &record["payload"]["info"];
        let usage = &info["last_token_usage"];
        if usage.is_object() && info["total_token_usage"] != total {
            total = info["total_token_usage"].clone();
            let keys = [
                "input_tokens",
                "cached_input_tokens",
                "cache_write_input_tokens",
                "output_tokens",
                "reasoning_output_tokens",
            ];
            sums.add(keys.map(|key| number(&usage[key])), &Value::Null);
        }
    }
    sums
}

/// The output of the messages, and what the end of the program says beyond that. Its kinds of tokens
/// are each by itself.
fn copilot(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for event in lines(path).iter().filter(|event| event["type"] == "session.shutdown") {
        let of = |kind: &str| number(&event["data"]["tokenDetails"][kind]["tokenCount"]);
        let (read, write) = (of("cache_read"), of("cache_write"));
        sums.add([of("input") + read + write, read, write, 0, 0], &Value::Null);
    }
    for event in lines(path).iter().filter(|event| event["type"] == "assistant.message") {
        sums.add([0, 0, 0, number(&event["data"]["outputTokens"]), 0], &Value::Null);
    }
    sums
}

fn gemini(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for message in document(path)["messages"].as_array().unwrap() {
        let of = |key: &str| number(&message["tokens"][key]);
        let figures = [
            of("input") + of("tool"),
            of("cached"),
            0,
            of("output") + of("thoughts"),
            of("thoughts"),
        ];
        sums.add(figures, &Value::Null);
    }
    sums
}

fn mini_swe_agent(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for message in document(path)["messages"].as_array().into_iter().flatten() {
        sums.openai(&message["extra"]["response"]["usage"]);
    }
    sums
}

fn swe_agent(path: &Path) -> Sums {
    let mut sums = Sums::default();
    let stats = &document(path)["info"]["model_stats"];
    let [sent, received] = ["tokens_sent", "tokens_received"].map(|key| number(&stats[key]));
    sums.add([sent, 0, 0, received, 0], &stats["instance_cost"]);
    sums
}

/// Every event of a response repeats it.
fn openhands(path: &Path) -> Sums {
    let mut responses = BTreeMap::new();
    for event in document(path).as_array().unwrap() {
        let response = &event["tool_call_metadata"]["model_response"];
        if let Some(id) = response["id"].as_str() {
            responses.insert(id.to_owned(), response["usage"].clone());
        }
    }
    let mut sums = Sums::default();
    responses.values().for_each(|usage| sums.openai(usage));
    sums
}

/// What the log itself adds up, by model.
fn inspect(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for usage in document(path)["stats"]["model_usage"].as_object().unwrap().values() {
        let keys = [
            "input_tokens",
            "input_tokens_cache_read",
            "input_tokens_cache_write",
            "output_tokens",
            "reasoning_tokens",
        ];
        sums.add(keys.map(|key| number(&usage[key])), &Value::Null);
    }
    sums
}

fn traffic(path: &Path) -> Sums {
    let mut sums = Sums::default();
    for interaction in document(path)["interactions"].as_array().unwrap() {
        let uri = interaction["uri"].as_str().unwrap_or_default();
        let response = match &interaction["response"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| stream(text)),
            other => other.clone(),
        };
        if uri.contains("/messages") {
            sums.messages(&response["usage"]);
        } else if uri.contains(":generateContent") {
            let of = |key: &str| number(&response["usageMetadata"][key]);
            let [said, thought] = [of("candidatesTokenCount"), of("thoughtsTokenCount")];
            let read = of("cachedContentTokenCount");
            sums.add([of("promptTokenCount"), read, 0, said + thought, thought], &Value::Null);
        } else {
            sums.openai(&response["usage"]);
        }
    }
    sums
}

/// What the events of a stream say of usage, the last of each figure.
fn stream(text: &str) -> Value {
    let mut found = serde_json::Map::new();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        for usage in [&event["usage"], &event["message"]["usage"], &event["response"]["usage"]] {
            found.extend(usage.as_object().cloned().unwrap_or_default());
        }
    }
    json!({ "usage": found })
}

/// What reads the raw files of a folder of the recordings.
type Raw = fn(&Path) -> Sums;

const FOLDERS: [(&str, &str, Raw); 14] = [
    ("B-anthropic/claude-code", "jsonl", claude_code),
    ("B-anthropic/pi", "jsonl", pi),
    ("B-anthropic/wire-anthropic", "json", traffic),
    ("A-openai-chat/wire-openai_chat", "json", traffic),
    ("C-codex-responses/wire-openai_responses", "json", traffic),
    ("C-codex-responses/rollout", "jsonl", codex),
    ("C-codex-responses/other-cli/copilot-small.jsonl", "jsonl", copilot),
    ("C-codex-responses/other-cli/gemini-session-2025-10-27.json", "json", gemini),
    ("A-openai-chat/inspect-ai/2025-05-12T20-27-36-04-00_browser.json", "json", inspect),
    ("A-openai-chat/inspect-ai/log_images_tc.json", "json", inspect),
    ("D-swe-agent/mini", "json", mini_swe_agent),
    ("D-swe-agent/traj", "traj", swe_agent),
    ("D-swe-agent/openhands/basic_gui_mode.json", "json", openhands),
    // Nothing is reported there.
    ("A-openai-chat/tau-bench", "json", |_| Sums::default()),
];

fn files(path: &Path, extension: &str) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut files = data::files_under(path);
    files.retain(|file| file.extension().is_some_and(|of| of == extension));
    files
}

/// What `stats` says, in the same figures.
fn stated(usage: &Value) -> Sums {
    let keys = ["input", "cacheRead", "cacheWrite", "output", "reasoning"];
    let costs = usage["cost"].as_array().unwrap();
    assert!(costs.iter().all(|cost| cost["currency"] == "USD"), "{costs:?}");
    let cost = costs.iter().map(|cost| cost["amount"].as_str().unwrap().parse::<f64>().unwrap());
    Sums(keys.map(|key| usage[key].as_u64().unwrap_or(0)), cost.sum())
}

#[test]
fn sums_equal_those_computed_independently_from_the_raw_file() {
    let mut with_usage = 0;
    for (folder, extension, raw) in FOLDERS {
        let Some(path) = data::recording(folder) else { return };
        for file in files(&path, extension) {
            let run = run(&["stats", "--json", "--tokenizer", "chars4", file.to_str().unwrap()]);
            let stats: Value = serde_json::from_str(&run.out).unwrap();
            let usage = &stats["usage"];
            let expected = raw(&file);
            let own = stated(&usage["total"]);
            // A fork holds answers that count in the session that it was copied from: pi's recording
            // is older than its own header, which names that session.
            let copied = usage["copied"].as_object().into_iter().flat_map(|of| of.values());
            let found = copied.map(stated).fold(Sums(own.0, own.1), |mut sums, of| {
                sums.add(of.0, &of.1.into());
                sums
            });
            assert_eq!(found.0, expected.0, "{}", file.display());
            // Floats are added up on this side.
            assert!((found.1 - expected.1).abs() < 1e-9, "{}: {found:?}", file.display());
            with_usage += u64::from(found.0[0] != 0);
            // The parts come to the whole.
            for parts in ["byModel", "bySession"].map(|key| &usage[key]) {
                let Some(parts) = parts.as_object() else { continue };
                let input: u64 =
                    parts.values().map(|part| part["input"].as_u64().unwrap_or(0)).sum();
                assert_eq!(input, own.0[0], "{}", file.display());
            }
        }
    }
    assert!(with_usage == 0 || with_usage >= 40, "{with_usage}");
}

/// A session of Claude Code that repeats what it was told of a message, and begins again.
fn repeated(folder: &Path) -> String {
    let user = |text: &str| json!({ "type": "user", "uuid": text, "sessionId": "s", "message": { "role": "user", "content": text } });
    let part = |id: &str, text: &str, output: u64| {
        json!({ "type": "assistant", "sessionId": "s", "message": { "id": id, "role": "assistant", "model": "m",
            "content": [{ "type": "text", "text": text }],
            "usage": { "input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": output } } })
    };
    let records = [
        user("Go"),
        part("one", "First,", 1),
        part("one", "then", 1),
        part("one", "last.", 50),
        user("On"),
        part("two", "Second.", 7),
        user("And"),
        // A part that comes late, after another answer.
        part("one", "One more.", 60),
        part("three", "Third.", 9),
    ];
    let path = folder.join("session.jsonl");
    fs::write(&path, records.map(|record| format!("{record}\n")).concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_a_client_writes_several_times_for_one_response_counts_once_and_the_last_is_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = repeated(folder.path());
    let stats = answer(&["stats", "--json", &file]);
    let total = &stats["usage"]["total"];
    let figures = ["withUsage", "input", "cacheRead", "output"].map(|key| number(&total[key]));
    assert_eq!(figures, [3, 309, 300, 76]);
    let lines = json_lines(&["requests", "--json", &file]);
    let (sums, requests) = lines.split_last().unwrap();
    let outputs: Vec<_> = requests.iter().map(|line| number(&line["usage"]["output"])).collect();
    assert_eq!(outputs, [60, 7, 9]);
    assert_eq!(sums["usage"]["total"], *total);
}

#[test]
fn an_archive_reports_what_its_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = repeated(folder.path());
    let archive = folder.path().join("archive").to_str().unwrap().to_owned();
    assert_eq!(run(&["archive", &file, "-o", &archive]).code, Some(0));
    let of = |file: &str| answer(&["stats", "--json", file])["usage"].clone();
    assert_eq!(of(&archive), of(&file));
    let page = out(&["requests", &archive]);
    assert!(page.contains("USAGE AS REPORTED"), "{page}");
    assert!(page.contains("INPUT"), "{page}");
}

#[test]
fn prices_are_data_and_what_has_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = repeated(folder.path());
    let prices = folder.path().join("prices.toml");
    let table = "date = \"2026-01-02\"\ncurrency = \"EUR\"\n[[provider]]\nname = \"H\"\nsource = \"here\"\n\
                 [[provider.model]]\nnames = [\"m\"]\ninput = 3\ncache_read = 0.3\noutput = 15\n";
    fs::write(&prices, table).unwrap();
    let prices = prices.to_str().unwrap();
    let price = answer(&["stats", "--json", "--prices", prices, &file])["price"].clone();
    // 9 × 3 + 300 × 0.3 + 76 × 15, in millionths.
    assert_eq!(price["total"], json!({ "amount": "0.001257", "currency": "EUR" }));
    assert_eq!((&price["date"], &price["partial"]), (&json!("2026-01-02"), &json!(false)));
    let lines = json_lines(&["requests", "--json", "--prices", prices, &file]);
    let amounts: Vec<_> = lines.iter().map(|line| &line["price"]["amount"]).collect();
    assert_eq!(amounts[..3], [&json!("0.000939"), &json!("0.000144"), &json!("0.000174")]);
    assert_eq!(lines[3]["price"], price);
    // The table that comes along does not know the model.
    let price = answer(&["stats", "--json", &file])["price"].clone();
    assert_eq!((&price["partial"], &price["unpriced"]), (&json!(true), &json!({ "m": 3 })));
    assert_eq!(price["total"], Value::Null);
    let page = out(&["stats", &file]);
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(words.join(" ").contains("partial: no price for m (3 exchanges)"), "{page}");

    fs::write(folder.path().join("wrong.toml"), table.replace("output", "outptu")).unwrap();
    let wrong = folder.path().join("wrong.toml");
    let failed = run(&["stats", "--prices", wrong.to_str().unwrap(), &file]);
    assert_eq!(failed.code, Some(2), "{}", failed.err);
    assert!(failed.err.contains("outptu") && failed.err.contains("wrong.toml"), "{}", failed.err);
}

/// What pi says that its session cost is what the prices of its model make of it.
#[test]
fn computed_costs_are_those_that_a_client_computed() {
    let Some(file) = data::recording("B-anthropic/pi/before-compaction.jsonl") else { return };
    // Its answers are copies, which cost nothing here, as long as its header names their session.
    let text = fs::read_to_string(file).unwrap().replacen("branchedFrom", "formerly", 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    fs::write(&file, text).unwrap();
    let stats = run(&["stats", "--json", "--tokenizer", "chars4", file.to_str().unwrap()]);
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    assert!(stats["price"]["total"]["amount"].is_string(), "{stats}");
    assert_eq!(stats["usage"]["total"]["cost"][0], stats["price"]["total"]);
    assert_eq!(stats["price"]["partial"], false);
}

/// In which answers, by number, less was read from the cache than the one before had left there, and
/// how much less.
fn broken(path: &Path) -> Vec<(u64, u64)> {
    let mut order: Vec<String> = Vec::new();
    let mut last = BTreeMap::new();
    // Those that follow a compaction. It keeps no message in these files.
    let mut compacted = Vec::new();
    for record in lines(path) {
        if record["subtype"] == "compact_boundary" {
            compacted.push(order.len());
        }
        let message = &record["message"];
        let id = message["id"].as_str().filter(|_| message["usage"].is_object());
        let Some(id) = id.filter(|_| record["type"] == "assistant") else { continue };
        if last.insert(id.to_owned(), message["usage"].clone()).is_none() {
            order.push(id.to_owned());
        }
    }
    let mut left = 0;
    let mut broken = Vec::new();
    for (at, id) in (1..).zip(&order) {
        let [read, written] = ["cache_read_input_tokens", "cache_creation_input_tokens"]
            .map(|key| number(&last[id][key]));
        // A shorter request has not more to read than it holds.
        let input = number(&last[id]["input_tokens"]) + read + written;
        let is_new = read > 0 && compacted.contains(&(usize::try_from(at).unwrap() - 1));
        if read < left.min(input) && !is_new {
            broken.push((at, left.min(input) - read));
        }
        left = read + written;
    }
    broken
}

#[test]
fn broken_caches_are_those_that_the_raw_file_shows() {
    for (file, count) in [
        ("spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl", 0),
        ("codemie/session-624a4a58.jsonl", 38),
        ("codemie/session-9eda1058.jsonl", 4),
    ] {
        let path = data::recording(&format!("B-anthropic/claude-code/{file}"));
        let Some(path) = path else { return };
        let ask = ["requests", "--broken", "--json", "--tokenizer", "chars4"];
        let listed = run(&[&ask[..], &[path.to_str().unwrap()]].concat());
        let listed = listed.out.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["price"]["currency"] == "USD", "{line}");
            (number(&line["request"]), number(&line["lost"]))
        });
        let listed: Vec<_> = listed.collect();
        assert_eq!((listed.len(), &listed), (count, &broken(&path)), "{file}");
    }
}

#[test]
fn a_broken_cache_says_what_it_cost_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let answer = |second: u64, read: u64, written: u64| {
        let time = format!("2026-01-02T03:{:02}:{:02}Z", second / 60, second % 60);
        let user = json!({ "type": "message", "timestamp": time, "message": { "role": "user", "content": "go" } });
        let answer = json!({ "type": "message", "timestamp": time, "message": { "role": "assistant", "content": "gone",
            "model": "claude-opus-4-5",
            "usage": { "input": 1, "output": second, "cacheRead": read, "cacheWrite": written } } });
        format!("{user}\n{answer}\n")
    };
    let head = json!({ "type": "session", "id": "s", "timestamp": "t", "cwd": "/" });
    let session = [
        format!("{head}\n"),
        answer(1, 0, 10_000),
        answer(9, 10_000, 500),
        answer(20, 4_000, 7_000),
        answer(400, 0, 12_000),
    ];
    let file = folder.path().join("session.jsonl");
    fs::write(&file, session.concat()).unwrap();
    let file = file.to_str().unwrap();
    let lines = json_lines(&["requests", "--broken", "--json", file]);
    let found: Vec<_> = lines
        .iter()
        .map(|line| {
            let price = line["price"]["amount"].as_str().unwrap().to_owned();
            (number(&line["request"]), number(&line["lost"]), line["cause"].clone(), price)
        })
        .collect();
    // 6,500 and 11,000 tokens at 6.25 − 0.5 a million.
    let expected = [
        (3, 6_500, json!("unknown"), "0.037375".to_owned()),
        (4, 11_000, json!("expired"), "0.06325".to_owned()),
    ];
    assert_eq!(found, expected);
    let page = out(&["requests", "--broken", file]);
    assert!(
        page.contains("the cache keeps nothing for so long") && page.contains("2 broken caches"),
        "{page}"
    );
}
