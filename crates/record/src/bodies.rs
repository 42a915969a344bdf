//! Reads the bodies of requests one after the other, into memory that is used again.

use std::{collections::VecDeque, mem::take};

use afterimage_log::Position;

use crate::{
    Exchange, Recording, Result,
    coding::{self, StoredBody},
    entry::{self, Entry},
};

/// The bodies that are kept for those that come after them: as many as conversations are followed.
const KEPT: usize = 16;
/// How many of them may have one that came after them: the next one comes after that.
const KEPT_BEHIND: usize = 2;
/// A chain of bodies has no more links.
const MOST_LINKS: usize = 16;
/// Room of more bytes is given back after each body.
const MOST_ROOM: usize = 16 << 20;

/// Reads the bodies of the requests of a recording. Each body is unpacked after an earlier one, so
/// the last ones are kept: read in order, each takes the reading of one record.
///
/// ```
/// # fn lengths(recording: &afterimage_record::Recording) -> afterimage_record::Result<Vec<usize>> {
/// let mut bodies = recording.bodies();
/// recording.exchanges().iter().map(|exchange| Ok(bodies.request(exchange)?.len())).collect()
/// # }
/// ```
#[derive(Debug)]
pub struct RequestBodies<'r> {
    recording: &'r Recording,
    /// The bodies that are kept, the last one that was read first.
    kept: VecDeque<KeptBody>,
    /// One that is in no record of its own.
    joined: Vec<u8>,
    /// Where the next body is unpacked.
    room: Vec<u8>,
    /// The records of a body and of those that it comes after.
    records: Vec<(Position, Vec<u8>)>,
}

#[derive(Debug)]
struct KeptBody {
    at: Position,
    bytes: Vec<u8>,
    /// Whether one came after it.
    is_behind: bool,
}

impl<'r> RequestBodies<'r> {
    pub(crate) fn of(recording: &'r Recording) -> Self {
        let (kept, joined, room, records) = Default::default();
        Self { recording, kept, joined, room, records }
    }

    /// What is stored of the body of a request of this recording; where that is not all of it,
    /// [`Body::cut`](crate::Body::cut) of [`Recording::request`] says why. O(body): reads its
    /// record, and those that it refers to and that are not kept.
    ///
    /// # Errors
    /// Those of [`Recording::request`].
    pub fn request(&mut self, exchange: &Exchange) -> Result<&[u8]> {
        match exchange.request {
            Some((position, StoredBody { is_in_parts: false, .. })) => self.unpacked(position),
            Some((position, StoredBody { stored, .. })) => {
                let (bytes, lost) = self.recording.joined(&exchange.request_parts)?;
                if lost.is_some() || bytes.len() as u64 != stored {
                    let message = "expected all parts of a request body";
                    return Err(self.recording.damaged(position, message));
                }
                self.joined = bytes;
                Ok(&self.joined)
            }
            None => {
                self.joined = self.recording.joined(&exchange.request_parts)?.0;
                Ok(&self.joined)
            }
        }
    }

    fn unpacked(&mut self, position: Position) -> Result<&[u8]> {
        let mut records = take(&mut self.records);
        let read = self.read(position, &mut records);
        self.records = records;
        read?;
        Ok(self.kept.front().map(|kept| kept.bytes.as_slice()).unwrap_or_default())
    }

    /// Unpacks a body and those that it comes after, unless they are kept. It then is the first one.
    fn read(&mut self, position: Position, records: &mut Vec<(Position, Vec<u8>)>) -> Result<()> {
        let damaged = |at, message| Err(self.recording.damaged(at, message));
        let (mut next, mut links) = (Some(position), 0);
        let mut base = None;
        while let Some(at) = next {
            base = self.kept.iter().position(|kept| kept.at == at);
            if base.is_some() {
                break;
            }
            if links > MOST_LINKS {
                return damaged(at, "expected a body that refers to an earlier one");
            }
            if records.len() == links {
                records.push((at, Vec::new()));
            }
            let Some((of, record)) = records.get_mut(links) else { break };
            *of = at;
            self.recording.file().read_into(at, record)?;
            let (_, Entry::Request(content)) = entry::of_bytes(record)? else {
                return damaged(at, "expected the record of a request body");
            };
            next = coding::describe(content)?.base;
            // A body refers to earlier ones alone.
            if next.is_some_and(|base| base >= at) {
                return damaged(at, "expected a body that refers to an earlier one");
            }
            links += 1;
        }
        if let Some(kept) = base.and_then(|base| self.kept.remove(base)) {
            self.kept.push_front(kept);
        }
        let mut has_base = base.is_some();
        for (at, record) in records.iter().take(links).rev() {
            let (_, Entry::Request(content)) = entry::of_bytes(record)? else { break };
            let base = self.kept.front_mut().filter(|_| has_base);
            let base = base.map(|base| {
                base.is_behind = true;
                base.bytes.as_slice()
            });
            coding::of_bytes(content, base, &mut self.room)?;
            has_base = true;
            let bytes = take(&mut self.room);
            self.kept.push_front(KeptBody { at: *at, bytes, is_behind: false });
            self.make_room();
        }
        Ok(())
    }

    /// Lets bodies go that are not needed, and takes their memory for the next one.
    fn make_room(&mut self) {
        let behind = self.kept.iter().filter(|kept| kept.is_behind).count();
        let oldest = if behind > KEPT_BEHIND {
            self.kept.iter().rposition(|kept| kept.is_behind)
        } else {
            (self.kept.len() > KEPT).then_some(KEPT)
        };
        if let Some(gone) = oldest.and_then(|at| self.kept.remove(at))
            && gone.bytes.capacity() <= MOST_ROOM
        {
            self.room = gone.bytes;
        }
    }
}
