//! Items of the Responses API. Codex rollouts and recorded traffic are made of them too.

use super::{chat, draft::FrameDraft, items, sink::Sink};
use crate::json::{Object, ObjectExt, Value};

/// Reads a list of items, a request (`input`), a response (`output`), or both in one object.
#[derive(Default)]
pub(super) struct ResponsesReader {
    documents: u64,
}

impl ResponsesReader {
    /// Whether a value is an object that holds items, or a list of items where one is more than a
    /// chat message.
    pub(super) fn is_document(value: &Value) -> bool {
        match value {
            Value::Array(list) => {
                list.iter().all(items::is_item) && list.iter().any(items::is_telling)
            }
            Value::Object(_) => Self::is_line(value),
            _ => false,
        }
    }

    /// A line that is a request or a response.
    pub(super) fn is_line(value: &Value) -> bool {
        let is_items = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_array)
                .is_some_and(|list| list.iter().all(items::is_item))
        };
        if value.str_at("object") == Some("response") {
            return is_items("output");
        }
        let has = |key: &str| value.get(key).is_some();
        match value.get("input") {
            Some(Value::String(_)) => is_items("output") || has("model") || has("instructions"),
            Some(Value::Array(list)) => !list.is_empty() && is_items("input"),
            _ => false,
        }
    }
}

impl super::Decoder for ResponsesReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        self.documents += 1;
        sink.session(&self.documents.to_string());
        let mut object = match value {
            Value::Array(list) => return push_all(list, line, sink),
            Value::Object(object) => object,
            other => return sink.unknown(line, format!("{} is no item", other.kind()), other),
        };
        if let Some(instructions) =
            object.shift_remove("instructions").filter(|value| !value.is_null())
        {
            chat::system_prompt(instructions, line, sink);
        }
        let mut found = false;
        for key in ["input", "output"] {
            match object.shift_remove(key) {
                Some(Value::Array(list)) => push_all(list, line, sink),
                Some(Value::String(text)) => sink.push(chat::message(user_message(text), line)),
                None | Some(Value::Null) => continue,
                Some(other) => sink.unknown(line, format!("{key} is {}", other.kind()), other),
            }
            found = true;
        }
        if !found {
            sink.unknown(line, "neither input nor output", object.into());
        }
    }
}

/// Whether a response with this status is all that there will be of it.
pub(super) fn is_over(status: &str) -> bool {
    !matches!(status, "in_progress" | "queued")
}

/// An `input` that is text is one message of the user.
pub(super) fn user_message(text: String) -> Object {
    let mut message = Object::new();
    message.put("role", "user");
    message.put("content", text);
    message
}

fn push_all(list: Vec<Value>, line: u64, sink: &mut Sink) {
    for item in list {
        push(item, line, None, sink);
    }
}

/// An item into the sink: a message, or a frame that is none.
pub(super) fn push(item: Value, line: u64, timestamp: Option<String>, sink: &mut Sink) {
    match items::draft(item, line) {
        Ok(draft) => sink.push(FrameDraft { timestamp: timestamp.or(draft.timestamp), ..draft }),
        Err((reason, item)) => sink.unknown(line, reason, item),
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::check;

    #[test]
    fn a_request_and_its_response_in_one_object() {
        check(
            "openai-responses",
            r#"{"model":"m","instructions":"Be brief.","input":"Hi","output":[
                {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"gAAA"},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yo","annotations":[]}]}]}"#,
            r#"
1/system
  system "Be brief."
1/user*
  event "Hi"
1/agent
  thought "s"
  opaque "[encrypted reasoning, 28 bytes]"
1/agent*
  speech "Yo""#,
        );
    }

    #[test]
    fn calls_and_results_are_no_messages() {
        check(
            "openai-responses",
            r#"[{"role":"user","content":"Hi"},
                {"type":"function_call","id":"f","call_id":"c","name":"get","arguments":"{\"a\": 1}"},
                {"type":"function_call_output","call_id":"c","output":"7"},
                {"type":"item_reference","id":"x"}]"#,
            r#"
1/user*
  event "Hi"
1/agent
  action "" {"toolName":"get","toolCallId":"c","arguments":"{\"a\": 1}","parameters":{"a":1}}
1/environment
  result "7" {"toolName":"get","toolCallId":"c"}
1/environment
  opaque "[item_reference, 34 bytes]""#,
        );
    }

    #[test]
    fn what_is_no_item_is_unknown() {
        let report = check(
            "openai-responses",
            r#"{"object":"response","output":[{"type":"message","content":"no role"},{"type":"shell_call","id":"s"}]}"#,
            r#"
1/environment
  unknown "" {"type":"message","content":"no role"}
1/agent
  action "" {"toolName":"shell","toolCallId":"s"}"#,
        );
        assert_eq!(report.unknown_records, 1);
    }
}
