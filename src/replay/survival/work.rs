//! Where the work stands: the last error, open items of the plan, files that were changed.

use std::collections::BTreeSet;

use super::{PartRef, Passage, Role, Value, json};

/// What names a file in a call's arguments.
const PATHS: [&str; 10] = [
    "file_path",
    "path",
    "filename",
    "file",
    "filepath",
    "filePath",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
];

/// What says that a call changes a file.
const CHANGES: [&str; 12] = [
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "oldText",
    "newText",
    "content",
    "file_text",
    "edits",
    "patch",
    "new_source",
    "insert_line",
];

/// Each call with its result, where it has one: name, arguments, result.
fn exchanges(messages: &[Passage]) -> Vec<(String, String, Option<String>)> {
    let mut found: Vec<(Option<String>, String, String, Option<String>)> = Vec::new();
    for chunk in messages.iter().flat_map(|message| message.snapshot.chunks()) {
        match chunk.part() {
            PartRef::Call { id, name } => {
                let text = chunk.content().to_owned();
                found.push((id.map(str::to_owned), name.to_owned(), text, None));
            }
            PartRef::Result { id } => {
                let open = |of: &&mut (Option<String>, String, String, Option<String>)| {
                    of.3.is_none() && (id.is_none() || of.0.as_deref() == id)
                };
                if let Some(call) = found.iter_mut().rev().find(open) {
                    call.3 = Some(chunk.content().to_owned());
                }
            }
            _ => {}
        }
    }
    found.into_iter().map(|(_, name, arguments, result)| (name, arguments, result)).collect()
}

fn arguments(text: &str) -> Option<Value> {
    json::read(text.trim().as_bytes()).ok()
}

/// The paths of the files that were changed: by a call that names a file and says what is new, or
/// by a patch. What failed changed nothing. O(text).
pub(crate) fn files_changed(messages: &[Passage]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for (_, text, result) in exchanges(messages) {
        if result.as_deref().is_none_or(|result| error_line(result).is_some()) {
            continue;
        }
        let value = arguments(&text);
        let member = |key: &str| value.as_ref().and_then(|value| value.str_at(key));
        let changes = CHANGES.iter().any(|key| value.as_ref().and_then(|v| v.get(key)).is_some());
        if changes && let Some(path) = PATHS.iter().find_map(|key| member(key)) {
            files.insert(path.to_owned());
        }
        let plain = text.replace("\\n", "\n");
        for line in plain.lines() {
            for mark in ["*** Update File: ", "*** Add File: "] {
                if let Some(path) = line.strip_prefix(mark) {
                    files.insert(path.trim().to_owned());
                }
            }
        }
    }
    files
}

/// The open items of the last plan that a call wrote down: a list of objects with a text and a
/// status that is not done. O(text).
pub(crate) fn open_items(messages: &[Passage]) -> Vec<String> {
    let mut last = Vec::new();
    for (_, text, _) in exchanges(messages) {
        let Some(Value::Object(members)) = arguments(&text) else { continue };
        for (_, value) in &members {
            let Some(list) = value.as_array().filter(|list| !list.is_empty()) else { continue };
            let item = |item: &Value| {
                let status = item.str_at("status")?.to_owned();
                let keys = ["content", "step", "title", "task", "text", "description"];
                let text = keys.iter().find_map(|key| item.str_at(key))?.to_owned();
                Some((status, text))
            };
            let items: Option<Vec<_>> = list.iter().map(item).collect();
            if let Some(items) = items {
                let is_open = |status: &str| {
                    !matches!(status, "completed" | "done" | "cancelled" | "complete")
                };
                let open = items.into_iter().filter(|(status, _)| is_open(status));
                last = open.map(|(_, text)| text).collect();
            }
        }
    }
    last
}

/// The line of the last result that tells of an error. O(text).
///
/// In a session where commands stand in what the agent says (`is_text_only`), what speaks as the user
/// right after a fenced block of the agent is a result too.
pub(crate) fn last_error(messages: &[Passage], is_text_only: bool) -> Option<String> {
    let mut last = None;
    let mut is_answer = false;
    for message in messages {
        for chunk in message.snapshot.chunks() {
            let is_result = match chunk.part() {
                PartRef::Result { .. } => true,
                PartRef::Text => is_answer && message.role == Role::User,
                _ => false,
            };
            if is_result {
                last = error_line(chunk.content()).or(last);
            }
        }
        is_answer = is_text_only && has_block(message);
    }
    last
}

/// Whether commands stand in what the agent says, and their output in the user's messages: there is
/// neither a call nor a result, and most messages of the agent hold a fenced block. O(text).
pub(crate) fn has_commands_in_text(messages: &[Passage]) -> bool {
    let has_part = |message: &Passage| {
        let mut chunks = message.snapshot.chunks();
        chunks.any(|chunk| matches!(chunk.part(), PartRef::Call { .. } | PartRef::Result { .. }))
    };
    let of_agent = || messages.iter().filter(|message| message.role == Role::Assistant);
    let blocks = of_agent().filter(|message| has_block(message)).count();
    blocks * 2 > of_agent().count() && !messages.iter().any(has_part)
}

/// Whether a message of the agent holds a fenced block.
fn has_block(message: &Passage) -> bool {
    let lines = || message.snapshot.text().lines();
    message.role == Role::Assistant
        && lines().filter(|line| line.trim_start().starts_with("```")).nth(1).is_some()
}

/// The line of a result that tells what failed: the last line of a traceback, else the first line
/// that begins with an error, where the result begins with one or its command failed.
fn error_line(result: &str) -> Option<String> {
    let lines: Vec<&str> = result.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_error = |line: &&&str| {
        let head: String = line.chars().take(60).collect::<String>().to_lowercase();
        let word = head.split([' ', ':']).next().unwrap_or_default();
        word.ends_with("error")
            || word.ends_with("exception")
            || head.starts_with("fatal:")
            || head.starts_with("error:")
            || head.starts_with("<tool_use_error>")
    };
    if result.contains("Traceback (most recent call last)") {
        return lines.iter().rev().find(is_error).map(|line| (*line).to_owned());
    }
    lines.first().filter(|line| is_error(line)).map(|line| (*line).to_owned())
}
