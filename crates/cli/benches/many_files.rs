//! Archiving 1,000 sessions of 16 kB, beside `stats` of them; and `stats` of larger files. The
//! baselines read the bytes of the same files, and parse their JSON on as many threads as the program
//! has, without anything else.
//!
//! Archives are written to the folder for temporary files: `TMPDIR=/dev/shm` leaves the disk out.
//! `AFTERIMAGE_BENCH_MEGABYTES` says how large the larger files are together: 64 without it.
//! `AFTERIMAGE_BENCH_SESSIONS` limits how many sessions there are, and megabytes.
//! `AFTERIMAGE_BENCH_PROGRAM` names another build of the program.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

use std::{
    fmt::Write,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// The number that a variable has, or else `usual`.
fn from_env(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

fn limited(files: u64) -> u64 {
    files.min(from_env("AFTERIMAGE_BENCH_SESSIONS", u64::MAX))
}

/// A session of about so many bytes, no two of which say the same.
fn session(name: u64, bytes: usize) -> String {
    let mut text = String::from("[");
    let mut number = 0;
    while text.len() < bytes {
        let role = ["user", "assistant"][number % 2];
        let comma = if number > 0 { "," } else { "" };
        let _ = write!(text, r#"{comma}{{"role":"{role}","content":""#);
        for word in 0..60 {
            let grain = (name as usize * 31 + number * 7 + word) % 997;
            let _ = write!(text, "sack {grain} of the mill is ground; ");
        }
        text.push_str(r#""}"#);
        number += 1;
    }
    text + "]"
}

fn folder(sessions: u64, bytes: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in 0..sessions {
        fs::write(folder.path().join(format!("{name:04}.json")), session(name, bytes)).unwrap();
    }
    folder
}

fn read(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap();
    files.map(|file| black_box(fs::read(file.unwrap().path()).unwrap()).len()).sum()
}

/// Parses all files on as many threads as there are cores, and keeps nothing.
fn parse(folder: &Path) {
    let files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let bytes = fs::read(file).unwrap();
                    black_box(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap());
                }
            });
        }
    });
}

fn run(command: &str, arguments: &[&Path]) {
    let program = std::env::var_os("AFTERIMAGE_BENCH_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_afterimage").into());
    let mut program = Command::new(program);
    let output = program.arg(command).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn many(criterion: &mut Criterion) {
    let sessions = limited(1_000);
    let folder = folder(sessions, 16_000);
    let mut group = criterion.benchmark_group("many_files");
    group.throughput(Throughput::Bytes(read(folder.path()) as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("reading the bytes", sessions), |bench| {
        bench.iter(|| read(folder.path()));
    });
    group.bench_function(BenchmarkId::new("parsing the JSON", sessions), |bench| {
        bench.iter(|| parse(folder.path()));
    });
    group.bench_function(BenchmarkId::new("stats", sessions), |bench| {
        bench.iter(|| run("stats", &[folder.path()]));
    });
    group.bench_function(BenchmarkId::new("archive", sessions), |bench| {
        bench.iter_with_large_drop(|| {
            let made = tempfile::tempdir().unwrap();
            run("archive", &[folder.path(), Path::new("--output"), &made.path().join("archive")]);
            made
        });
    });
    group.finish();
}

fn large(criterion: &mut Criterion) {
    let megabytes = limited(from_env("AFTERIMAGE_BENCH_MEGABYTES", 64));
    let folder = folder(megabytes, 1_000_000);
    let mut group = criterion.benchmark_group("large_files");
    group.throughput(Throughput::Bytes(read(folder.path()) as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("reading the bytes", megabytes), |bench| {
        bench.iter(|| read(folder.path()));
    });
    group.bench_function(BenchmarkId::new("parsing the JSON", megabytes), |bench| {
        bench.iter(|| parse(folder.path()));
    });
    group.bench_function(BenchmarkId::new("stats", megabytes), |bench| {
        bench.iter(|| run("stats", &[folder.path()]));
    });
    group.finish();
}

criterion_group!(benches, many, large);
criterion_main!(benches);
