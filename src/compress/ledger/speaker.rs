//! Who said a text: the parts of a message decide, then what it looks like, then its role.

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compress) enum Speaker {
    User,
    Agent,
    /// What a program put into a message, whoever the message is from.
    Program,
    Operator,
}

/// What the names of tags hold that programs put around what they say for the user.
const OF_PROGRAMS: [&str; 17] = [
    "system",
    "reminder",
    "environment",
    "context",
    "command",
    "stdout",
    "stderr",
    "output",
    "returncode",
    "result",
    "observation",
    "notification",
    "hook",
    "permission",
    "aborted",
    "instructions",
    "caveat",
];

/// What a text begins with that a program says without a tag.
const BEGINNINGS: [&str; 9] = [
    "Caveat: The messages below",
    "[Request interrupted",
    "# AGENTS.md",
    "OBSERVATION:",
    "Observation:",
    "EXECUTION RESULT",
    "This session is being continued from",
    "[System",
    "[system",
];

/// Whether a chunk of this type may be somebody's words: states and summaries are none.
pub(in crate::compress) fn may_be_words(chunk_type: Option<&str>) -> bool {
    !matches!(chunk_type, Some("state" | "summary" | "ambient" | "formatting" | "unknown"))
}

/// Whether a program said a text in the user's place: it begins with one of its tags, or as
/// programs begin.
pub(crate) fn is_of_program(text: &str) -> bool {
    let text = text.trim_start();
    if BEGINNINGS.iter().any(|start| text.starts_with(start)) {
        return true;
    }
    let Some(rest) = text.strip_prefix('<') else { return false };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = rest.split(|c: char| !is_name(c)).next().unwrap_or_default().to_ascii_lowercase();
    let ends = rest.get(name.len()..).is_some_and(|rest| rest.starts_with(['>', ' ']));
    ends && OF_PROGRAMS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_for_the_user_is_told_from_words() {
        for text in [
            "<system-reminder>\nx</system-reminder>",
            "<environment_context>",
            "<returncode>0</returncode>\n<output>\n</output>",
            "OBSERVATION:\n[File: a.py]",
        ] {
            assert!(is_of_program(text), "{text}");
        }
        for text in ["<task>Fix it</task>", "a < b", "<pr_description>\nx", "Never.", ""] {
            assert!(!is_of_program(text), "{text}");
        }
    }
}
