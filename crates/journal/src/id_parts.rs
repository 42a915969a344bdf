//! The ids of a session's events where its store keeps them, so that a writer that opens the session
//! need not read all events for them; `docs/FORMAT.md` describes the bytes.
//!
//! They are derived, and the log is the authority: a part that is damaged, of another log, or of one
//! that lost its end is taken for one that is not there, and is written anew.

use std::{borrow::Cow, fmt::Write, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    known::{IdHash, KnownIds},
    request::Mark,
    sealed,
};
use crate::{Error, Result};

const KIND: &str = "afterimage journal ids";
const VERSION: u64 = 1;

/// How many ids a part holds; the last one may hold fewer.
const PART: usize = if cfg!(test) { 4 } else { 2_048 };

/// How many events are rather read than found in parts.
pub(super) const FEW: u64 = if cfg!(test) { 3 } else { 512 };

/// The ids of a session's events from the first one on, cut into parts.
#[derive(Clone, Debug)]
pub(super) struct IdParts {
    life: Arc<str>,
    /// The number of the part that is open.
    part: u64,
    open: Vec<IdHash>,
    /// The newest event whose id is in a part.
    mark: Option<Mark>,
    /// What the ids before the open part come to: each part names those before it.
    chain: IdHash,
    /// How many ids the store has.
    stored: u64,
    /// Parts that were filled, and are not stored.
    filled: Vec<Part>,
    /// Whether an event is missing, so that no more can be kept.
    is_broken: bool,
}

/// The first line of a part.
#[derive(Serialize, Deserialize)]
struct Line<'l> {
    kind: Cow<'l, str>,
    version: u64,
    #[serde(flatten)]
    mark: Mark,
    #[serde(with = "sealed::shared")]
    life: Arc<str>,
    chain: String,
}

/// A part as a store keeps it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) bytes: Arc<[u8]>,
}

impl IdParts {
    pub(super) fn new(life: &Arc<str>) -> Self {
        Self {
            life: Arc::clone(life),
            part: 0,
            open: Vec::new(),
            mark: None,
            chain: IdHash::of_bytes(&[]),
            stored: 0,
            filled: Vec::new(),
            is_broken: false,
        }
    }

    /// The number of the part that is to be read next.
    pub(super) fn next(&self) -> u64 {
        self.part
    }

    /// The newest event whose id is known.
    pub(super) fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    fn count(&self) -> u64 {
        self.part * PART as u64 + self.open.len() as u64
    }

    /// Takes the part that is next, of a log whose newest event is the one at `last`; whether another
    /// one may follow.
    pub(super) fn take(&mut self, bytes: &[u8], last: u64, known: &mut KnownIds) -> bool {
        let Ok((mark, ids)) = self.read(bytes) else { return false };
        if mark.sequence > last {
            return false;
        }
        for (sequence, id) in (self.count() + 1..).zip(&ids) {
            known.insert(*id, sequence);
        }
        self.open = ids;
        self.mark = Some(mark);
        self.stored = self.count();
        let is_whole = self.open.len() >= PART;
        if is_whole {
            self.close();
        }
        is_whole
    }

    fn read(&self, bytes: &[u8]) -> Result<(Mark, Vec<IdHash>)> {
        let refused = || Error::expected("ids of the session", "something else");
        let end = memchr::memchr(b'\n', bytes).ok_or_else(refused)?;
        let (line, rest) = bytes.split_at(end);
        let (hashes, odd) = rest.get(1..).unwrap_or_default().as_chunks();
        let line: Line<'_> = sealed::open_as(line, KIND, VERSION).ok_or_else(refused)?;
        let ids: Vec<IdHash> = hashes.iter().copied().map(IdHash).collect();
        let is_ours = line.life == self.life && line.chain == hex(self.chained(&ids));
        let mark = line.mark;
        let count = self.part * PART as u64 + ids.len() as u64;
        let is_sound = odd.is_empty() && !ids.is_empty() && ids.len() <= PART;
        if is_ours && is_sound && mark.sequence == count { Ok((mark, ids)) } else { Err(refused()) }
    }

    /// What the ids before the open part and those in it come to.
    fn chained(&self, ids: &[IdHash]) -> IdHash {
        let all: Vec<u8> = std::iter::once(&self.chain).chain(ids).flat_map(|id| id.0).collect();
        IdHash::of_bytes(&all)
    }

    fn close(&mut self) {
        self.chain = self.chained(&self.open);
        self.open.clear();
        self.part += 1;
    }

    /// Adds the id of the event that comes next.
    pub(super) fn push(&mut self, mark: &Mark) -> Result<()> {
        self.is_broken |= mark.sequence != self.count() + 1;
        if self.is_broken {
            return Ok(());
        }
        self.open.push(IdHash::of(&mark.id));
        self.mark = Some(mark.clone());
        if self.open.len() >= PART {
            self.fill()?;
            self.close();
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let Some(mark) = &self.mark else { return Ok(()) };
        let mut bytes = sealed::seal(&Line {
            kind: KIND.into(),
            version: VERSION,
            mark: mark.clone(),
            life: Arc::clone(&self.life),
            chain: hex(self.chained(&self.open)),
        })?;
        bytes.push(b'\n');
        bytes.extend(self.open.iter().flat_map(|id| id.0));
        self.filled.push(Part { number: self.part, bytes: bytes.into() });
        Ok(())
    }

    /// The parts that are worth being stored now, in the order in which they are to be.
    pub(super) fn into_unstored(mut self) -> Result<Vec<Part>> {
        if self.count().saturating_sub(self.stored) < FEW {
            return Ok(Vec::new());
        }
        if !self.open.is_empty() {
            self.fill()?;
        }
        Ok(self.filled)
    }
}

fn hex(hash: IdHash) -> String {
    hash.0.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventId;

    fn mark(n: u64) -> Mark {
        Mark { sequence: n, position: 10 * n, id: EventId::new(format!("id {n}")).unwrap() }
    }

    fn life() -> Arc<str> {
        "life".into()
    }

    /// The parts of a log with so many events.
    fn parts(count: u64) -> Vec<Part> {
        let mut parts = IdParts::new(&life());
        (1..=count).for_each(|n| parts.push(&mark(n)).unwrap());
        parts.into_unstored().unwrap()
    }

    /// How many ids are known of a log with so many events, from these parts.
    fn known(parts: &[Part], last: u64) -> u64 {
        let (mut read, mut known) = (IdParts::new(&life()), KnownIds::new(usize::MAX));
        while let Some(part) = parts.get(usize::try_from(read.next()).unwrap())
            && read.take(&part.bytes, last, &mut known)
        {}
        let count = read.count();
        for n in 1..=last {
            let expected = Some(n).filter(|n| *n <= count);
            assert_eq!(known.find(&mark(n).id, last), expected);
        }
        assert_eq!(read.mark().map_or(0, |mark| mark.sequence), count);
        count
    }

    #[test]
    fn ids_come_back_from_their_parts() {
        for count in FEW..20 {
            let parts = parts(count);
            assert_eq!(parts.len(), usize::try_from(count).unwrap().div_ceil(PART));
            assert_eq!(known(&parts, count), count);
            assert_eq!(known(&parts, count + 5), count);
        }
        assert!(parts(FEW - 1).is_empty());
    }

    #[test]
    fn parts_of_a_log_that_lost_its_end_are_known_up_to_there() {
        let parts = parts(11);
        assert_eq!(
            (known(&parts, 10), known(&parts, 8), known(&parts, 7), known(&parts, 3)),
            (8, 8, 4, 0)
        );
    }

    #[test]
    fn no_cut_and_no_flipped_bit_of_a_part_gets_by() {
        let sound = parts(7);
        for at in 0..sound[1].bytes.len() {
            let mut flipped = sound.clone();
            let mut bytes = sound[1].bytes.to_vec();
            flipped[1].bytes = bytes[..at].into();
            assert_eq!(known(&flipped, 7), 4, "{at}");
            bytes[at] ^= 1;
            flipped[1].bytes = bytes.into();
            assert_eq!(known(&flipped, 7), 4, "{at}");
        }
        // A part that comes after others is not taken.
        assert_eq!(known(&[parts(11)[0].clone(), parts(11)[2].clone()], 11), 4);
    }

    #[test]
    fn nothing_is_kept_beyond_an_event_that_is_missing() {
        let mut parts = IdParts::new(&life());
        (1..=5).chain(7..=20).for_each(|n| parts.push(&mark(n)).unwrap());
        assert_eq!(known(&parts.into_unstored().unwrap(), 20), 5);
    }
}
