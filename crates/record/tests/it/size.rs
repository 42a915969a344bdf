//! How much room a recording takes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;

use afterimage_record::{FILE_NAME, Recording, RecordingWriter, RequestBody};

use crate::{
    growing::session,
    support::{end, head, start},
};

fn check(path: &str) {
    let Some(session) = session(path) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    for (number, (request, answer)) in (0..).zip(&session) {
        let id = writer.start(&start(number)).unwrap();
        writer.request(id, "p", RequestBody::whole(request.as_bytes())).unwrap();
        writer.response(id, &head()).unwrap();
        writer.part(id, answer.as_bytes()).unwrap();
        writer.end(id, &end(answer.as_bytes())).unwrap();
    }
    let bytes = fs::metadata(folder.join(FILE_NAME)).unwrap().len();
    let last = session.last().unwrap().0.len() as u64;
    let answers: u64 = session.iter().map(|(_, answer)| answer.len() as u64).sum();
    let all: u64 = session.iter().map(|(request, _)| request.len() as u64).sum();
    let share = bytes as f64 / (last + answers) as f64;
    println!(
        "{path}: {} requests, {all} bytes; last {last}, answers {answers}; {bytes} bytes, {share:.2}",
        session.len()
    );
    assert!(share <= 1.3, "{share}");
    let recording = Recording::open(&folder).unwrap().unwrap();
    let mut bodies = recording.bodies();
    for (exchange, (request, _)) in recording.exchanges().iter().zip(&session) {
        assert!(bodies.request(exchange).unwrap() == request.as_bytes());
    }
    // Whatever was read before.
    for (exchange, (request, _)) in recording.exchanges().iter().zip(&session).rev().step_by(5) {
        assert!(bodies.request(exchange).unwrap() == request.as_bytes());
    }
    for (exchange, (request, answer)) in recording.exchanges().iter().zip(&session) {
        assert!(recording.request(exchange).unwrap().whole() == Some(request.as_bytes()));
        assert!(recording.response(exchange).unwrap().whole() == Some(answer.as_bytes()));
    }
    assert_eq!(recording.exchanges().len(), session.len());
}

#[test]
fn two_hundred_growing_requests_take_little_more_than_the_last() {
    check("C-codex-responses/rollout/codemie-rollout-2026-05-11T11-26-55.jsonl");
    check("B-anthropic/pi/before-compaction.jsonl");
    check("B-anthropic/claude-code/codemie/session-624a4a58.jsonl");
}
