use std::{ops::Deref, sync::Arc};

use hashbrown::HashTable;

use super::{
    frame_rows::FrameRow,
    names::{self, Names},
    sealed_tables::SealedTables,
    tables::{ChunkRow, FIRST, Kind, NOBODY, PartKind, SET, Tables, UNSAID, WIDE, word},
};
use crate::{
    id::FrameSeq,
    json::Object,
    snapshot::{FrameSnapshot, Part, chunk::Chunk},
};

/// The tables of the segment that takes frames: facets in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTables {
    tables: Tables,
    facets: Numbers,
    words: Numbers,
    kinds: Numbers,
    /// The kinds of plain chunks that were looked for last.
    recent: [u32; 4],
}

impl Deref for OpenTables {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

/// From hashes to the numbers of what has them.
#[derive(Clone, Debug, Default)]
struct Numbers {
    hashes: Vec<u64>,
    table: HashTable<u32>,
}

impl Numbers {
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.table.find(hash, |number| is(*number)).copied()
    }

    /// Gives the next number to a hash.
    fn push(&mut self, hash: u64) -> u32 {
        let number = self.hashes.len() as u32;
        self.hashes.push(hash);
        let hashes = &self.hashes;
        let of = |number: &u32| hashes.get(*number as usize).copied().unwrap_or_default();
        self.table.insert_unique(hash, number, of);
        number
    }

    fn reserve(&mut self, more: usize) {
        self.hashes.reserve_exact(more);
        let hashes = &self.hashes;
        let of = |number: &u32| hashes.get(*number as usize).copied().unwrap_or_default();
        self.table.reserve(more, of);
    }

    /// The number of a name, which is added where it is new.
    fn intern(&mut self, names: &mut Names, name: &str) -> u32 {
        let hash = names::hash(name);
        self.find(hash, |number| names.get(number) == name).unwrap_or_else(|| {
            self.push(hash);
            names.push(name)
        })
    }
}

impl OpenTables {
    /// Adds a frame. The caller sees to it that sequences rise and positions fit 32 bits.
    pub(super) fn push(&mut self, sequence: FrameSeq, snapshot: &FrameSnapshot) {
        let last = self.tables.frames.last().copied().unwrap_or_default();
        if self.tables.frames.is_empty() {
            self.tables.first_sequence = sequence.get();
        }
        let frame = self.tables.frames.len() as u32;
        let own = snapshot.own();
        for chunk in &own.chunks {
            let row = self.chunk_row(chunk, last.text_end);
            self.tables.chunks.push(row);
        }
        let exact = match snapshot.exact_tokens {
            None => 0,
            Some(exact) => u32::try_from(exact).map_or(WIDE, |exact| exact.saturating_add(1)),
        };
        if let (WIDE, Some(exact)) = (exact, snapshot.exact_tokens) {
            self.tables.rare.exact.push((frame, exact));
        }
        let is_same = match (self.tables.identities.last(), &snapshot.identity) {
            (Some((_, Some(last))), Some(identity)) => {
                Arc::ptr_eq(last, identity) || last == identity
            }
            (Some((_, None)), None) => true,
            _ => false,
        };
        if !is_same {
            self.tables.identities.push((frame, snapshot.identity.clone()));
        }
        if let Some(extra) = &snapshot.extra {
            self.tables.rare.frames.push((frame, Object::clone(extra)));
        }
        let row = FrameRow {
            tokens_end: last.tokens_end + snapshot.total_tokens,
            captured_at: snapshot.captured_at.get(),
            text_end: last.text_end + snapshot.text().len() as u32,
            chunk_end: self.tables.chunks.len() as u32,
            exact,
            sequence: (sequence.get() - self.tables.first_sequence) as u32,
        };
        Arc::make_mut(&mut self.tables.frames).push(row);
    }

    fn chunk_row(&mut self, chunk: &Chunk, frame_start: u32) -> ChunkRow {
        let number = self.tables.chunks.len() as u32;
        let tokens = u32::try_from(chunk.tokens).unwrap_or(WIDE);
        if tokens == WIDE {
            self.tables.rare.tokens.push((number, chunk.tokens));
        }
        if let Some(rare) = &chunk.rare {
            self.tables.rare.push_chunk(number, rare);
        }
        let facets = match chunk.facets.as_slice() {
            None => UNSAID,
            Some([]) => NOBODY,
            Some([facet]) => FIRST + self.facet(facet),
            Some(facets) => {
                for facet in facets {
                    let facet = self.facet(facet);
                    self.tables.sets.push(facet);
                }
                self.tables.set_ends.push(self.tables.sets.len() as u32);
                SET | (self.tables.set_ends.len() as u32 - 1)
            }
        };
        let text_end = frame_start + chunk.range.end() as u32;
        ChunkRow { text_end, tokens, facets, kind: self.kind(chunk) }
    }

    fn facet(&mut self, facet: &str) -> u32 {
        // Most chunks belong to the facet of the chunk before.
        let facets = &mut self.tables.facets;
        let last = facets.len().saturating_sub(1) as u32;
        if facets.get(last) == facet && facets.len() > 0 {
            return last;
        }
        self.facets.intern(facets, facet)
    }

    fn kind(&mut self, chunk: &Chunk) -> u32 {
        let Self { tables, words: word_numbers, kinds: numbers, recent, .. } = self;
        let Tables { kinds, words, .. } = tables;
        let part = PartKind::of(&chunk.part);
        // Plain chunks are of few kinds, and theirs was often just seen.
        let is_plain = !matches!(part, PartKind::Call | PartKind::Result);
        if is_plain {
            let is = |number: &u32| {
                kinds.get(*number as usize).is_some_and(|kind| {
                    kind.role == chunk.role
                        && kind.part == part
                        && word(words, kind.chunk_type) == chunk.chunk_type.as_deref()
                })
            };
            if let Some(number) = recent.iter().copied().find(is) {
                return number;
            }
        }
        let mut number =
            |text: Option<&str>| text.map_or(0, |text| word_numbers.intern(words, text) + 1);
        let (id, name) = match &chunk.part {
            Part::Call { id, name } => (id.as_deref(), Some(&**name)),
            Part::Result { id } => (id.as_deref(), None),
            _ => (None, None),
        };
        let kind = Kind {
            chunk_type: number(chunk.chunk_type.as_deref()),
            part_id: number(id),
            part_name: number(name),
            role: chunk.role,
            part,
        };
        let hash = kind.hash();
        let is = |number: u32| kinds.get(number as usize) == Some(&kind);
        let number = numbers.find(hash, is).unwrap_or_else(|| {
            kinds.push(kind);
            numbers.push(hash)
        });
        if is_plain {
            let [last, second, third, _] = *recent;
            *recent = [number, last, second, third];
        }
        number
    }

    /// Makes room for so many frames and chunks, and for a facet in each frame.
    pub(super) fn reserve(&mut self, frames: usize, chunks: usize) {
        Arc::make_mut(&mut self.tables.frames).reserve_exact(frames);
        self.tables.chunks.reserve_exact(chunks);
        self.facets.reserve(frames);
    }

    /// Makes room for as much as `other` holds: the next segment is often like the last.
    pub(super) fn reserve_like(&mut self, other: &Tables) {
        let tables = &mut self.tables;
        Arc::make_mut(&mut tables.frames).reserve_exact(other.frames.len());
        tables.chunks.reserve_exact(other.chunks.len());
        tables.kinds.reserve_exact(other.kinds.len());
        tables.facets.reserve(other.facets.len(), other.facets.bytes());
        tables.words.reserve(other.words.len(), other.words.bytes());
        self.facets.reserve(other.facets.len());
        self.words.reserve(other.words.len());
        self.kinds.reserve(other.kinds.len());
    }

    /// The chunks of a facet, rising. Looks through all chunks.
    pub(super) fn chunks_of(&self, facet: &str, hash: u64) -> Vec<u32> {
        let names = &self.tables.facets;
        let Some(number) = self.facets.find(hash, |at| names.get(at) == facet) else {
            return Vec::new();
        };
        let has = |row: &ChunkRow| self.facets_of(row.facets).iter().any(|at| *at == number);
        let rows = self.chunks.iter().enumerate().filter(|(_, row)| has(row));
        rows.map(|(at, _)| at as u32).collect()
    }

    /// Ends the growth, and gives back what was reserved.
    pub(super) fn seal(self) -> SealedTables {
        SealedTables::new(self.tables)
    }
}
