//! What a session comes to, in a few members.

use std::sync::Arc;

use afterimage::{
    bill::{Bill, UsageSums},
    json::{self, Object, Value},
    request::Exchange,
    session::Viewer,
    steps::words_in,
    transcript::{Money, Usage},
    veil::{Frame, Source as Speaker},
};
use serde::{Deserialize, Serialize};

use crate::when::written;
use crate::{
    answer::answer, copies::Copies, failure::Outcome, input::Source, lens::Lens, text::first_words,
    usage::PriceTable,
};

/// How many columns of the first words are kept.
const FIRST_WORDS: usize = 200;
/// How many models are kept apart.
const MODELS: usize = 64;

/// What a file's sessions come to, as the index keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// The name of the format.
    pub(super) format: String,
    /// The name of its first session.
    pub(super) session: Option<String>,
    /// How many sessions the file holds.
    pub(super) sessions: u64,
    /// The folder that the session worked in, as it says.
    pub(super) project: Option<String>,
    /// The first message of the user.
    pub(super) first: Option<FirstMessage>,
    /// Whether a program says it in the user's place.
    #[serde(skip)]
    is_first_of_program: bool,
    /// When the first and the last record were written, in milliseconds since the epoch.
    pub(super) started: Option<i64>,
    pub(super) ended: Option<i64>,
    pub(super) requests: u64,
    /// The usage that was reported, by model.
    pub(super) models: Vec<ModelUsage>,
    /// What copies of other sessions' answers report, by the session; it counts there.
    pub(super) copied: Vec<CopiedSum>,
    /// What tells the answers that count here, or that copies of them count elsewhere.
    #[serde(skip_serializing)]
    pub(super) answers: Vec<u64>,
    /// Those of them that count elsewhere, and where, as one number; 0 for none.
    #[serde(skip_serializing)]
    pub(super) elsewhere: u64,
    /// Whether a request that was answered reports no usage, or not all of it.
    #[serde(rename = "usagePartial")]
    pub(super) is_usage_partial: bool,
    /// The tokens of the requests as they are counted here, where none was reported.
    #[serde(rename = "countedTokens")]
    pub(super) counted: Option<u64>,
    /// What the answers with a price cost; `None` where none has one.
    pub(super) cost: Option<Money>,
    /// Whether others have none.
    #[serde(rename = "costPartial")]
    pub(super) is_cost_partial: bool,
    /// The date of the prices.
    pub(super) prices_of: String,
}

answer! {
    /// The usage of one model.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    pub(crate) struct ModelUsage {
        /// the model, where the source names it
        model: Option<String>,
        /// the requests whose usage was reported
        requests: u64,
        /// the sum of it
        usage: Usage,
    }

    /// What was copied from one session.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    pub(crate) struct CopiedSum {
        /// the session where it counts; null where the source does not name it
        from: Option<String>,
        /// how many answers are copies
        requests: u64,
        /// what they report
        usage: Usage,
    }

    /// The user's first words.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    pub(crate) struct FirstMessage {
        /// the line of its record in the file; null where the source has none
        line: Option<u64>,
        /// the id of its record; null where the source has none
        uuid: Option<String>,
        /// its first words
        text: String,
    }
}

impl Summary {
    /// Reads a source to its end and keeps no text of it. Counts tokens where `counts` says so.
    pub(super) fn of(
        source: &mut Source,
        lens: &Lens,
        (table, copies): (&PriceTable, &Copies),
        counts: bool,
    ) -> Outcome<Self> {
        source.keep_exchanges();
        let prices = &table.prices;
        let mut summary = Self {
            format: source.format().name().to_owned(),
            prices_of: table.id.clone(),
            ..Self::default()
        };
        let mut viewer = Viewer::new(&lens.hud, source.format());
        let counter = counts.then_some(&*lens.counter);
        while let Some(record) = source.next() {
            let viewed = source.see(&mut viewer, record?)?;
            summary.session.get_or_insert_with(|| viewed.session.to_string());
            summary.note_time(viewed.frame.timestamp.as_deref());
            summary.note_words(&viewed.frame);
            source.see_exchanges(&mut viewer, counter)?;
        }
        source.see_exchanges(&mut viewer, counter)?;
        summary.sessions = source.sessions();
        summary.counted = counts.then(|| viewer.requests().tokens);
        let mut exchanges: Vec<Exchange> = viewer.reported().cloned().collect();
        exchanges.iter().for_each(|exchange| summary.note_time(exchange.time.as_deref()));
        let own = exchanges.iter().filter(|exchange| exchange.copied.is_none());
        summary.answers = own.filter_map(|exchange| exchange.print).collect();
        let name = summary.session.clone().unwrap_or_default();
        let own = (name.as_str(), summary.answers.len());
        summary.elsewhere = copies.print(&summary.answers, own);
        for exchange in exchanges.iter_mut().filter(|exchange| exchange.copied.is_none()) {
            let session = exchange.print.and_then(|answer| copies.elsewhere(answer, own));
            if let Some(session) = session {
                exchange.count_in(Some(Arc::clone(session)));
            }
        }
        let own = || exchanges.iter().filter(|exchange| exchange.copied.is_none());
        summary.requests = own().filter(|exchange| !exchange.is_unlisted).count() as u64;
        // One that broke off reports what it was sent.
        let is_stated = |of: &&Exchange| of.failure.is_none() || of.usage.is_some();
        let is_whole = |of: &Exchange| of.usage.as_ref().is_some_and(Usage::is_whole);
        summary.is_usage_partial = own().filter(is_stated).any(|of| !is_whole(of));
        summary.add(&exchanges.iter().collect());
        summary.price(&Bill::of(prices, &exchanges));
        Ok(summary)
    }

    fn note_time(&mut self, text: Option<&str>) {
        let Some(at) = text.and_then(written) else { return };
        self.started = Some(self.started.map_or(at, |before| before.min(at)));
        self.ended = Some(self.ended.map_or(at, |before| before.max(at)));
    }

    /// Takes what the user says first, be it nothing but what a program puts before it.
    fn note_words(&mut self, frame: &Frame) {
        if self.first.is_some() && !self.is_first_of_program {
            return;
        }
        let words = words_in(frame);
        let said = || frame.added().find(|of| !of.is_result() && !of.content.trim().is_empty());
        let is_new = self.first.is_none() && frame.source == Speaker::User;
        let text = words.or_else(|| is_new.then(said).flatten().map(|facet| &*facet.content));
        let Some(text) = text.map(|text| first_words(text, FIRST_WORDS)) else { return };
        let line = frame.imported.as_ref().map(|of| of.line);
        self.is_first_of_program = words.is_none();
        let uuid = frame.uuid.as_deref().map(str::to_owned);
        self.first = Some(FirstMessage { line, uuid, text });
    }

    fn price(&mut self, bill: &Bill<'_>) {
        self.cost = (bill.priced > 0).then(|| bill.total());
        self.is_cost_partial = bill.is_partial();
    }

    /// Takes what the exchanges report, by model and by the session that they were copied from.
    fn add(&mut self, sums: &UsageSums) {
        let named = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        for (model, sum) in sums.by_model.iter().filter(|(_, sum)| sum.with_usage > 0) {
            let model = named(model).filter(|_| self.models.len() < MODELS);
            let known = self.models.iter().position(|of| of.model == model);
            let at = known.unwrap_or_else(|| {
                self.models.push(ModelUsage { model, requests: 0, usage: Usage::default() });
                self.models.len() - 1
            });
            if let Some(of) = self.models.get_mut(at) {
                of.requests += sum.with_usage;
                of.usage.add(&sum.tokens);
            }
        }
        let copied = sums.copied.iter().map(|(from, sum)| CopiedSum {
            from: named(from),
            requests: sum.exchanges(),
            usage: sum.tokens.clone(),
        });
        self.copied = copied.collect();
    }

    /// The requests whose usage was reported.
    pub(super) fn reported(&self) -> u64 {
        self.models.iter().map(|of| of.requests).fold(0, u64::saturating_add)
    }

    /// The usage of all models.
    pub(super) fn usage(&self) -> Option<Usage> {
        let mut all = None;
        for of in &self.models {
            all.get_or_insert_with(Usage::default).add(&of.usage);
        }
        all
    }

    /// The members, as the index has them.
    pub(super) fn to_entry(&self) -> Object {
        let mut entry = self.to_json();
        let answers = self.answers.iter().map(|answer| Value::from(*answer));
        entry.insert("answers".to_owned(), answers.collect());
        entry.insert("elsewhere".to_owned(), self.elsewhere.into());
        entry
    }

    /// The members, as the index and `--json` have them.
    pub(super) fn to_json(&self) -> Object {
        match json::to_value(self) {
            Ok(Value::Object(members)) => members,
            _ => Object::new(),
        }
    }
}
