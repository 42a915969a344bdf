//! Recorded games, traces and sessions of another program come back exactly.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::games;
use afterimage_testkit::data;

use std::{path::Path, sync::Arc};

use afterimage_log::{DiskFiles, Files, testing::MemoryFiles};
use afterimage_timeline::{
    Applier, Targets, TurnRecord, diff,
    session::{Durability, ForeignTimeline, SessionDir, SessionOptions, read_recorded},
};
use data::{files_under, recordings};

/// Stores the states step by step, and rebuilds each from the directory.
fn rebuilt(recorded: &games::ForeignTimeline, every: u64, what: &str) {
    let files = MemoryFiles::new();
    let options = SessionOptions::new("game").durability(Durability::Batch(50));
    let first = recorded.states().next().unwrap();
    let disk = Arc::new(files.clone());
    let mut session = SessionDir::create(disk, "game", options.clone(), first.clone()).unwrap();
    for state in recorded.states().skip(1) {
        let deltas = diff(session.timeline().state(), &state, session.timeline().targets());
        session.push(TurnRecord::new("game").with_deltas(deltas)).unwrap();
    }
    session.close().unwrap();
    let session = SessionDir::open(Arc::new(files.clone()), "game", options).unwrap();
    let timeline = session.timeline();
    let (mut state, targets, mut turn) = (first, Targets::default(), 0);
    for expected in recorded.states().skip(1) {
        turn += 1;
        let record = timeline.turn(turn).unwrap();
        Applier::strict(&targets).apply_all(&mut state, &record.deltas).unwrap();
        assert_eq!(state, expected, "{what}, step {turn}");
        if turn % every == 0 {
            assert_eq!(timeline.state_at(turn).unwrap(), expected, "{what}, step {turn}");
        }
    }
    assert_eq!(timeline.last_turn(), turn);
    let bytes: u64 = session.stored_bytes().unwrap().iter().sum();
    println!("{what}: {} states, {bytes} bytes stored", turn + 1);
}

#[test]
fn recorded_games_rebuild_every_state_exactly() {
    let Some(folder) = recordings("E-state") else { return };
    for (name, member) in [("sandbox-replay", "turns"), ("diplomacy", "phases")] {
        for path in files_under(&folder.join(name)) {
            rebuilt(&games::game(&path, member), 1, &path.display().to_string());
        }
    }
}

#[test]
fn editing_traces_rebuild_every_state_exactly() {
    let Some(folder) = recordings("E-state/editing-traces") else { return };
    for path in files_under(&folder) {
        rebuilt(&games::trace(&path, 1500), 100, &path.display().to_string());
    }
}

#[test]
fn sessions_of_another_program_are_read_leniently_and_every_break_is_named() {
    let Some(folder) = recordings("E-state/llmrpg") else { return };
    let sessions = DiskFiles.list(&folder).unwrap();
    assert_eq!(sessions.len(), 4);
    for name in sessions {
        let path = folder.join(&name);
        let recorded = read_recorded(&DiskFiles, &path).unwrap();
        let timeline = &recorded.timeline;
        let lines = |file: &str| {
            let text = std::fs::read_to_string(path.join(file)).unwrap();
            text.lines().filter(|line| !line.is_empty()).count()
        };
        assert!(timeline.last_turn() as usize >= lines("turns/turns-0001-0100.jsonl"), "{name:?}");
        let deltas: usize =
            (1..=timeline.last_turn()).map(|turn| timeline.turn(turn).unwrap().deltas.len()).sum();
        assert_eq!(deltas, lines("deltas/deltas-0001-0100.jsonl"), "{name:?}");
        for drift in &recorded.breaks {
            assert!(
                !drift.path.is_empty() && drift.turn_id > 0 && !drift.delta_id.is_empty(),
                "{drift}"
            );
        }
        println!(
            "{name:?}: {} turns, {deltas} deltas, {} breaks",
            timeline.last_turn(),
            recorded.breaks.len()
        );
        assert!(timeline.verify().unwrap().valid);
    }
}

/// A directory as the document's own code writes it: plain snapshots, turns with embedded deltas.
#[test]
fn a_directory_of_the_documents_code_opens() {
    let files = MemoryFiles::new();
    let put = |name: &str, text: &str| files.put(Path::new("old").join(name), text);
    for folder in ["old", "old/turns", "old/snapshots", "old/indexes"] {
        files.create_dir(Path::new(folder)).unwrap();
    }
    put("session.meta.json", r#"{"sessionId":"abc","startTime":1732557777531}"#);
    put(
        "snapshots/snapshot-0000.json",
        r#"{"snapshotId":"snapshot-0","sessionId":"abc","turnId":0,"timestamp":"2024-11-25T18:02:57.531Z","reason":"initial","state":{"player":{"location":{"id":"loc-start","zone":"entrance"}},"world":{},"scene":{},"npcs":{"npc-vendor":{"relationship":0}},"quests":{},"gameTime":{}},"checksums":{"player":"1a2b","world":"3c","scene":"4d","combined":"5e6f"},"deltaRange":{"fromSnapshot":"initial","deltaCount":0,"firstDeltaId":"abc-1-1","lastDeltaId":"abc-0-latest"}}"#,
    );
    put(
        "turns/turns-0001-0050.jsonl",
        concat!(
            r#"{"turnId":1,"actor":"player","events":[],"deltas":[{"deltaId":"abc-1-1","target":"player","operation":"set","path":["location","id"],"previousValue":"loc-start","newValue":"loc-market","cause":"move"}]}"#,
            "\n",
            r#"{"turnId":2,"actor":"player","events":[],"deltas":[{"deltaId":"abc-2-1","target":"player","operation":"set","path":["location","zone"],"previousValue":"entrance","newValue":"stalls","cause":"move"},{"deltaId":"abc-2-2","target":"npc","operation":"increment","path":["npc-vendor","relationship"],"previousValue":0,"newValue":5,"cause":"interact"}]}"#,
            "\n",
        ),
    );
    let recorded = read_recorded(&files, "old").unwrap();
    assert_eq!((recorded.timeline.session_id(), recorded.timeline.last_turn()), ("abc", 2));
    assert!(recorded.breaks.is_empty() && recorded.notes.is_empty(), "{recorded:?}");
    assert_eq!(
        recorded.timeline.state().to_string(),
        r#"{"gameTime":{},"npcs":{"npc-vendor":{"relationship":5}},"player":{"location":{"id":"loc-market","zone":"stalls"}},"quests":{},"scene":{},"world":{}}"#
    );
    let error = read_recorded(&files, "old/indexes").unwrap_err();
    assert_eq!(error.kind(), afterimage_timeline::ErrorKind::UnknownFormat);
}

/// The line of a turn and a file of deltas tell of one delta.
#[test]
fn a_delta_that_a_line_and_a_file_both_have_is_applied_once() {
    const DELTA: &str = r#"{"deltaId":"r-1-1","turnId":1,"sequence":1,"timestamp":1,"target":"player","operation":"insert","path":["l"],"newValue":{"index":1,"item":"b"},"cause":"c","eventId":"e"}"#;
    let recorded = |in_line: &str, in_file: &str| {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("player.state.json", r#"{"l":["a","b"]}"#);
        let turn = format!(r#"{{"turnId":1,"timestamp":1,"actor":"p","deltas":[{in_line}]}}"#);
        write("turns/turns-0001-0100.jsonl", &turn);
        write("deltas/deltas-0001-0100.jsonl", in_file);
        read_recorded(&DiskFiles, folder.path()).unwrap()
    };
    let list = |recorded: &ForeignTimeline, turn| {
        recorded.timeline.state_at(turn).unwrap().to_json().get("player").unwrap().to_string()
    };
    let in_line_only = DELTA.replace(r#""turnId":1,"sequence":1,"#, "");
    for (line, file) in [(DELTA, DELTA), (DELTA, ""), ("", DELTA), (&*in_line_only, DELTA)] {
        let recorded = recorded(line, file);
        assert_eq!(list(&recorded, 0), r#"{"l":["a"]}"#);
        assert_eq!(list(&recorded, 1), r#"{"l":["a","b"]}"#);
        assert_eq!((recorded.breaks.len(), recorded.differences.len()), (0, 0));
        assert_eq!(recorded.timeline.turn(1).unwrap().deltas.len(), 1);
    }
    // Where they differ, that of the line is applied, and it is said.
    let other = DELTA.replace(r#""item":"b""#, r#""item":"c""#);
    let recorded = recorded(DELTA, &other);
    assert_eq!(list(&recorded, 1), r#"{"l":["a","b"]}"#);
    assert_eq!(recorded.breaks.len(), 1);
    let told = recorded.breaks[0].to_string();
    assert!(told.contains("\"r-1-1\"") && told.contains("the line of the turn"), "{told}");
}
