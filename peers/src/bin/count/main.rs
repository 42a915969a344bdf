//! Megabytes of text counted each second on one core, by `Bpe` and by its peers, in one run.
//!
//! Each argument is a file of texts with a NUL between them: one group. A cold pass has a
//! counter of its own, so that nothing is remembered; a warm one follows it with the same one.

mod huggingface;

use std::{hint::black_box, sync::LazyLock};

use afterimage_tokens::{Bpe, TokenCounter};
use rustix::time::{ClockId, clock_gettime};

type Count = Box<dyn Fn(&str) -> usize>;

/// Each makes a counter that has met nothing yet.
fn counters() -> [(&'static str, fn() -> Count); 6] {
    [
        ("o200k", || {
            let counter = Bpe::o200k();
            Box::new(move |text| counter.count(text))
        }),
        ("cl100k", || {
            let counter = Bpe::cl100k();
            Box::new(move |text| counter.count(text))
        }),
        ("tiktoken-rs o200k", || {
            Box::new(|text| tiktoken_rs::o200k_base_singleton().count_ordinary(text))
        }),
        ("bpe-openai o200k", || Box::new(|text| bpe_openai::o200k_base().count(text))),
        ("splintr o200k", || {
            let tokenizer =
                splintr::pretrained::from_pretrained("o200k_base").expect("a tokenizer");
            Box::new(move |text| tokenizer.encode(text).len())
        }),
        ("tokenizers o200k", || {
            static TOKENIZER: LazyLock<tokenizers::Tokenizer> = LazyLock::new(huggingface::o200k);
            Box::new(|text| TOKENIZER.encode_fast(text, false).expect("tokens").len())
        }),
    ]
}

/// The seconds that this thread had a core, whatever else the machine does.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let only = std::env::var("COUNTERS").unwrap_or_default();
    let rounds: usize =
        std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(7);
    for path in std::env::args().skip(1) {
        let all = std::fs::read_to_string(&path).expect("a group is a file of text");
        let texts: Vec<&str> = all.split('\0').collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        println!("{path}: {bytes} bytes, {} texts", texts.len());
        let mut totals = Vec::new();
        for (name, new) in counters() {
            if !name.starts_with(&only) {
                continue;
            }
            // Tables that are built at the first use are built before the clock runs.
            new()("The first count.");
            let pass = |count: &Count| {
                let start = seconds();
                let tokens: usize = texts.iter().map(|text| count(black_box(text))).sum();
                (bytes as f64 / (seconds() - start) / 1e6, tokens)
            };
            let mut best = (0.0_f64, 0.0_f64);
            let mut tokens = 0;
            for _ in 0..rounds {
                let count = new();
                let (cold, warm) = (pass(&count), pass(&count));
                best = (best.0.max(cold.0), best.1.max(warm.0));
                tokens = cold.1;
                assert_eq!(cold.1, warm.1);
            }
            println!(
                "  {name:20} cold {:7.1} MB/s, warm {:7.1} MB/s, {tokens} tokens",
                best.0, best.1
            );
            if name.ends_with("o200k") {
                totals.push(tokens);
            }
        }
        assert!(totals.windows(2).all(|pair| pair[0] == pair[1]), "the counters disagree");
    }
}
