//! What contexts cost by policy, over the recordings: the share of tokens that are an unchanged
//! prefix, and what is billed beside a window that slides, where a token from the cache costs a
//! tenth. No times: the figures are counted, and the same on every run.
//!
//! Each line is a policy at a budget; `AFTERIMAGE_BENCH_SWEEP=1` tries all policies, else only that
//! which `Budget` and its `compression()` stand for, and the window that slides.
//! `AFTERIMAGE_BENCH_FILES=N` takes every Nth file.

#[path = "../tests/it/support/sessions.rs"]
mod sessions;

use std::sync::Arc;

use afterimage::{
    compress::{CompressionOptions, OutlineEngine},
    hud::{Hud, NativeFormat},
    id::Millis,
    replay::{Replay, ReplayFigures, ReplayPolicy},
    tokens::{Bpe, Memo, TokenCounter},
    window::Budget,
};
use sessions::{GROUPS, Session, sessions};

fn main() {
    let root = afterimage_testkit::data::beside("data");
    let variable = |name| std::env::var(name).ok();
    let every = variable("AFTERIMAGE_BENCH_FILES").map_or(1, |every| every.parse().unwrap());
    let all = sessions(&root, 20, every);
    if all.is_empty() {
        println!("no recordings: nothing is measured");
        return;
    }
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    let is_sweep = variable("AFTERIMAGE_BENCH_SWEEP").is_some();
    println!(
        "{:<54} {:>7} {:>6} {:>11} {:>7} {:>11} {:>8} {:>6} {:>5} {:>5} {:>5} {:>7}",
        "policy",
        "budget",
        "turns",
        "sent",
        "cached",
        "billed",
        "sliding",
        "blocks",
        "over",
        "unfit",
        "halves",
        "names"
    );
    for tokens in [4_000, 8_000, 32_000] {
        let budget = Budget::new(tokens);
        let sliding = play(&all, &counter, budget, &ReplayPolicy::Sliding);
        let none = play(&all, &counter, budget, &ReplayPolicy::Unlimited);
        print("unlimited", tokens, &none, &sliding);
        print("sliding", tokens, &sliding, &sliding);
        for (name, budget, policy) in policies(budget, is_sweep) {
            print(&name, tokens, &play(&all, &counter, budget, &policy), &sliding);
        }
    }
}

fn policies(budget: Budget, is_sweep: bool) -> Vec<(String, Budget, ReplayPolicy)> {
    let mut policies =
        vec![("blocks".to_owned(), budget, ReplayPolicy::Blocks(budget.compression()))];
    if !is_sweep {
        return policies;
    }
    let max = budget.max_tokens;
    let chosen = budget.high * 100 / max;
    for (high, low, ratio, recent, result) in [
        (100, 15, 8, 16, 16),
        (85, 15, 8, 16, 16),
        (70, 15, 8, 16, 16),
        (55, 15, 8, 16, 16),
        (chosen, 30, 8, 16, 16),
        (chosen, 45, 8, 16, 16),
        (chosen, 15, 5, 16, 16),
        (chosen, 15, 12, 16, 16),
        (chosen, 15, 8, 8, 16),
        (chosen, 15, 8, 4, 16),
        (chosen, 15, 8, 16, 8),
        (chosen, 15, 8, 16, 4),
        (chosen, 15, 8, 16, 1),
    ] {
        let name =
            format!("high {high} %, low {low} %, 1 in {ratio}, 1/{recent} kept, 1/{result} result");
        let budget = Budget {
            high: max / 100 * high,
            low: max / 100 * low,
            recent: max / recent,
            largest_result: max / result,
            ..budget
        };
        let options = CompressionOptions { ratio, ..budget.compression() };
        policies.push((name, budget, ReplayPolicy::Blocks(options)));
    }
    policies
}

/// The figures of each group.
fn play(
    sessions: &[Session],
    counter: &Arc<dyn TokenCounter>,
    budget: Budget,
    policy: &ReplayPolicy,
) -> Vec<ReplayFigures> {
    let mut sums = vec![ReplayFigures::default(); GROUPS.len()];
    let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
    for session in sessions {
        let mut replay = Replay::new(hud.clone(), budget, policy.clone(), Arc::new(OutlineEngine));
        for frame in &session.frames {
            replay.push(frame.clone(), Millis::new(0)).unwrap();
        }
        sums[session.group] += replay.figures();
    }
    sums
}

fn print(name: &str, budget: u64, groups: &[ReplayFigures], sliding: &[ReplayFigures]) {
    let line = |name: &str, of: ReplayFigures, sliding: ReplayFigures| {
        println!(
            "{name:<54} {budget:>7} {:>6} {:>11} {:>7.3} {:>11} {:>8.3} {:>6} {:>5} {:>5} {:>5} {:>7.3}",
            of.turns,
            of.tokens_sent,
            of.cached_ratio(),
            of.billed_tokens(),
            of.billed_tokens() as f64 / sliding.billed_tokens() as f64,
            of.compressions,
            of.over_budget,
            of.unfit,
            of.orphans,
            of.identifiers_kept as f64 / of.identifiers_needed.max(1) as f64,
        );
    };
    let sum = |groups: &[ReplayFigures]| {
        let mut all = ReplayFigures::default();
        groups.iter().for_each(|group| all += *group);
        all
    };
    line(name, sum(groups), sum(sliding));
    for (group, (of, sliding)) in groups.iter().zip(sliding).enumerate() {
        if of.turns > 0 {
            line(&format!("    {}", GROUPS[group]), *of, *sliding);
        }
    }
}
