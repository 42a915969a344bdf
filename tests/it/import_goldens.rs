//! What becomes of the specifications' examples and of recordings when they are read.
//!
//! `fixtures/frames` holds frames with the examples of the snapshot specification,
//! `fixtures/timeline` directories with those of the specification of deltas and snapshots, and
//! beside each the outcome in `NAME.txt`. `fixtures/recorded` holds the outcomes of recordings that
//! are not here, in figures and hashes: no name of a recording is in them. `AFTERIMAGE_BLESS=1 cargo
//! test --test import_goldens` writes the outcomes anew, to be read before they are committed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use afterimage::{
    json,
    log::DiskFiles,
    snapshot::get_snapshot_facets,
    timeline::{
        ErrorKind, TimelineConfig,
        session::{ForeignTimeline, read_recorded},
    },
    transcript::Transcript,
};
use data::recordings;

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder)
}

/// The entries of a folder of fixtures, without the outcomes.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_input = |path: &PathBuf| path.extension().is_none_or(|extension| extension != "txt");
    let mut inputs: Vec<_> = entries.filter(is_input).collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    inputs
}

#[track_caller]
fn check(outcome: &Path, found: &str) {
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::create_dir_all(outcome.parent().unwrap()).unwrap();
        fs::write(outcome, found).unwrap();
    }
    let expected = fs::read_to_string(outcome).unwrap_or_default();
    assert_eq!(found, expected, "{}", outcome.display());
}

/// What an import makes of frames: what each shows, and what was said of them.
fn imported(path: &Path) -> String {
    let mut transcript = Transcript::open(path).unwrap();
    let mut text = format!("format: {}\n", transcript.format().name());
    for record in transcript.by_ref() {
        let frame = record.unwrap().frame;
        write!(text, "frame {}, {}", frame.sequence, frame.source.as_str()).unwrap();
        match &frame.rendered_snapshot {
            Some(snapshot) => writeln!(
                text,
                ": {:?}, {} tokens, content: {}, facets: {:?}",
                snapshot.text(),
                snapshot.total_tokens(),
                snapshot.has_content(),
                get_snapshot_facets(&**snapshot)
            ),
            None => writeln!(text, ": no snapshot, {} ops", frame.ops.len()),
        }
        .unwrap();
    }
    let report = transcript.report();
    for note in &report.notes {
        writeln!(text, "note, line {}: {}", note.line, note.text).unwrap();
    }
    for unknown in &report.unknown {
        writeln!(text, "not understood, line {}: {}", unknown.line, unknown.reason).unwrap();
    }
    text
}

#[test]
fn the_examples_of_the_snapshot_specification_are_imported_as_a_reader_would_expect() {
    for path in inputs(&fixtures("frames")) {
        check(&path.with_extension("txt"), &imported(&path));
    }
}

/// Eight hexadecimal digits in the place of a recorded name.
fn short_hash(name: &str) -> String {
    format!("{:08x}", crc32fast::hash(name.as_bytes()))
}

/// The turns and what was said of them; `is_short` leaves out what quotes the recording, and has
/// hashes in the place of its names.
fn outcome(recorded: &ForeignTimeline, is_short: bool) -> String {
    let timeline = &recorded.timeline;
    let mut text = String::new();
    let named = |name: &str| if is_short { short_hash(name) } else { name.to_owned() };
    writeln!(text, "session: {}", named(timeline.session_id())).unwrap();
    let deltas = timeline.deltas(1..=timeline.last_turn()).unwrap();
    writeln!(text, "{} turns, {} deltas", timeline.last_turn(), deltas.len()).unwrap();
    for note in &recorded.notes {
        writeln!(text, "note: {note}").unwrap();
    }
    for drift in &recorded.breaks {
        if is_short {
            let (id, path) = (short_hash(&drift.delta_id), short_hash(&drift.path));
            let (turn, done) = (drift.turn_id, &drift.done);
            writeln!(text, "break: turn {turn}, delta {id}, at {path}: {done}").unwrap();
        } else {
            writeln!(text, "break: {drift}").unwrap();
        }
    }
    for (turn, difference) in &recorded.differences {
        let shown = if is_short {
            String::new()
        } else {
            format!(": {}", afterimage::json::to_value(difference).unwrap())
        };
        let path = named(&difference.path);
        writeln!(text, "difference: turn {turn}, at {path}{shown}").unwrap();
    }
    let state = timeline.state();
    writeln!(text, "state: {}", if is_short { state.checksum() } else { state.to_string() })
        .unwrap();
    assert!(timeline.verify().unwrap().valid);
    text
}

#[test]
fn the_examples_of_the_specification_of_deltas_are_read_as_a_reader_would_expect() {
    for path in inputs(&fixtures("timeline")) {
        let recorded = read_recorded(&DiskFiles, &path).unwrap();
        check(&path.with_extension("txt"), &outcome(&recorded, false));
    }
}

#[test]
fn the_configurations_of_the_specification_are_read() {
    let read = |text: &str| TimelineConfig::from_json(json::read(text.as_bytes()).unwrap());
    let config = read(
        r#"{"snapshotInterval":50,"deltaBatchSize":10,"verifyEveryNTurns":100,"compressSnapshotsOlderThan":200,"pruneOrphanedDeltas":true}"#,
    );
    assert_eq!(
        config.unwrap(),
        TimelineConfig { delta_batch_size: 10, ..TimelineConfig::default() }
    );
    let policy = read(
        r#"{"retention":{"always":["initial","session_end","milestone"],"recent":{"maxAge":10},"thin":{"afterTurns":500,"keepEvery":100}},"limits":{"maxSnapshots":50,"maxSnapshotSize":5,"maxTotalSize":100}}"#,
    );
    assert_eq!(policy.unwrap(), TimelineConfig::default());
    for (text, message) in [
        (
            r#"{"limits":{"maxSnapshot":5}}"#,
            "unknown member \"maxSnapshot\": expected one of maxSnapshots, maxSnapshotSize, maxTotalSize (at /limits)",
        ),
        (
            r#"{"retention":{"thin":{"every":5}}}"#,
            "unknown member \"every\": expected one of afterTurns, keepEvery (at /retention/thin)",
        ),
        (
            r#"{"always":["whim"]}"#,
            "expected \"initial\" or \"interval\" or \"scene_end\" or \"conflict_end\" or \"milestone\" or \"manual\" or \"session_end\", found \"whim\" (at /always/0)",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn recorded_sessions_are_read_with_the_outcome_that_was_checked() {
    let Some(folder) = recordings("E-state") else { return };
    for path in inputs(&folder.join("llmrpg")) {
        let recorded = read_recorded(&DiskFiles, &path).unwrap();
        let name = format!("recorded/{}.txt", path.file_name().unwrap().to_str().unwrap());
        check(&fixtures(&name), &outcome(&recorded, true));
    }
    // What is no session is said to be none.
    for name in ["diplomacy", "editing-traces", "json-patch", "sandbox-replay"] {
        let error = read_recorded(&DiskFiles, folder.join(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{name}");
        assert_eq!(error.message(), "neither a session nor turns of another program are there");
    }
}
