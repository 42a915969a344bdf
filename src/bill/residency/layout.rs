use super::{
    Share,
    scaled::{Ends, Scaled},
    share::{ReportedInput, TokenRates},
};
use crate::{id::FrameSeq, snapshot::Substitution};

/// What the requests of a transcript hold, while each only adds to the one before it.
///
/// A request pays for a beginning of these places, and so in three or four ranges of them: what was
/// read, written, sent. Ranges are noted at their ends alone. What each place came to is summed up
/// once, when the layout is done. So a request costs what it adds, and not what it holds.
#[derive(Default)]
pub(super) struct Layout<'r> {
    /// The blocks that stand for some of the frames.
    blocks: &'r [Substitution],
    /// How many frames of the session are in.
    pub(super) frames: usize,
    /// The last frame that is.
    to: Option<FrameSeq>,
    places: Vec<Place>,
    /// What changes at each place, and at the end.
    changes: Vec<Payment>,
    /// What requests come to that hold more than they report.
    scaled: Scaled,
    tokens: u64,
}

/// Some text of a facet.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    tokens: u64,
    /// The tokens up to its end.
    end: u64,
}

/// How often a place was held and paid for. Differences of sums wrap, and the sums do not.
#[derive(Clone, Copy, Default)]
struct Payment {
    requests: u64,
    /// Read, written for an hour, written for less, sent.
    kinds: [u64; 4],
    pico: u128,
}

impl Payment {
    fn plus(self, other: Self) -> Self {
        let mut kinds = self.kinds;
        for (kind, other) in kinds.iter_mut().zip(other.kinds) {
            *kind = kind.wrapping_add(other);
        }
        Self {
            requests: self.requests.wrapping_add(other.requests),
            kinds,
            pico: self.pico.wrapping_add(other.pico),
        }
    }

    fn minus(self, other: Self) -> Self {
        let negative = Self {
            requests: other.requests.wrapping_neg(),
            kinds: other.kinds.map(u64::wrapping_neg),
            pico: other.pico.wrapping_neg(),
        };
        self.plus(negative)
    }
}

/// What a line came to in a layout.
pub(super) struct PlaceTotal {
    pub(super) line: usize,
    pub(super) tokens: u64,
    pub(super) requests: u64,
    pub(super) share: Share,
}

impl<'r> Layout<'r> {
    /// One of the context up to `to`, with these blocks.
    pub(super) fn new(to: FrameSeq, blocks: &'r [Substitution]) -> Self {
        Self { blocks, to: Some(to), ..Self::default() }
    }

    /// Whether a request up to `to` with these blocks only adds frames at the end.
    pub(super) fn takes(&self, to: FrameSeq, blocks: &'r [Substitution]) -> bool {
        let is_same = std::ptr::eq(self.blocks, blocks);
        // A block that stands for frames after the last could have others before it.
        let Some(last) = self.to.filter(|last| is_same && *last <= to) else { return false };
        blocks.iter().all(|block| block.to <= last)
    }

    /// Takes the frames up to `to`: these places.
    pub(super) fn extend(
        &mut self,
        to: FrameSeq,
        frames: usize,
        places: impl IntoIterator<Item = (usize, u64)>,
    ) {
        (self.to, self.frames) = (Some(to), frames);
        for (line, tokens) in places {
            self.tokens = self.tokens.saturating_add(tokens);
            self.places.push(Place { line, tokens, end: self.tokens });
        }
        self.changes.resize(self.places.len() + 1, Payment::default());
    }

    /// The tokens of all places.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Notes that a request holds all places.
    pub(super) fn hold(&mut self) {
        self.note(0, self.places.len(), Payment { requests: 1, ..Payment::default() });
    }

    /// Pays for all places from what is left of a request's input, which is as much. O(log n); the
    /// share of a place that is of several kinds is given to `pay`.
    pub(super) fn pay(
        &mut self,
        input: &mut ReportedInput,
        rates: Option<&TokenRates>,
        mut pay: impl FnMut(usize, Share),
    ) {
        let mut from = 0;
        let mut paid = 0_u64;
        while let Some(place) = self.places.get(from).copied() {
            // As many whole places as are of one kind.
            let (kind, left) = input.next();
            let to = self.places.partition_point(|place| place.end <= paid.saturating_add(left));
            if to > from {
                let end = self.places.get(to - 1).map_or(paid, |place| place.end);
                input.take(end - paid);
                paid = end;
                let mut kinds = [0; 4];
                kinds.get_mut(kind).into_iter().for_each(|count| *count = 1);
                let rate = rates.and_then(|rates| rates.get(kind)).copied().unwrap_or(0);
                self.note(from, to, Payment { requests: 0, kinds, pico: rate });
                from = to;
            } else {
                pay(place.line, input.take(place.tokens).at(rates));
                paid = place.end;
                from += 1;
            }
        }
    }

    /// Pays for all places from what is left of a request's input, which is less: in proportion.
    /// O(log n).
    pub(super) fn pay_scaled(&mut self, input: &mut ReportedInput, rates: Option<&TokenRates>) {
        self.scaled.pay(&self.places, input, rates);
    }

    fn note(&mut self, from: usize, to: usize, paid: Payment) {
        if let Some(change) = self.changes.get_mut(from) {
            *change = change.plus(paid);
        }
        if let Some(change) = self.changes.get_mut(to) {
            *change = change.minus(paid);
        }
    }

    /// What each place came to.
    pub(super) fn held(&self) -> impl Iterator<Item = PlaceTotal> {
        let mut paid = Payment::default();
        let scaled = self.scaled.shares(self.places.iter().map(|place| place.tokens));
        let places = self.places.iter().zip(&self.changes).zip(scaled);
        places.map(move |((place, change), scaled)| {
            paid = paid.plus(*change);
            let tokens = place.tokens;
            let [read, hour, less, plain] = paid.kinds.map(|count| count.saturating_mul(tokens));
            let share = Share {
                input: read.saturating_add(hour).saturating_add(less).saturating_add(plain),
                cache_read: read,
                cache_write: hour.saturating_add(less),
                cache_write_1h: hour,
                output: 0,
                pico: paid.pico.saturating_mul(u128::from(tokens)),
            };
            let share = share.plus(scaled);
            PlaceTotal { line: place.line, tokens, requests: paid.requests, share }
        })
    }
}

impl Ends for Vec<Place> {
    fn count(&self) -> usize {
        self.len()
    }

    fn end_of(&self, place: usize) -> u64 {
        self.get(place).map_or(0, |place| place.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Usage;

    /// Numbers that look like chance, below a bound.
    fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn ranges_come_to_what_each_place_would_pay_by_itself() {
        let rates: TokenRates = [1, 20, 12, 10, 50];
        for seed in 0..50 {
            let mut next = numbers(seed);
            let mut layout = Layout::new(FrameSeq::new(0), &[]);
            let mut places: Vec<(usize, u64)> = Vec::new();
            let mut expected = vec![(0, Share::default()); 7];
            let mut split = expected.clone();
            for request in 0..20 {
                assert!(layout.takes(FrameSeq::new(request), &[]));
                // Some places are of no tokens, and some lines have several.
                let added: Vec<_> = (0..next(4)).map(|_| (next(7) as usize, next(5))).collect();
                places.extend(&added);
                layout.extend(FrameSeq::new(request), 0, added);
                let whole = places.iter().map(|(_, tokens)| tokens).sum::<u64>();
                assert_eq!(layout.tokens(), whole);
                let lacking = next(9);
                let read = next(whole + lacking + 1);
                let write = next(whole + lacking - read + 1);
                let usage = Usage {
                    input: Some(whole + lacking),
                    cache_read: Some(read),
                    cache_write: Some(write),
                    cache_write_1h: Some(next(write + 1)),
                    ..Usage::default()
                };
                let (mut input, _) = ReportedInput::of(&usage);
                input.take(lacking);
                let mut alone = input;
                layout.hold();
                layout.pay(&mut input, Some(&rates), |line, share| {
                    split[line].1 = split[line].1.plus(share);
                });
                assert_eq!(input.left(), 0);
                for (line, tokens) in &places {
                    let share = alone.take(*tokens).at(Some(&rates));
                    expected[*line].1 = expected[*line].1.plus(share);
                }
                for (line, (requests, _)) in expected.iter_mut().enumerate() {
                    *requests += u64::from(places.iter().any(|place| place.0 == line));
                }
            }
            for held in layout.held() {
                let (requests, share) = &mut split[held.line];
                (*requests, *share) = ((*requests).max(held.requests), share.plus(held.share));
            }
            assert_eq!(split, expected);
        }
    }

    #[test]
    fn requests_that_are_scaled_down_come_to_what_they_report_and_places_to_their_parts() {
        let rates: TokenRates = [1, 20, 12, 10, 50];
        for seed in 0..50 {
            let mut next = numbers(seed);
            let mut layout = Layout::new(FrameSeq::new(0), &[]);
            let mut places: Vec<u64> = Vec::new();
            let mut total = Share::default();
            // Of each place the tokens of each kind, and the price.
            let mut exact: Vec<[f64; 5]> = Vec::new();
            for request in 0..20 {
                let added: Vec<_> = (0..next(4)).map(|_| (places.len(), next(9))).collect();
                places.extend(added.iter().map(|(_, tokens)| tokens));
                layout.extend(FrameSeq::new(request), 0, added);
                exact.resize(places.len(), [0.0; 5]);
                let held = layout.tokens();
                if held == 0 {
                    continue;
                }
                let whole = next(held);
                let read = next(whole + 1);
                let write = next(whole - read + 1);
                let usage = Usage {
                    input: Some(whole),
                    cache_read: Some(read),
                    cache_write: Some(write),
                    cache_write_1h: Some(next(write + 1)),
                    ..Usage::default()
                };
                let (mut input, _) = ReportedInput::of(&usage);
                let mut kinds = input;
                total = total.plus({ input }.take(whole).at(Some(&rates)));
                layout.pay_scaled(&mut input, Some(&rates));
                assert_eq!(input.left(), 0);
                let mut from = 0.0;
                while kinds.left() > 0 {
                    let (kind, tokens) = kinds.next();
                    kinds.take(tokens);
                    let to = from + tokens as f64 * held as f64 / whole as f64;
                    let mut start = 0.0_f64;
                    for (place, sums) in places.iter().zip(&mut exact) {
                        let end = start + *place as f64;
                        let part = (end.min(to) - start.max(from)).max(0.0);
                        let part = part * whole as f64 / held as f64;
                        sums[kind] += part;
                        sums[4] += part * rates[kind] as f64;
                        start = end;
                    }
                    from = to;
                }
            }
            let shares: Vec<Share> = layout.held().map(|held| held.share).collect();
            assert_eq!(shares.iter().fold(Share::default(), |sum, of| sum.plus(*of)), total);
            for (share, [read, hour, less, plain, pico]) in shares.iter().zip(exact) {
                let found = [share.cache_read, share.cache_write, share.uncached()];
                for (found, exact) in found.into_iter().zip([read, hour + less, plain]) {
                    assert!((found as f64 - exact).abs() < 2.0, "{share:?} {exact}");
                }
                assert!((share.pico as f64 - pico).abs() < 2.0, "{share:?} {pico}");
            }
        }
    }
}
