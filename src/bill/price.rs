use std::{collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;

use super::{Prices, Unpriced, residency::TokenRates};
use crate::{
    json::{Object, Value, object},
    request::Exchange,
    transcript::{Money, Usage},
    usage::WEB_SEARCH,
};

crate::json::serialize_through_json!(Bill<'_>);

/// The price of one token of each kind, in 10^-12 of the currency, for requests whose input is
/// longer than `over` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) over: u64,
    pub(super) input: u128,
    pub(super) cache_read: u128,
    pub(super) cache_write_5m: u128,
    pub(super) cache_write_1h: u128,
    pub(super) output: u128,
}

/// One, as factors are kept.
pub(super) const ONE: u128 = 1_000_000;

/// What the tokens of a model cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// From the shortest input on; the first is for every one.
    tiers: Vec<Rates>,
    /// What tokens cost more, or less, under a term, in millionths.
    terms: BTreeMap<String, u128>,
    /// What a web search of the provider's costs, in 10^-12 of the currency.
    web_search: Option<u128>,
}

impl Price {
    pub(super) fn new(tiers: Vec<Rates>) -> Self {
        Self { tiers, terms: BTreeMap::new(), web_search: None }
    }

    /// The same, with what the provider says of all models; the model's own terms hold.
    pub(super) fn with(
        mut self,
        own: BTreeMap<String, u128>,
        of_all: &BTreeMap<String, u128>,
        web_search: Option<u128>,
    ) -> Self {
        self.terms = of_all.clone();
        self.terms.extend(own);
        self.web_search = web_search;
        self
    }

    /// What an exchange with this usage cost, in 10^-12 of the currency; `None` where a figure is
    /// missing, or a term of it has no price. The whole request costs what its tier says; where a
    /// provider ran the model several times, each run has its own. What was written to the cache and
    /// says not for how long stays for five minutes, as the providers have it. O(runs).
    pub fn of(&self, usage: &Usage) -> Option<u128> {
        if usage.unreadable.has_price() {
            return None;
        }
        let factor = self.factor(usage)?;
        let mut runs = usage.runs().iter();
        let tokens = runs.try_fold(0_u128, |sum, run| sum.checked_add(self.of_run(run)?))?;
        (tokens.checked_mul(factor)? / ONE).checked_add(self.web_searches(usage)?)
    }

    /// The terms of a usage that have no price.
    pub fn unpriced_terms<'u>(&self, usage: &'u Usage) -> impl Iterator<Item = &'u str> {
        let is_priced = |name: &str| match name {
            WEB_SEARCH => self.web_search.is_some(),
            name => self.terms.contains_key(name),
        };
        usage.terms.keys().map(String::as_str).filter(move |name| !is_priced(name))
    }

    /// What the tokens of a usage cost more, or less, by its terms, in millionths.
    fn factor(&self, usage: &Usage) -> Option<u128> {
        let mut terms = usage.terms.keys().filter(|name| *name != WEB_SEARCH);
        terms.try_fold(ONE, |all, name| Some(all.checked_mul(*self.terms.get(name)?)? / ONE))
    }

    /// What the provider's own web searches cost.
    pub(super) fn web_searches(&self, usage: &Usage) -> Option<u128> {
        match usage.terms.get(WEB_SEARCH) {
            None => Some(0),
            Some(count) => u128::from(*count).checked_mul(self.web_search?),
        }
    }

    fn of_run(&self, usage: &Usage) -> Option<u128> {
        let (input, output) = (usage.input?, usage.output?);
        let rates = self.tier(input)?;
        let read = usage.cache_read.unwrap_or(0);
        let written = usage.cache_write.unwrap_or(0);
        let hour = usage.cache_write_1h.unwrap_or(0);
        let plain = input.checked_sub(read)?.checked_sub(written)?;
        let parts = [
            (plain, rates.input),
            (read, rates.cache_read),
            (written.checked_sub(hour)?, rates.cache_write_5m),
            (hour, rates.cache_write_1h),
            (output, rates.output),
        ];
        parts.into_iter().try_fold(0_u128, |sum, (tokens, rate)| {
            sum.checked_add(u128::from(tokens).checked_mul(rate)?)
        })
    }

    /// The prices of a request with so long an input.
    fn tier(&self, input: u64) -> Option<&Rates> {
        self.tiers.iter().rev().find(|rates| rates.over == 0 || input > rates.over)
    }

    /// The prices of the tokens of each run of an exchange with this usage; none where it has no
    /// price.
    pub(super) fn token_rates(&self, usage: &Usage) -> Vec<TokenRates> {
        let Some(factor) = self.of(usage).and_then(|_| self.factor(usage)) else {
            return Vec::new();
        };
        let rates = |run: &Usage| {
            let of = self.tier(run.input?)?;
            let rates = [of.cache_read, of.cache_write_1h, of.cache_write_5m, of.input, of.output];
            Some(rates.map(|rate| rate.saturating_mul(factor) / ONE))
        };
        usage.runs().iter().filter_map(rates).collect()
    }

    /// What it cost more, in 10^-12 of the currency, that a cache did not serve so many tokens of a
    /// request with this usage: they were written to it again, or else read as others are. Where the
    /// model ran several times, it is the first run that lost them.
    pub fn lost(&self, tokens: u64, usage: &Usage) -> u128 {
        let factor = self.factor(usage).unwrap_or(ONE);
        let usage = usage.runs().first().unwrap_or(usage);
        let input = usage.input.unwrap_or(0);
        let Some(rates) = self.tier(input) else { return 0 };
        let written = tokens.min(usage.cache_write.unwrap_or(0));
        let hour = written.min(usage.cache_write_1h.unwrap_or(0));
        let parts = [
            (tokens - written, rates.input),
            (written - hour, rates.cache_write_5m),
            (hour, rates.cache_write_1h),
        ];
        let lost = parts.into_iter().fold(0, |sum: u128, (tokens, rate)| {
            let more = rate.saturating_sub(rates.cache_read);
            sum.saturating_add(u128::from(tokens).saturating_mul(more))
        });
        lost.saturating_mul(factor) / ONE
    }
}

/// What exchanges cost by a table of prices.
#[derive(Clone, Debug)]
pub struct Bill<'p> {
    prices: &'p Prices,
    /// The exchanges that have a price.
    pub priced: u64,
    /// Those whose model has none, by model; `None` where the source names none.
    pub unpriced: IndexMap<Option<Arc<str>>, u64>,
    /// Those whose usage has a term that the table has no price for, by term.
    pub unpriced_terms: IndexMap<String, u64>,
    /// Those whose usage is not complete. One that failed and reports nothing is none of them.
    pub incomplete: u64,
    total: u128,
    by_model: IndexMap<Option<Arc<str>>, u128>,
}

impl<'p> Bill<'p> {
    /// What these exchanges cost. Looks up the model of each, as [`Prices::of`].
    pub fn of<'e>(prices: &'p Prices, exchanges: impl IntoIterator<Item = &'e Exchange>) -> Self {
        let (priced, unpriced, unpriced_terms, incomplete, total, by_model) = Default::default();
        let mut bill =
            Self { prices, priced, unpriced, unpriced_terms, incomplete, total, by_model };
        exchanges.into_iter().for_each(|exchange| bill.add(exchange));
        bill
    }

    /// A copy costs nothing here.
    fn add(&mut self, exchange: &Exchange) {
        if exchange.copied.is_some() {
            return;
        }
        match self.prices.cost(exchange) {
            Ok(cost) => {
                self.priced += 1;
                self.total = self.total.saturating_add(cost.pico());
                let model = self.by_model.entry(exchange.model.clone()).or_default();
                *model = model.saturating_add(cost.pico());
            }
            Err(Unpriced::UnknownModel) => {
                *self.unpriced.entry(exchange.model.clone()).or_default() += 1;
            }
            Err(Unpriced::Term(name)) => *self.unpriced_terms.entry(name).or_default() += 1,
            Err(Unpriced::NoUsage) if exchange.failure.is_some() => {}
            Err(_) => self.incomplete += 1,
        }
    }

    /// The table of prices.
    pub fn prices(&self) -> &'p Prices {
        self.prices
    }

    /// What they cost together, as far as it is known.
    pub fn total(&self) -> Money {
        Money::from_pico(self.total, self.prices.currency())
    }

    /// What those of each model cost. O(models) for all of them.
    pub fn by_model(&self) -> impl Iterator<Item = (Option<&str>, Money)> {
        let currency = self.prices.currency();
        let by_model = self.by_model.iter();
        by_model.map(move |(model, pico)| (model.as_deref(), Money::from_pico(*pico, currency)))
    }

    /// Whether some exchanges are in no sum: their model has no price, or their usage is not whole.
    pub fn is_partial(&self) -> bool {
        self.incomplete > 0 || !self.unpriced.is_empty() || !self.unpriced_terms.is_empty()
    }

    /// The wire form. `total` is null where no exchange has a price. The key of the exchanges whose
    /// source names no model is the empty string. O(size).
    pub fn to_json(&self) -> Object {
        let name = |model: Option<&str>| model.unwrap_or_default().to_owned();
        let unpriced = self.unpriced.iter();
        let by_model = self.by_model();
        let terms = self.unpriced_terms.iter();
        object! {
            "date": self.prices.date(),
            "total": if self.priced > 0 { Value::from(self.total()) } else { Value::Null },
            "partial": self.is_partial(),
            "priced": self.priced,
            "incomplete": self.incomplete,
            "unpriced": unpriced.map(|(model, count)| (name(model.as_deref()), Value::from(*count))).collect::<Object>(),
            "unpricedTerms": terms.map(|(name, count)| (name.clone(), Value::from(*count))).collect::<Object>(),
            "byModel": by_model.map(|(model, cost)| (name(model), Value::from(cost))).collect::<Object>(),
        }
    }
}
