//! How many of the identifiers that a session names again survive its compression, beside two
//! baselines: a bare list of identifiers, and the last messages at the same size.
//!
//! `cargo bench --bench compress_survival` prints a table; with `-- PATTERN RATIO` it prints what
//! the engine writes of the sessions whose name contains the pattern, and what that loses.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../tests/it/support/survival.rs"]
mod survival;

use std::sync::Arc;

use afterimage::{
    compress::{CompressionJob, Engine, OutlineEngine},
    tokens::{Memo, TokenCounter, default_counter},
};
use survival::Session;

type Way = fn(&CompressionJob, &dyn TokenCounter) -> String;

const WAYS: [(&str, Way); 4] = [
    ("outline", outline),
    ("outline, by 4,000", outlines),
    ("bare list", survival::bare_list),
    ("last messages", survival::last_messages),
];

fn main() {
    let root = afterimage_testkit::data::beside("data");
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let sessions: Vec<Session> = survival::sessions(survival::files(&root), &counter).collect();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [pattern, ratio, ..] if !pattern.starts_with('-') => {
            let chosen = sessions.iter().filter(|session| session.name.contains(pattern.as_str()));
            chosen.for_each(|session| show(session, ratio.parse().unwrap(), &counter));
        }
        _ => table(&sessions, &counter),
    }
}

/// Identifiers kept, and needed.
#[derive(Clone, Copy, Default)]
struct Sum(usize, usize);

impl Sum {
    fn add(&mut self, (kept, needed): (usize, usize)) {
        (self.0, self.1) = (self.0 + kept, self.1 + needed);
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}", self.0 as f64 / self.1.max(1) as f64)
    }
}

fn table(sessions: &[Session], counter: &Arc<dyn TokenCounter>) {
    println!("kept of the identifiers that are named again and that the protected tail does not");
    println!("show; in the last column, those that it shows are counted too");
    for ratio in [5, 10, 20] {
        println!("\n{ratio}:1                      A      B      C      D    all   +tail");
        for (name, way) in WAYS {
            let (mut groups, mut all, mut with_tail) = ([Sum::default(); 4], Sum(0, 0), Sum(0, 0));
            for session in sessions {
                let group = survival::GROUPS.iter().position(|group| *group == session.group);
                for moment in survival::moments(session) {
                    let summary = way(&moment.job(ratio), counter);
                    let (needed, again) = (moment.needed(), moment.used_again());
                    let kept = (survival::kept(&needed, &summary), needed.len());
                    groups[group.unwrap()].add(kept);
                    all.add(kept);
                    with_tail.add((survival::kept(&again, &summary), again.len()));
                }
            }
            let groups: Vec<String> = groups.iter().map(Sum::to_string).collect();
            println!("  {name:<20} {}  {all}  {with_tail}", groups.join("  "));
        }
    }
}

fn show(session: &Session, ratio: u64, counter: &Arc<dyn TokenCounter>) {
    for moment in survival::moments(session) {
        let job = moment.job(ratio);
        let summary = outline(&job, counter);
        let (tokens, limit) = (counter.count(&summary), job.token_limit);
        println!(
            "=== {}: {} tokens, limit {limit}, {tokens} used",
            session.name, job.original_tokens
        );
        println!("{summary}");
        let needed = moment.needed();
        let lost: Vec<&str> = needed
            .iter()
            .filter(|name| survival::kept(&[(*name).clone()].into(), &summary) == 0)
            .map(String::as_str)
            .collect();
        println!("--- lost {} of {}: {}", lost.len(), needed.len(), lost.join(" "));
    }
}

fn outline(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    OutlineEngine.summarize(job, counter).unwrap()
}

/// As a history is compressed in small steps: an outline of each 4,000 tokens, knowing nothing of
/// the others.
fn outlines(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    let ratio = job.original_tokens / job.token_limit;
    let mut rest = job.passages.as_slice();
    let mut summaries = Vec::new();
    while !rest.is_empty() {
        let mut tokens = 0;
        let last = rest.iter().position(|passage| {
            tokens += passage.snapshot.total_tokens();
            tokens >= 4_000
        });
        let (piece, others) = rest.split_at(last.map_or(rest.len(), |last| last + 1));
        rest = others;
        let mut piece = CompressionJob::new(piece.to_vec(), 0).with_tail(job.tail.clone());
        piece.token_limit = piece.original_tokens / ratio;
        summaries.push(OutlineEngine.summarize(&piece, counter).unwrap_or_default());
    }
    summaries.join("\n")
}
