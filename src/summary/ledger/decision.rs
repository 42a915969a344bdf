//! What an agent decided or found out, told from what it only guessed.

use crate::{
    steps::{is_question, lower, sentences, words},
    text::{
        holds,
        words::decision::{DECISIONS, GUESSES, REJECTIONS, RETRACTIONS},
    },
};

/// The sentences of a text that tell of a decision, in order. Guesses and questions are none.
pub(super) fn decisions(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).filter(|sentence| {
        let lower = lower(sentence);
        sentence.split_whitespace().nth(3).is_some()
            && holds(&lower, &DECISIONS)
            && !holds(&lower, &GUESSES)
            && !is_question(sentence)
            && !sentence.ends_with(':')
    })
}

/// Whether an agent takes back here what it said before.
pub(super) fn retracts(text: &str) -> bool {
    sentences(text).take(4).any(|sentence| holds(&lower(sentence), &RETRACTIONS))
}

/// Whether a user rejects what the agent said before, by the first words.
pub(super) fn rejects(text: &str) -> bool {
    sentences(text).next().is_some_and(|sentence| {
        let lower = lower(sentence);
        let begin: Vec<&str> = words(&lower).into_iter().take(4).collect();
        let agrees =
            |word: &&str| matches!(*word, "yes" | "yep" | "ok" | "okay" | "sure" | "great");
        !begin.first().is_some_and(agrees) && holds(&begin.join(" "), &REJECTIONS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_from_guesses() {
        let found = |text| decisions(text).collect::<Vec<_>>();
        for text in [
            "Perhaps the root cause is the tide table.",
            "The fix is probably in the table, because it is old.",
            "Let me check whether the cause is the rope.",
            "So did the rope fail because I used line 25?",
            "I will look at the table instead.",
            "If that fails, I'll use the other quay.",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        for text in [
            "The root cause is the tide table of 2019.",
            "I'll use hemp ropes for berth 7.",
            "It turns out that berth 7 dries at low tide.",
        ] {
            assert_eq!(found(text), [text]);
        }
    }

    #[test]
    fn rejections_stand_at_the_beginning() {
        assert!(rejects("No, that is the other quay.") && rejects("hm no. Use berth 9."));
        assert!(!rejects("Yes, and do not tell the harbour."));
        assert!(retracts("I was wrong about the tide."));
    }
}
