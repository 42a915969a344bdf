//! Megabytes of text counted each second on one core, by `Bpe` and by its peers, in one run.
//!
//! Each argument is a file of texts with a NUL between them: one group. A cold pass has a
//! counter of its own, so that nothing is remembered; a warm one follows it with the same one.
//! `ROUNDS` says how many of both there are, and the best counts. `COUNTERS='o200k Bpe'` leaves
//! out what does not begin with it. `PASSES=2` counts that often and reads no clock, for callgrind.

mod huggingface;

use std::{hint::black_box, io::Write, sync::LazyLock};

use afterimage_tokens::{Bpe, TokenCounter};
use rustix::time::{ClockId, clock_gettime};
use tokenizers::Tokenizer;

type Count = Box<dyn Fn(&str) -> usize>;

/// A name, and what makes a counter that has met nothing yet.
type Peer = (&'static str, fn() -> Count);

const VOCABULARIES: [(&str, [Peer; 5]); 2] = [
    (
        "o200k",
        [
            ("Bpe", || of(Bpe::o200k())),
            ("tiktoken-rs", || {
                Box::new(|text| tiktoken_rs::o200k_base_singleton().count_ordinary(text))
            }),
            ("bpe-openai", || Box::new(|text| bpe_openai::o200k_base().count(text))),
            ("splintr", || splintr("o200k_base")),
            ("tokenizers", || {
                static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(huggingface::o200k);
                Box::new(|text| TOKENIZER.encode_fast(text, false).expect("tokens").len())
            }),
        ],
    ),
    (
        "cl100k",
        [
            ("Bpe", || of(Bpe::cl100k())),
            ("tiktoken-rs", || {
                Box::new(|text| tiktoken_rs::cl100k_base_singleton().count_ordinary(text))
            }),
            ("bpe-openai", || Box::new(|text| bpe_openai::cl100k_base().count(text))),
            ("splintr", || splintr("cl100k_base")),
            ("tokenizers", || {
                static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(huggingface::cl100k);
                Box::new(|text| TOKENIZER.encode_fast(text, false).expect("tokens").len())
            }),
        ],
    ),
];

fn of(counter: Bpe) -> Count {
    Box::new(move |text| counter.count(text))
}

fn splintr(vocabulary: &str) -> Count {
    let tokenizer = splintr::pretrained::from_pretrained(vocabulary).expect("a tokenizer");
    Box::new(move |text| tokenizer.encode(text).len())
}

/// The seconds that this thread had a core, whatever else the machine does.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[inline(never)]
fn count_all(texts: &[&str], count: &Count) -> usize {
    texts.iter().map(|text| count(black_box(text))).sum()
}

/// Counts all texts. The megabytes of a second, and the tokens.
fn pass(texts: &[&str], count: &Count) -> (f64, usize) {
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let start = seconds();
    let tokens = count_all(texts, count);
    (bytes as f64 / (seconds() - start) / 1e6, tokens)
}

/// Counts all texts so many times and reads no clock, for a tool that counts instructions.
fn profile(texts: &[&str], new: fn() -> Count, passes: usize) {
    let count = new();
    let tokens: usize = (0..passes).map(|_| count_all(texts, &count)).sum();
    println!("{tokens} tokens in {passes} passes");
}

/// The best of some rounds: the first pass of a new counter, the second, and the tokens.
fn best(texts: &[&str], new: fn() -> Count, rounds: usize) -> (f64, f64, usize) {
    // Tables that are built at the first use are built before the clock runs.
    new()("The first count.");
    let mut best = (0.0_f64, 0.0_f64, 0);
    for _ in 0..rounds {
        let count = new();
        let (cold, warm) = (pass(texts, &count), pass(texts, &count));
        assert_eq!(cold.1, warm.1);
        best = (best.0.max(cold.0), best.1.max(warm.0), cold.1);
    }
    best
}

fn main() {
    let rounds: usize =
        std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(7);
    let passes: Option<usize> = std::env::var("PASSES").ok().and_then(|passes| passes.parse().ok());
    let only = std::env::var("COUNTERS").unwrap_or_default();
    println!("| texts | bytes | vocabulary | {}", {
        let names = VOCABULARIES[0].1.map(|(name, _)| name);
        names.map(|name| format!("{name} cold | warm | ")).concat()
    });
    for path in std::env::args().skip(1) {
        let all = std::fs::read_to_string(&path).expect("a group is a file of text");
        let texts: Vec<&str> = all.split('\0').collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        for (vocabulary, peers) in VOCABULARIES {
            print!("| {path} | {bytes} | {vocabulary} | ");
            let mut totals = Vec::new();
            for (name, new) in peers {
                if !format!("{vocabulary} {name}").starts_with(&only) {
                    print!("- | - | ");
                    continue;
                }
                if let Some(passes) = passes {
                    profile(&texts, new, passes);
                    continue;
                }
                let (cold, warm, tokens) = best(&texts, new, rounds);
                print!("{cold:.1} | {warm:.1} | ");
                std::io::stdout().flush().expect("standard output");
                totals.push((name, tokens));
            }
            println!();
            let agree = totals.windows(2).all(|pair| pair[0].1 == pair[1].1);
            assert!(agree, "the counters disagree: {totals:?}");
        }
    }
}
