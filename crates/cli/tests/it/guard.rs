//! What the guard says of requests that begin otherwise than the ones before them, and of calls that
//! nobody paid.

use serde_json::{Value, json};

use crate::support::run;

/// Much that is said, so that a cache keeps it.
fn long(word: &str) -> String {
    format!("{word} and what comes with it. ").repeat(400)
}

/// Exchanges of the Messages API: the members of the request, and the status.
fn traffic(requests: &[(Value, u64)]) -> tempfile::NamedTempFile {
    let exchanges: Vec<Value> = requests
        .iter()
        .enumerate()
        .map(|(at, (request, status))| {
            let mut body = json!({
                "model": "claude-sonnet-4-5",
                "max_tokens": 10,
                "system": [{"type": "text", "text": long("tide"), "cache_control": {"type": "ephemeral"}}],
            });
            for (key, value) in request.as_object().unwrap() {
                body[key] = value.clone();
            }
            let answer = json!({
                "type": "message", "role": "assistant", "model": body["model"],
                "content": [{"type": "text", "text": format!("The answer with the number {at}.")}],
            });
            let response = if *status == 200 { answer } else { json!({"error": {"type": "overloaded_error"}}) };
            json!({
                "uri": "https://api.example/v1/messages",
                "started": format!("2026-11-23T10:00:{:02}Z", at),
                "request": body, "status": status, "response": response,
            })
        })
        .collect();
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), json!({"interactions": exchanges}).to_string()).unwrap();
    file
}

fn rows(file: &tempfile::NamedTempFile) -> Vec<Value> {
    let run = run(&["guard", "--json", file.path().to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn marked(text: &str) -> Value {
    json!({"role": "user", "content": [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}},
    ]})
}

fn said(number: u64) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "text", "text": format!("The answer with the number {number}.")},
    ]})
}

#[test]
fn a_message_that_was_edited_is_named_though_the_session_is_another() {
    let turns = |clock: &str, more: &[Value]| {
        let mut messages = vec![user(&format!("At {clock}: when is high water?"))];
        messages.extend_from_slice(more);
        (json!({"messages": messages}), 200)
    };
    let file = traffic(&[
        (json!({"messages": [marked("At 10:00: when is high water?")]}), 200),
        turns("10:01", &[said(0), marked("And low water?")]),
        turns("10:02", &[said(0), user("And low water?"), said(1), marked("And the moon?")]),
        // Another conversation is no loss.
        (json!({"messages": [marked("Who keeps the light?")]}), 200),
    ]);
    let rows = rows(&file);
    for row in &rows[1..3] {
        assert_eq!(row["difference"]["owner"], "message:0", "{row}");
        assert!(row["forecast"]["read"].as_u64().unwrap() > 1_024, "{row}");
        assert!(row["forecast"]["lost"].as_u64().unwrap() > 0, "{row}");
    }
    assert_eq!(rows[3]["previous"], Value::Null, "{}", rows[3]);
}

#[test]
fn a_cache_that_kept_nothing_loses_nothing_with_another_model() {
    let small = |model: &str| {
        let system = [json!({"type": "text", "text": "tide ".repeat(1_500),
            "cache_control": {"type": "ephemeral"}})];
        (json!({"model": model, "system": system, "messages": [user("When?")]}), 200)
    };
    // The first model keeps nothing so short.
    let file = traffic(&[
        small("claude-haiku-4-5"),
        small("claude-haiku-4-5"),
        small("claude-sonnet-4-5"),
    ]);
    for row in rows(&file) {
        assert_eq!(row["forecast"]["lost"], 0, "{row}");
    }
}

#[test]
fn a_call_that_failed_is_paid_by_nobody_and_a_mark_that_is_gone_is_told() {
    let plain = [json!({"type": "text", "text": long("tide")})];
    let file = traffic(&[
        (json!({"messages": [user("When?")]}), 200),
        (json!({"system": plain, "messages": [user("When?"), said(0), user("And?")]}), 529),
        (json!({"system": plain, "messages": [user("When?"), said(0), user("And?")]}), 200),
    ]);
    let path = file.path().to_str().unwrap();
    let page = run(&["guard", "--max-loss", "0.001", path]);
    assert_eq!(page.code, Some(1), "{}", page.err);
    assert!(page.out.contains("its marks for the cache are others; it failed"), "{}", page.out);
    assert!(page.out.contains(" 1 request lost more than"), "{}", page.out);
    assert!(
        page.err.contains("request 3 of") && !page.err.contains("request 2 of"),
        "{}",
        page.err
    );
}

#[test]
fn a_session_without_a_request_is_refused() {
    let file = traffic(&[(json!({"messages": [user("What is the tide?")]}), 200)]);
    let run = run(&["guard", "--session", "nobody", file.path().to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(
        run.err.starts_with("error: there is no session \"nobody\" with a request"),
        "{}",
        run.err
    );
    assert!(run.err.contains("the sessions are 1"), "{}", run.err);
}
