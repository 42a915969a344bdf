//! Capturing histories: with counts that are known, counting each text, and counting each text
//! once. Beside it what the counter costs by itself, so that its share shows; and a plain loop that
//! copies and counts the same texts by four characters a token, beside capturing with these counts.
//!
//! `capture_frames` captures 10,000 frames of tau-bench, each of one facet, beside the loops of
//! `support/loops.rs`. What is kept takes pages from the system there, as in a program that goes on:
//! each time is of a process of its own, which is this program with `AFTERIMAGE_BENCH_ONCE`.

mod support;

use std::{
    hint::black_box,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use afterimage::{
    hud::Hud,
    id::Millis,
    tokens::{Chars4, Memo, TokenCounter, default_counter},
    veil::History,
};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group};
use support::{KnownCounts, Session, loops};

fn capture(criterion: &mut Criterion) {
    let (name, sessions) = support::corpus();
    let known = Hud::new(Arc::new(KnownCounts));
    let histories: Vec<History> =
        sessions.iter().map(|session| captured(&known, session)).collect();
    let snapshots: Vec<_> = histories
        .iter()
        .flat_map(History::frames)
        .filter_map(|frame| frame.rendered_snapshot.clone())
        .collect();
    let texts: Vec<&str> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.chunks())
        .map(afterimage::snapshot::ChunkRef::content)
        .collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let counter = default_counter();

    let mut group = criterion.benchmark_group(format!("capture/{name}-{bytes}-bytes"));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.sample_size(10);
    group.bench_function("known counts", |bench| bench.iter(|| all(&known, &sessions)));
    group.bench_function("counting", |bench| {
        let hud = Hud::new(counter.clone());
        bench.iter(|| all(&hud, &sessions));
    });
    group.bench_function("counting each text once", |bench| {
        bench.iter(|| all(&Hud::new(Arc::new(Memo::new(counter.clone()))), &sessions));
    });
    group.bench_function("the counter alone", |bench| {
        bench.iter(|| texts.iter().map(|text| counter.count(black_box(text))).sum::<usize>());
    });
    group.bench_function("estimating", |bench| {
        let hud = Hud::new(Arc::new(Chars4));
        bench.iter(|| all(&hud, &sessions));
    });
    group.bench_function("a plain loop that estimates", |bench| {
        bench.iter(|| plain(black_box(&texts)));
    });
    group.finish();
}

/// Copies each text, looks for `<`, counts it, and keeps its range.
fn plain(texts: &[&str]) -> usize {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for text in texts {
        let start = all.len();
        let has_tag = text.contains('<');
        all.push_str(text);
        kept.push((start, all.len(), Chars4.count(text), has_tag));
    }
    black_box(&all).len() + black_box(&kept).len()
}

fn all(hud: &Hud, sessions: &[Session]) -> usize {
    sessions.iter().map(|session| captured(hud, black_box(session)).frames().len()).sum()
}

fn captured(hud: &Hud, session: &Session) -> History {
    let mut history = History::new();
    for (frame, _) in &session.frames {
        hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
    }
    history
}

const FRAMES: usize = 10_000;

const ONCE: &str = "AFTERIMAGE_BENCH_ONCE";

const WAYS: [&str; 4] =
    ["plain loop", "plain loop over frames", "capture", "capture, with its archive"];

fn capture_frames(criterion: &mut Criterion) {
    let (name, texts) = support::tau_bench(FRAMES);
    let bytes: usize = texts.iter().map(String::len).sum();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), texts.join("\0")).unwrap();
    let mut group = criterion.benchmark_group(format!("capture_frames/{name}-{bytes}-bytes"));
    group.throughput(Throughput::Elements(FRAMES as u64));
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    for way in WAYS {
        group.bench_function(BenchmarkId::new(way, FRAMES), |bench| {
            bench.iter_custom(|times| (0..times).map(|_| in_a_process(way, file.path())).sum());
        });
    }
    group.finish();
}

fn in_a_process(way: &str, texts: &Path) -> Duration {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg(texts).env(ONCE, way).output().unwrap();
    Duration::from_nanos(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

/// Says how long one way takes over the texts of a file, in nanoseconds.
fn once(way: &str) {
    let path = std::env::args_os().nth(1).unwrap();
    let texts = std::fs::read_to_string(path).unwrap();
    let texts: Vec<String> = texts.split('\0').map(str::to_owned).collect();
    let (ids, frames) = (loops::ids(&texts), loops::frames(&texts));
    let time = match way {
        "plain loop" => timed(|| loops::plain_loop(black_box(&texts), &ids)),
        "plain loop over frames" => timed(|| loops::plain_loop_over_frames(frames)),
        "capture" => timed(|| loops::captured(frames)),
        _ => timed(|| loops::captured(frames).archive().unwrap()),
    };
    println!("{}", time.as_nanos());
}

/// How long it takes to make something, and not to drop it.
fn timed<T>(make: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let made = black_box(make());
    let time = start.elapsed();
    drop(made);
    time
}

criterion_group!(benches, capture, capture_frames);

fn main() {
    if let Ok(way) = std::env::var(ONCE) {
        return once(&way);
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
