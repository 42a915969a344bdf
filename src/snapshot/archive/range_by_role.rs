use std::{fmt, ops::Range};

use super::{RangeView, tables::Tables};
use crate::{id::Role, snapshot::ChunkRef};

/// The chunks of a range of an archive by who speaks them. Holds their numbers: 4 bytes a chunk.
///
/// ```
/// use afterimage::{
///     id::{Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder, SnapshotArchive},
///     tokens::Chars4,
/// };
///
/// let mut archive = SnapshotArchive::new();
/// for (sequence, role) in [(0_u64, Role::User), (1, Role::Assistant), (2, Role::User)] {
///     let mut builder = FrameSnapshotBuilder::new(&Chars4);
///     builder.add_content(&format!("Frame {sequence}."), ChunkOptions::new().role(role));
///     archive.push(sequence, &builder.build(Millis::new(0)))?;
/// }
/// let view = archive.range(0.into()..=2.into())?;
/// let by_role = view.by_role();
/// assert_eq!(by_role.roles().collect::<Vec<_>>(), [Role::User, Role::Assistant]);
/// assert_eq!(by_role.count(Role::User), 2);
/// let said = by_role.get(Role::User).map(|chunk| chunk.content());
/// assert_eq!(said.collect::<Vec<_>>(), ["Frame 0.", "Frame 2."]);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone)]
pub struct RangeByRole<'v> {
    view: &'v RangeView<'v>,
    /// Of users, the assistant and the operator; then those without a role.
    groups: [Group; 4],
    /// The roles in order of first appearance.
    order: Vec<Role>,
}

/// The numbers of chunks in their segments.
#[derive(Clone, Default)]
struct Group {
    chunks: Vec<u32>,
    /// The segments, each with where its numbers end.
    segments: Vec<(u32, usize)>,
}

const ROLES: [Role; 3] = [Role::User, Role::Assistant, Role::System];

/// The number of the group of a role.
fn group_of(role: Option<Role>) -> usize {
    role.and_then(|role| ROLES.iter().position(|of| *of == role)).unwrap_or(ROLES.len())
}

impl<'v> RangeByRole<'v> {
    pub(super) fn new(view: &'v RangeView<'v>) -> Self {
        Self { view, groups: Default::default(), order: Vec::new() }
    }

    /// Adds the chunks of the next segment.
    pub(super) fn add(&mut self, segment: u32, tables: &Tables, chunks: Range<u32>) {
        let kinds: Vec<u8> = tables.kinds.iter().map(|kind| group_of(kind.role) as u8).collect();
        let rows = tables.chunks.get(chunks.start as usize..chunks.end as usize);
        let [users, assistants, operators, others] = &mut self.groups;
        let mut before = u8::MAX;
        for (chunk, row) in (chunks.start..).zip(rows.unwrap_or_default()) {
            let kind = kinds.get(row.kind as usize).copied().unwrap_or(ROLES.len() as u8);
            let group = match kind {
                0 => &mut *users,
                1 => &mut *assistants,
                2 => &mut *operators,
                _ => &mut *others,
            };
            group.chunks.push(chunk);
            if kind != before {
                before = kind;
                let role = ROLES.get(usize::from(kind));
                self.order.extend(role.filter(|_| group.chunks.len() == 1));
            }
        }
        for group in &mut self.groups {
            group.segments.push((segment, group.chunks.len()));
        }
    }

    /// The roles in order of first appearance.
    pub fn roles(&self) -> impl ExactSizeIterator<Item = Role> {
        self.order.iter().copied()
    }

    /// How many chunks a role has. O(1).
    pub fn count(&self, role: Role) -> usize {
        self.group(Some(role)).map_or(0, |group| group.chunks.len())
    }

    /// The chunks of a role in order. O(segments and chunks of the role) for all of them.
    pub fn get(&self, role: Role) -> impl Iterator<Item = ChunkRef<'v>> {
        self.chunks(Some(role))
    }

    /// The chunks that have no role, in order. O(segments and chunks without a role) for all of
    /// them.
    pub fn without_role(&self) -> impl Iterator<Item = ChunkRef<'v>> {
        self.chunks(None)
    }

    fn group(&self, role: Option<Role>) -> Option<&Group> {
        self.groups.get(group_of(role))
    }

    fn chunks(&self, role: Option<Role>) -> impl Iterator<Item = ChunkRef<'v>> {
        let (view, group) = (self.view, self.group(role));
        let segments = group.into_iter().flat_map(|group| {
            let starts = std::iter::once(0).chain(group.segments.iter().map(|(_, end)| *end));
            starts.zip(&group.segments).map(|(start, (segment, end))| {
                (*segment, group.chunks.get(start..*end).unwrap_or_default())
            })
        });
        segments.flat_map(move |(segment, chunks)| {
            chunks.iter().map(move |chunk| view.chunk_of(segment, *chunk))
        })
    }
}

impl fmt::Debug for RangeByRole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.roles().map(|role| (role, self.count(role)));
        f.debug_map().entries(counts).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        id::{FrameSeq, Millis, Role},
        snapshot::{
            ArchiveOptions, ChunkOptions, ChunkRef, FrameSnapshotBuilder, SnapshotArchive,
            group_chunks_by_role,
        },
        tokens::Chars4,
    };

    fn place(chunk: ChunkRef<'_>) -> (Option<FrameSeq>, usize, &str) {
        (chunk.sequence(), chunk.index(), chunk.content())
    }

    #[test]
    fn the_groups_of_a_range_are_those_of_a_list_of_its_chunks() {
        let options = ArchiveOptions { segment_frames: 3, ..ArchiveOptions::default() };
        let mut archive = SnapshotArchive::with_options(options);
        for sequence in 0..20_u64 {
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            for chunk in 0..sequence % 4 {
                let role = match (sequence * 7 + chunk * 5) % 4 {
                    0 => Some(Role::User),
                    1 => Some(Role::Assistant),
                    2 => Some(Role::System),
                    _ => None,
                };
                let options = role.into_iter().fold(ChunkOptions::new(), ChunkOptions::role);
                builder.add_content(&format!("{sequence}.{chunk} "), options);
            }
            archive.push(sequence, &builder.build(Millis::new(0))).unwrap();
        }
        for (from, to) in [(0, 19), (1, 1), (2, 11), (5, 6), (14, 19), (0, 0)] {
            let view = archive.range(from.into()..=to.into()).unwrap();
            let (found, expected) = (view.by_role(), group_chunks_by_role(view.chunks()));
            let roles: Vec<Role> = expected.iter().map(|(role, _)| role).collect();
            assert_eq!(found.roles().collect::<Vec<_>>(), roles, "{from}..={to}");
            for role in [Role::User, Role::Assistant, Role::System] {
                let chunks = expected.get(role);
                assert_eq!(found.count(role), chunks.len());
                assert!(found.get(role).map(place).eq(chunks.iter().copied().map(place)));
            }
            let others = expected.without_role.iter().copied();
            assert!(found.without_role().map(place).eq(others.map(place)));
        }
    }
}
