//! How far a session was acknowledged, remembered apart from its turns.

use std::path::Path;

use super::{
    blocks::Turns,
    dir::SessionDir,
    layout::{ACKNOWLEDGED, TURNS},
};
use crate::{
    Error, Result,
    log::{self, Files, FoundMark, HighWater, LogMark, LostEnd},
};

/// What is remembered of a session. Read before the turns: a writer syncs them first.
pub(super) struct SessionMark {
    mark: log::Result<Option<FoundMark>>,
}

impl SessionMark {
    pub(super) fn read(files: &dyn Files, directory: &Path) -> Self {
        Self { mark: HighWater::read(files, directory.join(ACKNOWLEDGED)) }
    }

    /// The last turn that was acknowledged, as far as that is known.
    pub(super) fn last(&self) -> u64 {
        self.mark.as_ref().ok().copied().flatten().map_or(0, |found| found.mark.last)
    }

    /// Whether a write to the mark was broken off.
    pub(super) fn is_torn(&self) -> bool {
        matches!(&self.mark, Ok(Some(found)) if !found.is_whole)
    }

    /// What is wrong with the end of the turns from `first` on.
    pub(super) fn lost_end(&self, directory: &Path, first: u64, turns: &Turns) -> Option<LostEnd> {
        let check = |turn: u64| {
            // Where lines are missing before it, it is another one.
            let index = turn.checked_sub(first).filter(|_| turns.problems.is_empty())?;
            u32::from_str_radix(turns.crcs.get(usize::try_from(index).ok()?)?, 16).ok()
        };
        let (log, path) = (directory.join(TURNS), directory.join(ACKNOWLEDGED));
        LostEnd::find((&log, &path), "turn", &self.mark, true, turns.last, check)
    }
}

/// The mark of a turn whose line has this checksum.
pub(super) fn mark(turn: u64, crc: Option<&str>) -> LogMark {
    let check = crc.and_then(|crc| u32::from_str_radix(crc, 16).ok());
    LogMark { last: turn, check }
}

impl SessionDir {
    /// Remembers that the turns up to this one are durable, before anybody is told.
    pub(super) fn remember(&mut self, turn: u64) -> Result<()> {
        let mark = mark(turn, self.shelf.crc(turn).as_deref());
        // There is none for reading alone.
        let Some(high_water) = &self.mark else { return Ok(()) };
        let remembered = high_water.raise(mark).map_err(Error::from);
        if remembered.is_err()
            && let Some(writer) = &mut self.writer
        {
            writer.poison();
        }
        remembered
    }
}
