//! What survives a compression, by finders that share nothing with the engines: identifiers that
//! are named again, the user's words, rules, the last error, open items and files changed.
//!
//! `cargo bench --bench compress_survival` prints a table; with `-- PATTERN RATIO` it prints what
//! the engine writes of the sessions whose name contains the pattern, and what that loses.
//! `AFTERIMAGE_BENCH_WAY` names one of the ways to compress.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../tests/it/support/survival.rs"]
mod survival;

use std::sync::Arc;

use afterimage::{
    compress::{CompressionJob, Engine, OutlineEngine},
    tokens::{Memo, TokenCounter, default_counter},
};
use survival::{Moment, Session, five_grams, stands_in, words, work};

type Way = fn(&Moment<'_>, &CompressionJob, u64, &Arc<dyn TokenCounter>) -> Option<String>;

const WAYS: [(&str, Way); 5] = [
    ("outline", |_, job, _, counter| OutlineEngine.summarize(job, counter).ok()),
    ("window", |moment, _, ratio, counter| moment.window(ratio, counter)),
    ("extract", |moment, job, _, counter| Some(survival::extract::extract(moment, job, counter))),
    ("bare list", |_, job, _, counter| Some(survival::bare_list(job, counter))),
    ("last messages", |_, job, _, counter| Some(survival::last_messages(job, counter))),
];

/// What is measured, in the order of [`measure`].
const ROWS: [&str; 11] = [
    "identifiers",
    "first message, 5-grams",
    "first message whole, where it fits 1/4",
    "last instruction whole, where it fits 1/8",
    "later words, 5-grams",
    "last error",
    "open items",
    "files changed",
    "files changed, where they fit 1/8",
    "rules",
    "rules, where they fit 1/4",
];

type Row = [Sum; 5];

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

/// What was kept of what there was.
#[derive(Clone, Copy, Default)]
struct Sum(f64, f64);

impl Sum {
    fn add(&mut self, (kept, of): (f64, f64)) {
        (self.0, self.1) = (self.0 + kept, self.1 + of);
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.1 == 0.0 { f.write_str("  -  ") } else { write!(f, "{:.3}", self.0 / self.1) }
    }
}

fn table(sessions: &[Session], counter: &Arc<dyn TokenCounter>) {
    let ways = std::env::var("AFTERIMAGE_BENCH_WAY").unwrap_or_default();
    for ratio in [5, 10, 20] {
        println!("\n{ratio}:1 {:>60}      B      C      D    all  cases", "A");
        for (name, way) in WAYS.iter().filter(|(name, _)| name.contains(&*ways)) {
            let mut rows = [Row::default(); ROWS.len()];
            for session in sessions {
                let group = survival::GROUPS.iter().position(|group| *group == session.group);
                for moment in survival::moments(session) {
                    let job = moment.job(ratio);
                    let Some(summary) = way(&moment, &job, ratio, counter) else { continue };
                    let measured = measure(&moment, &job, &summary, counter);
                    for (row, found) in rows.iter_mut().zip(measured) {
                        row[group.unwrap()].add(found);
                        row[4].add(found);
                    }
                }
            }
            for (title, row) in ROWS.iter().zip(&rows) {
                let shares: Vec<String> = row.iter().map(Sum::to_string).collect();
                println!("  {name:<14} {title:<44} {}  {:.0}", shares.join("  "), row[4].1);
            }
        }
    }
}

/// What `summary` keeps, by the rows of [`ROWS`]: identifiers and rules by their number, words by
/// the session, so that no long message outweighs the others.
fn measure(
    moment: &Moment<'_>,
    job: &CompressionJob,
    summary: &str,
    counter: &Arc<dyn TokenCounter>,
) -> [(f64, f64); ROWS.len()] {
    let limit = job.token_limit as usize;
    let needed = moment.needed();
    let said = moment.words();
    let (first, later) = said.split_first().map_or(("", &[][..]), |(first, later)| (first, later));
    let last = later.last().map_or("", String::as_str);
    let share = |said: &str| match five_grams(said, summary) {
        (_, 0) => (0.0, 0.0),
        (kept, of) => (kept as f64 / of as f64, 1.0),
    };
    let whole = |said: &str, part: usize| {
        let is_asked = !said.is_empty() && counter.count(said) <= limit / part;
        (f64::from(u8::from(is_asked && stands_in(said, summary))), f64::from(u8::from(is_asked)))
    };
    let listed = |items: &[String], part: usize| {
        if counter.count(&items.join("\n")) > limit / part {
            return (0.0, 0.0);
        }
        let kept = items.iter().filter(|item| stands_in(item, summary)).count();
        (kept as f64, items.len() as f64)
    };
    let files: Vec<String> = work::files_changed(moment.compressed).into_iter().collect();
    let rules = words::rules(&said);
    let error = work::last_error(moment.compressed, moment.is_text_only());
    let error: Vec<String> =
        error.into_iter().map(|line| line.chars().take(120).collect()).collect();
    [
        (survival::kept(&needed, summary) as f64, needed.len() as f64),
        share(first),
        whole(first, 4),
        whole(last, 8),
        share(&later.join("\n")),
        listed(&error, 1),
        listed(&work::open_items(moment.compressed), 1),
        listed(&files, 1),
        listed(&files, 8),
        listed(&rules, 1),
        listed(&rules, 4),
    ]
}

fn show(session: &Session, ratio: u64, counter: &Arc<dyn TokenCounter>) {
    for moment in survival::moments(session) {
        let job = moment.job(ratio);
        let ways = std::env::var("AFTERIMAGE_BENCH_WAY").unwrap_or_default();
        let (_, way) = WAYS.iter().find(|(name, _)| name.contains(&*ways)).unwrap();
        let Some(summary) = way(&moment, &job, ratio, counter) else { continue };
        let (tokens, limit) = (counter.count(&summary), job.token_limit);
        println!(
            "=== {}: {} tokens, limit {limit}, {tokens} used",
            session.name, job.original_tokens
        );
        println!("{summary}");
        println!("--- tokens: {}", sections(&summary, counter));
        let needed = moment.needed();
        let lost: Vec<&str> = needed
            .iter()
            .filter(|name| survival::kept(&[(*name).clone()].into(), &summary) == 0)
            .map(String::as_str)
            .collect();
        println!("--- lost {} of {}: {}", lost.len(), needed.len(), lost.join(" "));
        let files: Vec<String> = work::files_changed(moment.compressed).into_iter().collect();
        let error = work::last_error(moment.compressed, moment.is_text_only());
        for (what, items) in [
            ("rule", words::rules(&moment.words())),
            ("error", error.into_iter().map(|line| line.chars().take(120).collect()).collect()),
            ("open item", work::open_items(moment.compressed)),
            ("file", files),
        ] {
            for item in items.iter().filter(|item| !stands_in(item, &summary)) {
                println!("--- lost {what}: {item}");
            }
        }
    }
}

/// The tokens of each section of a summary, by what stands as a heading in it.
fn sections(summary: &str, counter: &Arc<dyn TokenCounter>) -> String {
    let is_title = |line: &str| {
        let line = line.trim_end();
        line.starts_with("Names:") || line.ends_with(':') && !line.starts_with("- ")
    };
    let mut tokens: Vec<(&str, usize)> = Vec::new();
    for line in summary.split_inclusive('\n') {
        if is_title(line) || tokens.is_empty() {
            let title = line.split_inclusive(':').next().unwrap_or(line);
            tokens.push((title, 0));
        }
        tokens.last_mut().unwrap().1 += counter.count(line);
    }
    let each: Vec<String> = tokens.iter().map(|(title, sum)| format!("{title} {sum}")).collect();
    each.join(", ")
}
