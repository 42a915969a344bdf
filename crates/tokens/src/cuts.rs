//! Positions at which a text can be counted in two halves.
//!
//! A *safe cut* lies between two neighbouring characters of which these two alone decide, for both
//! tokenizers and whatever stands around them, that
//!
//! 1. no match of any pattern contains the two side by side, so that a piece ends at the cut;
//! 2. no match before the cut looks past it: the patterns look one character ahead only after
//!    white space, and where white space stands before a safe cut, it ends in a line break, which
//!    `\s*[\r\n]+` and `\s+$` take alike;
//! 3. nothing after the cut looks back: no pattern does.
//!
//! So the pieces of a text are the pieces of its part before a safe cut and then those of its part
//! after it, and their counts add up. Safe cuts are fewer than pieces: between a space and the
//! word after it there is none, since they are one piece.

/// What [`is_safe`] needs to know of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In `\p{L}`, of the ranges that are listed here.
    Letter,
    /// An ASCII digit.
    Digit,
    /// `\r` or `\n`.
    LineBreak,
    /// In `\s` otherwise.
    Blank,
    /// `'`, which continues a word in o200k.
    Quote,
    /// `/`, which continues a line break after punctuation in o200k.
    Slash,
    /// None of `\s`, `\p{L}`, `\p{N}` and `\p{M}`, of the ranges that are listed here.
    Mark,
    /// Anything that is not white space; it may be of the kinds above.
    Other,
}

fn kind(char: char) -> Kind {
    match char {
        '0'..='9' => Kind::Digit,
        '\r' | '\n' => Kind::LineBreak,
        '\'' => Kind::Quote,
        '/' => Kind::Slash,
        // ASCII, hiragana, katakana, the unified ideographs and the Hangul syllables.
        'a'..='z'
        | 'A'..='Z'
        | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => Kind::Letter,
        // What is left of ASCII; ideographic comma, full stop, brackets; their full-width kin.
        '!'..='~'
        | '\u{3001}'..='\u{3003}'
        | '\u{3008}'..='\u{3011}'
        | '\u{FF01}'..='\u{FF0F}'
        | '\u{FF1A}'..='\u{FF20}' => Kind::Mark,
        _ if char.is_whitespace() => Kind::Blank,
        _ => Kind::Other,
    }
}

/// Whether a text that has `before` and `after` side by side can be cut between them.
pub(super) fn is_safe(before: char, after: char) -> bool {
    use Kind::{Blank, Digit, Letter, LineBreak, Mark, Other, Quote, Slash};
    match (kind(before), kind(after)) {
        // Words and numbers contain no white space and no marks. In o200k a quote may follow a
        // word inside a piece, but no number.
        (Letter | Digit, LineBreak | Blank | Slash | Mark)
        | (Letter, Digit)
        | (Digit, Letter | Quote)
        // Marks take line breaks with them, and may start a word; never a blank or a number.
        | (Mark | Quote | Slash, Blank | Digit)
        // White space that ends in a line break ends there; only a slash may go with it.
        | (LineBreak, Letter | Digit | Quote | Mark | Other) => true,
        (Letter, Letter | Quote)
        | (Digit, Digit)
        | (Mark | Quote | Slash, Letter | Quote | Slash | Mark | LineBreak)
        | (LineBreak, LineBreak | Blank | Slash)
        | (Blank | Other, _)
        | (_, Other) => false,
    }
}

/// The first safe cut inside `text`, in bytes; neither 0 nor its length. O(the answer).
pub(super) fn first(text: &str) -> Option<usize> {
    let after = text.char_indices().skip(1);
    text.chars().zip(after).find(|(a, (_, b))| is_safe(*a, *b)).map(|(_, (at, _))| at)
}

/// The last safe cut inside `text`, in bytes; neither 0 nor its length. O(length − the answer).
pub(super) fn last(text: &str) -> Option<usize> {
    let before = text.chars().rev().skip(1);
    text.char_indices().rev().zip(before).find(|((_, b), a)| is_safe(*a, *b)).map(|((at, _), _)| at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    use super::*;
    use crate::pieces::Pretokenizer;

    #[test]
    fn every_character_is_of_the_class_that_its_kind_claims() {
        let class = |pattern| Regex::new(pattern).unwrap();
        let letter = class(r"^\p{L}$");
        let lower_and_upper = class(r"^[\p{Lu}\p{Ll}\p{Lo}]$");
        let number = class(r"^\p{N}$");
        let space = class(r"^\s$");
        let mark = class(r"^[^\s\p{L}\p{N}\p{M}]$");
        for char in '\0'..=char::MAX {
            let text = char.to_string();
            let claim = match kind(char) {
                Kind::Letter => letter.is_match(&text) && lower_and_upper.is_match(&text),
                Kind::Digit => number.is_match(&text),
                Kind::LineBreak => char == '\r' || char == '\n',
                Kind::Blank => space.is_match(&text) && char != '\r' && char != '\n',
                Kind::Quote => char == '\'',
                Kind::Slash => char == '/',
                Kind::Mark => mark.is_match(&text),
                Kind::Other => !space.is_match(&text),
            };
            assert!(claim, "U+{:04X}", u32::from(char));
        }
    }

    #[test]
    fn tags_on_their_own_lines_have_a_safe_cut_between_them() {
        assert_eq!(last("</my_turn>\n\n<tool_call"), Some(17));
        assert_eq!(first("it's</my_turn>"), Some(4));
        assert_eq!(first("   "), None);
        assert_eq!(last(""), None);
    }

    /// A character of each class that a pattern names, so that short texts meet every pair.
    fn awkward() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            proptest::sample::select(vec![
                "a",
                "s",
                "S",
                "t",
                "ll",
                "LL",
                "ve",
                "re",
                "d",
                "m",
                "A",
                "'",
                "'s",
                "/",
                "<",
                ">",
                ".",
                "_",
                "1",
                "23",
                "４",
                "½",
                " ",
                "  ",
                "\t",
                "\u{a0}",
                "\u{3000}",
                "\u{2028}",
                "\u{85}",
                "\n",
                "\r",
                "\r\n",
                "\n\n",
                "漢",
                "かな",
                "한",
                "，",
                "。",
                "ʰ",
                "ǅ",
                "é",
                "e\u{301}",
                "\u{301}",
                "ſ",
                "’",
                "\u{200b}",
                "\u{200d}",
                "🎈",
                "👩‍👩‍👧",
                "ⅷ",
                "K",
            ]),
            0..14,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(3_000)))]

        #[test]
        fn the_pieces_of_both_sides_of_a_safe_cut_are_the_pieces_of_the_whole(text in awkward()) {
            let chars: Vec<_> = text.char_indices().collect();
            for pair in chars.windows(2) {
                let (before, (at, after)) = (pair[0].1, pair[1]);
                if !is_safe(before, after) {
                    continue;
                }
                let (left, right) = text.split_at(at);
                for pretokenizer in [Pretokenizer::O200k, Pretokenizer::Cl100k] {
                    let whole: Vec<_> = pretokenizer.split(&text).collect();
                    let halves: Vec<_> =
                        pretokenizer.split(left).chain(pretokenizer.split(right)).collect();
                    prop_assert_eq!(whole, halves, "cut at {}", at);
                }
            }
        }

        #[test]
        fn the_first_and_the_last_cut_are_found_from_either_end(text in awkward()) {
            let chars: Vec<_> = text.char_indices().collect();
            let mut cuts =
                chars.windows(2).filter(|pair| is_safe(pair[0].1, pair[1].1)).map(|pair| pair[1].0);
            let (first_cut, last_cut) = (cuts.clone().next(), cuts.next_back());
            prop_assert_eq!(first(&text), first_cut);
            prop_assert_eq!(last(&text), last_cut);
        }
    }
}
