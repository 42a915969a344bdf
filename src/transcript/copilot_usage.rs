//! What Copilot CLI reports of usage: the output with each message, and all of it when it ends.

use std::collections::HashMap;

use crate::json::{Object, ObjectExt, Value};

/// The output that the messages reported since the program was started, by model.
#[derive(Default)]
pub(super) struct CopilotUsage {
    reported: HashMap<Option<String>, u64>,
}

impl CopilotUsage {
    /// Takes the data of a message.
    pub(super) fn message(&mut self, data: &Object) {
        let output = data.get("outputTokens").and_then(Value::as_u64);
        if let Some(output) = output.filter(|output| *output > 0) {
            let model = data.get("model").and_then(Value::as_str).map(str::to_owned);
            let sum = self.reported.entry(model).or_default();
            *sum = sum.saturating_add(output);
        }
    }

    /// Takes the data of `session.shutdown`: the usage that no message reported, by model; `None`
    /// where there is none. The totals are of one run of the program: a session that was resumed
    /// has several, which add up.
    pub(super) fn shutdown(&mut self, data: &Value) -> Option<Value> {
        let mut reported = std::mem::take(&mut self.reported);
        let metrics = data.get("modelMetrics").and_then(Value::as_object);
        let models = metrics.into_iter().flatten();
        let stated = models.filter_map(|(model, of)| Some((model, of.get("usage")?.as_object()?)));
        let mut usages: Vec<Object> = stated.map(|(model, of)| of_model(model, of)).collect();
        for usage in &mut usages {
            let model = usage.get("model").and_then(Value::as_str).map(str::to_owned);
            subtract(usage, reported.remove(&model).unwrap_or(0));
        }
        // What a message without a model reported is of one of them.
        let mut others = reported.remove(&None).unwrap_or(0);
        if usages.is_empty() {
            // All models together.
            others = reported.into_values().fold(others, u64::saturating_add);
            let is_one = metrics.is_some_and(|metrics| metrics.len() == 1);
            let model = metrics.and_then(|metrics| metrics.keys().next()).filter(|_| is_one);
            usages.push(of_kinds(model.map(String::as_str), data.get("tokenDetails")?));
        }
        for usage in &mut usages {
            others = subtract(usage, others);
        }
        usages.retain(|usage| {
            let mut figures = usage.iter().filter(|(key, _)| *key != "model");
            figures.any(|(_, figure)| figure.as_u64() != Some(0))
        });
        (!usages.is_empty()).then(|| usages.into_iter().map(Value::from).collect())
    }
}

/// The usage of one model: its input holds what was cached.
fn of_model(model: &str, stated: &Object) -> Object {
    let mut usage = Object::new();
    usage.put("model", model);
    for (key, own) in [
        ("input_tokens", "inputTokens"),
        ("cached_input_tokens", "cacheReadTokens"),
        ("cache_write_input_tokens", "cacheWriteTokens"),
        ("output_tokens", "outputTokens"),
        ("reasoning_output_tokens", "reasoningTokens"),
    ] {
        usage.put_some(key, stated.get(own).cloned());
    }
    usage
}

/// The usage by kinds of tokens, each by itself.
fn of_kinds(model: Option<&str>, stated: &Value) -> Object {
    let mut usage = Object::new();
    usage.put_some("model", model);
    for (key, own) in [
        ("input", "input"),
        ("cacheRead", "cache_read"),
        ("cacheWrite", "cache_write"),
        ("output", "output"),
    ] {
        usage.put_some(key, stated.get(own).and_then(|of| of.get("tokenCount")).cloned());
    }
    usage
}

/// Takes from the output what was reported before; what is left of that.
fn subtract(usage: &mut Object, reported: u64) -> u64 {
    for key in ["output_tokens", "output"] {
        let Some(output) = usage.get(key).and_then(Value::as_u64) else { continue };
        let left = output.saturating_sub(reported);
        usage.put(key, left);
        // Reasoning is a part of the output; nobody says of which.
        let reasoning = usage.get("reasoning_output_tokens").and_then(Value::as_u64);
        if reasoning.is_some_and(|reasoning| reasoning > left) {
            usage.put("reasoning_output_tokens", left);
        }
        return reported.saturating_sub(output);
    }
    reported
}

#[cfg(test)]
mod tests {
    use crate::{id::Millis, request::Recording, tokens::Chars4, transcript::Transcript};
    use std::sync::Arc;

    /// What is in no list, of a session of these messages (model and output) and ends of the program.
    #[track_caller]
    fn check(events: &[&str], expected: &str) {
        let line = |event: &&str| match event.split_once(' ') {
            Some((model, output)) if !event.starts_with('{') => format!(
                r#"{{"type":"assistant.message","data":{{"content":"Yes.","model":"{model}","outputTokens":{output}}},"id":"i"}}"#
            ),
            _ => format!(r#"{{"type":"session.shutdown","data":{event},"id":"i"}}"#),
        };
        let head = [
            r#"{"type":"session.start","data":{"sessionId":"s"},"id":"i"}"#.to_owned(),
            r#"{"type":"user.message","data":{"content":"Go"},"id":"i"}"#.to_owned(),
        ];
        let lines: Vec<String> = head.into_iter().chain(events.iter().map(line)).collect();
        let text = lines.join("\n");
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let unlisted = recording.reported().filter(|exchange| !exchange.is_listed);
        let said: Vec<String> = unlisted
            .map(|of| {
                let usage = of.usage.unwrap().to_json();
                format!("{} {usage}", of.model.as_deref().unwrap_or("?"))
            })
            .collect();
        assert_eq!(said.join("\n"), expected);
    }

    #[test]
    fn an_end_tells_what_the_messages_did_not() {
        check(
            &[
                "m 12",
                "m 3",
                r#"{"modelMetrics":{"m":{"requests":{"count":2},"usage":{"inputTokens":71282,"outputTokens":20,"cacheReadTokens":35495,"cacheWriteTokens":35783,"reasoningTokens":9}},"n":{"usage":{"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0}}}}"#,
            ],
            r#"m {"input":71282,"cacheRead":35495,"cacheWrite":35783,"output":5,"reasoning":5}"#,
        );
        // A session that was resumed ends twice, and each end is of its own run.
        let end = r#"{"modelMetrics":{"m":{"usage":{"inputTokens":10,"outputTokens":5}}}}"#;
        check(
            &["m 5", end, "m 2", end, r#"{"modelMetrics":{}}"#],
            "m {\"input\":10,\"output\":0}\nm {\"input\":10,\"output\":3}",
        );
        // Older ends know kinds of tokens only; what no message reported of these has no model.
        let kinds = r#""tokenDetails":{"input":{"tokenCount":100},"output":{"tokenCount":15},"cache_read":{"tokenCount":5}}"#;
        check(
            &["m 12", &format!(r#"{{"modelMetrics":{{"m":{{"requests":2}}}},{kinds}}}"#)],
            r#"m {"input":105,"cacheRead":5,"output":3}"#,
        );
        check(
            &["m 12", "n 2", &format!(r#"{{"modelMetrics":{{"m":{{}},"n":{{}}}},{kinds}}}"#)],
            r#"? {"input":105,"cacheRead":5,"output":1}"#,
        );
        // What nobody can read is told.
        check(
            &["m 12", r#"{"modelMetrics":{"m":{"usage":{"inputTokens":-1,"outputTokens":12}}}}"#],
            r#"m {"output":0,"unreadable":["input"]}"#,
        );
    }
}
