//! What requests report, added up: of a session in cells, which the index keeps and from which all
//! totals are made.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use afterimage::{
    bill::{Bill, Prices, UsageSum},
    id::FrameSeq,
    request::Exchange,
    session::ViewedFrame,
    transcript::{Money, Usage},
    veil::Facet,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{text::first_words, when::written};

/// How long the answers of a cell may be apart, in milliseconds.
pub(super) const CELL: i64 = 5 * 60_000;
/// How many cells of a session are kept apart; what is not in them has neither time nor model.
const CELLS: usize = 4_096;
/// How many columns of the names of tools are kept.
const TOOLS: usize = 200;
const COMMA: &str = ", ";

/// What some requests report, and what that costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// The requests that are listed.
    pub(super) requests: u64,
    /// Those whose usage was reported.
    pub(super) reported: u64,
    /// The sum of it.
    pub(super) usage: Usage,
    /// Whether a request that was answered reports no usage, or not all of it.
    #[serde(rename = "usagePartial")]
    pub(super) is_usage_partial: bool,
    /// What the answers with a price cost; `None` where none has one.
    pub(super) cost: Option<Money>,
    /// Whether others have none.
    #[serde(rename = "costPartial")]
    pub(super) is_cost_partial: bool,
}

impl Figures {
    fn of(exchanges: &[&Exchange], prices: &Prices) -> Self {
        // One that broke off reports what it was sent.
        let is_stated = |of: &&&Exchange| of.failure.is_none() || of.usage.is_some();
        let is_whole = |of: &&Exchange| of.usage.as_ref().is_some_and(Usage::is_whole);
        let bill = Bill::of(prices, exchanges.iter().copied());
        let mut sum = UsageSum::default();
        exchanges.iter().for_each(|exchange| sum.add(exchange));
        Self {
            requests: exchanges.iter().filter(|exchange| !exchange.is_unlisted).count() as u64,
            reported: sum.with_usage,
            usage: sum.tokens,
            is_usage_partial: !exchanges.iter().filter(is_stated).all(is_whole),
            cost: (bill.priced > 0).then(|| bill.total()),
            is_cost_partial: bill.is_partial(),
        }
    }

    /// Adds those of other requests, which were priced by the same table.
    pub(super) fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.reported = self.reported.saturating_add(other.reported);
        self.usage.add(&other.usage);
        self.is_usage_partial |= other.is_usage_partial;
        self.is_cost_partial |= other.is_cost_partial;
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(more)) => {
                let pico = one.pico().saturating_add(more.pico());
                Some(Money::from_pico(pico, one.currency()))
            }
            (one, more) => one.or(more),
        };
    }

    /// The usage, where any was reported.
    pub(super) fn reported_usage(&self) -> Option<&Usage> {
        Some(&self.usage).filter(|_| self.reported > 0)
    }

    /// Input and output together, where one of them was reported.
    pub(super) fn tokens(&self) -> Option<u64> {
        let Usage { input, output, .. } = self.usage;
        let tokens = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
        (input.is_some() || output.is_some()).then_some(tokens)
    }

    /// By what those come first that cost most.
    pub(super) fn weight(&self) -> (u128, u64) {
        (self.cost.map_or(0, Money::pico), self.tokens().unwrap_or(0))
    }
}

/// What the answers of five minutes report, of one model, that called the same tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// When the five minutes begin, in milliseconds since the epoch.
    pub(super) at: Option<i64>,
    /// The model, where the source names it.
    pub(super) model: Option<String>,
    /// The names of the tools, in their order; empty where none was called.
    pub(super) tools: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

impl Cell {
    /// Those of a session, each exchange in one of them.
    pub(super) fn of<'e>(
        exchanges: impl Iterator<Item = &'e Exchange>,
        calls: &CalledTools,
        prices: &Prices,
    ) -> Vec<Self> {
        let mut cells = IndexMap::<_, Vec<&Exchange>>::new();
        for exchange in exchanges {
            let at = exchange.time.as_deref().and_then(written);
            let at = at.map(|at| at.div_euclid(CELL) * CELL);
            let key = (at, exchange.model.clone(), calls.of(exchange));
            let is_kept = cells.len() < CELLS || cells.contains_key(&key);
            cells.entry(if is_kept { key } else { Default::default() }).or_default().push(exchange);
        }
        let cell = |((at, model, tools), of): ((_, Option<Arc<str>>, _), Vec<&Exchange>)| Self {
            at,
            model: model.as_deref().map(str::to_owned),
            tools,
            figures: Figures::of(&of, prices),
        };
        cells.into_iter().map(cell).collect()
    }
}

/// Which tools each frame of a source calls.
#[derive(Default)]
pub(super) struct CalledTools {
    names: HashSet<Arc<str>>,
    calls: HashMap<(Arc<str>, FrameSeq), Arc<str>>,
}

impl CalledTools {
    pub(super) fn note(&mut self, viewed: &ViewedFrame) {
        let calls = viewed.frame.added().filter_map(Facet::call);
        let names: BTreeSet<&str> = calls.map(|call| call.name).collect();
        if names.is_empty() {
            return;
        }
        let names = names.into_iter().collect::<Vec<_>>().join(COMMA);
        let names = first_words(&names, TOOLS);
        let names = self.names.get(&*names).cloned().unwrap_or_else(|| names.into());
        self.names.insert(Arc::clone(&names));
        self.calls.insert((Arc::clone(&viewed.session), viewed.frame.sequence), names);
    }

    /// The names of those that an answer calls.
    fn of(&self, exchange: &Exchange) -> String {
        let of = |frame: &FrameSeq| self.calls.get(&(Arc::clone(&exchange.session), *frame));
        let calls = exchange.answer_frames.iter().filter_map(of);
        let names: BTreeSet<&str> = calls.flat_map(|names| names.split(COMMA)).collect();
        first_words(&names.into_iter().collect::<Vec<_>>().join(COMMA), TOOLS)
    }
}
