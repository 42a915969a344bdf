//! Counts of ours as the provider of a model counts, learned from what it reports.

use std::collections::BTreeMap;

use super::{Model, core::LastRequest};
use crate::{
    bill::usual_slope,
    tokens::{Slope, TokenCounter},
    usage::Usage,
};

/// Slopes rise in so many steps of a token: each rise changes the budget, and so the cache.
const PARTS: u64 = 64;

/// One of them, in millionths.
const PART: u64 = 1_000_000 / PARTS;

/// Requests of less than this part of a model's room teach nothing: what the provider adds to each weighs
/// too much in them.
const LEAST_SHARE: u64 = 4;

/// So many tokens of ours as the model counts them.
pub(super) fn counted_by(slope: Slope, tokens: u64) -> u64 {
    slope.of(usize::try_from(tokens).unwrap_or(usize::MAX)) as u64
}

/// How many tokens of ours are no more than so many of the model's.
pub(super) fn counted_within(tokens: u64, slope: Slope) -> u64 {
    slope.at_most(usize::try_from(tokens).unwrap_or(usize::MAX)) as u64
}

/// For each model, by its name, how many of its tokens one of ours is. A slope never falls: what was sent
/// stays as it was.
#[derive(Debug, Default)]
pub(super) struct Scales(BTreeMap<String, Slope>);

impl Scales {
    /// That of a model: what it showed, else what is known of its family.
    pub(super) fn of(&self, model: &Model, counter: &dyn TokenCounter) -> Slope {
        let shown = self.0.get(&model.name).copied();
        usual_slope(&model.name, counter).max(shown.unwrap_or(Slope::LEAST))
    }

    /// Learns from the usage that an answer reports. A slope that no tokenizer has says that it is the
    /// usage of something else.
    pub(super) fn learn(&mut self, asked: &LastRequest, usage: &Usage) {
        let LastRequest { model, counted, media, .. } = asked;
        if *counted < (model.budget().room() / LEAST_SHARE).max(1) || !usage.iterations.is_empty() {
            return;
        }
        let texts = usage.input.and_then(|input| input.checked_sub(*media)).unwrap_or(0);
        let parts = u128::from(texts) * u128::from(PARTS);
        let parts = u64::try_from(parts.div_ceil(u128::from(*counted))).unwrap_or(u64::MAX);
        let slope = u32::try_from(parts.saturating_mul(PART)).ok().and_then(Slope::from_millionths);
        if let Some(slope) = slope {
            let known = self.0.entry(model.name.clone()).or_insert(slope);
            *known = slope.max(*known);
        }
    }
}
