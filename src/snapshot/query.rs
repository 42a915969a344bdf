use std::ops::RangeInclusive;

use super::{ChunkInfo, ChunkRef};
use crate::{
    Error, ErrorKind, Result,
    id::{FrameSeq, Role},
};

/// The chunks of a range of frames.
#[derive(Clone, Debug)]
pub struct SnapshotRange<'a> {
    /// The chunks in order.
    pub chunks: Vec<ChunkRef<'a>>,
    /// The text of the range.
    pub total_content: String,
    /// The sum of the chunks' tokens; saturates, since loaded counts are what their file declares.
    pub total_tokens: u64,
}

/// Extracts the frames from `range.start()` to `range.end()`, both included, of snapshots
/// (`(sequence, &snapshot)`) or of an archive
/// ([`RangeView::frames`](super::RangeView::frames)). Frames that are not in the list are not
/// there; the list need not be sorted, its order is kept.
///
/// Runs in O(n) time over the list and copies the text of the range.
///
/// # Errors
/// [`ErrorKind::OutOfRange`] where the range runs backwards.
pub fn extract_snapshot_range<'a, F: IntoIterator<Item = ChunkRef<'a>>>(
    frames: impl IntoIterator<Item = (FrameSeq, F)>,
    range: RangeInclusive<FrameSeq>,
) -> Result<SnapshotRange<'a>> {
    check_range(&range)?;
    let (mut chunks, mut total_content, mut total_tokens) = (Vec::new(), String::new(), 0);
    for (_, frame) in frames.into_iter().filter(|(sequence, _)| range.contains(sequence)) {
        for chunk in frame {
            total_content.push_str(chunk.content());
            total_tokens = u64::saturating_add(total_tokens, chunk.tokens());
            chunks.push(chunk);
        }
    }
    Ok(SnapshotRange { chunks, total_content, total_tokens })
}

/// Checks that `range` does not run backwards.
pub(crate) fn check_range(range: &RangeInclusive<FrameSeq>) -> Result<()> {
    if range.start() > range.end() {
        let message = format!("the range runs from {} back to {}", range.start(), range.end());
        return Err(Error::new(ErrorKind::OutOfRange, message));
    }
    Ok(())
}

/// The chunks that represent `facet`, alone or with others.
///
/// `chunks` is a `&FrameSnapshot`, a `&RangeView` of an archive, a slice of [`RenderedChunk`]s, or
/// whatever a search before it found. O(chunks); an archive's index answers sooner:
/// [`ArchiveReader::chunks_of`](super::ArchiveReader::chunks_of).
///
/// [`RenderedChunk`]: super::RenderedChunk
pub fn find_chunks_by_facet<'a, C: Copy + Into<ChunkInfo<'a>>>(
    chunks: impl IntoIterator<Item = C>,
    facet: &str,
) -> Vec<C> {
    let is_of = |chunk: &C| ChunkInfo::facet_ids((*chunk).into()).any(|id| id == facet);
    chunks.into_iter().filter(is_of).collect()
}

/// The chunks of type `chunk_type`, of what [`find_chunks_by_facet`] takes. O(chunks).
pub fn find_chunks_by_type<'a, C: Copy + Into<ChunkInfo<'a>>>(
    chunks: impl IntoIterator<Item = C>,
    chunk_type: &str,
) -> Vec<C> {
    let is_of = |chunk: &C| ChunkInfo::chunk_type((*chunk).into()) == Some(chunk_type);
    chunks.into_iter().filter(is_of).collect()
}

/// The distinct facets of chunks in order of first appearance, of what [`find_chunks_by_facet`]
/// takes. O(chunks).
pub fn get_snapshot_facets<'a>(
    chunks: impl IntoIterator<Item = impl Into<ChunkInfo<'a>>>,
) -> Vec<&'a str> {
    let chunks = chunks.into_iter().map(Into::into);
    let mut facets = indexmap::IndexSet::<&'a str, foldhash::fast::FixedState>::default();
    facets.extend(chunks.flat_map(ChunkInfo::facet_ids));
    facets.into_iter().collect()
}

/// Chunks by who speaks them; those without a role apart.
#[derive(Clone, Debug)]
pub struct ByRole<C> {
    groups: Vec<(Role, Vec<C>)>,
    /// The chunks that have no role, in order.
    pub without_role: Vec<C>,
}

impl<C> ByRole<C> {
    /// The chunks of `role` in order; empty where there are none.
    pub fn get(&self, role: Role) -> &[C] {
        self.groups.iter().find(|(of, _)| *of == role).map_or(&[], |(_, chunks)| chunks)
    }

    /// The roles in order of first appearance, each with its chunks in order. O(roles).
    pub fn iter(&self) -> impl Iterator<Item = (Role, &[C])> {
        self.groups.iter().map(|(role, chunks)| (*role, chunks.as_slice()))
    }
}

/// Groups chunks by role, of what [`find_chunks_by_facet`] takes. Keeps their order, and says which
/// have none. O(chunks); for those of an archive [`RangeView::by_role`](super::RangeView::by_role)
/// does it without a list of chunks.
pub fn group_chunks_by_role<'a, C: Copy + Into<ChunkInfo<'a>>>(
    chunks: impl IntoIterator<Item = C>,
) -> ByRole<C> {
    let mut by_role = ByRole { groups: Vec::new(), without_role: Vec::new() };
    for chunk in chunks {
        match ChunkInfo::role(chunk.into()) {
            None => by_role.without_role.push(chunk),
            Some(role) => match by_role.groups.iter_mut().find(|(of, _)| *of == role) {
                Some((_, chunks)) => chunks.push(chunk),
                None => by_role.groups.push((role, vec![chunk])),
            },
        }
    }
    by_role
}
