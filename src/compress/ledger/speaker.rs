//! Who said a text: the parts of a message decide, then what it looks like, then its role.

use std::borrow::Cow;

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
const OF_PROGRAMS: [&str; 19] = [
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
    "response",
    "tool",
];

/// The tags in which a client puts what the user asks.
const OF_USERS: [&str; 19] = [
    "task",
    "instructions",
    "query",
    "user_query",
    "request",
    "user_request",
    "message",
    "user_message",
    "prompt",
    "user_prompt",
    "user_input",
    "issue",
    "pr_description",
    "problem_statement",
    "feedback",
    "question",
    "answer",
    "goal",
    "user",
];

/// What stands before the user's words, behind what an editor shows.
const REQUESTS: [&str; 1] = ["## My request for Codex:"];

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

/// What the user says in a text: without what stands in tags that are not the client's for the user's
/// words (a document, a file, a selection), and without lines that are quoted. O(n).
pub(super) fn own_words(text: &str) -> Cow<'_, str> {
    let mut rest = REQUESTS.iter().find_map(|head| Some(text.rsplit_once(head)?.1)).unwrap_or(text);
    let is_quote = |line: &str| line.trim_start().starts_with('>');
    if !rest.lines().any(|line| is_quote(line) || foreign_tag(line).is_some()) {
        return rest.into();
    }
    let mut own = String::new();
    while let Some(line) = rest.split_inclusive('\n').next() {
        if let Some(name) = foreign_tag(line) {
            // What is inside may close the tag too: the last end counts.
            let behind = rest.rsplit_once(&*format!("</{name}")).map(|(_, behind)| behind);
            rest = behind.and_then(|behind| Some(behind.split_once('>')?.1)).unwrap_or_default();
        } else {
            own.push_str(if is_quote(line) { "" } else { line });
            rest = rest.get(line.len()..).unwrap_or_default();
        }
    }
    own.into()
}

/// The name of the tag that a line begins with, where it is none for the user's words.
fn foreign_tag(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('<')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let name = rest.get(..rest.find(|c| !is_name(c))?)?;
    let is_of_user = OF_USERS.iter().any(|of| name.eq_ignore_ascii_case(of));
    let is_tag = name.starts_with(char::is_alphabetic) && rest.contains('>');
    (is_tag && !is_of_user).then_some(name)
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
    fn what_the_user_quotes_is_none_of_the_users_words() {
        let check = |text: &str, own: &str| assert_eq!(own_words(text), own, "{text}");
        check(
            "Never push.\n<document>\nAlways push.\n</document>\nThanks.",
            "Never push.\n\nThanks.",
        );
        check("<file path=\"a\">Always push.</file> Look at it.", " Look at it.");
        check("<ide_selection>\nAlways push.", "");
        check("<file>\n</file>\nAlways push.\n</file>\nNo.", "\nNo.");
        check("They say:\n> Always push.\nNo.", "They say:\nNo.");
        check("<task>\nNever push.\n</task>", "<task>\nNever push.\n</task>");
        let task = "Mend it.\n<instructions>\nNever push.\n</instructions>";
        check(task, task);
        check("a < b\n<3", "a < b\n<3");
        let editor = "# Context from my IDE setup:\nAlways push.\n## My request for Codex:\nLook.";
        check(editor, "\nLook.");
    }
}
