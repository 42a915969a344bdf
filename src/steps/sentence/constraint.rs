//! Constraints that no word like *never* heads: what is to stay as it is, and under which label
//! work is allowed.

use super::{lower, words};
use crate::text::{
    holds,
    words::constraint::{AIMS, BEFORE, HARMS, KEEPS, LABELS, NO_LIMITS},
};

/// Whether a sentence of the user, as it is and in small letters, limits how something is done, without
/// a word that says so at its head. Questions are told apart elsewhere.
pub(super) fn is_constraint(sentence: &str, lower: &str) -> bool {
    if is_labelled(sentence) {
        return true;
    }
    let words = words(lower);
    words.len() > 2 && (limits_way(lower, &words) || keeps(lower) || has_aim(lower))
}

/// `DO NOT MODIFY: tests`
fn is_labelled(sentence: &str) -> bool {
    let Some((label, rest)) = sentence.split_once(':') else { return false };
    let label = label.trim_matches(|c: char| !c.is_alphanumeric());
    let is_loud = label.len() > 2
        && !label.contains(char::is_lowercase)
        && label.contains(char::is_alphabetic);
    let lower = lower(label);
    let is_asking =
        words(&lower).iter().any(|word| LABELS.contains(&word.replace('\'', "").as_str()));
    is_loud && is_asking && !rest.trim().is_empty()
}

/// `without changing the berth`
fn limits_way(lower: &str, words: &[&str]) -> bool {
    let tells = |word: &&str| matches!(*word, "i" | "i've" | "it's" | "was" | "were");
    lower.contains("without ")
        && words.windows(2).any(|pair| {
            matches!(pair, ["without", what] if what.len() > 4
                && what.ends_with("ing")
                && !NO_LIMITS.contains(what))
        })
        && !words.iter().take(2).any(tells)
}

/// `Keep the old code around`, `it works, but keep the names`
fn keeps(lower: &str) -> bool {
    let clauses = lower.split([',', ';', '(', '-', '–', '—']);
    clauses.map(str::trim).any(|clause| {
        let all = words(clause);
        let rest: Vec<&str> =
            all.iter().skip_while(|word| BEFORE.contains(word)).copied().collect();
        // `Keep going` asks for nothing that stays.
        let goes_on = rest.get(1).is_some_and(|word| {
            word.len() > 4 && word.ends_with("ing") || matches!(*word, "in" | "me" | "up" | "it")
        });
        let begins = rest.join(" ");
        let asks = KEEPS
            .iter()
            .any(|keep| begins.strip_prefix(keep).is_some_and(|rest| rest.starts_with(' ')));
        asks && !goes_on && rest.len() > 2
    })
}

/// `extend it so that old ones won't break`
fn has_aim(lower: &str) -> bool {
    AIMS.iter().any(|aim| {
        let clause = lower.split_once(aim).map(|(_, clause)| clause);
        clause.is_some_and(|clause| holds(clause, &HARMS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_stay_is_a_constraint() {
        for text in [
            "Extend the table so that new ships fit, old ones won't sink.",
            "Move all of them to berth 7 without changing the pilots.",
            "Keep the old ropes around for now",
            "This looks fine, but please keep the names of the berths.",
            "Use the same quay for both.",
            "MODIFY: the tide tables in /harbour",
            "DO NOT MODIFY: logs, bills",
            "Leave the lock as it is.",
        ] {
            assert!(is_constraint(text, &lower(text)), "{text}");
        }
    }

    #[test]
    fn what_tells_or_goes_on_is_none() {
        for text in [
            "I tried it without calling the harbour.",
            "We looked for it without luck.",
            "Keep going with the next lock.",
            "NOTE: the tide is low",
            "Moor at berth 7.",
            "I did it so that you see the quay.",
            "Is the lock shut?",
        ] {
            assert!(!is_constraint(text, &lower(text)), "{text}");
        }
    }
}
