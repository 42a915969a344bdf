//! Positions in UTF-8 text.

pub(crate) mod quote;
/// Words and names by which texts are recognised: made of the tables in `text/words`.
pub(crate) mod words {
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

use std::{borrow::Cow, ops::Range};

/// A range of bytes in a text; its start is never past its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextRange {
    start: usize,
    end: usize,
}

impl TextRange {
    /// The range from `start` to `end`; `None` where it would run backwards.
    pub const fn new(start: usize, end: usize) -> Option<Self> {
        if start <= end { Some(Self { start, end }) } else { None }
    }

    /// The range of `len` bytes from `start`. Saturates at `usize::MAX`.
    pub const fn at(start: usize, len: usize) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// The first byte.
    pub const fn start(self) -> usize {
        self.start
    }

    /// The byte after the last.
    pub const fn end(self) -> usize {
        self.end
    }

    /// The number of bytes.
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether the range holds no byte.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether the byte at `offset` lies in the range.
    pub const fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// The text of the range; empty where the range is not of this text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

impl From<TextRange> for Range<usize> {
    fn from(range: TextRange) -> Self {
        range.start..range.end
    }
}

/// The tags that the built-in formats write themselves.
pub(crate) const RESERVED_TAGS: [&str; 6] =
    ["my_turn", "parameter", "pending_activations", "thought", "tool_call", "tool_result"];

/// The tag that a display name makes: ASCII lower case, with everything but letters, digits, `_`
/// and `-` replaced by `_`. A name that makes one of the built-in tags gets `facet_` before it, so
/// that no facet can look like a turn of the agent, a call or a result. O(length of the name).
///
/// ```
/// use afterimage::text::tag_name;
///
/// assert_eq!(tag_name("Ship Status"), "ship_status");
/// assert_eq!(tag_name("My Turn"), "facet_my_turn");
/// ```
pub fn tag_name(display_name: &str) -> Cow<'_, str> {
    let tag = plain_tag(display_name);
    if RESERVED_TAGS.contains(&&*tag) { format!("facet_{tag}").into() } else { tag }
}

fn plain_tag(display_name: &str) -> Cow<'_, str> {
    let keeps = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if display_name.chars().all(keeps) {
        return display_name.into();
    }
    let replace = |c: char| match c.to_ascii_lowercase() {
        c if keeps(c) => c,
        _ => '_',
    };
    display_name.chars().map(replace).collect::<String>().into()
}

/// Whether a character is of a script that is written without blanks between words: Thai, Lao,
/// Burmese, Khmer, Chinese, Japanese, Korean.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..)
}

/// Whether a character is part of the word beside it. Scripts that are written without blanks part
/// words by themselves.
pub(crate) fn is_of_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() && !is_unspaced(c)
}

/// Whether a text has this word, and not as a part of another.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
    })
}

/// The first bytes of a text, at most so many, up to the border of a character.
pub(crate) fn first_bytes(text: &str, most: usize) -> &str {
    (0..=most.min(text.len())).rev().find_map(|at| text.get(..at)).unwrap_or_default()
}

/// The last bytes of a text, at most so many, from the border of a character.
pub(crate) fn last_bytes(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default()
}

/// The first characters of a text, in lower case.
pub(crate) fn lower_head(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default().to_lowercase()
}

/// A text in one line: white space made one blank each.
pub(crate) fn flat(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
    }
    flat
}

/// How many bytes two texts begin alike with, up to the border of a character.
pub(crate) fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b);
    same.last().map_or(0, |((at, c), _)| at + c.len_utf8())
}
/// What a parameter of a call begins with where calls are written as markup: `NAME">` follows.
pub(crate) const PARAMETER: &str = "<parameter name=\"";

/// What it ends with.
pub(crate) const PARAMETER_END: &str = "</parameter>";

/// The parameters of a call that is written as markup, in order, each with its name as it is
/// written: none where the text is none. What has no end ends with the text.
pub(crate) fn parameters(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, value) = rest.trim_start().strip_prefix(PARAMETER)?.split_once("\">")?;
        let (value, after) = value.split_once(PARAMETER_END).unwrap_or((value, ""));
        rest = after;
        Some((name, value))
    })
}

/// The words of a table that begin with a byte: tables are in the order of first bytes.
pub(crate) fn of_first_byte<'w, 't>(words: &'w [&'t str], first: Option<&u8>) -> &'w [&'t str] {
    debug_assert!(words.is_sorted_by_key(|word| word.as_bytes().first()), "{words:?}");
    let from = words.partition_point(|word| word.as_bytes().first() < first);
    let words = words.get(from..).unwrap_or_default();
    let end = words.partition_point(|word| word.as_bytes().first() == first);
    words.get(..end).unwrap_or_default()
}

/// Whether a table of words has this one.
pub(crate) fn is_among(words: &[&str], word: &str) -> bool {
    of_first_byte(words, word.as_bytes().first()).contains(&word)
}

/// Whether one of the words of a table stands in a text of small letters, whole.
pub(crate) fn holds(lower: &str, words: &[&str]) -> bool {
    // Words begin at few places of a text: to look there for all of them is less than to search the
    // text for each.
    let mut is_begin = true;
    lower.char_indices().any(|(at, c)| {
        let here = std::mem::replace(&mut is_begin, !c.is_alphanumeric());
        here && begins_with_any(lower.get(at..).unwrap_or_default(), words)
    })
}

/// As [`holds`], with what may stand around words of other alphabets: endings, or no blanks.
pub(crate) fn mentions(lower: &str, words: &[&str]) -> bool {
    holds(lower, words) || has_foreign(lower, words)
}

/// Whether a sentence ends with this character: marks of other alphabets end one wherever they stand,
/// `.`, `!` and `?` before white space.
pub(crate) fn ends_sentence(c: char, next: Option<char>) -> bool {
    matches!(c, '。' | '！' | '？' | '।' | '؟')
        || matches!(c, '.' | '!' | '?') && next.is_some_and(char::is_whitespace)
}

/// Whether one of the words of other alphabets stands in a text, as a part of another too.
pub(crate) fn has_foreign(text: &str, words: &[&str]) -> bool {
    !text.is_ascii() && words.iter().any(|word| !word.is_ascii() && text.contains(word))
}

/// Whether a text begins with one of the words, whole.
fn begins_with_any(text: &str, words: &[&str]) -> bool {
    let may_begin = of_first_byte(words, text.as_bytes().first()).iter();
    may_begin
        .filter_map(|word| text.strip_prefix(word))
        .any(|rest| rest.chars().next().is_none_or(|next| !next.is_alphanumeric()))
}

/// A text in one line, cut between words where it is longer than `most` bytes.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = flat(first_bytes(text, most * 4));
    if line.len() <= most && text.len() <= most * 4 {
        return line;
    }
    let end = first_bytes(&line, most);
    let cut = end.rfind(' ').filter(|at| *at > most / 2).unwrap_or(end.len());
    format!("{}…", end.get(..cut).unwrap_or(end).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_as_a_search_for_each_finds_them() {
        fn searched(lower: &str, words: &[&str]) -> bool {
            let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            let is_whole = |(at, word): (usize, &str)| {
                is_border(lower[..at].chars().next_back())
                    && is_border(lower[at + word.len()..].chars().next())
            };
            words.iter().any(|word| lower.match_indices(word).any(is_whole))
        }
        let words = ["do not", "l'eau", "no", "not", "niemals", "n/a", "不要"];
        let pieces =
            ["no", "not", "do ", "knot", "nota", " ", "-", "niemals", "不要", "要", "l'eau", "n/a"];
        let mut found = [0; 2];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    let text = format!("{a}{b}{c}");
                    assert_eq!(holds(&text, &words), searched(&text, &words), "{text:?}");
                    found[usize::from(holds(&text, &words))] += 1;
                }
            }
        }
        assert!(found.iter().all(|count| *count > 100), "{found:?}");
    }

    #[cfg(feature = "rules")]
    #[test]
    fn tables_of_words_are_toml_and_a_list_holds_the_words_of_all_languages() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/text/words");
        let mut rules = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for (section, lists) in text.parse::<toml::Table>().unwrap() {
                for (name, words) in lists.as_table().unwrap() {
                    let words = words.as_array().unwrap().iter();
                    let words: Vec<_> = words.map(|word| word.as_str().unwrap()).collect();
                    assert!(!words.is_empty(), "{section}.{name}");
                    if (section.as_str(), name.as_str()) == ("rule", "rules") {
                        rules.extend(words.into_iter().map(str::to_owned));
                    }
                }
            }
        }
        let mut made = words::rule::RULES.to_vec();
        rules.sort_unstable();
        made.sort_unstable();
        assert_eq!(rules, made);
        assert!(["never", "niemals", "nunca"].iter().all(|word| made.contains(word)));
    }
}
