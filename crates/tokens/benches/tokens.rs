//! Token counts: the exact counters beside plain `tiktoken-rs`, and a memo's hits and misses.

use std::{hint::black_box, time::Duration};

use afterimage_tokens::{CountedText, Memo, TokenCounter};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Chunks as a customer-service agent's transcript has them: speech, a call, its result.
fn chunks() -> Vec<String> {
    (0..200)
        .flat_map(|id| {
            [
                format!("Hi, I'd like to change the flight in my reservation EHGLP{id}, please. "),
                "</my_turn>\n\n<tool_call name=\"get_reservation_details\">".to_owned(),
                format!("{{\"reservation_id\": \"EHGLP{id}\", \"cabin\": \"basic_economy\"}}"),
                format!(
                    "{{\"user_id\": \"emma_kim_{id}\", \"origin\": \"EWR\", \"destination\": \"MIA\", \
                     \"flights\": [{{\"flight_number\": \"HAT{id}\", \"date\": \"2024-05-21\", \
                     \"price\": 183.5}}], \"payment_history\": [{{\"payment_id\": \
                     \"credit_card_5832574\", \"amount\": 192}}], \"created_at\": \
                     \"2024-05-02T03:10:19\"}}"
                ),
                "It's a basic economy ticket, so it can't be modified.\n\nIs there anything else \
                 I can help you with?"
                    .to_owned(),
            ]
        })
        .collect()
}

type Counter = (&'static str, Box<dyn Fn(&str) -> usize>);

fn counters() -> Vec<Counter> {
    vec![
        ("tiktoken-rs", Box::new(|text| tiktoken_rs::o200k_base_singleton().count_ordinary(text))),
        ("Bpe", Box::new(|text| afterimage_tokens::Bpe::o200k().count(text))),
    ]
}

fn count(c: &mut Criterion) {
    let chunks = chunks();
    let bytes = chunks.iter().map(String::len).sum::<usize>();
    let mut group = c.benchmark_group("count_chunks");
    group.throughput(Throughput::Bytes(bytes as u64));
    for (name, count) in counters() {
        group.bench_function(BenchmarkId::new(name, bytes), |b| {
            b.iter(|| chunks.iter().map(|chunk| count(black_box(chunk))).sum::<usize>());
        });
    }
    group.finish();

    let mut group = c.benchmark_group("count_hostile_run");
    for (kind, unit) in [("spaces", " "), ("letters", "a"), ("dashes", "-"), ("ideographs", "漢")]
    {
        let text = unit.repeat(100_000);
        group.throughput(Throughput::Bytes(text.len() as u64));
        for (name, count) in counters() {
            group.bench_function(BenchmarkId::new(format!("{kind}/{name}"), text.len()), |b| {
                b.iter(|| count(black_box(&text)));
            });
        }
    }
    group.finish();
}

fn reuse(c: &mut Criterion) {
    let counter = afterimage_tokens::default_counter();
    let chunks = chunks();
    let bytes = chunks.iter().map(String::len).sum::<usize>();
    let parts: Vec<_> =
        chunks.iter().map(|text| CountedText { text, tokens: counter.count(text) }).collect();

    let mut group = c.benchmark_group("memo");
    group.throughput(Throughput::Bytes(bytes as u64));
    let full = Memo::new(counter.clone());
    for (name, fresh) in [("hit", false), ("miss", true)] {
        group.bench_function(BenchmarkId::new(name, bytes), |b| {
            b.iter_batched(
                || fresh.then(|| Memo::new(counter.clone())),
                |memo| {
                    let memo = memo.as_ref().unwrap_or(&full);
                    chunks.iter().map(|chunk| memo.count(black_box(chunk))).sum::<usize>()
                },
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();

    let mut group = c.benchmark_group("joined");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(BenchmarkId::new("count_joined", bytes), |b| {
        b.iter(|| counter.count_joined(black_box(&parts)));
    });
    group.bench_function(BenchmarkId::new("count_of_whole", bytes), |b| {
        b.iter(|| counter.count(&black_box(&chunks).concat()));
    });
    group.finish();
}

#[cfg(not(feature = "bpe"))]
fn reuse(_: &mut Criterion) {}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = count, reuse
}
criterion_main!(benches);
