//! Which snapshots are kept, and how.

use std::{path::PathBuf, sync::Arc};

use super::{
    dir::SessionDir,
    layout::{INDEXES, SCENES, STATE, TURNS, ends_in},
    sealed,
};
use crate::{Error, Result, RetentionPlan, SnapshotReason, StateSnapshot};

/// A target: how many deltas it has, and the first and the last turn of those.
pub type TargetSum = (String, u64, (u64, u64));

/// What pruning does, or did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Which snapshots stay, go, and are written anew.
    pub plan: RetentionPlan,
    /// Files that nothing needs: what writes left that were broken off, and snapshots that are
    /// ahead of the log.
    pub leftovers: Vec<PathBuf>,
}

impl SessionDir {
    /// Writes the last snapshot of the timeline. That it did not work is a note: snapshots are
    /// caches.
    pub(super) fn keep_snapshot(&mut self) {
        let Some(snapshot) = self.timeline.snapshots().last().cloned() else { return };
        if let Err(error) = self.shelf.write(&snapshot) {
            self.note(format!("the snapshot of turn {} is not kept: {error}", snapshot.turn_id));
        }
        self.apply_retention();
    }

    /// Lets the snapshots go that the policy does not keep, compresses those that are old by now,
    /// and writes what is derived. What did not work is a note, and so is a limit that cannot hold.
    pub(super) fn apply_retention(&mut self) {
        let plan = self.retention();
        plan.over.iter().for_each(|over| self.note(over.clone()));
        if let Err(error) = self.carry_out(&plan).and_then(|()| self.compress_old()) {
            self.note(format!("snapshots that are to go or to be compressed stay: {error}"));
        }
        self.write_derived();
    }

    fn retention(&self) -> RetentionPlan {
        let policy = &self.timeline.config().policy;
        RetentionPlan::of(&self.shelf.infos(), self.timeline.last_turn(), policy)
    }

    /// Writes snapshots anew that are based on one that goes, and removes those that go.
    fn carry_out(&mut self, plan: &RetentionPlan) -> Result<()> {
        for turn in &plan.rewrite {
            let snapshot = self.shelf.load(*turn)?;
            self.shelf.write(&snapshot)?;
        }
        for turn in plan.remove.iter().rev() {
            self.shelf.remove(*turn)?;
        }
        self.timeline.retain_snapshots(|turn| !plan.remove.contains(&turn));
        Ok(())
    }

    /// Keeps snapshots that are older than the configuration says as what differs from the one
    /// before.
    fn compress_old(&mut self) -> Result<()> {
        let config = self.timeline.config();
        let (age, max_chain) = (config.compress_snapshots_older_than, config.max_chain);
        let old = self.timeline.last_turn().checked_sub(age);
        let entries = self.shelf.entries();
        let is_open = |turn: &u64| old.is_some_and(|old| *turn < old);
        for (turn, _) in
            entries.iter().filter(|(turn, entry)| is_open(turn) && entry.base.is_none())
        {
            self.shelf.compress(*turn, max_chain)?;
        }
        Ok(())
    }

    /// What pruning would do. Nothing happens. O(snapshots), and lists the folders of the session where
    /// the configuration lets go what is left over.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn prune_plan(&self) -> Result<PruneReport> {
        let plan = self.retention();
        let mut leftovers = Vec::new();
        if self.timeline.config().prune_orphaned_deltas {
            leftovers = self.shelf.leftovers()?;
            for folder in [TURNS, INDEXES, STATE, SCENES] {
                let folder = self.directory.join(folder);
                let names = sealed::names(&*self.files, &folder)?;
                let is_left = |name: &&String| ends_in(name, "tmp");
                leftovers.extend(names.iter().filter(is_left).map(|name| folder.join(name)));
            }
        }
        Ok(PruneReport { plan, leftovers })
    }

    /// Removes the snapshots that the policy lets go, as each new snapshot does, and what is left
    /// over. A snapshot that is based on one that goes is written anew before. Turns stay, whatever
    /// their age: they are the history. Costs what [`SessionDir::prune_plan`] does, writes the
    /// snapshots that are based on one that goes, and packs those that are to be packed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), and what reading a snapshot gives that is to be
    /// written anew. What was not removed by then is still there.
    pub fn prune(&mut self) -> Result<PruneReport> {
        self.writer_lock()?;
        let pruned = self.prune_plan()?;
        self.carry_out(&pruned.plan)?;
        pruned.leftovers.iter().try_for_each(|path| sealed::remove(&*self.files, path))?;
        self.compress_old()?;
        self.try_write_derived()?;
        Ok(pruned)
    }

    /// The bytes of turns, snapshots and indexes, in this order. O(files).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn stored_bytes(&self) -> Result<[u64; 3]> {
        let mut sums = [0; 3];
        for (sum, folder) in sums.iter_mut().zip([TURNS, super::layout::SNAPSHOTS, INDEXES]) {
            let folder = self.directory.join(folder);
            for name in sealed::names(&*self.files, &folder)? {
                let path = folder.join(name);
                let opened = self.files.open(&path, crate::log::OpenMode::Read);
                let length = opened.and_then(|file| file.length());
                *sum += length.map_err(|error| Error::io(error, "cannot open").in_file(&path))?;
            }
        }
        Ok(sums)
    }

    /// How many deltas there are of each target, with the first and the last turn. O(turns) for the first call.
    ///
    /// # Errors
    /// What reading the turns gives.
    pub fn targets(&mut self) -> Result<Vec<TargetSum>> {
        let sums = self.sums()?;
        let targets = sums.targets.iter();
        Ok(targets.map(|(target, sums)| (target.clone(), sums.count, sums.turn_range)).collect())
    }

    /// The snapshot of a turn as it is stored, with every check, whether it is stored whole or as
    /// what differs from others; `None` where there is none. A branch has those of the past that
    /// it shares. Reads it and those that it is based on, and hashes the state: O(its size).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) and
    /// [`ErrorKind::Base`](crate::ErrorKind::Base), with the file, where the snapshot or one that
    /// it is based on is not what was written, or not of this history;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn stored_snapshot(&self, turn: u64) -> Result<Option<StateSnapshot>> {
        self.shelf.find(turn)
    }

    /// The last sound snapshot of a turn up to `turn`, in memory or stored: see
    /// [`Timeline::nearest_snapshot`](crate::Timeline::nearest_snapshot). Costs what that does.
    ///
    /// # Errors
    /// Those of [`Timeline::nearest_snapshot`](crate::Timeline::nearest_snapshot).
    pub fn nearest_snapshot(&self, turn: u64) -> Result<Arc<StateSnapshot>> {
        self.timeline.nearest_snapshot(turn)
    }

    /// The snapshots of the directory: turn, reason, bytes, and the turn of the one that it is
    /// based on. O(snapshots).
    pub fn stored_snapshots(&self) -> Vec<(u64, SnapshotReason, u64, Option<u64>)> {
        let infos = self.shelf.infos().into_iter();
        infos.map(|info| (info.turn_id, info.reason, info.bytes, info.base)).collect()
    }
}
