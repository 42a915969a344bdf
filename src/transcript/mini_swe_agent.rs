//! mini-swe-agent trajectories: a chat list whose reasoning stands in a copy of the response.

use super::{chat, draft::FrameDraft, parts, sink::Sink, take};
use crate::json::{Object, ObjectExt, Value};

/// Where the provider's answer has the reasoning that `content` lacks.
const REASONING: &str = "extra.response.choices.0.message.reasoning";

/// Reads `{info, messages, trajectory_format}`. A bare list of messages is a chat list.
pub(super) struct MiniSweAgentReader;

impl MiniSweAgentReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let Some(messages) = value.get("messages").and_then(Value::as_array) else { return false };
        let has_messages = || messages.iter().any(|message| message.str_at("role").is_some());
        value.get("trajectory_format").is_some() || value.get("info").is_some() && has_messages()
    }
}

impl super::Decoder for MiniSweAgentReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Some((_, messages)) = take::document(value, "messages", line, sink) else {
            return;
        };
        for value in messages {
            match value {
                Value::Object(object)
                    if object.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    sink.push(message(object, line));
                }
                other => chat::message_or_unknown(other, line, sink),
            }
        }
    }
}

fn message(object: Object, line: u64) -> FrameDraft {
    let has_own = ["reasoning", "reasoning_content"]
        .iter()
        .any(|key| object.str_at(key).is_some_and(|text| !text.is_empty()));
    let reasoning = (!has_own).then(|| reasoning(&object)).flatten();
    let mut draft = chat::message(object, line);
    if let Some(text) = reasoning {
        // The message keeps `extra` whole; the facet says that it is a copy of what stands there.
        let mut origin = Object::new();
        origin.put("field", REASONING);
        draft.facets.insert(0, parts::with_origin(parts::thought(text), origin.into()));
    }
    draft
}

/// The reasoning of the provider's answer: its text, else the readable ones of its details.
fn reasoning(message: &Object) -> Option<String> {
    let answer = message.get("extra")?.get("response")?.get("choices")?.at(0)?.get("message")?;
    let text = answer.str_at("reasoning").or_else(|| answer.str_at("reasoning_content"));
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        return Some(text.to_owned());
    }
    let details = answer.get("reasoning_details")?.as_array()?;
    let texts = details
        .iter()
        .filter_map(|detail| detail.str_at("text").or_else(|| detail.str_at("summary")));
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn reasoning_comes_from_the_answer_and_commands_in_text_are_no_calls() {
        check(
            r#"{"info": {}, "trajectory_format": "mini-swe-agent-1", "messages": [
                 {"role": "assistant", "content": "```bash\nls\n```", "extra": {"response": {"choices": [{"message":
                   {"content": "```bash\nls\n```", "reasoning": "Hm."}}]}}},
                 {"role": "user", "content": "<returncode>0</returncode>"},
                 {"role": "assistant", "content": "B", "extra": {"response": {"choices": [{"message":
                   {"reasoning": null, "reasoning_details": [{"text": "One. "}, {"data": "x"}, {"summary": "Two."}]}}]}}},
                 {"role": "exit", "content": "done"}, {"object": "response"}]}"#,
            r#"
            mini-swe-agent
            # 1
            agent message {"extra":{"response":{"choices":[{"message":{"content":"```bash\nls\n```","reasoning":"Hm."}}]}}}
              thought "Hm." <- {"field":"extra.response.choices.0.message.reasoning"}
              speech "```bash\nls\n```"
            user message
              event "<returncode>0</returncode>"
            agent message {"extra":{"response":{"choices":[{"message":{"reasoning":null,"reasoning_details":[{"text":"One. "},{"data":"x"},{"summary":"Two."}]}}]}}}
              thought "One. Two." <- {"field":"extra.response.choices.0.message.reasoning"}
              speech "B"
            exit message
              event "done"
            environment -
              unknown (a message without a role) {"object":"response"}
            messages 4, calls 0, results 0, sessions 1, unknown 1, skipped {"info": 1, "trajectory_format": 1}
            "#,
        );
    }

    #[test]
    fn newer_versions_call_tools_and_reasoning_of_the_message_comes_first() {
        check(
            r#"{"info": {}, "messages": [
                 {"role": "assistant", "content": null, "reasoning_content": "A", "tool_calls": [{"id": "1",
                   "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}],
                  "extra": {"response": {"choices": [{"message": {"reasoning": "A"}}]}}},
                 {"role": "tool", "tool_call_id": "1", "content": "out"}]}"#,
            r#"
            mini-swe-agent
            # 1
            agent message {"form":"null","extra":{"response":{"choices":[{"message":{"reasoning":"A"}}]}}}
              thought "A" <- {"field":"reasoning_content"}
              call bash 1 {"command":"ls"}
            environment message
              result bash 1 "out"
            messages 2, calls 1, results 1, sessions 1, unknown 0, skipped {"info": 1}
            "#,
        );
    }
}
