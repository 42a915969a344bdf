//! Images and documents in recorded requests, and what was reported of these.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use afterimage::{
    bill::{MediaCount, media_counts},
    id::Millis,
    request::Recording,
    tokens::{Bpe, Chars4, TokenCounter},
    transcript::Transcript,
};
use afterimage_testkit::data;

/// The images of each exchange of a recording, and the input that was reported.
fn read(group: &str, path: &str) -> Option<Vec<(MediaCount, u64)>> {
    let path = data::recordings(group)?.join(path);
    let counter: Arc<dyn TokenCounter> = Arc::new(Bpe::o200k());
    let transcript = Transcript::open(&path).unwrap();
    let recording = Recording::read(transcript, counter, |_| Millis::new(0)).unwrap();
    let counts = media_counts(&recording).unwrap();
    let inputs = recording
        .exchanges()
        .iter()
        .map(|exchange| exchange.usage.as_ref().and_then(|usage| usage.input).unwrap_or(0));
    let both: Vec<_> = counts.into_iter().zip(inputs).collect();
    println!("{}: {both:?}", path.display());
    Some(both)
}

#[test]
fn an_image_for_gpt_4o_costs_what_is_reported_beside_its_texts() {
    let Some(counts) = read("A-openai-chat", "inspect-ai/log_images_tc.json") else {
        return;
    };
    let (media, input) = counts[0];
    assert_eq!((media.parts, media.tokens, media.unknown), (1, 85 + 170, 0));
    // The texts, without the words that stand for the image, and four tokens for each of two
    // messages and three for the reply.
    let text: usize = ["\nFor the following exercise, it is important that you answer with only a single word or numeric value in brackets. For example, [22] or [house]. Do not include any discussion, narrative, or rationale, just a single value in brackets.\n", "What is this a picture of?"]
        .iter()
        .map(|text| Bpe::o200k().count(text))
        .sum();
    // The first text begins with a line's end, which the client seems not to have sent.
    assert_eq!(text as u64 + 2 * 4 + 3 + media.tokens, input + 1);
}

#[test]
fn an_image_costs_no_more_than_the_request_with_it_grew() {
    for (group, path, tokens) in [
        // 19 by 18 patches of 32 pixels, times 1.2: with the published 1.62 it would be 555 of the
        // 476 tokens by which the request grew.
        ("A-openai-chat", "wire-openai_chat/test_mixed_content_ordering_openai_chat.json", 411),
        // 22 by 21 patches of 28 pixels. The request grew by 703, with a second image and a call.
        ("B-anthropic", "wire-anthropic/test_model_sees_multiple_images_anthropic.json", 462),
    ] {
        let Some(counts) = read(group, path) else { return };
        let [(none, before), (with, after)] = counts[..] else { panic!("{counts:?}") };
        assert_eq!(none, MediaCount::default());
        assert!(with.tokens >= tokens && with.tokens < after - before, "{with:?}");
        assert_eq!(with.tokens - with.tokens % tokens, tokens, "{with:?}");
    }
}

#[test]
fn the_images_of_a_session_stand_in_every_request_after_them() {
    let path = "claude-code/agentcmd/full-session-two.jsonl";
    let Some(counts) = read("B-anthropic", path) else { return };
    // One of 600 by 134 pixels: 22 by 5 patches.
    let held: Vec<u64> = counts.iter().map(|(media, _)| media.tokens).collect();
    assert!(held.is_sorted() && held.first() == Some(&0) && held.last() == Some(&110), "{held:?}");
    let before = held.iter().filter(|tokens| **tokens == 0).count();
    let growth = counts[before].1 - counts[before - 1].1;
    assert!(growth > 110, "{growth}");
}

#[test]
fn what_an_image_costs_is_unknown_where_its_size_or_rule_is() {
    let check = |model: &str, image: &str, expected: (u64, u64, u64)| {
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":[{{"type":"text","text":"See."}},{image}]}}]}}"#
        );
        let line = serde_json::json!({"interactions": [{"uri": "https://api.example/v1/chat/completions",
            "request": body, "status": 200, "response": {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}}]});
        let transcript = Transcript::new(std::io::Cursor::new(line.to_string())).unwrap();
        let recording =
            Recording::read(transcript, Arc::new(Bpe::o200k()), |_| Millis::new(0)).unwrap();
        let found = media_counts(&recording).unwrap()[0];
        assert_eq!((found.parts, found.tokens, found.unknown), expected, "{model} {image}");
    };
    // GIF89a of 800 by 600.
    let url = |data: &str| format!(r#"{{"type":"image_url","image_url":{{"url":"{data}"}}}}"#);
    let gif = url("data:image/gif;base64,R0lGODlhIANYAg==");
    check("gpt-4o", &gif, (1, 85 + 170 * 4, 0));
    check("claude-sonnet-4-5", &gif, (1, 29 * 22, 0));
    check("unheard-of", &gif, (1, 0, 1));
    check("gpt-4o", &url("https://example.com/a.png"), (1, 0, 1));
    check("gpt-4o", &url("data:image/png;base64,!!!!"), (1, 0, 1));
    let pdf = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQgMSAwIG9iajw8L1R5cGUvUGFnZXMvQ291bnQgMj4+ZW5kb2Jq"}}"#;
    check("claude-sonnet-4-5", pdf, (1, 4_500, 0));
    check("gpt-4o", pdf, (1, 0, 1));
}

#[test]
fn the_detail_of_a_block_counts_by_its_rule() {
    let check = |model: &str, block: &str, expected: u64| {
        let line = serde_json::json!({"interactions": [{"uri": "https://api.example/v1/responses",
            "request": format!(r#"{{"model":"{model}","input":[{{"role":"user","content":[{block}]}}]}}"#),
            "status": 200, "response": {"output": [{"type":"message","role": "assistant", "content": [{"type":"output_text","text":"Yes."}]}]}}]});
        let transcript = Transcript::new(std::io::Cursor::new(line.to_string())).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let found = media_counts(&recording).unwrap();
        assert_eq!((found[0].parts, found[0].tokens), (1, expected), "{model} {block}");
    };
    let block = |detail: &str| {
        format!(
            r#"{{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlhIANYAg=="{detail}}}"#
        )
    };
    check("gpt-4o", &block(""), 85 + 4 * 170);
    check("gpt-4o", &block(r#","detail":"high""#), 85 + 4 * 170);
    check("gpt-4o", &block(r#","detail":"low""#), 85);
    // 25 by 19 patches of 32 pixels, or 16 by 12 of 512 by 384.
    check("gpt-5.5", &block(r#","detail":"high""#), 570);
    check("gpt-5.5", &block(r#","detail":"low""#), 231);
}
