use std::sync::Arc;

use super::*;
use crate::{
    id::Millis,
    request::{Exchange, Recording},
    tokens::Chars4,
    transcript::Transcript,
};

const SHAPE: &str = r#"{"system":[{"type":"text","text":"Guide ships."}],"tools":[{"name":"tide","input_schema":{}}]}"#;

fn value(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap()
}

fn record(kind: &str, members: &str) -> String {
    format!(r#"{{"type":"{kind}","sessionId":"s","timestamp":"2026-11-29T10:00:00Z",{members}}}"#)
}

fn shape() -> String {
    let hash = hash_of(&value(SHAPE));
    record("api-request-shape", &format!(r#""shapeHash":"{hash}","shape":{SHAPE}"#))
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn blob(message: &str) -> String {
    let hash = hash_of_message(&value(message));
    record("api-request-blob", &format!(r#""hash":"{hash}","message":{message}"#))
}

fn said(text: &str) -> String {
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    record("user", &format!(r#""uuid":"{text}","message":{message}"#))
}

fn answer_message(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn answer(text: &str, of: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    let usage = r#"{"input_tokens":7,"output_tokens":2}"#;
    let message = format!(
        r#"{{"role":"assistant","id":"m-{text}","model":"m","content":{content},"usage":{usage}}}"#
    );
    record("assistant", &format!(r#""uuid":"a-{text}",{of}"message":{message}"#))
}

/// A request with the first messages of another one, and these.
fn request(id: &str, base: Option<&str>, keep: usize, tail: &[&str], marked: usize) -> String {
    let tail: Vec<_> =
        tail.iter().map(|of| format!("\"{}\"", hash_of_message(&value(of)))).collect();
    let base = base.map_or(String::new(), |base| format!(r#""base":"{base}","#));
    let (hash, tail) = (hash_of(&value(SHAPE)), tail.join(","));
    let mark = format!(r#"{{"path":["messages",{marked},"content",0],"value":{{"type":"e"}}}}"#);
    record(
        "api-request",
        &format!(
            r#""id":"{id}",{base}"keep":{keep},"tail":[{tail}],"shapeHash":"{hash}","cacheControl":[{mark}],"params":{{"model":"m","betas":["b"],"max_tokens":9}}"#
        ),
    )
}

/// A session: a request, one that fails, its retry.
fn session() -> Vec<String> {
    let (first, second) = (user("How deep?"), user("And now?"));
    vec![
        said("How deep?"),
        shape(),
        blob(&first),
        request("r1", None, 0, &[&first], 0),
        answer("Six.", r#""requestRef":"r1","#),
        said("And now?"),
        blob(&second),
        request("r2", Some("r1"), 1, &[&answer_message("Six."), &second], 2),
        record("system", r#""uuid":"e","subtype":"api_error","error":{"status":529}"#),
        request("r3", Some("r2"), 3, &[], 2),
        answer("Seven.", r#""requestRef":"r3","#),
    ]
}

fn read(lines: &[String]) -> (Recording, Vec<String>) {
    let text = lines.join("\n");
    let mut transcript = Transcript::new(text.as_bytes()).unwrap();
    transcript.keep_exchanges();
    let mut recording = Recording::new(transcript.format(), Arc::new(Chars4));
    for record in transcript.by_ref() {
        recording.push(record.unwrap(), Millis::new(0)).unwrap();
    }
    recording.finish(transcript.take_exchanges());
    let notes = transcript.report().notes.iter().map(|note| note.text.clone()).collect();
    (recording, notes)
}

/// Of each request where it comes from, what came of it, and its first and last frame.
fn rows(recording: &Recording) -> Vec<String> {
    let row = |of: &Exchange| {
        let frame = |frame: Option<FrameSeq>| frame.map_or("-".to_owned(), |of| of.to_string());
        let (first, last) = (of.frames.first().copied().flatten(), of.frames.last().copied());
        let output = of.usage.as_ref().and_then(|usage| usage.output);
        format!(
            "{} {} {:?} {}..{} -> {} {:?}",
            of.number,
            of.provenance.as_str(),
            of.outcome(),
            frame(first),
            frame(last.flatten()),
            frame(of.answer()),
            output
        )
    };
    recording.exchanges().iter().map(row).collect()
}

#[test]
fn requests_are_as_they_were_sent_with_the_answers_of_the_frames() {
    let (recording, notes) = read(&session());
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        rows(&recording),
        [
            "1 logged Answered 0..0 -> 1 Some(2)",
            "2 logged Failed 0..2 -> - None",
            "3 logged Answered 0..2 -> 3 Some(2)",
        ]
    );
    let [_, failed, retry] = recording.exchanges() else { panic!() };
    assert_eq!((failed.failure.as_deref(), retry.is_retry), (Some("status 529"), true));
    let head = &SHAPE[1..SHAPE.len() - 1];
    let marked = user("And now?").replace("?\"", "?\",\"cache_control\":{\"type\":\"e\"}");
    let messages = [user("How deep?"), answer_message("Six."), marked].join(",");
    let body = format!(r#"{{"model":"m","messages":[{messages}],{head},"max_tokens":9}}"#);
    assert_eq!(recording.request(3).unwrap().body(), body);
}

#[test]
fn an_answer_without_a_request_in_the_file_is_worked_out() {
    let mut lines = session();
    lines.splice(0..0, [said("Who?"), answer("I.", "")]);
    let (recording, _) = read(&lines);
    let rows = rows(&recording);
    assert_eq!(rows[0], "1 reconstructed Answered -..- -> 1 Some(2)");
    assert_eq!(rows[3], "4 logged Answered 2..4 -> 5 Some(2)");
    assert!(recording.request(1).unwrap().body().contains("Who?"));
}

#[test]
fn a_request_that_the_file_holds_a_part_of_is_worked_out_or_says_what_is_missing() {
    for (left_out, lacks) in [
        (1, "the file lacks its system prompt and tools"),
        (2, "the file lacks a message of it"),
        (3, "the file lacks the request that it goes on from"),
    ] {
        let mut lines = session();
        lines.remove(left_out);
        let (recording, notes) = read(&lines);
        let note = format!("a request cannot be put together: {lacks}");
        assert!(notes.contains(&note), "{notes:?}");
        let all = recording.exchanges();
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].unread.as_deref(), Some(lacks));
        assert_eq!(all[2].provenance.as_str(), "reconstructed");
        assert_eq!(all[2].usage.as_ref().unwrap().output, Some(2));
    }
}

#[test]
fn what_does_not_have_its_hash_is_not_used() {
    let mut lines = session();
    lines[2] = lines[2].replace("How deep?", "How wide?");
    let (recording, notes) = read(&lines);
    assert_eq!(notes[0], "a message of a request does not have the hash that is stated");
    assert!(recording.exchanges().iter().all(|of| !of.request.contains("wide")));
    assert_eq!(recording.exchanges()[0].provenance.as_str(), "reconstructed");
}

#[test]
fn no_order_of_the_records_is_a_danger() {
    let lines = session();
    for from in 0..lines.len() {
        for to in 0..lines.len() {
            let mut lines = lines.clone();
            let moved = lines.remove(from);
            lines.insert(to, moved.clone());
            lines.push(moved);
            read(&lines);
        }
    }
}
