//! Later words of the user that take back an earlier rule.

use super::{
    clause::{clauses, states},
    is_question, lower,
    topic::{is_same_word, names, orders, subjects, topic},
    words,
};
use crate::text::{
    holds,
    words::{
        correction::{ALLOWING, CORRECTING, DENYING, INSTEAD, OF_REVOKING, REVOKING},
        rule::RULES,
    },
};

/// The words by which a sentence corrects what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::steps) enum Correction {
    /// `forget that`
    Revokes,
    /// `no, use X`
    Contradicts,
    /// `use X instead of Y`
    Replaces,
    /// `you may push now`
    Allows,
}

/// How a sentence corrects what was said before; `after_no` says that the sentence before it is a
/// mere `No.`
pub(in crate::steps) fn correction(sentence: &str, after_no: bool) -> Option<Correction> {
    if is_question(sentence) {
        return None;
    }
    let lower = lower(sentence);
    let begins = |starts: &[&str]| {
        let plain = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
        let plain = ["and ", "but ", "so ", "oh ", "ok ", "ok, ", "hmm, ", "no, ", "actually, "]
            .iter()
            .fold(plain, |rest, opening| rest.strip_prefix(opening).unwrap_or(rest));
        let is_at = |text: &str, start: &str| {
            text.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        starts.iter().any(|start| is_at(plain, start) || is_at(&lower, start))
    };
    if begins(&REVOKING) {
        Some(Correction::Revokes)
    } else if after_no || begins(&CORRECTING) {
        Some(Correction::Contradicts)
    } else if holds(&lower, &INSTEAD) {
        Some(Correction::Replaces)
    } else {
        holds(&lower, &ALLOWING).then_some(Correction::Allows)
    }
}

/// Whether a sentence says nothing but that something else was wrong: `No.`, `Wait.`
pub(in crate::steps) fn is_mere_no(sentence: &str) -> bool {
    let lower = lower(sentence);
    let words = words(&lower);
    let is_no =
        |word: &&str| matches!(*word, "no" | "nope" | "nein" | "wait" | "actually" | "stop");
    !words.is_empty() && words.len() < 4 && words.iter().any(is_no)
}

/// Whether a correction is to be known by itself, whatever was said before.
pub(in crate::steps) fn says_instead(sentence: &str) -> bool {
    let lower = lower(sentence);
    // What stands in a condition asks for nothing.
    let asked = match lower.strip_prefix("if ") {
        Some(condition) => condition.split_once(',').map_or("", |(_, asked)| asked),
        None => &lower,
    };
    let says = |clause: &String| holds(clause, &INSTEAD) && !states(clause);
    sentence.split_whitespace().nth(2).is_some() && clauses(asked).iter().any(says)
}

/// How long before the correction a rule was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::steps) enum Age {
    /// In the same message.
    Same,
    /// In the message of the user before it.
    Recent,
    Old,
}

/// Whether a sentence that corrects takes back an earlier rule.
pub(in crate::steps) fn takes_back(
    sentence: &str,
    correction: Correction,
    earlier: &str,
    age: Age,
) -> bool {
    let old = topic(earlier);
    let shared = |of: &[String], with: &[String]| {
        of.iter().filter(|word| with.iter().any(|other| is_same_word(word, other))).count()
    };
    let of_old = || shared(&old, &topic(sentence));
    let is_denying = forbids(earlier);
    match correction {
        Correction::Revokes => {
            let mut new = topic(sentence);
            new.retain(|word| !OF_REVOKING.contains(&word.as_str()));
            let shared = shared(&new, &old);
            if new.is_empty() {
                age != Age::Old
            } else {
                age != Age::Same && shared > 0 && shared * 2 >= new.len()
            }
        }
        // A message that says what to do instead explains itself.
        Correction::Replaces | Correction::Allows if age == Age::Same => false,
        Correction::Contradicts | Correction::Replaces => {
            if let Some(given_up) = given_up(sentence) {
                let given_up = topic(&given_up);
                return !is_denying
                    && !given_up.is_empty()
                    && shared(&given_up, &old) == given_up.len();
            }
            // `You can edit b.py after all`, whatever was not to be done to it.
            let is_allowing = || holds(&lower(sentence), &ALLOWING) && !is_limited(sentence);
            let speaks_of_all = || {
                let (old, new) = (names(earlier), names(sentence));
                !old.is_empty() && old.iter().all(|name| new.contains(name))
            };
            if correction == Correction::Replaces && is_denying && is_allowing() && speaks_of_all()
            {
                return true;
            }
            let shared = of_old();
            // Few shared words tell of the same where it was said just before.
            let is_said = correction == Correction::Contradicts && age != Age::Old;
            shared * 2 > old.len() || is_said && shared * 3 >= old.len() && shared > 0
        }
        Correction::Allows => {
            !is_limited(sentence) && old.len() > 1 && of_old() * 4 >= old.len() * 3
        }
    }
}

/// Whether a sentence holds a word that forbids.
pub(crate) fn forbids(sentence: &str) -> bool {
    holds(&lower(sentence), &DENYING)
}

/// Whether a sentence allows one thing and no other: `you can edit it, but not move it`.
fn is_limited(sentence: &str) -> bool {
    lower(sentence).split_once(" but ").is_some_and(|(_, limit)| forbids(limit))
}

/// What a sentence gives up: `use X instead of Y`, `use X, not Y`.
fn given_up(sentence: &str) -> Option<String> {
    let lower = lower(sentence);
    let marks = ["instead of ", "rather than ", ", not ", " statt ", "en vez de "];
    let (_, after) = marks.iter().find_map(|mark| lower.split_once(mark))?;
    let end = after.find([',', '.', ';', '!', '(']).unwrap_or(after.len());
    Some(after.get(..end)?.trim().to_owned())
}

/// Whether a later rule replaces an earlier one: both speak of the same, which is most of the
/// earlier one's words, and they ask for something else. What says the same again replaces nothing.
pub(in crate::steps) fn replaces(later: &str, earlier: &str) -> bool {
    if orders(later) == orders(earlier) || subjects(later) != subjects(earlier) {
        return false;
    }
    let told = |text: &str| -> Vec<String> {
        let lower = lower(text);
        let telling = words(&lower).into_iter().filter(|word| word.chars().count() > 3);
        telling.filter(|word| !RULES.contains(word)).map(str::to_owned).collect()
    };
    let (new, old) = (told(later), told(earlier));
    let shared = old.iter().filter(|word| new.contains(word)).count();
    old.len() > 1 && shared * 4 >= old.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_about_the_same_replaces_the_earlier_one() {
        assert!(replaces("Always push to branch main.", "Never push to branch main."));
        assert!(replaces("Book at most 3 berths a day.", "Book at most 5 berths a day."));
        assert!(!replaces("Never use tabs in code.", "Never push to branch main."));
        for (later, earlier) in [
            ("Never stop the process on port 9090.", "Never stop the process on port 8080."),
            ("Never restart server db-2.", "Never restart server db-1."),
            ("Never book a flight on 2026-05-02.", "Never book a flight on 2026-05-01."),
            ("Never change files of release v2.", "Never change files of release v1."),
            ("Never use room 14 for guests.", "Only use room 12 for guests."),
        ] {
            assert!(!replaces(later, earlier), "{later} | {earlier}");
        }
        assert!(replaces("Never use room 12 for guests.", "Only use room 12 for guests."));
    }

    #[test]
    fn corrections_take_back_what_they_speak_of() {
        let takes = |later: &str, earlier: &str, age: Age| {
            let kind = correction(later, false);
            kind.is_some_and(|kind| takes_back(later, kind, earlier, age))
        };
        for (later, earlier, age) in [
            ("No, use hemp ropes instead.", "Always use steel ropes.", Age::Recent),
            ("Actually, use hemp.", "Always use steel ropes.", Age::Same),
            ("Use hemp ropes instead of steel ropes.", "Always use steel ropes.", Age::Old),
            ("Forget that.", "Never moor at night.", Age::Recent),
            ("Ignore what I said about night mooring.", "Never moor at night.", Age::Old),
            ("You can moor at night now.", "Never moor at night.", Age::Old),
            ("You no longer need to ask before mooring.", "Always ask before mooring.", Age::Old),
            ("Actually, ask for at most 3 berths.", "Ask for at most 5 berths.", Age::Old),
            ("Forget that about b.rs.", "Never touch b.rs.", Age::Old),
            ("You may touch b.rs now.", "Never touch b.rs.", Age::Old),
            ("You may now touch b.rs.", "Never touch b.rs.", Age::Recent),
            ("You can edit b.rs after all.", "Never touch b.rs.", Age::Old),
        ] {
            assert!(takes(later, earlier, age), "{later} | {earlier}");
        }
        for (later, earlier, age) in [
            ("No, thank you.", "Never moor at night.", Age::Recent),
            ("Forget that.", "Never moor at night.", Age::Old),
            ("Use steel instead of hemp.", "Never use hemp.", Age::Old),
            ("You can go home now.", "Never moor at night.", Age::Recent),
            ("Use steel instead of hemp.", "Always use metres.", Age::Recent),
            ("Send one order instead.", "Always wait after every order.", Age::Same),
            ("Forget that about b.rs.", "Always use port 8080.", Age::Recent),
            ("Forget that about b.rs.", "I prefer hemp.", Age::Recent),
            ("You may touch a.rs now.", "Never touch b.rs.", Age::Recent),
            ("You can edit a.rs after all.", "Never touch b.rs.", Age::Recent),
            ("You can edit b.rs, but not move it.", "Never move b.rs.", Age::Recent),
        ] {
            assert!(!takes(later, earlier, age), "{later} | {earlier}");
        }
        assert_eq!(correction("Use hemp.", true), Some(Correction::Contradicts));
        assert!(is_mere_no("No, wait.") && !is_mere_no("No, use hemp ropes."));
    }
}
