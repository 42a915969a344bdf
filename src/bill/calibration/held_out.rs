//! Fitting, and what the fit is worth on exchanges that took no part in it.

use std::collections::HashMap;

use super::{
    KindCounts, TextKind,
    regression::{Point, dot, least_absolute},
    sample::Sample,
};

/// How many parts the exchanges are divided into; each is held out once.
pub(super) const FOLDS: usize = 5;
/// The share of held-out exchanges that an interval holds, in percent.
pub(super) const HOLDS: usize = 90;
const KINDS: usize = TextKind::ALL.len();

/// Before anything is known: what the models of several providers came to over recorded sessions.
const PRIOR: [f64; 2] = [1.15, 20.0];
/// How much a fit is held to that.
const PRIOR_RIDGE: [f64; 2] = [10.0, 0.1];
/// How much a kind of text is held to all text. With less, kinds of few tokens predicted worse.
const KIND_RIDGE: f64 = 1e4;

/// What was fitted: tokens that are reported for one that is counted, and for each message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficients {
    /// One for all text.
    pub(super) slope: f64,
    pub(super) per_message: f64,
    /// One for each kind.
    pub(super) kinds: [f64; KINDS + 1],
}

/// What a held-out exchange was predicted to be, and is.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    error: f64,
    reported: f64,
}

/// What a fit is worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    /// The half-width that holds nine in ten of held-out exchanges.
    pub(super) interval: f64,
    /// How many were held out to check an interval that none of them had a part in.
    pub(super) checked: u64,
    /// How many of these it held.
    pub(super) held: u64,
    /// The median error, as a share of what was reported.
    pub(super) median_error: f64,
    /// The median of what was reported.
    pub(super) median_reported: f64,
}

fn row(counts: &KindCounts) -> [f64; KINDS + 1] {
    let mut row = [0.0; KINDS + 1];
    for (own, tokens) in row.iter_mut().zip(counts.tokens.iter().chain([&counts.messages])) {
        *own = *tokens as f64;
    }
    row
}

/// What is reported of the texts of a request: images cost what their rule says.
fn of_text(sample: &Sample) -> f64 {
    sample.reported as f64 - sample.counts.media as f64
}

/// The differences between exchanges that follow each other in a session: what a transcript lacks
/// is in both, and drops out.
fn differences(samples: &[Sample], keeps: impl Fn(usize) -> bool) -> Vec<Point<{ KINDS + 1 }>> {
    let mut last: HashMap<(usize, &str), &Sample> = HashMap::new();
    let mut points = Vec::new();
    for (_, sample) in samples.iter().enumerate().filter(|(index, _)| keeps(*index)) {
        if let Some(before) = last.insert(sample.key(), sample) {
            let (mut is, was) = (row(&sample.counts), row(&before.counts));
            is.iter_mut().zip(was).for_each(|(is, was)| *is -= was);
            points.push((is, of_text(sample) - of_text(before)));
        }
    }
    points
}

/// Fits the exchanges that are kept.
pub(super) fn fit(samples: &[Sample], keeps: impl Fn(usize) -> bool) -> Coefficients {
    let points = differences(samples, keeps);
    let of_all = points.iter().map(|(counted, reported)| {
        let tokens = counted.iter().take(KINDS).sum();
        ([tokens, counted.last().copied().unwrap_or_default()], *reported)
    });
    let of_all: Vec<Point<2>> = of_all.collect();
    let [slope, per_message] = least_absolute(&of_all, PRIOR, PRIOR_RIDGE);
    let (mut prior, mut ridge) = ([slope; KINDS + 1], [KIND_RIDGE; KINDS + 1]);
    prior.iter_mut().last().into_iter().for_each(|last| *last = per_message);
    ridge.iter_mut().last().into_iter().for_each(|last| *last = 0.1);
    Coefficients { slope, per_message, kinds: least_absolute(&points, prior, ridge) }
}

/// The tokens of what a request holds by our count, as its provider would report them.
pub(super) fn predicted(of: &Coefficients, counts: &KindCounts) -> f64 {
    dot(&of.kinds, &row(counts)) + counts.media as f64
}

/// Predicts the exchanges that are `tested` from the last one before them in their session that is
/// `known`.
fn predict(
    samples: &[Sample],
    of: &Coefficients,
    known: impl Fn(usize) -> bool,
    tested: impl Fn(usize) -> bool,
) -> Vec<Outcome> {
    let mut rest: HashMap<(usize, &str), f64> = HashMap::new();
    let mut outcomes = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let reported = sample.reported as f64;
        let counted = predicted(of, &sample.counts);
        if tested(index) {
            let known = rest.get(&sample.key());
            outcomes
                .extend(known.map(|rest| Outcome { error: counted + rest - reported, reported }));
        } else if known(index) {
            rest.insert(sample.key(), reported - counted);
        }
    }
    outcomes
}

/// The half-width that holds nine in ten of as many errors again, by the rule of split conformal
/// prediction: the ⌈0.9 (n + 1)⌉-th smallest. `None` of fewer than nine.
fn half_width(outcomes: &[Outcome]) -> Option<f64> {
    let errors = outcomes.iter().map(|outcome| outcome.error.abs()).collect();
    conformal(errors, HOLDS)
}

/// The half-width that holds so many percent of as many errors again; `None` of too few.
pub(super) fn conformal(mut errors: Vec<f64>, percent: usize) -> Option<f64> {
    errors.sort_by(f64::total_cmp);
    let rank = ((errors.len() + 1) * percent).div_ceil(100);
    errors.get(rank.checked_sub(1)?).copied()
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// What fits of these exchanges are worth; `None` where there are too few.
///
/// Each fifth exchange is held out in turn. An interval is worked out from the four others, each of
/// which is held out of a fit of the remaining three: so the exchanges that an interval is checked
/// on took part neither in the fit nor in the interval.
pub(super) fn worth(samples: &[Sample]) -> Option<Worth> {
    let (mut all, mut checked, mut held) = (Vec::new(), 0, 0);
    for fold in 0..FOLDS {
        let outside = |index: usize| index % FOLDS != fold;
        let mut inner = Vec::new();
        for other in (0..FOLDS).filter(|other| *other != fold) {
            let keeps = |index: usize| outside(index) && index % FOLDS != other;
            let of = fit(samples, keeps);
            inner.extend(predict(samples, &of, keeps, |index| index % FOLDS == other));
        }
        let outcomes = predict(samples, &fit(samples, outside), outside, |index| !outside(index));
        if let Some(width) = half_width(&inner) {
            checked += outcomes.len() as u64;
            let inside = outcomes.iter().filter(|outcome| outcome.error.abs() <= width);
            held += inside.count() as u64;
        }
        all.extend(outcomes);
    }
    let relative = all.iter().map(|outcome| outcome.error.abs() / outcome.reported).collect();
    Some(Worth {
        interval: half_width(&all)?,
        checked,
        held,
        median_error: median(relative),
        median_reported: median(all.iter().map(|outcome| outcome.reported).collect()),
    })
}
