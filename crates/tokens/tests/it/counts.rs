//! The exact counters against `tiktoken-rs` itself, on generated, recorded and hostile texts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_sign_loss)]

use afterimage_testkit::data;

use std::{collections::BTreeSet, fs};

use afterimage_tokens::{CountedText, Memo, TokenCounter, by_name, default_counter};
use data::{files_under, recordings};
use proptest::prelude::*;
use serde_json::Value;
use tiktoken_rs::CoreBPE;

/// A vocabulary as `tiktoken-rs` counts it, and the counters that claim the same.
struct Peer {
    reference: &'static CoreBPE,
    counters: Vec<Box<dyn TokenCounter>>,
}

fn peers() -> [Peer; 2] {
    [
        Peer {
            reference: tiktoken_rs::o200k_base_singleton(),
            counters: vec![
                #[cfg(feature = "bpe")]
                Box::new(afterimage_tokens::Bpe::o200k()),
            ],
        },
        Peer {
            reference: tiktoken_rs::cl100k_base_singleton(),
            counters: vec![
                #[cfg(feature = "bpe")]
                Box::new(afterimage_tokens::Bpe::cl100k()),
            ],
        },
    ]
}

/// Counts `text` by all counters and checks each way to ask.
fn check(text: &str) {
    for Peer { reference, counters } in peers() {
        let expected = reference.encode_ordinary(text).len();
        for counter in counters {
            let found = counter.count(text);
            assert_eq!(found, expected, "{} of {text:?}", counter.id());
            assert_eq!(counter.count_up_to(text, expected), Some(expected));
            if let Some(less) = expected.checked_sub(1) {
                assert_eq!(counter.count_up_to(text, less), None, "{} of {text:?}", counter.id());
                assert_eq!(counter.count_up_to(text, less / 2), None);
            }
        }
    }
}

/// Counts `parts` joined by all counters, with the reference's counts of each part.
fn check_joined(parts: &[&str]) {
    for Peer { reference, counters } in peers() {
        let count = |text: &str| reference.encode_ordinary(text).len();
        let counted: Vec<_> =
            parts.iter().map(|text| CountedText { text, tokens: count(text) }).collect();
        let expected = count(&parts.concat());
        for counter in counters {
            assert_eq!(counter.count_joined(&counted), expected, "{} of {parts:?}", counter.id());
        }
    }
}

/// Cuts `text` near the given fractions of it, at character boundaries.
fn cut<'a>(text: &'a str, fractions: &[f64]) -> Vec<&'a str> {
    let mut at: Vec<_> = fractions
        .iter()
        .map(|fraction| (text.len() as f64 * fraction) as usize)
        .map(|at| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap())
        .collect();
    at.push(text.len());
    at.sort_unstable();
    let mut start = 0;
    at.into_iter()
        .map(|end| {
            let part = &text[start..end];
            start = end;
            part
        })
        .collect()
}

/// Words, white space, tags, numbers and characters of every class that a pattern names.
fn awkward() -> impl Strategy<Value = String> {
    let snippet = prop_oneof![
        proptest::sample::select(vec![
            "the ",
            "Hello",
            "HELLO",
            "helloWorld",
            "it's",
            "IT'S",
            "we'LL",
            "'ve",
            "x'",
            "'s",
            "'",
            "''",
            "ſ",
            "'ſ",
            "don’t",
            "1",
            "12",
            "1234567",
            "3.14",
            "½",
            "४",
            "Ⅷ",
            " ",
            "  ",
            "        ",
            "\t",
            "\t\t",
            "\u{a0}",
            "\u{3000}",
            "\u{2028}",
            "\u{85}",
            "\n",
            "\r\n",
            "\n\n\n",
            "\r",
            " \n ",
            "!",
            "?!",
            "...",
            "----",
            "//",
            "/",
            "\n/",
            "!\n/",
            "</my_turn>\n\n<tool_call name=\"x\">",
            "<|endoftext|>",
            "{\"a\": [1, 2]}",
            "漢字",
            "天气很好，我们去公园。",
            "かな",
            "カナ",
            "한국어",
            "é",
            "e\u{301}",
            "\u{301}",
            "\u{301}\u{302}",
            "ʰ",
            "ǅ",
            "\u{200b}",
            "\u{200d}",
            "\u{feff}",
            "🎈",
            "👩‍👩‍👧",
            "🇨🇭",
            "ß",
            "İ",
            "Ω",
            "\0",
            "\u{7f}",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
        "[a-zA-Z' ]{0,20}",
        "[ \n\r\t!/a]{0,8}",
        "[A-Za-z0-9+/]{0,200}",
    ];
    proptest::collection::vec(snippet, 0..16).prop_map(|snippets| snippets.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(afterimage_testkit::cases(1_500)) })]

    #[test]
    fn a_count_is_that_of_tiktoken(text in awkward()) {
        check(&text);
    }

    #[test]
    fn the_count_of_joined_parts_is_that_of_their_text(
        text in awkward(),
        fractions in proptest::collection::vec(0.0..1.0, 0..6),
    ) {
        check_joined(&cut(&text, &fractions));
    }
}

#[test]
fn the_count_of_joined_parts_is_exact_where_borders_are_awkward() {
    check_joined(&[]);
    check_joined(&["", "", ""]);
    check_joined(&["", "a", "", "b", ""]);
    for text in [
        "it's we'LL they'VE 'S",
        "a\r\nb\r\n\r\n  c",
        "</my_turn>\n\n<tool_call name=\"x\">",
        "words  \n\n  more   words",
        "path!\n/usr/bin",
        "12345678901234567890",
        "天气很好，我们去公园。\n天气很好",
        "e\u{301}\u{301}clair 👩‍👩‍👧 x",
        "   \n   ",
    ] {
        let chars: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
        for first in &chars {
            for second in &chars {
                let (first, second) = (first.min(second), first.max(second));
                check_joined(&[&text[..*first], &text[*first..*second], &text[*second..]]);
            }
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        check_joined(&single.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn wrong_counts_of_parts_give_a_wrong_sum_and_no_panic() {
    for tokens in [0, usize::MAX] {
        let part = CountedText { text: "some words here", tokens };
        default_counter().count_joined(&[part, part, part]);
    }
}

/// `unit`, over and over, to at least `bytes` bytes.
fn run(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes.div_ceil(unit.len()))
}

/// Texts on which splitters or merges are known to overflow or to turn quadratic.
const HOSTILE: &[&str] = &[
    " ",
    "\n",
    "\r\n",
    "\t",
    " \n",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "a",
    "A",
    "z",
    "aA",
    "Aa",
    "é",
    "!",
    "!\n",
    "/",
    "\n/",
    "-",
    "=",
    "_",
    "'",
    "'s",
    "a'",
    "0",
    "01",
    "½",
    "漢",
    "漢A",
    "，",
    "한",
    "\u{301}",
    "e\u{301}",
    "!\u{301}",
    "ʰ",
    "\u{200b}",
    "\u{200d}",
    "🎈",
    "👩‍👩‍👧",
    "\0",
    "ab cd ",
    "a  ",
    " a",
    "abcdefghijklmnopqrstuvwxyz",
];

#[test]
fn hostile_texts_are_counted_as_tiktoken_counts_them() {
    for unit in HOSTILE {
        let text = run(unit, 20_000);
        check(&text);
        check(&format!("x{text}y"));
        check_joined(&cut(&text, &[0.3, 0.61]));
    }
}

/// Counts `bytes` bytes of each unit, in time.
fn count_runs(units: &[&str], bytes: usize) {
    for unit in units {
        let text = run(unit, bytes);
        for counter in peers().iter().flat_map(|peer| &peer.counters) {
            assert_eq!(counter.count_up_to(&text, 10), None, "{unit:?}");
            assert!(counter.count(&text) > 10, "{unit:?}");
        }
    }
}

/// What `tiktoken` for Python counts with the same tokens. Its expression for o200k overflows on the
/// spaces; that count is the one of its merger.
#[cfg(feature = "bpe")]
#[test]
fn runs_of_a_million_bytes_are_counted_as_tiktoken_for_python_counts_them() {
    for (unit, o200k, cl100k) in [
        (" ", 7_813, 7_813),
        (" \n", 250_000, 250_000),
        ("\u{3000}", 20_834, 166_667),
        ("a", 125_000, 125_000),
        ("!", 62_500, 125_000),
        ("漢", 333_333, 666_666),
        ("🎈", 500_000, 750_000),
        ("\u{301}", 500_000, 500_000),
    ] {
        let text = unit.repeat(1_000_000 / unit.len());
        let counts = [afterimage_tokens::Bpe::o200k(), afterimage_tokens::Bpe::cl100k()]
            .map(|counter| counter.count(&text));
        assert_eq!(counts, [o200k, cl100k], "{unit:?}");
    }
}

#[test]
fn four_megabytes_of_white_space_are_counted() {
    count_runs(&[" ", " \n", "\u{3000}"], 4 << 20);
}

#[test]
fn four_megabytes_of_one_word_or_mark_are_counted() {
    count_runs(&["a", "!", "漢", "🎈"], 4 << 20);
}

#[test]
fn a_quarter_of_a_megabyte_of_any_hostile_text_is_counted() {
    count_runs(HOSTILE, 256 << 10);
}

/// `tiktoken-rs` takes a piece of up to a million characters.
#[test]
fn counts_of_long_pieces_are_those_of_tiktoken() {
    for unit in [" ", "\u{a0}", "a", "-", "漢"] {
        for bytes in [65_530, 65_540] {
            check(&format!("x {}", run(unit, bytes)));
            check(&format!("{}1", run(unit, bytes)));
        }
    }
}

#[test]
fn every_id_names_its_counter() {
    for name in ["o200k", "o200k_base", "cl100k", "cl100k_base", "chars4"] {
        let counter = by_name(name).unwrap();
        assert!(counter.id().starts_with(name));
        assert_eq!(by_name(counter.id()).unwrap().id(), counter.id());
    }
    assert!(by_name("gpt2").is_none());
}

#[test]
fn a_memo_counts_as_its_counter_does() {
    let memo = Memo::new(default_counter());
    for text in ["", "short", "a longer text", "a longer text"] {
        assert_eq!(memo.count(text), default_counter().count(text));
    }
    assert_eq!((memo.stats().hits, memo.stats().misses), (1, 3));
}

/// All strings of the recorded sessions, each once.
fn recorded() -> Option<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for group in ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"] {
        for path in files_under(&recordings(group)?) {
            let file = fs::read_to_string(&path).unwrap();
            let values = serde_json::Deserializer::from_str(&file).into_iter::<Value>();
            values.map_while(Result::ok).for_each(|value| collect(value, &mut texts));
        }
    }
    Some(texts)
}

fn collect(value: Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            texts.insert(text);
        }
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, texts)),
        Value::Object(entries) => entries.into_iter().for_each(|(key, value)| {
            texts.insert(key);
            collect(value, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn counts_of_recorded_sessions_are_those_of_tiktoken() {
    let Some(texts) = recorded() else { return };
    let bytes: usize = texts.iter().map(String::len).sum();
    assert!(texts.len() > 1_000 && bytes > 1_000_000, "{} strings, {bytes} bytes", texts.len());
    for Peer { reference, counters } in peers() {
        for text in &texts {
            let expected = reference.encode_ordinary(text).len();
            for counter in &counters {
                assert_eq!(counter.count(text), expected, "{} of {text:?}", counter.id());
            }
        }
    }
}

#[test]
fn recorded_texts_cut_and_joined_keep_their_count() {
    let Some(texts) = recorded() else { return };
    for (index, text) in texts.iter().filter(|text| text.len() > 40).enumerate().step_by(7) {
        let fraction = (index % 89) as f64 / 89.0;
        check_joined(&cut(text, &[fraction, fraction / 2.0, f64::midpoint(fraction, 1.0)]));
    }
}
