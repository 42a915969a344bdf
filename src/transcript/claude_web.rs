//! Sessions of Claude Code on the web: the records of a session in one document.

use super::{Decoder, claude_code, sink::Sink};
use crate::json::Value;

/// Reads `{"loglines": [record]}`.
#[derive(Default)]
pub(super) struct ClaudeWebReader(claude_code::ClaudeCodeReader);

impl ClaudeWebReader {
    /// An object with `loglines`.
    pub(super) fn is_document(value: &Value) -> bool {
        value.get("loglines").is_some_and(|lines| lines.as_array().is_some())
    }
}

impl Decoder for ClaudeWebReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        match value {
            Value::Object(mut object) => match object.shift_remove("loglines") {
                Some(Value::Array(records)) => {
                    for (index, record) in records.into_iter().enumerate() {
                        self.0.record(record, index as u64 + 1, sink);
                    }
                }
                _ => sink.unknown(line, "no loglines", object.into()),
            },
            other => sink.unknown(line, format!("{} has no loglines", other.kind()), other),
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.0.finish(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::check;

    #[test]
    fn every_logline_with_a_message_is_one() {
        check(
            "claude-web",
            r#"{"loglines":[
{"type":"user","timestamp":"t","message":{"content":"a","role":"user"}},
{"type":"assistant","timestamp":"t","message":{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"Write","input":{}}]}},
{"type":"user","timestamp":"t","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"ok","is_error":false}]}},
{"type":"user","timestamp":"t","isCompactSummary":true,"message":{"content":"so far","role":"user"}}]}"#,
            r#"
1/user*
  event "a"
1/agent*
  action "" {"toolName":"Write","toolCallId":"i","parameters":{}}
1/user*
  result "ok" {"toolName":"Write","toolCallId":"i","outcome":"done"}
1/user*
  summary "so far""#,
        );
    }
}
