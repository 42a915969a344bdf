//! What `requests`, `render --request` and `diff` take of a recording of 200 growing requests, start
//! of the process and all, beside unpacking its bodies.
//!
//! `AFTERIMAGE_BENCH_PROGRAM` names another build of the program.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

#[path = "../../record/tests/it/growing.rs"]
mod growing;

use std::{ffi::OsStr, path::Path, process::Command};

use afterimage::{
    json,
    record::{End, Recording, RecordingWriter, RequestBody, ResponseHead, Start},
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Records a session; gives the bytes of its requests.
fn record(folder: &Path, session: &[(String, String)]) -> u64 {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    let mut all = 0;
    for (request, answer) in session {
        let start = Start { path: "/responses".to_owned(), ..Start::now("POST", "openai") };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(request.as_bytes())).unwrap();
        let head = ResponseHead { status: 200, after_ms: 1, headers: Vec::new() };
        writer.response(id, &head).unwrap();
        writer.part(id, answer.as_bytes()).unwrap();
        let bytes = answer.len() as u64;
        writer.end(id, &End { after_ms: 2, bytes, stored: bytes, cut: None }).unwrap();
        all += request.len() as u64;
    }
    all
}

fn unpack(folder: &Path) -> usize {
    let recording = Recording::open(folder).unwrap().unwrap();
    let mut bodies = recording.bodies();
    let lengths = recording.exchanges().iter().map(|of| bodies.request(of).unwrap().len());
    lengths.sum()
}

fn run(program: &OsStr, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn read(criterion: &mut Criterion) {
    let program = std::env::var_os("AFTERIMAGE_BENCH_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_afterimage").into());
    let scratch = tempfile::tempdir().unwrap();
    let last = growing::REQUESTS.to_string();
    let mut group = criterion.benchmark_group("recording");
    group.sample_size(10);
    for (name, path) in [
        ("codex", "C-codex-responses/rollout/codemie-rollout-2026-05-11T11-26-55.jsonl"),
        ("pi", "B-anthropic/pi/before-compaction.jsonl"),
        ("claude", "B-anthropic/claude-code/codemie/session-624a4a58.jsonl"),
    ] {
        let Some(session) = growing::session(path) else { continue };
        let folder = scratch.path().join(name);
        group.throughput(Throughput::Bytes(record(&folder, &session)));
        let file = folder.to_str().unwrap();
        let previous = format!("{file}@{}", growing::REQUESTS - 1);
        group.bench_function(BenchmarkId::new("unpack", name), |bench| {
            bench.iter(|| unpack(&folder));
        });
        for (command, arguments) in [
            ("requests", &["requests", file][..]),
            ("render", &["render", "--request", &last, file]),
            ("diff", &["diff", &previous, &format!("{file}@{last}")]),
        ] {
            group.bench_function(BenchmarkId::new(command, name), |bench| {
                bench.iter(|| run(&program, arguments));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
