//! How much room a recording takes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;

use afterimage_json::{self as json, Value};
use afterimage_record::{FILE_NAME, Recording, RecordingWriter, RequestBody};
use afterimage_testkit::data;

use crate::support::{end, head, start};

const REQUESTS: usize = 200;

/// The requests of an agent: each holds the messages so far, then the tools. With the answers.
fn session(path: &str) -> Option<Vec<(String, String)>> {
    let text = fs::read_to_string(data::recording(path)?).unwrap();
    let items: Vec<Value> = text
        .lines()
        .filter_map(|line| {
            let line = json::read(line.as_bytes()).ok()?;
            let item = line.get("payload").or_else(|| line.get("message"))?.clone();
            (item.get("role").is_some() || item.get("call_id").is_some()).then_some(item)
        })
        .collect();
    let tools =
        "{\"name\":\"exec\",\"description\":\"Runs a command and gives back what it said.\"}";
    let tools = vec![tools; 40].join(",");
    let mut input = String::new();
    let mut requests = Vec::new();
    assert!(items.len() >= REQUESTS, "{path}: {} items", items.len());
    for number in 0..REQUESTS {
        let place = |number| items.len() * number / REQUESTS;
        let turn = &items[place(number)..place(number + 1)];
        for item in turn {
            input.push_str(if input.is_empty() { "" } else { "," });
            input.push_str(&item.to_string());
        }
        let request = format!("{{\"model\":\"m\",\"input\":[{input}],\"tools\":[{tools}]}}");
        let answer = format!("{{\"output\":[{}]}}", turn.last().unwrap());
        requests.push((request, answer));
    }
    Some(requests)
}

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
