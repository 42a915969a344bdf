//! Remembers the counts of texts, so that a text seen again costs a hash.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Certainty, CountedText, TokenCounter};

/// Remembers what another counter counted, in bounded memory.
///
/// A text that was counted before costs one BLAKE3 hash and one look-up, whatever its tokenizer
/// costs. That is less than an exact count from four bytes on, so texts of any length are
/// remembered. They are told apart by their length and 128 bits of their hash, so two texts that
/// are made to collide take some 2⁶⁴ hashes to find; the texts themselves are not kept.
///
/// Entries form two generations. Once the young one holds half of the capacity, the old one is
/// dropped and the young one takes its place; an old entry that is used again becomes young. So a
/// full memo keeps what was used lately, and never holds more than its capacity: with the default
/// of [`Memo::DEFAULT_CAPACITY`] entries at most some 70 MB.
///
/// A memo may be shared between threads: it is divided into shards with a lock each, and counts
/// outside of them. Two threads that meet a new text at once both count it.
///
/// ```
/// use afterimage_tokens::{Chars4, Memo, TokenCounter};
///
/// let counter = Memo::new(Chars4);
/// let text = "The same tool result, over and over.";
/// assert_eq!(counter.count(text), counter.count(text));
/// assert_eq!(counter.stats().hits, 1);
/// assert_eq!(counter.stats().misses, 1);
/// assert_eq!(counter.stats().repeated_tokens, 9);
/// ```
pub struct Memo<C> {
    counter: C,
    shards: Box<[Mutex<Shard>]>,
    /// Of one generation of one shard.
    capacity: usize,
    hits: AtomicU64,
    misses: AtomicU64,
    repeated_tokens: AtomicU64,
}

/// What a [`Memo`] did so far.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoStats {
    /// Counts that were remembered.
    pub hits: u64,
    /// Counts that were not, and went to the counter.
    pub misses: u64,
    /// The sum of the counts that were remembered: tokens of text that was seen before.
    pub repeated_tokens: u64,
    /// How many texts are remembered now.
    pub entries: usize,
}

/// The first half of a text's BLAKE3 hash, and its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    digest: [u8; 16],
    len: usize,
}

impl Key {
    fn of(text: &str) -> Self {
        let mut digest = [0; 16];
        for (to, from) in digest.iter_mut().zip(blake3::hash(text.as_bytes()).as_bytes()) {
            *to = *from;
        }
        Self { digest, len: text.len() }
    }
}

#[derive(Default)]
struct Shard {
    young: HashMap<Key, usize>,
    old: HashMap<Key, usize>,
}

impl Shard {
    fn recall(&mut self, key: Key, capacity: usize) -> Option<usize> {
        if let Some(tokens) = self.young.get(&key) {
            return Some(*tokens);
        }
        let tokens = self.old.remove(&key)?;
        self.remember(key, tokens, capacity);
        Some(tokens)
    }

    fn remember(&mut self, key: Key, tokens: usize, capacity: usize) {
        if self.young.len() >= capacity {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, tokens);
    }
}

impl<C> Memo<C> {
    /// How many texts [`Memo::new`] remembers at most.
    pub const DEFAULT_CAPACITY: usize = 1 << 20;

    const SHARDS: usize = 16;

    /// A memo for `counter` with the default capacity.
    ///
    /// Nothing is allocated for entries that are not there yet.
    pub fn new(counter: C) -> Self {
        Self::with_capacity(counter, Self::DEFAULT_CAPACITY)
    }

    /// A memo for `counter` that remembers at most `texts` texts, and at least two.
    pub fn with_capacity(counter: C, texts: usize) -> Self {
        // Small memos get one shard, since each shard is full by itself.
        let shards = if texts < 64 * Self::SHARDS { 1 } else { Self::SHARDS };
        Self {
            counter,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            capacity: (texts / shards / 2).max(1),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            repeated_tokens: AtomicU64::new(0),
        }
    }

    /// The counter whose counts are remembered.
    pub fn counter(&self) -> &C {
        &self.counter
    }

    /// How often texts were seen before, and how many are remembered.
    ///
    /// Takes each shard's lock in turn, so figures of a memo in use may be a moment apart.
    ///
    /// Cost: O(shards).
    pub fn stats(&self) -> MemoStats {
        let entries = self.shards.iter().map(|shard| {
            let shard = lock(shard);
            shard.young.len() + shard.old.len()
        });
        MemoStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            repeated_tokens: self.repeated_tokens.load(Ordering::Relaxed),
            entries: entries.sum(),
        }
    }

    fn shard(&self, key: Key) -> Option<MutexGuard<'_, Shard>> {
        let index = usize::from(*key.digest.last()?) % self.shards.len();
        self.shards.get(index).map(lock)
    }

    fn recall(&self, key: Key) -> Option<usize> {
        let tokens = self.shard(key)?.recall(key, self.capacity);
        if let Some(tokens) = tokens {
            self.hits.fetch_add(1, Ordering::Relaxed);
            self.repeated_tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        } else {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
        tokens
    }

    fn remember(&self, key: Key, tokens: usize) {
        if let Some(mut shard) = self.shard(key) {
            shard.remember(key, tokens, self.capacity);
        }
    }
}

/// No code of a caller runs under a lock, and an entry is valid by itself, so a poisoned shard is
/// as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: TokenCounter> TokenCounter for Memo<C> {
    fn id(&self) -> &str {
        self.counter.id()
    }

    fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }

    fn certainty(&self) -> Certainty {
        self.counter.certainty()
    }

    /// One hash where `text` is remembered, else a hash and a count.
    fn count(&self, text: &str) -> usize {
        let key = Key::of(text);
        self.recall(key).unwrap_or_else(|| {
            let tokens = self.counter.count(text);
            self.remember(key, tokens);
            tokens
        })
    }

    /// As [`TokenCounter::count`], except that an answer of `None` is not remembered.
    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        let key = Key::of(text);
        if let Some(tokens) = self.recall(key) {
            return (tokens <= limit).then_some(tokens);
        }
        let tokens = self.counter.count_up_to(text, limit)?;
        self.remember(key, tokens);
        Some(tokens)
    }

    /// Left to the counter: the joined text is nowhere in one piece to be hashed.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        self.counter.count_joined(parts)
    }
}

impl<C: std::fmt::Debug> std::fmt::Debug for Memo<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo")
            .field("counter", &self.counter)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use super::*;
    use crate::Chars4;

    /// Counts bytes, and how often it was asked.
    #[derive(Default)]
    struct Asked(AtomicUsize);

    impl TokenCounter for Asked {
        fn id(&self) -> &'static str {
            "bytes"
        }

        fn is_exact(&self) -> bool {
            true
        }

        fn count(&self, text: &str) -> usize {
            self.0.fetch_add(1, Ordering::Relaxed);
            text.len()
        }
    }

    fn text(index: usize) -> String {
        format!("text number {index}")
    }

    #[test]
    fn a_text_seen_again_is_not_counted_again() {
        let memo = Memo::new(Asked::default());
        for _ in 0..3 {
            assert_eq!(memo.count(&text(7)), text(7).len());
        }
        assert_eq!(memo.count_up_to(&text(7), 5), None);
        assert_eq!(memo.count_up_to(&text(7), 500), Some(text(7).len()));
        assert_eq!(memo.counter().0.load(Ordering::Relaxed), 1);
        let stats = memo.stats();
        assert_eq!((stats.hits, stats.misses, stats.entries), (4, 1, 1));
        assert_eq!(stats.repeated_tokens, 4 * text(7).len() as u64);
    }

    #[test]
    fn a_limit_that_is_exceeded_is_not_remembered() {
        let memo = Memo::new(Asked::default());
        assert_eq!(memo.count_up_to(&text(7), 5), None);
        assert_eq!(memo.stats().entries, 0);
        assert_eq!(memo.count(&text(7)), text(7).len());
    }

    #[test]
    fn a_full_memo_stays_within_its_capacity_and_keeps_what_is_used() {
        for capacity in [0, 2, 8, 2_000] {
            let memo = Memo::with_capacity(Asked::default(), capacity);
            for index in 0..3 * capacity {
                memo.count(&text(index));
                memo.count(&text(0));
                assert!(memo.stats().entries <= capacity.max(2));
            }
            let asked = memo.counter().0.load(Ordering::Relaxed);
            assert_eq!(asked, 3 * capacity, "capacity {capacity}: text 0 was counted once");
        }
    }

    #[test]
    fn a_memo_works_over_a_shared_counter_of_unknown_type() {
        let counter: Arc<dyn TokenCounter> = Arc::new(Chars4);
        let memo = Memo::new(counter);
        assert_eq!(memo.id(), "chars4");
        assert_eq!(memo.count(&text(1)), Chars4.count(&text(1)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for index in 0..200 {
                        assert_eq!(memo.count(&text(index)), Chars4.count(&text(index)));
                    }
                });
            }
        });
        assert_eq!(memo.stats().entries, 200);
    }
}
