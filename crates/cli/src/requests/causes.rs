//! Which caches broke, by what was reported, and why: the one answer of all commands.

use std::collections::BTreeMap;

use afterimage::{
    bill::{BrokenCache, Prices, broken_caches},
    guard::Guard,
    id::Millis,
    request::{Exchange, Recording},
    transcript::Money,
};

use crate::when;

/// The broken caches of a recording, by the numbers of their requests. What a copy lost was paid for
/// in the session that it was copied from.
pub(crate) struct BrokenCaches(BTreeMap<usize, BrokenCache>);

impl BrokenCaches {
    pub(crate) fn of(recording: &Recording) -> afterimage::Result<Self> {
        let time = |text: &str| when::written(text).map(Millis::new);
        let is_own = |broken: &BrokenCache| {
            recording.exchange(broken.request).is_some_and(|exchange| exchange.copied.is_none())
        };
        let broken = broken_caches(recording, time)?.into_iter().filter(is_own);
        Ok(Self(broken.map(|broken| (broken.request, broken)).collect()))
    }

    pub(crate) fn get(&self, number: usize) -> Option<&BrokenCache> {
        self.0.get(&number)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &BrokenCache> {
        self.0.values()
    }

    /// The tokens that a request paid again, by its own report; `None` where that does not tell.
    pub(crate) fn lost(&self, exchange: &Exchange) -> Option<u64> {
        let is_served =
            || exchange.usage.as_ref()?.runs().first()?.cache_read.filter(|read| *read > 0);
        let broken = self.get(exchange.number).map(|broken| broken.lost);
        broken.or_else(|| is_served().map(|_| 0))
    }

    /// Why the cache of a request broke; `None` where it did not.
    pub(crate) fn cause(
        &self,
        guard: &Guard,
        recording: &Recording,
        number: usize,
    ) -> afterimage::Result<Option<String>> {
        self.get(number).map(|broken| guard.explain(recording, broken)).transpose()
    }
}

/// What so many lost tokens cost; `None` where the model has no price.
pub(crate) fn price_lost(prices: &Prices, lost: u64, exchange: &Exchange) -> Option<Money> {
    let price = prices.of(exchange.model.as_deref()?)?;
    let lost = price.lost(lost, exchange.usage.as_ref()?);
    Some(Money::from_pico(lost, prices.currency()))
}
