//! What a sentence is about, and what it asks for.

use super::{lower, words};
use crate::text::words::{
    rule::RULES,
    topic::{BOUNDS, EMPTY},
};

/// The words that tell what a sentence is about.
pub(super) fn topic(sentence: &str) -> Vec<String> {
    let lower = lower(sentence);
    let is_telling = |word: &&str| {
        let is_long = word.chars().count() > 2 || word.contains(|c: char| c.is_ascii_digit());
        is_long && !EMPTY.contains(word) && !RULES.contains(word)
    };
    let mut telling: Vec<String> =
        words(&lower).into_iter().filter(is_telling).map(str::to_owned).collect();
    // A name may have nothing but short parts: `b.py`.
    telling.extend(names(sentence).into_iter().filter(|name| !words(name).iter().any(&is_telling)));
    telling
}

/// The names in a sentence, in small letters: what has a sign within, as paths have.
pub(super) fn names(sentence: &str) -> Vec<String> {
    let lower = lower(sentence);
    let plain =
        lower.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_name =
        |word: &&str| word.contains(['.', '/', '_', '\\']) && word.contains(char::is_alphabetic);
    plain.filter(is_name).map(str::to_owned).collect()
}

/// Whether two words are one, endings aside.
pub(super) fn is_same_word(a: &str, b: &str) -> bool {
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let shorter = a.len().min(b.len());
    a == b
        || shorter >= 4
            && common >= 4.max(shorter - 1)
            && a.len().abs_diff(b.len()) <= 3
            && !a.contains(|c: char| c.is_ascii_digit())
}

/// The words and numbers that say what a rule asks for.
pub(super) fn orders(rule: &str) -> Vec<String> {
    let lower = lower(rule);
    let of_orders = words(&lower).into_iter().filter(|word| {
        RULES.contains(word)
            || matches!(*word, "not" | "no")
            || word.contains(|c: char| c.is_ascii_digit())
    });
    let mut found: Vec<String> = of_orders.map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The numbers, days, versions and ids that a rule speaks of: those that bound nothing. A rule about
/// port 9090 says nothing of port 8080.
pub(super) fn subjects(rule: &str) -> Vec<String> {
    let lower = lower(rule);
    let mut before = "";
    let mut found = Vec::new();
    for word in lower.split_whitespace() {
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        if plain.contains(|c: char| c.is_ascii_digit()) && !BOUNDS.contains(&before) {
            found.push(plain.to_owned());
        }
        before = plain;
    }
    found.sort_unstable();
    found
}
