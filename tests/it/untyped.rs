//! Frames that were written before parts were typed are read as those that are written now.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use afterimage::{
    id::Millis,
    journal::{EventId, Expected, Journal, JournalOptions, Memory, NewEvent, SessionName},
    json,
    session::bridge::ReplayedVeil,
    transcript::Transcript,
    veil::{Frame, Veil},
};
use serde_json::{Value, json};

fn frames(name: &str) -> Vec<Frame> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/untyped").join(name);
    let transcript = Transcript::open(path).unwrap();
    transcript.map(|record| record.unwrap().frame).collect()
}

#[test]
fn frames_without_typed_parts_are_read_as_their_source_is() {
    for (source, written) in [
        ("messages.jsonl", "messages.frames.jsonl"),
        ("chat.json", "chat.frames.jsonl"),
        ("items.jsonl", "items.frames.jsonl"),
    ] {
        let (now, before) = (frames(source), frames(written));
        assert_eq!(now.len(), before.len());
        for (now, before) in now.iter().zip(&before) {
            assert_eq!(now, before, "{source}");
            let written = json::read(now.to_json().to_string().as_bytes()).unwrap();
            assert_eq!(Frame::from_json(written).unwrap(), *now, "{source}");
        }
    }
    // They are of the older form: a new one would show nothing here.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/untyped");
    let written = fs::read_to_string(folder.join("messages.frames.jsonl")).unwrap();
    assert!(
        written.contains(r#""attributes":{"origin":"#) && written.contains("transcript:message")
    );
}

#[test]
fn sessions_of_frames_without_typed_parts_lead_to_the_same_veil() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/untyped");
    for (source, written) in [
        ("messages.jsonl", "messages.frames.jsonl"),
        ("chat.json", "chat.frames.jsonl"),
        ("items.jsonl", "items.frames.jsonl"),
    ] {
        let mut veil = Veil::default();
        frames(source).iter().for_each(|frame| drop(veil.apply(frame).unwrap()));
        let expected = veil.facets();
        assert!(!expected.is_empty());
        let session = SessionName::new("harbour").unwrap();
        let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
        let written = fs::read_to_string(folder.join(written)).unwrap();
        let mut facets = Vec::new();
        for (at, line) in (0_u64..).zip(written.lines()) {
            let id = EventId::new(at.to_string()).unwrap();
            let new = NewEvent::new(id, "frame", line.as_bytes().to_vec()).unwrap();
            journal.append(&session, Expected::Last(at), new, Millis::new(0)).unwrap();
            let frame: Value = serde_json::from_str(line).unwrap();
            let ops = frame["deltas"].as_array().unwrap().clone();
            facets.extend(ops.into_iter().map(|op| op["facet"].clone()));
        }
        let loaded = journal.load::<ReplayedVeil>(&session).unwrap();
        assert_eq!(loaded.state.veil().facets(), expected, "{source}: events");
        // The state of a snapshot that was written before.
        let state = json!({"facets": facets, "tags": [], "lastFrame": 9}).to_string();
        let state = ReplayedVeil::from_json(json::read(state.as_bytes()).unwrap()).unwrap();
        assert_eq!(state.veil().facets(), expected, "{source}: snapshot");
        let again = ReplayedVeil::from_json(state.to_json()).unwrap();
        assert_eq!(again.veil().facets(), expected, "{source}: snapshot now");
    }
}
