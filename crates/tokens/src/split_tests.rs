//! The splitter beside the expressions that it is written after, over whole automata.

use proptest::prelude::*;
use regex_automata::{Anchored, Input, meta::Regex};

use crate::pieces::Pretokenizer;

/// The index of the pattern `\s+\s`, which stands for `\s+(?!\S)`: at least two white-space
/// characters of which the last is left for the next piece. An earlier pattern has taken what
/// reaches the end of the text.
const BEFORE_TEXT: usize = 1;

fn expressions(pretokenizer: Pretokenizer) -> Regex {
    let first = match pretokenizer {
        Pretokenizer::O200k => concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"|\s*[\r\n]+",
            r"|\s+$",
        ),
        Pretokenizer::Cl100k => concat!(
            r"'(?i:[sdmt]|ll|ve|re)",
            r"|[^\r\n\p{L}\p{N}]?\p{L}+",
            r"|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
            // Before the line breaks, unlike in o200k: white space at the end of the text is
            // one piece even where it has line breaks in it.
            r"|\s+$",
            r"|\s*[\r\n]+",
        ),
    };
    Regex::new_many(&[first, r"\s+\s", r"\s"]).unwrap()
}

fn expected<'a>(regex: &Regex, text: &'a str) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let found = regex.find(Input::new(text).range(at..).anchored(Anchored::Yes)).unwrap();
        let left_over = if found.pattern().as_usize() == BEFORE_TEXT {
            text[found.range()].chars().next_back().map_or(0, char::len_utf8)
        } else {
            0
        };
        let end = found.end() - left_over;
        pieces.push(&text.as_bytes()[at..end]);
        at = end;
    }
    pieces
}

/// A character of each class and of each role that a pattern gives to one.
const CHARACTERS: &[char] = &[
    'a', 's', 'T', 'l', 'L', 'v', 'e', 'R', '\'', '/', '<', '.', '1', '½', ' ', '\t', '\u{a0}',
    '\u{3000}', '\n', '\r', '漢', 'ʰ', 'ǅ', 'É', '\u{301}', 'ſ', '\u{200d}', '🎈',
];

fn texts() -> impl Strategy<Value = String> {
    let char = prop_oneof![8 => proptest::sample::select(CHARACTERS), 1 => any::<char>()];
    proptest::collection::vec(char, 0..24).prop_map(String::from_iter)
}

fn check(pretokenizer: Pretokenizer, regex: &Regex, text: &str) {
    let found: Vec<_> = pretokenizer.split(text).collect();
    assert_eq!(found, expected(regex, text), "{pretokenizer:?} of {text:?}");
}

#[test]
fn pieces_are_those_of_the_expressions_for_all_short_texts() {
    for pretokenizer in [Pretokenizer::O200k, Pretokenizer::Cl100k] {
        let regex = expressions(pretokenizer);
        for a in CHARACTERS {
            for b in CHARACTERS {
                for c in CHARACTERS {
                    check(pretokenizer, &regex, &String::from_iter([*a, *b, *c]));
                    check(
                        pretokenizer,
                        &regex,
                        &String::from_iter(['e', *a, *b, *c, '\'', 'r', 'e']),
                    );
                }
            }
        }
    }
}

#[test]
fn pieces_are_those_of_the_expressions() {
    use proptest::test_runner::TestRunner;
    for pretokenizer in [Pretokenizer::O200k, Pretokenizer::Cl100k] {
        let regex = expressions(pretokenizer);
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(afterimage_testkit::cases(20_000))
        };
        let run = TestRunner::new(config).run(&texts(), |text| {
            check(pretokenizer, &regex, &text);
            Ok(())
        });
        run.unwrap();
    }
}
