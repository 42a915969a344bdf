//! How many of the identifiers that a session names again survive its compression.
//!
//! `cargo bench --bench compress_survival` prints a table per ratio; `-- --summaries` prints what
//! the engine wrote too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

#[path = "../tests/support/survival.rs"]
mod survival;

use std::{path::Path, sync::Arc};

use afterimage::{
    compress::{CompressionJob, Engine, OutlineEngine},
    tokens::{Memo, TokenCounter, default_counter},
};

type Way = fn(&CompressionJob, &dyn TokenCounter) -> String;

fn outline(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    OutlineEngine.summarize(job, counter).unwrap()
}

/// As a history is compressed piece by piece: a summary of each 4,000 tokens, knowing nothing of
/// the others.
fn outlines(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    let ratio = job.original_tokens / job.token_limit;
    let mut rest = job.passages.as_slice();
    let mut summaries = Vec::new();
    while !rest.is_empty() {
        let mut tokens = 0;
        let next = rest.iter().position(|passage| {
            tokens += passage.snapshot.total_tokens();
            tokens >= 4_000
        });
        let (piece, others) = rest.split_at(next.map_or(rest.len(), |last| last + 1));
        rest = others;
        let mut piece = CompressionJob::new(piece.to_vec(), 0).with_tail(job.tail.clone());
        piece.token_limit = piece.original_tokens / ratio;
        summaries.push(OutlineEngine.summarize(&piece, counter).unwrap_or_default());
    }
    summaries.join("\n")
}

const WAYS: [(&str, Way); 4] = [
    ("outline", outline),
    ("by 4,000 tokens", outlines),
    ("bare list", survival::bare_list),
    ("last messages", survival::last_messages),
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let sessions = survival::sessions(&root, &counter);
    if let Some(at) = std::env::args().position(|a| a == "--show") {
        let args: Vec<String> = std::env::args().collect();
        let (pattern, ratio) = (args[at+1].clone(), args[at+2].parse::<u64>().unwrap());
        for s in sessions.iter().filter(|s| s.name.contains(&pattern)) {
            for m in survival::moments(s) {
                let job = m.job(ratio);
                let summary = outline(&job, &counter);
                let needed = m.needed();
                println!("=== {} {} limit {} used {} kept {}/{}", s.name, job.original_tokens, job.token_limit, counter.count(&summary), survival::kept(&needed, &summary), needed.len());
                println!("{summary}");
                let have: std::collections::HashSet<String> = survival::identifiers(&summary).into_iter().collect();
                println!("--- lost: {}", needed.iter().filter(|n| !have.contains(*n)).cloned().collect::<Vec<_>>().join(" "));
            }
        }
        return;
    }
    for ratio in [5, 10, 20] {
        println!("{ratio}:1");
        for (name, way) in WAYS.into_iter().take(if std::env::var("FAST").is_ok() { 2 } else { 9 }) {
            let mut all = (0, 0, 0, 0);
            let mut line = format!("  {name:<16}");
            for group in survival::GROUPS {
                let mut sums = (0, 0, 0, 0);
                for session in sessions.iter().filter(|session| session.group == group) {
                    for moment in survival::moments(session) {
                        let job = moment.job(ratio);
                        let summary = way(&job, &counter);
                        
                        let needed = moment.needed();
                        let again = moment.used_again();
                        sums.0 += survival::kept(&needed, &summary);
                        sums.1 += needed.len();
                        sums.2 += survival::kept(&again, &summary);
                        sums.3 += again.len();
                    }
                }
                all = (all.0 + sums.0, all.1 + sums.1, all.2+sums.2, all.3+sums.3);
                line += &format!("  {} {:.3}/{:.3}", &group[..1], sums.0 as f64 / sums.1 as f64, sums.2 as f64 / sums.3 as f64);
            }
            println!("{line}  all {:.3}/{:.3}", all.0 as f64 / all.1 as f64, all.2 as f64 / all.3 as f64);
        }
    }
}
