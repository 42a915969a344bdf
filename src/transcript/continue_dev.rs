//! Sessions of Continue: messages of a chat list, with the state of their calls beside them.

use super::{
    chat,
    draft::FrameDraft,
    parts::{self, with_origin},
    sink::Sink,
    take,
};
use crate::{
    json::{Object, Value},
    veil::Source,
};

/// Reads `{sessionId, history: [{message, contextItems, toolCallStates?}]}`.
pub(super) struct ContinueReader;

impl ContinueReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let is_turn = |turn: &Value| {
            turn.get("message").is_some_and(|message| message.str_at("role").is_some())
                && turn.get("contextItems").is_some()
        };
        value.get("history").and_then(Value::as_array).is_some_and(|all| all.iter().any(is_turn))
    }
}

impl super::Decoder for ContinueReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut document = match value {
            Value::Object(document) => document,
            other => return sink.unknown(line, "no session of Continue", other),
        };
        sink.session(&take::text(&mut document, "sessionId").unwrap_or_else(|| "1".to_owned()));
        let turns = take::list(&mut document, "history").unwrap_or_default();
        document.keys().for_each(|key| sink.skip(key));
        for turn in turns {
            let Value::Object(mut turn) = turn else {
                sink.unknown(line, format!("{} is no message", turn.kind()), turn);
                continue;
            };
            match take::object(&mut turn, "message") {
                Some(message)
                    if message.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    self::turn(message, turn, line, sink);
                }
                _ => sink.unknown(line, "a message without a role", turn.into()),
            }
        }
    }
}

/// A message, and what its calls gave.
fn turn(mut message: Object, mut turn: Object, line: u64, sink: &mut Sink) {
    if let Some(calls) = message.shift_remove("toolCalls") {
        message.insert("tool_calls".to_owned(), calls);
    }
    if let Some(id) = message.shift_remove("toolCallId") {
        message.insert("tool_call_id".to_owned(), id);
    }
    let model = message.get("usage").and_then(|usage| usage.str_at("model")).map(str::to_owned);
    let states = take::list(&mut turn, "toolCallStates").unwrap_or_default();
    let mut draft = chat::message(message, line);
    draft.payload.extend(turn);
    draft.payload.extend(model.map(|model| ("model".to_owned(), model.into())));
    sink.push(draft);
    let mut results = FrameDraft::record(Source::Environment, line);
    for state in states {
        let Some(output) = state.get("output").and_then(Value::as_array) else { continue };
        let texts: Vec<&str> = output.iter().filter_map(|item| item.str_at("content")).collect();
        let status = state.str_at("status");
        let failed = matches!(status, Some("errored" | "canceled"));
        let result = parts::result(state.str_at("toolCallId"), None, texts.join("\n\n"), failed);
        results.facets.push(with_origin(result, Value::Array(output.to_vec())));
    }
    if !results.facets.is_empty() {
        sink.push(results);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn results_stand_in_the_state_of_the_calls() {
        check(
            r#"{"sessionId": "s", "title": "T", "history": [
                 {"message": {"role": "user", "content": "Look"}, "contextItems": []},
                 {"message": {"role": "assistant", "content": "I look", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
                   "usage": {"prompt_tokens": 5, "completion_tokens": 2, "model": "q"}}, "contextItems": [],
                  "toolCallStates": [{"toolCallId": "c", "status": "done", "output": [{"content": "a.txt", "name": "R"}]}, {"toolCallId": "d", "status": "calling"}]},
                 {"contextItems": []}]}"#,
            r#"
            continue
            # s
            user message {"contextItems":[]}
              event "Look"
            agent message {"usage":{"prompt_tokens":5,"completion_tokens":2,"model":"q"},"contextItems":[],"model":"q"}
              speech "I look"
              call ls c {}
            environment -
              result ls c "a.txt" <- [{"content":"a.txt","name":"R"}]
            environment -
              unknown (a message without a role) {"contextItems":[]}
            messages 2, calls 1, results 1, sessions 1, unknown 1, skipped {"title": 1}
            "#,
        );
    }
}
