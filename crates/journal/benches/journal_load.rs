//! Loading a state from a snapshot and 100 newer events, beside replaying all events, from a server.
//!
//! Events have 500 bytes, the state 100 tasks. The snapshot is to be at least ten times as fast at
//! 10,000 events, and as fast however long the session is.
#![allow(missing_docs)]

#[path = "support/journal.rs"]
mod journal;

use std::hint::black_box;

use afterimage_journal::LoadedState;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use journal::{NOW, Work, fill, limited, session};

const NEWER: u64 = 100;

fn load(criterion: &mut Criterion) {
    let Some((runtime, _server, journal)) = journal::journal("") else { return };
    let mut group = criterion.benchmark_group("journal_load");
    group.sample_size(20);
    let mut counts = [1_000, 10_000, 50_000].map(limited).to_vec();
    counts.dedup();
    for count in counts {
        let (with, without) = (session(&format!("with {count}")), session(&format!("all {count}")));
        runtime.block_on(async {
            fill(&journal, &[(with.clone(), count - NEWER), (without.clone(), count)]).await;
            let loaded = journal.load::<Work>(&with).await.unwrap();
            let state = &loaded.state;
            journal.write_snapshot(&with, state, loaded.sequence, NOW).await.unwrap();
            for n in count - NEWER..count {
                let expected = afterimage_journal::Expected::Last(n);
                journal.append(&with, expected, journal::event(n), NOW).await.unwrap();
            }
        });
        for (name, of, events) in
            [("snapshot and 100 events", &with, NEWER), ("all events", &without, count)]
        {
            group.bench_function(BenchmarkId::new(name, count), |bench| {
                bench.iter(|| {
                    let loaded: LoadedState<Work> = runtime.block_on(journal.load(of)).unwrap();
                    assert_eq!((loaded.sequence, loaded.report.events), (count, events));
                    black_box(loaded)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, load);
criterion_main!(benches);
