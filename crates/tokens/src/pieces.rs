//! Splits text into the pieces that byte-pair merges never cross.
//!
//! The patterns are those of tiktoken, written out by hand over the classes of characters: a piece
//! costs a look at each of its characters. Tests hold the pieces to those of the expressions.
//! Every search is one forward scan, and none reads more than a constant factor beyond what it
//! and the next one take, so splitting is linear in the text. (Engines for expressions that
//! backtrack keep a stack entry for each character of `\s+(?!\S)`: a million spaces overflow it.)

use crate::classes::{self, BLANK, CASELESS, COMBINING, LINE_BREAK, LOWER, MARK, NUMBER, UPPER};

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, with which a word begins in o200k.
const WORD_HEAD: u8 = UPPER | CASELESS | COMBINING;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`, with which a word ends in o200k.
const WORD_TAIL: u8 = LOWER | CASELESS | COMBINING;
/// `\p{L}`.
const LETTER: u8 = UPPER | LOWER | CASELESS;
/// `\s`.
const SPACE: u8 = BLANK | LINE_BREAK;
/// `[^\s\p{L}\p{N}]`.
const SIGN: u8 = MARK | COMBINING;

/// The word splitter of one tokenizer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pretokenizer {
    /// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
    /// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
    /// `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`: the first that
    /// matches.
    O200k,
    /// `'(?i:[sdmt]|ll|ve|re)`, `[^\r\n\p{L}\p{N}]?\p{L}+`, `\p{N}{1,3}`,
    /// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, `\s+$`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`: the first that
    /// matches.
    Cl100k,
}

impl Pretokenizer {
    /// The pieces of `text` in order; joined, they are `text`. None is empty.
    pub(super) fn split(self, text: &str) -> Pieces<'_> {
        Pieces { pretokenizer: self, text: text.as_bytes(), at: 0 }
    }
}

/// Iterates over the pieces of a text.
pub(super) struct Pieces<'a> {
    pretokenizer: Pretokenizer,
    text: &'a [u8],
    at: usize,
}

impl<'a> Pieces<'a> {
    /// The text from the end of the last piece on.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if start >= self.text.len() {
            return None;
        }
        let end = match self.pretokenizer {
            Pretokenizer::O200k => o200k(self.text, start),
            Pretokenizer::Cl100k => cl100k(self.text, start),
        };
        self.at = end;
        self.text.get(start..end)
    }
}

/// Where the piece ends that begins at `start`, which is inside of `text`.
#[inline]
fn o200k(text: &[u8], start: usize) -> usize {
    let (class, length) = classes::at(text, start);
    let second = start + length;
    if class & LETTER != 0 {
        let end = if class == LOWER { run(text, second, WORD_TAIL) } else { word(text, start) };
        return contraction(text, end);
    }
    if class == NUMBER {
        return number(text, second);
    }
    if class != LINE_BREAK {
        // One that is no letter may stand before a word.
        let (next, length) = classes::at(text, second);
        let end = if next == LOWER {
            run(text, second + length, WORD_TAIL)
        } else if next & WORD_HEAD != 0 {
            prefixed(text, class, second)
        } else {
            0
        };
        if end != 0 {
            return contraction(text, end);
        }
        // A combining mark is a word by itself.
        if class == COMBINING {
            return contraction(text, second);
        }
        if class == MARK || is_blank_before(text, start, next & SIGN) {
            let end = run(text, second, SIGN);
            return signs_tail(text, end, true);
        }
    }
    space(text, start, true)
}

/// Where the piece ends that begins at `start`, which is inside of `text`.
#[inline]
fn cl100k(text: &[u8], start: usize) -> usize {
    let (class, length) = classes::at(text, start);
    let second = start + length;
    if class & LETTER != 0 {
        return run(text, second, LETTER);
    }
    if class == NUMBER {
        return number(text, second);
    }
    if class == MARK {
        let end = contraction(text, start);
        if end != start {
            return end;
        }
    }
    if class != LINE_BREAK {
        let (next, length) = classes::at(text, second);
        if next & LETTER != 0 {
            return run(text, second + length, LETTER);
        }
        if class & SIGN != 0 || is_blank_before(text, start, next & SIGN) {
            let end = run(text, second, SIGN);
            return signs_tail(text, end, false);
        }
    }
    space(text, start, false)
}

/// Whether ` ?` takes the space at `start`, where a sign stands after it.
#[inline]
fn is_blank_before(text: &[u8], start: usize, sign: u8) -> bool {
    sign != 0 && text.get(start) == Some(&b' ')
}

/// The end of the characters of the set `set` from `at` on.
#[inline]
fn run(text: &[u8], mut at: usize, set: u8) -> usize {
    loop {
        while text.get(at).is_some_and(|byte| classes::of_byte(*byte) & set != 0) {
            at += 1;
        }
        if text.get(at).is_none_or(u8::is_ascii) {
            return at;
        }
        let (class, length) = classes::at(text, at);
        if class & set == 0 {
            return at;
        }
        at += length;
    }
}

/// The end of a run of [`WORD_HEAD`], and the last end of one in it that is of [`WORD_TAIL`] too,
/// or zero.
#[inline]
fn head(text: &[u8], mut at: usize) -> (usize, usize) {
    let mut tail = 0;
    loop {
        let (class, length) = classes::at(text, at);
        if class & WORD_HEAD == 0 {
            return (at, tail);
        }
        at += length;
        if class != UPPER {
            tail = at;
        }
    }
}

/// The end of a word that begins with one of [`WORD_HEAD`] or [`WORD_TAIL`].
fn word(text: &[u8], start: usize) -> usize {
    let (end, tail) = head(text, start);
    match classes::at(text, end) {
        (LOWER, length) => run(text, end + length, WORD_TAIL),
        _ if tail != 0 => tail,
        _ => end,
    }
}

/// The end of a word from `second` on that has a character of `class` before it, no letter; or
/// zero. The patterns are tried with that character, then the first without it, then the second
/// one with it: a combining mark before letters of upper case is a word by itself.
fn prefixed(text: &[u8], class: u8, second: usize) -> usize {
    let (end, tail) = head(text, second);
    match classes::at(text, end) {
        (LOWER, length) => run(text, end + length, WORD_TAIL),
        _ if tail != 0 => tail,
        _ if class == COMBINING => second,
        _ => end,
    }
}

/// The end of `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`.
#[inline]
fn contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return at;
    }
    let byte = |after: usize| text.get(at + after).copied().unwrap_or_default();
    match (byte(1) | 0x20, byte(2) | 0x20) {
        (b's' | b't' | b'm' | b'd', _) => at + 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => at + 3,
        // U+017F is an s, whatever its case.
        _ if (byte(1), byte(2)) == (0xc5, 0xbf) => at + 3,
        _ => at,
    }
}

/// The end of up to two more numbers.
#[inline]
fn number(text: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        let (class, length) = classes::at(text, at);
        if class != NUMBER {
            break;
        }
        at += length;
    }
    at
}

/// The end of `[\r\n]*`, or of `[\r\n/]*`.
#[inline]
fn signs_tail(text: &[u8], mut at: usize, slashes: bool) -> usize {
    while let Some(byte) = text.get(at)
        && (matches!(byte, b'\r' | b'\n') || slashes && *byte == b'/')
    {
        at += 1;
    }
    at
}

/// The end of a piece of white space. With `breaks_first`, one that reaches the end of the text
/// still ends after its last line break.
#[inline]
fn space(text: &[u8], start: usize, breaks_first: bool) -> usize {
    let mut end = start;
    let mut last = start;
    let mut after_break = 0;
    loop {
        let (class, length) = classes::at(text, end);
        if class & SPACE == 0 {
            break;
        }
        last = end;
        end += length;
        if class == LINE_BREAK {
            after_break = end;
        }
    }
    let at_end = end == text.len();
    if after_break != 0 && (breaks_first || !at_end) {
        after_break
    } else if at_end || last == start {
        end
    } else {
        // The last one goes with what follows.
        last
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Pretokenizer::{Cl100k, O200k},
        *,
    };

    fn check(pretokenizer: Pretokenizer, text: &str, expected: &[&str]) {
        let pieces: Vec<_> =
            pretokenizer.split(text).map(|piece| str::from_utf8(piece).unwrap()).collect();
        assert_eq!(pieces, expected, "the pieces of {text:?}");
    }

    #[test]
    fn the_last_space_of_a_run_goes_with_the_word_after_it() {
        for pretokenizer in [O200k, Cl100k] {
            check(pretokenizer, "a   b", &["a", "  ", " b"]);
            check(pretokenizer, "a 1", &["a", " ", "1"]);
            check(pretokenizer, "a\u{a0}\u{a0}1", &["a", "\u{a0}", "\u{a0}", "1"]);
        }
    }

    #[test]
    fn white_space_at_the_end_is_one_piece_in_cl100k_and_ends_at_line_breaks_in_o200k() {
        check(O200k, "a \n  ", &["a", " \n", "  "]);
        check(Cl100k, "a \n  ", &["a", " \n  "]);
        check(Cl100k, "a.\n  ", &["a", ".\n", "  "]);
    }

    #[test]
    fn a_contraction_goes_with_its_word_in_o200k_only() {
        check(O200k, "it'LL do", &["it'LL", " do"]);
        check(Cl100k, "it'LL do", &["it", "'LL", " do"]);
    }

    #[test]
    fn a_long_s_is_a_contraction() {
        check(O200k, "it'ſx", &["it'ſ", "x"]);
        check(Cl100k, "it'ſx", &["it", "'ſ", "x"]);
    }

    #[test]
    fn the_empty_text_has_no_pieces() {
        check(O200k, "", &[]);
    }
}
