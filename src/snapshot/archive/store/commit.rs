//! What is known of a stored segment without reading it.

use super::{
    super::{directory::Totals, state::CountedBy},
    bytes::{Bytes, Put, damaged},
};
use crate::{Result, id::FrameSeq, log::Position};

/// The bytes of a segment's entry.
pub(super) const ENTRY_BYTES: u64 = 104;

/// Where the records of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Places {
    pub(in super::super) text: Position,
    pub(in super::super) tables: Position,
}

/// A record of `segments.rec`: these segments are there once it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) counted_by: CountedBy,
    pub(super) segments: Vec<CommitRecord>,
}

/// A segment that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitRecord {
    pub(super) number: u32,
    pub(super) first: FrameSeq,
    pub(super) last: FrameSeq,
    /// What all segments before hold.
    pub(super) before: Totals,
    pub(super) own: Totals,
    pub(super) places: Places,
}

impl Commit {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(32 + self.segments.len() * ENTRY_BYTES as usize);
        let (kind, name) = match &self.counted_by {
            CountedBy::Nothing => (0, ""),
            CountedBy::Declared => (1, ""),
            CountedBy::Tokenizer(name) => (2, &**name),
        };
        out.push(kind);
        out.put_sized(name.as_bytes())?;
        self.segments.iter().for_each(|segment| segment.put(&mut out));
        Ok(out)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes(bytes);
        let kind = bytes.u8()?;
        let name = std::str::from_utf8(bytes.sized()?).map_err(|error| damaged("UTF-8", error))?;
        let counted_by = match (kind, name) {
            (0, "") => CountedBy::Nothing,
            (1, "") => CountedBy::Declared,
            (2, name) => CountedBy::Tokenizer(name.into()),
            (kind, _) => return Err(damaged("what counted the tokens (0, 1 or 2)", kind)),
        };
        let mut segments = Vec::new();
        while bytes.end().is_err() {
            segments.push(CommitRecord::take(&mut bytes)?);
        }
        Ok(Self { counted_by, segments })
    }
}

impl CommitRecord {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(self.number.into());
        out.put_u64(self.first.get());
        out.put_u64(self.last.get());
        for Totals { frames, chunks, bytes, tokens } in [self.before, self.own] {
            [frames, chunks, bytes, tokens].into_iter().for_each(|count| out.put_u64(count));
        }
        out.put_u64(self.places.text.offset());
        out.put_u64(self.places.tables.offset());
    }

    fn take(bytes: &mut Bytes<'_>) -> Result<Self> {
        let number = bytes.u64()?;
        let (first, last) = (FrameSeq::new(bytes.u64()?), FrameSeq::new(bytes.u64()?));
        let mut totals = || {
            let (frames, chunks) = (bytes.u64()?, bytes.u64()?);
            Ok::<_, crate::Error>(Totals {
                frames,
                chunks,
                bytes: bytes.u64()?,
                tokens: bytes.u64()?,
            })
        };
        let (before, own) = (totals()?, totals()?);
        let (text, tables) = (Position::new(bytes.u64()?), Position::new(bytes.u64()?));
        let number = u32::try_from(number).ok().filter(|number| *number < MOST_SEGMENTS);
        let number = number.ok_or_else(|| damaged("the number of a segment", "a larger one"))?;
        if first > last || own.frames == 0 || before.checked_add(own).is_none() {
            return Err(damaged("the sums of a segment", "others"));
        }
        Ok(Self { number, first, last, before, own, places: Places { text, tables } })
    }
}

/// No archive has more segments.
const MOST_SEGMENTS: u32 = 1 << 31;
