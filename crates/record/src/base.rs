//! Which earlier body a new one is stored after.
//!
//! Bodies of one provider come from several conversations at once: an agent, its subagents, a small
//! model that names them. The body that shares most with the new one is of the same conversation.
//! How much they share is estimated from samples: places that a rolling hash picks by content, so
//! that the same text is sampled wherever it stands.

use std::sync::Arc;

use afterimage_log::Position;

/// A chain of bodies begins anew after so many.
const WHOLE_EVERY: u32 = 16;
/// So many conversations of a provider are remembered.
const MOST_BASES: usize = 8;
/// And so many bytes of their bodies, all providers together.
const MOST_BYTES: usize = 128 << 20;
/// One of so many places is a sample.
const ONE_IN: u64 = 1 << 7;

/// The last bodies of each conversation.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    /// The one that was used last is at the end.
    bases: Vec<Base>,
}

#[derive(Clone, Debug)]
pub(crate) struct Base {
    lane: String,
    pub(crate) position: Position,
    pub(crate) body: Arc<[u8]>,
    samples: Vec<u64>,
    /// How many bodies come before it in its chain.
    depth: u32,
}

/// A body that is to be stored, and the earlier one that it comes after.
#[derive(Debug)]
pub(crate) struct BasePlan {
    samples: Vec<u64>,
    /// The place of the earlier body of its conversation.
    like: Option<usize>,
    /// That body, unless its chain is long enough.
    pub(crate) base: Option<Base>,
}

impl BasePlan {
    /// Whether it is of a conversation whose chain is long enough.
    pub(crate) fn begins_anew(&self) -> bool {
        self.like.is_some() && self.base.is_none()
    }

    /// The plan as it was carried out: a body that gains nothing by the earlier one stands for itself.
    pub(crate) fn carried_out(self, is_after: bool) -> Self {
        Self { base: self.base.filter(|_| is_after), ..self }
    }
}

impl Bases {
    /// Chooses the body that a new one comes after.
    ///
    /// Reads the body once.
    pub(crate) fn plan(&self, lane: &str, body: &[u8]) -> BasePlan {
        let samples = samples(body);
        let shared = |base: &Base| shared(&base.samples, &samples);
        let of_lane = self.bases.iter().enumerate().filter(|(_, base)| base.lane == lane);
        let best = of_lane.map(|(at, base)| (shared(base), at)).max();
        // What shares a tool or two with another conversation is not its next request.
        let like = best.filter(|(shared, _)| *shared > 0 && shared * 4 >= samples.len());
        let like = like.map(|(_, at)| at);
        let base = like.and_then(|at| self.bases.get(at));
        let base = base.filter(|base| base.depth + 1 < WHOLE_EVERY).cloned();
        BasePlan { samples, like, base }
    }

    /// Remembers a body that was stored.
    pub(crate) fn push(&mut self, lane: &str, position: Position, body: &[u8], planned: BasePlan) {
        let BasePlan { samples, like, base } = planned;
        let depth = base.map_or(0, |base| base.depth + 1);
        if let Some(at) = like.filter(|at| *at < self.bases.len()) {
            self.bases.remove(at);
        }
        let (lane, body) = (lane.to_owned(), Arc::from(body));
        self.bases.push(Base { lane, position, body, samples, depth });
        self.evict();
    }

    fn evict(&mut self) {
        let bytes = |bases: &[Base]| bases.iter().map(|base| base.body.len()).sum::<usize>();
        while self.bases.len() > 1 && bytes(&self.bases) > MOST_BYTES {
            self.bases.remove(0);
        }
        let Some(lane) = self.bases.last().map(|base| base.lane.clone()) else { return };
        let of_lane = |base: &Base| base.lane == lane;
        if self.bases.iter().filter(|base| of_lane(base)).count() > MOST_BASES
            && let Some(oldest) = self.bases.iter().position(of_lane)
        {
            self.bases.remove(oldest);
        }
    }
}

/// Hashes of the 64 bytes before each sampled place, sorted.
fn samples(body: &[u8]) -> Vec<u64> {
    let mut hash = 0_u64;
    let mut samples = Vec::with_capacity(body.len() / ONE_IN as usize);
    for byte in body {
        hash = (hash << 1).wrapping_add(scattered(*byte));
        // The high bits depend on the most bytes.
        if hash >> 57 == 0 {
            samples.push(hash);
        }
    }
    samples.sort_unstable();
    samples.dedup();
    samples
}

/// A number without a pattern for each byte (the finisher of splitmix64).
const fn scattered(byte: u8) -> u64 {
    let mut number = (byte as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// How many numbers two sorted lists share.
fn shared(one: &[u64], other: &[u64]) -> usize {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut count = 0;
    while let (Some(left), Some(right)) = (one.peek(), other.peek()) {
        let order = left.cmp(right);
        count += usize::from(order.is_eq());
        if order.is_le() {
            one.next();
        }
        if order.is_ge() {
            other.next();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u64, sentences: u64) -> String {
        let words = ["hull", "mast", "rope", "tide", "sail", "keel", "oar", "deck"];
        let word = |number: u64| words[(scattered((number % 251) as u8) % 8) as usize];
        (0..sentences * 9).map(|at| format!("{}{} ", word(at * 7 + seed), at ^ seed)).collect()
    }

    fn push(bases: &mut Bases, at: u64, body: &str) -> Option<u64> {
        let planned = bases.plan("p", body.as_bytes());
        let base = planned.base.as_ref().map(|base| base.position.offset());
        bases.push("p", Position::new(at), body.as_bytes(), planned);
        base
    }

    #[test]
    fn requests_of_two_conversations_follow_their_own() {
        let mut bases = Bases::default();
        let (one, other) = (text(1, 40), text(900, 40));
        assert_eq!(push(&mut bases, 1, &one), None);
        assert_eq!(push(&mut bases, 2, &other), None);
        assert_eq!(push(&mut bases, 3, &format!("{one}{}", text(5000, 3))), Some(1));
        assert_eq!(push(&mut bases, 4, &format!("{}{other}", text(7000, 3))), Some(2));
        assert_eq!(bases.plan("q", one.as_bytes()).base.map(|base| base.position), None);
    }

    #[test]
    fn a_chain_begins_anew_after_sixteen() {
        let mut bases = Bases::default();
        let mut body = text(3, 40);
        let mut whole = Vec::new();
        for at in 0..40 {
            body.push_str(&text(at * 100, 1));
            if push(&mut bases, at, &body).is_none() {
                whole.push(at);
            }
        }
        assert_eq!(whole, [0, 16, 32]);
        assert_eq!(bases.bases.len(), 1);
    }

    #[test]
    fn as_many_conversations_are_remembered_as_are_allowed() {
        let mut bases = Bases::default();
        for at in 0..40 {
            push(&mut bases, at, &text(at * 10_000, 20));
        }
        assert_eq!(bases.bases.len(), MOST_BASES);
    }
}
