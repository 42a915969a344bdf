//! Sessions of pi.

use indexmap::IndexMap;

use super::{
    answer,
    branches::{Parent, RecordTree},
    chat,
    draft::{CompactionRecord, FrameDraft, Replaced},
    parts::{self, with_origin},
    recent::Recent,
    sink::Sink,
    take, times,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, ModelAnswer, Source},
};

/// Records that are known and that no frame holds.
const METADATA: [&str; 6] =
    ["session", "model_change", "thinking_level_change", "custom", "label", "session_info"];

/// What the model is told before a summary: of what was compacted, and of a branch that was left.
const COMPACTED: &str =
    "The conversation history before this point was compacted into the following summary:";
const LEFT: &str = "The following is a summary of a branch that this conversation came back from:";

/// The members of a tool that a provider is sent.
const SENT: [&str; 3] = ["name", "description", "parameters"];

/// Reads the entries of a session.
#[derive(Default)]
pub(super) struct PiReader {
    has_session: bool,
    entries: u64,
    /// The line of an entry, by its index (as `#7`) and by its id.
    lines: Recent<u64>,
    /// The session, and its branches.
    name: Option<String>,
    tree: RecordTree,
    /// The system prompt in force, with its frame, and the tools.
    system: Option<(u64, String)>,
    tools: IndexMap<String, Value>,
    /// The model that answered last, and whether it did by an API of chat completions.
    model: Option<Value>,
    is_chat: bool,
    /// The session that it was forked from, and when.
    forked_from: Option<String>,
    forked_at: Option<i64>,
}

impl PiReader {
    /// The first line of a session, or a message in an envelope of its own type.
    pub(super) fn is_line(value: &Value) -> bool {
        match value.str_at("type") {
            Some("session") => value.str_at("cwd").is_some() && value.str_at("id").is_some(),
            Some("message") => {
                value.get("message").is_some_and(|message| message.str_at("role").is_some())
            }
            _ => false,
        }
    }

    /// Remembers where an entry stands.
    fn note(&mut self, record: &Object, line: u64, sink: &mut Sink) {
        self.lines.insert(&format!("#{}", self.entries), line);
        if let Some(id) = record.str_at("id") {
            self.lines.insert(id, line);
        }
        self.entries += 1;
        if record.str_at("type") == Some("session") {
            return;
        }
        let id = record.str_at("id");
        let parent = match record.get("parentId") {
            Some(Value::Null) => Parent::Root,
            parent => Parent::from(parent.and_then(Value::as_str)),
        };
        self.tree.take(self.name.as_deref().unwrap_or("1"), id, parent, line, sink);
    }

    /// A system prompt in sections, which takes the place of the one before it; `None` where it says
    /// the same again. The tools that it adds are kept with those before.
    fn system(&mut self, mut message: Object, line: u64, sink: &mut Sink) -> Option<FrameDraft> {
        let mut text = match message.get("content") {
            Some(Value::String(content)) => vec![content.clone()],
            _ => Vec::new(),
        };
        text.retain(|content| !content.is_empty());
        if let Some(sections) = take::object(&mut message, "sections") {
            text.extend(sections.values().filter_map(Value::as_str).map(str::to_owned));
        }
        let text = text.join("\n\n");
        let tools = self.tools.clone();
        let removed = take::list(&mut message, "toolsRemoved").unwrap_or_default();
        for name in removed.iter().filter_map(Value::as_str) {
            self.tools.shift_remove(name);
        }
        for mut tool in take::list(&mut message, "toolsAdded").unwrap_or_default() {
            // What else it has is for the client alone.
            if let Value::Object(members) = &mut tool {
                members.retain(|key, _| SENT.contains(&key.as_str()));
            }
            let name = tool.str_at("name").unwrap_or_default().to_owned();
            self.tools.insert(name, tool);
        }
        let is_same = self.system.as_ref().is_some_and(|(_, before)| *before == text);
        if is_same && tools == self.tools {
            return None;
        }
        let mut draft = FrameDraft::record(Source::Environment, line);
        if !is_same {
            message.put("content", text.as_str());
            draft = chat::message(message, line);
            let before = self.system.replace((sink.next_frame(), text));
            draft.edits.extend(before.map(|(frame, _)| (frame, Vec::new())));
        }
        if !self.tools.is_empty() {
            draft.payload.put("tools", self.tools.values().cloned().collect::<Value>());
        }
        Some(draft)
    }

    /// What is read of an earlier message from here on: another one, or nothing.
    fn edit(&self, mut record: Object, line: u64, sink: &mut Sink) -> Option<FrameDraft> {
        let replacement = record.shift_remove("replacement");
        let facets = match replacement {
            Some(Value::Object(of)) if of.get("role").is_some() => message(of, line).facets,
            None | Some(Value::Null) => Vec::new(),
            Some(other) => vec![parts::opaque("replacement", other)],
        };
        let target = record.str_at("targetId");
        let session = self.name.as_deref().unwrap_or("1");
        let at = target.and_then(|id| self.lines.get(id));
        let Some(frame) = at.and_then(|at| sink.frame_at(session, at)) else {
            sink.note(line, "edits a message that the session does not hold");
            return None;
        };
        let timestamp = record.str_at("timestamp").map(str::to_owned);
        let edits = vec![(frame, facets)];
        Some(FrameDraft { edits, ..FrameDraft::of_record(line, timestamp, record) })
    }

    /// What the request for a summary used, unless a fork copied it: it is in no message.
    fn usage_of_summary(&self, record: &Object) -> Option<ModelAnswer> {
        let written = times::of_record(record);
        let forked_at = self.forked_from.as_ref().and(self.forked_at);
        let is_copy = written.zip(forked_at).is_some_and(|(written, at)| written < at);
        let usage = record.get("usage").filter(|_| !is_copy)?;
        let said = answer::of(self.model.as_ref(), Some(usage));
        said.usage.is_some().then_some(said)
    }

    /// Says of an answer that it is a copy: it is older than the session, which was forked.
    fn note_copy(&mut self, record: &Object, draft: &mut FrameDraft, sink: &mut Sink) {
        let Some(from) = self.forked_from.as_deref().filter(|_| draft.source == Source::Agent)
        else {
            return;
        };
        let of_entry = times::of_record(record);
        let of_message = draft.payload.get("timestamp").and_then(Value::as_u64);
        let written = of_entry.or_else(|| i64::try_from(of_message?).ok());
        match written.zip(self.forked_at) {
            Some((written, at)) if written < at => {
                let copied = Some(CopyOf { session: Some(from.into()) });
                draft.add_answer(ModelAnswer { copied, ..ModelAnswer::default() });
            }
            Some(_) => {}
            None => {
                let says = "no times tell its own answers from those that it copied";
                sink.note(draft.line, &format!("forked from {from}, and {says}: all are counted"));
                self.forked_from = None;
            }
        }
    }

    /// What a compaction says of the entries before it: older versions name the first that was
    /// kept by its index, newer ones by its id.
    fn compacted(&self, record: &Object) -> CompactionRecord {
        let by_id = record.str_at("firstKeptEntryId");
        let by_index = record.get("firstKeptEntryIndex").and_then(Value::as_u64);
        let kept_from = match (by_id, by_index) {
            (Some(id), _) => self.lines.get(id),
            (None, Some(index)) => self.lines.get(&format!("#{index}")),
            (None, None) => None,
        };
        let replaced = kept_from.map_or(Replaced::All, Replaced::BeforeLine);
        CompactionRecord { replaced, ..CompactionRecord::of("pi") }
    }
}

impl super::Decoder for PiReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Value::Object(mut record) = value else {
            return sink.unknown(line, format!("{} is no record", value.kind()), value);
        };
        self.note(&record, line, sink);
        let kind = record.str_at("type").unwrap_or_default().to_owned();
        let draft = match kind.as_str() {
            "session" => {
                if !std::mem::replace(&mut self.has_session, true) {
                    let name = record.str_at("id").unwrap_or("1");
                    self.name = Some(name.to_owned());
                    sink.session(name);
                    self.forked_from = parent_of(&record);
                    self.forked_at = times::of_record(&record);
                }
                return sink.skip("session");
            }
            "message" => match record.shift_remove("message") {
                Some(Value::Object(inner)) if is_system(&inner) => {
                    let Some(draft) = self.system(inner, line, sink) else {
                        return sink.skip("system");
                    };
                    draft
                }
                // The model is told nothing of it: the user typed `!!` before the command.
                Some(inner) if inner.get("excludeFromContext") == Some(&Value::Bool(true)) => {
                    return sink.skip("bashExecution that is kept from the model");
                }
                Some(Value::Object(inner))
                    if inner.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    self.model = inner.get("model").cloned().or(self.model.take());
                    let asked = asked(&inner);
                    if inner.str_at("role") == Some("assistant") {
                        self.is_chat = is_chat(&inner);
                    }
                    let is_result = inner.str_at("role") == Some("toolResult");
                    let mut draft = message(inner, line);
                    if is_result && self.is_chat {
                        // One text is sent as a text.
                        draft.payload.shift_remove("form");
                    }
                    draft.add_answer(asked);
                    self.note_copy(&record, &mut draft, sink);
                    draft
                }
                inner => {
                    record.put_some("message", inner);
                    return sink.unknown(line, "a message without a role", record.into());
                }
            },
            "compaction" | "branch_summary" => match take::text(&mut record, "summary") {
                Some(mut summary) => {
                    // Versions that write their prompts down tell the model so.
                    if self.system.is_some() {
                        let intro = if kind == "compaction" { COMPACTED } else { LEFT };
                        summary = format!("{intro}\n\n<summary>\n{summary}\n</summary>");
                    }
                    let facets = vec![parts::text(FacetType::SUMMARY, summary)];
                    let compacted = (kind == "compaction").then(|| self.compacted(&record));
                    FrameDraft {
                        facets,
                        compacted,
                        session_usage: self.usage_of_summary(&record).into_iter().collect(),
                        ..FrameDraft::record(Source::Environment, line)
                    }
                }
                None => return sink.unknown(line, "a summary without text", record.into()),
            },
            "context_edit" => {
                let Some(draft) = self.edit(record, line, sink) else {
                    return sink.skip("context_edit");
                };
                let outside = self.tree.outside();
                return sink.push(FrameDraft { outside, ..draft });
            }
            "custom_message" => {
                let mut draft = FrameDraft::record(Source::Environment, line);
                let body = record.shift_remove("content").unwrap_or_default();
                chat::content(body, &FacetType::EVENT, &mut draft);
                draft
            }
            kind if METADATA.contains(&kind) => return sink.skip(kind),
            kind => return sink.unknown(line, format!("a record of type {kind:?}"), record.into()),
        };
        let system = take::object(&mut record, "systemMessage");
        let outside = self.tree.outside();
        sink.push(FrameDraft { outside, ..described(draft, record) });
        // A compaction may begin with another prompt.
        if let Some(draft) = system.and_then(|system| self.system(system, line, sink)) {
            sink.push(FrameDraft { is_message: false, ..draft });
        }
    }
}

/// The session that a header says it was forked from: the path of its file, which is named for when it
/// began and for its id.
fn parent_of(header: &Object) -> Option<String> {
    let mut keys = ["parentSession", "branchedFrom"].into_iter();
    let path = keys.find_map(|key| header.get(key)?.as_str().filter(|path| !path.is_empty()))?;
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".jsonl").unwrap_or(name);
    Some(name.rsplit('_').next()?.to_owned())
}

/// The time of the entry, and what else it says, beside the message.
fn described(mut draft: FrameDraft, mut record: Object) -> FrameDraft {
    draft.timestamp = take::text(&mut record, "timestamp");
    draft.uuid = take::text(&mut record, "id");
    if draft.is_message {
        record.shift_remove("type");
    }
    if !record.is_empty() {
        draft.payload.put("record", record);
    }
    draft
}

/// Whether a message is a system prompt in text, or in sections.
fn is_system(message: &Object) -> bool {
    let is_text = || message.get("content").is_none_or(|content| content.as_array().is_none());
    message.str_at("role") == Some("system") && is_text()
}

/// How an answer was asked for, where the message says it by what a request of its API has.
fn asked(message: &Object) -> ModelAnswer {
    let level = message.str_at("thinkingLevel").filter(|_| is_chat(message));
    let parameters = level.map(|level| {
        let mut parameters = Object::new();
        parameters.put_some("reasoning_effort", (level != "off").then_some(level));
        Box::new(parameters)
    });
    ModelAnswer { parameters, ..ModelAnswer::default() }
}

/// Whether an answer came from an API of chat completions.
fn is_chat(message: &Object) -> bool {
    message.str_at("api") == Some("openai-completions")
}

/// An answer of chat completions: its text was sent back as one, and its reasoning in the member that
/// it came in.
fn answered(message: Object, line: u64) -> FrameDraft {
    let mut draft = chat::message_with_parts(message, line, |part, text_type| {
        let field = part.str_at("thinkingSignature").map(str::to_owned);
        let mut facet = chat::content_part(part, text_type);
        if facet.facet_type == FacetType::THOUGHT && field.is_some() {
            facet.part_mut().source.field = field.map(String::into_boxed_str);
        }
        vec![facet]
    });
    draft.payload.shift_remove("form");
    draft
}

fn message(mut message: Object, line: u64) -> FrameDraft {
    match message.str_at("role") {
        Some("toolResult") => result(message, line),
        Some("bashExecution") => bash(message, line),
        Some("custom" | "hookMessage") => {
            let mut draft = FrameDraft::message(Source::Environment, line);
            match message.shift_remove("content") {
                Some(body) => chat::content(body, &FacetType::EVENT, &mut draft),
                None => draft.payload.put("form", "absent"),
            }
            draft.payload.extend(message);
            draft
        }
        Some("assistant") if is_chat(&message) => answered(message, line),
        _ => chat::message(message, line),
    }
}

/// A message that is the result of a call.
fn result(mut message: Object, line: u64) -> FrameDraft {
    let mut draft = FrameDraft::message(Source::Environment, line);
    let id = take::text(&mut message, "toolCallId");
    let name = take::text(&mut message, "toolName");
    let stated = CallOutcome::of_error_mark(message.get("isError"));
    let mut facet = parts::result(id.as_deref(), name.as_deref(), "", stated);
    let form = match message.shift_remove("content") {
        Some(Value::String(text)) => {
            facet.content = text;
            None
        }
        Some(Value::Array(list)) => {
            let part = |part| chat::content_part(part, &FacetType::RESULT);
            facet.children = list.into_iter().map(part).collect();
            Some("parts")
        }
        Some(Value::Null) => Some("null"),
        None => Some("absent"),
        Some(other) => {
            facet.content = other.to_string();
            Some("json")
        }
    };
    draft.facets.push(facet);
    draft.payload.put_some("form", form);
    draft.payload.extend(message);
    draft
}

/// A command that the user ran, as pi tells the model of it: what it printed is none of the user's
/// words. Where in the text the output stands is in the facet's origin.
fn bash(mut message: Object, line: u64) -> FrameDraft {
    let mut draft = FrameDraft::message(Source::Environment, line);
    let command = message.str_at("command").unwrap_or_default();
    let mut text = format!("Ran `{command}`\n");
    let output = take::text(&mut message, "output").unwrap_or_default();
    let mut origin = Object::new();
    if output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str("```\n");
        origin.put("outputStart", text.len() as u64);
        origin.put("outputLength", output.len() as u64);
        text.push_str(&output);
        text.push_str("\n```");
    }
    let number = |key: &str| match message.get(key) {
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let flag = |key: &str| message.get(key).and_then(Value::as_bool) == Some(true);
    if flag("cancelled") {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = number("exitCode").filter(|code| code != "0") {
        text.push_str("\n\nCommand exited with code ");
        text.push_str(&code);
    }
    if let (true, Some(path)) = (flag("truncated"), message.str_at("fullOutputPath")) {
        text.push_str("\n\n[Output truncated. Full output: ");
        text.push_str(path);
        text.push(']');
    }
    draft.facets.push(with_origin(parts::text(FacetType::EVENT, text), origin.into()));
    draft.payload.extend(message);
    draft
}

#[cfg(test)]
mod tests {
    use crate::{
        transcript::{Transcript, testing::check},
        veil::{Branch, Compaction},
    };

    #[test]
    fn the_request_for_a_summary_is_in_the_sums_of_its_session_and_not_of_a_fork() {
        let of = |parent: &str| {
            let lines = format!(
                r#"{{"type":"session","version":3,"id":"p","timestamp":"2026-03-02T00:00:00Z","cwd":"/x"{parent}}}
{{"type":"message","id":"a","timestamp":"2026-03-01T00:00:00Z","message":{{"role":"assistant","model":"m","content":[]}}}}
{{"type":"compaction","id":"b","timestamp":"2026-03-01T00:00:01Z","summary":"so far","usage":{{"input":126400,"output":25}}}}
"#
            );
            let frames = Transcript::new(lines.as_bytes()).unwrap().map(Result::unwrap);
            let said = frames.filter_map(|of| of.frame.imported.map(|of| of.session_usage));
            said.flatten().collect::<Vec<_>>()
        };
        let [said] = <[crate::veil::ModelAnswer; 1]>::try_from(of("")).unwrap();
        assert_eq!(said.model.as_deref(), Some("m"));
        assert_eq!(said.usage.and_then(|usage| usage.input), Some(126_400));
        assert!(of(r#","parentSession":"/x/2026_q.jsonl""#).is_empty());
    }

    #[test]
    fn a_session_with_everything_in_it() {
        let report = check(
            "pi",
            r#"
{"type":"session","id":"p","timestamp":"t","cwd":"/x","branchedFrom":"y"}
{"type":"message","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"go"}],"timestamp":1}}
{"type":"message","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":""},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"},"partialJson":"{"}],"stopReason":"aborted"}}
{"type":"message","timestamp":"t","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"f"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true,"details":{}}}
{"type":"message","timestamp":"t","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"no"}}
{"type":"model_change","timestamp":"t","provider":"a","modelId":"b"}
{"type":"message","timestamp":"t","message":{"role":"bashExecution","command":"ls","output":"a\n","exitCode":2,"cancelled":false,"truncated":false}}
{"type":"message","timestamp":"t","message":{"role":"bashExecution","command":"cat key","output":"s3cret","exitCode":0,"excludeFromContext":true}}
{"type":"compaction","timestamp":"t","summary":"so far","firstKeptEntryIndex":3,"tokensBefore":9}
{"type":"custom_message","timestamp":"t","content":"from a hook","display":true}
{"type":"message","timestamp":"t","message":{"role":"hookMessage","content":"told"}}
{"type":"message","timestamp":"t"}
{"type":"novel"}"#,
            r#"
p/user*
  event "go"
p/agent*
  thought "hm"
  action "" {"toolName":"bash","toolCallId":"c","parameters":{"command":"ls"}}
p/environment*
  result "" {"toolName":"bash","toolCallId":"c","outcome":"failed"}
    result "f"
    image "[image/png, 3 bytes]"
p/agent*
p/environment*
  event "Ran `ls`\n```\na\n\n```\n\nCommand exited with code 2"
p/environment
  summary "so far"
p/environment
  event "from a hook"
p/environment*
  event "told"
p/environment
  unknown "" {"type":"message","timestamp":"t"}
p/environment
  unknown "" {"type":"novel"}"#,
        );
        assert_eq!(
            format!("{:?}", report.skipped),
            r#"{"bashExecution that is kept from the model": 1, "model_change": 1, "session": 1}"#
        );
        assert_eq!((report.sessions, report.unknown_records), (1, 2));
    }

    #[test]
    fn an_entry_that_goes_back_tells_what_is_left() {
        let entry = |id: &str, parent: &str, rest: &str| {
            format!(r#"{{"id":{id:?},"parentId":{parent},"timestamp":"t",{rest}}}"#)
        };
        let said = |id: &str, parent: &str| {
            let rest = format!(r#""type":"message","message":{{"role":"user","content":{id:?}}}"#);
            entry(id, parent, &rest)
        };
        let label = r#""type":"label","label":"x""#;
        let summary = r#""type":"branch_summary","fromId":"c","summary":"tried c""#;
        let compaction = r#""type":"compaction","summary":"so far","firstKeptEntryId":"nowhere","tokensBefore":9"#;
        let lines = [
            r#"{"type":"session","version":3,"id":"p","timestamp":"t","cwd":"/x"}"#.to_owned(),
            said("a", "null"),
            said("b", r#""a""#),
            said("c", r#""b""#),
            // The label makes the branch; the summary is its first frame.
            entry("l", r#""a""#, label),
            entry("m", r#""l""#, summary),
            said("d", r#""m""#),
            said("e", r#""c""#),
            said("f", "null"),
            entry("g", r#""f""#, compaction),
        ];
        let lines = lines.join("\n");
        let frames: Vec<_> =
            Transcript::new(lines.as_bytes()).unwrap().map(|of| of.unwrap().frame).collect();
        let outside = |at: usize| {
            let branch = Branch::of(&frames[at]).unwrap()?;
            let ranges = branch.outside.iter().map(|of| (of.start().get(), of.end().get()));
            Some(ranges.collect::<Vec<_>>())
        };
        let told: Vec<_> = (0..frames.len()).filter_map(|at| Some((at, outside(at)?))).collect();
        let expected = [(3, vec![(1, 2)]), (5, vec![(3, 4)]), (6, vec![(0, 5)])];
        assert_eq!(told, expected);
        // All that was before is replaced where what was kept is nowhere.
        let told = Compaction::of(&frames[7]).unwrap().unwrap();
        assert_eq!((told.from.get(), told.to.get()), (0, 6));
    }
}
