//! Listing sessions: the first pass and the index, beside reading the same bytes. The first pass is to
//! cost a small multiple of reading; the list from the index is to take less than two seconds for 1,000
//! sessions.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

use std::{fs, hint::black_box, path::Path, process::Command};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A session of so many answers, with reported usage.
fn session(name: u64, answers: u64) -> String {
    let at = "2026-11-03T08:00:00.000Z";
    let mut lines = vec![format!(
        r#"{{"type":"session","id":"s{name}","timestamp":"{at}","cwd":"/w/{name}"}}"#
    )];
    for answer in 0..answers {
        let asked = format!(r#"{{"role":"user","content":"Grind sack {answer}."}}"#);
        let said = format!(
            r#"{{"role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{}"}}],"usage":{{"input":40,"cacheRead":{answer},"cacheWrite":9,"output":20}}}}"#,
            "It is ground. ".repeat(40)
        );
        for message in [asked, said] {
            lines.push(format!(r#"{{"type":"message","timestamp":"{at}","message":{message}}}"#));
        }
    }
    lines.join("\n")
}

fn list(folder: &Path, cache: &Path) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afterimage"));
    command.args(["sessions", "--json"]).arg(folder).env("AFTERIMAGE_CACHE", cache);
    command.output().unwrap().stdout.len()
}

fn sessions(criterion: &mut Criterion) {
    for count in [100_u64, 1_000] {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = 0;
        for name in 0..count {
            let text = session(name, 30);
            bytes += text.len() as u64;
            fs::write(folder.path().join(format!("{name}.jsonl")), text).unwrap();
        }
        let mut group = criterion.benchmark_group(format!("sessions/{bytes}-bytes"));
        group.throughput(Throughput::Bytes(bytes)).sample_size(10);
        group.bench_function(BenchmarkId::new("reading the bytes", count), |bench| {
            bench.iter(|| {
                let files = fs::read_dir(folder.path()).unwrap();
                files
                    .map(|file| black_box(fs::read(file.unwrap().path()).unwrap()).len())
                    .sum::<usize>()
            });
        });
        group.bench_function(BenchmarkId::new("cold", count), |bench| {
            bench.iter_with_large_drop(|| {
                let cache = tempfile::tempdir().unwrap();
                assert!(list(folder.path(), cache.path()) > 0);
                cache
            });
        });
        let cache = tempfile::tempdir().unwrap();
        list(folder.path(), cache.path());
        group.bench_function(BenchmarkId::new("warm", count), |bench| {
            bench.iter(|| assert!(list(folder.path(), cache.path()) > 0));
        });
        group.finish();
    }
}

criterion_group!(benches, sessions);
criterion_main!(benches);
