//! Reading transcripts into frames, beside parsing the same JSON with `serde_json`.

mod support;

use std::hint::black_box;

use afterimage::transcript::Transcript;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn import(criterion: &mut Criterion) {
    let mut files: Vec<Vec<u8>> =
        support::recordings().iter().map(|path| std::fs::read(path).unwrap()).collect();
    let name = if files.is_empty() { "generated" } else { "recorded" };
    if files.is_empty() {
        files.push(support::generated_lines(2_000));
    }
    let bytes: usize = files.iter().map(Vec::len).sum();
    let mut group = criterion.benchmark_group(format!("import/{name}-{bytes}-bytes"));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.sample_size(20);
    group.bench_function("serde_json values", |bench| {
        bench.iter(|| files.iter().map(|file| values(black_box(file))).sum::<usize>());
    });
    group.bench_function("frames", |bench| {
        bench.iter(|| files.iter().map(|file| frames(black_box(file))).sum::<usize>());
    });
    group.finish();
}

fn frames(file: &[u8]) -> usize {
    Transcript::new(file)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|record| record.frame.ops.len())
        .sum()
}

fn values(file: &[u8]) -> usize {
    serde_json::Deserializer::from_slice(file)
        .into_iter::<serde_json::Value>()
        .filter_map(Result::ok)
        .count()
}

criterion_group!(benches, import);
criterion_main!(benches);
