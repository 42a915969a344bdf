use super::tables::{FacetNumbers, Tables};
use crate::{
    id::{FrameSeq, Role},
    json::Object,
    snapshot::{PartRef, RenderedChunk, Structure},
    text::TextRange,
};

/// Where a chunk lies in an archive: its segment, and its number there. Cheap to copy.
#[derive(Clone, Copy)]
pub(in crate::snapshot) struct ArchivedPlace<'a> {
    pub(super) tables: &'a Tables,
    /// Its number in the segment.
    pub(super) chunk: u32,
    /// The number of its frame, where that is known without looking for it.
    frame: Option<u32>,
}

impl<'a> ArchivedPlace<'a> {
    pub(super) fn new(tables: &'a Tables, chunk: u32) -> Self {
        Self { tables, chunk, frame: None }
    }

    pub(super) fn in_frame(tables: &'a Tables, chunk: u32, frame: u32) -> Self {
        Self { tables, chunk, frame: Some(frame) }
    }

    fn frame(self) -> u32 {
        self.frame.unwrap_or_else(|| self.tables.frame_of_chunk(self.chunk))
    }

    pub(in crate::snapshot) fn sequence(self) -> FrameSeq {
        self.tables.sequence(self.frame())
    }

    pub(in crate::snapshot) fn index(self) -> usize {
        (self.chunk - self.tables.before(self.frame()).chunk_end) as usize
    }

    pub(in crate::snapshot) fn range(self) -> TextRange {
        let range = self.tables.text_of_chunk(self.chunk);
        let start = range.start - self.tables.before(self.frame()).text_end;
        TextRange::at(start as usize, range.len())
    }

    pub(in crate::snapshot) fn tokens(self) -> u64 {
        self.tables.tokens_of_chunk(self.chunk)
    }

    pub(in crate::snapshot) fn facets(self) -> ArchivedFacets<'a> {
        let numbers = self.tables.facets_of(self.tables.chunk_row_at(self.chunk).facets);
        ArchivedFacets { tables: self.tables, numbers, next: 0 }
    }

    pub(in crate::snapshot) fn chunk_type(self) -> Option<&'a str> {
        self.tables.word(self.tables.kind_of_chunk(self.chunk).chunk_type)
    }

    pub(in crate::snapshot) fn role(self) -> Option<Role> {
        self.tables.kind_of_chunk(self.chunk).role
    }

    pub(in crate::snapshot) fn part(self) -> PartRef<'a> {
        self.tables.part(self.tables.kind_of_chunk(self.chunk))
    }

    pub(in crate::snapshot) fn structure(self) -> Option<Structure> {
        self.tables.structure_of_chunk(self.chunk)
    }

    pub(in crate::snapshot) fn metadata(self) -> Option<&'a Object> {
        self.tables.rare_of_chunk(self.chunk)?.metadata.as_deref()
    }

    pub(in crate::snapshot) fn without_text(self) -> RenderedChunk {
        self.tables.chunk_without_text(self.chunk)
    }
}

/// The facets of a chunk in an archive.
#[derive(Clone)]
pub(in crate::snapshot) struct ArchivedFacets<'a> {
    tables: &'a Tables,
    numbers: FacetNumbers<'a>,
    next: usize,
}

impl<'a> Iterator for ArchivedFacets<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let facet = *self.numbers.as_slice().get(self.next)?;
        self.next += 1;
        Some(self.tables.facets.get(facet))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.numbers.as_slice().len() - self.next;
        (len, Some(len))
    }
}
