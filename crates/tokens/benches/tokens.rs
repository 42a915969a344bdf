//! Token counts: the exact counters beside plain `tiktoken-rs`, and a memo's hits and misses.
//!
//! `count_groups` counts chat and code of the recordings, and text in eight languages. A cold pass
//! has a counter of its own, which remembers nothing; a warm one has met the texts before. What a
//! group holds comes once. `AFTERIMAGE_BENCH_TEXTS` names a folder with other groups: each file has
//! texts with a NUL between them, as the scripts in `peers/` write them.

use std::{collections::BTreeSet, hint::black_box, path::Path, time::Duration};

use afterimage_testkit::data;
use afterimage_tokens::{Bpe, CountedText, Memo, TokenCounter};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use tiktoken_rs::CoreBPE;

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
        ("Bpe", Box::new(|text| Bpe::o200k().count(text))),
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

/// The texts of each group: its name, and none of them twice.
fn groups() -> Vec<(String, Vec<String>)> {
    if let Some(folder) = std::env::var_os("AFTERIMAGE_BENCH_TEXTS") {
        return data::files_under(Path::new(&folder)).iter().map(|path| of_file(path)).collect();
    }
    let languages = (0..2_000).flat_map(|number| {
        LANGUAGES.map(|text| text.replace("{}", &(number * 7_919_u32).to_string()))
    });
    let recorded = ["A-openai-chat/tau-bench", "D-swe-agent/mini"]
        .map(|group| (group.replace('/', "-"), of_recordings(&data::beside("data").join(group))));
    let generated = [
        ("generated-chat".to_owned(), chunks()),
        ("generated-languages".to_owned(), languages.collect()),
    ];
    recorded.into_iter().chain(generated).filter(|(_, texts)| !texts.is_empty()).collect()
}

/// What one says of a number in eight languages.
const LANGUAGES: [&str; 8] = [
    "Der Speicher {} ist voll, und die Übertragung wurde abgebrochen.",
    "La mémoire {} est pleine ; le transfert a été interrompu.",
    "Память {} заполнена, передача данных была прервана.",
    "メモリ {} がいっぱいになったため、転送は中断されました。",
    "内存 {} 已满，传输被中断。",
    "메모리 {}이(가) 가득 차서 전송이 중단되었습니다.",
    "الذاكرة {} ممتلئة، وقد توقف النقل.",
    "मेमोरी {} भर गई है, इसलिए स्थानांतरण रोक दिया गया।",
];

fn of_file(path: &Path) -> (String, Vec<String>) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let all = std::fs::read_to_string(path).unwrap();
    (name, all.split('\0').map(str::to_owned).collect())
}

/// The contents of all messages, and the arguments of their calls.
fn of_recordings(folder: &Path) -> Vec<String> {
    let mut texts = BTreeSet::new();
    let files = if folder.is_dir() { data::files_under(folder) } else { Vec::new() };
    for file in files {
        let all: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        collect(&all, &mut texts);
    }
    texts.into_iter().collect()
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if matches!(&**name, "content" | "text" | "arguments") => {
                        texts.insert(text.clone());
                    }
                    _ => collect(value, texts),
                }
            }
        }
        _ => {}
    }
}

fn count_groups(c: &mut Criterion) {
    type Vocabulary = (&'static str, fn() -> Bpe, fn() -> &'static CoreBPE);
    let vocabularies: [Vocabulary; 2] = [
        ("o200k", Bpe::o200k, tiktoken_rs::o200k_base_singleton),
        ("cl100k", Bpe::cl100k, tiktoken_rs::cl100k_base_singleton),
    ];
    for (name, texts) in groups() {
        let bytes: usize = texts.iter().map(String::len).sum();
        let mut group = c.benchmark_group(format!("count_groups/{name}-{bytes}-bytes"));
        group.throughput(Throughput::Bytes(bytes as u64));
        for (vocabulary, new, reference) in vocabularies {
            let reference = reference();
            let count = |counter: &Bpe| -> usize {
                texts.iter().map(|text| counter.count(black_box(text))).sum()
            };
            let plain = || -> usize {
                texts.iter().map(|text| reference.count_ordinary(black_box(text))).sum()
            };
            let warm = new();
            assert_eq!(count(&warm), plain(), "{name} in {vocabulary}");
            group.bench_function(BenchmarkId::new("tiktoken-rs", vocabulary), |b| b.iter(plain));
            group.bench_function(BenchmarkId::new("Bpe, cold", vocabulary), |b| {
                b.iter_batched_ref(new, |counter| count(counter), BatchSize::PerIteration);
            });
            group.bench_function(BenchmarkId::new("Bpe, warm", vocabulary), |b| {
                b.iter(|| count(&warm));
            });
        }
        group.finish();
    }
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

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = count, count_groups, reuse
}
criterion_main!(benches);
