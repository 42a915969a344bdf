//! What a frame rendered to at its moment: chunks that tile one text.
//!
//! A [`FrameSnapshotBuilder`] takes text with its attribution and makes a [`FrameSnapshot`]: the
//! text is stored once, and a chunk is a range of it. A [`ChunkRef`] is a view of a chunk, wherever
//! it lies: in a snapshot, in an archive, or by itself as a [`RenderedChunk`], the owned form, as on
//! the wire. A [`ChunkInfo`] is the same without the text. The free functions answer questions about
//! any of them ([`find_chunks_by_facet`], [`get_snapshot_facets`]), and about a range of frames
//! ([`extract_snapshot_range`]).

#[cfg_attr(
    not(feature = "storage"),
    allow(dead_code, reason = "the parts of an archive that only a store uses are small")
)]
mod archive;
mod builder;
mod chunk;
mod chunk_ref;
mod frame_snapshot;
mod mask;
mod query;
mod shared_snapshot;
mod shorten;
mod split;
mod substitution;
mod tiling;
mod wire;

#[cfg(feature = "storage")]
pub use archive::OpenedArchive;
pub use archive::{
    ArchiveOptions, ArchiveReader, RangeByRole, RangeText, RangeView, SnapshotArchive, Totals,
};
pub(crate) use archive::{ArchivedFrame, SealedSegment, SegmentBuilder};
pub use builder::{ChunkOptions, FrameSnapshotBuilder, SnapshotOptions};
pub(crate) use chunk::{Chunk, Facets};
pub use chunk::{FacetIds, Part, PartRef, RenderedChunk, Structure};
pub use chunk_ref::{ChunkFacets, ChunkInfo, ChunkRef};
pub use frame_snapshot::{Chunks, FrameSnapshot, Rendering, SnapshotIdentity};
pub(crate) use mask::ToolOutput;
pub(crate) use query::check_range;
pub use query::{
    ByRole, SnapshotRange, extract_snapshot_range, find_chunks_by_facet, find_chunks_by_type,
    get_snapshot_facets, group_chunks_by_role,
};
pub(crate) use shared_snapshot::SharedSnapshot;
pub(crate) use shorten::CutText;
pub use substitution::{Substitution, SubstitutionKind};
pub(crate) use tiling::{Nesting, Tiling};
