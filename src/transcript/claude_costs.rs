//! What Claude Code states that a session cost in all (`cost-state`), and what its answers lack of
//! that: summaries and other calls that no record shows.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    Api, Exchange, Usage, draft::FrameDraft, exchange::model_named, model_name::without_date,
    recent::Recent, sink::Sink,
};
use crate::{
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
    veil::{AnswerId, CopyOf},
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

/// The figures of a session and of its subagents, by [`model_id`].
#[derive(Debug, Default)]
pub(super) struct ClaudeCosts {
    answered: ByModel,
    /// How answers, or else statements, write the name of a model.
    names: HashMap<String, String>,
    /// The last answer of each session, which may go on.
    open: HashMap<String, Answer>,
    seen: Recent<()>,
    /// The sum of earlier runs that were counted apart, and the last statement.
    earlier: ByModel,
    last: ByModel,
    /// Session and line of the last `cost-state`.
    place: Option<(String, u64)>,
    /// The time of the first record of that session behind it.
    resumed: Option<String>,
    /// The answers of other sessions, which may stand in files of their own.
    of_subagents: Vec<Answer>,
    /// What was answered up to there.
    answered_then: ByModel,
    /// Whether a fork copied the first answers. The first statement then holds all that was stated of the
    /// session that it is a fork of.
    is_fork: bool,
    /// The calls for compactions since then, with their sessions, and whether a subagent ran.
    compactions: Vec<(String, Exchange)>,
    has_subagent: bool,
}

#[derive(Debug)]
struct Answer {
    id: Box<str>,
    /// As in [`model_id`].
    model: String,
    time: Option<String>,
    usage: Usage,
}

impl ClaudeCosts {
    /// Notes when the session went on after its last statement.
    pub(super) fn note_resumption(&mut self, record: &Object, session: &str) {
        if self.resumed.is_none() && self.place.as_ref().is_some_and(|(of, _)| of == session) {
            self.resumed = record.str_at("timestamp").map(str::to_owned);
        }
    }

    /// Adds a part of an answer. A statement includes a copied answer only where no other session
    /// is named for it.
    pub(super) fn add_answer(&mut self, draft: &FrameDraft, session: &str) {
        let Some(answer) = draft.answer.as_deref() else { return };
        self.is_fork |= self.answered.is_empty() && answer.copied == Some(CopyOf::default());
        let (Some(AnswerId::Response(id)), Some(model), Some(usage)) =
            (&answer.id, &answer.model, &answer.usage)
        else {
            return;
        };
        if answer.copied.as_ref().is_some_and(|of| of.session.is_some()) {
            return;
        }
        let open = self.open.get(session);
        if open.is_none_or(|open| open.id != *id) {
            self.close_answer(session);
            if self.seen.get(id).is_some() {
                return;
            }
            self.seen.insert(id, ());
        }
        self.names.insert(model_id(model), model.to_string());
        // The last part of an answer has its final usage.
        let answer = Answer {
            id: id.clone(),
            model: model_id(model),
            time: draft.timestamp.clone(),
            usage: usage.clone(),
        };
        self.open.insert(session.to_owned(), answer);
    }

    /// Counts the open answer of a session.
    fn close_answer(&mut self, session: &str) {
        match self.open.remove(session) {
            Some(answer) if session.contains('/') => self.of_subagents.push(answer),
            Some(Answer { model, usage, .. }) => {
                self.answered.entry(model).or_default().add(&usage);
            }
            None => {}
        }
    }

    /// The name of a model as it is written elsewhere.
    fn name(&self, id: &str) -> Option<Arc<str>> {
        model_named(self.names.get(id).map_or(id, String::as_str))
    }

    /// Adds the call that compacted a session.
    pub(super) fn add_compaction(&mut self, session: &str, call: Option<Exchange>) {
        self.compactions.extend(call.map(|call| (session.to_owned(), call)));
    }

    /// Notes that a subagent ran. Its answers stand in another file.
    pub(super) fn note_subagent(&mut self) {
        self.has_subagent = true;
    }

    /// Reads a statement. It includes the one before, unless a figure of that is larger. Where one
    /// compaction and nothing else ran since then, the compaction used what the answers lack.
    pub(super) fn read_statement(
        &mut self,
        record: &Object,
        session: &str,
        line: u64,
        sink: &mut Sink,
    ) {
        let Some(models) = record.get("modelUsage").and_then(Value::as_object) else { return };
        let mut stated = ByModel::new();
        for (model, of) in models {
            let (id, Some(usage)) = (model_id(model), usage_of(of)) else { continue };
            self.names.entry(id.clone()).or_insert_with(|| bare(model).to_owned());
            stated.entry(id).or_default().add(&usage);
        }
        let is_less = |(model, before): (&String, &Usage)| {
            let is_less = |now: &Usage| now.input < before.input || now.output < before.output;
            stated.get(model).is_none_or(is_less)
        };
        if self.last.iter().any(is_less) {
            add(&mut self.earlier, &std::mem::take(&mut self.last));
        }
        self.close_answer(session);
        let since = less(&self.answered, &self.answered_then);
        let mut beyond = less(&less(&stated, &self.last), &since);
        beyond.retain(|model, _| is_apart(model, &stated, &self.answered));
        let has_subagent = std::mem::take(&mut self.has_subagent);
        if std::mem::take(&mut self.is_fork) {
            sink.session(session);
            for (model, usage) in beyond {
                let mut exchange = unlisted(line, self.name(&model), usage.clone());
                self.answered.entry(model).or_default().add(&usage);
                exchange.count_in(None);
                sink.exchange(exchange);
            }
        } else if let ([(_, call)], [(model, usage)], false) =
            (&mut *self.compactions, &*beyond.into_iter().collect::<Vec<_>>(), has_subagent)
        {
            call.model = model_named(self.names.get(model).unwrap_or(model));
            call.usage = Some(usage.clone());
            self.answered.entry(model.clone()).or_default().add(usage);
        }
        self.give_compactions(sink);
        self.answered_then.clone_from(&self.answered);
        self.last = stated;
        self.place = Some((session.to_owned(), line));
        self.resumed = None;
    }

    fn give_compactions(&mut self, sink: &mut Sink) {
        for (session, mut call) in self.compactions.drain(..) {
            let before = call.line.and_then(|line| sink.frame_before(&session, line));
            call.frames = vec![before.map(FrameSeq::new)];
            sink.session(&session);
            sink.exchange(call);
        }
    }

    /// Gives the sink the usage in the statements that no answer up to the last one reported.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        self.give_compactions(sink);
        let open: Vec<String> = self.open.keys().cloned().collect();
        open.iter().for_each(|session| self.close_answer(session));
        let Some((session, line)) = self.place.take() else { return };
        let (mut stated, mut answered) =
            (std::mem::take(&mut self.earlier), std::mem::take(&mut self.answered_then));
        add(&mut stated, &self.last);
        for answer in self.of_subagents.drain(..) {
            if self.resumed.is_none() || answer.time < self.resumed {
                answered.entry(answer.model).or_default().add(&answer.usage);
            }
        }
        sink.session(&session);
        for (model, usage) in less(&stated, &answered) {
            if is_apart(&model, &stated, &answered) {
                sink.exchange(unlisted(line, self.name(&model), usage));
            } else {
                let name = self.names.get(&model).unwrap_or(&model);
                let note = format!(
                    "the session states tokens of {name}, but no answer is of that model: they are \
                     not counted"
                );
                sink.note(line, &note);
            }
        }
    }
}

/// The name of a model without what the client, a platform and a date put around it.
fn model_id(model: &str) -> String {
    without_date(bare(model))
}

/// A name without the length of the context (`[1m]`), which the client puts behind it.
fn bare(model: &str) -> &str {
    model.split_once('[').map_or(model, |(model, _)| model)
}

/// Whether what is stated of a model is known to be none of an answer's: the model has answers of its own,
/// or every answer is of a model that is stated.
fn is_apart(model: &str, stated: &ByModel, answered: &ByModel) -> bool {
    let mut others = less(answered, stated).into_keys();
    answered.contains_key(model) || others.all(|other| stated.contains_key(&other))
}

/// What a statement has beyond answers.
fn unlisted(line: u64, model: Option<Arc<str>>, usage: Usage) -> Exchange {
    Exchange {
        line: Some(line),
        api: Api::Messages,
        model,
        usage: Some(usage),
        is_unlisted: true,
        ..Exchange::default()
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
