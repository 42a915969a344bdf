use crate::{
    json::{Object, object},
    transcript::Usage,
};

crate::json::serialize_through_json!(Share);

/// The price of a token that was read from the cache, written to it for an hour, written to it for
/// less, sent without it, and put out, in 10^-12 of the currency.
pub(in crate::bill) type TokenRates = [u128; 5];

/// A share of what exchanges report. Shares add up: the sum over all of a recording is its reported
/// usage.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The tokens of requests, cached ones among them.
    pub input: u64,
    /// Those of them that a cache served.
    pub cache_read: u64,
    /// Those of them that were written to a cache.
    pub cache_write: u64,
    /// Those of the written ones that stay for an hour.
    pub cache_write_1h: u64,
    /// The tokens of responses.
    pub output: u64,
    /// Its price, in 10^-12 of the currency of the prices; 0 where there is none.
    pub pico: u128,
}

impl Share {
    /// The tokens of requests that no cache served or took.
    pub fn uncached(&self) -> u64 {
        self.input.saturating_sub(self.cache_read).saturating_sub(self.cache_write)
    }

    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Whether no token and no price is in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
            pico: self.pico.saturating_add(other.pico),
        }
    }

    /// So many tokens of requests of one kind: read, written for an hour, written for less, sent.
    pub(super) fn of_kind(kind: usize, tokens: u64) -> Self {
        let of = |kinds: &[usize]| if kinds.contains(&kind) { tokens } else { 0 };
        Self {
            input: tokens,
            cache_read: of(&[0]),
            cache_write: of(&[1, 2]),
            cache_write_1h: of(&[1]),
            ..Self::default()
        }
    }

    /// The same tokens at these prices.
    pub(super) fn at(self, rates: Option<&TokenRates>) -> Self {
        let hour = self.cache_write_1h;
        let less = self.cache_write.saturating_sub(hour);
        let tokens = [self.cache_read, hour, less, self.uncached(), self.output];
        let priced = tokens.into_iter().zip(rates.into_iter().flatten());
        let pico = priced.fold(0_u128, |sum, (tokens, rate)| {
            sum.saturating_add(u128::from(tokens).saturating_mul(*rate))
        });
        Self { pico, ..self }
    }

    /// The wire form: every figure but the price. O(figures).
    pub fn to_json(&self) -> Object {
        object! {
            "input": self.input,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "cacheWrite1h": self.cache_write_1h,
            "uncached": self.uncached(),
            "output": self.output,
        }
    }
}

/// The reported input of one exchange, from its beginning on: first what the cache served, then what
/// it took for an hour, what it took for less, and the rest. Each token is taken once.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedInput([u64; 4]);

impl ReportedInput {
    /// The input of an exchange, and the figures that contradict it: parts that do not fit into
    /// their whole.
    pub(super) fn of(usage: &Usage) -> (Self, Share) {
        let figure = |figure: Option<u64>| figure.unwrap_or(0);
        let input = figure(usage.input);
        let read = figure(usage.cache_read).min(input);
        let write = figure(usage.cache_write).min(input - read);
        let hour = figure(usage.cache_write_1h).min(write);
        let beyond = Share {
            cache_read: figure(usage.cache_read) - read,
            cache_write: figure(usage.cache_write) - write,
            cache_write_1h: figure(usage.cache_write_1h) - hour,
            ..Share::default()
        };
        (Self([read, hour, write - hour, input - read - write]), beyond)
    }

    /// How many tokens are left.
    pub(super) fn left(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, left| sum.saturating_add(*left))
    }

    /// The kind of the next tokens, and how many of it there are: what was read, what was written for
    /// an hour, what was written for less, the rest.
    pub(super) fn next(&self) -> (usize, u64) {
        let mut kinds = self.0.iter().copied().enumerate();
        kinds.find(|(_, left)| *left > 0).unwrap_or((self.0.len() - 1, 0))
    }

    /// Takes the next tokens.
    pub(super) fn take(&mut self, tokens: u64) -> Share {
        let mut wanted = tokens;
        let [read, hour, less, plain] = self.0.each_mut().map(|left| {
            let taken = wanted.min(*left);
            *left -= taken;
            wanted -= taken;
            taken
        });
        Share {
            input: read + hour + less + plain,
            cache_read: read,
            cache_write: hour + less,
            cache_write_1h: hour,
            ..Share::default()
        }
    }
}

/// The reported output of one exchange: of each run of the model, in order. Each token is taken once.
#[derive(Debug)]
pub(super) struct ReportedOutput<'r>(Vec<(u64, Option<&'r TokenRates>)>);

impl<'r> ReportedOutput<'r> {
    pub(super) fn of(runs: &[Usage], rates: &'r [TokenRates]) -> Self {
        let outputs = runs.iter().map(|run| run.output.unwrap_or(0));
        Self(outputs.enumerate().map(|(at, output)| (output, rates.get(at))).collect())
    }

    /// How many tokens are left.
    pub(super) fn left(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, (left, _)| sum.saturating_add(*left))
    }

    /// Takes the next tokens.
    pub(super) fn take(&mut self, tokens: u64) -> Share {
        let mut wanted = tokens;
        self.0.iter_mut().fold(Share::default(), |sum, (left, rates)| {
            let taken = wanted.min(*left);
            *left -= taken;
            wanted -= taken;
            sum.plus(Share { output: taken, ..Share::default() }.at(*rates))
        })
    }
}

/// Makes counts add up to `whole`, each in proportion, by the method of largest remainders. All
/// zeros stay.
pub(super) fn apportion(counts: &mut [(usize, u64)], whole: u64) {
    let sum: u128 = counts.iter().map(|(_, count)| u128::from(*count)).sum();
    if sum == 0 || sum == u128::from(whole) {
        return;
    }
    let mut left = whole;
    let mut remainders: Vec<(u128, usize)> = Vec::with_capacity(counts.len());
    for (index, (_, count)) in counts.iter_mut().enumerate() {
        let exact = u128::from(*count) * u128::from(whole);
        // A part is at most the whole.
        *count = u64::try_from(exact / sum).unwrap_or(whole);
        left = left.saturating_sub(*count);
        remainders.push((exact % sum, index));
    }
    remainders.sort_by(|(a, at), (b, bt)| b.cmp(a).then(at.cmp(bt)));
    let more = usize::try_from(left).unwrap_or(usize::MAX);
    for (_, index) in remainders.into_iter().take(more) {
        if let Some((_, count)) = counts.get_mut(index) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counts: &[u64], whole: u64, expected: &[u64]) {
        let mut counts: Vec<(usize, u64)> = counts.iter().map(|count| (0, *count)).collect();
        apportion(&mut counts, whole);
        let counts: Vec<u64> = counts.into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn parts_come_to_the_whole_and_the_largest_remainders_are_rounded_up() {
        check(&[1, 1, 1], 2, &[1, 1, 0]);
        check(&[10, 20, 30], 6, &[1, 2, 3]);
        check(&[3, 0, 4], 6, &[3, 0, 3]);
        check(&[3, 4], 14, &[6, 8]);
        check(&[5, 5], 0, &[0, 0]);
        check(&[0, 0], 9, &[0, 0]);
        check(&[u64::MAX, u64::MAX], 3, &[2, 1]);
    }

    #[test]
    fn what_the_cache_served_comes_first_and_what_it_took_next() {
        let usage = Usage {
            input: Some(100),
            cache_read: Some(40),
            cache_write: Some(30),
            cache_write_1h: Some(10),
            ..Usage::default()
        };
        let (mut input, beyond) = ReportedInput::of(&usage);
        assert!(beyond.is_empty());
        let share = input.take(45);
        assert_eq!((share.cache_read, share.cache_write, share.cache_write_1h), (40, 5, 5));
        let share = input.take(40);
        assert_eq!((share.cache_write, share.cache_write_1h, share.uncached()), (25, 5, 15));
        assert_eq!((input.left(), input.take(99).uncached(), input.left()), (15, 15, 0));
    }

    #[test]
    fn figures_that_contradict_the_input_are_kept_apart() {
        let usage = Usage {
            input: Some(10),
            cache_read: Some(8),
            cache_write: Some(7),
            ..Usage::default()
        };
        let (input, beyond) = ReportedInput::of(&usage);
        assert_eq!((input.left(), beyond.cache_read, beyond.cache_write), (10, 0, 5));
    }
}
