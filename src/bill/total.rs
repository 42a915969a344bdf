use std::sync::Arc;

use indexmap::IndexMap;

use super::{Prices, Unpriced};
use crate::{
    json::{Object, Value, object},
    request::Exchange,
    transcript::Money,
};

crate::json::serialize_through_json!(Bill<'_>);

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
        let mut bill = Self {
            prices,
            priced: 0,
            unpriced: IndexMap::new(),
            unpriced_terms: IndexMap::new(),
            incomplete: 0,
            total: 0,
            by_model: IndexMap::new(),
        };
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
