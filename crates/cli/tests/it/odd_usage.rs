//! Usage that is odd has a decided answer, and costs are those that another program computes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::fs;

use afterimage_testkit::data;
use serde_json::{Value, json};
use support::{json as answer, out};

/// What `stats` says of a chat whose answers have these models and usages, each `{model, usage}`.
fn stats(answers: &[Value]) -> Value {
    let (_folder, file) = session(answers);
    answer(&["stats", "--json", "--tokenizer", "chars4", &file])
}

fn session(answers: &[Value]) -> (tempfile::TempDir, String) {
    let head = json!({ "type": "session", "id": "s", "timestamp": "t", "cwd": "/" });
    let mut lines = format!("{head}\n");
    for answer in answers {
        let mut message = json!({ "role": "assistant", "content": "gone" });
        let members = answer.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(members);
        for message in [json!({ "role": "user", "content": "go" }), message] {
            lines +=
                &json!({ "type": "message", "timestamp": "t", "message": message }).to_string();
            lines += "\n";
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    fs::write(&path, lines).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Some members of the total, and the price with what is not in it.
#[track_caller]
fn check(answers: &[Value], total: &Value, price: &Value) {
    let stats = stats(answers);
    let of = |value: &Value, wanted: &Value| -> Value {
        wanted.as_object().unwrap().keys().map(|key| (key.clone(), value[key].clone())).collect()
    };
    assert_eq!(of(&stats["usage"]["total"], total), *total);
    assert_eq!(of(&stats["price"], price), *price);
}

const OPUS: &str = "claude-opus-4-5";

#[test]
fn negative_usage_is_in_no_sum_and_has_no_price() {
    check(
        &[
            json!({ "model": OPUS, "usage": { "input": 10, "output": -3 } }),
            json!({ "model": OPUS, "usage": { "input": 100, "output": 2 } }),
        ],
        &json!({ "input": 110, "output": 2, "withUsage": 2, "unreadable": 1 }),
        &json!({ "total": { "amount": "0.00055", "currency": "USD" }, "partial": true, "incomplete": 1 }),
    );
}

#[test]
fn missing_usage_is_not_zero() {
    check(
        &[
            json!({ "model": OPUS }),
            json!({ "model": OPUS, "usage": { "output": 7 } }),
            json!({ "model": OPUS, "usage": { "input": 0, "output": 0 } }),
        ],
        &json!({ "input": null, "output": 7, "withUsage": 1, "withoutUsage": 2, "unreadable": 0 }),
        &json!({ "partial": true, "incomplete": 3, "priced": 0 }),
    );
}

#[test]
fn models_without_a_price_or_a_name_are_told_and_a_model_may_be_called_none() {
    check(
        &[
            json!({ "model": "tide-9", "usage": { "input": 1, "output": 2 } }),
            json!({ "usage": { "input": 10, "output": 20 } }),
            json!({ "model": "none", "usage": { "input": 100, "output": 200 } }),
            json!({ "model": "", "usage": { "input": 1000, "output": 2000 } }),
        ],
        &json!({ "input": 1111, "output": 2222, "unreadable": 0 }),
        &json!({ "partial": true, "priced": 0, "unpriced": { "tide-9": 1, "": 2, "none": 1 } }),
    );
}

#[test]
fn currencies_stay_apart_and_each_says_how_many_state_it() {
    let answers = [
        json!({ "model": OPUS, "usage": { "input": 1, "output": 2, "cost": 0.5 } }),
        json!({ "model": OPUS, "usage": { "input": 1, "output": 2, "cost": 0.25, "currency": "EUR" } }),
        json!({ "model": OPUS, "usage": { "input": 1, "output": 3, "cost": 0.25, "currency": "EUR" } }),
        json!({ "model": OPUS, "usage": { "input": 1, "output": 4, "cost": 9, "currency": "points" } }),
    ];
    check(
        &answers,
        &json!({ "withCost": 3, "unreadable": 1, "cost": [{ "amount": "0.5", "currency": "EUR" }, { "amount": "0.5", "currency": "USD" }] }),
        &json!({ "priced": 4 }),
    );
    let (_folder, file) = session(&answers);
    let page = out(&["stats", "--tokenizer", "chars4", &file]);
    assert!(page.contains("0.50 EUR  as the source says, of 2 exchanges"), "{page}");
    assert!(page.contains("0.50 USD  as the source says, of 1 exchange"), "{page}");
}

#[test]
fn figures_of_a_proxy_that_contradict_each_other_keep_the_whole() {
    check(
        &[
            json!({ "model": OPUS, "usage": { "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 11 } } }),
            json!({ "model": OPUS, "usage": { "prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": { "reasoning_tokens": 6 } } }),
            // Nobody can tell that these are invented.
            json!({ "model": OPUS, "usage": { "prompt_tokens": 1_000_000, "completion_tokens": 1 } }),
        ],
        &json!({ "input": 1_000_020, "cacheRead": null, "output": 11, "reasoning": null, "unreadable": 2 }),
        &json!({ "priced": 2, "incomplete": 1, "partial": true }),
    );
}

/// Recordings, the model of each, and what `ccusage` 20.0.24 says that it cost, in dollars
/// (`--offline --mode calculate`).
const COSTS: [(&str, &str, &str); 9] = [
    (
        "B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl",
        "claude-opus-4-6",
        "11.607047",
    ),
    (
        "B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl",
        "claude-haiku-4-5-20251001",
        "0.0573157",
    ),
    (
        "B-anthropic/claude-code/codemie/session-624a4a58.jsonl",
        "claude-sonnet-4-5-20250929",
        "8.4326682",
    ),
    (
        "B-anthropic/claude-code/codemie/session-9eda1058.jsonl",
        "claude-sonnet-4-5-20250929",
        "0.62690085",
    ),
    (
        "B-anthropic/claude-code/agentcmd/full-session-three.jsonl",
        "claude-sonnet-4-5-20250929",
        "0.15269475",
    ),
    (
        "B-anthropic/claude-code/agentcmd/full-session-two.jsonl",
        "claude-sonnet-4-5-20250929",
        "0.33070755",
    ),
    (
        "B-anthropic/claude-code/codemie/incremental-simple/turn-1.jsonl",
        "claude-sonnet-4-5-20250929",
        "0.12257625",
    ),
    ("C-codex-responses/rollout/codemie-rollout-2026-05-11T11-26-55.jsonl", "gpt-5.5", "8.369808"),
    ("C-codex-responses/rollout/agent-sessions-small.jsonl", "gpt-5.6-luna", "0.00272028"),
];

#[test]
fn costs_are_those_that_another_program_computes() {
    for (file, model, cost) in COSTS {
        let Some(path) = data::recording(file) else { return };
        let run =
            support::run(&["stats", "--json", "--tokenizer", "chars4", path.to_str().unwrap()]);
        let stats: Value = serde_json::from_str(&run.out).unwrap();
        let found = &stats["price"]["byModel"][model]["amount"];
        assert_eq!(found, cost, "{file} {model}");
    }
}
