//! What Copilot CLI reports of usage: with each message its output, or beside it all of it, and the
//! sums when it ends.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::answer;
use crate::{
    json::{Object, ObjectExt, Value},
    veil::ModelAnswer,
};

/// The kinds of tokens: as they are read from here on, and as the program calls them, now and before.
const KINDS: [(&str, &[&str]); 5] = [
    ("input_tokens", &["inputTokens", "input"]),
    ("cached_input_tokens", &["cacheReadTokens", "cachedInput"]),
    ("cache_write_input_tokens", &["cacheWriteTokens"]),
    ("output_tokens", &["outputTokens", "output"]),
    ("reasoning_output_tokens", &["reasoningTokens"]),
];
const OUTPUT: usize = 3;

/// The tokens of each kind.
type Figures = [u64; KINDS.len()];
type ByModel = HashMap<Option<String>, Figures>;

/// What was reported so far, by model.
#[derive(Default)]
pub(super) struct CopilotUsage {
    /// Since the program was started.
    reported: ByModel,
    /// By earlier runs of the program.
    earlier: ByModel,
    /// The records of calls whose messages did not come yet, by the id of the call.
    waiting: IndexMap<String, Object>,
    /// When the session began by the last end.
    started: Option<Value>,
}

impl CopilotUsage {
    /// Takes the data of `session.usage_record`: the usage of one call.
    pub(super) fn record(&mut self, data: &Value) {
        let Some(stated) = data.get("usage").and_then(Value::as_object) else { return };
        let model = stated.str_at("model");
        let usage = of_model(model, stated);
        add(&mut self.reported, model, figures(&usage));
        let id = stated.str_at("apiCallId").unwrap_or_default();
        let id = if id.is_empty() { format!("#{}", self.waiting.len()) } else { id.to_owned() };
        self.waiting.insert(id, usage);
    }

    /// Takes the data of `session.compaction_complete`: the usage of the call that wrote the summary, which
    /// a record may have stated before.
    pub(super) fn compaction(&mut self, data: &Object) -> Vec<ModelAnswer> {
        let stated = data.get("compactionTokensUsed").and_then(Value::as_object);
        let Some(stated) = stated else { return Vec::new() };
        let model = stated.str_at("model");
        let usage = of_model(model, stated);
        let sums = |usage: &Object| (figures(usage)[0], figures(usage)[OUTPUT]);
        match self.waiting.values().position(|known| sums(known) == sums(&usage)) {
            Some(at) => drop(self.waiting.shift_remove_index(at)),
            None => add(&mut self.reported, model, figures(&usage)),
        }
        answers([usage].into_iter())
    }

    /// Takes the data of a message: what it states itself, or a record does.
    pub(super) fn message(&mut self, data: &Object) -> ModelAnswer {
        let id = data.str_at("apiCallId");
        let recorded = match id {
            Some(id) => self.waiting.shift_remove(id),
            None if self.waiting.len() == 1 => self.waiting.pop().map(|(_, usage)| usage),
            None => None,
        };
        let output = data.get("outputTokens").and_then(Value::as_u64);
        if let (None, Some(output)) = (&recorded, output) {
            let mut figures = Figures::default();
            figures[OUTPUT] = output;
            add(&mut self.reported, data.str_at("model"), figures);
        }
        let stated = answer::of_usage(&data.clone().into());
        let recorded = recorded.map(|usage| answer::of_usage(&usage.into()));
        recorded.unwrap_or_default().or(stated)
    }

    /// Begins a run of the program. A new session forgets all; a resumed one keeps what earlier
    /// runs reported.
    pub(super) fn start(&mut self, goes_on: bool) {
        if goes_on {
            merge(&mut self.earlier, std::mem::take(&mut self.reported));
        } else {
            *self = Self::default();
        }
    }

    /// The usage of calls whose messages did not come.
    pub(super) fn without_messages(&mut self) -> Vec<ModelAnswer> {
        answers(std::mem::take(&mut self.waiting).into_values())
    }

    /// Takes the data of `session.shutdown`: returns the usage that no record before it reported,
    /// by model. The stated sums are those of this run of the program, or of all runs of the
    /// session. In the second case they include what earlier runs reported.
    pub(super) fn shutdown(&mut self, data: &Value) -> Vec<ModelAnswer> {
        let mut reported = std::mem::take(&mut self.reported);
        let metrics = data.get("modelMetrics").and_then(Value::as_object);
        let models = metrics.into_iter().flatten();
        let stated = models.filter_map(|(model, of)| Some((model, of.get("usage")?.as_object()?)));
        let mut usages: Vec<Object> = stated.map(|(model, of)| of_model(Some(model), of)).collect();
        if usages.is_empty() {
            // All models together.
            let is_one = metrics.is_some_and(|metrics| metrics.len() == 1);
            let model = metrics.and_then(|metrics| metrics.keys().next()).filter(|_| is_one);
            let Some(kinds) = data.get("tokenDetails") else { return Vec::new() };
            usages.push(of_kinds(model.map(String::as_str), kinds));
        }
        let started = data.get("sessionStartTime").cloned();
        let is_other_start = self.started.is_some() && started.is_some() && self.started != started;
        let sum =
            |figures: &mut dyn Iterator<Item = Figures>| figures.fold(Figures::default(), plus);
        let stated = sum(&mut usages.iter().map(figures));
        let before = sum(&mut self.earlier.values().chain(reported.values()).copied());
        let ([input, .., output, _], [input_before, .., output_before, _]) = (stated, before);
        let is_of_all = input >= input_before && output >= output_before;
        merge(&mut self.earlier, reported.clone());
        if is_of_all && !is_other_start {
            reported.clone_from(&self.earlier);
        }
        self.started = started.or(self.started.take());
        for usage in &mut usages {
            let model = usage.str_at("model").map(str::to_owned);
            subtract(usage, reported.get_mut(&model).unwrap_or(&mut Figures::default()));
        }
        // What no model of these reported is of one of them.
        let mut others = sum(&mut reported.into_values());
        usages.iter_mut().for_each(|usage| subtract(usage, &mut others));
        for usage in &usages {
            add(&mut self.earlier, usage.str_at("model"), figures(usage));
        }
        usages.retain(|usage| {
            let mut figures = usage.iter().filter(|(key, _)| *key != "model");
            figures.any(|(_, figure)| figure.as_u64() != Some(0))
        });
        answers(usages.into_iter())
    }
}

fn answers(usages: impl Iterator<Item = Object>) -> Vec<ModelAnswer> {
    usages.map(|usage| answer::of_usage(&usage.into())).collect()
}

fn plus(one: Figures, other: Figures) -> Figures {
    let mut sum = one;
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum = sum.saturating_add(other));
    sum
}

fn add(sums: &mut ByModel, model: Option<&str>, figures: Figures) {
    let sum = sums.entry(model.map(str::to_owned)).or_default();
    *sum = plus(*sum, figures);
}

fn merge(sums: &mut ByModel, others: ByModel) {
    others.into_iter().for_each(|(model, figures)| add(sums, model.as_deref(), figures));
}

/// The figure of a kind in a usage; older ends call the output by another name.
fn figure(usage: &Object, kind: usize) -> Option<(&'static str, u64)> {
    let (name, _) = KINDS.get(kind)?;
    let names = [*name, if kind == OUTPUT { "output" } else { *name }];
    names.into_iter().find_map(|name| Some((name, usage.get(name)?.as_u64()?)))
}

fn figures(usage: &Object) -> Figures {
    std::array::from_fn(|kind| figure(usage, kind).map_or(0, |(_, figure)| figure))
}

/// The usage of one model: its input holds what was cached.
fn of_model(model: Option<&str>, stated: &Object) -> Object {
    let mut usage = Object::new();
    usage.put_some("model", model);
    for (key, own) in KINDS {
        usage.put_some(key, own.iter().find_map(|own| stated.get(own)).cloned());
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

/// Takes from a usage what was reported before, as far as it holds that.
fn subtract(usage: &mut Object, reported: &mut Figures) {
    for (kind, reported) in reported.iter_mut().enumerate() {
        let Some((name, stated)) = figure(usage, kind) else { continue };
        usage.put(name, stated.saturating_sub(*reported));
        *reported = reported.saturating_sub(stated);
    }
    // Reasoning is a part of the output, so it cannot be more than the output that is left.
    let left = figure(usage, OUTPUT).map(|(_, output)| output);
    let reasoning = usage.get("reasoning_output_tokens").and_then(Value::as_u64);
    if let Some(left) = left.filter(|left| reasoning.is_some_and(|reasoning| reasoning > *left)) {
        usage.put("reasoning_output_tokens", left);
    }
}

#[cfg(test)]
mod tests {
    use crate::{id::Millis, request::Recording, tokens::Chars4, transcript::Transcript};
    use std::sync::Arc;

    /// What is in no list, of a session of these messages (model and output) and ends of the program.
    #[track_caller]
    fn check(events: &[&str], expected: &str) {
        let line = |event: &&str| match event.split_once(' ') {
            Some((model, output)) if output.parse::<u64>().is_ok() => format!(
                r#"{{"type":"assistant.message","data":{{"content":"Yes.","model":"{model}","outputTokens":{output}}},"id":"i"}}"#
            ),
            Some((kind @ ("compaction_complete" | "usage_record"), data)) => {
                format!(r#"{{"type":"session.{kind}","data":{data},"id":"i"}}"#)
            }
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
        let unlisted = recording.reported().filter(|exchange| exchange.is_unlisted);
        let said: Vec<String> = unlisted
            .map(|of| {
                let usage = of.usage.as_ref().unwrap().to_json();
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

    #[test]
    fn the_call_of_a_compaction_counts_once() {
        let end = r#"{"modelMetrics":{"m":{"usage":{"inputTokens":109,"outputTokens":12,"cacheReadTokens":30}}}}"#;
        for used in [
            r#"{"inputTokens":90,"outputTokens":7,"cacheReadTokens":30,"model":"m"}"#,
            r#"{"input":90,"output":7,"cachedInput":30}"#,
        ] {
            let told = format!(
                r#"compaction_complete {{"summaryContent":"So far","compactionTokensUsed":{used}}}"#
            );
            let model = if used.contains("model") { "m" } else { "?" };
            let expected = format!(
                "{model} {{\"input\":90,\"cacheRead\":30,\"output\":7}}\n\
                 m {{\"input\":19,\"cacheRead\":0,\"output\":0}}"
            );
            check(&["m 5", &told, end], &expected);
            // A record may say the same before.
            let record = r#"usage_record {"usage":{"model":"m","apiCallId":"c","inputTokens":90,"outputTokens":7,"cacheReadTokens":30}}"#;
            check(&["m 5", record, &told, end], &expected);
        }
    }
}
