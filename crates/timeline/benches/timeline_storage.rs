//! What a session directory takes on disk, beside the figures of the document, and beside full
//! states of recorded games and traces; and how long it takes to get a state back.
//!
//! `AFTERIMAGE_BENCH_TURNS` limits the turns of the generated world.

use afterimage_testkit::data;
#[path = "../tests/it/support/games.rs"]
mod games;
#[path = "../tests/it/support/world.rs"]
mod world;

use std::{hint::black_box, path::Path, sync::Arc, time::Instant};

use afterimage_log::DiskFiles;
use afterimage_timeline::{
    Applier, Targets, TurnRecord, diff,
    session::{Durability, SessionDir, SessionOptions},
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const MEGABYTE: f64 = 1e6;
/// Turns, and the megabytes that the document gives for deltas and a snapshot every 50 turns.
const DOCUMENT: [(u64, f64); 3] = [(100, 2.0), (1_000, 15.0), (10_000, 120.0)];

fn options(id: &str) -> SessionOptions {
    SessionOptions::new(id).durability(Durability::Batch(50))
}

fn generated(directory: &Path, turns: u64) -> SessionDir {
    let mut state = world::world();
    let mut session =
        SessionDir::create(Arc::new(DiskFiles), directory, options("world"), state.clone())
            .unwrap();
    for n in 1..=turns {
        let deltas = world::turn(&mut state, n);
        session.push(TurnRecord::new("player").with_deltas(deltas)).unwrap();
    }
    assert_eq!(session.timeline().state(), &state);
    session.close().unwrap();
    SessionDir::open(Arc::new(DiskFiles), directory, options("world")).unwrap()
}

fn storage(criterion: &mut Criterion) {
    let most = std::env::var("AFTERIMAGE_BENCH_TURNS").ok().and_then(|text| text.parse().ok());
    let scratch = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("timeline_state_at");
    group.sample_size(10);
    for (turns, document) in
        DOCUMENT.into_iter().filter(|(turns, _)| most.is_none_or(|most| *turns <= most))
    {
        let session = generated(&scratch.path().join(turns.to_string()), turns);
        let [in_turns, in_snapshots, in_indexes] = session.stored_bytes().unwrap();
        let stored = (in_turns + in_snapshots + in_indexes) as f64 / MEGABYTE;
        println!(
            "{turns} turns of a world of {} KB: {stored:.2} MB stored (turns {:.2}, snapshots {:.2}, indexes {:.2}); the document: {document} MB, a fifth of it {:.1} MB",
            session.timeline().state().to_string().len() / 1000,
            in_turns as f64 / MEGABYTE,
            in_snapshots as f64 / MEGABYTE,
            in_indexes as f64 / MEGABYTE,
            document / 5.0
        );
        let mut at = 0;
        group.bench_function(BenchmarkId::new("any turn of a directory", turns), |bench| {
            bench.iter(|| {
                at = (at * 7919 + 4241) % turns;
                black_box(session.timeline().state_at(at).unwrap())
            });
        });
    }
    group.finish();
}

fn recorded(_: &mut Criterion) {
    let Some(folder) = data::recordings("E-state") else { return };
    let most = std::env::var("AFTERIMAGE_BENCH_TURNS").ok().and_then(|text| text.parse().ok());
    for (name, member) in
        [("sandbox-replay", "turns"), ("diplomacy", "phases"), ("editing-traces", "")]
    {
        for path in data::files_under(&folder.join(name)) {
            let states = match member {
                "" => games::trace(&path, most.unwrap_or(usize::MAX)),
                member => games::game(&path, member),
            };
            rebuilt(&states, &path);
        }
    }
}

/// Stores every state, rebuilds each exactly, and prints what that takes.
fn rebuilt(recorded: &games::ForeignTimeline, path: &Path) {
    let begun = Instant::now();
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("game");
    let first = recorded.states().next().unwrap();
    let mut session =
        SessionDir::create(Arc::new(DiskFiles), &directory, options("game"), first.clone())
            .unwrap();
    let mut full = first.to_string().len();
    for state in recorded.states().skip(1) {
        full += state.to_string().len();
        let deltas = diff(session.timeline().state(), &state, session.timeline().targets());
        session.push(TurnRecord::new("game").with_deltas(deltas)).unwrap();
    }
    session.close().unwrap();
    let session = SessionDir::open(Arc::new(DiskFiles), &directory, options("game")).unwrap();
    let (targets, mut state, mut turns) = (Targets::default(), first, 0);
    for expected in recorded.states().skip(1) {
        turns += 1;
        let record = session.timeline().turn(turns).unwrap();
        Applier::strict(&targets).apply_all(&mut state, &record.deltas).unwrap();
        assert_eq!(state, expected, "step {turns}");
    }
    assert_eq!(session.timeline().last_turn(), turns);
    let stored = session.stored_bytes().unwrap();
    let plain: u64 = std::fs::read_dir(directory.join("turns"))
        .unwrap()
        .map(Result::unwrap)
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
        .map(|file| file.metadata().unwrap().len())
        .sum();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "{name}: {} states, {} bytes stored (turns, snapshots, indexes: {stored:?}; {plain} of them plain, in the file that is appended to), {full} bytes as full states, every state rebuilt, in {:.1} s",
        turns + 1,
        stored.iter().sum::<u64>(),
        begun.elapsed().as_secs_f64()
    );
}

criterion_group!(benches, storage, recorded);
criterion_main!(benches);
