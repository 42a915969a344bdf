//! Any requests that Claude Code may write into a session, by their hashes, are put together or told of.
#![no_main]

use std::{fmt::Write, sync::Arc};

use afterimage::{
    id::Millis,
    json::{self, Value},
    request::Recording,
    tokens::Chars4,
    transcript::Transcript,
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

#[derive(Arbitrary, Debug)]
enum Step {
    /// The content of a message of the user or of the agent.
    Blob(bool, String),
    Shape(String),
    /// The request that it goes on from, how many messages it keeps, and those that follow; a mark of
    /// the cache.
    Request(u8, u8, Vec<u8>, u8, Option<(u8, u8)>),
    /// The request that it answers.
    Answer(u8, u8),
    Prompt(u8),
    Failed(u16),
    Compacted,
    Cost(u16, u16),
    /// A line as it is.
    Line(String),
}

/// A hash of JSON whose members are in order.
fn hash(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A value in the place of a text, where it is JSON.
fn content(text: &str) -> String {
    match json::read(text.as_bytes()) {
        Ok(value) => value.to_string(),
        Err(_) => Value::String(text.to_owned()).to_string(),
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut lines = String::new();
    let (mut blobs, mut shapes, mut requests) = (Vec::new(), Vec::new(), 0_u32);
    for (number, step) in steps.iter().enumerate() {
        let at = |list: &[String], at: u8| {
            list.get(usize::from(at) % list.len().max(1)).cloned().unwrap_or_default()
        };
        let line = match step {
            Step::Blob(is_user, text) => {
                let role = if *is_user { "user" } else { "assistant" };
                let block = Value::String(text.clone());
                let blocks = if *is_user {
                    format!(r#"[{{"text":{block},"type":"text"}}]"#)
                } else {
                    content(text)
                };
                let message = format!(r#"{{"content":{blocks},"role":"{role}"}}"#);
                let hash = hash(&message);
                blobs.push(hash.clone());
                format!(r#""type":"api-request-blob","hash":"{hash}","message":{message}"#)
            }
            Step::Shape(text) => {
                let shape = format!(r#"{{"system":{},"tools":[]}}"#, content(text));
                let hash = hash(&shape);
                shapes.push(hash.clone());
                format!(r#""type":"api-request-shape","shapeHash":"{hash}","shape":{shape}"#)
            }
            Step::Request(base, keep, tail, shape, mark) => {
                requests += 1;
                let tail: Vec<String> =
                    tail.iter().map(|of| format!("\"{}\"", at(&blobs, *of))).collect();
                let mark = mark.map_or(String::new(), |(message, block)| {
                    format!(r#"{{"path":["messages",{message},"content",{block}],"value":{{"type":"e"}}}}"#)
                });
                format!(
                    r#""type":"api-request","id":"r{requests}","base":"r{base}","keep":{keep},"tail":[{}],"shapeHash":"{}","cacheControl":[{mark}],"params":{{"model":"m"}}"#,
                    tail.join(","),
                    at(&shapes, *shape)
                )
            }
            Step::Answer(of, id) => format!(
                r#""type":"assistant","uuid":"u{number}","requestRef":"r{of}","message":{{"role":"assistant","id":"m{id}","model":"m","content":[{{"type":"text","text":"x{number}"}}],"usage":{{"input_tokens":{id},"output_tokens":2}}}}"#
            ),
            Step::Prompt(text) => format!(
                r#""type":"user","uuid":"u{number}","message":{{"role":"user","content":"p{text}"}}"#
            ),
            Step::Failed(status) => {
                format!(r#""type":"system","subtype":"api_error","error":{{"status":{status}}}"#)
            }
            Step::Compacted => format!(
                r#""type":"system","uuid":"u{number}","subtype":"compact_boundary","compactMetadata":{{"durationMs":5}}"#
            ),
            Step::Cost(input, output) => format!(
                r#""type":"cost-state","modelUsage":{{"m":{{"inputTokens":{input},"outputTokens":{output}}}}}"#
            ),
            Step::Line(line) => {
                let _ = writeln!(lines, "{line}");
                continue;
            }
        };
        let _ = writeln!(lines, r#"{{"sessionId":"s","timestamp":"2026-11-29T10:00:00Z",{line}}}"#);
    }
    let Ok(transcript) = Transcript::new(lines.as_bytes()) else { return };
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
    let Ok(recording) = recording else { return };
    for exchange in recording.exchanges() {
        let Ok(request) = recording.request(exchange.number) else { continue };
        let end = request.parts().iter().try_fold(0, |end, part| {
            (part.range.start == end && part.range.end > end).then_some(part.range.end)
        });
        assert_eq!(end, Some(request.body().len()), "the parts tile the body");
        json::read(request.body().as_bytes()).expect("a request is JSON");
    }
});
