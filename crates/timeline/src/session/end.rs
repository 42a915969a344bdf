//! How far a session was acknowledged, remembered apart from its turns.

use std::{path::Path, sync::Arc};

use super::{
    blocks::Turns,
    dir::SessionDir,
    layout::{ACKNOWLEDGED, META, TURNS},
    meta::SessionMeta,
    sealed,
};
use crate::{
    Error, Result,
    log::{self, Files, FoundMark, HighWater, LogMark, LostEnd},
};

/// What is remembered of a session. Read before the turns: a writer syncs them first.
pub(super) struct SessionMark {
    mark: log::Result<Option<FoundMark>>,
    must_be_there: bool,
}

impl SessionMark {
    pub(super) fn read(files: &dyn Files, directory: &Path, meta: &SessionMeta) -> Self {
        let mark = HighWater::read(files, directory.join(ACKNOWLEDGED));
        Self { mark, must_be_there: meta.has_mark }
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
        LostEnd::find((&log, &path), "turn", &self.mark, self.must_be_there, turns.last, check)
    }
}

/// The mark of a turn whose line has this checksum.
pub(super) fn mark(turn: u64, crc: Option<&str>) -> LogMark {
    let check = crc.and_then(|crc| u32::from_str_radix(crc, 16).ok());
    LogMark { last: turn, check }
}

impl SessionDir {
    /// Remembers that the turns up to this one are durable, before anybody is told. A session of a
    /// program that remembered nothing gets its mark here.
    pub(super) fn remember(&mut self, turn: u64) -> Result<()> {
        let mark = mark(turn, self.shelf.crc(turn).as_deref());
        let remembered = match &self.mark {
            Some(high_water) => high_water.raise(mark).map_err(Error::from),
            None => self.begin_mark(mark),
        };
        if remembered.is_err()
            && let Some(writer) = &mut self.writer
        {
            writer.poison();
        }
        remembered
    }

    fn begin_mark(&mut self, mark: LogMark) -> Result<()> {
        let path = self.directory.join(ACKNOWLEDGED);
        let high_water = HighWater::create(&*self.files, path, mark)?;
        self.meta.has_mark = true;
        sealed::write(&*self.files, &self.directory.join(META), &self.meta.to_json())?;
        self.mark = Some(Arc::new(high_water));
        Ok(())
    }
}
