//! What an agent found missing: a rule that asks for it cannot be kept.

use crate::{
    steps::{is_question, lower, sentences, words},
    text::{
        holds,
        words::{
            decision::GUESSES,
            obstacle::{MEANS, MISSING},
        },
    },
};

/// The sentences of a text of the agent that tell of means that are not there, in order.
pub(super) fn obstacles(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).filter(|said| {
        let lower = lower(said);
        holds(&lower, &MISSING)
            && words(&lower).iter().any(|word| MEANS.contains(word))
            && !holds(&lower, &GUESSES)
            && !is_question(said)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_means_are_told_from_guesses_and_other_things() {
        let found = |text| obstacles(text).collect::<Vec<_>>();
        let text = "The tide tools that the notes ask for are not exposed in this session, \
                    so I go by hand.";
        assert_eq!(found(text), [text]);
        assert_eq!(found("The sounding server might not be available."), [""; 0]);
        assert_eq!(found("Berth 7 is not available."), [""; 0]);
    }
}
