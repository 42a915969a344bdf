use std::collections::BTreeMap;

use super::residency::TokenRates;
use crate::transcript::Usage;

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

/// How many times as much tokens cost, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor(u128);

impl Factor {
    const ONE: Self = Self(1_000_000);

    /// A factor that is given in 10^-12.
    pub(super) fn from_pico(pico: u128) -> Self {
        Self(pico / Self::ONE.0)
    }

    /// `None` where the product does not fit.
    fn times(self, amount: u128) -> Option<u128> {
        Some(amount.checked_mul(self.0)? / Self::ONE.0)
    }

    fn saturating_times(self, amount: u128) -> u128 {
        amount.saturating_mul(self.0) / Self::ONE.0
    }
}

/// What a term of a usage adds to its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermPrice {
    /// The tokens cost so many times as much.
    Tokens(Factor),
    /// Each use that the term counts costs this besides the tokens, in 10^-12 of the currency.
    Each(u128),
}

/// What the tokens of a model cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// From the shortest input on; the first is for every one.
    tiers: Vec<Rates>,
    terms: BTreeMap<String, TermPrice>,
}

impl Price {
    pub(super) fn new(tiers: Vec<Rates>, terms: BTreeMap<String, TermPrice>) -> Self {
        Self { tiers, terms }
    }

    /// The price with the factor of a term, such as a region; `None` where the term has no factor.
    pub(super) fn with_term(&self, term: &str) -> Option<Self> {
        let Some(TermPrice::Tokens(factor)) = self.terms.get(term) else { return None };
        let tier = |of: &Rates| Rates {
            over: of.over,
            input: factor.saturating_times(of.input),
            cache_read: factor.saturating_times(of.cache_read),
            cache_write_5m: factor.saturating_times(of.cache_write_5m),
            cache_write_1h: factor.saturating_times(of.cache_write_1h),
            output: factor.saturating_times(of.output),
        };
        Some(Self { tiers: self.tiers.iter().map(tier).collect(), terms: self.terms.clone() })
    }

    /// What an exchange with this usage cost, in 10^-12 of the currency; `None` where a figure is
    /// missing, or a term of it has no price. The length of the input chooses one tier for the
    /// whole request; each run of the model has its own tier. Cache writes without a lifetime are
    /// priced as five-minute writes. A missing figure for cache reads or writes counts as zero.
    /// O(runs).
    pub fn of(&self, usage: &Usage) -> Option<u128> {
        if usage.unreadable.has_price() {
            return None;
        }
        let factor = self.factor(usage)?;
        let mut runs = usage.runs().iter();
        let tokens = runs.try_fold(0_u128, |sum, run| sum.checked_add(self.run_cost(run)?))?;
        factor.times(tokens)?.checked_add(self.use_cost(usage)?)
    }

    /// The terms of a usage that have no price.
    pub fn unpriced_terms<'u>(&self, usage: &'u Usage) -> impl Iterator<Item = &'u str> {
        usage.terms.keys().map(String::as_str).filter(|name| !self.terms.contains_key(*name))
    }

    /// The factor of a usage's priced terms, such as `speed=fast`. `None` if the product overflows.
    fn factor(&self, usage: &Usage) -> Option<Factor> {
        let mut priced = usage.terms.keys().filter_map(|name| self.terms.get(name));
        priced.try_fold(Factor::ONE, |all, price| match price {
            TermPrice::Tokens(factor) => factor.times(all.0).map(Factor),
            TermPrice::Each(_) => Some(all),
        })
    }

    /// The cost of counted uses, such as web searches, in 10^-12 of the currency. `None` if a term
    /// has no price or the sum overflows.
    pub(super) fn use_cost(&self, usage: &Usage) -> Option<u128> {
        usage.terms.iter().try_fold(0_u128, |sum, (name, count)| match self.terms.get(name)? {
            TermPrice::Tokens(_) => Some(sum),
            TermPrice::Each(price) => sum.checked_add(u128::from(*count).checked_mul(*price)?),
        })
    }

    /// The cost of the tokens of one run, without factors. `None` if its input or output is
    /// missing.
    fn run_cost(&self, usage: &Usage) -> Option<u128> {
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
            Some(rates.map(|rate| factor.saturating_times(rate)))
        };
        usage.runs().iter().filter_map(rates).collect()
    }

    /// The extra cost, in 10^-12 of the currency, of `tokens` that the cache did not serve: they
    /// were written again, or read as plain input. With several runs, the first one lost them.
    pub fn lost(&self, tokens: u64, usage: &Usage) -> u128 {
        let factor = self.factor(usage).unwrap_or(Factor::ONE);
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
        factor.saturating_times(lost)
    }
}
