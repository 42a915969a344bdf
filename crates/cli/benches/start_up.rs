//! What a command on a small file costs, start of the process and all: `stats` of 1 kB and of 16 kB,
//! beside `--version`, which does nothing but start, and beside `true`, which is what the system takes.
//!
//! `AFTERIMAGE_BENCH_PROGRAM` names another build of the program.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

use std::{ffi::OsStr, fs, process::Command};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// A session of about so many bytes, as text that no cache of counts knows.
fn session(bytes: usize) -> String {
    let mut messages = Vec::new();
    while messages.iter().map(String::len).sum::<usize>() < bytes {
        let number = messages.len();
        let role = ["user", "assistant"][number % 2];
        let said: Vec<String> =
            (0..12).map(|word| format!("sack {}", (number * 12 + word) * 7_919)).collect();
        messages.push(format!(r#"{{"role":"{role}","content":"Grind {}."}}"#, said.join(", ")));
    }
    format!("[{}]", messages.join(","))
}

fn run(program: &OsStr, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn start(criterion: &mut Criterion) {
    let program = std::env::var_os("AFTERIMAGE_BENCH_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_afterimage").into());
    let folder = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("start_up");
    if cfg!(unix) {
        group.bench_function("true", |bench| bench.iter(|| run("true".as_ref(), &[])));
    }
    group.bench_function("--version", |bench| {
        bench.iter(|| run(&program, &["--version".as_ref()]));
    });
    for bytes in [1_000, 16_000] {
        let path = folder.path().join(format!("{bytes}.json"));
        fs::write(&path, session(bytes)).unwrap();
        group.bench_function(BenchmarkId::new("stats", bytes), |bench| {
            bench.iter(|| run(&program, &["stats".as_ref(), path.as_ref()]));
        });
    }
    group.finish();
}

criterion_group!(benches, start);
criterion_main!(benches);
