//! Plans and lists of what is to be done, by their shape: objects with a text and a status, and
//! checkboxes in Markdown.

use crate::{
    json::Value,
    text::{
        shortened,
        words::plan::{PLANNERS, REPLACED, TEXTS},
    },
};

/// The bytes of a heading above steps.
const HEADING: usize = 60;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) text: String,
    pub(crate) status: Status,
    /// The heading that it stands below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) heading: Option<String>,
    /// The id under which later calls change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

/// What a call does to one step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanStep {
    Added(Item),
    Changed { id: String, status: Option<Status>, text: Option<String> },
    Removed { id: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Status {
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
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Open => "[ ] ",
            Self::InProgress => "[>] ",
            Self::Done => "[x] ",
        }
    }
}

/// The names of arguments that say which step is meant.
const IDS: [&str; 7] = ["taskId", "task_id", "id", "todoId", "todo_id", "stepId", "number"];
const STATES: [&str; 4] = ["status", "state", "done", "completed"];
/// The plan that the arguments of a call write down, where they hold one: a list of objects, or one in
/// Markdown under a key that speaks of a plan, or in a file that does. Another document is none.
pub(crate) fn of_arguments(arguments: &Value, path: Option<&str>) -> Option<Vec<Item>> {
    let file = path.and_then(|path| path.rsplit(['/', '\\']).next());
    let is_of_plan = file.is_some_and(is_plan);
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
                let written = value.as_str().filter(|_| is_of_plan || is_plan(key));
                list(value, key).or_else(|| written.and_then(of_markdown))
            })
        }
        value => list(value, ""),
    }
}

/// The step that a call adds to a plan or changes: its tool speaks of tasks, and its arguments name
/// one. What asks another agent for a task has its words.
pub(crate) fn step(tool: &str, arguments: &Value) -> Option<PlanStep> {
    let tool = tool.to_ascii_lowercase();
    let is_named = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    if !is_named(&["task", "todo", "step", "issue"]) || arguments.get("prompt").is_some() {
        return None;
    }
    let text_at = |keys: &[&str]| {
        keys.iter().find_map(|key| arguments.str_at(key)).filter(|text| !text.trim().is_empty())
    };
    let status = STATES.iter().find_map(|key| arguments.str_at(key));
    let title = text_at(&["subject", "title", "content", "text", "task", "step", "name"]);
    if is_named(&["create", "add", "new"]) {
        let text = title.or_else(|| text_at(&["description"]))?.to_owned();
        let status = status.map_or(Status::Open, Status::of);
        return Some(PlanStep::Added(Item { text, status, heading: None, id: None }));
    }
    if !is_named(&["update", "set", "complete", "edit", "delete", "remove", "close"]) {
        return None;
    }
    let id = id_of(arguments)?;
    let is_gone = is_named(&["delete", "remove"]) || status.is_some_and(is_deleted);
    if is_gone {
        return Some(PlanStep::Removed { id });
    }
    let is_done = is_named(&["complete", "close"]).then_some(Status::Done);
    let status = status.map(Status::of).or(is_done);
    Some(PlanStep::Changed { id, status, text: title.map(str::to_owned) })
}

fn is_deleted(status: &str) -> bool {
    ["deleted", "removed"].iter().any(|word| status.eq_ignore_ascii_case(word))
}

/// The id of a step in an object.
fn id_of(object: &Value) -> Option<String> {
    IDS.iter().find_map(|key| match object.get(key)? {
        Value::String(text) => Some(text.trim_start_matches('#').to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// The id of the step that a result tells of: `Task #3 created`, `{"id": "3"}`.
pub(crate) fn id_in(result: &str) -> Option<String> {
    let text = result.trim();
    if text.starts_with('{') {
        let value = crate::json::read(text.as_bytes()).ok()?;
        let value = value.get("task").filter(|task| task.as_object().is_some()).unwrap_or(&value);
        return id_of(value);
    }
    let words: Vec<&str> = text.split_whitespace().take(24).collect();
    let plain = |word: &&str| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).to_owned()
    };
    let is_marked = |word: &&&str| word.trim_start_matches(['(', '[']).starts_with('#');
    let marked = words.iter().find(is_marked).map(plain);
    let led = || {
        let pair = words.windows(2).find(|pair| {
            let lead = pair.first().map(plain).unwrap_or_default().to_ascii_lowercase();
            let has_digit = pair.get(1).is_some_and(|id| id.contains(|c: char| c.is_ascii_digit()));
            ["task", "id", "todo", "step", "issue"].contains(&lead.as_str()) && has_digit
        });
        pair.and_then(|pair| pair.get(1).map(plain))
    };
    marked.or_else(led).filter(|id| !id.is_empty())
}

/// Whether a tool is one by which agents plan, by its name: other tools take lists too.
pub(crate) fn is_planner(tool: &str) -> bool {
    let plain = tool.chars().filter(|c| !matches!(c, '_' | '-'));
    let plain: String = plain.flat_map(char::to_lowercase).collect();
    // Servers have names before those of their tools.
    !tool.contains("__") && PLANNERS.contains(&&*plain)
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
        Value::Bool(true) => Status::Done,
        Value::Bool(false) => Status::Open,
        status => Status::of(status.as_str()?),
    };
    Some(Item { text: text.to_owned(), status, heading: None, id: None })
}

/// The checkboxes of a text, where there are two at least.
pub(crate) fn of_markdown(text: &str) -> Option<Vec<Item>> {
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
            id: None,
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
            let arguments_read = json::read(arguments.as_bytes()).unwrap();
            let found = of_arguments(&arguments_read, arguments_read.str_at("path"));
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
        let emptied = of_arguments(&json::read(br#"{"todos":[]}"#).unwrap(), None);
        assert_eq!(emptied, Some(Vec::new()));
        check(r#"{"path":"spec.md","content":"- [ ] a\n- [ ] b"}"#, &[]);
        // What an edit takes away is no plan.
        check(
            r#"{"path":"todo.md","oldText":"- [ ] a\n- [ ] b","newText":"- [x] a\n- [ ] b"}"#,
            &[("a", Status::Done), ("b", Status::Open)],
        );
    }

    #[test]
    fn steps_are_added_and_changed_one_by_one() {
        let of =
            |tool: &str, arguments: &str| step(tool, &json::read(arguments.as_bytes()).unwrap());
        let text = "Dredge the lock".to_owned();
        let added = Item { text, status: Status::Open, heading: None, id: None };
        let arguments =
            r#"{"subject":"Dredge the lock","description":"All of it","activeForm":"x"}"#;
        assert_eq!(of("TaskCreate", arguments), Some(PlanStep::Added(added)));
        let changed =
            PlanStep::Changed { id: "3".into(), status: Some(Status::InProgress), text: None };
        assert_eq!(of("task_update", r#"{"taskId":"3","status":"in_progress"}"#), Some(changed));
        let removed = Some(PlanStep::Removed { id: "3".into() });
        assert_eq!(of("TaskUpdate", r##"{"taskId":"#3","status":"deleted"}"##), removed);
        assert_eq!(of("TaskUpdate", r#"{"status":"done"}"#), None);
        assert_eq!(of("Task", r#"{"description":"Dredge","prompt":"Dredge it"}"#), None);
        assert_eq!(of("create_order", r#"{"name":"Rope","status":"open"}"#), None);
    }

    #[test]
    fn a_result_tells_the_id_of_a_step() {
        let check = |text: &str, id: Option<&str>| assert_eq!(id_in(text).as_deref(), id, "{text}");
        check("Task #12 created successfully: Dredge", Some("12"));
        check("Created todo t-7.", Some("t-7"));
        check(r#"{"task":{"id":"9","subject":"x"}}"#, Some("9"));
        check(r#"{"id":4}"#, Some("4"));
        check("done", None);
    }

    #[test]
    fn checkboxes_of_a_text_are_a_plan() {
        let found = of_markdown("Plan:\n- [x] one\n* [ ] two\n- [link](x)").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found.last().map(|item| item.status), Some(Status::Open));
        assert_eq!(of_markdown("- [ ] alone"), None);
    }
}
