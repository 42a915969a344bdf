//! Any text is the stream of an answer: it is joined or passed over, as the answer of each API.
#![no_main]

use std::sync::Arc;

use afterimage::{
    id::Millis, json::Value, request::Recording, tokens::Chars4, transcript::Transcript,
};
use libfuzzer_sys::fuzz_target;

const APIS: [(&str, &str); 3] = [
    ("https://api.openai.com/v1/responses", r#"{"model":"m","input":"hi","stream":true}"#),
    (
        "https://api.anthropic.com/v1/messages",
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ),
    (
        "https://api.openai.com/v1/chat/completions",
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ),
];

fn string(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fuzz_target!(|input: (u8, String)| {
    let (api, stream) = input;
    let (url, request) = APIS[usize::from(api) % APIS.len()];
    let har = format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"x","version":"1"}},"entries":[{{
            "startedDateTime":"2026-01-01T00:00:00Z","time":1,
            "request":{{"method":"POST","url":"{url}","headers":[],
                "postData":{{"mimeType":"application/json","text":{}}}}},
            "response":{{"status":200,"headers":[],
                "content":{{"mimeType":"text/event-stream","text":{}}}}}}}]}}}}"#,
        string(request),
        string(&stream)
    );
    let transcript = Transcript::new(har.as_bytes()).expect("a HAR file");
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
    let recording = recording.expect("what an answer holds is no error of its file");
    let exchange =
        recording.exchanges().first().expect("the request stays, whatever the answer is");
    assert_eq!(recording.request(exchange.number).expect("its request").body(), request);
});
