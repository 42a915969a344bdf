use std::{
    cmp::Reverse,
    ops::{Range, RangeInclusive},
};

use indexmap::IndexMap;

use super::{
    super::{ArchiveReader, tables::Tables},
    frames_between, segments_between,
};
use crate::{
    Result,
    id::{ChunkType, FrameSeq},
};

/// What a facet cost in a range of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacetCost<'a> {
    /// The id of the facet.
    pub facet: &'a str,
    /// The type of its first chunk in the range that is not `formatting`; that of its tags only
    /// where it has no others.
    pub chunk_type: Option<&'a str>,
    /// The first frame of the range in which it appears.
    pub first: FrameSeq,
    /// The chunks that represent it, alone or with other facets.
    pub chunks: u64,
    /// The bytes of those chunks' text.
    pub bytes: u64,
    /// The sum of those chunks' tokens.
    pub tokens: u64,
}

impl ArchiveReader {
    /// The `most` facets that cost the most tokens in a range; equal ones by bytes, then in the
    /// order in which they first appear.
    ///
    /// A chunk of several facets counts for each of them in full, so that costs may sum to more
    /// than the range holds; a chunk that names a facet twice counts once. Text of no facet counts
    /// for none. Reads no text, so that dropped text costs what it cost when it was rendered.
    ///
    /// Runs in O(chunks of the range) time and holds an entry for each facet in it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the range runs backwards, and
    /// those of reading the tables of a store.
    pub fn costliest_facets(
        &self,
        range: RangeInclusive<FrameSeq>,
        most: usize,
    ) -> Result<Vec<FacetCost<'_>>> {
        let (from, to) = self.cursors(&range)?;
        let mut costs = Costs::default();
        for segment in segments_between(from, to) {
            let tables = self.state.tables(segment)?;
            costs.add(tables, frames_between(from, to, segment, tables));
        }
        let mut costs: Vec<_> = costs.0.into_values().enumerate().collect();
        let order = |(appeared, cost): &(usize, FacetCost<'_>)| {
            (Reverse(cost.tokens), Reverse(cost.bytes), *appeared)
        };
        if most < costs.len() {
            costs.select_nth_unstable_by_key(most, order);
            costs.truncate(most);
        }
        costs.sort_unstable_by_key(order);
        Ok(costs.into_iter().map(|(_, cost)| cost).collect())
    }
}

/// Costs by facet, in order of first appearance.
#[derive(Default)]
struct Costs<'a>(IndexMap<&'a str, FacetCost<'a>, foldhash::fast::RandomState>);

/// A facet of the segment that is being added.
#[derive(Clone, Copy)]
struct KnownFacet {
    /// Where its cost is.
    place: usize,
    /// The chunk that was counted last, so that one that names a facet twice counts once.
    counted: u32,
}

impl<'a> Costs<'a> {
    /// Adds some frames of a segment.
    fn add(&mut self, tables: &'a Tables, frames: Range<u32>) {
        // Facets are numbered in each segment anew; an id is looked up once a segment.
        let mut known: Vec<Option<KnownFacet>> = vec![None; tables.facets.len()];
        for frame in frames {
            for chunk in tables.before(frame).chunk_end..tables.before(frame + 1).chunk_end {
                for number in tables.facets_of(tables.chunk_row_at(chunk).facets).iter().copied() {
                    let Some(known) = known.get_mut(number as usize) else { continue };
                    if known.is_some_and(|known| known.counted == chunk) {
                        continue;
                    }
                    let place = known.map_or_else(
                        || self.place(tables.facets.get(number), tables.sequence(frame)),
                        |known| known.place,
                    );
                    *known = Some(KnownFacet { place, counted: chunk });
                    if let Some((_, cost)) = self.0.get_index_mut(place) {
                        cost.add(tables, chunk);
                    }
                }
            }
        }
    }

    /// Where the cost of a facet is; `first` is its first frame where it is new.
    fn place(&mut self, facet: &'a str, first: FrameSeq) -> usize {
        let entry = self.0.entry(facet);
        let place = entry.index();
        let (chunk_type, chunks, bytes, tokens) = (None, 0, 0, 0);
        entry.or_insert(FacetCost { facet, chunk_type, first, chunks, bytes, tokens });
        place
    }
}

impl<'a> FacetCost<'a> {
    fn add(&mut self, tables: &'a Tables, chunk: u32) {
        self.chunks += 1;
        self.bytes = self.bytes.saturating_add(tables.text_of_chunk(chunk).len() as u64);
        self.tokens = self.tokens.saturating_add(tables.tokens_of_chunk(chunk));
        if self.chunk_type.is_none_or(|kind| ChunkType::FORMATTING == *kind) {
            self.chunk_type = tables.word(tables.kind_of_chunk(chunk).chunk_type);
        }
    }
}
