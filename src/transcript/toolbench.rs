//! ToolBench answers: a tree search. One of its paths is the conversation.

use super::{chat, sink::Sink, take};
use crate::json::{Object, Value};

/// Reads `answer_generation.train_messages`: the states of the search, each a list of messages.
pub(super) struct ToolBenchReader;

impl ToolBenchReader {
    pub(super) fn is_document(value: &Value) -> bool {
        states(value).is_some()
    }
}

fn states(value: &Value) -> Option<&[Value]> {
    value.get("answer_generation")?.get("train_messages")?.as_array()
}

fn take_states(answer: &mut Object) -> Option<Vec<Value>> {
    let Some(Value::Object(generation)) = answer.get_mut("answer_generation") else { return None };
    take::list(generation, "train_messages")
}

impl super::Decoder for ToolBenchReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut answer = match value {
            Value::Object(answer) => answer,
            other => return sink.unknown(line, "no ToolBench answer", other),
        };
        let Some(mut states) = take_states(&mut answer) else {
            return sink.unknown(line, "no list `answer_generation.train_messages`", answer.into());
        };
        for key in answer.keys() {
            sink.skip(key);
        }
        // The longest state is the conversation: of several, `max_by_key` gives the last.
        let length = |state: &Value| state.as_array().map(<[Value]>::len);
        let longest = (0..states.len()).max_by_key(|&index| states.get(index).and_then(length));
        let Some(index) = longest else { return };
        let longest = states.remove(index);
        let path = longest.as_array().unwrap_or_default();
        for state in &states {
            let is_on_path = state.as_array().is_some_and(|state| path.starts_with(state));
            sink.skip(if is_on_path { "earlier state" } else { "abandoned branch" });
        }
        match longest {
            Value::Array(messages) => {
                for message in messages {
                    chat::message_or_unknown(message, line, sink);
                }
            }
            other => sink.unknown(line, "a state that is no list of messages", other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn the_last_of_the_longest_states_is_the_conversation() {
        check(
            r#"{"win": true, "tree": {}, "answer_generation": {"train_messages": [
                 [{"role": "user", "content": "Go"}],
                 [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "left"}],
                 [{"role": "user", "content": "Go"},
                  {"role": "assistant", "content": "right", "function_call": {"name": "f", "arguments": "{bad"}}],
                 7]}}"#,
            r#"
            toolbench
            # 1
            user message
              event "Go"
            agent message
              speech "right"
              call f - "{bad" <- {"field":"function_call"}
            messages 2, calls 1, results 0, sessions 1, unknown 0, skipped {"abandoned branch": 2, "answer_generation": 1, "earlier state": 1, "tree": 1, "win": 1}
            "#,
        );
    }

    #[test]
    fn a_function_message_is_a_result_with_a_name_and_no_id() {
        check(
            r#"{"answer_generation": {"train_messages": [[{"role": "function", "name": "f", "content": "{}"}]]}}"#,
            r#"
            toolbench
            # 1
            environment message {"name":"f"}
              result f - "{}"
            messages 1, calls 0, results 1, sessions 1, unknown 0, skipped {"answer_generation": 1}
            "#,
        );
    }

    #[test]
    fn a_search_without_states_has_no_session() {
        check(
            r#"{"answer_generation": {"train_messages": []}}"#,
            r#"
            toolbench
            messages 0, calls 0, results 0, sessions 0, unknown 0, skipped {"answer_generation": 1}
            "#,
        );
    }
}
