//! Requests of the Messages API, and lists of its messages.

use super::{chat, sink::Sink};
use crate::json::Value;

/// Reads `{"system": …, "messages": [message]}`. The mapping is that of chat lists, which know the
/// blocks too; what is told apart here is the name.
#[derive(Default)]
pub(super) struct AnthropicReader(chat::ChatReader);

impl AnthropicReader {
    /// A chat list with a system prompt in a field of its own, or with blocks that only the
    /// Messages API has.
    pub(super) fn is_document(value: &Value) -> bool {
        chat::ChatReader::is_document(value)
            && (value.get("system").is_some_and(|system| !system.is_null()) || has_blocks(value))
    }

    /// A line that is such a document.
    pub(super) fn is_line(value: &Value) -> bool {
        value.get("messages").is_some() && Self::is_document(value)
    }
}

fn has_blocks(value: &Value) -> bool {
    let messages = chat::messages_of(value).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message.get("content")?.as_array()).flatten();
    blocks.filter_map(|block| Some((block.str_at("type")?, block))).any(
        |(kind, block)| match kind {
            "tool_use" | "server_tool_use" | "tool_result" | "thinking" | "redacted_thinking"
            | "compaction" => true,
            "image" => block.pointer("/source/type").is_some(),
            kind => kind.ends_with("_tool_result"),
        },
    )
}

impl super::Decoder for AnthropicReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        self.0.record(value, line, sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::check;

    #[test]
    fn a_system_prompt_of_its_own_is_no_message() {
        check(
            "anthropic",
            r#"{"model":"m","system":[{"type":"text","text":"Be brief."}],"messages":[
                {"role":"user","content":"Hi"},{"role":"assistant","content":[]}]}"#,
            r#"
1/system
  system "Be brief."
1/user*
  event "Hi"
1/agent*"#,
        );
    }

    #[test]
    fn blocks_of_the_messages_api_tell_its_lists() {
        check(
            "anthropic",
            r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"b"}]}]"#,
            r#"
1/agent*
  speech "a"
  action "" {"toolName":"f","toolCallId":"t","parameters":{}}
1/user*
  result "b" {"toolName":"f","toolCallId":"t"}"#,
        );
        check(
            "openai-chat",
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#,
            "1/user*\n  event \"a\"",
        );
    }
}
