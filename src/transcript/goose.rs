//! Sessions of goose: a line about the session, then a message on each line; or what
//! `goose session export` writes, in one document.

use super::{
    answer, chat,
    draft::{CompactionRecord, FrameDraft},
    sink::Sink,
    take,
    times::rfc3339,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::ModelAnswer,
};

/// Reads `{working_dir, …}` and `{role, created, content}` by line, and
/// `{id, working_dir, conversation: [message]}`.
#[derive(Default)]
pub(super) struct GooseReader {
    /// Whether the messages before are shown to people alone.
    is_behind: bool,
}

impl GooseReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let conversation = value.get("conversation").and_then(Value::as_array);
        value.str_at("working_dir").is_some()
            && conversation.is_some_and(|messages| messages.iter().all(is_message))
    }

    pub(super) fn is_line(value: &Value) -> bool {
        is_message(value) || value.as_object().is_some_and(is_head)
    }

    fn message(&mut self, mut message: Object, line: u64, sink: &mut Sink) {
        // Seconds since 1970.
        let created = message.get("created").and_then(Value::as_u64);
        let id = take::text_or_null(&mut message, "id");
        let shown = |key: &str| {
            let metadata = message.get("metadata").and_then(|metadata| metadata.get(key));
            metadata.and_then(Value::as_bool) != Some(false)
        };
        let (to_people, to_model) = (shown("userVisible"), shown("agentVisible"));
        if let Some(Value::Array(content)) = message.get_mut("content") {
            leave_to_people(content, sink);
        }
        let mut draft = chat::message(message, line);
        draft.uuid = id;
        draft.timestamp = created.and_then(|time| time.checked_mul(1_000_000_000)).map(rfc3339);
        if draft.timestamp.is_some() {
            draft.payload.shift_remove("created");
        }
        // A summary is shown to the model alone, and what it replaced to people alone.
        if self.is_behind && to_model && !to_people {
            let mut texts = draft.facets.iter_mut();
            if let Some(text) = texts.find(|facet| !facet.content.is_empty()) {
                text.facet_type = FacetType::SUMMARY;
                draft.compacted = Some(CompactionRecord::of("goose"));
            }
        }
        self.is_behind = !to_model;
        sink.push(draft);
    }
}

/// Takes out what the model does not read: parts of a message and of results that name their audience
/// without it.
fn leave_to_people(content: &mut Vec<Value>, sink: &mut Sink) {
    content.retain_mut(|part| {
        let audience = part.get("annotations").and_then(|of| of.get("audience")?.as_array());
        if audience.is_some_and(|of| !of.iter().any(|of| of.as_str() == Some("assistant"))) {
            sink.skip("content for the user alone");
            return false;
        }
        if let Value::Object(part) = part
            && let Some(Value::Object(result)) = part.get_mut("toolResult")
        {
            let inner = match result.get_mut("value") {
                Some(Value::Object(value)) => value.get_mut("content"),
                value => value,
            };
            if let Some(Value::Array(inner)) = inner {
                leave_to_people(inner, sink);
            }
        }
        true
    });
}

/// A message: goose alone writes down when it was made.
fn is_message(value: &Value) -> bool {
    let has_time = value.get("created").is_some_and(|time| time.as_u64().is_some());
    value.str_at("role").is_some()
        && has_time
        && value.get("content").is_some_and(|content| content.as_array().is_some())
}

/// The line about the session.
fn is_head(head: &Object) -> bool {
    head.str_at("working_dir").is_some() && head.contains_key("message_count")
}

impl super::Decoder for GooseReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        match value {
            Value::Object(mut head) if is_head(&head) || head.contains_key("conversation") => {
                sink.session(head.str_at("id").unwrap_or("1"));
                let messages = take::list(&mut head, "conversation").unwrap_or_default();
                let mut draft = FrameDraft::of_record(line, None, Object::new());
                draft.session_usage.extend(sums(&head));
                draft.payload.put("record", head);
                sink.push(draft);
                for message in messages {
                    self.record(message, line, sink);
                }
            }
            Value::Object(message) if message.str_at("role").is_some() => {
                self.message(message, line, sink);
            }
            other => chat::message_or_unknown(other, line, sink),
        }
    }
}

/// The usage of all answers together, if the head states it. The usage of the newest answer alone is not
/// taken.
fn sums(head: &Object) -> Option<ModelAnswer> {
    let mut usage = Object::new();
    for (own, known) in [
        ("accumulated_input_tokens", "prompt_tokens"),
        ("accumulated_output_tokens", "completion_tokens"),
        ("accumulated_cost", "cost"),
    ] {
        usage.put_some(known, head.get(own).filter(|value| !value.is_null()).cloned());
    }
    let model = head.get("model_config").and_then(|model| model.get("model_name"));
    (!usage.is_empty()).then(|| answer::of(model, Some(&usage.into())))
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn messages_by_line_stand_behind_what_is_said_of_the_session() {
        check(
            r#"
{"working_dir": "/w", "description": "Tides", "message_count": 4, "total_tokens": 9, "accumulated_input_tokens": 20, "accumulated_output_tokens": 3}
{"id": "m1", "role": "user", "created": 5, "content": [{"type": "text", "text": "When?"}], "metadata": {"userVisible": true, "agentVisible": false}}
{"role": "assistant", "created": 6, "content": [{"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "tide", "arguments": {"day": 1}}}}], "metadata": {"userVisible": true, "agentVisible": false}}
{"role": "user", "created": 7, "content": [{"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "14:20"}], "isError": false}}}], "metadata": {"userVisible": true, "agentVisible": false}}
{"role": "user", "created": 8, "content": [{"type": "text", "text": "So far"}], "metadata": {"userVisible": false, "agentVisible": true}}
{"role": "assistant", "created": 9, "content": [{"type": "systemNotification", "notificationType": "inlineMessage", "msg": "compacted"}]}
5"#,
            r#"
            goose
            # 1
            environment - {"sessionUsage":[{"usage":{"input":20,"output":3}}],"record":{"working_dir":"/w","description":"Tides","message_count":4,"total_tokens":9,"accumulated_input_tokens":20,"accumulated_output_tokens":3}}
            user message m1 1970-01-01T00:00:05Z {"form":"parts","metadata":{"userVisible":true,"agentVisible":false}}
              event "When?" <- {"type":"text"}
            agent message 1970-01-01T00:00:06Z {"form":"parts","metadata":{"userVisible":true,"agentVisible":false}}
              call tide c {"day":1} <- {"status":"success"}
            user message 1970-01-01T00:00:07Z {"form":"parts","metadata":{"userVisible":true,"agentVisible":false}}
              result tide c done "" <- {"status":"success","beside":{"isError":false},"form":"parts"}
                result - - "14:20" <- {"type":"text"}
            user message 1970-01-01T00:00:08Z {"form":"parts","metadata":{"userVisible":false,"agentVisible":true}}
              summary "So far" <- {"type":"text"}
            agent message 1970-01-01T00:00:09Z {"form":"parts"}
              opaque "[systemNotification, 82 bytes]" <- {"type":"systemNotification","notificationType":"inlineMessage","msg":"compacted"}
            environment -
              unknown (a number is no message) 5
            messages 5, calls 1, results 1, sessions 1, unknown 1, skipped {}
            "#,
        );
    }

    #[test]
    fn what_people_alone_are_shown_is_left_out_and_resources_are_text() {
        check(
            r#"
{"role": "user", "created": 5, "content": [{"type": "text", "text": "Look"}, {"type": "text", "text": "Hello!", "annotations": {"audience": ["user"]}}]}
{"role": "assistant", "created": 6, "content": [{"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "ls", "arguments": {}}}}]}
{"role": "user", "created": 7, "content": [{"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "a.txt", "annotations": {"audience": ["assistant", "user"]}}, {"type": "text", "text": "a.txt:", "annotations": {"audience": ["user"], "priority": 0.2}}, {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "buoys"}}]}}}]}
{"role": "user", "created": 8, "content": [{"type": "toolResponse", "id": "d", "toolResult": {"status": "success", "value": [{"type": "text", "text": "b", "annotations": {"audience": []}}]}}]}"#,
            r#"
            goose
            # 1
            user message 1970-01-01T00:00:05Z {"form":"parts"}
              event "Look" <- {"type":"text"}
            agent message 1970-01-01T00:00:06Z {"form":"parts"}
              call ls c {} <- {"status":"success"}
            user message 1970-01-01T00:00:07Z {"form":"parts"}
              result ls c done "" <- {"status":"success","form":"parts"}
                result - - "a.txt" <- {"type":"text","annotations":{"audience":["assistant","user"]}}
                result - - "buoys" <- {"type":"resource","resource":{"uri":"file:///a.txt"}}
            user message 1970-01-01T00:00:08Z {"form":"parts"}
              result - d done "" <- {"status":"success","form":"parts"}
            messages 4, calls 1, results 2, sessions 1, unknown 0, skipped {"content for the user alone": 3}
            "#,
        );
    }

    #[test]
    fn an_export_is_one_document() {
        check(
            r#"{"id": "s", "working_dir": "/w", "name": "Tides", "accumulated_input_tokens": 20, "model_config": {"model_name": "m"},
               "conversation": [{"role": "user", "created": 5, "content": [{"type": "text", "text": "When?"}]}]}"#,
            r#"
            goose
            # s
            environment - {"sessionUsage":[{"model":"m","usage":{"input":20}}],"record":{"id":"s","working_dir":"/w","name":"Tides","accumulated_input_tokens":20,"model_config":{"model_name":"m"}}}
            user message 1970-01-01T00:00:05Z {"form":"parts"}
              event "When?" <- {"type":"text"}
            messages 1, calls 0, results 0, sessions 1, unknown 0, skipped {}
            "#,
        );
    }
}
