//! Exact counts of `o200k_base` beside those of other crates, which must agree on each text.
//!
//! The texts are those of the files that `TEXTS` names, with a NUL between them and a colon between
//! the files; else those of `docs/`. `cold` has a new counter for each pass.

use std::{fs, hint::black_box, path::Path, time::Duration};

use afterimage_tokens::{Bpe, TokenCounter};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// The largest part of a file that is counted, in bytes.
const MOST: usize = 400_000;

fn groups() -> Vec<(String, Vec<String>)> {
    let named = std::env::var("TEXTS").unwrap_or_else(|_| {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        ["guide.md", "FORMAT.md"].map(|name| docs.join(name).display().to_string()).join(":")
    });
    let group = |path: &str| {
        let all = fs::read_to_string(path).expect("a file of text");
        let mut bytes = 0;
        let texts = all.split('\0').take_while(|text| {
            bytes += text.len();
            bytes <= MOST
        });
        let name = Path::new(path).file_stem().expect("a name").display().to_string();
        (name, texts.map(ToOwned::to_owned).collect())
    };
    named.split(':').map(group).collect()
}

fn tokens(c: &mut Criterion) {
    let splintr = splintr::from_pretrained("o200k_base").expect("its vocabulary");
    let warm = Bpe::o200k();
    type Count<'a> = (&'a str, Box<dyn Fn(&str) -> usize + 'a>);
    let counters: [Count<'_>; 4] = [
        ("Bpe warm", Box::new(|text| warm.count(text))),
        ("tiktoken-rs", Box::new(|text| tiktoken_rs::o200k_base_singleton().count_ordinary(text))),
        ("bpe-openai", Box::new(|text| bpe_openai::o200k_base().count(text))),
        ("splintr", Box::new(|text| splintr.encode_ordinary(text).len())),
    ];
    for (name, texts) in groups() {
        let bytes: usize = texts.iter().map(String::len).sum();
        let mut group = c.benchmark_group(format!("tokens_{name}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("Bpe cold", bytes), |b| {
            b.iter(|| {
                let counter = Bpe::o200k();
                texts.iter().map(|text| counter.count(black_box(text))).sum::<usize>()
            });
        });
        for (counter, count) in &counters {
            let differ = texts.iter().filter(|text| count(text) != warm.count(text)).count();
            if differ > 0 {
                println!("{counter} counts {differ} of {} texts otherwise", texts.len());
            }
            group.bench_function(BenchmarkId::new(*counter, bytes), |b| {
                b.iter(|| texts.iter().map(|text| count(black_box(text))).sum::<usize>());
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = tokens
}
criterion_main!(benches);
