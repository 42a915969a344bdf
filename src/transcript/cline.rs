//! Sessions of Cline: messages of the Messages API, with what the client says of each beside them.

use super::{answer, chat, sink::Sink, take};
use crate::json::{Object, ObjectExt, Value, object};

/// Reads `{sessionId, messages: [message], system_prompt}`, and `[message]` of the extension of VS Code.
pub(super) struct ClineReader;

impl ClineReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let Some(messages) = chat::messages_of(value) else { return false };
        let is_message = |message: &Value| message.str_at("role").is_some();
        let is_own = |message: &Value| {
            is_message(message)
                && ["modelInfo", "metrics"].iter().any(|key| message.get(key).is_some())
        };
        value.str_at("system_prompt").is_some() && messages.iter().all(is_message)
            || messages.iter().any(is_own)
    }
}

impl super::Decoder for ClineReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let value = match value {
            Value::Array(_) => object! { "messages": value }.into(),
            other => other,
        };
        let Some((document, messages)) = take::document(value, "messages", line, sink) else {
            return;
        };
        let text = |key: &str| document.str_at(key);
        sink.session(text("sessionId").unwrap_or("1"));
        if let Some(system) = text("system_prompt") {
            chat::system_prompt(system.into(), line, sink);
        }
        for message in messages {
            match message {
                Value::Object(message)
                    if message.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    self::message(message, line, sink);
                }
                other => chat::message_or_unknown(other, line, sink),
            }
        }
    }
}

fn message(mut message: Object, line: u64, sink: &mut Sink) {
    let time = message.shift_remove("ts").filter(|time| !time.is_null());
    let id = take::text(&mut message, "id");
    let model = message.get("modelInfo");
    let model = model.and_then(|model| model.get("id").or(model.get("modelId")));
    let metrics = message.get("metrics");
    let answer = answer::of(model, metrics.and_then(usage).as_ref().or(metrics));
    if let Some(Value::Array(blocks)) = message.get_mut("content") {
        blocks.iter_mut().for_each(write_records);
    }
    let mut draft = chat::message(message, line);
    draft.add_answer(answer);
    draft.uuid = id;
    draft.timestamp = time.map(|time| match time {
        Value::String(text) => text,
        other => other.to_string(),
    });
    sink.push(draft);
}

/// The usage as the extension of VS Code states it. The prompt is said to hold what was cached; that of
/// some providers leaves it out, which shows where more was cached.
fn usage(metrics: &Value) -> Option<Value> {
    let figure = |key: &str| metrics.get("tokens")?.get(key)?.as_u64();
    let (prompt, cached) = (figure("prompt")?, figure("cached").unwrap_or(0));
    let places = ["tokens/prompt", "tokens/completion", "tokens/cached", "cost"];
    let mut usage = answer::usage_at(metrics, places)?;
    if cached > prompt
        && let Value::Object(usage) = &mut usage
    {
        usage.put("prompt_tokens", prompt.saturating_add(cached));
    }
    Some(usage)
}

/// What a tool gave as records, and not as blocks, is sent as their JSON.
fn write_records(block: &mut Value) {
    if block.str_at("type") != Some("tool_result") {
        return;
    }
    let Value::Object(block) = block else { return };
    let Some(content) = block.get_mut("content") else { return };
    let is_record = |item: &Value| item.as_object().is_some() && item.str_at("type").is_none();
    if content.as_array().is_some_and(|list| list.iter().any(is_record)) {
        *content = Value::String(content.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn the_client_says_model_usage_and_time_beside_a_message() {
        check(
            r#"{"version": 1, "sessionId": "s", "system_prompt": "Be brief.", "messages": [
                 {"id": "m1", "role": "user", "content": "Look", "ts": 1000},
                 {"id": "m2", "role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "run", "input": {}}, {"type": "novel", "x": 1}],
                  "ts": 2000, "modelInfo": {"id": "q", "provider": "p"}, "metrics": {"inputTokens": 5, "outputTokens": 2}},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"query": "ls", "result": "a.txt", "success": true}]}]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "d", "content": [{"type": "text", "text": "b"}]}]}, 5]}"#,
            r#"
            cline
            # s
            system -
              system "Be brief."
            user message m1 1000
              event "Look"
            agent message m2 2000 {"form":"parts","answer":{"model":"q","usage":{"input":5,"output":2}},"modelInfo":{"id":"q","provider":"p"},"metrics":{"inputTokens":5,"outputTokens":2}}
              call run c {}
              opaque "[novel, 22 bytes]" <- {"type":"novel","x":1}
            user message {"form":"parts"}
              result run c "[{\"query\":\"ls\",\"result\":\"a.txt\",\"success\":true}]"
            user message {"form":"parts"}
              result - d "" <- {"form":"parts"}
                result - - "b" <- {"type":"text"}
            environment -
              unknown (a number is no message) 5
            messages 4, calls 1, results 2, sessions 1, unknown 1, skipped {"sessionId": 1, "system_prompt": 1, "version": 1}
            "#,
        );
    }

    #[test]
    fn the_extension_of_vs_code_writes_a_list_with_names_of_its_own() {
        check(
            r#"[{"role": "user", "content": [{"type": "text", "text": "Look"}]},
                {"role": "assistant", "content": "Hm", "ts": 2000, "modelInfo": {"modelId": "q", "providerId": "p", "mode": "act"},
                 "metrics": {"tokens": {"prompt": 9, "completion": 2, "cached": 4}, "cost": 0.5}},
                {"role": "assistant", "content": "So", "metrics": {"tokens": {"prompt": 3, "completion": 2, "cached": 40}}}]"#,
            r#"
            cline
            # 1
            user message {"form":"parts"}
              event "Look" <- {"type":"text"}
            agent message 2000 {"answer":{"model":"q","usage":{"input":9,"cacheRead":4,"output":2,"cost":{"amount":"0.5","currency":"USD"}}},"modelInfo":{"modelId":"q","providerId":"p","mode":"act"},"metrics":{"tokens":{"prompt":9,"completion":2,"cached":4},"cost":0.5}}
              speech "Hm"
            agent message {"answer":{"usage":{"input":43,"cacheRead":40,"output":2}},"metrics":{"tokens":{"prompt":3,"completion":2,"cached":40}}}
              speech "So"
            messages 3, calls 0, results 0, sessions 1, unknown 0, skipped {}
            "#,
        );
    }
}
