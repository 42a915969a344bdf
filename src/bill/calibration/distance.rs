//! How the error of a prediction grows with the number of exchanges since the last reported usage.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{
    held_out::{FOLDS, HOLDS, conformal, fit, median, predicted},
    sample::Sample,
};

/// The distances at which errors are measured, in exchanges since the last reported usage.
const DISTANCES: [usize; 5] = [2, 5, 10, 20, 40];
/// The least percentage of held-out exchanges that an interval must contain.
const LEAST_HELD: u64 = 85;

/// The interval for requests at one distance from the last reported usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistantInterval {
    /// How many exchanges: the tenth request after a reported one is at 10.
    pub exchanges: u64,
    /// Nine in ten held-out exchanges were predicted within this many tokens. It is never less than
    /// at a smaller distance.
    pub interval: u64,
    /// How many exchanges were held out to check such an interval.
    pub checked: u64,
    /// How many of these it held.
    pub held: u64,
}

/// The absolute errors at one distance, in tokens: a list for each fold.
type Errors = [Vec<f64>; FOLDS];

/// The intervals at growing distances, as far as there are exchanges to measure them.
///
/// Each fifth of the exchanges is held out in one piece, as the time to come is, and predicted by a
/// fit of the others from reports before it. The interval for a fifth is worked out from the others,
/// so the exchanges that it is checked on took part in neither.
pub(super) fn distant_intervals(samples: &[Sample], nearest: u64) -> Vec<DistantInterval> {
    let fold_of = |index: usize| index * FOLDS / samples.len().max(1);
    let mut sessions: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
    for (index, sample) in samples.iter().enumerate() {
        sessions.entry(sample.key()).or_default().push(index);
    }
    let mut errors: [Errors; DISTANCES.len()] = Default::default();
    for fold in 0..FOLDS {
        let of = fit(samples, |index| fold_of(index) != fold);
        let rest = |sample: &Sample| sample.reported as f64 - predicted(&of, &sample.counts);
        for indices in sessions.values() {
            for (at, index) in indices.iter().enumerate().filter(|(_, at)| fold_of(**at) == fold) {
                for (distance, errors) in DISTANCES.into_iter().zip(&mut errors) {
                    let before = at.checked_sub(distance).and_then(|at| indices.get(at));
                    let both = before.and_then(|before| samples.get(*before));
                    let both = both.zip(samples.get(*index)).zip(errors.get_mut(fold));
                    if let Some(((before, sample), errors)) = both {
                        errors.push((rest(before) - rest(sample)).abs());
                    }
                }
            }
        }
    }
    let mut intervals = Vec::new();
    let mut least = nearest;
    for (distance, errors) in DISTANCES.into_iter().zip(&errors) {
        let Some(found) = interval(errors, distance as u64, least) else { break };
        least = found.interval;
        intervals.push(found);
    }
    intervals
}

/// Tries 90, 95 and 100 per cent, and takes the first interval that contains enough held-out
/// exchanges, or else the last. A client that changes its system prompt once shifts all errors
/// after it.
fn interval(errors: &Errors, exchanges: u64, least: u64) -> Option<DistantInterval> {
    let shares = [HOLDS, 95, 100];
    let at = |share: usize| {
        let width = |errors: Vec<f64>| match share {
            100 => errors.into_iter().reduce(f64::max),
            _ => conformal(errors, share),
        };
        let whole = |width: f64| super::whole(width.ceil()).max(least);
        let (mut checked, mut held) = (0, 0);
        for (fold, own) in errors.iter().enumerate() {
            let others = errors.iter().enumerate().filter(|(other, _)| *other != fold);
            let others = others.flat_map(|(_, errors)| errors).copied().collect();
            let Some(width) = width(others).map(whole) else { continue };
            checked += own.len() as u64;
            held += own.iter().filter(|error| **error <= width as f64).count() as u64;
        }
        let interval = whole(width(errors.iter().flatten().copied().collect())?);
        (checked > 0).then_some(DistantInterval { exchanges, interval, checked, held })
    };
    let found: Vec<DistantInterval> = shares.into_iter().filter_map(at).collect();
    let holds = |of: &&DistantInterval| of.held * 100 >= of.checked * LEAST_HELD;
    found.iter().find(holds).or(found.last()).copied()
}

/// How much a context changes from one exchange to the next, in counted tokens: the median, and one
/// at least. Where a context shrinks by more, it is as far from the last report as the exchanges that
/// would change as much.
pub(super) fn usual_step(samples: &[Sample]) -> u64 {
    let mut last: HashMap<(usize, &str), &Sample> = HashMap::new();
    let steps = samples.iter().filter_map(|sample| {
        let before = last.insert(sample.key(), sample)?;
        Some(sample.counts.total().abs_diff(before.counts.total()) as f64)
    });
    super::whole(median(steps.collect())).max(1)
}
