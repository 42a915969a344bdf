//! Who said a text: the parts of a message decide, then what it looks like, then its role.

mod text_log;
mod word_places;

use super::OwnWords;
use crate::{
    snapshot::Part,
    text::{
        quote::HEADS,
        words::{
            material::OF_USERS,
            speaker::{BEGINNINGS, OF_PROGRAMS},
        },
    },
    veil::{Facet, Frame, Source},
};
pub(crate) use text_log::{Heard, TextLog};
pub(crate) use word_places::{WordPlaces, last_command, said_by_user};

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Agent,
    /// What a program put into a message, whoever the message is from.
    Program,
    Operator,
}

/// Whether a chunk of this type may be somebody's words. States, summaries and what a reader knows
/// for a notice are not.
pub(crate) fn may_be_words(chunk_type: Option<&str>) -> bool {
    !matches!(
        chunk_type,
        Some("state" | "summary" | "notice" | "ambient" | "formatting" | "unknown")
    )
}

/// Whether a program said a text in the user's place: it begins with one of its tags, or as
/// programs begin.
pub(crate) fn is_of_program(text: &str) -> bool {
    let text = text.trim_start();
    if BEGINNINGS.iter().chain(&HEADS).any(|start| text.starts_with(start)) || names_tool(text) {
        return true;
    }
    let Some(rest) = text.strip_prefix('<') else { return false };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = rest.split(|c: char| !is_name(c)).next().unwrap_or_default().to_ascii_lowercase();
    let ends = rest.get(name.len()..).is_some_and(|rest| rest.starts_with(['>', ' ']));
    if !ends || OF_USERS.contains(&&*name) || !OF_PROGRAMS.iter().any(|part| name.contains(part)) {
        return false;
    }
    // People write this tag too, and speak behind it.
    let behind = text.rsplit("</context>").next().unwrap_or_default();
    name != "context" || !behind.contains(char::is_alphanumeric) || is_of_program(behind)
}

/// Whether a facet is what somebody said.
pub(crate) fn is_words(facet: &Facet) -> bool {
    facet.chunk_part() == Part::Text
        && may_be_words(Some(facet.facet_type.as_str()))
        && !facet.content.trim().is_empty()
}

/// What the user says in a frame, past what programs put before it: the first text that is the
/// user's, and no mere quotation where another follows, as an editor's selection does. O(text).
pub fn words_in(frame: &Frame) -> Option<&str> {
    let is_users = frame.source == Source::User;
    let words = frame.added().filter(|facet| is_users && is_words(facet));
    let mut texts = words.map(|facet| &*facet.content).filter(|text| !is_of_program(text));
    let first = texts.next()?;
    let is_quotation = |text: &str| OwnWords::of(text).is_quotation();
    let asked = if is_quotation(first) { texts.find(|text| !is_quotation(text)) } else { None };
    Some(OwnWords::of(asked.unwrap_or(first)).inside_of_tags())
}

/// Whether a text begins with a line that names the tool of the result below it:
/// `[read_file for 'a.md'] Result:`, `PreToolUse hook feedback:`, `bash result:`.
fn names_tool(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let head: String = line.chars().take(200).collect::<String>().to_ascii_lowercase();
    if head.contains("hook feedback:") || head.starts_with('[') && head.contains("] result:") {
        return true;
    }
    let called = head.split_once(' ').filter(|(tool, _)| tool.contains('_'));
    called.is_some_and(|(_, rest)| {
        ["result:", "output:", "returned:"].iter().any(|says| rest.starts_with(says))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::FacetType, veil::FacetOp};

    #[test]
    fn what_is_asked_is_taken_for_what_an_editor_quotes_before_it() {
        let said = |texts: &[&str]| {
            let facets = texts.iter().enumerate();
            let facets =
                facets.map(|(at, text)| Facet::new(format!("event-{at}"), FacetType::EVENT, *text));
            let frame = facets
                .fold(Frame::new(1, Source::User), |frame, facet| frame.with(FacetOp::add(facet)));
            words_in(&frame).map(str::to_owned)
        };
        let (quoted, asked) = ("> fn tide() {\n> }", "What does this do?");
        assert_eq!(said(&[quoted, asked]).as_deref(), Some(asked));
        assert_eq!(said(&[asked, quoted]).as_deref(), Some(asked));
        assert_eq!(said(&[quoted, "<environment_context>"]).as_deref(), Some(quoted));
    }

    #[test]
    fn what_programs_say_for_the_user_is_told_from_words() {
        for text in [
            "<system-reminder>\nx</system-reminder>",
            "<environment_context>",
            "<returncode>0</returncode>\n<output>\n</output>",
            "OBSERVATION:\n[File: a.py]",
            "Stop hook feedback:\nAlways push.",
            "Another language model started to solve this problem. Always push.",
            "PreToolUse:Bash hook feedback: always push",
            "Tool result: always push",
            "[read_file for 'a.md'] Result:\nAlways push.",
            "read_file result: always push",
            "<tool_result>\nAlways push.",
            HEADS[0],
            HEADS[1],
        ] {
            assert!(is_of_program(text), "{text}");
        }
        for text in [
            "The result: never push.",
            "[a] Never push: ask.",
            "<task>Fix it</task>",
            "a < b",
            "<pr_description>\nx",
            "Never.",
            "",
        ] {
            assert!(!is_of_program(text), "{text}");
        }
    }
}
