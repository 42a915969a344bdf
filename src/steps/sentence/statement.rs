//! What tells of something, and asks for nothing, though it has the word of a rule.

use super::{
    clause::{begins, obliges, states, without_openers},
    words,
};
use crate::text::{
    holds,
    words::{
        clause::{
            CONTRASTS, FACTS, GUESSES, HALF_GUESSES, ITS, LASTLY, OBLIGING, PAST, PERMITS, REPORTS,
            SUBJECTS, UNSURE, WIDE,
        },
        convention::{ONES, TOLD},
        rule::{
            COUNTS, DENIALS, ENDINGS, GUESSED, IRREGULAR_PAST, NOTS, NOWS, ONCES, ONLYS,
            PARTICIPLES, PERSONS, SENSES, TASKS,
        },
        standing::{WANTING, YOURS},
    },
};

/// Whether a clause with the word of a rule tells of something, and asks for nothing: `I don't
/// know my number`, `I was told that I must not pay`, `It never came`, `There are only two`.
pub(super) fn is_statement(clause: &str) -> bool {
    let words = words(clause);
    let plain = clause.trim_start();
    begins(plain, &REPORTS)
        || states(plain)
        || is_denied(&words)
        || is_past(&words)
        || is_guess(plain)
}

/// Whether a sentence says what is so or was so: `You pushed it without my consent`.
pub(super) fn is_account(lower: &str) -> bool {
    let words = words(lower);
    let is_past = |word: &&str| PAST.contains(word) || is_regular_past(word);
    let is_subject = |word: &&str| PERSONS.contains(word) || YOURS.contains(word);
    // `I need the generated files` says what is wanted.
    let asks = |word: &&&str| OBLIGING.contains(*word) || WANTING.contains(*word);
    let mut told = words.iter().take(4).take_while(|word| !asks(word));
    words.first().is_some_and(is_subject) && told.any(is_past) || states(lower)
}

/// Whether a word stands for a thing that was named, or for the agent.
fn is_thing(word: &str) -> bool {
    ITS.contains(&word) || YOURS.contains(&word)
}

/// `pushed`, and not `proceed`.
fn is_regular_past(word: &str) -> bool {
    word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed") && word != "embed"
}

/// `I don't know my number`, `I always get an error`
fn is_denied(words: &[&str]) -> bool {
    let senses = |pair: &[&str]| matches!(pair, [word, sense] if DENIALS.contains(word) && SENSES.contains(sense));
    // `I don't really know`
    let counts = |word: &&str| !word.ends_with("ly") || DENIALS.contains(word);
    let plain: Vec<&str> = words.iter().copied().filter(counts).collect();
    plain.iter().any(|word| PERSONS.contains(word)) && plain.windows(2).any(senses)
}

/// `It never came`, `I only got one`, `I must have lost it`, `It must be a mistake`.
fn is_past(words: &[&str]) -> bool {
    let is_obliged = |words: &[&str]| {
        words.windows(3).any(|of| matches!(of, [modal, "not" | "never" | "just", "have"] if OBLIGING.contains(modal)))
    };
    let past = |word: &str| IRREGULAR_PAST.contains(&word) || is_regular_past(word);
    let is_subject = |word: &str| PERSONS.contains(&word) || is_thing(word);
    words.windows(3).any(|of| {
        let &[before, word, after] = of else { return false };
        match word {
            "never" => past(after) && !matches!(before, "and" | "or" | "but" | "then"),
            "always" => past(after),
            "only" => past(after) && is_subject(before),
            // `must have missed`, `must not have run`
            "have" => {
                let is_perfect = past(after) || PARTICIPLES.contains(&after);
                is_perfect && (OBLIGING.contains(&before) || is_obliged(words))
            }
            _ => false,
        }
    }) || words.windows(4).any(|of| {
        let &[who, modal, be, what] = of else { return false };
        let is_guessed = ONES.contains(&what) || GUESSED.contains(&what);
        (modal, be) == ("must", "be") && is_subject(who) && is_guessed
    })
}

/// `It must be the cache`, in languages that say so without a subject or with a mere one. What holds
/// for all of something is no guess.
pub(super) fn is_guess(clause: &str) -> bool {
    let rest = without_openers(clause);
    let is_last = || words(rest).last().is_some_and(|last| LASTLY.contains(last));
    let is_guess = begins(rest, &GUESSES) || begins(rest, &HALF_GUESSES) && is_last();
    let end = rest.trim_end_matches(|c: char| !c.is_alphanumeric());
    let is_unsure = || UNSURE.iter().any(|word| end.ends_with(word));
    !holds(rest, &WIDE) && (is_guess || obliges(rest) && is_unsure())
}

/// `The user must log in first, but it shows right away`
pub(super) fn is_contrasted(lower: &str) -> bool {
    let parts = CONTRASTS.iter().find_map(|word| lower.rsplit_once(word));
    parts.is_some_and(|(demand, fact)| {
        let is_thing = words(fact).first().is_some_and(|word| is_thing(word));
        let allows = holds(fact, &PERMITS);
        let has_subject = begins(without_openers(demand), &SUBJECTS);
        is_thing && !allows && has_subject && states(fact)
    })
}

/// Whether words begin with that of a rule and say how much of something there is, or how it is:
/// `Only two tests are left`, `Siempre falla la segunda`.
pub(super) fn is_fact(word: &str, after: &[&str]) -> bool {
    let next = after.first().copied().unwrap_or_default();
    let is_one = ONES.contains(&next) || COUNTS.contains(&next) || SUBJECTS.contains(&next);
    let has_fact = || after.iter().any(|word| FACTS.contains(word));
    let is_count = ONLYS.contains(&word)
        && is_one
        && (word == "only" && !obliges(&after.join(" ")) || has_fact());
    is_count || FACTS.contains(&next) || NOTS.contains(&word) && TOLD.contains(&next)
}

/// Whether something is asked for once, and for no more than one thing: `rename only the last field`.
pub(super) fn is_task(word: &str, before: &[&str], after: &[&str]) -> bool {
    let is_verb = |word: Option<&&str>| word.is_some_and(|word| TASKS.contains(word));
    let is_one = |word: &&str| SUBJECTS.contains(word);
    let is_behind = is_verb(after.first());
    let what = after.get(usize::from(is_behind));
    // Other alphabets have no articles.
    let has_articles = word.chars().any(|c| c.is_ascii());
    let is_now = || holds(&after.join(" "), &NOWS);
    ONLYS.contains(&word)
        && (is_behind || is_verb(before.first()) || is_verb(after.last()))
        && (what.is_some_and(is_one) || what.is_some() && !has_articles || is_now())
        && !after.iter().any(|word| ONCES.contains(word))
}

/// Whether a sentence without spaces ends as those that tell of something: `起動すると必ず落ちます`.
pub(super) fn is_told_unspaced(lower: &str) -> bool {
    let end = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    ENDINGS.iter().any(|word| end.ends_with(word)) && !obliges(lower)
}
