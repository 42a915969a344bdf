//! What is known of a stored segment without reading it.

use super::{
    super::{directory::Totals, state::CountedBy},
    bytes::{Bytes, Put, damaged},
};
use crate::{Result, id::FrameSeq, log::Position};

/// Where the records of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Places {
    pub(super) text: Position,
    pub(super) tables: Position,
}

/// A record of `segments.rec`: the segment is there once it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) first: FrameSeq,
    pub(super) last: FrameSeq,
    /// What all segments before hold.
    pub(super) before: Totals,
    pub(super) own: Totals,
    pub(super) places: Places,
    pub(super) counted_by: CountedBy,
}

impl Commit {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(112);
        out.put_u64(self.first.get());
        out.put_u64(self.last.get());
        for Totals { frames, chunks, bytes, tokens } in [self.before, self.own] {
            [frames, chunks, bytes, tokens].into_iter().for_each(|count| out.put_u64(count));
        }
        out.put_u64(self.places.text.offset());
        out.put_u64(self.places.tables.offset());
        let (kind, name) = match &self.counted_by {
            CountedBy::Nothing => (0, ""),
            CountedBy::Declared => (1, ""),
            CountedBy::Tokenizer(name) => (2, &**name),
        };
        out.push(kind);
        out.extend(name.as_bytes());
        out
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes(bytes);
        let (first, last) = (FrameSeq::new(bytes.u64()?), FrameSeq::new(bytes.u64()?));
        let mut totals = || {
            let (frames, chunks) = (bytes.u64()?, bytes.u64()?);
            Ok(Totals { frames, chunks, bytes: bytes.u64()?, tokens: bytes.u64()? })
        };
        let (before, own) = (totals()?, totals()?);
        let (text, tables) = (Position::new(bytes.u64()?), Position::new(bytes.u64()?));
        let kind = bytes.u8()?;
        let name = std::str::from_utf8(bytes.0).map_err(|error| damaged("UTF-8", error))?;
        let counted_by = match (kind, name) {
            (0, "") => CountedBy::Nothing,
            (1, "") => CountedBy::Declared,
            (2, name) => CountedBy::Tokenizer(name.into()),
            (kind, _) => return Err(damaged("what counted the tokens (0, 1 or 2)", kind)),
        };
        let commit = Self { first, last, before, own, places: Places { text, tables }, counted_by };
        if first > last || own.frames == 0 || commit.after().is_none() {
            return Err(damaged("sums of a segment", "others"));
        }
        Ok(commit)
    }

    /// What this segment and all before hold; `None` past 64 bits.
    pub(super) fn after(&self) -> Option<Totals> {
        self.before.checked_add(self.own)
    }
}
