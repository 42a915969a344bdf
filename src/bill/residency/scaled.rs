use std::collections::BTreeMap;

use super::{
    Share,
    share::{ReportedInput, TokenRates},
};

/// How many bits of a weight stand behind the point.
const POINT: u32 = 32;

/// What requests come to that hold more tokens by our count than they report, and so are scaled down.
///
/// Such a request gives each place a part of a token. What each kind of token comes to in all of
/// these requests is divided once, when the layout is done, among the places in proportion to their
/// parts. So a request costs what it adds here too, and the sums are what is reported.
#[derive(Default)]
pub(super) struct Scaled {
    /// What changes at each place, and at the end. Differences of sums wrap, and the sums do not.
    changes: Vec<Weights>,
    /// Of places in which one kind ends and the next begins.
    parts: BTreeMap<usize, Weights>,
    /// What is to be divided.
    tokens: [u64; 4],
    pico: u128,
}

/// The parts of a place: of each kind of token, and of the price.
#[derive(Clone, Copy, Default)]
struct Weights {
    kinds: [u128; 4],
    pico: u128,
}

impl Weights {
    /// So much of one kind, at its price.
    fn of(kind: usize, weight: u128, rate: u128) -> Self {
        let mut kinds = [0; 4];
        kinds.get_mut(kind).into_iter().for_each(|of| *of = weight);
        Self { kinds, pico: weight.wrapping_mul(rate) }
    }

    fn plus(self, other: Self) -> Self {
        let mut kinds = self.kinds;
        for (kind, other) in kinds.iter_mut().zip(other.kinds) {
            *kind = kind.wrapping_add(other);
        }
        Self { kinds, pico: self.pico.wrapping_add(other.pico) }
    }

    fn negative(self) -> Self {
        Self { kinds: self.kinds.map(u128::wrapping_neg), pico: self.pico.wrapping_neg() }
    }

    /// The weights of so many tokens, each of these.
    fn times(self, tokens: u64) -> Self {
        let times = |weight: u128| weight.wrapping_mul(u128::from(tokens));
        Self { kinds: self.kinds.map(times), pico: times(self.pico) }
    }
}

impl Scaled {
    /// Takes a request that holds these places, by their ends, and reports fewer tokens. O(log n).
    pub(super) fn pay(
        &mut self,
        ends: &impl Ends,
        input: &mut ReportedInput,
        rates: Option<&TokenRates>,
    ) {
        let (whole, held) = (input.left(), ends.end_of(ends.count().wrapping_sub(1)));
        self.changes.resize(ends.count() + 1, Weights::default());
        if whole == 0 || held == 0 {
            return;
        }
        let (whole, held) = (u128::from(whole), u128::from(held));
        // The part of a reported token that one of our tokens has.
        let each = (whole << POINT) / held;
        let mut done = 0;
        let mut from = 0;
        while input.left() > 0 {
            let (kind, tokens) = input.next();
            input.take(tokens);
            let rate = rates.and_then(|rates| rates.get(kind)).copied().unwrap_or(0);
            self.tokens.get_mut(kind).into_iter().for_each(|sum| *sum = sum.saturating_add(tokens));
            self.pico = self.pico.saturating_add(u128::from(tokens).saturating_mul(rate));
            done += u128::from(tokens);
            // The kind ends there by our count.
            let to = (done << POINT) / whole * held + (done << POINT) % whole * held / whole;
            self.note(ends, from, to, |weight| Weights::of(kind, weight, rate), each);
            from = to;
        }
    }

    /// Notes a range of tokens by our count, with the digits behind the point.
    fn note(
        &mut self,
        ends: &impl Ends,
        from: u128,
        to: u128,
        weights: impl Fn(u128) -> Weights,
        each: u128,
    ) {
        let start_of = |place: usize| match place.checked_sub(1) {
            Some(before) => u128::from(ends.end_of(before)) << POINT,
            None => 0,
        };
        // The places that begin in the range, and those that end in it.
        let first = ends.first_from(from);
        let last = ends.until(to);
        if first > 0 && start_of(first) > from {
            // The place before begins earlier: its end is in the range, or all of the range is in it.
            let end = start_of(first).min(to);
            self.part(first - 1, weights((end - from).wrapping_mul(each) >> POINT));
        }
        if last > first {
            let whole = weights(each);
            self.change(first, whole);
            self.change(last, whole.negative());
        }
        let start = start_of(last);
        if last >= first && start < to {
            self.part(last, weights((to - start).wrapping_mul(each) >> POINT));
        }
    }

    fn part(&mut self, place: usize, weights: Weights) {
        let sum = self.parts.entry(place).or_default();
        *sum = sum.plus(weights);
    }

    fn change(&mut self, place: usize, weights: Weights) {
        if let Some(change) = self.changes.get_mut(place) {
            *change = change.plus(weights);
        }
    }

    /// What each of the places comes to, which have so many tokens.
    pub(super) fn shares(&self, tokens: impl Iterator<Item = u64>) -> Vec<Share> {
        if self.tokens == [0; 4] {
            return tokens.map(|_| Share::default()).collect();
        }
        let mut sum = Weights::default();
        let mut weights: Vec<Weights> = Vec::with_capacity(self.changes.len());
        let changes = self.changes.iter().copied().chain(std::iter::repeat(Weights::default()));
        for (at, (tokens, change)) in tokens.zip(changes).enumerate() {
            sum = sum.plus(change);
            let part = self.parts.get(&at).copied().unwrap_or_default();
            weights.push(sum.times(tokens).plus(part));
        }
        let mut shares = vec![Share::default(); weights.len()];
        for (kind, tokens) in self.tokens.into_iter().enumerate() {
            let of_kind = weights.iter().map(|of| of.kinds.get(kind).copied().unwrap_or(0));
            for (share, tokens) in shares.iter_mut().zip(divide(of_kind, tokens.into())) {
                let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
                *share = share.plus(Share::of_kind(kind, tokens));
            }
        }
        let of_price = weights.iter().map(|of| of.pico);
        for (share, pico) in shares.iter_mut().zip(divide(of_price, self.pico)) {
            share.pico = pico;
        }
        shares
    }
}

/// Where places end, by our count.
pub(super) trait Ends {
    fn count(&self) -> usize;
    /// The tokens up to the end of a place.
    fn end_of(&self, place: usize) -> u64;

    /// The first place that begins at this position or after it; positions have digits behind the
    /// point. A place of no tokens is passed over with the one before it.
    fn first_from(&self, position: u128) -> usize {
        let mut range = 0..self.count();
        while !range.is_empty() {
            let middle = range.start + (range.end - range.start) / 2;
            // It begins where the one before it ends.
            let start = middle.checked_sub(1).map_or(0, |before| self.end_of(before));
            if u128::from(start) << POINT < position {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        range.start
    }

    /// How many places end at this position or before it.
    fn until(&self, position: u128) -> usize {
        let mut range = 0..self.count();
        while !range.is_empty() {
            let middle = range.start + (range.end - range.start) / 2;
            if u128::from(self.end_of(middle)) << POINT <= position {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        range.start
    }
}

/// Divides a whole in proportion to weights, by the method of largest remainders. The parts add up to
/// it; where all weights are 0, the first is all of it.
fn divide(weights: impl Iterator<Item = u128>, whole: u128) -> Vec<u128> {
    let mut weights: Vec<u128> = weights.collect();
    let sum = |weights: &[u128]| weights.iter().fold(0_u128, |sum, of| sum.saturating_add(*of));
    // A weight times the whole is to fit.
    let room = whole.leading_zeros().saturating_sub(1);
    let bits = u128::BITS - sum(&weights).leading_zeros();
    let first = weights.iter().position(|weight| *weight > 0).unwrap_or(0);
    weights.iter_mut().for_each(|weight| *weight >>= bits.saturating_sub(room));
    let sum = sum(&weights);
    if sum == 0 {
        // So little is left of the weights that one takes all.
        let parts = (0..weights.len()).map(|at| if first == at { whole } else { 0 });
        return parts.collect();
    }
    let mut left = whole;
    let mut remainders = Vec::with_capacity(weights.len());
    for (at, weight) in weights.iter_mut().enumerate() {
        let exact = *weight * whole;
        *weight = exact / sum;
        left -= *weight;
        remainders.push((exact % sum, at));
    }
    remainders.sort_by(|(a, at), (b, bt)| b.cmp(a).then(at.cmp(bt)));
    for (_, at) in remainders.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        weights.get_mut(at).into_iter().for_each(|part| *part += 1);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_is_divided_without_a_rest_whatever_the_weights_are() {
        let check = |weights: &[u128], whole, expected: &[u128]| {
            assert_eq!(divide(weights.iter().copied(), whole), expected);
        };
        check(&[5, 10], 5, &[2, 3]);
        check(&[1, 1, 1], 2, &[1, 1, 0]);
        check(&[0, 0], 7, &[7, 0]);
        check(&[0, u128::MAX / 3, u128::MAX / 3], 9, &[0, 5, 4]);
        check(&[0, 1, 1], u128::MAX, &[0, u128::MAX, 0]);
    }
}
