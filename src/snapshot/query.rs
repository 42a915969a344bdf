use std::ops::RangeInclusive;

use super::{ChunkRef, FrameSnapshot};
use crate::{
    Error, ErrorKind, Result,
    id::{ChunkType, FacetId, FrameSeq, Role},
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

/// Extracts the frames from `range.start()` to `range.end()`, both included. Frames that are not
/// in the list are not there; the list need not be sorted, its order is kept.
///
/// Runs in O(n) time over the list and copies the text of the range.
///
/// # Errors
/// [`ErrorKind::OutOfRange`] where the range runs backwards.
pub fn extract_snapshot_range<'a>(
    frames: impl IntoIterator<Item = (FrameSeq, &'a FrameSnapshot)>,
    range: RangeInclusive<FrameSeq>,
) -> Result<SnapshotRange<'a>> {
    check_range(&range)?;
    let (mut chunks, mut total_content, mut total_tokens) = (Vec::new(), String::new(), 0);
    for (_, snapshot) in frames.into_iter().filter(|(sequence, _)| range.contains(sequence)) {
        chunks.extend(snapshot.chunks());
        total_content.push_str(snapshot.text());
        total_tokens = u64::saturating_add(total_tokens, snapshot.total_tokens());
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
pub fn find_chunks_by_facet<'a>(snapshot: &'a FrameSnapshot, facet: &str) -> Vec<ChunkRef<'a>> {
    snapshot.chunks().filter(|chunk| chunk.facet_ids().iter().any(|id| id == facet)).collect()
}

/// The chunks of type `chunk_type`.
pub fn find_chunks_by_type<'a>(
    snapshot: &'a FrameSnapshot,
    chunk_type: &ChunkType,
) -> Vec<ChunkRef<'a>> {
    snapshot.chunks().filter(|chunk| chunk.chunk_type() == Some(chunk_type)).collect()
}

/// The distinct facets of a snapshot in order of first appearance.
pub fn get_snapshot_facets(snapshot: &FrameSnapshot) -> Vec<&FacetId> {
    snapshot.facets()
}

/// Chunks by who speaks them; those without a role apart.
#[derive(Clone, Debug, Default)]
pub struct ByRole<'a> {
    groups: Vec<(Role, Vec<ChunkRef<'a>>)>,
    /// The chunks that have no role, in order.
    pub without_role: Vec<ChunkRef<'a>>,
}

impl<'a> ByRole<'a> {
    /// The chunks of `role` in order; empty where there are none.
    pub fn get(&self, role: Role) -> &[ChunkRef<'a>] {
        self.groups.iter().find(|(of, _)| *of == role).map_or(&[], |(_, chunks)| chunks)
    }

    /// The roles in order of first appearance, each with its chunks in order.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &[ChunkRef<'a>])> {
        self.groups.iter().map(|(role, chunks)| (*role, chunks.as_slice()))
    }
}

/// Groups chunks by role. Keeps their order, and says which have none.
pub fn group_chunks_by_role<'a>(chunks: impl IntoIterator<Item = ChunkRef<'a>>) -> ByRole<'a> {
    let mut by_role = ByRole::default();
    for chunk in chunks {
        match chunk.role() {
            None => by_role.without_role.push(chunk),
            Some(role) => match by_role.groups.iter_mut().find(|(of, _)| *of == role) {
                Some((_, chunks)) => chunks.push(chunk),
                None => by_role.groups.push((role, vec![chunk])),
            },
        }
    }
    by_role
}
