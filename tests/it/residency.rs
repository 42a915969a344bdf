//! What each facet cost: it adds up to what is reported, whatever is reported.
#![allow(clippy::unwrap_used)]

use std::{path::Path, sync::Arc};

use afterimage::{
    bill::{Bill, Prices, Remainder, Residency, ResidencyLine, Share, UsageSums, media_counts},
    id::Millis,
    request::Recording,
    tokens::Chars4,
    transcript::Transcript,
};
use afterimage_testkit::data;

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn read(transcript: Transcript<impl std::io::BufRead>) -> Recording {
    Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap()
}

fn read_text(text: &str) -> Recording {
    read(Transcript::new(text.as_bytes()).unwrap())
}

/// Lines and remainders come to the reported usage and to the bill, member by member; each line has
/// what it was held for.
fn adds_up(recording: &Recording, prices: &Prices, name: &Path) -> Residency {
    let residency = Residency::priced(recording, prices).unwrap();
    let reported: Vec<_> = recording.reported().collect();
    let sums: UsageSums = reported.iter().copied().collect();
    let total = residency.total();
    let found = [
        total.input,
        total.cache_read,
        total.cache_write,
        total.cache_write_1h,
        total.output,
        residency.exchanges,
    ];
    let of = &sums.total.tokens;
    let figures = [of.input, of.cache_read, of.cache_write, of.cache_write_1h, of.output];
    let [input, read, write, hour, output] = figures.map(Option::unwrap_or_default);
    let expected = [input, read, write, hour, output, sums.total.with_usage];
    assert_eq!(found, expected, "{}", name.display());
    let bill = Bill::of(prices, reported);
    assert_eq!(total.pico, bill.total().pico(), "{}", name.display());

    let without = Residency::of(recording).unwrap();
    let mut unpriced = total;
    unpriced.pico = 0;
    assert_eq!(unpriced, without.total(), "{}", name.display());
    for line in &residency.lines {
        assert!(line.requests <= residency.exchanges, "{line:?}");
        assert!(line.requests > 0 || line.share.input == 0, "{line:?}");
        assert!(line.share.cache_write_1h <= line.share.cache_write, "{line:?}");
        let parts = line.share.cache_read + line.share.cache_write + line.share.uncached();
        assert_eq!(parts, line.share.input, "{line:?}");
    }
    let by_type = residency.by(|line| Some(line.chunk_type.clone()));
    let by_type = by_type.values().fold(Share::default(), |sum, share| sum.plus(*share));
    let lines = residency.lines.iter().fold(Share::default(), |sum, line| sum.plus(line.share));
    assert_eq!(by_type, lines);
    residency
}

#[test]
fn residency_adds_up_to_the_reported_usage_of_every_recording() {
    let prices = Prices::embedded().unwrap();
    let (mut with_usage, mut priced) = (0, 0);
    for group in GROUPS {
        let Some(folder) = data::recordings(group) else { return };
        for path in data::files_under(&folder) {
            let Ok(transcript) = Transcript::open(&path) else { continue };
            let recording = read(transcript);
            let residency = adds_up(&recording, &prices, &path);
            with_usage += u64::from(residency.exchanges > 0);
            priced += u64::from(residency.total().pico > 0);
            // What a request holds by our count is what `requests` says that it holds.
            let listed = recording.exchanges().iter().filter(|exchange| exchange.usage.is_some());
            let media = media_counts(&recording).unwrap();
            let counted: u64 = listed
                .map(|exchange| {
                    let texts = recording.tokens(exchange.number).unwrap().total();
                    texts + media[exchange.number - 1].tokens
                })
                .sum();
            let laid_out = residency.lines.iter().map(|line| line.share.input).sum::<u64>();
            let expected = counted - residency.overcounted.1;
            assert_eq!(laid_out, expected, "{}", path.display());
        }
    }
    assert!(with_usage >= 40 && priced >= 10, "{with_usage} {priced}");
}

/// A session of pi with these messages; an answer is its text, input, cache read, written, output.
fn pi(messages: &[Result<&str, (&str, [i64; 4])>]) -> Recording {
    let mut lines = vec![r#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}"#.to_owned()];
    for message in messages {
        lines.push(match message {
            Ok(text) => format!(r#"{{"type":"message","timestamp":"t","message":{{"role":"user","content":"{text}"}}}}"#),
            Err((content, [input, read, write, output])) => format!(
                r#"{{"type":"message","timestamp":"t","message":{{"role":"assistant","model":"m","content":{content},"usage":{{"input":{input},"cacheRead":{read},"cacheWrite":{write},"output":{output}}}}}}}"#
            ),
        });
    }
    read_text(&lines.join("\n"))
}

fn line(residency: &Residency, find: impl Fn(&ResidencyLine) -> bool) -> &ResidencyLine {
    residency.lines.iter().find(|line| find(line)).unwrap()
}

#[test]
fn a_facet_costs_its_tokens_in_every_request_that_held_it() {
    let (five, ten) = ("a".repeat(20), "b".repeat(40));
    let said = r#"[{"type":"text","text":"cccccccc"}]"#;
    // The first request holds 5 tokens of 20; the second 5 + 2 + 10 of 30, of which 15 were cached.
    let recording =
        pi(&[Ok(&five), Err((said, [20, 0, 0, 2])), Ok(&ten), Err((said, [5, 15, 10, 9]))]);
    let residency = Residency::of(&recording).unwrap();
    let figures = |line: &ResidencyLine| {
        let Share { cache_read, cache_write, output, .. } = line.share;
        (line.tokens, line.requests, [cache_read, cache_write, line.share.uncached(), output])
    };
    let of = |frame: u64| figures(line(&residency, |line| line.frame.unwrap().get() == frame));
    assert_eq!(of(0), (5, 2, [2, 3, 5, 0]));
    assert_eq!(of(1), (2, 1, [0, 2, 0, 2]));
    assert_eq!(of(2), (10, 1, [0, 5, 5, 0]));
    assert_eq!(of(3), (2, 0, [0, 0, 0, 2]));
    let lacking = residency.remainder(Remainder::NotInTranscript);
    assert_eq!((lacking.cache_read, lacking.uncached()), (13, 15));
    assert_eq!(residency.remainder(Remainder::OutputNotKept).output, 7);
    assert_eq!(residency.overcounted, (0, 0));
}

#[test]
fn counts_that_are_too_large_are_scaled_to_what_is_reported() {
    let (five, ten) = ("a".repeat(20), "b".repeat(40));
    let said = r#"[{"type":"text","text":"cccccccc"}]"#;
    let recording = pi(&[Ok(&five), Ok(&ten), Err((said, [1, 4, 0, 1]))]);
    let residency = Residency::of(&recording).unwrap();
    assert_eq!(residency.overcounted, (1, 10));
    let shares: Vec<_> = residency.lines.iter().map(|line| line.share.tokens()).collect();
    assert_eq!(shares, [2, 3, 1]);
    assert!(residency.remainder(Remainder::NotInTranscript).is_empty());
}

#[test]
fn calls_and_results_belong_to_their_tool_and_say_what_they_are_about() {
    let call = r#"[{"type":"toolCall","id":"c","name":"read","arguments":{"limit":3,"path":"/x/harbour.md"}}]"#;
    let mut lines = vec![r#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}"#.to_owned()];
    let usage = r#""usage":{"input":1000,"output":50,"cacheRead":0,"cacheWrite":0}"#;
    for message in [
        r#""role":"user","content":"read it""#.to_owned(),
        format!(r#""role":"assistant","model":"m","content":{call},{usage}"#),
        r#""role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"the tide is high"}]"#.to_owned(),
        format!(r#""role":"assistant","model":"m","content":[{{"type":"text","text":"High."}}],{usage}"#),
    ] {
        lines.push(format!(r#"{{"type":"message","timestamp":"t","message":{{{message}}}}}"#));
    }
    let residency = Residency::of(&read_text(&lines.join("\n"))).unwrap();
    let of_tool: Vec<_> = residency
        .lines
        .iter()
        .filter(|line| line.call.as_ref().is_some_and(|call| &*call.tool == "read"))
        .collect();
    // The call, the result, and the text inside of it.
    assert_eq!(of_tool.len(), 3, "{:#?}", residency.lines);
    assert!(
        of_tool
            .iter()
            .all(|line| line.call.as_ref().unwrap().path.as_deref() == Some("/x/harbour.md"))
    );
    let by_tool = residency.by(|line| line.call.as_ref().map(|call| call.tool.clone()));
    let sum = of_tool.iter().fold(Share::default(), |sum, line| sum.plus(line.share));
    assert_eq!(by_tool["read"], sum);
}

#[cfg(feature = "record")]
#[test]
fn definitions_of_tools_come_first_and_have_lines_of_their_own() {
    use serde_json::json;
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "a".repeat(40)}],
        "system": "b".repeat(20), "tools": [{"name": "tide", "description": "when it is high"}]});
    let answer = json!({"id": "r", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Now."}],
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0, "output_tokens": 3}});
    let archive = json!({"log": {"version": "1.2", "entries": [
        {"startedDateTime": "2026-01-02T03:04:06.000Z", "time": 12,
         "request": {"method": "POST", "url": "https://x.example/v1/messages", "postData": {"text": request.to_string()}},
         "response": {"status": 200, "content": {"text": answer.to_string()}}}]}});
    let residency = Residency::of(&read_text(&archive.to_string())).unwrap();
    let tide = line(&residency, |line| line.is_definition);
    assert_eq!((tide.call.as_ref().map(|call| &*call.tool), tide.requests), (Some("tide"), 1));
    // The request is 9 + 5 + 10 tokens by our count, and 29 reported ones: 5 stand in no facet.
    let shares: Vec<_> = residency
        .lines
        .iter()
        .filter(|line| line.share.input > 0)
        .map(|line| (line.share.cache_read, line.share.uncached()))
        .collect();
    let not_counted = residency.remainder(Remainder::NotCounted);
    let counted: u64 = shares.iter().map(|(read, plain)| read + plain).sum();
    assert_eq!(not_counted.cache_read, 29 - counted);
    assert_eq!(tide.share.uncached(), 0);
    assert_eq!(residency.total().input, 29);
    assert!(residency.remainder(Remainder::NotInTranscript).is_empty());
}

#[test]
fn a_line_belongs_to_the_turn_of_the_message_before_it() {
    let said = r#"[{"type":"text","text":"cccccccc"}]"#;
    let recording = pi(&[
        Ok("one"),
        Ok("and more of it"),
        Err((said, [90, 0, 0, 2])),
        Err((said, [90, 0, 0, 2])),
        Ok("two"),
        Err((said, [90, 0, 0, 2])),
    ]);
    let residency = Residency::of(&recording).unwrap();
    let turns = residency.lines.iter().map(|line| line.turn.unwrap().get());
    assert_eq!(turns.collect::<Vec<_>>(), [0, 0, 0, 0, 4, 4]);
    let by_turn = residency.by(|line| line.turn);
    let lines = by_turn.values().fold(Share::default(), |sum, share| sum.plus(*share));
    assert_eq!(lines.plus(residency.remainders()), residency.total());
}

#[test]
fn a_message_with_a_result_begins_no_turn() {
    let usage = r#""usage":{"input_tokens":90,"output_tokens":5}"#;
    let lines = [
        r#"{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"read it"}}"#.to_owned(),
        format!(r#"{{"type":"assistant","sessionId":"s","uuid":"a","message":{{"id":"m","role":"assistant","model":"x","content":[{{"type":"tool_use","id":"c","name":"read","input":{{}}}}],{usage}}}}}"#),
        r#"{"type":"user","sessionId":"s","uuid":"r","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"the tide is high"}]}}"#.to_owned(),
        format!(r#"{{"type":"assistant","sessionId":"s","uuid":"b","message":{{"id":"n","role":"assistant","model":"x","content":[{{"type":"text","text":"High."}}],{usage}}}}}"#),
    ];
    let residency = Residency::of(&read_text(&lines.join("\n"))).unwrap();
    assert!(residency.lines.len() >= 4, "{:#?}", residency.lines);
    assert!(residency.lines.iter().all(|line| line.turn.is_some_and(|turn| turn.get() == 0)));
}

#[test]
fn odd_figures_are_in_a_remainder_and_never_lost() {
    let prices = Prices::embedded().unwrap();
    let said = r#"[{"type":"text","text":"cccccccc"}]"#;
    for usage in [
        [0, 0, 0, 0],
        [-5, 7, 0, 3],
        [5, -7, 3, 3],
        [1, 1, 1, -1],
        [0, 1 << 53, 1 << 53, 1 << 53],
        [1 << 60, 0, 0, 1 << 60],
    ] {
        let recording = pi(&[
            Ok("so"),
            Err((said, usage)),
            Err(("[]", [3, 3, 3, 3])),
            Ok("on"),
            Err((said, usage)),
        ]);
        adds_up(&recording, &prices, Path::new("odd"));
    }
    // Parts that are larger than the whole together.
    let text = r#"{"messages":[{"role":"user","content":"go"}]}"#;
    adds_up(&read_text(text), &prices, Path::new("none"));
}

#[test]
fn an_image_costs_its_rule_in_every_request_after_it_on_a_row_of_its_own() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let path = folder.join("claude-code/agentcmd/full-session-two.jsonl");
    let residency = Residency::of(&read(Transcript::open(&path).unwrap())).unwrap();
    let media: Vec<_> = residency.lines.iter().filter(|line| line.is_media).collect();
    let [image] = media[..] else { panic!("{media:#?}") };
    // 600 by 134 pixels: 22 by 5 patches. The call that read the file is named.
    assert_eq!((image.tokens, image.chunk_type.as_deref()), (110, Some("media")));
    assert_eq!(image.call.as_ref().map(|call| &*call.tool), Some("Read"), "{image:?}");
    assert_eq!(image.share.input, 110 * image.requests);
    assert!(image.requests > 3 && residency.unknown_media == 0, "{image:?}");
    // The text that stands for it is another row of the same facet.
    let text = line(&residency, |line| line.facet == image.facet && !line.is_media);
    assert!(text.tokens > 0 && text.tokens < 30, "{text:?}");
}

/// A Claude Code session with an image of 800 by 600 pixels, and answers of these models.
fn with_image(models: &[&str]) -> Residency {
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhIANYAg=="}}"#;
    let mut lines = vec![format!(
        r#"{{"type":"user","sessionId":"s","uuid":"u","message":{{"role":"user","content":[{image},{{"type":"text","text":"See."}}]}}}}"#
    )];
    for (index, model) in models.iter().enumerate() {
        lines.push(format!(
            r#"{{"type":"assistant","sessionId":"s","uuid":"a{index}","message":{{"id":"m{index}","role":"assistant","model":"{model}","content":[{{"type":"text","text":"Seen."}}],"usage":{{"input_tokens":5000,"output_tokens":4}}}}}}"#
        ));
        lines.push(format!(
            r#"{{"type":"user","sessionId":"s","uuid":"u{index}","message":{{"role":"user","content":"And?"}}}}"#
        ));
    }
    Residency::of(&read_text(&lines.join("\n"))).unwrap()
}

#[test]
fn each_request_counts_an_image_by_the_rule_of_its_own_model() {
    let claude = 29 * 22;
    for (models, expected, unknown) in [
        (&["claude-opus-4-5", "claude-opus-4-5"][..], 2 * claude, 0),
        // They count by one rule, and by another.
        (&["claude-opus-4-5", "claude-haiku-4-5"], 2 * claude, 0),
        (&["claude-opus-4-5", "gpt-4o", "claude-opus-4-5"], 2 * claude + 85 + 4 * 170, 0),
        // Nobody knows, and it is not zero.
        (&["claude-opus-4-5", "unheard-of"], claude, 1),
        (&["unheard-of", "unheard-of"], 0, 1),
    ] {
        let residency = with_image(models);
        let image = line(&residency, |line| line.is_media);
        assert_eq!((image.share.input, residency.unknown_media), (expected, unknown), "{models:?}");
        assert_eq!(image.requests, models.len() as u64);
        assert_eq!(residency.total().input, 5_000 * models.len() as u64);
    }
}
