//! What a session comes to, in a few members.

use std::sync::Arc;

use afterimage::{
    bill::{UsageSum, UsageSums},
    request::Exchange,
    session::Viewer,
    steps::words_in,
    transcript::{LimitWindow, Usage},
    veil::Frame,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::figures::{CalledTools, Cell, Figures};
use crate::{
    answer::answer,
    copies::Copies,
    failure::Outcome,
    input::{Source, Span},
    lens::Lens,
    text::first_words,
    usage::PriceTable,
};

/// How many columns of the first words are kept.
const FIRST_WORDS: usize = 200;

/// What a file's sessions come to, as the index keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// The name of the format.
    pub(super) format: String,
    /// Of one in an archive, the path with which it was archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// The name of its first session.
    pub(super) session: Option<String>,
    /// How many sessions the file holds.
    pub(super) sessions: u64,
    /// The folder that the session worked in, as it says.
    pub(super) project: Option<String>,
    /// The first message of the user.
    pub(super) first: Option<FirstMessage>,
    /// When the first and the last record were written, in milliseconds since the epoch.
    pub(super) started: Option<i64>,
    pub(super) ended: Option<i64>,
    /// What its answers report, apart by time, model and tools; copies count elsewhere.
    pub(super) cells: Vec<Cell>,
    /// How many records were not understood.
    #[serde(rename = "unknownRecords")]
    pub(super) unknown_records: u64,
    /// The windows of rate limits that the source reports.
    pub(super) limits: Vec<LimitWindow>,
    /// What copies of other sessions' answers report, by the session; it counts there.
    pub(super) copied: Vec<CopiedSum>,
    /// What tells the answers that count here, or that copies of them count elsewhere.
    pub(super) answers: Vec<u64>,
    /// Those of them that count elsewhere, and where, as one number; 0 for none.
    pub(super) elsewhere: u64,
    /// The tokens of the requests as they are counted here, where none was reported.
    #[serde(rename = "countedTokens")]
    pub(super) counted: Option<u64>,
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
        let (mut calls, mut span) = (CalledTools::default(), Span::default());
        while let Some(record) = source.next() {
            let viewed = source.see(&mut viewer, record?)?;
            if summary.session.is_none() {
                summary.session = Some(viewed.session.to_string());
            }
            span.take(viewed.frame.timestamp.as_deref());
            summary.note_words(&viewed.frame);
            calls.note(&viewed);
            source.see_exchanges(&mut viewer, counter)?;
        }
        source.see_exchanges(&mut viewer, counter)?;
        summary.sessions = source.sessions();
        summary.counted = counts.then(|| viewer.requests().tokens);
        let mut exchanges: Vec<Exchange> = viewer.reported().cloned().collect();
        exchanges.iter().for_each(|exchange| span.take(exchange.time.as_deref()));
        (summary.started, summary.ended) = (span.first, span.last);
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
        let own = exchanges.iter().filter(|exchange| exchange.copied.is_none());
        summary.cells = Cell::of(own, &calls, prices);
        let report = source.report();
        summary.limits.clone_from(&report.limits);
        summary.unknown_records = report.unknown_records;
        let copied = exchanges.iter().collect::<UsageSums>().copied;
        let sum = |(from, sum): (&Option<Arc<str>>, &UsageSum)| CopiedSum {
            from: from.as_deref().map(str::to_owned),
            requests: sum.exchanges(),
            usage: sum.tokens.clone(),
        };
        summary.copied = copied.iter().map(sum).collect();
        Ok(summary)
    }

    /// Takes what the user says first.
    fn note_words(&mut self, frame: &Frame) {
        if self.first.is_some() {
            return;
        }
        let Some(text) = words_in(frame).map(|text| first_words(text, FIRST_WORDS)) else { return };
        let line = frame.imported.as_ref().map(|of| of.line);
        let uuid = frame.uuid.as_deref().map(str::to_owned);
        self.first = Some(FirstMessage { line, uuid, text });
    }

    /// Whether the tokens of its requests are to be counted: nobody reported any.
    pub(super) fn is_to_be_counted(&self) -> bool {
        let total = self.total();
        total.requests > 0 && total.reported == 0
    }

    /// What all of its answers come to.
    pub(super) fn total(&self) -> Figures {
        let mut total = Figures::default();
        self.cells.iter().for_each(|cell| total.add(&cell.figures));
        total
    }

    /// The usage of each model, in the order of their first answers.
    pub(super) fn models(&self) -> Vec<ModelUsage> {
        let mut models: IndexMap<_, Figures> = IndexMap::new();
        for cell in self.cells.iter().filter(|cell| cell.figures.reported > 0) {
            models.entry(&cell.model).or_default().add(&cell.figures);
        }
        let usage = |(model, figures): (&Option<String>, Figures)| ModelUsage {
            model: model.clone(),
            requests: figures.reported,
            usage: figures.usage,
        };
        models.into_iter().map(usage).collect()
    }
}
