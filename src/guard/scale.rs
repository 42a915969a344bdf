//! Counts of ours as the provider counts: fitted to what it reported of the request before.

use crate::transcript::Usage;

/// How many tokens of ours are one of a provider's at the most.
const LARGEST: u64 = 4;

/// What a provider adds to a small request, in its tokens.
const ADDED: u64 = 500;

/// Turns tokens that are counted here into the provider's: straight lines between places where both
/// counts are known.
#[derive(Debug)]
pub(super) struct Scale {
    /// Our count and the provider's, both rising.
    points: Vec<(u64, u64)>,
}

impl Scale {
    /// What is counted here.
    pub(super) fn same() -> Self {
        Self { points: Vec::new() }
    }

    /// Fitted to the last request. We counted `counted` tokens in it, and `left` of them up to the
    /// last place that it left in the cache.
    pub(super) fn fitted(usage: Option<&Usage>, counted: u64, left: u64) -> Self {
        let mut points = Vec::new();
        // Where the provider compacted the request first, no run read what was sent.
        let usage = usage.filter(|usage| usage.iterations.is_empty());
        let Some((usage, input)) = usage.and_then(|usage| Some((usage, usage.input?))) else {
            return Self::same();
        };
        // No tokenizer is so far off: the report leaves out what was cached.
        if input.saturating_mul(LARGEST) < counted {
            return Self::same();
        }
        if let Some(written) = usage.cache_write {
            let held = written.saturating_add(usage.cache_read.unwrap_or(0));
            if left > 0 && held > 0 && left <= counted && held <= input {
                points.push((left, held));
            }
        }
        let last = points.last().copied().unwrap_or((0, 0));
        if counted > last.0 && input > last.1 {
            points.push((counted, input));
        }
        Self { points }
    }

    /// Whether it says what the provider makes of a text.
    pub(super) fn is_fitted(&self) -> bool {
        self.points.last().is_some_and(|of| !has_more(*of))
    }

    /// The provider's tokens of the first `tokens` of a request, as they are counted here.
    pub(super) fn of(&self, tokens: u64) -> u64 {
        let mut from = (0, 0);
        for to in self.points.iter().copied() {
            if tokens <= to.0 {
                let (run, rise) = (to.0 - from.0, to.1 - from.1);
                return from.1 + share(tokens - from.0, rise, run);
            }
            from = to;
        }
        // Beyond what was sent before, as it was there on the whole.
        from.1.saturating_add(match from {
            (0, _) => tokens,
            (ours, _) if has_more(from) => tokens - ours,
            (ours, theirs) => share(tokens - ours, theirs, ours),
        })
    }
}

/// Whether a report has more than was sent, as the pages that the provider searched: no tokenizer is so
/// far off.
fn has_more((ours, theirs): (u64, u64)) -> bool {
    ours.saturating_mul(LARGEST) < theirs.saturating_sub(ADDED)
}

/// `tokens` times `rise / run`, rounded to the nearest.
fn share(tokens: u64, rise: u64, run: u64) -> u64 {
    let (tokens, rise, run) = (u128::from(tokens), u128::from(rise), u128::from(run.max(1)));
    u64::try_from((tokens * rise + run / 2) / run).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, read: u64, write: Option<u64>) -> Usage {
        Usage { input: Some(input), cache_read: Some(read), cache_write: write, ..Usage::default() }
    }

    #[test]
    fn what_was_reported_is_met_and_what_lies_between_is_divided() {
        let scale = Scale::fitted(Some(&usage(1_200, 400, Some(500))), 1_000, 600);
        assert_eq!([0, 300, 600, 1_000].map(|tokens| scale.of(tokens)), [0, 450, 900, 1_200]);
        // Behind the end each token of ours is 1.2 of the provider's.
        assert_eq!(scale.of(1_500), 1_800);
        let scale = Scale::fitted(Some(&usage(1_200, 400, None)), 1_000, 600);
        assert_eq!([500, 1_000].map(|tokens| scale.of(tokens)), [600, 1_200]);
    }

    #[test]
    fn a_report_that_says_nothing_changes_nothing() {
        let short = usage(249, 0, None);
        for usage in [None, Some(&usage(0, 0, None)), Some(&Usage::default()), Some(&short)] {
            let scale = Scale::fitted(usage, 1_000, 600);
            assert_eq!((scale.is_fitted(), scale.of(700)), (false, 700));
        }
        // What it held is more than it was sent: the report contradicts itself.
        let scale = Scale::fitted(Some(&usage(500, 600, Some(0))), 1_000, 900);
        assert_eq!(scale.of(1_000), 500);
    }

    #[test]
    fn what_a_provider_read_besides_is_read_once() {
        let scale = Scale::fitted(Some(&usage(9_600, 0, None)), 1_000, 600);
        assert_eq!((scale.is_fitted(), scale.of(1_000), scale.of(1_200)), (false, 9_600, 9_800));
    }

    #[test]
    fn a_scale_rises() {
        let scale = Scale::fitted(Some(&usage(700, 10, Some(3))), 1_000, 990);
        let all: Vec<u64> = (0..2_000).map(|tokens| scale.of(tokens)).collect();
        assert!(all.is_sorted());
    }
}
