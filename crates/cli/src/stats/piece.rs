//! A chunk as it is added up, wherever it comes from.

use afterimage::{
    id::{ChunkType, FacetId, Role},
    snapshot::{ChunkRef, RangeChunk},
};

pub(super) trait Piece {
    fn content(&self) -> &str;
    fn role(&self) -> Option<Role>;
    fn chunk_type(&self) -> Option<&str>;
    fn facet_ids(&self) -> impl Iterator<Item = &str>;
}

impl Piece for ChunkRef<'_> {
    fn content(&self) -> &str {
        ChunkRef::content(*self)
    }

    fn role(&self) -> Option<Role> {
        ChunkRef::role(*self)
    }

    fn chunk_type(&self) -> Option<&str> {
        ChunkRef::chunk_type(*self).map(ChunkType::as_str)
    }

    fn facet_ids(&self) -> impl Iterator<Item = &str> {
        ChunkRef::facet_ids(*self).iter().map(FacetId::as_str)
    }
}

/// A chunk of a view.
impl Piece for RangeChunk<'_> {
    fn content(&self) -> &str {
        RangeChunk::content(*self)
    }

    fn role(&self) -> Option<Role> {
        (**self).role()
    }

    fn chunk_type(&self) -> Option<&str> {
        (**self).chunk_type()
    }

    fn facet_ids(&self) -> impl Iterator<Item = &str> {
        (**self).facet_ids()
    }
}
