//! What an agent found missing: a rule that asks for it cannot be kept.

use super::{
    decision::GUESSES,
    sentence::{holds, is_question, lower, sentences, words},
};

/// What is said of what is not there.
const MISSING: [&str; 24] = [
    "not exposed",
    "not available",
    "isn't available",
    "aren't available",
    "is unavailable",
    "are unavailable",
    "not installed",
    "isn't installed",
    "not present",
    "not supported",
    "isn't supported",
    "not configured",
    "isn't configured",
    "not accessible",
    "no access to",
    "don't have access",
    "does not exist",
    "doesn't exist",
    "do not exist",
    "don't exist",
    "cannot be used",
    "can't be used",
    "no network access",
    "no internet access",
];

/// What an agent works with.
const MEANS: [&str; 22] = [
    "tool",
    "tools",
    "command",
    "commands",
    "server",
    "servers",
    "mcp",
    "skill",
    "skills",
    "session",
    "environment",
    "sandbox",
    "network",
    "internet",
    "package",
    "packages",
    "binary",
    "binaries",
    "browser",
    "compiler",
    "machine",
    "permission",
];

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
