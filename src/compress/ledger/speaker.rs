//! Who said a text: the parts of a message decide, then what it looks like, then its role.

use crate::id::Role;

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

/// Who says a text that is no call, result or thought. `is_answer` says that it follows a command
/// in the agent's text, in a log that has no calls.
pub(in crate::compress) fn speaker_of(role: Role, text: &str, is_answer: bool) -> Speaker {
    match role {
        Role::Assistant => Speaker::Agent,
        Role::System => Speaker::Operator,
        Role::User if is_answer || is_of_program(text) => Speaker::Program,
        Role::User => Speaker::User,
    }
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

/// The command in the agent's text, in a log without calls: the last fenced block that is meant for
/// a shell or names no language.
pub(in crate::compress) fn command_in(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut found = None;
    while let Some((_, after)) = rest.split_once("```") {
        let (language, body) = after.split_once('\n')?;
        let (body, next) = body.split_once("```")?;
        let language = language.trim().to_ascii_lowercase();
        let is_shell = language.is_empty()
            || ["sh", "bash", "shell", "zsh", "console", "terminal", "command"]
                .iter()
                .any(|shell| language.contains(shell));
        if is_shell && !body.trim().is_empty() {
            found = Some(body.trim());
        }
        rest = next;
    }
    found
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

    #[test]
    fn the_last_command_of_a_text_is_found() {
        assert_eq!(command_in("I look.\n```bash\nls -la\n```"), Some("ls -la"));
        assert_eq!(command_in("```\nopen a.py 3\n```\nThen more."), Some("open a.py 3"));
        assert_eq!(command_in("```python\nx = 1\n```"), None);
        assert_eq!(command_in("no block"), None);
        assert_eq!(command_in("```bash\nnever closed"), None);
    }
}
