//! What a call does, by the shape of its arguments: which file, which command, what else.

use super::{
    Touch, contents,
    plan::{self, Item, PlanStep},
    running, script, shell,
};
use crate::{
    json::{self, Value},
    text::{
        flat, parameters,
        quote::quoted_line,
        shortened,
        words::action::{EDITORS, EDITS, PATHS, WRITERS},
    },
    veil::Call,
};

/// Longer arguments are not looked at as JSON.
const LONGEST_JSON: usize = 1 << 20;

/// The bytes of what a call was about.
const SUBJECT: usize = 140;

/// The bytes of the arguments of a call that is about neither a file nor a command.
const MEMBERS: usize = 220;

/// The bytes of the sections of a document in an argument.
const SECTIONS: usize = 240;

/// A text of so few lines is no document; of a longer one so many are looked at.
const FEW_LINES: usize = 8;
const DOCUMENT: usize = 400;

/// A first line of fewer bytes may be the beginning of a script.
const SHORT_LINE: usize = 24;

/// The names of arguments that hold a command.
const COMMANDS: [&str; 6] = ["command", "cmd", "script", "code", "shell", "commands"];

/// What says that the call writes the file as a whole.
const WHOLE: [&str; 5] = ["content", "contents", "file_text", "text", "data"];

/// The names of arguments that hold a path where it looks like one: an order has a destination
/// too.
const PLACES: [&str; 3] = ["uri", "dest", "destination"];

/// What a call is by the shape of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// It runs a command.
    Command,
    /// It names a file.
    File,
    /// It writes down a plan.
    Plan,
    Other,
}

/// A call, read.
#[derive(Debug, Default)]
pub(crate) struct Action {
    /// The file or folder that its arguments name.
    pub(crate) path: Option<String>,
    /// What it is about: a path, a command, or the first of its arguments.
    pub(crate) subject: String,
    /// The values of its arguments alone.
    pub(crate) values: String,
    pub(crate) kind: Option<CallKind>,
    /// What two calls share that do the same: the path, or the program of the command.
    pub(crate) key: String,
    pub(crate) touches: Vec<(Touch, String)>,
    pub(crate) plan: Option<Vec<Item>>,
    /// A step of the plan that it adds or changes.
    pub(crate) step: Option<PlanStep>,
    /// Whether it changes a file that it does not name: the one that is open in an editor.
    pub(crate) edits_open_file: bool,
    /// Whether nothing of it goes on once it is answered: it reads, changes or searches a file.
    pub(crate) is_at_once: bool,
    /// The ids of work that it may ask for.
    pub(crate) handles: Vec<String>,
    /// Whether it says something besides such an id.
    pub(crate) has_input: bool,
}

impl Action {
    /// Reads a call.
    pub(crate) fn of_call(call: &Call<'_>) -> Self {
        match call.parameters {
            Some(parameters) => of_value(call.name, parameters),
            None => Self::of_text(call.name, call.arguments.unwrap_or_default()),
        }
    }

    /// Reads the arguments of the call of a tool as they were rendered.
    pub(crate) fn of_text(tool: &str, text: &str) -> Self {
        match arguments(text) {
            Some(value) => of_value(tool, &value),
            None => of_words(text),
        }
    }

    /// Reads the command that stands in an agent's text.
    pub(crate) fn of_command(command: &str) -> Self {
        let mut action = Self::default();
        command_of(command, &mut action);
        action
    }

    /// What kind of call it is.
    pub(crate) fn kind(&self) -> CallKind {
        match self.kind {
            Some(kind) => kind,
            None if self.plan.is_some() || self.step.is_some() => CallKind::Plan,
            None if !self.touches.is_empty() => CallKind::File,
            None => CallKind::Other,
        }
    }

    fn complete(mut self) -> Self {
        if self.key.is_empty() {
            self.key.clone_from(&self.subject);
        }
        if self.values.is_empty() && self.kind != Some(CallKind::Command) {
            self.values.clone_from(&self.subject);
        }
        self
    }
}

fn of_value(tool: &str, value: &Value) -> Action {
    match value {
        Value::Object(_) => {
            let mut action = Action::default();
            of_members(tool, value, &mut action);
            action.handles = running::handles(value);
            action.has_input = running::has_input(value);
            action.complete()
        }
        Value::String(text) => of_words(text),
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            of_words(&words.join(" "))
        }
        value => of_words(&value.to_string()),
    }
}

/// The arguments that a text holds: JSON, or parameters in tags.
pub(crate) fn arguments(text: &str) -> Option<Value> {
    let text = text.trim();
    let mut named = parameters(text).peekable();
    if named.peek().is_some() {
        let member = |(name, value): (&str, &str)| {
            let is_nested = value.trim_start().starts_with(['{', '[']);
            let nested = is_nested.then(|| json::read(value.as_bytes()).ok()).flatten();
            (name.to_owned(), nested.unwrap_or_else(|| value.to_owned().into()))
        };
        return Some(Value::Object(named.map(member).collect()));
    }
    let may_be = text.len() <= LONGEST_JSON && text.starts_with(['{', '[', '"']);
    may_be.then(|| json::read(text.as_bytes()).ok()).flatten()
}

fn of_members(tool: &str, value: &Value, action: &mut Action) {
    let text_at = |key: &str| value.str_at(key).filter(|text| !text.trim().is_empty());
    let path = path_in(value);
    action.plan = plan::of_arguments(value, path);
    action.step = plan::step(tool, value).filter(|_| action.plan.is_none());
    let shown = path.map(quoted_line);
    let path = shown.as_deref();
    action.path = path.map(str::to_owned);
    // A list that is written to a file is a plan, and a change of the file.
    if let Some(plan) = action.plan.as_ref().filter(|_| path.is_none()) {
        action.subject = format!("plan of {} steps", plan.len());
        return;
    }
    let patch = ["patch", "input", "diff"].iter().find_map(|key| text_at(key));
    if let Some(patch) = patch.filter(|text| is_patch(text)) {
        of_patch(patch, action);
        return;
    }
    let command = command_in(value);
    match (path, command) {
        (Some(path), command) => {
            let has = |keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
            let named = tool.to_ascii_lowercase();
            let is = |words: &[&str]| words.iter().any(|word| named.contains(word));
            let verb = command.as_deref().unwrap_or_default();
            let (tool, verb_name) = (plain_name(tool), plain_name(verb));
            let named_in =
                |names: &[&str]| names.iter().any(|name| tool == *name || verb_name == *name);
            let touch = if has(&EDITS) {
                Touch::Changed
            } else if has(&WHOLE) && !is(&["search", "grep", "find"]) || named_in(&WRITERS) {
                Touch::Written
            } else if named_in(&EDITORS) {
                Touch::Changed
            } else if is(&["delete", "remove"]) {
                Touch::Deleted
            } else {
                Touch::Read
            };
            action.touches.push((touch, path.to_owned()));
            action.subject = shortened(path, SUBJECT);
            path.clone_into(&mut action.key);
            action.is_at_once = !verb.contains(char::is_whitespace);
            // A verb of an editor, or what was searched for.
            let is_verb = !verb.is_empty() && !verb.contains(char::is_whitespace);
            if is_verb {
                action.subject = format!("{verb} {}", action.subject);
            }
            if let Some(pattern) = ["pattern", "query", "regex"].iter().find_map(|key| text_at(key))
            {
                action.subject = format!("{} in {}", shortened(pattern, 60), action.subject);
                action.touches.clear();
            }
            if let Some(part) = part_of(value) {
                action.subject.push_str(&part);
            }
        }
        (None, Some(command)) => command_of(&command, action),
        (None, None) => {
            let mut room = MEMBERS;
            for (key, value) in value.as_object().into_iter().flatten() {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Object(_) | Value::Array(_) => scalars(value),
                    value => value.to_string(),
                };
                let document = document(&text);
                let is_document = document.is_some();
                let text = document.unwrap_or_else(|| shortened(&text, 60));
                let pair = format!("{key}: {text}");
                let bound = if is_document { room + SECTIONS } else { room };
                if text.trim().is_empty() || pair.len() > bound {
                    continue;
                }
                room = room.saturating_sub(pair.len());
                action.values.push_str(if action.values.is_empty() { "" } else { ", " });
                action.values.push_str(&text);
                action.subject.push_str(if action.subject.is_empty() { "" } else { ", " });
                action.subject.push_str(&pair);
            }
            action.edits_open_file = tool.to_ascii_lowercase().contains("edit")
                && EDITS.iter().any(|key| value.get(key).is_some());
        }
    }
}

/// The path in the arguments of a call.
fn path_in(arguments: &Value) -> Option<&str> {
    let text_at = |key: &&str| arguments.str_at(key).filter(|text| !text.trim().is_empty());
    let is_place = |text: &&str| text.contains(['/', '\\', '.']) && !text.contains(' ');
    let place = || PLACES.iter().filter_map(text_at).find(is_place);
    PATHS.iter().find_map(text_at).or_else(place)
}

/// The last part of a tool's name, in lower case and without the signs between its words:
/// `mcp__fs__edit_file` is `editfile`.
fn plain_name(tool: &str) -> String {
    let last = tool.rsplit(['.', ':', '/']).next().unwrap_or(tool);
    let last = last.rsplit_once("__").map_or(last, |(_, last)| last);
    last.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The command in the arguments of a call.
pub(crate) fn command_in(value: &Value) -> Option<String> {
    COMMANDS.iter().find_map(|key| match value.get(key)? {
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // `bash -lc SCRIPT` runs the script.
            let script = words.iter().position(|word| matches!(*word, "-c" | "-lc"));
            let from = script.map_or(0, |at| at + 1);
            Some(words.get(from..)?.join(" "))
        }
        value => value.as_str().map(str::to_owned),
    })
}

/// A document in an argument: its title, and its sections.
fn document(text: &str) -> Option<String> {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).take(DOCUMENT).collect();
    let title = lines.first().filter(|_| lines.len() > FEW_LINES)?;
    let held = contents::sections_in(lines.get(1..)?, SECTIONS)?;
    Some(format!("{} ({held})", shortened(title.trim_start_matches(['#', ' ']), 60)))
}

/// The lines that a call asks for.
fn part_of(value: &Value) -> Option<String> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_u64());
    if let Some(Value::Array(range)) = value.get("view_range") {
        let ends: Vec<u64> = range.iter().filter_map(Value::as_u64).collect();
        return Some(format!(":{}", ends.first()?));
    }
    number(&["offset", "start_line", "line_start", "line_number"]).map(|line| format!(":{line}"))
}

/// What a nested value holds, in one line.
fn scalars(value: &Value) -> String {
    let mut found = Vec::new();
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => waiting.extend(members.iter().map(|(_, value)| value).rev()),
            Value::Array(items) => waiting.extend(items.iter().rev()),
            Value::String(text) => found.push(text.clone()),
            value => found.push(value.to_string()),
        }
        if found.len() >= 8 {
            break;
        }
    }
    found.join(" ")
}

fn of_words(text: &str) -> Action {
    let mut action = Action::default();
    if is_patch(text) {
        of_patch(text, &mut action);
    } else {
        action.subject = shortened(text, SUBJECT);
    }
    action.complete()
}

fn command_of(command: &str, action: &mut Action) {
    action.kind = Some(CallKind::Command);
    if command.contains("*** Begin Patch") {
        of_patch(command, action);
        return;
    }
    action.touches = shell::touches(command);
    action.touches.extend(script::writes(command));
    action.key = shell::program(command);
    action.edits_open_file = shell::edits_open_file(command);
    let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = quoted_line(lines.next().unwrap_or_default());
    let first = &*first;
    let short = in_short_folder(first);
    let first = short.as_deref().unwrap_or(first);
    // `python -c '` says nothing by itself.
    let is_short = first.len() < SHORT_LINE && !first.contains("<<");
    let next = lines.clone().next().filter(|_| is_short && first.ends_with(['\'', '"']));
    action.subject = match next {
        Some(next) => shortened(&format!("{first} {next}"), SUBJECT),
        None => shortened(first, SUBJECT),
    };
    if lines.nth(usize::from(next.is_some())).is_some() && !action.subject.ends_with('…') {
        action.subject.push_str(" …");
    }
    let is_new = |(touch, path): &&(Touch, String)| {
        *touch != Touch::Read && !action.subject.contains(path.as_str())
    };
    if let Some((_, path)) = action.touches.iter().find(is_new) {
        action.subject = format!("{} writes {path}", shortened(&action.subject, SUBJECT / 2));
    }
}

/// A command that enters a folder first, with the folder's name alone: `cd quay && make`.
fn in_short_folder(line: &str) -> Option<String> {
    let (folder, rest) = line.strip_prefix("cd ")?.split_once(" && ")?;
    let is_plain = folder.starts_with(['/', '~']) && !folder.contains([' ', '"', '$']);
    let name = folder.trim_end_matches('/').rsplit('/').next()?;
    let is_name = is_plain && !matches!(name, "" | "." | "..");
    (is_name && name.len() < folder.len()).then(|| format!("cd {name} && {rest}"))
}

fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch") || text.contains("\n+++ ") || text.starts_with("--- ")
}

/// The files of a patch, in the form of `apply_patch` or of `diff -u`.
fn of_patch(patch: &str, action: &mut Action) {
    for line in patch.lines() {
        let marks = [
            ("*** Add File: ", Touch::Written),
            ("*** Update File: ", Touch::Changed),
            ("*** Delete File: ", Touch::Deleted),
            ("*** Move to: ", Touch::Written),
            ("+++ b/", Touch::Changed),
        ];
        let named = marks
            .iter()
            .find_map(|(mark, touch)| Some((*touch, line.strip_prefix(mark)?.trim().to_owned())));
        action.touches.extend(named.filter(|(_, path)| !path.is_empty()));
    }
    let paths: Vec<&str> = action.touches.iter().map(|(_, path)| path.as_str()).collect();
    action.subject = flat(&format!("patch of {}", paths.join(", ")));
    action.key = paths.first().copied().unwrap_or("patch").to_owned();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_by_the_shape_of_their_arguments() {
        let check = |tool: &str, text: &str, subject: &str, touches: &[(Touch, &str)]| {
            let action = Action::of_text(tool, text);
            let found: Vec<_> =
                action.touches.iter().map(|(t, path)| (*t, path.as_str())).collect();
            assert_eq!((action.subject.as_str(), found.as_slice()), (subject, touches), "{text}");
        };
        check(
            "Frob",
            r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#,
            "a.rs",
            &[(Touch::Changed, "a.rs")],
        );
        check("Frob", r#"{"path":"a.rs"}"#, "a.rs", &[(Touch::Read, "a.rs")]);
        check(
            "ed",
            r#"{"command":"create","path":"a","file_text":"x"}"#,
            "create a",
            &[(Touch::Written, "a")],
        );
        check("Frob", r#"{"command":"cat a.rs\nls"}"#, "cat a.rs …", &[(Touch::Read, "a.rs")]);
        check(
            "Frob",
            r#"{"command":["bash","-lc","rm b.rs"]}"#,
            "rm b.rs",
            &[(Touch::Deleted, "b.rs")],
        );
        check("Frob", r#"{"pattern":"fn a","path":"src"}"#, "fn a in src", &[]);
        check("Frob", r#"{"from":"AMS","destination":"JFK"}"#, "from: AMS, destination: JFK", &[]);
        check("Frob", r#"{"berth":7,"to":"2026-03-24"}"#, "berth: 7, to: 2026-03-24", &[]);
        check(
            "Frob",
            "*** Begin Patch\n*** Update File: d.ts\n*** End Patch",
            "patch of d.ts",
            &[(Touch::Changed, "d.ts")],
        );
        check("Frob", r#"{"command":"cd /home/ines/quay && make"}"#, "cd quay && make", &[]);
        check("Frob", r#"{"command":"cd / && make"}"#, "cd / && make", &[]);
        let plan = "# Plan: raise the gate\\n\\n## Look\\na\\nb\\n## Raise it\\nc\\nd\\ne\\nf";
        check(
            "Leave",
            &format!(r#"{{"ask":"x","plan":"{plan}"}}"#),
            "ask: x, plan: Plan: raise the gate (Look, Raise it)",
            &[],
        );
        assert!(Action::of_text("edit", r#"{"search":"a","replace":""}"#).edits_open_file);
        check("x", "<parameter name=\"path\">a.rs</parameter>", "a.rs", &[(Touch::Read, "a.rs")]);
    }
}
