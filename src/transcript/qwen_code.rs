//! Sessions of Qwen Code: records that name their parents, with messages in the parts of Gemini's API.

use super::{
    answer,
    branches::{Parent, RecordTree},
    chat,
    draft::{CompactionRecord, FrameDraft},
    gemini_message::part,
    generate_content::{message, push_system},
    parts,
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, ModelAnswer, Source},
};

/// Reads lines of `{uuid, parentUuid, sessionId, type, message: {role, parts}}`.
#[derive(Default)]
pub(super) struct QwenCodeReader {
    /// The name of the file's session: its first `sessionId`.
    name: Option<String>,
    tree: RecordTree,
}

impl QwenCodeReader {
    /// A record that only Qwen Code writes.
    pub(super) fn is_line(value: &Value) -> bool {
        let has = |key: &str| value.str_at(key).is_some();
        let has_parts =
            || value.get("message").and_then(|of| of.get("parts")?.as_array()).is_some();
        let is_own = has("provenance") || value.get("systemPayload").is_some() || has_parts();
        has("uuid") && has("sessionId") && is_own
    }

    /// What a record that is no message changes: from a compression on, other messages stand in the
    /// place of those before it.
    fn system(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        let subtype = record.str_at("subtype").unwrap_or_default();
        if subtype == "agent_bootstrap" {
            return self.inherited(record, line, sink);
        }
        let skipped = format!("system/{subtype}");
        let is_compression = subtype == "chat_compression";
        let contents = match record.get_mut("systemPayload") {
            Some(Value::Object(payload)) if is_compression => payload.get_mut("compressedHistory"),
            _ => None,
        };
        let contents = match contents {
            Some(Value::Array(contents)) if !contents.is_empty() => contents,
            _ => return sink.skip(&skipped),
        };
        let mut summary = Facet::new("", FacetType::SUMMARY, "");
        // What a content says besides its parts stays with the record.
        summary.children = contents.iter_mut().flat_map(quoted).collect();
        let told = CompactionRecord { summary: Some(summary), ..CompactionRecord::of("qwen-code") };
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.compacted = Some(told);
        self.push(draft, record, sink);
    }

    /// What a subagent took over from the session that started it: its context, and in older versions
    /// the system prompt and the tools. The answers in it count there.
    fn inherited(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        let mut payload = take::object(&mut record, "systemPayload").unwrap_or_default();
        if let Some(system) = payload.shift_remove("systemInstruction") {
            push_system(system, line, sink);
        }
        let history = take::list(&mut payload, "history").unwrap_or_default();
        record.put_some("systemPayload", (!payload.is_empty()).then_some(payload));
        self.push(FrameDraft::record(Source::Environment, line), record, sink);
        let session = self.name.as_deref().map(Box::from);
        for content in history {
            let Value::Object(content) = content else {
                sink.unknown(line, format!("{} is no content", content.kind()), content);
                continue;
            };
            let mut draft = FrameDraft { is_message: false, ..message(content, line) };
            let copied = Some(CopyOf { session: session.clone() });
            draft.add_answer(ModelAnswer { copied, ..ModelAnswer::default() });
            sink.push(draft);
        }
    }

    /// Gives out a draft with what the record says besides.
    fn push(&mut self, mut draft: FrameDraft, mut record: Object, sink: &mut Sink) {
        draft.timestamp = take::text(&mut record, "timestamp");
        draft.uuid = take::text(&mut record, "uuid");
        let answer = answer::of(record.get("model"), record.get("usageMetadata"));
        draft.add_answer(ModelAnswer { copied: answer::copied(&record), ..answer });
        if !record.is_empty() {
            draft.payload.put("record", record);
        }
        draft.outside = self.tree.outside();
        sink.push(draft);
    }
}

/// The parts of a message that stood in the place of others. A call is quoted, since it is none any
/// more.
fn quoted(content: &mut Value) -> Vec<Facet> {
    let text_type = match content.str_at("role") {
        Some("model") => FacetType::SPEECH,
        _ => FacetType::EVENT,
    };
    let parts = match content {
        Value::Object(content) => take::list(content, "parts"),
        _ => None,
    };
    let Some(parts) = parts else { return vec![parts::opaque("content", content.take())] };
    let quote = |value: Value| match part(value.clone(), &text_type) {
        facet if facet.call().is_some() => parts::opaque("functionCall", value),
        facet if facet.is_result() => parts::opaque("functionResponse", value),
        facet => facet,
    };
    parts.into_iter().map(quote).collect()
}

impl super::Decoder for QwenCodeReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Value::Object(mut record) = value else {
            return sink.unknown(line, format!("{} is no record", value.kind()), value);
        };
        let text = |key: &str| record.str_at(key);
        let name = self.name.get_or_insert_with(|| text("sessionId").unwrap_or("1").to_owned());
        if let Some(agent) = text("agentId") {
            sink.session(&format!("{name}/{agent}"));
        } else {
            sink.session(name);
            let parent = match record.get("parentUuid") {
                Some(Value::Null) => Parent::Root,
                parent => Parent::from(parent.and_then(Value::as_str)),
            };
            self.tree.take(name, text("uuid"), parent, line, sink);
        }
        let kind = text("type").unwrap_or_default().to_owned();
        match kind.as_str() {
            "system" => self.system(record, line, sink),
            // Spoken words, which the model of the session does not hear.
            _ if text("subtype") == Some("realtime_message") => sink.skip("realtime_message"),
            "user" | "assistant" | "tool_result" => match take::object(&mut record, "message") {
                Some(of) => {
                    let mut draft = message(of, line);
                    let provenance = record.str_at("provenance");
                    let is_users = provenance.is_none_or(|by| by == "real_user");
                    if draft.source == Source::User && !is_users {
                        draft.source = Source::Environment;
                    }
                    if kind == "tool_result" {
                        (draft.source, draft.is_message) = (Source::Environment, false);
                        // What people were shown of the result is not kept twice.
                        let shown = record.shift_remove("toolCallResult");
                        let status = shown.as_ref().and_then(|shown| shown.str_at("status"));
                        let stated = CallOutcome::of_status(status);
                        chat::complete_result(&mut draft, None, None, stated);
                    }
                    self.push(draft, record, sink);
                }
                None => sink.unknown(line, "a message that is no object", record.into()),
            },
            "" => sink.unknown(line, "a record without a type", record.into()),
            kind => sink.unknown(line, format!("a record of type {kind}"), record.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn messages_have_parts_and_results_are_records_of_their_own() {
        check(
            r#"{"uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"t1","type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"Look"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s","type":"system","subtype":"ui_telemetry","systemPayload":{}}
{"uuid":"c","parentUuid":"b","sessionId":"s","type":"assistant","model":"q","message":{"role":"model","parts":[{"text":"Hm","thought":true},{"text":"I look"},{"functionCall":{"id":"c1","name":"ls","args":{"p":1}},"thoughtSignature":"x"},{"novel":1}]},"usageMetadata":{"promptTokenCount":5}}
{"uuid":"c","parentUuid":"b","sessionId":"s","type":"assistant","model":"q","message":{"role":"model","parts":[{"text":"Hm","thought":true},{"text":"I look"},{"functionCall":{"id":"c1","name":"ls","args":{"p":1}},"thoughtSignature":"x"},{"novel":1}]},"usageMetadata":{"promptTokenCount":5}}
{"uuid":"d","parentUuid":"c","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a.txt"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]},"toolCallResult":{"callId":"c1","status":"error"}}
{"uuid":"e","parentUuid":"d","sessionId":"s","type":"user","subtype":"realtime_message","message":{"role":"user","parts":[{"text":"Aloud"}]}}
{"uuid":"f","parentUuid":"d","sessionId":"s","type":"user","message":"x"}
{"uuid":"g","parentUuid":"f","sessionId":"s","agentId":"look-1","type":"user","message":{"role":"user","parts":"Alone"}}"#,
            r#"
            qwen-code
            # s
            user message a t1 {"form":"parts","record":{"parentUuid":null,"sessionId":"s","type":"user","provenance":"real_user"}}
              event "Look"
              image "[image/png, 3 bytes]" <- {"inlineData":{"mimeType":"image/png","data":"AAAA"}}
            agent message c {"form":"parts","answer":{"model":"q","usage":{"input":5}},"record":{"parentUuid":"b","sessionId":"s","type":"assistant","model":"q","usageMetadata":{"promptTokenCount":5}}}
              thought "Hm" <- {"thought":true}
              speech "I look"
              call ls c1 {"p":1} <- {"thoughtSignature":"x"}
              opaque "[novel, 11 bytes]" <- {"novel":1}
            environment - d {"form":"parts","record":{"parentUuid":"c","sessionId":"s","type":"tool_result"}}
              result ls c1 failed "a.txt" <- {"functionResponse":{"id":"c1","name":"ls","response":{"output":"a.txt"},"parts":[]}}
                image "[image/png, 3 bytes]" <- {"inlineData":{"mimeType":"image/png","data":"AAAA"}}
            environment -
              unknown (a message that is no object) {"uuid":"f","parentUuid":"d","sessionId":"s","type":"user","message":"x"}
            # s/look-1
            user message g {"record":{"parentUuid":"f","sessionId":"s","agentId":"look-1","type":"user"}}
              event "Alone"
            messages 3, calls 1, results 1, sessions 2, unknown 1, skipped {"realtime_message": 1, "repeated record": 1, "system/ui_telemetry": 1}
            "#,
        );
    }

    #[test]
    fn what_is_copied_or_inherited_counts_in_its_origin() {
        check(
            r#"{"uuid":"a","parentUuid":null,"sessionId":"s","type":"assistant","model":"q","message":{"role":"model","parts":[{"text":"Aye"}]},"usageMetadata":{"promptTokenCount":5},"forkedFrom":{"sessionId":"o","messageUuid":"a"}}
{"uuid":"b","parentUuid":null,"sessionId":"s","agentId":"look-1","type":"system","subtype":"agent_bootstrap","systemPayload":{"kind":"fork","systemInstruction":"Be brief","tools":["ls"],"history":[{"role":"user","parts":[{"text":"Look"}]},{"role":"model","parts":[{"text":"Aye"}]},5]}}"#,
            r#"
            qwen-code
            # s
            agent message a {"form":"parts","answer":{"model":"q","usage":{"input":5},"copied":{"from":"o"}},"record":{"parentUuid":null,"sessionId":"s","type":"assistant","model":"q","usageMetadata":{"promptTokenCount":5},"forkedFrom":{"sessionId":"o","messageUuid":"a"}}}
              speech "Aye"
            # s/look-1
            system -
              system "Be brief"
            environment - b {"record":{"parentUuid":null,"sessionId":"s","agentId":"look-1","type":"system","subtype":"agent_bootstrap","systemPayload":{"kind":"fork","tools":["ls"]}}}
            user - {"form":"parts"}
              event "Look"
            agent - {"form":"parts","answer":{"copied":{"from":"s"}}}
              speech "Aye"
            environment -
              unknown (a number is no content) 5
            messages 1, calls 0, results 0, sessions 2, unknown 1, skipped {}
            "#,
        );
    }
}
