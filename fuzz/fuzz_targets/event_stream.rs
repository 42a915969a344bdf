//! Any text is the stream of an answer: it is joined or passed over, as the answer of each API. So are
//! frames of Amazon's event streams, whole or cut, and any bytes in their place.
#![no_main]

use std::sync::Arc;

use afterimage::{
    id::Millis, json::Value, request::Recording, tokens::Chars4, transcript::Transcript,
};
use arbitrary::Arbitrary;
use base64::{Engine, engine::general_purpose::STANDARD};
use libfuzzer_sys::fuzz_target;

const CONVERSE: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
const APIS: [(&str, &str); 8] = [
    ("https://api.openai.com/v1/responses", r#"{"model":"m","input":"hi","stream":true}"#),
    (
        "https://api.anthropic.com/v1/messages",
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ),
    (
        "https://api.openai.com/v1/chat/completions",
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ),
    ("https://bedrock-runtime.x.amazonaws.com/model/m/converse-stream", CONVERSE),
    ("https://bedrock-runtime.x.amazonaws.com/model/m/invoke-with-response-stream", CONVERSE),
    (
        "https://bedrock-runtime.x.amazonaws.com/model/a/invoke-with-response-stream",
        r#"{"anthropic_version":"b","messages":[{"role":"user","content":"hi"}]}"#,
    ),
    (
        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent",
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    ),
    (
        "http://127.0.0.1:11434/api/chat",
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
    ),
];

/// The headers' names and values, and the payload, which stands in base64 where it is `bytes`.
type Frame = (Vec<(u8, String)>, String, bool);

#[derive(Arbitrary, Debug)]
enum Stream {
    Text(String),
    /// And what is cut off at the end.
    Frames(Vec<Frame>, u8),
    Bytes(Vec<u8>),
}

const HEADERS: [&str; 5] =
    [":event-type", ":exception-type", ":error-code", ":error-message", ":message-type"];

fn frame((headers, payload, is_bytes): &Frame) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, value) in headers {
        let name = HEADERS[usize::from(*name) % HEADERS.len()];
        let value = &value.as_bytes()[..value.len().min(1 << 15)];
        written.push(name.len() as u8);
        written.extend(name.as_bytes());
        written.push(7);
        written.extend((value.len() as u16).to_be_bytes());
        written.extend(value);
    }
    let payload = if *is_bytes {
        format!(r#"{{"bytes":"{}"}}"#, STANDARD.encode(payload))
    } else {
        payload.clone()
    };
    let mut frame = ((16 + written.len() + payload.len()) as u32).to_be_bytes().to_vec();
    frame.extend((written.len() as u32).to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend(written);
    frame.extend(payload.as_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

fn string(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fuzz_target!(|input: (u8, Stream)| {
    let (api, stream) = input;
    let (encoding, stream) = match stream {
        Stream::Text(text) => ("", text),
        Stream::Frames(frames, cut) => {
            let mut bytes: Vec<u8> = frames.iter().flat_map(frame).collect();
            bytes.truncate(bytes.len().saturating_sub(usize::from(cut)));
            (r#""encoding":"base64","#, STANDARD.encode(bytes))
        }
        Stream::Bytes(bytes) => (r#""encoding":"base64","#, STANDARD.encode(bytes)),
    };
    let (url, request) = APIS[usize::from(api) % APIS.len()];
    let har = format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"x","version":"1"}},"entries":[{{
            "startedDateTime":"2026-01-01T00:00:00Z","time":1,
            "request":{{"method":"POST","url":"{url}","headers":[],
                "postData":{{"mimeType":"application/json","text":{}}}}},
            "response":{{"status":200,"headers":[],
                "content":{{{encoding}"mimeType":"text/event-stream","text":{}}}}}}}]}}}}"#,
        string(request),
        string(&stream)
    );
    let transcript = Transcript::new(har.as_bytes()).expect("a HAR file");
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
    let recording = recording.expect("what an answer holds is no error of its file");
    let Some(exchange) = recording.exchanges().first() else {
        // A host's own form of an answer is refused with its request.
        return assert!(url.contains("/invoke"), "the request stays, whatever the answer is");
    };
    assert_eq!(recording.request(exchange.number).expect("its request").body(), request);
});
