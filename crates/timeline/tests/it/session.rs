//! Session directories: what is written, what is read again, what else can be done.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "names that are written here")]

use crate::support::tale;
use crate::support::world;

use std::{ops::RangeInclusive, path::Path, sync::Arc};

use afterimage_json as json;
use afterimage_json::Millis;
use afterimage_log::{DiskFiles, Files, testing::MemoryFiles};
use afterimage_timeline::{
    Applier, ErrorKind, TimelineConfig, TurnRecord,
    session::{Durability, SessionDir, SessionOptions, SharedSession},
};
use tale::{DIR, create, data, names, open, options, session, turn, verify, zone};

#[test]
fn the_layout_is_that_of_the_document() {
    let files = session(120);
    let names = names(&files);
    for name in [
        "tale/session.meta.json",
        "tale/state/current.json",
        "tale/state/verified.json",
        "tale/turns/turns-0001-0050.jsonl.zst",
        "tale/turns/turns-0051-0100.jsonl.zst",
        "tale/turns/turns-0101-0150.jsonl",
        "tale/snapshots/snapshot-0000.json.zst",
        "tale/snapshots/snapshot-0119.json.zst",
        "tale/indexes/turn-index.json",
        "tale/indexes/delta-index.json",
        "tale/indexes/snapshot-index.json",
        "tale/scenes/scene-001.json",
        "tale/scenes/scene-013.json",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
    assert!(!names.iter().any(|name| name.ends_with(".tmp") || name.ends_with("0050.jsonl")));
    let index = json::read(&files.bytes("tale/indexes/delta-index.json").unwrap()).unwrap();
    assert_eq!(index.get("totalDeltas").unwrap().as_u64(), Some(120));
    assert_eq!(
        index.pointer("/byTarget/player").unwrap().to_string(),
        r#"{"count":120,"turnRange":[1,120]}"#
    );
    assert_eq!(
        index.pointer("/snapshots/1").unwrap().to_string(),
        r#"{"snapshotId":"snapshot-7","turnId":7,"deltasBefore":7}"#
    );
    let found = verify(&files);
    assert_eq!(
        (found.valid, found.turns, found.problems.len(), found.notes.len()),
        (true, 120, 0, 0),
        "{found:?}"
    );
}

#[test]
fn reopened_it_is_the_same_by_every_route() {
    let files = session(120);
    let session = open(&files).unwrap();
    assert_eq!(session.notes(), [""; 0]);
    assert_eq!(session.timeline().last_turn(), 120);
    for n in [120, 119, 118, 101, 100, 99, 51, 50, 49, 8, 7, 6, 1] {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
    assert_eq!(zone(&session.timeline().state_at(0).unwrap()), "");
    let kept = session.stored_snapshots();
    assert!(kept.iter().any(|(_, _, _, base)| base.is_some()));
    assert!(kept.iter().filter(|(turn, ..)| *turn > 100).all(|(.., base)| base.is_none()));
    let record = session.timeline().turn(60).unwrap();
    assert_eq!((record.actor.as_str(), record.scene_id.as_str()), ("player", "scene 6"));
    // Reading needs no lock, and changes nothing.
    let read = SessionDir::open_read(Arc::new(files.clone()), DIR, options()).unwrap();
    assert_eq!(read.timeline().state(), session.timeline().state());
    let mut read = read;
    assert_eq!(read.push(turn(121)).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn derived_files_are_made_anew_when_missing_stale_or_damaged() {
    let files = session(30);
    let wanted: Vec<_> = names(&files)
        .into_iter()
        .filter(|name| name.contains("/indexes/") || name.contains("/state/"))
        .collect();
    assert_eq!(wanted.len(), 5);
    let before: Vec<_> = wanted.iter().map(|name| files.bytes(name).unwrap()).collect();
    for spoil in [None, Some(&b"{\"a\":1}\n"[..]), Some(b"")] {
        for name in &wanted {
            match spoil {
                None => files.remove(Path::new(name)).unwrap(),
                Some(bytes) => files.put(name, bytes),
            }
        }
        let found = verify(&files);
        assert_eq!(found.valid, spoil.is_none(), "{found:?}");
        open(&files).unwrap().close().unwrap();
        let after: Vec<_> = wanted.iter().map(|name| files.bytes(name).unwrap()).collect();
        assert_eq!(after, before);
        assert!(verify(&files).valid);
    }
}

#[test]
fn an_unknown_version_and_a_session_of_another_name_are_refused() {
    let files = session(2);
    let text = String::from_utf8(files.bytes("tale/session.meta.json").unwrap()).unwrap();
    let body = afterimage_log::line::open(text.trim_end()).unwrap();
    let other = body.replace("\"formatVersion\":1", "\"formatVersion\":2");
    files.put("tale/session.meta.json", afterimage_log::line::seal(&other).unwrap() + "\n");
    let error = open(&files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert_eq!(
        error.to_string(),
        "expected a session of version 1, found 2 (tale/session.meta.json, at /formatVersion)"
    );
    files.put("tale/session.meta.json", text);
    let error =
        SessionDir::open(Arc::new(files.clone()), DIR, SessionOptions::new("other")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error =
        SessionDir::create(Arc::new(files.clone()), DIR, options(), data("{}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn session_ids_are_data() {
    let files = MemoryFiles::new();
    for (id, folder) in
        [("../x", "%2E.%2Fx"), ("/etc", "%2Fetc"), ("nul", "%6Eul"), ("ok-1", "ok-1")]
    {
        let options = SessionOptions::new(id);
        let session =
            SessionDir::create_in(Arc::new(files.clone()), "root", options, data("{}")).unwrap();
        assert_eq!(session.directory(), Path::new("root").join(folder));
        assert_eq!(session.meta().session_id, id);
    }
    for id in [String::new(), "x".repeat(10_000)] {
        let options = SessionOptions::new(id);
        let error =
            SessionDir::create_in(Arc::new(files.clone()), "root", options.clone(), data("{}"))
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(SessionDir::create(Arc::new(files.clone()), "here", options, data("{}")).is_err());
    }
}

#[test]
fn a_batch_says_what_is_durable() {
    let files = MemoryFiles::new();
    let options = options().durability(Durability::Batch(5));
    let mut session = SessionDir::create(
        Arc::new(files.clone()),
        DIR,
        options,
        data(r#"{"player":{"location":{"zone":""}}}"#),
    )
    .unwrap();
    let mut durable = Vec::new();
    for n in 1..=12 {
        session.push(turn(n)).unwrap();
        durable.push(session.durable_turn());
    }
    // The seventh turn makes a snapshot, which comes after its turn is durable.
    assert_eq!(durable, [0, 0, 0, 0, 5, 5, 7, 7, 7, 7, 7, 12]);
    session.push(turn(13)).unwrap();
    let after = files.crash(afterimage_log::testing::UnsyncedBytes::Lost, true);
    assert_eq!(open(&after).unwrap().timeline().last_turn(), 12);
    session.sync().unwrap();
    assert_eq!(session.durable_turn(), 13);
}

#[test]
fn many_writers_share_their_syncs() {
    let files = MemoryFiles::new();
    let shared = SharedSession::new(create(&files));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..25 {
                    let pushed = shared.push(turn(n)).unwrap();
                    let durable = files.crash(afterimage_log::testing::UnsyncedBytes::Lost, true);
                    if n % 10 == 0 {
                        let session =
                            SessionDir::open_read(Arc::new(durable), DIR, options()).unwrap();
                        assert!(session.timeline().last_turn() >= pushed.record.turn_id);
                    }
                }
            });
        }
    });
    shared.into_inner().close().unwrap();
    let found = verify(&files);
    assert!(found.valid && found.turns == 200, "{found:?}");
}

#[test]
fn a_branch_copies_nothing_and_lives_on_its_own() {
    let files = session(40);
    let before = names(&files).len();
    let main = open(&files).unwrap();
    let branch = main.branch(33, "side", &SessionOptions::new("side")).unwrap();
    assert_eq!(zone(branch.timeline().state()), "zone 33 ä");
    let of_branch: Vec<_> =
        names(&files).into_iter().filter(|name| name.starts_with("side")).collect();
    assert!(
        !of_branch.iter().any(|name| name.contains("/turns/") || name.contains("/snapshots/")),
        "{of_branch:?}"
    );
    drop(branch);
    drop(main);
    let side = |files: &MemoryFiles| {
        SessionDir::open(Arc::new(files.clone()), "side", SessionOptions::new("side"))
    };
    let mut branch = side(&files).unwrap();
    for n in 34..=60 {
        branch.push(turn(n + 1000)).unwrap();
    }
    branch.close().unwrap();
    let branch = side(&files).unwrap();
    assert_eq!(branch.timeline().last_turn(), 60);
    for (n, expected) in [(60, 1060), (50, 1050), (34, 1034), (33, 33), (10, 10)] {
        assert_eq!(zone(&branch.timeline().state_at(n).unwrap()), format!("zone {expected} ä"));
    }
    let found =
        SessionDir::verify(Arc::new(files.clone()), "side", &SessionOptions::default()).unwrap();
    assert!(found.valid && found.turns == 60, "{found:?}");
    // The session that it came from goes on, and does not know.
    let mut main = open(&files).unwrap();
    main.push(turn(41)).unwrap();
    main.close().unwrap();
    assert!(verify(&files).valid);
    assert!(before <= names(&files).len());
    // A branch of the branch.
    let twig = branch.branch(45, "twig", &SessionOptions::new("twig")).unwrap();
    assert_eq!(zone(&twig.timeline().state_at(45).unwrap()), "zone 1045 ä");
    assert_eq!(zone(&twig.timeline().state_at(20).unwrap()), "zone 20 ä");
}

#[test]
fn undo_and_redo_are_turns_that_a_reopened_session_knows() {
    let files = session(20);
    let mut session = open(&files).unwrap();
    session.undo(5, Millis::new(0)).unwrap();
    assert_eq!(zone(session.timeline().state()), "zone 5 ä");
    session.close().unwrap();
    let mut session = open(&files).unwrap();
    session.redo(Millis::new(0)).unwrap();
    assert_eq!(
        (zone(session.timeline().state()), session.timeline().last_turn()),
        ("zone 20 ä".to_owned(), 22)
    );
    session.close().unwrap();
    assert!(verify(&files).valid);
}

#[test]
fn pruning_says_what_it_will_do_and_does_that() {
    let files = MemoryFiles::new();
    let mut config = TimelineConfig {
        snapshot_interval: 5,
        compress_snapshots_older_than: 10,
        ..TimelineConfig::default()
    };
    let options = SessionOptions::new("tale").config(config.clone());
    let state = data(r#"{"player":{"location":{"zone":""}}}"#);
    let disk = || Arc::new(files.clone());
    let mut session = SessionDir::create(disk(), DIR, options, state).unwrap();
    for n in 1..=100 {
        session.push(turn(n)).unwrap();
    }
    session.close().unwrap();
    // A policy that comes later.
    config.policy.thin_after_turns = 30;
    config.policy.thin_keep_every = 20;
    config.policy.recent = 2;
    let options = SessionOptions::new("tale").config(config);
    let mut session = SessionDir::open(disk(), DIR, options).unwrap();
    files.put("tale/snapshots/snapshot-0900.json.zst.ahead", "x");
    files.put("tale/indexes/turn-index.json.tmp", "x");
    let plan = session.prune_plan().unwrap();
    assert_eq!(session.prune_plan().unwrap(), plan);
    assert_eq!(plan.leftovers.len(), 2);
    assert!(!plan.plan.remove.is_empty() && !plan.plan.rewrite.is_empty());
    assert_eq!(session.prune().unwrap(), plan);
    let turns: Vec<u64> = session.stored_snapshots().into_iter().map(|(turn, ..)| turn).collect();
    assert_eq!(turns, plan.plan.keep);
    for n in 1..=100 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
    session.close().unwrap();
    let found =
        SessionDir::verify(Arc::new(files.clone()), DIR, &SessionOptions::default()).unwrap();
    assert!(found.valid, "{found:?}");
    assert!(!names(&files).iter().any(|name| name.ends_with(".ahead") || name.ends_with(".tmp")));
}

#[test]
fn stored_and_nearest_snapshots_and_ranges_of_deltas_are_given_out() {
    let files = session(60);
    let main = open(&files).unwrap();
    let branch = main.branch(33, "side", &SessionOptions::new("side")).unwrap();
    let states = |session: &SessionDir, turn: u64| {
        let stored = session.stored_snapshot(turn).unwrap().unwrap();
        assert_eq!(stored.turn_id, turn);
        assert_eq!(stored.state, session.timeline().state_at(turn).unwrap(), "{turn}");
    };
    let stored = main.stored_snapshots();
    // Whole ones and those that are stored as what differs.
    assert!(stored.iter().any(|(.., base)| base.is_some()) && stored.len() == 9, "{stored:?}");
    stored.iter().for_each(|(turn, ..)| states(&main, *turn));
    assert_eq!(main.stored_snapshot(8).unwrap(), None);
    for (turn, nearest) in [(0, 0), (6, 0), (7, 7), (27, 21), (60, 56)] {
        assert_eq!(main.nearest_snapshot(turn).unwrap().turn_id, nearest);
    }
    assert_eq!(main.nearest_snapshot(61).unwrap_err().kind(), ErrorKind::OutOfRange);
    // A branch has those of the past that it shares.
    states(&branch, 28);
    assert_eq!(branch.stored_snapshot(35).unwrap(), None);
    assert_eq!(branch.nearest_snapshot(33).unwrap().turn_id, 28);

    let timeline = main.timeline();
    for (from, to) in [(1, 60), (22, 40), (50, 50)] {
        let mut state = timeline.state_at(from - 1).unwrap();
        let deltas = timeline.deltas(from..=to).unwrap();
        Applier::strict(timeline.targets()).apply_all(&mut state, &deltas).unwrap();
        assert_eq!(state, timeline.state_at(to).unwrap());
    }
    assert_eq!(timeline.deltas(RangeInclusive::new(61, 60)).unwrap(), []);
    for turns in [0..=3, 59..=61] {
        assert_eq!(timeline.deltas(turns).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    // What events come to, without a push.
    let events = turn(1).events;
    let mapped = timeline.map(&events).unwrap();
    let mut pushed = timeline.clone();
    let record = pushed.push(turn(1)).unwrap().record;
    assert_eq!(mapped.deltas.len(), record.deltas.len());
    assert_eq!(mapped.deltas[0].new_value, record.deltas[0].new_value);
    assert_eq!((timeline.last_turn(), mapped.unmapped.len()), (60, 0));
    // A snapshot that is damaged says so.
    let name = "tale/snapshots/snapshot-0056.json.zst";
    let mut bytes = files.bytes(name).unwrap();
    bytes[40] ^= 1;
    files.put(name, bytes);
    let main = SessionDir::open_read(Arc::new(files), DIR, SessionOptions::default()).unwrap();
    let error = main.stored_snapshot(56).unwrap_err();
    assert_eq!(
        (error.kind(), error.place().file.as_deref()),
        (ErrorKind::Damaged, Some(Path::new(name)))
    );
    assert_eq!(main.nearest_snapshot(60).unwrap().turn_id, 49);
}

#[test]
fn limits_of_snapshots_hold_in_a_directory_without_pruning() {
    let files = MemoryFiles::new();
    let mut config = TimelineConfig {
        snapshot_interval: 1,
        compress_snapshots_older_than: 2,
        ..TimelineConfig::default()
    };
    config.policy.max_snapshots = 5;
    let options = SessionOptions::new("tale").config(config);
    let state = data(r#"{"player":{"location":{"zone":""}}}"#);
    let disk = Arc::new(files.clone());
    let mut session = SessionDir::create(disk, DIR, options, state).unwrap();
    for n in 1..=40 {
        session.push(turn(n)).unwrap();
        assert!(session.stored_snapshots().len() <= 5, "{n}");
    }
    let turns: Vec<u64> = session.stored_snapshots().into_iter().map(|(turn, ..)| turn).collect();
    assert_eq!(turns, [0, 37, 38, 39, 40]);
    for n in 1..=40 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
    assert_eq!(session.prune().unwrap().plan.remove, [0; 0]);
    assert_eq!(session.close().unwrap(), [""; 0]);
    let snapshots = names(&files).into_iter().filter(|name| name.contains("/snapshots/"));
    assert_eq!(snapshots.count(), 5);
    let found =
        SessionDir::verify(Arc::new(files.clone()), DIR, &SessionOptions::default()).unwrap();
    assert!(found.valid, "{found:?}");
}

#[test]
fn a_limit_that_cannot_hold_is_a_note() {
    let mut config = TimelineConfig { snapshot_interval: 2, ..TimelineConfig::default() };
    config.policy.max_snapshots = 1;
    config.policy.max_snapshot_size = 10;
    let files = MemoryFiles::new();
    let options = SessionOptions::new("tale").config(config);
    let state = data(r#"{"player":{"location":{"zone":""}}}"#);
    let mut session = SessionDir::create(Arc::new(files), DIR, options, state).unwrap();
    for n in 1..=4 {
        session.push(turn(n)).unwrap();
    }
    let notes = session.close().unwrap().join("\n");
    assert!(notes.contains("2 snapshots always stay; the limit is 1; they are kept"), "{notes}");
    assert!(notes.contains("the limit is 10; it is kept"), "{notes}");
}

#[test]
fn the_configured_batch_size_says_how_many_turns_become_durable_together() {
    let create = |size: u64, options: SessionOptions| {
        let config = TimelineConfig { delta_batch_size: size, ..TimelineConfig::default() };
        let disk = Arc::new(MemoryFiles::new());
        SessionDir::create(disk, DIR, options.config(config), data("{}")).unwrap()
    };
    let durable = |mut session: SessionDir| -> Vec<u64> {
        let push = |n| {
            session.push(turn(n)).unwrap();
            session.durable_turn()
        };
        (1..=7).map(push).collect()
    };
    assert_eq!(durable(create(3, SessionOptions::new("a"))), [0, 0, 3, 3, 3, 6, 6]);
    for size in [0, 1] {
        assert_eq!(durable(create(size, SessionOptions::new("a"))), [1, 2, 3, 4, 5, 6, 7]);
    }
    // What the caller asks for counts more.
    let each = SessionOptions::new("a").durability(Durability::EachTurn);
    assert_eq!(durable(create(3, each)), [1, 2, 3, 4, 5, 6, 7]);
    // By default each turn is durable when it was pushed.
    assert_eq!(TimelineConfig::default().delta_batch_size, 1);
}

#[test]
fn a_65th_generation_of_branches_is_refused_when_it_is_made() {
    let files = session(3);
    let mut last = open(&files).unwrap();
    for generation in 1..=64 {
        let (name, disk) = (format!("b{generation}"), Arc::new(files.clone()));
        last.branch(3, &name, &SessionOptions::new(name.as_str())).unwrap();
        last = SessionDir::open(disk, &name, SessionOptions::default()).unwrap();
    }
    let before = names(&files);
    let refused = last.branch(3, "b65", &SessionOptions::new("b65")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert!(
        refused.to_string().starts_with("the session is a branch of the 64th generation"),
        "{refused}"
    );
    assert_eq!(names(&files), before);
    assert_eq!(zone(last.timeline().state()), "zone 3 ä");
}

#[test]
fn a_branch_names_its_parent_relatively_and_moves_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let here = root.join("here");
    let disk = || Arc::new(DiskFiles);
    let new = SessionOptions::new("main");
    let mut main = SessionDir::create(disk(), here.join("a/main"), new, data("{}")).unwrap();
    main.push(turn(1)).unwrap();
    let new = SessionOptions::new("side");
    main.branch(1, here.join("b/c/side"), &new).unwrap().close().unwrap();
    main.close().unwrap();
    let meta = std::fs::read_to_string(here.join("b/c/side/session.meta.json")).unwrap();
    assert!(
        meta.contains(r#""parent":{"directory":"../../../a/main","sessionId":"main""#),
        "{meta}"
    );
    assert!(!meta.contains(root.to_str().unwrap()), "{meta}");
    std::fs::rename(&here, root.join("there")).unwrap();
    let side = root.join("there/b/c/side");
    let side = SessionDir::open_read(disk(), side, SessionOptions::default()).unwrap();
    assert_eq!(zone(side.timeline().state()), "zone 1 ä");
}

#[test]
fn a_large_world_comes_back_too() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("big");
    let mut state = world::world();
    let mut session = SessionDir::create(
        Arc::new(DiskFiles),
        &path,
        SessionOptions::new("big").durability(Durability::Batch(50)),
        state.clone(),
    )
    .unwrap();
    for n in 1..=60 {
        let deltas = world::turn(&mut state, n);
        session.push(TurnRecord::new("p").with_deltas(deltas)).unwrap();
    }
    session.close().unwrap();
    let session = SessionDir::open(Arc::new(DiskFiles), &path, SessionOptions::new("big")).unwrap();
    assert_eq!(session.timeline().state(), &state);
    let found = SessionDir::verify(Arc::new(DiskFiles), &path, &SessionOptions::default()).unwrap();
    assert!(found.valid, "{found:?}");
}

#[test]
fn what_is_not_known_in_the_description_of_a_session_is_written_to_its_branches() {
    use afterimage_log::line;
    let files = tale::session(2);
    let read = |path: &str| {
        let text = String::from_utf8(files.bytes(path).unwrap()).unwrap();
        json::read(line::open(text.trim_end()).unwrap().as_bytes()).unwrap()
    };
    let text = read(tale::META).to_string();
    let told =
        text.replace("\"config\":{", "\"config\":{\"mood\":1,").replacen('{', "{\"mood\":3,", 1);
    files.put(tale::META, format!("{}\n", line::seal(&told).unwrap()));
    let session = tale::open(&files).unwrap();
    session.branch(1, "branch", &tale::options().named("b")).unwrap().close().unwrap();
    let written = read("branch/session.meta.json");
    for (place, expected) in [("/config/mood", 1), ("/mood", 3)] {
        assert_eq!(written.pointer(place).and_then(json::Value::as_u64), Some(expected), "{place}");
    }
}
