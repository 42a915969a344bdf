//! SWE-agent trajectories: the conversation is `history`, and nothing else is read.

use super::{answer, chat, draft::FrameDraft, sink::Sink, take};
use crate::{
    json::{Object, Value},
    veil::{CallOutcome, ModelAnswer},
};

/// Reads `{environment, trajectory, history, info}`.
pub(super) struct SweAgentReader;

impl SweAgentReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let Some(history) = value.get("history").and_then(Value::as_array) else { return false };
        let is_message = |message: &Value| message.str_at("role").is_some();
        history.iter().any(is_message) || history.is_empty() && value.get("trajectory").is_some()
    }
}

impl super::Decoder for SweAgentReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut document = match value {
            Value::Object(document) => document,
            other => return sink.unknown(line, "no SWE-agent trajectory", other),
        };
        let Some(messages) = take::list(&mut document, "history") else {
            return sink.unknown(line, "no list `history`", document.into());
        };
        for key in document.keys() {
            sink.skip(key);
        }
        let stats = document.get("info").and_then(|info| info.get("model_stats"));
        let last = messages.len().saturating_sub(1);
        for (index, value) in messages.into_iter().enumerate() {
            let role = value.str_at("role").map(str::to_owned);
            let mut draft = match (value, role.as_deref()) {
                (Value::Object(object), Some("tool")) => result(object, line),
                (Value::Object(object), Some(_)) => chat::message(object, line),
                (other, _) => {
                    chat::message_or_unknown(other, line, sink);
                    continue;
                }
            };
            // What the session came to stands with its last message: nothing is said of each.
            let said = stats.filter(|_| index == last).map(answer::of_usage);
            let said = said.map(ModelAnswer::beside_answer).filter(|said| said.usage.is_some());
            draft.session_usage.extend(said);
            sink.push(draft);
        }
    }
}

/// A result names its call in a list. Where one observation answers several calls, it is the
/// result of the first; the list stays with the message.
fn result(object: Object, line: u64) -> FrameDraft {
    let ids = object.get("tool_call_ids");
    let id = ids.and_then(|ids| ids.at(0)).and_then(Value::as_str).map(str::to_owned);
    let mut draft = chat::message(object, line);
    chat::complete_result(&mut draft, id.as_deref(), None, CallOutcome::Unstated);
    draft
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn a_result_names_its_call_in_a_list_and_parsed_copies_are_no_calls() {
        check(
            r#"{"environment": "e", "trajectory": [{"action": "ls"}], "info": {}, "history": [
                 {"role": "system", "content": "S", "agent": "main"},
                 {"role": "assistant", "content": "Look.\nls", "thought": "Look.", "action": "ls"},
                 {"role": "user", "content": "a.txt"},
                 {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "ls", "tool_calls":
                   [{"function": {"arguments": "{}", "name": "ls"}, "id": "c1", "type": "function"}]},
                 {"role": "tool", "content": "a.txt\r\n", "tool_call_ids": ["c1"]},
                 {"role": "tool", "content": "", "tool_call_ids": []}, "x"]}"#,
            r#"
            swe-agent
            # 1
            system message {"agent":"main"}
              system "S"
            agent message {"thought":"Look.","action":"ls"}
              speech "Look.\nls"
            user message
              event "a.txt"
            agent message {"thought":"Look.","action":"ls"}
              speech "Look."
              call ls c1 {}
            environment message {"tool_call_ids":["c1"]}
              result ls c1 "a.txt\r\n"
            environment message {"tool_call_ids":[]}
              result - - ""
            environment -
              unknown (a string is no message) "x"
            messages 6, calls 1, results 2, sessions 1, unknown 1, skipped {"environment": 1, "info": 1, "trajectory": 1}
            "#,
        );
    }

    #[test]
    fn a_file_may_be_history_alone_and_history_may_be_empty() {
        let counts = |messages, sessions, skipped| {
            format!(
                "messages {messages}, calls 0, results 0, sessions {sessions}, unknown 0, skipped {skipped}"
            )
        };
        let user = "swe-agent\n# 1\nuser message\n  event \"Go\"\n";
        check(
            r#"{"history": [{"role": "user", "content": "Go"}]}"#,
            &(user.to_owned() + &counts(1, 1, "{}")),
        );
        let empty = "swe-agent\n".to_owned() + &counts(0, 0, r#"{"trajectory": 1}"#);
        check(r#"{"history": [], "trajectory": []}"#, &empty);
    }
}
