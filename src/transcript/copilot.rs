//! Copilot CLI events, one a line.

use super::{
    copilot_usage::CopilotUsage,
    draft::{CompactionRecord, FrameDraft, Replaced},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, Source},
};

/// The event that a compaction ends with.
const COMPACTED: &str = "session.compaction_complete";

/// Reads lines of `{type, data, id, parentId, timestamp}`.
#[derive(Default)]
pub(super) struct CopilotReader {
    usage: CopilotUsage,
    line: u64,
    /// Where a compaction began. The session may go on meanwhile: what came later is kept.
    compacts: Option<u64>,
}

impl CopilotReader {
    pub(super) fn is_line(value: &Value) -> bool {
        let is_dotted = value.str_at("type").is_some_and(|kind| kind.contains('.'));
        is_dotted && value.get("data").is_some_and(|data| data.as_object().is_some())
    }
}

impl CopilotReader {
    /// What the program came to since it was started: a frame that shows nothing tells what the
    /// messages do not.
    fn shutdown(&mut self, event: &mut Object, line: u64, sink: &mut Sink) {
        self.without_messages(line, sink);
        let usage = event.get("data").map(|data| self.usage.shutdown(data)).unwrap_or_default();
        if usage.is_empty() {
            return sink.skip("session.shutdown");
        }
        let mut draft = FrameDraft::record(Source::Environment, line);
        (draft.uuid, draft.timestamp) = (take::text(event, "id"), take::text(event, "timestamp"));
        draft.session_usage = usage;
        sink.push(draft);
    }

    /// Gives out the usage of calls that no message shows.
    fn without_messages(&mut self, line: u64, sink: &mut Sink) {
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.session_usage = self.usage.without_messages();
        if !draft.session_usage.is_empty() {
            sink.push(draft);
        }
    }
}

impl super::Decoder for CopilotReader {
    fn finish(&mut self, sink: &mut Sink) {
        self.without_messages(self.line, sink);
    }

    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        self.line = line;
        let mut event = match value {
            Value::Object(event) => event,
            other => return sink.unknown(line, format!("{} is no event", other.kind()), other),
        };
        let Some(kind) = event.str_at("type").map(str::to_owned) else {
            return sink.unknown(line, "an event without a type", event.into());
        };
        let read: fn(&mut Object, &mut FrameDraft) = match kind.as_str() {
            "user.message" => user_message,
            "assistant.message" => assistant_message,
            "tool.execution_complete" => result,
            "system.message" => |data, draft| text(data, FacetType::SYSTEM, draft),
            "assistant.reasoning" => |data, draft| text(data, FacetType::THOUGHT, draft),
            COMPACTED => summary,
            "abort" => return sink.skip(&kind),
            "session.shutdown" => return self.shutdown(&mut event, line, sink),
            other if other.contains('.') => {
                if matches!(other, "session.start" | "session.resume") {
                    let id = event.get("data").and_then(|data| data.str_at("sessionId"));
                    if let Some(id) = id.filter(|_| sink.made() == 0) {
                        sink.session(id);
                    }
                    self.without_messages(line, sink);
                    self.usage.start(other == "session.resume");
                }
                if other == "session.compaction_start" {
                    self.compacts = Some(line);
                }
                if let ("session.usage_record", Some(data)) = (other, event.get("data")) {
                    self.usage.record(data);
                }
                return sink.skip(other);
            }
            _ => return sink.unknown(line, format!("an event of type {kind:?}"), event.into()),
        };
        let Some(Value::Object(data)) = event.get_mut("data") else {
            return sink.unknown(line, "an event without an object `data`", event.into());
        };
        let source = match kind.as_str() {
            // Skills and agents say by their name that the user does not speak.
            "user.message" if data.str_at("source").is_some_and(|of| of != "user") => {
                Source::Environment
            }
            "user.message" => Source::User,
            "system.message" => Source::System,
            "tool.execution_complete" | COMPACTED => Source::Environment,
            _ => Source::Agent,
        };
        let mut draft = FrameDraft {
            is_message: kind.ends_with(".message"),
            ..FrameDraft::message(source, line)
        };
        if kind == "assistant.message" {
            draft.add_answer(self.usage.message(data));
        }
        // The system prompt is no message, whatever its type is called.
        draft.is_message &= kind != "system.message";
        read(data, &mut draft);
        if kind == COMPACTED {
            draft.session_usage = self.usage.compaction(data);
            if let (Some(told), Some(line)) = (&mut draft.compacted, self.compacts.take()) {
                told.replaced = Replaced::BeforeLine(line);
            }
            if draft.facets.is_empty() && draft.session_usage.is_empty() {
                return sink.skip(&kind);
            }
        }
        (draft.uuid, draft.timestamp) =
            (take::text(&mut event, "id"), take::text(&mut event, "timestamp"));
        draft.payload = event;
        sink.push(draft);
    }
}

/// The text in `content`; where there is none, the member stays with the event.
fn text(data: &mut Object, facet_type: FacetType, draft: &mut FrameDraft) {
    if let Some(content) = take::text(data, "content")
        && !content.is_empty()
    {
        draft.facets.push(parts::text(facet_type, content));
    }
}

/// What the user typed; where it was rewritten, the model saw the rewritten text.
fn user_message(data: &mut Object, draft: &mut FrameDraft) {
    let typed = data.str_at("content");
    let sent = data.str_at("transformedContent").map(str::to_owned);
    match (typed, sent) {
        (Some(typed), Some(sent)) if typed != sent => {
            let mut origin = Object::new();
            origin.put("field", "transformedContent");
            data.shift_remove("transformedContent");
            draft.facets.push(with_origin(parts::text(FacetType::EVENT, sent), origin.into()));
        }
        (typed, sent) => {
            if typed.is_some() && sent.is_some() {
                data.shift_remove("transformedContent");
            }
            text(data, FacetType::EVENT, draft);
        }
    }
}

/// What the model reads in the place of what came before.
fn summary(data: &mut Object, draft: &mut FrameDraft) {
    if let Some(content) = take::text(data, "summaryContent").filter(|text| !text.is_empty()) {
        draft.facets.push(parts::text(FacetType::SUMMARY, content));
        draft.compacted = Some(CompactionRecord::of("copilot"));
    }
}

fn assistant_message(data: &mut Object, draft: &mut FrameDraft) {
    let mut origin = Object::new();
    for key in ["reasoningOpaque", "encryptedContent"] {
        if data.get(key).is_some_and(|value| !value.is_null()) {
            origin.put_some(key, data.shift_remove(key));
        }
    }
    match take::text(data, "reasoningText") {
        Some(text) => draft.facets.push(with_origin(parts::thought(text), origin.into())),
        None if origin.is_empty() => {}
        None => draft.facets.push(parts::opaque("reasoning", origin.into())),
    }
    text(data, FacetType::SPEECH, draft);
    let requests = take::list(data, "toolRequests").unwrap_or_default();
    draft.facets.extend(requests.into_iter().map(call));
}

fn call(request: Value) -> Facet {
    let Value::Object(mut request) = request else { return parts::opaque("tool request", request) };
    let (id, name) = (take::text(&mut request, "toolCallId"), take::text(&mut request, "name"));
    let arguments = Arguments::from(request.shift_remove("arguments"));
    let call = parts::call(id.as_deref(), name.as_deref().unwrap_or_default(), arguments);
    with_origin(call, request.into())
}

/// `result.content`, or, where the tool failed without one, what `error` says.
fn result(data: &mut Object, draft: &mut FrameDraft) {
    let id = take::text(data, "toolCallId");
    let code = data.get("error").and_then(|error| error.str_at("code"));
    let stated = CallOutcome::of_success_mark(data.get("success"));
    let stated = stated.max(CallOutcome::of_status(code));
    let mut field = "result";
    let mut content = match data.get_mut("result") {
        Some(Value::Object(result)) => result.shift_remove("content"),
        Some(Value::String(_)) => data.shift_remove("result"),
        _ => None,
    };
    if content.as_ref().is_none_or(Value::is_null) {
        let error = data.get("error").filter(|error| !error.is_null());
        // The error stays with the event: its message is only one of its members.
        content = error.map(|error| error.get("message").unwrap_or(error).clone());
        field = "error";
    }
    let mut origin = Object::new();
    if field == "error" && content.is_some() {
        origin.put("field", field);
    }
    let text = match content {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => {
            let text = other.to_string();
            origin.put("content", other);
            text
        }
    };
    let facet = parts::result(id.as_deref(), None, text, stated);
    draft.facets.push(with_origin(facet, origin.into()));
}

#[cfg(test)]
mod tests {
    use super::super::{Transcript, sample::check};
    use crate::veil::Compaction;

    #[test]
    fn requests_are_calls_and_completions_are_results() {
        check(
            r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e1","timestamp":"t1","parentId":null}
{"type":"system.message","data":{"content":"Be kind.","role":"system"},"id":"e2"}
{"type":"user.message","data":{"content":"List","transformedContent":"<now/>List","attachments":[]},"id":"e3","timestamp":"t3","parentId":"e2"}
{"type":"user.message","data":{"content":"Go","transformedContent":"Go"},"id":"e4"}
{"type":"assistant.message","data":{"content":"","reasoningText":"Hm.","reasoningOpaque":"xx","encryptedContent":null,"toolRequests":[{"toolCallId":"c1","name":"ls","arguments":"{\"a\":1}"},{"toolCallId":"c2","name":"ls","arguments":{}}]},"id":"e5"}
{"type":"tool.execution_start","data":{"toolCallId":"c1"},"id":"e6"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"a.txt","detailedContent":null}},"id":"e7"}
{"type":"tool.execution_complete","data":{"toolCallId":"c2","success":false,"error":{"message":"no","code":"denied"}},"id":"e8"}
{"type":"assistant.reasoning","data":{"content":"So."},"id":"e9"}
{"type":"assistant.message","data":{"content":"Done","encryptedContent":"yy","toolRequests":null,"parentToolCallId":"c9"},"id":"e10"}
{"type":"abort","data":{}}
{"type":"user.message","data":"x"}
{"type":"plain","data":{}}
[1]"#,
            r#"
            copilot
            # s
            system - e2 {"type":"system.message","data":{"role":"system"}}
              system "Be kind."
            user message e3 t3 {"type":"user.message","data":{"content":"List","attachments":[]},"parentId":"e2"}
              event "<now/>List" <- {"field":"transformedContent"}
            user message e4 {"type":"user.message","data":{}}
              event "Go"
            agent message e5 {"type":"assistant.message","data":{"encryptedContent":null}}
              thought "Hm." <- {"reasoningOpaque":"xx"}
              call ls c1 {"a":1}
              call ls c2 {}
            environment - e7 {"type":"tool.execution_complete","data":{"success":true,"result":{"detailedContent":null}}}
              result ls c1 done "a.txt"
            environment - e8 {"type":"tool.execution_complete","data":{"success":false,"error":{"message":"no","code":"denied"}}}
              result ls c2 denied "no" <- {"field":"error"}
            agent - e9 {"type":"assistant.reasoning","data":{}}
              thought "So."
            agent message e10 {"type":"assistant.message","data":{"toolRequests":null,"parentToolCallId":"c9"}}
              opaque "[reasoning, 25 bytes]" <- {"encryptedContent":"yy"}
              speech "Done"
            environment -
              unknown (an event without an object `data`) {"type":"user.message","data":"x"}
            environment -
              unknown (an event of type "plain") {"type":"plain","data":{}}
            environment -
              unknown (an array is no event) [1]
            messages 4, calls 2, results 2, sessions 1, unknown 3, skipped {"abort": 1, "session.start": 1, "tool.execution_start": 1}
            "#,
        );
    }

    #[test]
    fn a_summary_takes_the_place_of_what_came_before_it_was_begun() {
        let input = r#"{"type":"system.message","data":{"content":"Be kind."},"id":"e1"}
{"type":"user.message","data":{"content":"List"},"id":"e2"}
{"type":"session.compaction_start","data":{},"id":"e3"}
{"type":"user.message","data":{"content":"Meanwhile"},"id":"e4"}
{"type":"session.compaction_complete","data":{"success":true,"summaryContent":"A list","compactionTokensUsed":{"input":9,"output":2}},"id":"e5","timestamp":"t5"}
{"type":"session.compaction_complete","data":{"success":false,"error":"no"},"id":"e6"}"#;
        check(
            input,
            r#"
            copilot
            # 1
            system - e1 {"type":"system.message","data":{}}
              system "Be kind."
            user message e2 {"type":"user.message","data":{}}
              event "List"
            user message e4 {"type":"user.message","data":{}}
              event "Meanwhile"
            environment - e5 t5 {"type":"session.compaction_complete","sessionUsage":[{"usage":{"input":9,"output":2}}],"data":{"success":true,"compactionTokensUsed":{"input":9,"output":2}}}
              summary "A list"
            messages 2, calls 0, results 0, sessions 1, unknown 0, skipped {"session.compaction_complete": 1, "session.compaction_start": 1}
            "#,
        );
        let frames = Transcript::new(input.as_bytes()).unwrap();
        let frames: Vec<_> = frames.map(|record| record.unwrap().frame).collect();
        let told = Compaction::of(&frames[3]).unwrap().unwrap();
        assert_eq!((told.from.get(), told.to.get()), (0, 1));
    }
}
