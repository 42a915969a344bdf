//! Frames that were written before parts were typed are read as those that are written now.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use afterimage::{json, transcript::Transcript, veil::Frame};

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
