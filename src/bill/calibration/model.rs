//! The calibration of one model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    DistantInterval, KindCounts, MILLION, RefusalReason, TextKind,
    distance::{distant_intervals, usual_step},
    figures::nearest_per_message,
    held_out::{self, Coefficients},
    rounded,
    sample::Sample,
    whole, wire,
};
use crate::tokens::Slope;

/// How many exchanges of a model must be reported before its counts are calibrated.
pub(super) const NEEDED: u64 = 20;
/// An interval of more than this part of the usual input says nothing: one in so many.
const WIDEST: f64 = 4.0;
/// Of a hundred held-out exchanges the interval must hold so many, of the ninety that it promises.
pub(super) const LEAST_HELD: u64 = 85;

/// What reported tokens are to counted ones of one model.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ModelCalibration {
    /// The model, as the source names it.
    pub model: Arc<str>,
    /// Reported tokens for one that is counted, over all text.
    #[serde(with = "wire::slope")]
    pub slope: Slope,
    /// Tokens for each message besides, in millionths: marks, names, ids. It may be negative, where
    /// a message is counted as more than the provider sees.
    pub per_message: i64,
    /// As `slope` for each kind of text, in millionths, in the order of [`TextKind::ALL`].
    #[serde(with = "wire::by_kind")]
    pub kinds: [i64; TextKind::ALL.len()],
    /// As `per_message`, beside these.
    #[serde(rename = "kindsPerMessage")]
    pub per_message_of_kinds: i64,
    /// How many exchanges were fitted.
    pub exchanges: u64,
    /// How far nine in ten of the held-out exchanges were at most from what was predicted for them,
    /// in tokens, where the exchange before is reported.
    pub interval: u64,
    /// How many exchanges were held out to check such an interval.
    pub checked: u64,
    /// How many of these it held.
    pub held: u64,
    /// The median error of held-out exchanges, in millionths of what was reported.
    pub median_error: u64,
    /// How many counted tokens a context changes by from one exchange to the next: the median.
    pub usual_step: u64,
    /// As `interval` for requests that are farther from the last reported one, the nearest first.
    pub distant: Vec<DistantInterval>,
}

/// A count with its interval, and what it was worked out from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibratedCount {
    /// The count.
    pub tokens: u64,
    /// The least of the interval.
    pub low: u64,
    /// The most.
    pub high: u64,
    /// What it was worked out from.
    pub basis: CountBasis,
}

/// What says what a transcript lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBasis {
    /// A reported request of the session, so many exchanges before.
    Report {
        /// 1 for the request before.
        exchanges: u64,
    },
    /// The first requests of so many other sessions of the same client with the same model: the
    /// session reported nothing yet.
    Sessions {
        /// How many.
        count: u64,
    },
}

impl CalibratedCount {
    pub(super) fn new(tokens: u64, interval: u64, basis: CountBasis) -> Self {
        let (low, high) = (tokens.saturating_sub(interval), tokens.saturating_add(interval));
        Self { tokens, low, high, basis }
    }
}

impl ModelCalibration {
    pub(super) fn of(model: &Arc<str>, samples: &[Sample]) -> Result<Self, RefusalReason> {
        let too_few = RefusalReason::TooFew { needed: NEEDED };
        if (samples.len() as u64) < NEEDED {
            return Err(too_few);
        }
        let worth = held_out::worth(samples).ok_or(too_few)?;
        let Coefficients { slope, per_message, kinds } = held_out::fit(samples, |_| true);
        let millionths = super::millionths(slope);
        let fitted = u32::try_from(millionths).ok().and_then(Slope::from_millionths);
        let slope = fitted.ok_or(RefusalReason::Slope { millionths })?;
        let interval = whole(worth.interval.ceil());
        if worth.interval * WIDEST > worth.median_reported {
            let reported = whole(worth.median_reported);
            return Err(RefusalReason::Scattered { interval, reported });
        }
        let (held, checked) = (worth.held, worth.checked);
        if held.saturating_mul(100) < checked.saturating_mul(LEAST_HELD) {
            return Err(RefusalReason::Uncovered { held, checked });
        }
        let [prose, calls, results, reasoning, per_message_of_kinds] = kinds.map(super::millionths);
        // A kind that is almost never there may come out anywhere.
        let mut kinds = [prose, calls, results, reasoning];
        for (slope, kind) in kinds.iter_mut().zip(TextKind::ALL) {
            *slope = kind.nearest_slope(*slope);
        }
        Ok(Self {
            model: Arc::clone(model),
            slope,
            per_message: nearest_per_message(super::millionths(per_message)),
            kinds,
            per_message_of_kinds: nearest_per_message(per_message_of_kinds),
            exchanges: samples.len() as u64,
            interval,
            checked: worth.checked,
            held: worth.held,
            median_error: whole((worth.median_error * 1e6).round()),
            distant: distant_intervals(samples, interval),
            usual_step: usual_step(samples),
        })
    }

    /// What a request of these counts is reported as, without what its transcript lacks, in
    /// millionths.
    fn counted(&self, counts: &KindCounts) -> i128 {
        let tokens = counts.tokens.iter().zip(self.kinds);
        let tokens = tokens.map(|(tokens, slope)| i128::from(*tokens) * i128::from(slope));
        let messages = i128::from(counts.messages) * i128::from(self.per_message_of_kinds);
        tokens.sum::<i128>() + messages + i128::from(counts.media) * MILLION
    }

    /// The input of a request that holds `held`, so many exchanges after one that held `before` was
    /// reported as `reported` tokens.
    pub fn after(
        &self,
        reported: u64,
        before: &KindCounts,
        held: &KindCounts,
        exchanges: u64,
    ) -> CalibratedCount {
        let tokens = i128::from(reported) + rounded(self.counted(held) - self.counted(before));
        let tokens = u64::try_from(tokens.max(0)).unwrap_or(u64::MAX);
        let shrunk = before.total().saturating_sub(held.total());
        let basis = CountBasis::Report { exchanges };
        CalibratedCount::new(tokens, self.interval_after(exchanges, shrunk), basis)
    }

    /// The input of a request that holds `held`, where its transcript lacks so much.
    pub(super) fn with_lacking(
        &self,
        held: &KindCounts,
        lacks: i64,
        interval: u64,
        basis: CountBasis,
    ) -> CalibratedCount {
        let tokens = rounded(self.counted(held)) + i128::from(lacks);
        let tokens = u64::try_from(tokens.max(0)).unwrap_or(u64::MAX);
        CalibratedCount::new(tokens, interval, basis)
    }

    /// What a request lacked that was reported as so many tokens, by the slopes of kinds.
    pub(super) fn lacking(&self, reported: u64, counts: &KindCounts) -> i64 {
        let lacks = i128::from(reported) - rounded(self.counted(counts));
        i64::try_from(lacks).unwrap_or_default()
    }

    /// The half-width of the interval of a request so many exchanges after a reported one, whose
    /// context has lost so many counted tokens since. Never less than one that is nearer.
    ///
    /// It is what held-out exchanges at such distances were off by. Between two distances it is
    /// worked out in proportion, and beyond the last by the square root, as errors add up that have
    /// nothing to do with each other. A context that shrank is as far as the exchanges that change as
    /// much.
    pub fn interval_after(&self, exchanges: u64, shrunk_by: u64) -> u64 {
        let shrunk = shrunk_by.div_ceil(self.usual_step.max(1));
        let distance = exchanges.max(shrunk).max(1) as f64;
        let (mut near, mut width) = (1.0, self.interval as f64);
        for of in &self.distant {
            let (far, farther) = (of.exchanges as f64, of.interval as f64);
            if distance <= far {
                let part = (distance - near) / (far - near).max(1.0);
                return whole((width + part * (farther - width)).ceil());
            }
            (near, width) = (far, farther);
        }
        whole((width * (distance / near).sqrt()).ceil())
    }

    /// What a context's messages cost besides their texts, in whole tokens.
    pub fn tokens_per_message(&self) -> u64 {
        u64::try_from(rounded(i128::from(self.per_message))).unwrap_or(0)
    }
}
