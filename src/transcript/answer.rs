//! What messages and records say of the model's answers.

use super::draft::FrameDraft;
use crate::{
    json::{Object, ObjectExt, Value},
    usage::Usage,
    veil::{AnswerId, CopyOf, ModelAnswer, Source},
};

/// What a message of the APIs says of itself, or else what the response says that mini-swe-agent
/// keeps beside it.
pub(super) fn of_message(message: &Object) -> ModelAnswer {
    let response = message.get("extra").and_then(|extra| extra.get("response"));
    of_response(message)
        .or(response.and_then(Value::as_object).map(of_response).unwrap_or_default())
}

/// What a response of the APIs says. The id of a message without usage may be one of the client's.
pub(super) fn of_response(response: &Object) -> ModelAnswer {
    let text = |key: &str| response.str_at(key).map(Box::from);
    let usage = response.get("usage").or_else(|| response.get("usageMetadata"));
    let usage = usage.and_then(Usage::of);
    let id = text("id").or_else(|| text("responseId"));
    let id = id.filter(|id| **id != *"" && usage.is_some());
    let stop =
        ["stop_reason", "stopReason", "finish_reason", "done_reason"].into_iter().find_map(text);
    let id = id.map(AnswerId::Response);
    let model = text("model").or_else(|| text("modelVersion"));
    let mut answer = ModelAnswer { model, usage, stop, id, ..ModelAnswer::default() };
    if answer.failure().is_some() {
        // What failed reports zeros for what nobody knows.
        answer.usage = answer.usage.filter(|of| of.input > Some(0) || of.output > Some(0));
    }
    answer
}

/// A usage that names its model.
pub(super) fn of_usage(stated: &Value) -> ModelAnswer {
    of(stated.get("model"), Some(stated))
}

/// A model and a usage, as a source states them.
pub(super) fn of(model: Option<&Value>, usage: Option<&Value>) -> ModelAnswer {
    let model = model.and_then(Value::as_str).map(Box::from);
    ModelAnswer { model, usage: usage.and_then(Usage::of), ..ModelAnswer::default() }
}

/// A usage by the names of Chat Completions, whose figures stand at these paths: input, output, what of
/// the input was cached, cost.
pub(super) fn usage_at(stated: &Value, places: [&str; 4]) -> Option<Value> {
    stated.as_object()?;
    let mut usage = Object::new();
    let known = ["prompt_tokens", "completion_tokens", "cached_tokens", "cost"];
    for (place, known) in places.into_iter().zip(known) {
        let figure = stated.pointer(&format!("/{place}")).filter(|figure| !figure.is_null());
        usage.put_some(known, figure.cloned());
    }
    Some(usage.into())
}

/// That a record was copied from another session, as the branches of Claude Code and Qwen Code say it.
pub(super) fn copied(record: &Object) -> Option<CopyOf> {
    let from = record.get("forkedFrom").filter(|from| !from.is_null())?;
    Some(CopyOf { session: from.str_at("sessionId").map(Box::from) })
}

impl FrameDraft {
    /// Adds what is said of the answer that the frame is, or is a part of; what was said before
    /// stays.
    pub(super) fn add_answer(&mut self, said: ModelAnswer) {
        if self.source == Source::Agent && said != ModelAnswer::default() {
            let known = self.answer.take().unwrap_or_default();
            self.answer = Some(Box::new(known.or(said)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::{json::Value, transcript::Transcript};

    /// What the frames of an input say of answers.
    fn said(input: &str) -> String {
        let mut out = String::new();
        for record in Transcript::new(input.as_bytes()).unwrap() {
            let imported = record.unwrap().frame.imported.unwrap().to_json();
            for key in ["answer", "sessionUsage", "copiedBefore"] {
                let member = imported.get(key).map(Value::to_string);
                member.into_iter().for_each(|member| writeln!(out, "{key} {member}").unwrap());
            }
        }
        out
    }

    #[test]
    fn each_reader_says_model_usage_stop_and_id_of_an_answer_by_its_own_names() {
        for (input, expected) in [
            // A message of the APIs; one without usage may have an id of the client's.
            (
                r#"[{"role":"user","content":"Go"},
                    {"role":"assistant","content":"a","id":"r","model":"m","finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":1}},
                    {"role":"assistant","content":"b","id":"own","model":"m"},
                    {"role":"assistant","content":"c","extra":{"response":{"id":"r","model":"m","usage":{"prompt_tokens":3,"completion_tokens":2}}}},
                    {"role":"user","content":"d","model":"m","usage":{"prompt_tokens":3}}]"#,
                r#"answer {"model":"m","usage":{"input":3,"output":1},"stop":"stop","response":"r"}
answer {"model":"m"}
answer {"model":"m","usage":{"input":3,"output":2},"response":"r"}
"#,
            ),
            // The parts of a message are one, and the last has what it came to.
            (
                r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Go"}}
{"type":"assistant","uuid":"a","sessionId":"s","requestId":"q","forkedFrom":{"sessionId":"o"},"message":{"id":"r","role":"assistant","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}
{"type":"assistant","uuid":"b","sessionId":"s","requestId":"q","message":{"id":"r","role":"assistant","model":"m","content":[{"type":"text","text":"b"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}}}"#,
                r#"answer {"model":"m","usage":{"input":7,"cacheRead":4,"output":5},"stop":"end_turn","response":"r","request":"q","copied":{"from":"o"}}
"#,
            ),
            // Items have ids of their own, whether the usage names a cache or not.
            (
                r#"{"type":"session_meta","payload":{"id":"s"}}
{"type":"turn_context","payload":{"model":"m"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}}
{"type":"response_item","payload":{"type":"reasoning","id":"i1","summary":[]}}
{"type":"response_item","payload":{"type":"message","id":"i2","role":"assistant","content":[{"type":"output_text","text":"a"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":9,"output_tokens":2}}}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":8,"output_tokens":1}}}}"#,
                r#"answer {"model":"m","usage":{"input":9,"output":2},"part":"i1"}
answer {"model":"m","usage":{"input":9,"output":2},"part":"i2"}
sessionUsage [{"model":"m","usage":{"input":8,"output":1}}]
"#,
            ),
            (
                r#"{"type":"user.message","data":{"content":"Go"},"id":"u"}
{"type":"assistant.message","data":{"content":"a","model":"m","outputTokens":2},"id":"a"}
{"type":"session.usage_record","data":{"usage":{"model":"n","apiCallId":"c","inputTokens":9,"outputTokens":3}},"id":"r"}
{"type":"assistant.message","data":{"content":"b","apiCallId":"c","outputTokens":3},"id":"b"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":17,"outputTokens":9}}}},"id":"e"}"#,
                r#"answer {"model":"m","usage":{"output":2}}
answer {"model":"n","usage":{"input":9,"output":3}}
sessionUsage [{"model":"m","usage":{"input":8,"output":4}}]
"#,
            ),
            (
                r#"{"type":"session","id":"s","cwd":"/"}
{"type":"message","id":"a","message":{"role":"assistant","content":[],"model":"m","usage":{"input":1,"cacheRead":2,"output":3},"stopReason":"error"}}"#,
                r#"answer {"model":"m","usage":{"input":3,"cacheRead":2,"output":3},"stop":"error"}
"#,
            ),
            (
                r#"{"environment":"e","info":{"model_stats":{"instance_cost":0.5,"tokens_sent":9,"tokens_received":2}},"trajectory":[],
                   "history":[{"role":"user","content":"Go"},{"role":"assistant","content":"a"}]}"#,
                r#"sessionUsage [{"usage":{"input":9,"output":2,"cost":{"amount":"0.5","currency":"USD"}}}]
"#,
            ),
            // Frames by another maker.
            (
                r#"{"sequence":0,"source":"agent","deltas":[],"imported":{"line":1,"message":true,"members":{"model":"m","usage":{"input":1,"output":3}}}}"#,
                r#"answer {"model":"m","usage":{"input":1,"output":3}}
"#,
            ),
        ] {
            assert_eq!(said(input), expected, "{input}");
        }
    }
}
