//! Plans and lists of what is to be done, by their shape: objects with a text and a status, and
//! checkboxes in Markdown.

use super::outcome::shortened;
use crate::json::Value;

/// The bytes of a heading above steps.
const HEADING: usize = 60;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    pub(super) text: String,
    pub(super) status: Status,
    /// The heading that it stands below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) heading: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Status {
    Open,
    InProgress,
    Done,
}

impl Status {
    fn of(text: &str) -> Self {
        let plain: String =
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        match plain.as_str() {
            "completed" | "complete" | "done" | "finished" | "closed" | "cancelled"
            | "canceled" | "deleted" | "resolved" | "skipped" | "x" => Self::Done,
            "inprogress" | "doing" | "active" | "started" | "current" | "working" => {
                Self::InProgress
            }
            _ => Self::Open,
        }
    }

    /// What a line begins with that tells of a step of this status.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Open => "[ ] ",
            Self::InProgress => "[>] ",
            Self::Done => "[x] ",
        }
    }
}

const TEXTS: [&str; 9] =
    ["content", "step", "title", "task", "text", "subject", "description", "name", "activeForm"];
const STATES: [&str; 4] = ["status", "state", "done", "completed"];
/// What an edit takes away: a list in it is the plan no more.
const REPLACED: [&str; 6] =
    ["old_string", "old_str", "oldString", "oldText", "old_source", "search"];

/// The plan that the arguments of a call write down, where they hold one.
pub(super) fn of_arguments(arguments: &Value) -> Option<Vec<Item>> {
    let list = |value: &Value, key: &str| {
        let items = value.as_array()?;
        let is_told = is_plan(key);
        if items.is_empty() && !is_told {
            return None;
        }
        items.iter().map(|value| item(value, is_told)).collect::<Option<Vec<_>>>()
    };
    match arguments {
        Value::Object(members) => {
            let is_said = |key: &str| !REPLACED.contains(&key);
            members.iter().filter(|(key, _)| is_said(key)).find_map(|(key, value)| {
                // A list of objects, or one in Markdown.
                list(value, key).or_else(|| value.as_str().and_then(of_markdown))
            })
        }
        value => list(value, ""),
    }
}

/// Whether a member of this name is a plan, whatever is in it.
fn is_plan(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["todo", "plan", "step", "task", "checklist"].iter().any(|word| key.contains(word))
}

/// A step. Of a list that is not called a plan, things with a name alone are none, such as the
/// orders of a shop.
fn item(value: &Value, is_told: bool) -> Option<Item> {
    let keys = TEXTS.iter().filter(|key| is_told || **key != "name");
    let text = { keys }.find_map(|key| value.str_at(key)).filter(|text| !text.is_empty())?;
    let status = STATES.iter().find_map(|key| value.get(key))?;
    let status = match status {
        Value::Bool(is_done) => {
            if *is_done {
                Status::Done
            } else {
                Status::Open
            }
        }
        status => Status::of(status.as_str()?),
    };
    Some(Item { text: text.to_owned(), status, heading: None })
}

/// The checkboxes of a text, where there are two at least.
pub(super) fn of_markdown(text: &str) -> Option<Vec<Item>> {
    let mut heading: Option<String> = None;
    let items = text.lines().filter_map(|line| {
        let line = line.trim_start();
        if let Some(title) = line.strip_prefix('#') {
            heading = Some(shortened(title.trim_start_matches('#'), HEADING));
            return None;
        }
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let line = line.trim_start_matches(['-', '*', '+', '.', ')']).trim_start();
        let (mark, rest) = line.strip_prefix('[')?.split_once(']')?;
        let status = match mark {
            " " | "" => Status::Open,
            "x" | "X" | "✓" | "✔" => Status::Done,
            "~" | "-" | ">" | "/" => Status::InProgress,
            _ => return None,
        };
        let text = rest.trim();
        let heading = heading.clone();
        (!text.is_empty() && rest.starts_with(' ')).then(|| Item {
            text: text.to_owned(),
            status,
            heading,
        })
    });
    let items: Vec<Item> = items.collect();
    (items.len() > 1).then_some(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn plans_are_found_by_their_shape() {
        let check = |arguments: &str, expected: &[(&str, Status)]| {
            let found = of_arguments(&json::read(arguments.as_bytes()).unwrap());
            let found: Option<Vec<_>> = found
                .as_ref()
                .map(|items| items.iter().map(|item| (item.text.as_str(), item.status)).collect());
            assert_eq!(found.unwrap_or_default(), expected, "{arguments}");
        };
        check(
            r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}"#,
            &[("a", Status::Done), ("b", Status::InProgress)],
        );
        check(r#"{"plan":[{"step":"a","status":"pending"}]}"#, &[("a", Status::Open)]);
        check(r#"{"list":[{"text":"a","done":true}]}"#, &[("a", Status::Done)]);
        check(r#"{"task_list":"1. [x] a\n2. [ ] b"}"#, &[("a", Status::Done), ("b", Status::Open)]);
        check(r#"{"edits":[{"old":"a","new":"b"}]}"#, &[]);
        check(r#"{"orders":[{"name":"Shoes","status":"pending"}]}"#, &[]);
        check(r#"{"tasks":[{"name":"Shoes","status":"pending"}]}"#, &[("Shoes", Status::Open)]);
        let emptied = of_arguments(&json::read(br#"{"todos":[]}"#).unwrap());
        assert_eq!(emptied, Some(Vec::new()));
        // What an edit takes away is no plan.
        check(
            r#"{"path":"todo.md","oldText":"- [ ] a\n- [ ] b","newText":"- [x] a\n- [ ] b"}"#,
            &[("a", Status::Done), ("b", Status::Open)],
        );
    }

    #[test]
    fn checkboxes_of_a_text_are_a_plan() {
        let found = of_markdown("Plan:\n- [x] one\n* [ ] two\n- [link](x)").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found.last().map(|item| item.status), Some(Status::Open));
        assert_eq!(of_markdown("- [ ] alone"), None);
    }
}
