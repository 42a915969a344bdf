//! What Claude Code states that a session cost in all (`cost-state`), and what its answers lack of that:
//! summaries and other calls that no record shows.

use std::collections::{BTreeMap, HashMap};

use super::{
    Api, Exchange, Usage, draft::FrameDraft, exchange::model_named, recent::Recent, sink::Sink,
};
use crate::{
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
    veil::AnswerId,
};

/// The figures of a model in `cost-state`, and what the Messages API calls them.
const FIGURES: [(&str, &str); 4] = [
    ("inputTokens", "input_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
    ("cacheCreationInputTokens", "cache_creation_input_tokens"),
    ("outputTokens", "output_tokens"),
];
const WRITTEN: [(&str, &str); 2] = [
    ("cacheCreationEphemeral5mInputTokens", "ephemeral_5m_input_tokens"),
    ("cacheCreationEphemeral1hInputTokens", "ephemeral_1h_input_tokens"),
];

/// Figures by model.
type ByModel = BTreeMap<String, Usage>;

/// The figures of a session and of its subagents.
#[derive(Debug, Default)]
pub(super) struct ClaudeCosts {
    answered: ByModel,
    /// The last answer of each session, which may go on.
    open: HashMap<String, (Box<str>, String, Usage)>,
    seen: Recent<()>,
    /// What runs stated that were counted apart, and the last statement.
    earlier: ByModel,
    last: ByModel,
    /// Where that stands: its session and its line.
    place: Option<(String, u64)>,
    /// What was answered up to there.
    answered_then: ByModel,
    /// The calls for compactions since then, with their sessions, and whether a subagent ran.
    compactions: Vec<(String, Exchange)>,
    has_subagent: bool,
}

impl ClaudeCosts {
    /// Takes a part of an answer.
    pub(super) fn answer(&mut self, draft: &FrameDraft, session: &str) {
        let Some(answer) = draft.answer.as_deref() else { return };
        let (Some(AnswerId::Response(id)), Some(model), Some(usage)) =
            (&answer.id, &answer.model, &answer.usage)
        else {
            return;
        };
        let open = self.open.get(session);
        if open.is_none_or(|(open, ..)| open != id) {
            self.end(session);
            if self.seen.get(id).is_some() {
                return;
            }
            self.seen.insert(id, ());
        }
        // What stands last is what it came to.
        let answer = (id.clone(), model.to_string(), usage.clone());
        self.open.insert(session.to_owned(), answer);
    }

    fn end(&mut self, session: &str) {
        if let Some((_, model, usage)) = self.open.remove(session) {
            self.answered.entry(model).or_default().add(&usage);
        }
    }

    /// Takes a call that a session was compacted with.
    pub(super) fn compacted(&mut self, session: &str, call: Option<Exchange>) {
        self.compactions.extend(call.map(|call| (session.to_owned(), call)));
    }

    /// A subagent ran, whose answers stand elsewhere.
    pub(super) fn has_subagent(&mut self) {
        self.has_subagent = true;
    }

    /// Takes a statement. It holds what was stated before, unless a figure of that is larger. What it
    /// has beyond the answers since then was a compaction, where there is one and nothing else ran.
    pub(super) fn state(&mut self, record: &Object, session: &str, line: u64, sink: &mut Sink) {
        let Some(models) = record.get("modelUsage").and_then(Value::as_object) else { return };
        let stated = models.iter().filter_map(|(model, of)| Some((model.clone(), usage_of(of)?)));
        let stated: ByModel = stated.collect();
        let is_less = |(model, before): (&String, &Usage)| {
            let is_less = |now: &Usage| now.input < before.input || now.output < before.output;
            stated.get(model).is_none_or(is_less)
        };
        if self.last.iter().any(is_less) {
            add(&mut self.earlier, &std::mem::take(&mut self.last));
        }
        self.end(session);
        let since = less(&self.answered, &self.answered_then);
        let beyond = less(&less(&stated, &self.last), &since);
        let has_subagent = std::mem::take(&mut self.has_subagent);
        if let ([(_, call)], [(model, usage)], false) =
            (&mut *self.compactions, &*beyond.into_iter().collect::<Vec<_>>(), has_subagent)
        {
            call.model = model_named(model);
            call.usage = Some(usage.clone());
            self.answered.entry(model.clone()).or_default().add(usage);
        }
        self.give_compactions(sink);
        self.answered_then.clone_from(&self.answered);
        self.last = stated;
        self.place = Some((session.to_owned(), line));
    }

    fn give_compactions(&mut self, sink: &mut Sink) {
        for (session, mut call) in self.compactions.drain(..) {
            let before = call.line.and_then(|line| sink.frame_before(&session, line));
            call.frames = vec![before.map(FrameSeq::new)];
            sink.session(&session);
            sink.exchange(call);
        }
    }

    /// Gives out what the answers lack of the statements.
    pub(super) fn give(&mut self, sink: &mut Sink) {
        self.give_compactions(sink);
        let open: Vec<String> = self.open.keys().cloned().collect();
        open.iter().for_each(|session| self.end(session));
        let Some((session, line)) = self.place.take() else { return };
        add(&mut self.earlier, &self.last);
        sink.session(&session);
        for (model, usage) in less(&self.earlier, &self.answered) {
            sink.exchange(Exchange {
                line: Some(line),
                api: Api::Messages,
                model: model_named(&model),
                usage: Some(usage),
                is_unlisted: true,
                ..Exchange::default()
            });
        }
    }
}

/// What figures have more than others, of models with tokens that the others lack.
fn less(figures: &ByModel, others: &ByModel) -> ByModel {
    let left = figures.iter().map(|(model, usage)| {
        let mut usage = usage.clone();
        others.get(model).into_iter().for_each(|other| usage.take_off(other));
        (model.clone(), usage)
    });
    let has_tokens = |usage: &Usage| usage.input > Some(0) || usage.output > Some(0);
    left.filter(|(_, usage)| has_tokens(usage)).collect()
}

fn add(sums: &mut ByModel, others: &ByModel) {
    others.iter().for_each(|(model, usage)| sums.entry(model.clone()).or_default().add(usage));
}

/// The usage that is stated of a model.
fn usage_of(stated: &Value) -> Option<Usage> {
    let named = |names: &[(&str, &str)]| {
        let mut usage = Object::new();
        names.iter().for_each(|(from, to)| usage.put_some(to, stated.get(from).cloned()));
        usage
    };
    let mut usage = named(&FIGURES);
    usage.put("cache_creation", named(&WRITTEN));
    Usage::of(&usage.into())
}
