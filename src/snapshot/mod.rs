//! What a frame rendered to at its moment: chunks that tile one text.
//!
//! A [`FrameSnapshotBuilder`] takes text with its attribution and makes a [`FrameSnapshot`]: the
//! text is stored once, each [`ChunkRef`] is a view of a range of it. [`RenderedChunk`] is the
//! owned form, as on the wire. The free functions answer questions about one snapshot
//! ([`find_chunks_by_facet`], [`get_snapshot_facets`]) and about a range of frames
//! ([`extract_snapshot_range`]). An [`IncrementalSnapshot`] holds only what is new against another.

#[cfg_attr(
    not(feature = "storage"),
    allow(dead_code, reason = "the parts of an archive that only a store uses are small")
)]
mod archive;
mod builder;
mod chunk;
mod frame_snapshot;
mod incremental;
mod query;
mod shorten;
mod split;
mod substitution;
mod tiling;
mod wire;

#[cfg(feature = "storage")]
pub use archive::OpenedArchive;
pub use archive::{
    ArchiveOptions, ArchiveReader, ArchivedChunk, ChunkText, FacetCost, FacetText, PhraseMatch,
    PhraseMatches, RangeChunk, RangeText, RangeView, RepeatedText, SnapshotArchive, Totals,
};
pub use builder::{ChunkOptions, FrameSnapshotBuilder, SnapshotOptions};
pub(crate) use chunk::{Chunk, Facets};
pub use chunk::{ChunkRef, FacetIds, Part, RenderedChunk, Structure};
pub use frame_snapshot::{FrameSnapshot, SnapshotIdentity};
pub use incremental::{IncrementalChain, IncrementalSnapshot};
pub(crate) use query::check_range;
pub use query::{
    ByRole, SnapshotRange, extract_snapshot_range, find_chunks_by_facet, find_chunks_by_type,
    get_snapshot_facets, group_chunks_by_role,
};
pub use substitution::{Stands, Substitution};
pub(crate) use tiling::{Nesting, Tiling};
