//! Codex rollouts: items of the Responses API by line, among what the program notes for itself.

use std::sync::Arc;

use super::{
    branches::Branches,
    chat,
    codex_answer::CodexAnswer,
    codex_fork::CodexFork,
    codex_turns::CodexTurns,
    draft::{CompactionRecord, FrameDraft},
    items, parts,
    recent::Recent,
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{self, Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, Source},
};

/// Records of a rollout that no frame holds: metadata, or what repeats other records.
const METADATA: [&str; 5] = [
    "turn_context",
    "event_msg",
    "world_state",
    "inter_agent_communication_metadata",
    "token_usage_record",
];

/// Those of them that report what an answer cost.
const USAGE: [&str; 2] = ["event_msg/token_count", "token_usage_record"];

/// The end of a turn, which may say what the turn cost.
const TURN_ENDED: &str = "event_msg/turn.completed";

/// By which the user took turns back.
const ROLLED_BACK: &str = "event_msg/thread_rolled_back";

type Operator = Vec<(u64, Arc<[Facet]>)>;

/// Reads rollouts, and the older files whose items stand on the lines themselves.
#[derive(Default)]
pub(super) struct CodexReader {
    has_session: bool,
    answer: CodexAnswer,
    turns: CodexTurns,
    branches: Branches,
    fork: CodexFork,
    /// The operator's messages in the context, by their frames; and those before each compaction, by the
    /// first frame that it told.
    operator: Operator,
    compacted: Vec<(u64, Operator)>,
    /// What the program noted of how calls ended, by their ids.
    ended: Recent<CallOutcome>,
}

impl CodexReader {
    /// A record of a rollout, or one of the flat shape that no other format has.
    pub(super) fn is_line(value: &Value) -> bool {
        let has_object =
            |key: &str| value.get(key).is_some_and(|value| value.as_object().is_some());
        match value.str_at("type") {
            Some(_) if has_object("payload") => true,
            Some("message") => items::is_telling(value),
            Some(kind) => kind.starts_with("function_call") && value.str_at("call_id").is_some(),
            None => value.str_at("record_type").is_some() || is_header(value),
        }
    }

    /// An item of the session.
    fn item(&mut self, item: Value, line: u64, timestamp: Option<String>, sink: &mut Sink) {
        match items::draft(item, line) {
            Ok(mut draft) => {
                for facet in draft.facets.iter_mut().filter(|facet| facet.is_result()) {
                    let noted = facet.call_id().and_then(|id| self.ended.get(id));
                    let stated = noted.unwrap_or_default().max(outcome_in(&facet.content));
                    parts::complete_result(facet, None, None, stated);
                }
                if CodexTurns::may_begin(&draft) {
                    self.answer.give(sink);
                    let frame = sink.next_frame();
                    self.turns.push(&mut draft, frame);
                    if draft.source == Source::System {
                        self.operator.push((frame, draft.facets.as_slice().into()));
                    }
                } else {
                    self.turns.go_on();
                }
                let timestamp = timestamp.or(draft.timestamp);
                self.answer.push(FrameDraft { timestamp, ..draft }, sink);
            }
            Err((reason, item)) => {
                self.answer.give(sink);
                sink.unknown(line, reason, item);
            }
        }
    }

    /// The last turns leave the context. Where there are fewer, all of them do, as in the program.
    fn roll_back(
        &mut self,
        payload: Object,
        line: u64,
        timestamp: Option<String>,
        sink: &mut Sink,
    ) {
        self.answer.give(sink);
        let count = payload.get("num_turns").and_then(Value::as_u64);
        let (undone, wrong) = self.turns.undone(count);
        wrong.into_iter().for_each(|wrong| sink.note(line, wrong));
        let Some((at, cut)) = undone else { return sink.skip(ROLLED_BACK) };
        let draft = FrameDraft::of_record(line, timestamp, payload);
        if sink.take_back(&mut self.branches, (cut, &[]), ROLLED_BACK, draft) {
            self.turns.leave(at);
            while let Some((_, before)) = self.compacted.pop_if(|(told, _)| *told >= cut) {
                self.operator = before;
            }
            self.operator.retain(|(frame, _)| *frame < cut);
        }
    }

    /// Has the operator's messages read as these from here on, in order: the edits of those before.
    /// Items beyond them become frames. Without any, those before stay: older versions write none.
    fn replace_operator(
        &mut self,
        items: Vec<Value>,
        line: u64,
        timestamp: Option<&String>,
        sink: &mut Sink,
    ) -> Vec<(u64, Vec<Facet>)> {
        if items.is_empty() {
            return Vec::new();
        }
        self.compacted.push((sink.next_frame(), self.operator.clone()));
        let mut before = std::mem::take(&mut self.operator).into_iter();
        let mut edits = Vec::new();
        for item in items {
            let draft = match items::draft(item, line) {
                Ok(draft) => draft,
                Err((reason, item)) => {
                    sink.unknown(line, reason, item);
                    continue;
                }
            };
            let facets: Arc<[Facet]> = draft.facets.as_slice().into();
            let frame = if let Some((frame, known)) = before.next() {
                edits.extend((known != facets).then_some((frame, draft.facets)));
                frame
            } else {
                let frame = sink.next_frame();
                let timestamp = timestamp.cloned();
                sink.push(FrameDraft { timestamp, is_message: false, ..draft });
                frame
            };
            self.operator.push((frame, facets));
        }
        edits.extend(before.map(|(frame, _)| (frame, Vec::new())));
        edits
    }

    /// What stood in place of all items before it, told by a frame that shows nothing: the messages of
    /// the file are repeated there, and show themselves already. No block stands for the operator's.
    fn compacted(
        &mut self,
        mut payload: Object,
        line: u64,
        timestamp: Option<String>,
        sink: &mut Sink,
    ) {
        let mut summary = Facet::new("", FacetType::SUMMARY, "");
        let mut edits = Vec::new();
        match payload.shift_remove("replacement_history") {
            Some(Value::Array(items)) if !items.is_empty() => {
                let (own, items): (Vec<_>, Vec<_>) = items.into_iter().partition(is_operators);
                edits = self.replace_operator(own, line, timestamp.as_ref(), sink);
                summary.children =
                    items.into_iter().flat_map(|item| replacement(item, line)).collect();
            }
            _ => summary.content = take::text(&mut payload, "message").unwrap_or_default(),
        }
        if summary.content.is_empty() && summary.children.is_empty() && edits.is_empty() {
            return sink.skip("compacted");
        }
        let told = CompactionRecord { summary: Some(summary), ..CompactionRecord::of("codex") };
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.timestamp = timestamp;
        draft.payload.put("record", payload);
        draft.compacted = Some(told);
        draft.edits = edits;
        sink.push(draft);
    }

    /// What the program notes for itself: of it, the model and the usage of answers are kept.
    fn note(
        &mut self,
        kind: &str,
        payload: Value,
        (line, timestamp): (u64, Option<String>),
        sink: &mut Sink,
    ) {
        let inner = payload.str_at("type").map(|inner| format!("{kind}/{inner}"));
        let kind = inner.unwrap_or_else(|| kind.to_owned());
        let is_usage = USAGE.contains(&kind.as_str());
        match payload {
            Value::Object(payload) if is_usage || kind == TURN_ENDED => {
                let at = (line, timestamp);
                let is_new = if is_usage {
                    self.answer.report(payload, at, sink)
                } else {
                    self.answer.end_turn(&payload, at, sink)
                };
                if is_new {
                    self.fork.answer();
                } else {
                    sink.skip(&kind);
                }
            }
            Value::Object(payload) if kind == ROLLED_BACK => {
                self.roll_back(payload, line, timestamp, sink);
            }
            payload => {
                if kind == "turn_context" {
                    self.answer.turn(&payload);
                } else if let Some(id) = payload.str_at("call_id") {
                    self.ended.insert(id, outcome_noted(&payload));
                }
                sink.skip(&kind);
            }
        }
    }

    /// The first session of the file is its own; those that follow are what it was forked from.
    fn session(&mut self, mut meta: Object, kind: &str, line: u64, sink: &mut Sink) {
        sink.skip(kind);
        if std::mem::replace(&mut self.has_session, true) {
            return;
        }
        sink.session(meta.str_at("id").unwrap_or("1"));
        let instructions = match meta.shift_remove("base_instructions") {
            Some(Value::Object(mut base)) => base.shift_remove("text"),
            other => other,
        };
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let instructions = instructions
            .filter(is_text)
            .or_else(|| meta.shift_remove("instructions").filter(is_text));
        if let Some(instructions) = instructions {
            chat::system_prompt(instructions, line, sink);
        }
    }
}

/// Whether the operator said it.
fn is_operators(item: &Value) -> bool {
    matches!(item.str_at("role"), Some("system" | "developer"))
}

/// The facets of an item that stood in place of others. A call is quoted, since it is none any more.
fn replacement(item: Value, line: u64) -> Vec<Facet> {
    let kind = item.str_at("type").unwrap_or("item").to_owned();
    let is_exchange = |facet: &Facet| facet.call().is_some() || facet.is_result();
    match items::draft(item.clone(), line) {
        Ok(draft) if !draft.facets.iter().any(is_exchange) => draft.facets,
        _ => vec![parts::opaque(&kind, item)],
    }
}

/// What the program notes of how a call ended, for itself.
fn outcome_noted(payload: &Value) -> CallOutcome {
    let is_error = |result: &Value| {
        result.get("Err").is_some() || result.pointer("/Ok/isError") == Some(&true.into())
    };
    let exit = payload.get("exit_code").map(|code| (code.as_u64() != Some(0)).into());
    CallOutcome::of_status(payload.str_at("status"))
        .max(CallOutcome::of_success_mark(payload.get("success")))
        .max(CallOutcome::of_error_mark(exit.as_ref()))
        .max(CallOutcome::failed_if(payload.get("result").is_some_and(is_error)))
}

/// What the program writes of how a call ended before its output: the status of a process, or that
/// the user refused or interrupted it.
fn outcome_in(text: &str) -> CallOutcome {
    if text.starts_with('{') && text.contains("\"exit_code\"") {
        let value = json::read(text.as_bytes()).unwrap_or_default();
        let code = value.pointer("/metadata/exit_code");
        let is_error = code.map(|code| (code.as_u64() != Some(0)).into());
        return CallOutcome::of_error_mark(is_error.as_ref());
    }
    if let Some((_, why)) = text.split_once("Rejected(").filter(|_| text.starts_with("exec")) {
        return CallOutcome::Failed.said_as(why);
    }
    let mut head = text.lines().take(6).take_while(|line| *line != "Output:");
    let code = head.find_map(|line| {
        let code = ["Exit code: ", "Process exited with code "];
        code.iter().find_map(|words| line.strip_prefix(words))?.parse::<i64>().ok()
    });
    let is_error = code.map(|code| (code != 0).into());
    CallOutcome::of_error_mark(is_error.as_ref()).max(CallOutcome::of_words(text))
}

/// The first line of the flat shape.
fn is_header(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    value.str_at("id").is_some()
        && value.str_at("timestamp").is_some()
        && (has("instructions") || has("git"))
}

impl super::Decoder for CodexReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let is_header = is_header(&value);
        let Value::Object(mut record) = value else {
            return sink.unknown(line, format!("{} is no record", value.kind()), value);
        };
        let kind = record.str_at("type").unwrap_or_default().to_owned();
        let timestamp = record.str_at("timestamp").map(str::to_owned);
        if let Some(mark) = self.fork.record(&record, line) {
            self.answer.give(sink);
            sink.push(mark);
        }
        if let Some(payload) =
            record.get_mut("payload").filter(|payload| payload.as_object().is_some())
        {
            match kind.as_str() {
                "response_item" => return self.item(payload.take(), line, timestamp, sink),
                kind if METADATA.contains(&kind) => {
                    return self.note(kind, payload.take(), (line, timestamp), sink);
                }
                _ => self.answer.give(sink),
            }
            match kind.as_str() {
                "session_meta" => {
                    if let Value::Object(meta) = payload.take() {
                        self.session(meta, &kind, line, sink);
                    }
                }
                "compacted" => match payload.take() {
                    Value::Object(payload) => self.compacted(payload, line, timestamp, sink),
                    _ => sink.skip(&kind),
                },
                kind => sink.unknown(line, format!("a record of type {kind:?}"), record.into()),
            }
        } else if record.get("record_type").is_some() {
            sink.skip("state");
        } else if kind.is_empty() && is_header {
            self.answer.give(sink);
            self.session(record, "header", line, sink);
        } else if items::is_known(&kind) && !record.contains_key("payload") {
            self.item(record.into(), line, timestamp, sink);
        } else {
            self.answer.give(sink);
            sink.unknown(
                line,
                format!("a record of type {kind:?} without a payload"),
                record.into(),
            );
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.answer.give(sink);
        self.fork.finish(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        transcript::{Transcript, testing::check},
        veil::ContextEdit,
    };

    #[test]
    fn what_the_program_notes_is_not_read_twice() {
        let report = check(
            "codex",
            r#"
{"timestamp":"t","type":"session_meta","payload":{"id":"own","base_instructions":{"text":"You are Codex."}}}
{"timestamp":"t","type":"session_meta","payload":{"id":"parent","base_instructions":{"text":"Again."}}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":null}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"f"}}
{"timestamp":"t","type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[]}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"ghost_snapshot","ghost_commit":{}}}
{"timestamp":"t","type":"novel","payload":{}}"#,
            r#"
own/system
  system "You are Codex."
own/system*
  system "rules"
own/user*
  event "hi"
  image "[image]"
own/agent
  action "" {"toolName":"exec","toolCallId":"c","parameters":{"cmd":"ls"}}
own/environment
  result "f" {"toolName":"exec","toolCallId":"c"}
own/environment
  opaque "[ghost_snapshot, 43 bytes]"
own/environment
  unknown "" {"timestamp":"t","type":"novel","payload":{}}"#,
        );
        assert_eq!(
            format!("{:?}", report.skipped),
            r#"{"compacted": 1, "event_msg/user_message": 1, "session_meta": 2}"#
        );
    }

    #[test]
    fn what_the_operator_says_after_a_compaction_is_read_in_place_of_what_was_said_before() {
        let said = |role: &str, text: &str| {
            format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}"#
            )
        };
        let item = |of: &str| format!(r#"{{"type":"response_item","payload":{of}}}"#);
        let history = [
            said("developer", "Be kind."),
            said("developer", "Ask first."),
            said("user", "We moored."),
        ];
        let lines = [
            r#"{"type":"session_meta","payload":{"id":"s","instructions":"You keep the harbour."}}"#
                .to_owned(),
            item(&said("developer", "Be brief.")),
            item(&said("user", "berth 7?")),
            format!(
                r#"{{"type":"compacted","payload":{{"message":"","replacement_history":[{}]}}}}"#,
                history.join(",")
            ),
            item(&said("user", "And 8?")),
        ];
        let lines = lines.join("\n");
        check(
            "codex",
            &lines,
            r#"
s/system
  system "You keep the harbour."
s/system*
  system "Be brief."
s/user*
  event "berth 7?"
s/system
  system "Ask first."
s/environment
s/user*
  event "And 8?""#,
        );
        let frames = Transcript::new(lines.as_bytes()).unwrap().map(|of| of.unwrap().frame);
        let edits: Vec<_> = frames.filter_map(|frame| ContextEdit::of(&frame).unwrap()).collect();
        let [edit] = &edits[..] else { panic!("{edits:?}") };
        let [(frame, facets)] = &edit.frames[..] else { panic!("{edit:?}") };
        assert_eq!((frame.get(), &*facets[0].content), (1, "Be kind."));
    }

    #[test]
    fn with_turns_that_are_taken_back_the_operators_words_of_their_compaction_go_too() {
        let said = |role: &str, text: &str| {
            format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}"#
            )
        };
        let item = |of: String| format!(r#"{{"type":"response_item","payload":{of}}}"#);
        let compacted = |items: &[String]| {
            let items = items.join(",");
            format!(
                r#"{{"type":"compacted","payload":{{"message":"","replacement_history":[{items}]}}}}"#
            )
        };
        let [brief, kind] = ["Be brief.", "Be kind."].map(|text| said("developer", text));
        let lines = [
            r#"{"type":"session_meta","payload":{"id":"s"}}"#.to_owned(),
            item(brief),
            item(said("user", "berth 7?")),
            item(said("user", "berth 8?")),
            compacted(&[kind.clone(), said("user", "We moored.")]),
            r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#
                .to_owned(),
            compacted(&[kind]),
        ];
        let lines = lines.join("\n");
        let frames = Transcript::new(lines.as_bytes()).unwrap().map(|of| of.unwrap().frame);
        let edits = frames.filter_map(|frame| ContextEdit::of(&frame).unwrap());
        let texts: Vec<_> = edits.map(|edit| edit.frames[0].1[0].content.clone()).collect();
        assert_eq!(texts, ["Be kind."; 2]);
    }

    #[test]
    fn in_old_files_the_items_stand_on_the_lines() {
        check(
            "codex",
            r#"
{"id":"old","timestamp":"t","instructions":"Be Codex.","git":{}}
{"record_type":"state"}
{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hi"}]}
{"record_type":"state"}
{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"content":null}
{"type":"event_msg"}"#,
            r#"
old/system
  system "Be Codex."
old/user*
  event "hi"
old/agent
  thought "hm"
old/environment
  unknown "" {"type":"event_msg"}"#,
        );
    }
}
