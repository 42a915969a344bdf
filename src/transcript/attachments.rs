//! What Claude Code put before the model besides messages: records of type `attachment`.
//!
//! Since version 2.1.332 a record holds what was sent (`rendered`). Before, it holds the text alone, which
//! the harness sent in a tag of its own (`<system-reminder>`): without it what a hook printed, or what a
//! file holds, would read like a message of the user.

use super::{chat, draft::FrameDraft, parts, take};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{Facet, Source},
};

/// The attribute that says which kind of attachment a facet is.
const KIND: &str = "attachment";
/// The attribute with the whole path of a file.
const PATH: &str = "path";

/// Kinds that the harness never sends, whatever they hold.
const NOT_SENT: [&str; 11] = [
    "already_read_file",
    "command_permissions",
    "dynamic_skill",
    "edited_image_file",
    "hook_cancelled",
    "hook_error_during_execution",
    "hook_non_blocking_error",
    "hook_permission_decision",
    "hook_system_message",
    "max_turns_reached",
    "structured_output",
];

/// What the harness puts around what it attaches.
const TAG: &str = "<system-reminder>";

/// The members that hold the text of a kind, the first that has one; of all others it is `content`.
const TEXTS: [(&str, &[&str]); 28] = [
    ("agent_listing_delta", &["addedLines"]),
    ("agent_mention", &["agentType"]),
    ("async_hook_response", &["response"]),
    ("batching_reminder_sent", &["text"]),
    ("compact_file_reference", &["displayPath", "filename"]),
    ("date_change", &["newDate"]),
    ("deferred_tools_delta", &["addedLines"]),
    ("diagnostics", &["files"]),
    ("edited_text_file", &["snippet"]),
    ("hook_blocking_error", &["blockingError"]),
    ("hook_stopped_continuation", &["message"]),
    ("instructions", &["files"]),
    ("invoked_skills", &["skills"]),
    ("mcp_instructions_delta", &["addedBlocks"]),
    ("opened_file_in_ide", &["displayPath", "filename"]),
    ("output_style", &["style"]),
    ("pdf_reference", &["displayPath", "filename"]),
    ("plan_file_reference", &["planContent", "planFilePath"]),
    ("plan_mode", &["planFilePath"]),
    ("plan_mode_exit", &["planFilePath"]),
    ("queued_command", &["prompt"]),
    ("read_truncation_notice", &["banner"]),
    ("relevant_memories", &["memories"]),
    ("silent_turn_reminder", &["text"]),
    ("task_status", &["deltaSummary", "description"]),
    ("teammate_mailbox", &["messages"]),
    ("total_tokens_reminder", &["text"]),
    ("ultramemory", &["content"]),
];

/// The members within an object that hold its text, the first that has one.
const INNER: [&str; 11] = [
    "content",
    "text",
    "file",
    "contents",
    "message",
    "blockingError",
    "hookSpecificOutput",
    "additionalContext",
    "systemMessage",
    "diagnostics",
    "cells",
];

/// How deep texts are looked for.
const LEVELS: usize = 8;

/// The frame of an attachment, which is no message; its kind, where it put no text before the model.
pub(super) fn draft(record: &mut Object, line: u64) -> Result<FrameDraft, String> {
    let Some(Value::Object(mut attachment)) = record.shift_remove("attachment") else {
        return Err(String::new());
    };
    let kind = attachment.str_at("type").unwrap_or_default().to_owned();
    let sent = sent(record, &attachment);
    if sent.is_empty() && NOT_SENT.contains(&kind.as_str()) {
        return Err(kind);
    }
    let source = if kind == "queued_command" && is_users(&attachment) {
        Source::User
    } else {
        Source::Environment
    };
    let mut draft = FrameDraft::record(source, line);
    let members =
        TEXTS.iter().find(|(of, _)| *of == kind).map_or(&["content"][..], |(_, members)| members);
    let path = path_of(&attachment);
    for member in members {
        let Some(value) = attachment.shift_remove(member) else { continue };
        draft.facets = facets(&kind, &value);
        // What was sent need not say it.
        let is_said = sent.is_empty() || draft.facets.iter().all(|of| says(&sent, &of.content));
        if !is_said || draft.facets.is_empty() {
            attachment.put(member, value);
        }
        if !draft.facets.is_empty() {
            break;
        }
    }
    if !sent.is_empty() {
        draft.facets = sent;
    } else if draft.source == Source::Environment {
        draft.facets.iter_mut().for_each(wrap);
    }
    if draft.facets.is_empty() {
        return Err(kind);
    }
    for facet in &mut draft.facets {
        facet.attributes.put(KIND, kind.as_str());
        if facet.display_name.is_none() {
            let of_kind = || record.contains_key("renderedRole").then(|| kind.clone());
            facet.display_name = name_of(&attachment).or_else(of_kind);
        }
        if let (Some(path), None) = (&path, facet.attributes.get(PATH)) {
            facet.attributes.put(PATH, path.as_str());
        }
    }
    record.put("attachment", attachment);
    Ok(draft)
}

/// What was sent of an attachment, where the record says it: a text with several files is a facet for
/// each of them.
fn sent(record: &mut Object, attachment: &Object) -> Vec<Facet> {
    let files = attachment.get("files").and_then(Value::as_array).unwrap_or_default();
    let mut draft = FrameDraft::record(Source::Environment, 0);
    for part in take::list(record, "rendered").unwrap_or_default() {
        match part.get("content") {
            Some(Value::String(text)) => draft.facets.extend(by_file(text, files)),
            Some(content) => chat::content(content.clone(), &FacetType::EVENT, &mut draft),
            None => chat::content(Value::Array(vec![part]), &FacetType::EVENT, &mut draft),
        }
    }
    draft.facets
}

/// Puts a text into the tag of the harness.
fn wrap(facet: &mut Facet) {
    if facet.facet_type == FacetType::EVENT && !facet.content.is_empty() {
        facet.content = format!("{TAG}\n{}\n</{}", facet.content, TAG.trim_start_matches('<'));
    }
}

/// Whether facets say a text. An image has none, so nobody knows.
fn says(facets: &[Facet], text: &str) -> bool {
    !text.is_empty() && facets.iter().any(|facet| facet.content.contains(text))
}

/// A text cut where the contents of these files begin.
fn by_file(text: &str, files: &[Value]) -> Vec<Facet> {
    let mut facets: Vec<Facet> = Vec::new();
    let (mut rest, mut of) = (text, None);
    let mut add = |text: &str, path: Option<&str>| {
        let mut facet = parts::text(FacetType::EVENT, text.to_owned());
        facet.display_name = path.map(str::to_owned);
        if let Some(path) = path {
            facet.attributes.put(PATH, path);
        }
        facets.extend((!text.is_empty()).then_some(facet));
    };
    for path in files.iter().filter_map(|file| file.str_at("path")) {
        let begins = rest.find(&format!("Contents of {path}"));
        if let Some((before, after)) = begins.and_then(|at| rest.split_at_checked(at)) {
            add(before, of);
            (rest, of) = (after, Some(path));
        }
    }
    add(rest, of);
    facets
}

/// Whether a message, or a command that waited, was the user's: others come from agents and tasks.
pub(super) fn is_users(record: &Object) -> bool {
    let origin = record.get("origin").and_then(|origin| origin.str_at("kind"));
    let is_meta = record.get("isMeta").and_then(Value::as_bool) == Some(true);
    !is_meta && origin.is_none_or(|kind| matches!(kind, "human" | "user" | "cli"))
}

fn text_at<'o>(object: &'o Object, keys: &[&str]) -> Option<&'o str> {
    let mut texts = keys.iter().filter_map(|key| object.get(key)?.as_str());
    texts.find(|text| !text.is_empty())
}

/// Where what is attached stands.
fn path_of(attachment: &Object) -> Option<String> {
    text_at(attachment, &["path", "filename", "uri", "planFilePath"]).map(str::to_owned)
}

/// What a reader knows it by: the path as the user sees it, or the hook.
fn name_of(attachment: &Object) -> Option<String> {
    let keys = ["displayPath", "path", "filename", "name", "uri", "hookName", "planFilePath"];
    text_at(attachment, &keys).map(str::to_owned)
}

/// The facets of what an attachment holds: one, but where it lists several files or blocks.
fn facets(kind: &str, value: &Value) -> Vec<Facet> {
    match (kind, value) {
        ("todo_reminder" | "task_reminder", Value::Array(items)) => {
            let lines: Vec<String> = items.iter().filter_map(todo).collect();
            of_text(lines.join("\n"))
        }
        (
            "instructions" | "invoked_skills" | "relevant_memories" | "diagnostics"
            | "teammate_mailbox",
            Value::Array(items),
        ) => items.iter().filter_map(named).collect(),
        ("queued_command" | "hook_additional_context", Value::Array(blocks))
            if blocks.iter().any(|block| block.as_object().is_some()) =>
        {
            let mut draft = FrameDraft::record(Source::User, 0);
            chat::content(value.clone(), &FacetType::EVENT, &mut draft);
            draft.facets
        }
        _ => match image(value) {
            Some(image) => vec![image],
            None => of_text(text_of(value, LEVELS).unwrap_or_default()),
        },
    }
}

fn of_text(text: String) -> Vec<Facet> {
    if text.is_empty() { Vec::new() } else { vec![parts::text(FacetType::EVENT, text)] }
}

/// An element of a list of files, skills or messages, with its own name.
fn named(item: &Value) -> Option<Facet> {
    let mut facet = parts::text(FacetType::EVENT, text_of(item, LEVELS)?);
    let object = item.as_object()?;
    facet.display_name = text_at(object, &["path", "uri", "name", "from"]).map(str::to_owned);
    if let Some(path) = text_at(object, &["path", "uri"]) {
        facet.attributes.put(PATH, path);
    }
    Some(facet)
}

/// An entry of a list of what is to be done.
fn todo(item: &Value) -> Option<String> {
    let text = item.str_at("subject").or_else(|| item.str_at("content"))?;
    Some(match item.str_at("status") {
        Some(status) => format!("[{status}] {text}"),
        None => text.to_owned(),
    })
}

/// An attached image.
fn image(value: &Value) -> Option<Facet> {
    let file = value.get("file").filter(|_| value.str_at("type") == Some("image"))?;
    let data = file.str_at("base64")?;
    Some(parts::image(file.str_at("type"), Some(data), value.clone()))
}

/// All text in a value: of a list that of each element, of an object that of its first member that
/// has any.
fn text_of(value: &Value, levels: usize) -> Option<String> {
    let levels = levels.checked_sub(1)?;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let texts: Vec<String> =
                list.iter().filter_map(|value| text_of(value, levels)).collect();
            texts.join("\n")
        }
        Value::Object(object) => {
            INNER.iter().find_map(|key| text_of(object.get(key)?, levels)).unwrap_or_default()
        }
        _ => String::new(),
    };
    Some(text).filter(|text| !text.is_empty())
}
