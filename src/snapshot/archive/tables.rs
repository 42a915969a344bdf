use std::{borrow::Cow, ops::Range, sync::Arc};

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::{
    frame_rows::{self, FrameRow, FrameRows},
    names::{self, Names},
};
use crate::{
    id::{ChunkType, FacetId, FrameSeq, Millis, Role},
    json::Object,
    snapshot::{
        FrameSnapshot, Part, PartRef, RenderedChunk, SnapshotIdentity, Structure,
        chunk::{Chunk, FacetIds, Rare},
    },
    text::TextRange,
};

/// Everything that is known of the frames of one segment but their text.
///
/// Positions are those in the segment. Ids, types, names of tools and ids of calls are stored
/// once each and known by their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// The sequence of the first frame.
    pub(super) first_sequence: u64,
    pub(super) frames: FrameRows,
    pub(super) chunks: Vec<ChunkRow>,
    pub(super) facets: Names,
    pub(super) words: Names,
    pub(super) kinds: Vec<Kind>,
    /// The facets of chunks that have several: one list after the other.
    pub(super) sets: Vec<u32>,
    pub(super) set_ends: Vec<u32>,
    /// From which frame on what made the snapshots.
    pub(super) identities: Vec<(u32, Option<Arc<SnapshotIdentity>>)>,
    pub(super) rare: RareRows,
    lookup: Lookup,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkRow {
    pub(super) text_end: u32,
    pub(super) tokens: u32,
    /// [`UNSAID`], [`NOBODY`], the number of a facet from [`FIRST`] on, or [`SET`] and that of a
    /// list.
    pub(super) facets: u32,
    /// The number of the [`Kind`].
    pub(super) kind: u32,
}

const _: () = assert!(size_of::<ChunkRow>() == 16);

pub(super) const UNSAID: u32 = 0;
pub(super) const NOBODY: u32 = 1;
pub(super) const FIRST: u32 = 2;
pub(super) const SET: u32 = 1 << 31;
/// Marks a count that does not fit its row and is among the rare.
pub(super) const WIDE: u32 = u32::MAX;

/// Type, role and part of a chunk. Numbers of words begin at one; zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) chunk_type: u32,
    pub(super) part_id: u32,
    pub(super) part_name: u32,
    pub(super) role: Option<Role>,
    pub(super) part: PartKind,
}

impl Kind {
    fn hash(self) -> u64 {
        let rest = self.role.map_or(0, |role| role as u64 + 1) << 8 | self.part as u64;
        // Odd factors, so that no word's bits get lost, and the sum's upper bits mixed in.
        let sum = u64::from(self.chunk_type).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ u64::from(self.part_id).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
            ^ u64::from(self.part_name).wrapping_mul(0x1656_67B1_9E37_79F9)
            ^ rest.wrapping_mul(0x27D4_EB2F_1656_67C5);
        sum ^ sum >> 32
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PartKind {
    #[default]
    Text,
    Call,
    Result,
    Reasoning,
    Image,
    Opaque,
}

impl PartKind {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all =
            [Self::Text, Self::Call, Self::Result, Self::Reasoning, Self::Image, Self::Opaque];
        all.get(usize::from(number)).copied()
    }

    fn of(part: &Part) -> Self {
        match part {
            Part::Text => Self::Text,
            Part::Call { .. } => Self::Call,
            Part::Result { .. } => Self::Result,
            Part::Reasoning => Self::Reasoning,
            Part::Image => Self::Image,
            Part::Opaque => Self::Opaque,
        }
    }
}

/// What few frames and chunks have, each with the number of its row; rising.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareRows {
    pub(super) tokens: Vec<(u32, u64)>,
    pub(super) exact: Vec<(u32, u64)>,
    pub(super) chunks: Vec<(u32, Rare)>,
    pub(super) frames: Vec<(u32, Object)>,
    /// The places of chunks in the nesting of their frames, where no more is to be said of them.
    pub(super) places: Vec<Place>,
    /// The chunks that are nested directly in those, one list after the other.
    pub(super) children: Vec<u32>,
}

/// A [`Structure`] with nothing but places, which are indices in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: u32,
    pub(super) level: u32,
    /// The index of the parent; [`NOWHERE`] where there is none.
    pub(super) parent: u32,
    /// Where its children end among all; none where those of the one before end there as well.
    pub(super) children_end: u32,
}

pub(super) const NOWHERE: u32 = u32::MAX;

/// How a facet's chunks are found.
#[derive(Clone, Debug)]
enum Lookup {
    /// While frames come: facets in the order in which they came, chunks looked through.
    Growing(Box<Growing>),
    /// Facets in the order of their prints, each with its chunks: those of facet `n` from
    /// `starts[n]` to `starts[n + 1]`.
    Sorted { prints: Vec<u32>, starts: Vec<u32>, chunks: Vec<u32> },
}

impl Default for Lookup {
    fn default() -> Self {
        Self::Growing(Box::default())
    }
}

#[derive(Clone, Debug, Default)]
struct Growing {
    facets: Numbers,
    words: Numbers,
    kinds: Numbers,
    /// The kinds of plain chunks that were looked for last.
    recent: [u32; 4],
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

impl RareRows {
    fn shrink_to_fit(&mut self) {
        self.tokens.shrink_to_fit();
        self.exact.shrink_to_fit();
        self.chunks.shrink_to_fit();
        self.frames.shrink_to_fit();
        self.places.shrink_to_fit();
        self.children.shrink_to_fit();
    }

    /// What few chunks have, places among it, each with the number of its row; rising.
    pub(super) fn all_of_chunks(&self) -> Vec<(u32, Rare)> {
        let places = self.places.iter().map(|place| place.chunk);
        let mut chunks: Vec<u32> =
            self.chunks.iter().map(|(chunk, _)| *chunk).chain(places).collect();
        chunks.sort_unstable();
        chunks.dedup();
        let of = |chunk: u32| {
            let rest = rare(&self.chunks, chunk).cloned().unwrap_or_default();
            (chunk, Rare { structure: self.structure(chunk), ..rest })
        };
        chunks.into_iter().map(of).collect()
    }

    /// Keeps what few chunks have. Chunks come in order.
    pub(super) fn push_chunk(&mut self, chunk: u32, rare: &Rare) {
        let is_place = rare.structure.as_ref().is_some_and(|place| self.push_place(chunk, place));
        if is_place {
            let rare = Rare { structure: None, ..rare.clone() };
            self.chunks.extend((rare != Rare::default()).then_some((chunk, rare)));
        } else {
            self.chunks.push((chunk, rare.clone()));
        }
    }

    /// Keeps a structure as a place, unless more is to be said of it.
    fn push_place(&mut self, chunk: u32, structure: &Structure) -> bool {
        let Structure { level, parent, children, extra, spelled } = structure;
        let is_index = |index: &usize| *index < NOWHERE as usize;
        let is_place = extra.is_empty()
            && !spelled
            && parent.iter().all(is_index)
            && children.as_ref().is_none_or(|all| !all.is_empty() && all.iter().all(is_index));
        if is_place {
            self.children.extend(children.iter().flatten().map(|child| *child as u32));
            self.places.push(Place {
                chunk,
                level: *level,
                parent: parent.map_or(NOWHERE, |parent| parent as u32),
                children_end: self.children.len() as u32,
            });
        }
        is_place
    }

    fn structure(&self, chunk: u32) -> Option<Structure> {
        let Ok(at) = self.places.binary_search_by_key(&chunk, |place| place.chunk) else {
            return rare(&self.chunks, chunk)?.structure.clone();
        };
        let place = self.places.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.places.get(before));
        let start = before.map_or(0, |before| before.children_end);
        let children = self.children.get(start as usize..place.children_end as usize)?;
        Some(Structure {
            level: place.level,
            parent: (place.parent != NOWHERE).then_some(place.parent as usize),
            children: (!children.is_empty())
                .then(|| children.iter().map(|child| *child as usize).collect()),
            ..Structure::default()
        })
    }
}

impl Tables {
    /// Adds a frame. The caller sees to it that sequences rise and positions fit 32 bits.
    pub(super) fn push(&mut self, sequence: FrameSeq, snapshot: &FrameSnapshot) {
        let last = self.frames.last().copied().unwrap_or_default();
        if self.frames.is_empty() {
            self.first_sequence = sequence.get();
        }
        let frame = self.frames.len() as u32;
        for chunk in &snapshot.chunks {
            let row = self.chunk_row(chunk, last.text_end);
            self.chunks.push(row);
        }
        let exact = match snapshot.exact_tokens {
            None => 0,
            Some(exact) => u32::try_from(exact).map_or(WIDE, |exact| exact.saturating_add(1)),
        };
        if let (WIDE, Some(exact)) = (exact, snapshot.exact_tokens) {
            self.rare.exact.push((frame, exact));
        }
        let is_same = match (self.identities.last(), &snapshot.identity) {
            (Some((_, Some(last))), Some(identity)) => {
                Arc::ptr_eq(last, identity) || last == identity
            }
            (Some((_, None)), None) => true,
            _ => false,
        };
        if !is_same {
            self.identities.push((frame, snapshot.identity.clone()));
        }
        if let Some(extra) = &snapshot.extra {
            self.rare.frames.push((frame, Object::clone(extra)));
        }
        self.frames.push(FrameRow {
            tokens_end: last.tokens_end + snapshot.total_tokens,
            captured_at: snapshot.captured_at.get(),
            text_end: last.text_end + snapshot.text.len() as u32,
            chunk_end: self.chunks.len() as u32,
            exact,
            sequence: (sequence.get() - self.first_sequence) as u32,
        });
    }

    fn chunk_row(&mut self, chunk: &Chunk, frame_start: u32) -> ChunkRow {
        let number = self.chunks.len() as u32;
        let tokens = u32::try_from(chunk.tokens).unwrap_or(WIDE);
        if tokens == WIDE {
            self.rare.tokens.push((number, chunk.tokens));
        }
        if let Some(rare) = &chunk.rare {
            self.rare.push_chunk(number, rare);
        }
        let facets = match chunk.facets.as_slice() {
            None => UNSAID,
            Some([]) => NOBODY,
            Some([facet]) => FIRST + self.facet(facet),
            Some(facets) => {
                for facet in facets {
                    let facet = self.facet(facet);
                    self.sets.push(facet);
                }
                self.set_ends.push(self.sets.len() as u32);
                SET | (self.set_ends.len() as u32 - 1)
            }
        };
        let text_end = frame_start + chunk.range.end() as u32;
        ChunkRow { text_end, tokens, facets, kind: self.kind(chunk) }
    }

    fn facet(&mut self, facet: &str) -> u32 {
        // Most chunks belong to the facet of the chunk before.
        let last = self.facets.len().saturating_sub(1) as u32;
        if self.facets.get(last) == facet && self.facets.len() > 0 {
            return last;
        }
        let Lookup::Growing(growing) = &mut self.lookup else { return 0 };
        growing.facets.intern(&mut self.facets, facet)
    }

    fn kind(&mut self, chunk: &Chunk) -> u32 {
        let Self { lookup: Lookup::Growing(growing), kinds, words, .. } = self else { return 0 };
        let Growing { words: word_numbers, kinds: numbers, recent, .. } = &mut **growing;
        let part = PartKind::of(&chunk.part);
        // Plain chunks are of few kinds, one of which was often just seen.
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

    /// Makes room for as much as `other` holds: the next segment is often like the last.
    pub(super) fn reserve_like(&mut self, other: &Self) {
        self.frames.reserve(other.frames.len());
        self.chunks.reserve_exact(other.chunks.len());
        self.kinds.reserve_exact(other.kinds.len());
        self.facets.reserve(other.facets.len(), other.facets.bytes());
        self.words.reserve(other.words.len(), other.words.bytes());
        if let Lookup::Growing(growing) = &mut self.lookup {
            growing.facets.reserve(other.facets.len());
            growing.words.reserve(other.words.len());
            growing.kinds.reserve(other.kinds.len());
        }
    }

    /// How many ids and names there are.
    pub(super) fn names(&self) -> usize {
        self.facets.len() + self.words.len()
    }

    /// The bytes of all ids and names.
    pub(super) fn name_bytes(&self) -> usize {
        self.facets.bytes() + self.words.bytes()
    }

    /// Ends the growth: sorts the facets, so that one is found in O(log n) time, and gives back
    /// what was reserved.
    pub(super) fn seal(&mut self) {
        let count = self.facets.len() as u32;
        // A print and a facet in one number: it sorts as the pair does, and sooner.
        let pair = |(print, facet): (u32, u32)| u64::from(print) << 32 | u64::from(facet);
        let mut order: Vec<u64> = match &self.lookup {
            Lookup::Sorted { .. } => return,
            Lookup::Growing(growing) if growing.facets.hashes.len() == self.facets.len() => {
                let prints = growing.facets.hashes.iter().map(|hash| names::print(*hash));
                prints.zip(0..count).map(pair).collect()
            }
            Lookup::Growing(_) => {
                let prints = self.facets.iter().map(|facet| names::print(names::hash(facet)));
                prints.zip(0..count).map(pair).collect()
            }
        };
        order.sort_unstable();
        let mut places = vec![0_u32; order.len()];
        let mut facets = Names::default();
        facets.reserve(order.len(), self.facets.bytes());
        for (place, facet) in order.iter().map(|pair| *pair as u32).enumerate() {
            facets.push(self.facets.get(facet));
            if let Some(of) = places.get_mut(facet as usize) {
                *of = place as u32;
            }
        }
        let place = |facet: u32| places.get(facet as usize).copied().unwrap_or_default();
        self.sets.iter_mut().for_each(|facet| *facet = place(*facet));
        for chunk in &mut self.chunks {
            if (FIRST..SET).contains(&chunk.facets) {
                chunk.facets = FIRST + place(chunk.facets - FIRST);
            }
        }
        self.facets = facets;
        self.lookup = self.sorted(order.iter().map(|pair| names::print(*pair)).collect());
        self.frames.seal();
        self.chunks.shrink_to_fit();
        self.words.shrink_to_fit();
        self.kinds.shrink_to_fit();
        self.sets.shrink_to_fit();
        self.set_ends.shrink_to_fit();
        self.identities.shrink_to_fit();
        self.rare.shrink_to_fit();
    }

    /// The chunks of each facet.
    fn sorted(&self, prints: Vec<u32>) -> Lookup {
        // First how many chunks each has; then where they begin, and where the next one goes.
        let mut starts = vec![0_u32; self.facets.len() + 1];
        self.for_each_facet(|facet, _| {
            if let Some(count) = starts.get_mut(facet as usize + 1) {
                *count += 1;
            }
        });
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut chunks = vec![0_u32; sum as usize];
        self.for_each_facet(|facet, chunk| {
            if let Some(next) = next.get_mut(facet as usize)
                && let Some(place) = chunks.get_mut(*next as usize)
            {
                *place = chunk;
                *next += 1;
            }
        });
        Lookup::Sorted { prints, starts, chunks }
    }

    /// Calls `of` with each facet of each chunk. A chunk that names a facet twice is one chunk of
    /// it.
    fn for_each_facet(&self, mut of: impl FnMut(u32, u32)) {
        for (chunk, row) in (0..).zip(&self.chunks) {
            let facets = self.facets_of(row.facets);
            if let FacetNumbers::One(facet) = facets {
                of(facet, chunk);
                continue;
            }
            let mut facets: SmallVec<[u32; 8]> = facets.iter().copied().collect();
            facets.sort_unstable();
            facets.dedup();
            facets.into_iter().for_each(|facet| of(facet, chunk));
        }
    }

    /// The facets behind the number of a chunk's facets.
    pub(super) fn facets_of(&self, facets: u32) -> FacetNumbers<'_> {
        if facets & SET != 0 {
            let set = (facets & !SET) as usize;
            let end_of = |set: usize| self.set_ends.get(set).map(|end| *end as usize);
            let start = set.checked_sub(1).and_then(end_of).unwrap_or(0);
            let set = end_of(set).and_then(|end| self.sets.get(start..end));
            FacetNumbers::Several(set.unwrap_or_default())
        } else if facets >= FIRST {
            FacetNumbers::One(facets - FIRST)
        } else {
            FacetNumbers::Several(&[])
        }
    }

    /// The prints of all facets once the segment is sealed, for the index.
    pub(super) fn prints(&self) -> &[u32] {
        match &self.lookup {
            Lookup::Growing(_) => &[],
            Lookup::Sorted { prints, .. } => prints,
        }
    }

    /// The chunks of a facet, rising. Runs in O(log(facets)) time once the segment is sealed.
    pub(super) fn chunks_of(&self, facet: &str, hash: u64) -> Cow<'_, [u32]> {
        match &self.lookup {
            Lookup::Growing(growing) => {
                let number = growing.facets.find(hash, |at| self.facets.get(at) == facet);
                let Some(number) = number else { return Cow::Borrowed(&[]) };
                let has =
                    |row: &ChunkRow| self.facets_of(row.facets).iter().any(|at| *at == number);
                let rows = self.chunks.iter().enumerate().filter(|(_, row)| has(row));
                rows.map(|(at, _)| at as u32).collect()
            }
            Lookup::Sorted { prints, starts, chunks } => {
                let print = names::print(hash);
                let first = prints.partition_point(|at| *at < print);
                let same = prints.iter().enumerate().skip(first);
                let mut same = same.take_while(|(_, at)| **at == print);
                let found = same.find(|(at, _)| self.facets.get(*at as u32) == facet);
                let chunks = found.and_then(|(at, _)| {
                    chunks.get(*starts.get(at)? as usize..*starts.get(at + 1)? as usize)
                });
                Cow::Borrowed(chunks.unwrap_or_default())
            }
        }
    }

    pub(super) fn sequence(&self, frame: u32) -> FrameSeq {
        let beyond = self.frames.get(frame as usize).map_or(0, |frame| u64::from(frame.sequence));
        FrameSeq::new(self.first_sequence + beyond)
    }

    /// Where the frame begins: the row of the frame before it, or zeros.
    pub(super) fn before(&self, frame: u32) -> FrameRow {
        frame_rows::before(&self.frames, frame)
    }

    /// The frame of a chunk. O(log n).
    pub(super) fn frame_of_chunk(&self, chunk: u32) -> u32 {
        self.frames.partition_point(|frame| frame.chunk_end <= chunk) as u32
    }

    /// The chunk that holds a byte. O(log n).
    pub(super) fn chunk_at(&self, byte: u32) -> u32 {
        self.chunks.partition_point(|chunk| chunk.text_end <= byte) as u32
    }

    pub(super) fn chunk_row_at(&self, chunk: u32) -> ChunkRow {
        self.chunks.get(chunk as usize).copied().unwrap_or_default()
    }

    /// Where a chunk's text stands.
    pub(super) fn text_of_chunk(&self, chunk: u32) -> Range<u32> {
        let before = (chunk as usize).checked_sub(1).and_then(|before| self.chunks.get(before));
        before.map_or(0, |before| before.text_end)..self.chunk_row_at(chunk).text_end
    }

    pub(super) fn tokens_of_chunk(&self, chunk: u32) -> u64 {
        let tokens = self.chunk_row_at(chunk).tokens;
        if tokens == WIDE {
            rare(&self.rare.tokens, chunk).copied().unwrap_or(u64::from(WIDE))
        } else {
            tokens.into()
        }
    }

    pub(super) fn kind_of_chunk(&self, chunk: u32) -> Kind {
        let kind = self.chunk_row_at(chunk).kind as usize;
        self.kinds.get(kind).copied().unwrap_or_default()
    }

    pub(super) fn word(&self, number: u32) -> Option<&str> {
        word(&self.words, number)
    }

    pub(super) fn rare_of_chunk(&self, chunk: u32) -> Option<&Rare> {
        rare(&self.rare.chunks, chunk)
    }

    pub(super) fn structure_of_chunk(&self, chunk: u32) -> Option<Structure> {
        self.rare.structure(chunk)
    }

    pub(super) fn exact_tokens(&self, frame: u32) -> Option<u64> {
        match self.frames.get(frame as usize)?.exact {
            0 => None,
            WIDE => rare(&self.rare.exact, frame).copied(),
            exact => Some(u64::from(exact) - 1),
        }
    }

    pub(super) fn identity(&self, frame: u32) -> Option<&Arc<SnapshotIdentity>> {
        let after = self.identities.partition_point(|(from, _)| *from <= frame);
        self.identities.get(after.checked_sub(1)?)?.1.as_ref()
    }

    /// Type, role, facets and the rest of a chunk, with no text.
    pub(super) fn chunk_without_text(&self, chunk: u32) -> RenderedChunk {
        let row = self.chunk_row_at(chunk);
        let kind = self.kind_of_chunk(chunk);
        let facets = self.facets_of(row.facets);
        let facet_ids = (row.facets != UNSAID).then(|| {
            facets.iter().map(|facet| FacetId::from(self.facets.get(*facet))).collect::<FacetIds>()
        });
        let structure = self.structure_of_chunk(chunk);
        let rare = self.rare_of_chunk(chunk).cloned().unwrap_or_default();
        Rare { structure, ..rare }.onto(RenderedChunk {
            tokens: self.tokens_of_chunk(chunk),
            facet_ids,
            chunk_type: self.word(kind.chunk_type).map(ChunkType::from),
            role: kind.role,
            part: self.part(kind).to_owned(),
            ..RenderedChunk::default()
        })
    }

    pub(super) fn part(&self, kind: Kind) -> PartRef<'_> {
        let id = self.word(kind.part_id);
        match kind.part {
            PartKind::Text => PartRef::Text,
            PartKind::Call => {
                PartRef::Call { id, name: self.word(kind.part_name).unwrap_or_default() }
            }
            PartKind::Result => PartRef::Result { id },
            PartKind::Reasoning => PartRef::Reasoning,
            PartKind::Image => PartRef::Image,
            PartKind::Opaque => PartRef::Opaque,
        }
    }

    /// The snapshot of a frame, with its text.
    pub(super) fn snapshot(&self, frame: u32, text: &str) -> FrameSnapshot {
        let before = self.before(frame);
        let row = self.frames.get(frame as usize).copied().unwrap_or(before);
        let chunks = (before.chunk_end..row.chunk_end).map(|chunk| {
            let Range { start, end } = self.text_of_chunk(chunk);
            let range = TextRange::at((start - before.text_end) as usize, (end - start) as usize);
            self.chunk_without_text(chunk).into_stored(range)
        });
        FrameSnapshot {
            text: text.to_owned(),
            chunks: chunks.collect(),
            total_tokens: row.tokens_end - before.tokens_end,
            exact_tokens: self.exact_tokens(frame),
            captured_at: Millis::new(row.captured_at),
            identity: self.identity(frame).cloned(),
            extra: rare(&self.rare.frames, frame).cloned().map(Box::new),
        }
    }
}

/// The numbers of a chunk's facets.
#[derive(Clone, Copy, Debug)]
pub(super) enum FacetNumbers<'t> {
    One(u32),
    Several(&'t [u32]),
}

impl FacetNumbers<'_> {
    pub(super) fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(facet) => std::slice::from_ref(facet),
            Self::Several(facets) => facets,
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, u32> {
        self.as_slice().iter()
    }
}

fn word(words: &Names, number: u32) -> Option<&str> {
    number.checked_sub(1).map(|number| words.get(number))
}

fn rare<T>(rows: &[(u32, T)], number: u32) -> Option<&T> {
    let at = rows.binary_search_by_key(&number, |(of, _)| *of).ok()?;
    rows.get(at).map(|(_, value)| value)
}
