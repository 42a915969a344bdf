//! Appending to a session directory, beside the disk's own write and sync; alone, and as one of 16
//! writers.

use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use afterimage_log::DiskFiles;
use afterimage_timeline::{
    Data, Event, TimelineConfig, TurnRecord,
    session::{SessionDir, SessionOptions, SharedSession},
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const WRITERS: u64 = 16;

fn session(directory: &Path) -> SessionDir {
    let config = TimelineConfig {
        snapshot_interval: 0,
        verify_every_n_turns: 0,
        ..TimelineConfig::default()
    };
    let state = Data::from_iter([("player", Data::from_iter([("location", Data::object())]))]);
    SessionDir::create(
        Arc::new(DiskFiles),
        directory,
        SessionOptions::new("s").config(config),
        state,
    )
    .unwrap()
}

fn turn(n: u64) -> TurnRecord {
    let zone = Data::from(format!("zone {n}").as_str());
    TurnRecord::new("player").with_event(Event::new("move", Data::from_iter([("zone", zone)])))
}

fn append(criterion: &mut Criterion) {
    let scratch = tempfile::tempdir_in(".").unwrap();
    let mut group = criterion.benchmark_group("timeline_append");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let mut dir = session(&scratch.path().join("one"));
    let mut n = 0;
    let mut line = 0;
    group.bench_function("each turn synced", |bench| {
        bench.iter(|| {
            n += 1;
            let pushed = dir.push(turn(n)).unwrap();
            line = pushed.record.to_json().to_string().len() + 18;
        });
    });
    let mut file =
        OpenOptions::new().append(true).create(true).open(scratch.path().join("raw")).unwrap();
    let bytes = vec![b'x'; line.max(700)];
    group.bench_function("the disk's own write and sync", |bench| {
        bench.iter(|| {
            file.write_all(&bytes).unwrap();
            file.sync_data().unwrap();
        });
    });
    let shared = SharedSession::new(session(&scratch.path().join("many")));
    group.bench_function("group commit, 16 writers", |bench| {
        bench.iter_custom(|turns| {
            let (next, start) = (AtomicU64::new(0), Instant::now());
            std::thread::scope(|scope| {
                for _ in 0..WRITERS {
                    scope.spawn(|| {
                        while next.fetch_add(1, Ordering::Relaxed) < turns {
                            shared.push(turn(1)).unwrap();
                        }
                    });
                }
            });
            start.elapsed().max(Duration::from_nanos(1))
        });
    });
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);
