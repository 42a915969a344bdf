//! No string of a message vanishes: whatever a message holds is in the frames that it becomes, or the
//! import says that it was not understood.
//!
//! [`ROWS`] has a small file of each format. Each string, object and list of its messages is changed
//! in turn: strings give way to another, objects get a member that nobody knows, lists a part and a
//! text. A format is added as a row.
#![allow(clippy::unwrap_used, clippy::panic)]

use afterimage::transcript::{ImportReport, Transcript};
use serde_json::{Value, json};

/// What must not vanish.
const NEEDLE: &str = "the-needle-in-a-message";

struct Row {
    format: &'static str,
    /// A document, or records by line.
    sample: &'static str,
    /// Where messages stand in a record: `*` is any element.
    messages: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        format: "openai-chat",
        sample: r#"[{"role":"system","content":"s"},{"role":"user","name":"n","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://a.b/c"}},{"type":"input_audio","input_audio":{"data":"d","format":"wav"}}]},{"role":"assistant","content":"x","reasoning_content":"hm","refusal":"no","annotations":[{"type":"url_citation","url":"u"}],"audio":{"id":"i","transcript":"t"},"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"extra_content":{"google":{"thought_signature":"S"}}},{"id":"d","type":"custom","custom":{"name":"g","input":"free"}}]},{"role":"tool","tool_call_id":"c","content":"T"},{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"U"}]},{"role":"assistant","content":null,"function_call":{"name":"h","arguments":"{}"}},{"role":"function","name":"h","content":"V"}]"#,
        messages: &["/*"],
    },
    Row {
        format: "openai-chat",
        sample: r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"a"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"r"},{"type":"tool-tide","toolCallId":"c","state":"output-available","input":{"day":"d"},"output":{"type":"content","value":[{"type":"text","text":"T"}]}},{"type":"file","mediaType":"image/png","url":"https://a.b/c"},{"type":"text","text":"x","state":"done"}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "openai-chat",
        sample: r#"{"role":"user","created":1,"content":[{"type":"text","text":"a"}]}
{"role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{"command":"tide"}}}}]}
{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"T"}],"isError":false}}}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"text","text":"x"}]}"#,
        messages: &[""],
    },
    Row {
        format: "anthropic",
        sample: r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"text","data":"d"},"title":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"redacted_thinking","data":"R"},{"type":"text","text":"x","citations":[{"cited_text":"q"}]},{"type":"tool_use","id":"c","name":"f","input":{"p":"v"}},{"type":"server_tool_use","id":"w","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"w","content":[{"type":"web_search_result","title":"T","encrypted_content":"E"}]}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"T"}]}]}]}"#,
        messages: &["/system/*", "/messages/*"],
    },
    Row {
        format: "openai-responses",
        sample: r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://a.b/c"}]},{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"h"}],"encrypted_content":"E"},{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"c","output":"T"},{"type":"custom_tool_call","call_id":"d","name":"g","input":"free"},{"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"U"}]},{"type":"mcp_call","id":"m","name":"k","arguments":"{}","output":"O"},{"type":"web_search_call","id":"w","action":{"type":"search","query":"q"}},{"type":"item_reference","id":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"y","annotations":[{"title":"t"}]},{"type":"refusal","refusal":"no"}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "wire",
        sample: r#"{"interactions":[{"uri":"https://a.b/v1/chat/completions","status":200,"request":{"model":"m","messages":[{"role":"user","content":"a"}]},"response":{"choices":[{"index":0,"message":{"role":"assistant","content":"x"}},{"index":1,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}},{"index":2,"message":{"role":"assistant","content":"another"}}]}},{"uri":"https://a.b/v1/messages","status":200,"request":{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}]}},{"uri":"https://a.b/v1/responses","status":200,"request":{"model":"m","input":[{"role":"user","content":"a"}]},"response":{"id":"r","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}}]}"#,
        messages: &[
            "/interactions/*/request/messages/*",
            "/interactions/*/request/input/*",
            "/interactions/*/response/choices/*/message",
            "/interactions/*/response/content/*",
            "/interactions/*/response/output/*",
        ],
    },
    Row {
        format: "wire",
        sample: r#"{"call_type":"acompletion","model":"m","messages":[{"role":"user","content":"a"}],"response":{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"b"}}]}}
{"call_type":"acompletion","model":"m","messages":[{"role":"user","content":"c"}],"response":{"id":"y","choices":[{"index":0,"message":{"role":"assistant","content":"d"}}]}}"#,
        messages: &["/messages/*", "/response/choices/*/message"],
    },
    Row {
        format: "mini-swe-agent",
        sample: r#"{"info":{},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x","extra":{"response":{"choices":[{"message":{"reasoning":"h"}}]}}},{"role":"exit","content":"done"}]}"#,
        messages: &["/messages/*"],
    },
    Row {
        format: "swe-agent",
        sample: r#"{"history":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"x","thought":"t","action":"ls","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","content":"T","tool_call_ids":["c"]}]}"#,
        messages: &["/history/*"],
    },
    Row {
        format: "tau-bench",
        sample: r#"[{"task_id":1,"trial":0,"reward":1.0,"traj":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"T"}]}]"#,
        messages: &["/*/traj/*"],
    },
    Row {
        format: "codex",
        sample: r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"h"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"f"}}"#,
        messages: &["/payload"],
    },
    Row {
        format: "claude-code",
        sample: r#"{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"a"}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"T"}]}}"#,
        messages: &["/message"],
    },
    Row {
        format: "pi",
        sample: r#"{"type":"session","id":"s","timestamp":"t","cwd":"/"}
{"type":"message","id":"a","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"a"}]}}
{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"x"},{"type":"toolCall","id":"c","name":"f","arguments":{"p":"v"}}],"model":"m"}}
{"type":"message","id":"d","parentId":"b","timestamp":"t","message":{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"T"}]}}"#,
        messages: &["/message"],
    },
];

/// The frames as JSON, and what was said; `None` where the file is refused.
fn read(input: &str) -> Option<(String, String, ImportReport)> {
    let mut transcript = Transcript::new(input.as_bytes()).ok()?;
    let format = transcript.format().name().to_owned();
    let frames = transcript.by_ref().map(|record| record.unwrap().frame.to_json().to_string());
    let frames = frames.collect();
    Some((format, frames, transcript.report().clone()))
}

/// The places in a value that a pattern names.
fn matching(value: &Value, pattern: &[&str], at: &str, found: &mut Vec<String>) {
    let Some((first, rest)) = pattern.split_first() else { return found.push(at.to_owned()) };
    match (value, *first) {
        (Value::Array(list), "*") => {
            for (index, element) in list.iter().enumerate() {
                matching(element, rest, &format!("{at}/{index}"), found);
            }
        }
        (Value::Object(object), key) => {
            if let Some(member) = object.get(key) {
                matching(member, rest, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// The record, changed at each place below `at` in turn, with what was done.
fn changed(record: &Value, at: &str, all: &mut Vec<(String, Value)>) {
    let mut with = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut record = record.clone();
        change(record.pointer_mut(at).unwrap());
        all.push((format!("{what} at {at}"), record));
    };
    match record.pointer(at).unwrap() {
        Value::String(_) => with("another string", &|value| *value = NEEDLE.into()),
        Value::Array(list) => {
            let part = json!({ "type": "novel_part", "text": NEEDLE });
            with("a part", &|value| value.as_array_mut().unwrap().push(part.clone()));
            with("a text", &|value| value.as_array_mut().unwrap().push(NEEDLE.into()));
            for index in 0..list.len() {
                changed(record, &format!("{at}/{index}"), all);
            }
        }
        Value::Object(object) => {
            with("a member", &|value| value["novelMember"] = json!({ "in": [NEEDLE] }));
            for key in object.keys() {
                changed(record, &format!("{at}/{key}"), all);
            }
        }
        _ => with("a string", &|value| *value = NEEDLE.into()),
    }
}

#[test]
fn no_string_of_a_message_vanishes() {
    let mut vanished = Vec::new();
    for row in ROWS {
        let lines: Vec<Value> =
            row.sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (format, _, as_it_is) = read(row.sample).unwrap();
        assert_eq!(format, row.format, "{}", row.sample);
        assert_eq!(as_it_is.unknown_records, 0, "{}: {:?}", row.format, as_it_is.unknown);
        for (number, record) in lines.iter().enumerate() {
            let mut places = Vec::new();
            for pattern in row.messages {
                let pattern: Vec<&str> = pattern.split('/').skip(1).collect();
                matching(record, &pattern, "", &mut places);
            }
            let mut all = Vec::new();
            places.iter().for_each(|at| changed(record, at, &mut all));
            for (what, record) in all {
                let mut lines: Vec<String> = lines.iter().map(Value::to_string).collect();
                lines[number] = record.to_string();
                // A file that is refused is told of.
                let Some((_, frames, report)) = read(&lines.join("\n")) else { continue };
                let is_told = report.unknown_records > as_it_is.unknown_records
                    || report.noted > as_it_is.noted;
                if !frames.contains(NEEDLE) && !is_told {
                    vanished.push(format!("{} line {}: {what}", row.format, number + 1));
                }
            }
        }
    }
    assert!(vanished.is_empty(), "{} vanished:\n{}", vanished.len(), vanished.join("\n"));
}
