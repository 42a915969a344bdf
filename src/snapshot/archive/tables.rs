use std::{ops::Range, sync::Arc};

use smallvec::SmallVec;

use super::{
    frame_rows::{self, FrameRow},
    names::Names,
};
use crate::{
    id::{ChunkType, FacetId, FrameSeq, Millis, Role},
    json::Object,
    snapshot::{
        FrameSnapshot, Part, PartRef, RenderedChunk, SnapshotIdentity, Structure,
        chunk::{FacetIds, Rare},
        frame_snapshot::{Body, OwnBody},
    },
    text::TextRange,
};

/// Everything that is known of the frames of one segment but their text.
///
/// [`OpenTables`](super::open_tables::OpenTables) take frames;
/// [`SealedTables`](super::sealed_tables::SealedTables) take none and find a facet's chunks faster.
///
/// Positions are those in the segment. Ids, types, names of tools and ids of calls are stored
/// once each and known by their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// The sequence of the first frame.
    pub(super) first_sequence: u64,
    /// Shared with the directory once the segment is sealed, so that a search reads nothing else.
    pub(super) frames: Arc<Vec<FrameRow>>,
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
    pub(super) fn hash(self) -> u64 {
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
    Audio,
    Document,
    Compaction,
    ToolDefinition,
}

impl PartKind {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Text,
            Self::Call,
            Self::Result,
            Self::Reasoning,
            Self::Image,
            Self::Opaque,
            Self::Audio,
            Self::Document,
            Self::Compaction,
            Self::ToolDefinition,
        ];
        all.get(usize::from(number)).copied()
    }

    pub(super) fn of(part: &Part) -> Self {
        match part {
            Part::Text => Self::Text,
            Part::Call { .. } => Self::Call,
            Part::Result { .. } => Self::Result,
            Part::Reasoning => Self::Reasoning,
            Part::Image => Self::Image,
            Part::Opaque => Self::Opaque,
            Part::Audio => Self::Audio,
            Part::Document => Self::Document,
            Part::Compaction => Self::Compaction,
            Part::ToolDefinition => Self::ToolDefinition,
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

impl RareRows {
    pub(super) fn shrink_to_fit(&mut self) {
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
    /// How many ids and names there are.
    pub(super) fn names(&self) -> usize {
        self.facets.len() + self.words.len()
    }

    /// The bytes of all ids and names.
    pub(super) fn name_bytes(&self) -> usize {
        self.facets.bytes() + self.words.bytes()
    }

    /// Calls `of` with each facet of each chunk. A chunk that names a facet twice is one chunk of
    /// it.
    pub(super) fn for_each_facet(&self, mut of: impl FnMut(u32, u32)) {
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
            PartKind::Audio => PartRef::Audio,
            PartKind::Document => PartRef::Document,
            PartKind::Compaction => PartRef::Compaction,
            PartKind::ToolDefinition => PartRef::ToolDefinition,
        }
    }

    /// The snapshot of a frame, with its text.
    pub(super) fn snapshot(&self, frame: u32, text: &str) -> FrameSnapshot {
        self.snapshot_with(frame, Body::Own(self.own_body(frame, text)))
    }

    /// The text and the chunks of a frame.
    pub(super) fn own_body(&self, frame: u32, text: &str) -> OwnBody {
        let before = self.before(frame);
        let row = self.frames.get(frame as usize).copied().unwrap_or(before);
        let chunks = (before.chunk_end..row.chunk_end).map(|chunk| {
            let Range { start, end } = self.text_of_chunk(chunk);
            let range = TextRange::at((start - before.text_end) as usize, (end - start) as usize);
            self.chunk_without_text(chunk).into_stored(range)
        });
        OwnBody { text: text.to_owned(), chunks: chunks.collect() }
    }

    /// The snapshot of a frame whose text and chunks are there.
    pub(super) fn snapshot_with(&self, frame: u32, body: Body) -> FrameSnapshot {
        let before = self.before(frame);
        let row = self.frames.get(frame as usize).copied().unwrap_or(before);
        FrameSnapshot {
            body,
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

pub(super) fn word(words: &Names, number: u32) -> Option<&str> {
    number.checked_sub(1).map(|number| words.get(number))
}

fn rare<T>(rows: &[(u32, T)], number: u32) -> Option<&T> {
    let at = rows.binary_search_by_key(&number, |(of, _)| *of).ok()?;
    rows.get(at).map(|(_, value)| value)
}
