//! States that drifted, made anew from the turns.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{dir::SessionDir, layout::MOST_DOCUMENT, sealed};
use crate::{
    Data, Difference, Error, ErrorKind, Millis, Result, SnapshotReason, SnapshotSource,
    StateSnapshot, Verification,
    log::{Files, read_file, write_atomic},
};

/// What a recovery found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Where a state that was kept was not what the turns come to, with the turn.
    pub differences: Vec<(u64, Difference)>,
    /// The turn of the recovery snapshot.
    pub turn_id: u64,
    /// Copies of the snapshots that were replaced.
    pub kept: Vec<PathBuf>,
}

impl SessionDir {
    /// Rebuilds the state from the state that the directory begins with and every turn, puts it in
    /// the place of the one that is there, and makes a snapshot of it (its reason is `manual`).
    /// Snapshots that differ from what the turns come to are written anew, with a copy kept beside.
    /// Those that cannot be read are left to [`repair`](super::repair). Applies all
    /// turns again.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use afterimage_timeline::{Millis, log::testing::MemoryFiles, Data};
    /// use afterimage_timeline::session::{SessionDir, SessionOptions};
    ///
    /// # let files = Arc::new(MemoryFiles::new());
    /// let mut session = SessionDir::create(files, "tale", SessionOptions::new("tale"), Data::object())?;
    /// assert!(session.recover(Millis::new(0))?.differences.is_empty());
    /// # Ok::<(), afterimage_timeline::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] where the session was opened for reading, [`ErrorKind::Damaged`] where
    /// nothing is left to begin with, what reading a turn gives, [`ErrorKind::Io`].
    pub fn recover(&mut self, now: Millis) -> Result<RecoveryReport> {
        self.writer_lock()?;
        self.sync()?;
        let Some(base) = self.shelf.nearest(self.first - 1)? else {
            let message = "the state that the turns begin with is lost";
            return Err(Error::new(ErrorKind::Damaged, message).in_file(&self.directory));
        };
        let last = self.timeline.last_turn();
        let mut done = RecoveryReport { turn_id: last, ..RecoveryReport::default() };
        let (anew, state) = self.rebuilt(&base, &mut done)?;
        let of_head = Verification::of(last, &state, self.timeline.state()).differences;
        if !done.differences.iter().any(|(turn, _)| *turn == last) {
            done.differences.extend(of_head.into_iter().map(|found| (last, found)));
        }
        // The later ones first: until then they are based on what is replaced.
        for (snapshot, differs) in anew.iter().rev() {
            if *differs && let Some(path) = self.shelf.path(snapshot.turn_id) {
                let bytes = read_file(&*self.files, &path, MOST_DOCUMENT)?;
                done.kept.push(keep(&*self.files, &path, &bytes)?);
            }
            self.shelf.write(snapshot)?;
        }
        self.timeline.restart(base, state)?;
        self.snapshot(SnapshotReason::Manual, now)?;
        Ok(done)
    }

    /// Replays every turn; the snapshots to be written anew, with whether their states differ, and
    /// the state after the last turn.
    fn rebuilt(
        &self,
        base: &StateSnapshot,
        done: &mut RecoveryReport,
    ) -> Result<(Vec<(StateSnapshot, bool)>, Data)> {
        let (mut at, mut state) = (base.turn_id, base.state.clone());
        let (mut anew, mut turns) = (Vec::new(), BTreeSet::new());
        let last = self.timeline.last_turn();
        for (turn, entry) in
            self.shelf.entries().range(at + 1..).take_while(|(turn, _)| **turn <= last)
        {
            state = self.timeline.replayed(at, state, *turn)?;
            at = *turn;
            let Ok(snapshot) = self.shelf.load(at) else { continue };
            let found = Verification::of(at, &state, &snapshot.state).differences;
            let is_based_on_one = entry.base.is_some_and(|base| turns.contains(&base));
            if found.is_empty() && !is_based_on_one {
                continue;
            }
            turns.insert(at);
            anew.push((StateSnapshot { state: state.clone(), ..snapshot }, !found.is_empty()));
            done.differences.extend(found.into_iter().map(|found| (at, found)));
        }
        Ok((anew, self.timeline.replayed(at, state, last)?))
    }
}

/// Keeps bytes beside the file that they are from, under a name that is free.
pub(super) fn keep(files: &dyn Files, path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let mut number = 1;
    let name = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        let name = PathBuf::from(name);
        if sealed::read_if_there(files, &name)?.is_none() {
            break name;
        }
        number += 1;
    };
    write_atomic(files, &name, bytes)?;
    Ok(name)
}
