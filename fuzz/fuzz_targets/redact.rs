//! Any text is redacted without a panic: JSON stays JSON, a secret that is told is nowhere in it,
//! however it is split over events, and a second time changes nothing.
#![no_main]

use std::sync::LazyLock;

use afterimage::{
    json::{self, Value},
    redact::{RedactionRules, Redactor},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<RedactionRules> =
    LazyLock::new(|| RedactionRules::embedded().expect("rules"));
const SECRET: &str = "sk-ant-api03-9fKq2LmZx7Bv4Nw8Rt1Yc6Hd3Js5Pg0Qa2We4Ty6Ui8Op1As3Df5Gh7Jk9Lz2Xc4Vb6Nm8Qw1Er3Ty5Ui7Op9As2Df4Gh6-AA";

#[derive(Arbitrary, Debug)]
enum Input {
    Body(String),
    Broken(String),
    /// Text before the secret, and how much of that came before the body broke off.
    Cut(String, u8),
    /// Deltas of a stream that say the secret between these texts, cut into pieces of this length.
    Split(String, String, u8),
    /// Text before and behind the secret in a string of JSON.
    String(String, String),
}

fn string(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fuzz_target!(|input: Input| {
    let mut redactor = Redactor::new(&RULES);
    match input {
        Input::Body(text) => {
            let redacted = redactor.body(&text, "body").into_owned();
            if json::read(text.as_bytes()).is_ok() {
                assert!(json::read(redacted.as_bytes()).is_ok(), "{redacted}");
            }
        }
        Input::Broken(text) => {
            let _ = redactor.broken_body(&text, "body");
        }
        Input::Cut(before, length) => {
            let came = &SECRET[..12 + usize::from(length) % (SECRET.len() - 12)];
            let said = string(&format!("{before} {came}"));
            let text = format!("{{\"content\":{}", said.trim_end_matches('"'));
            let redacted = redactor.cut_body(&text, "body");
            // So little of a secret is one only where the body breaks off.
            assert!(before.contains(came) || !redacted.contains(came), "{redacted}");
            let _ = redactor.cut_body(&before, "body");
        }
        Input::Split(before, behind, length) => {
            let said: Vec<char> = format!("{before} {SECRET} {behind}").chars().collect();
            let pieces = said.chunks(usize::from(length).max(1));
            let stream: String = pieces
                .map(|piece| {
                    let piece = string(&piece.iter().collect::<String>());
                    format!(
                        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
                         {{\"type\":\"text_delta\",\"text\":{piece}}}}}\n\n"
                    )
                })
                .collect();
            let redacted = redactor.body(&stream, "body");
            let said: String = redacted
                .lines()
                .filter_map(|line| json::read(line.strip_prefix("data: ")?.as_bytes()).ok())
                .filter_map(|event| Some(event.get("delta")?.str_at("text")?.to_owned()))
                .collect();
            assert!(!said.contains(SECRET), "{redacted}");
        }
        Input::String(before, behind) => {
            let text =
                format!("{{\"content\":{}}}", string(&format!("{before} {SECRET} {behind}")));
            let redacted = redactor.body(&text, "body");
            let value = json::read(redacted.as_bytes()).expect("JSON stays JSON");
            assert!(!value.to_string().contains(SECRET), "{redacted}");
        }
    }
});
