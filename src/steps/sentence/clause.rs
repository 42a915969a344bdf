//! Clauses of a sentence, and who they speak of.

use super::words;
use crate::text::{
    holds, mentions, of_first_byte,
    words::{
        clause::{DECREES, FACTS, IDIOMS, ITS, JOINTS, LASTS, OBLIGING, SUBJECTS},
        constraint::BEFORE,
    },
};

/// What parts clauses.
const MARKS: [char; 7] = [',', ';', ':', '(', '–', '—', '、'];

/// The clauses of a sentence in small letters. Idioms that demand nothing are left out: `never mind`.
pub(super) fn clauses(lower: &str) -> Vec<String> {
    let mut parted = without_idioms(lower);
    for word in JOINTS.iter().filter(|word| lower.contains(**word)) {
        parted = parted.replace(word, ", ");
    }
    parted.split(MARKS).map(str::to_owned).collect()
}

/// A text in small letters with a mark for each idiom.
pub(super) fn without_idioms(lower: &str) -> String {
    let idioms = IDIOMS.iter().filter(|word| lower.contains(**word));
    idioms.fold(lower.to_owned(), |text, word| text.replace(word, ", "))
}

/// What stands behind a word or words at the beginning of a text.
pub(super) fn behind<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(start)?;
    // Other alphabets have endings, or no spaces.
    (!start.is_ascii() || !rest.starts_with(char::is_alphanumeric)).then_some(rest)
}

/// The words of a table that a text begins with, in order, each with what stands behind it.
pub(super) fn behind_any<'t>(
    text: &'t str,
    words: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'t str)> {
    let words = of_first_byte(words, text.as_bytes().first()).iter();
    words.filter_map(move |word| Some((*word, behind(text, word)?)))
}

/// Whether a text begins with one of the words.
pub(super) fn begins(text: &str, words: &'static [&'static str]) -> bool {
    behind_any(text, words).next().is_some()
}

/// A clause in small letters without what may stand before an order: `please`, `and we`.
pub(super) fn without_openers(clause: &str) -> &str {
    let mut rest = clause.trim_start_matches(|c: char| !c.is_alphanumeric());
    while let Some((_, after)) = behind_any(rest, &BEFORE).next() {
        rest = after.trim_start_matches([' ', ',']);
    }
    rest
}

/// Whether a clause states something and demands nothing: it begins with a subject that takes no
/// orders, as in `the build always fails`. What is so from now on is an order: `from now on, the
/// docs are in French`.
pub(super) fn states(clause: &str) -> bool {
    let rest = without_openers(clause);
    let later = behind_any(rest, &LASTS).next().map(|(_, rest)| rest);
    let rest = later.unwrap_or(rest).trim_start_matches([' ', ',']);
    let is_its = begins(rest, &ITS);
    let is_decree = later.is_some() && !is_its && holds(rest, &DECREES);
    let is_fact = words(rest).first().is_some_and(|word| FACTS.contains(word));
    (is_fact || begins(rest, &SUBJECTS)) && !obliges(rest) && !is_decree
}

/// Whether a text says what has to be, or may be.
pub(super) fn obliges(text: &str) -> bool {
    mentions(text, &OBLIGING)
}

/// Whether a verb has the ending of the third person, or may have: `fails`, and not `pass`.
pub(super) fn is_third_person(word: &str) -> bool {
    let ends = |end: &&str| word.ends_with(end);
    word.len() > 3 && word.ends_with('s') && !["ss", "us", "is", "as"].iter().any(ends)
}

/// What stands before and behind the first of a word that stands whole in a text.
pub(super) fn around<'t>(text: &'t str, word: &str) -> Option<(Vec<&'t str>, Vec<&'t str>)> {
    text.match_indices(word).find_map(|(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + word.len()..)?);
        let is_whole =
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        is_whole.then(|| (words(before), words(after)))
    })
}
