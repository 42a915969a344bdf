use std::collections::BTreeSet;

use super::{SnapshotPolicy, SnapshotReason};

/// What a decision about a snapshot needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its turn.
    pub turn_id: u64,
    /// Why it was made.
    pub reason: SnapshotReason,
    /// How many bytes it takes.
    pub bytes: u64,
    /// The turn of the snapshot that it is based on.
    pub base: Option<u64>,
}

/// What pruning will do. Nothing has happened yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPlan {
    /// The turns whose snapshots stay.
    pub keep: Vec<u64>,
    /// The turns whose snapshots go.
    pub remove: Vec<u64>,
    /// Those of `keep` that are based on one that goes, and are written anew before.
    pub rewrite: Vec<u64>,
    /// What a limit would have, and cannot get: in sentences.
    pub over: Vec<String>,
}

impl RetentionPlan {
    /// Decides which of these snapshots stay, after the turn `current`. They come in the order of
    /// their turns.
    ///
    /// The first snapshot stays whatever the policy says: everything is replayed from it. So does
    /// the newest, which what comes next is replayed from. Where a limit is exceeded the oldest of
    /// the others go, the recent ones last. Runs in O(n log n) time.
    pub fn of(snapshots: &[SnapshotInfo], current: u64, policy: &SnapshotPolicy) -> Self {
        let newest = snapshots.len().saturating_sub(1);
        let recent =
            snapshots.len().saturating_sub(usize::try_from(policy.recent).unwrap_or(usize::MAX));
        let stays = |(index, snapshot): (usize, &SnapshotInfo)| {
            index == 0 || index == newest || policy.always.contains(&snapshot.reason)
        };
        let is_thinned = |(index, snapshot): (usize, &SnapshotInfo)| {
            index < recent
                && current.saturating_sub(snapshot.turn_id) > policy.thin_after_turns
                && (policy.thin_keep_every == 0
                    || !snapshot.turn_id.is_multiple_of(policy.thin_keep_every))
        };
        let mut removed = BTreeSet::new();
        let mut free: Vec<&SnapshotInfo> = Vec::new();
        for (index, snapshot) in snapshots.iter().enumerate() {
            if stays((index, snapshot)) {
                continue;
            }
            if is_thinned((index, snapshot)) {
                removed.insert(snapshot.turn_id);
            } else {
                free.push(snapshot);
            }
        }
        let kept = |removed: &BTreeSet<u64>| {
            let kept = snapshots.iter().filter(|snapshot| !removed.contains(&snapshot.turn_id));
            kept.fold((0, 0), |(count, bytes), snapshot| (count + 1_u64, bytes + snapshot.bytes))
        };
        let mut free = free.into_iter();
        let (mut count, mut bytes) = kept(&removed);
        while count > policy.max_snapshots || bytes > policy.max_total_size {
            let Some(oldest) = free.next() else { break };
            removed.insert(oldest.turn_id);
            (count, bytes) = (count - 1, bytes - oldest.bytes);
        }
        let over = over(snapshots, (count, bytes), policy);
        let is_removed = |turn: &u64| removed.contains(turn);
        let turns = || snapshots.iter().map(|snapshot| snapshot.turn_id);
        let loses_base = |snapshot: &&SnapshotInfo| {
            !is_removed(&snapshot.turn_id) && snapshot.base.as_ref().is_some_and(is_removed)
        };
        Self {
            keep: turns().filter(|turn| !is_removed(turn)).collect(),
            rewrite: snapshots.iter().filter(loses_base).map(|snapshot| snapshot.turn_id).collect(),
            remove: removed.into_iter().collect(),
            over,
        }
    }
}

fn over(snapshots: &[SnapshotInfo], kept: (u64, u64), policy: &SnapshotPolicy) -> Vec<String> {
    let mut over = Vec::new();
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.bytes > policy.max_snapshot_size) {
        over.push(format!(
            "the snapshot of turn {} has {} bytes; the limit is {}; it is kept",
            snapshot.turn_id, snapshot.bytes, policy.max_snapshot_size
        ));
    }
    let (count, bytes) = kept;
    if count > policy.max_snapshots {
        let limit = policy.max_snapshots;
        over.push(format!("{count} snapshots always stay; the limit is {limit}; they are kept"));
    }
    if bytes > policy.max_total_size {
        let limit = policy.max_total_size;
        over.push(format!(
            "the snapshots that always stay have {bytes} bytes; the limit is {limit}; they are kept"
        ));
    }
    over
}
