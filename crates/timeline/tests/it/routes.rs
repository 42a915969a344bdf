//! Session directories come to the same states by every route: random histories, reopened, with
//! compressed snapshots, undone, and as branches.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::states;

use std::sync::Arc;

use afterimage_json::Millis;
use afterimage_log::testing::MemoryFiles;
use afterimage_timeline::{
    Data, Delta, SnapshotPolicy, TimelineConfig, TurnRecord,
    session::{Durability, SessionDir, SessionOptions},
};
use proptest::prelude::*;
use states::{choice, lived, long_history, state};

const DIR: &str = "tale";

fn options(interval: u64) -> SessionOptions {
    let config = TimelineConfig {
        snapshot_interval: interval,
        compress_snapshots_older_than: 3,
        max_chain: 3,
        policy: SnapshotPolicy { max_snapshots: 1_000, ..SnapshotPolicy::default() },
        ..TimelineConfig::default()
    };
    SessionOptions::new("tale").config(config).durability(Durability::Batch(50))
}

fn write(files: &MemoryFiles, before: &Data, deltas: &[Delta], interval: u64) {
    let files = Arc::new(files.clone());
    let mut session = SessionDir::create(files, DIR, options(interval), before.clone()).unwrap();
    for delta in deltas {
        session.push(TurnRecord::new("a").with_deltas([delta.clone()])).unwrap();
    }
    assert_eq!(session.close().unwrap(), [""; 0]);
}

fn open(files: &MemoryFiles) -> SessionDir {
    SessionDir::open(Arc::new(files.clone()), DIR, SessionOptions::new("tale")).unwrap()
}

/// Asserts that a session has these states, each read from the directory.
#[track_caller]
fn check(session: &SessionDir, states: &[Data], what: &str) {
    for (turn, state) in states.iter().enumerate() {
        let found = session.timeline().state_at(turn as u64).unwrap();
        assert_eq!(&found, state, "{what}, turn {turn}");
    }
}

#[track_caller]
fn verify(files: &MemoryFiles, directory: &str) {
    let files = Arc::new(files.clone());
    let found = SessionDir::verify(files, directory, &SessionOptions::default()).unwrap();
    assert!(found.valid, "{found:?}");
}

#[test]
fn reopened_it_is_the_same_at_each_snapshot_interval_from_1_to_100() {
    let (before, deltas, states) = long_history();
    for interval in 1..=100 {
        let files = MemoryFiles::new();
        write(&files, &before, &deltas, interval);
        let session = open(&files);
        let kept = session.stored_snapshots();
        assert_eq!(kept.len(), 1 + deltas.len() / usize::try_from(interval).unwrap());
        // Every third turn, and every ninth where reading snapshots is most of it.
        let (last, step) = (states.len() - 1, if interval > 20 { 3 } else { 9 });
        for turn in (0..=last).step_by(step).chain([last]) {
            let found = session.timeline().state_at(turn as u64).unwrap();
            assert_eq!(found, states[turn], "interval {interval}, turn {turn}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(24), ..ProptestConfig::default() })]

    #[test]
    fn same_state_reopened(
        before in state(),
        choices in prop::collection::vec(choice(), 1..70),
        interval in 1..12_u64,
        at in any::<prop::sample::Index>(),
    ) {
        let (deltas, states) = lived(&before, &choices);
        let files = MemoryFiles::new();
        write(&files, &before, &deltas, interval);
        verify(&files, DIR);
        let mut session = open(&files);
        check(&session, &states, "reopened");
        let to = at.index(states.len());
        // A branch, which goes the same way; reopened, too.
        let mut branch = session.branch(to as u64, "side", &SessionOptions::new("side")).unwrap();
        for delta in deltas.iter().skip(to) {
            branch.push(TurnRecord::new("b").with_deltas([delta.clone()])).unwrap();
        }
        branch.close().unwrap();
        let of_branch = SessionDir::open(Arc::new(files.clone()), "side", SessionOptions::new("side"));
        check(&of_branch.unwrap(), &states, "branch");
        verify(&files, "side");
        // Undone and redone, with the directory closed in between.
        session.undo(to as u64, Millis::default()).unwrap();
        session.close().unwrap();
        let mut session = open(&files);
        prop_assert_eq!(session.timeline().state(), &states[to]);
        session.redo(Millis::default()).unwrap();
        session.close().unwrap();
        let session = open(&files);
        prop_assert_eq!(session.timeline().state(), states.last().unwrap());
        check(&session, &states, "after redo");
        drop(session);
        verify(&files, DIR);
    }
}
