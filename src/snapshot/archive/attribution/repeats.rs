use std::{cmp::Reverse, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::super::RangeView;
use crate::snapshot::ChunkRef;

/// A text that several chunks of a range have.
#[derive(Clone, Copy, Debug)]
pub struct RepeatedText<'v> {
    /// The first chunk that has it, with the text itself.
    pub first: ChunkRef<'v>,
    /// How many chunks have it; at least two.
    pub count: u64,
    /// The tokens of those chunks without the first: what the repeats cost.
    pub tokens: u64,
    /// The bytes of the same.
    pub bytes: u64,
}

impl<'v> RepeatedText<'v> {
    /// The text.
    pub fn content(self) -> &'v str {
        self.first.content()
    }
}

impl RangeView<'_> {
    /// The texts of at least `least_bytes` bytes that more than one chunk of the range has in
    /// full: those first whose repeats cost the most tokens, equal ones by bytes, then in the
    /// order in which they first appear. Empty chunks repeat nothing.
    ///
    /// Texts are found by hash and compared in full, so that different ones are never taken for
    /// one. Copies no text. Runs in O(bytes of the range) time and holds an entry for each
    /// different text.
    pub fn repeated_text(&self, least_bytes: usize) -> Vec<RepeatedText<'_>> {
        // The seed decides nothing that can be seen.
        let hasher = RandomState::default();
        let mut texts: Vec<RepeatedText<'_>> = Vec::new();
        let mut table: HashTable<(u64, usize)> = HashTable::new();
        for chunk in self.chunks().filter(|chunk| chunk.content().len() >= least_bytes.max(1)) {
            let hash = hasher.hash_one(chunk.content());
            let is_same = |(other, at): &(u64, usize)| {
                *other == hash
                    && texts.get(*at).is_some_and(|text| text.content() == chunk.content())
            };
            if let Some((_, at)) = table.find(hash, is_same) {
                if let Some(text) = texts.get_mut(*at) {
                    text.count += 1;
                    text.tokens = text.tokens.saturating_add(chunk.tokens());
                    text.bytes = text.bytes.saturating_add(chunk.content().len() as u64);
                }
            } else {
                table.insert_unique(hash, (hash, texts.len()), |(hash, _)| *hash);
                texts.push(RepeatedText { first: chunk, count: 1, tokens: 0, bytes: 0 });
            }
        }
        texts.retain(|text| text.count > 1);
        texts.sort_by_key(|text| (Reverse(text.tokens), Reverse(text.bytes)));
        texts
    }
}
