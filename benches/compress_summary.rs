//! A working summary without a model, of a history of 100,000 tokens: by the exact counter, as a
//! plan asks for it, at ten and at twenty tokens for one. Beside it, counting the text once.
//!
//! The history is made of recorded sessions, one after the other, where recordings are there.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::{hint::black_box, sync::Arc};

use afterimage::{
    compress::{CompressionJob, Engine, OutlineEngine, Passage},
    hud::{Hud, NativeFormat},
    id::{FrameSeq, Millis, Role},
    tokens::{Memo, TokenCounter, default_counter},
    veil::History,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const TOKENS: u64 = 100_000;

/// Messages of [`TOKENS`] tokens, but for the operator's.
fn passages(counter: &Arc<dyn TokenCounter>) -> Vec<Passage> {
    let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
    let (mut passages, mut tokens) = (Vec::new(), 0);
    let (_, sessions) = support::corpus();
    for session in sessions {
        let mut history = History::new();
        for (frame, _) in session.frames {
            let (role, source) = (hud.role_of(&frame.source), Some(frame.source.clone()));
            let Ok(frame) = hud.capture(&mut history, frame, Millis::new(0)) else { break };
            let snapshot = frame.rendered_snapshot.clone().unwrap();
            if role == Role::System || !snapshot.has_content() {
                continue;
            }
            tokens += snapshot.total_tokens();
            let seq = FrameSeq::new(passages.len() as u64);
            passages.push(Passage { source, ..Passage::new(seq, seq, role, snapshot) });
            if tokens >= TOKENS {
                return passages;
            }
        }
    }
    passages
}

fn benches(c: &mut Criterion) {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let passages = passages(&counter);
    let mut group = c.benchmark_group("compress_summary");
    group.sample_size(20);
    for ratio in [10, 20] {
        let mut job = CompressionJob::new(passages.clone(), 0);
        job.token_limit = job.original_tokens / ratio;
        // As in a session, where the counter has seen the text; and with one that has seen nothing.
        group.bench_function(format!("{}/{ratio}:1/warm", job.original_tokens), |b| {
            b.iter(|| OutlineEngine.summarize(black_box(&job), &*counter).unwrap());
        });
        group.bench_function(format!("{}/{ratio}:1/cold", job.original_tokens), |b| {
            let summarize = |exact: Arc<dyn TokenCounter>| {
                OutlineEngine.summarize(black_box(&job), &*exact).unwrap()
            };
            b.iter_batched(default_counter, summarize, BatchSize::PerIteration);
        });
    }
    let text = CompressionJob::new(passages, 0).text();
    let exact = default_counter();
    group.bench_function("count the text/warm", |b| b.iter(|| exact.count(black_box(&text))));
    group.bench_function("count the text/cold", |b| {
        let count = |exact: Arc<dyn TokenCounter>| exact.count(black_box(&text));
        b.iter_batched(default_counter, count, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(summary, benches);
criterion_main!(summary);
