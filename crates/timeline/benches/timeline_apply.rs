//! Deltas on a state of 500 KB: replayed, with a snapshot after each, and beside that a deep clone
//! and the crate `json-patch`.

#[path = "../tests/it/support/world.rs"]
mod world;

use std::hint::black_box;

use afterimage_timeline::{Applier, Data, Delta, Targets, to_json_patch};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const DELTAS: u64 = 10_000;

fn log(simple: bool) -> (Data, Vec<Delta>) {
    let before = world::world();
    let targets = Targets::default();
    let mut state = before.clone();
    let mut deltas = Vec::new();
    while (deltas.len() as u64) < DELTAS {
        let n = deltas.len() as u64;
        if simple {
            let delta = world::simple(&state, n);
            Applier::strict(&targets).apply(&mut state, &delta).unwrap();
            deltas.push(delta);
        } else {
            deltas.extend(world::turn(&mut state, n));
        }
    }
    deltas.truncate(DELTAS as usize);
    (before, deltas)
}

/// A copy that shares nothing, as one that a program makes for itself.
fn unshared(state: &Data) -> Data {
    Data::from(state.to_json())
}

fn apply(criterion: &mut Criterion) {
    let targets = Targets::default();
    let (before, deltas) = log(true);
    let size = before.to_string().len();
    let mut group = criterion.benchmark_group(format!("timeline_apply/{} KB", size / 1000));
    group.throughput(Throughput::Elements(DELTAS));
    group.sample_size(10);
    let applier = Applier::strict(&targets);
    for (name, (before, deltas)) in
        [("simple", (before.clone(), deltas.clone())), ("mixed", log(false))]
    {
        group.bench_function(BenchmarkId::new(format!("{name} deltas"), DELTAS), |bench| {
            let make = || unshared(&before);
            bench.iter_batched(
                make,
                |mut state| {
                    for delta in &deltas {
                        applier.apply(&mut state, black_box(delta)).unwrap();
                    }
                    state
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.bench_function(BenchmarkId::new("a snapshot after each", DELTAS), |bench| {
        bench.iter_batched(
            || unshared(&before),
            |mut state| {
                let mut snapshots = Vec::with_capacity(deltas.len());
                for delta in &deltas {
                    applier.apply(&mut state, black_box(delta)).unwrap();
                    snapshots.push(state.clone());
                }
                (state, snapshots)
            },
            BatchSize::PerIteration,
        );
    });
    let patches: Vec<json_patch::Patch> = deltas
        .iter()
        .map(|delta| {
            let patch = to_json_patch(std::slice::from_ref(delta), &targets).unwrap();
            serde_json::from_value(serde_json::to_value(patch).unwrap()).unwrap()
        })
        .collect();
    let document = serde_json::to_value(&before).unwrap();
    group.bench_function(BenchmarkId::new("json-patch", DELTAS), |bench| {
        bench.iter_batched(
            || document.clone(),
            |mut document| {
                for patch in &patches {
                    json_patch::patch(&mut document, black_box(patch)).unwrap();
                }
                document
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn snapshot(criterion: &mut Criterion) {
    let targets = Targets::default();
    let applier = Applier::strict(&targets);
    let (before, deltas) = log(true);
    let mut group = criterion.benchmark_group("timeline_snapshot");
    group.bench_function("a snapshot and the write after it", |bench| {
        let mut state = before.clone();
        let mut kept = Vec::new();
        let mut n = 0;
        bench.iter(|| {
            if n == deltas.len() {
                // From the beginning, with a state that nobody shares.
                (state, n) = (before.clone(), 0);
                kept.clear();
            }
            kept.push(state.clone());
            applier.apply(&mut state, black_box(&deltas[n])).unwrap();
            n += 1;
        });
    });
    let document = serde_json::to_value(&before).unwrap();
    group.bench_function("a deep clone", |bench| bench.iter(|| black_box(document.clone())));
    group.finish();
}

criterion_group!(benches, apply, snapshot);
criterion_main!(benches);
