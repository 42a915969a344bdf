//! Writing a snapshot of 190 KB to a server, beside putting the same bytes into its bucket.
//!
//! To be under 10 ms at the median.
#![allow(missing_docs)]

#[path = "support/journal.rs"]
mod journal;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use journal::{NOW, Work, fill, session};

const BYTES: usize = 190_000;

/// A state of 190 KB as JSON: of words, or of what does not compress.
fn state(is_noise: bool) -> Work {
    let mut at = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        at ^= at << 13;
        at ^= at >> 7;
        at ^= at << 17;
        at
    };
    let words = ["build", "the", "parser", "tests", "fail", "on", "line", "module", "note", "task"];
    let mut work = Work::default();
    while serde_json::to_vec(&work).unwrap().len() < BYTES {
        let text = (0..100).map(|_| {
            let next = next();
            if is_noise {
                char::from(b'0' + (next % 75) as u8).to_string().replace('\\', "/")
            } else {
                format!("{} ", words[(next % 10) as usize])
            }
        });
        work.tasks.push((work.tasks.len() as u64, text.collect()));
    }
    work
}

fn write(criterion: &mut Criterion) {
    for sync in ["", "sync_interval: always"] {
        let Some((runtime, server, journal)) = journal::journal(sync) else { return };
        let session = session("a");
        runtime.block_on(fill(&journal, &[(session.clone(), 1)]));
        let context = runtime.block_on(async {
            async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap())
        });
        let bucket = runtime.block_on(context.get_key_value("afterimage_snapshots")).unwrap();
        let name =
            if sync.is_empty() { "journal_snapshot" } else { "journal_snapshot/sync always" };
        let mut group = criterion.benchmark_group(name);
        for (kind, is_noise) in [("words", false), ("noise", true)] {
            let state = state(is_noise);
            let bytes = serde_json::to_vec(&state).unwrap();
            group.bench_function(BenchmarkId::new("write", kind), |bench| {
                bench.iter(|| {
                    let write = journal.write_snapshot(&session, &state, 1, NOW);
                    runtime.block_on(write).unwrap()
                });
            });
            group.bench_function(BenchmarkId::new("put the state as it is", kind), |bench| {
                bench.iter(|| {
                    let put = bucket.put("bare", bytes.clone().into());
                    runtime.block_on(put).unwrap()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, write);
criterion_main!(benches);
