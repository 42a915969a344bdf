//! The table of a transcript's frames: what is known of each without reading it.

use crate::{id::FrameSeq, log::Position};

/// The bytes of a batch and of a row.
const BATCH: usize = 20;
const ROW: usize = 17;

const HAS_TAIL: u8 = 4;

/// Whether a frame came with a snapshot of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotPlace {
    No,
    /// The snapshot that is archived.
    Archived,
    /// One that is kept with the frame, and archived with other counts.
    Apart,
}

/// What is known of an archived frame without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The index of its session in the transcript.
    pub session: u32,
    /// The sequence of the frame.
    pub sequence: FrameSeq,
    /// The index of its message in the session; `None` where it shows nothing.
    pub message: Option<u32>,
    pub(super) captured: SnapshotPlace,
    /// Whether ambient facets hold after it.
    pub has_tail: bool,
}

/// Frames that are packed together in one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) position: Position,
    /// The bytes of its lines.
    pub(super) bytes: u64,
    pub(super) frames: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrameTable {
    pub(super) batches: Vec<Batch>,
    pub(super) rows: Vec<FrameRow>,
}

impl FrameTable {
    /// The most bytes that the table of so many frames has: a batch holds at least one.
    pub(super) fn most_bytes(frames: u64) -> u64 {
        frames.saturating_mul((BATCH + ROW) as u64).saturating_add(4)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.batches.len() * BATCH + self.rows.len() * ROW);
        out.extend((self.batches.len() as u32).to_le_bytes());
        for Batch { position, bytes, frames } in &self.batches {
            out.extend(position.offset().to_le_bytes());
            out.extend(bytes.to_le_bytes());
            out.extend(frames.to_le_bytes());
        }
        for row in &self.rows {
            out.extend(row.session.to_le_bytes());
            out.extend(row.sequence.get().to_le_bytes());
            out.extend(row.message.map_or(0, |message| message + 1).to_le_bytes());
            let captured = match row.captured {
                SnapshotPlace::No => 0,
                SnapshotPlace::Archived => 1,
                SnapshotPlace::Apart => 2,
            };
            out.push(captured | if row.has_tail { HAS_TAIL } else { 0 });
        }
        out
    }

    /// The table in these bytes; `None` where there is none, or its batches do not hold its frames.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let (batches, rows) = rest.split_at_checked(count.checked_mul(BATCH)?)?;
        if rows.len() % ROW != 0 {
            return None;
        }
        let batches: Vec<_> = batches.chunks_exact(BATCH).map(batch).collect::<Option<_>>()?;
        let rows: Vec<_> = rows.chunks_exact(ROW).map(row).collect::<Option<_>>()?;
        let frames: u64 = batches.iter().map(|batch| u64::from(batch.frames)).sum();
        (frames == rows.len() as u64).then_some(Self { batches, rows })
    }
}

fn batch(bytes: &[u8]) -> Option<Batch> {
    let (position, bytes) = bytes.split_first_chunk()?;
    let (length, frames) = bytes.split_first_chunk()?;
    Some(Batch {
        position: Position::new(u64::from_le_bytes(*position)),
        bytes: u64::from_le_bytes(*length),
        frames: u32::from_le_bytes(frames.try_into().ok()?),
    })
}

fn row(bytes: &[u8]) -> Option<FrameRow> {
    let (session, bytes) = bytes.split_first_chunk()?;
    let (sequence, bytes) = bytes.split_first_chunk()?;
    let (message, flags) = bytes.split_first_chunk()?;
    let [flags] = flags else { return None };
    Some(FrameRow {
        session: u32::from_le_bytes(*session),
        sequence: FrameSeq::new(u64::from_le_bytes(*sequence)),
        message: u32::from_le_bytes(*message).checked_sub(1),
        captured: match flags & !HAS_TAIL {
            0 => SnapshotPlace::No,
            1 => SnapshotPlace::Archived,
            2 => SnapshotPlace::Apart,
            _ => return None,
        },
        has_tail: flags & HAS_TAIL != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FrameTable {
        let row = |session, sequence, message, captured, has_tail| FrameRow {
            session,
            sequence: FrameSeq::new(sequence),
            message,
            captured,
            has_tail,
        };
        let batch = |at, frames| Batch { position: Position::new(at), bytes: 1 << 40, frames };
        FrameTable {
            batches: vec![batch(32, 1), batch(999, 2)],
            rows: vec![
                row(0, 0, None, SnapshotPlace::No, true),
                row(1, u64::MAX, Some(0), SnapshotPlace::Archived, false),
                row(0, 7, Some(3), SnapshotPlace::Apart, true),
            ],
        }
    }

    #[test]
    fn a_table_comes_back_and_no_part_of_one_is_taken_for_one() {
        let bytes = table().to_bytes();
        assert!(bytes.len() as u64 <= FrameTable::most_bytes(3));
        assert_eq!(FrameTable::from_bytes(&bytes), Some(table()));
        for end in 0..bytes.len() {
            assert_eq!(FrameTable::from_bytes(&bytes[..end]), None, "{end}");
        }
        let empty = FrameTable::default();
        assert_eq!(FrameTable::from_bytes(&empty.to_bytes()), Some(empty));
    }

    #[test]
    fn flags_that_mean_nothing_are_refused() {
        let mut bytes = table().to_bytes();
        for flags in [3, 8, 0xff] {
            *bytes.last_mut().unwrap() = flags;
            assert_eq!(FrameTable::from_bytes(&bytes), None);
        }
    }
}
