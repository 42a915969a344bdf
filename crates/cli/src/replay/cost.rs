//! What replayed requests cost by a table of prices.

use afterimage::{
    bill::Price,
    replay::{ReplayFigures, ReplayRates},
    transcript::{Currency, Money, Usage},
};

use super::args::Replay;
use crate::{
    failure::{Failure, Outcome},
    usage,
};

/// The prices that a bill is by.
pub(super) struct Pricing {
    price: Option<(Price, Currency)>,
    rates: ReplayRates,
}

/// The cost so far, and the usage of the turn that goes on.
#[derive(Default)]
pub(super) struct Running {
    pico: u128,
    open: Option<Usage>,
}

/// A request of so many tokens has the prices of short ones.
const SHORT: u64 = 1_000;

impl Pricing {
    pub(super) fn new(args: &Replay) -> Outcome<Self> {
        let Some(model) = &args.model else {
            return Ok(Self { price: None, rates: ReplayRates::default() });
        };
        let prices = usage::prices(&crate::args::Pricing { prices: args.prices.clone() })?;
        let Some(price) = prices.of(model) else {
            let failure = Failure::new(format!("no price of the model {model:?}"));
            let hint = "`--prices FILE` takes a table of your own";
            return Err(failure.hint(hint).into());
        };
        let rates = rates(price).unwrap_or_default();
        Ok(Self { price: Some((price.clone(), prices.currency())), rates })
    }

    /// Whether costs are known.
    pub(super) fn has_model(&self) -> bool {
        self.price.is_some()
    }

    pub(super) fn rates(&self) -> ReplayRates {
        self.rates
    }

    /// What a session cost, its summaries among it.
    pub(super) fn total(&self, running: &Running, figures: &ReplayFigures) -> Option<Money> {
        let (price, currency) = self.price.as_ref()?;
        let asked = of(figures.summary_input, (figures.summary_cached, 0), figures.summary_output);
        let open = running.open.as_ref().and_then(|open| price.of(open));
        // Summaries are asked for one by one: none of them is a long request.
        let asked = share(price, &asked, figures.summary_calls);
        let pico = running.pico.saturating_add(open.unwrap_or(0)).saturating_add(asked);
        Some(Money::from_pico(pico, *currency))
    }
}

impl Running {
    /// What a frame added to the figures.
    pub(super) fn add(&mut self, pricing: &Pricing, before: &ReplayFigures, after: &ReplayFigures) {
        let Some((price, _)) = &pricing.price else { return };
        if after.turns > before.turns {
            let last = self.open.take().and_then(|open| price.of(&open));
            self.pico = self.pico.saturating_add(last.unwrap_or(0));
            let input = after.tokens_sent - before.tokens_sent;
            let read = after.tokens_cached - before.tokens_cached;
            self.open = Some(of(input, (read, input - read), 0));
        }
        let said = after.tokens_answered - before.tokens_answered;
        if let Some(open) = &mut self.open {
            open.output = open.output.map(|output| output + said);
        }
    }
}

fn of(input: u64, (read, written): (u64, u64), output: u64) -> Usage {
    let mut usage = Usage::default();
    (usage.input, usage.output) = (Some(input), Some(output));
    (usage.cache_read, usage.cache_write) = (Some(read), Some(written));
    usage
}

/// What some requests cost that are alike.
fn share(price: &Price, all: &Usage, requests: u64) -> u128 {
    if requests == 0 {
        return 0;
    }
    let one = |figure: Option<u64>| figure.unwrap_or(0).div_ceil(requests);
    let one = of(one(all.input), (one(all.cache_read), 0), one(all.output));
    price.of(&one).unwrap_or(0).saturating_mul(u128::from(requests))
}

/// The prices beside that of plain input.
fn rates(price: &Price) -> Option<ReplayRates> {
    let pico = |usage: Usage| price.of(&usage);
    let input = pico(of(SHORT, (0, 0), 0))?.max(1);
    let beside = |pico: u128| u64::try_from(pico * 1000 / input).ok();
    Some(ReplayRates {
        write: beside(pico(of(SHORT, (0, SHORT), 0))?)?,
        read: beside(pico(of(SHORT, (SHORT, 0), 0))?)?,
        output: beside(pico(of(0, (0, 0), SHORT))?)?,
    })
}
