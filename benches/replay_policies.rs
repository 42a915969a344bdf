//! What contexts cost by policy, over the recordings: the share of tokens that are an unchanged
//! prefix, and what is billed beside a window that slides and beside an agent without a budget. A
//! token that is written to the cache costs 1.25, one that is read from it 0.1. No times: the figures
//! are counted, and the same on every run.
//!
//! Each line is a policy at a budget; `AFTERIMAGE_BENCH_SWEEP=1` tries other marks of `Budget` too.
//! `AFTERIMAGE_BENCH_FILES=N` takes every Nth file, `AFTERIMAGE_BENCH_POLICIES=A,B` these policies
//! alone. Sessions that cost more by blocks than without a budget are listed at the end of each
//! budget. `floor` is no policy: it is the least that requests cost which fill [`FILL`] of the room.
//! They write what came since the request before, once, and read the rest from the cache. No summary,
//! no epoch and no ledger costs anything.

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

/// The share of the room that the floor fills, in thousandths.
const FILL: u64 = 630;

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
        "{:<54} {:>7} {:>6} {:>11} {:>7} {:>11} {:>8} {:>7} {:>6} {:>6} {:>5} {:>5} {:>5} {:>7}",
        "policy",
        "budget",
        "turns",
        "sent",
        "cached",
        "billed",
        "sliding",
        "raw",
        "used",
        "blocks",
        "over",
        "unfit",
        "halves",
        "names"
    );
    for tokens in [4_000, 8_000, 32_000] {
        let budget = Budget::new(tokens);
        let play = |budget, policy: &ReplayPolicy| play(&all, &counter, budget, policy);
        let sliding = play(budget, &ReplayPolicy::Sliding);
        let raw = play(budget, &ReplayPolicy::Unlimited);
        let beside = (&sliding[..], &raw[..]);
        print_floor(tokens, &all, &floors(&all, &counter, budget), (&sliding, &raw));
        let is_asked = |name: &&str| {
            let asked = variable("AFTERIMAGE_BENCH_POLICIES");
            asked.is_none_or(|asked| asked.split(',').any(|asked| asked == *name))
        };
        for name in ReplayPolicy::NAMES.into_iter().filter(is_asked) {
            let Ok(policy) = ReplayPolicy::by_name(name, &budget) else { continue };
            let played = play(budget, &policy);
            print(name, tokens, &all, &played, beside);
            if name == "blocks" {
                list_dearer(&all, &played, &raw);
            }
        }
        for (name, budget, policy) in sweep(budget, is_sweep) {
            print(&name, tokens, &all, &play(budget, &policy), beside);
        }
    }
}

fn sweep(budget: Budget, is_sweep: bool) -> Vec<(String, Budget, ReplayPolicy)> {
    let mut policies = Vec::new();
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

/// The figures of each session.
fn play(
    sessions: &[Session],
    counter: &Arc<dyn TokenCounter>,
    budget: Budget,
    policy: &ReplayPolicy,
) -> Vec<ReplayFigures> {
    let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
    let play = |session: &Session| {
        let mut replay = Replay::new(hud.clone(), budget, policy.clone(), Arc::new(OutlineEngine));
        for frame in &session.frames {
            replay.push(frame.clone(), Millis::new(0)).unwrap();
        }
        replay.figures()
    };
    sessions.iter().map(play).collect()
}

/// What each session costs at least, in thousandths of a token of plain input, and how many tokens
/// came for the first time.
fn floors(
    sessions: &[Session],
    counter: &Arc<dyn TokenCounter>,
    budget: Budget,
) -> Vec<(u64, u64)> {
    let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
    let most = budget.room() * FILL / 1000;
    let floor = |session: &Session| {
        let unlimited = ReplayPolicy::Unlimited;
        let mut replay = Replay::new(hud.clone(), budget, unlimited, Arc::new(OutlineEngine));
        let (mut before, mut cost, mut new) = (ReplayFigures::default(), 0, 0);
        for frame in &session.frames {
            replay.push(frame.clone(), Millis::new(0)).unwrap();
            let now = replay.figures();
            let read = now.tokens_cached - before.tokens_cached;
            let written = now.tokens_sent - before.tokens_sent - read;
            cost += written * 1250 + read.min(most) * 100;
            new += written;
            before = now;
        }
        (cost, new)
    };
    sessions.iter().map(floor).collect()
}

/// The floor of all sessions, of those that are larger than the room, and of each group.
fn print_floor(
    budget: u64,
    sessions: &[Session],
    floors: &[(u64, u64)],
    (sliding, raw): (&[ReplayFigures], &[ReplayFigures]),
) {
    let print = |name: &str, is_taken: &dyn Fn(usize) -> bool| {
        let taken = || (0..sessions.len()).filter(|at| is_taken(*at));
        let cost = taken().map(|at| floors[at].0).sum::<u64>() as f64 / 1000.0;
        let new: u64 = taken().map(|at| floors[at].1).sum();
        let billed = |of: &[ReplayFigures]| taken().map(|at| of[at].billed_tokens()).sum::<u64>();
        let (sliding, raw) = (billed(sliding).max(1) as f64, billed(raw).max(1) as f64);
        println!(
            "floor {name:<48} {budget:>7} new {new:>11} billed {cost:>11.0} {:>8.3} {:>7.3}",
            cost / sliding,
            cost / raw
        );
    };
    print("all", &|_| true);
    print("larger than the room", &|at| raw[at].full_sent > 0);
    for (group, name) in GROUPS.iter().enumerate() {
        print(name, &|at| sessions[at].group == group);
    }
}

/// Names the sessions that cost more than without a budget.
fn list_dearer(sessions: &[Session], played: &[ReplayFigures], raw: &[ReplayFigures]) {
    for ((session, of), raw) in sessions.iter().zip(played).zip(raw) {
        let (billed, paid) = (of.billed_tokens(), raw.billed_tokens());
        if billed > paid {
            println!("    dearer than without a budget: {billed} of {paid}, {}", session.name);
        }
    }
}

fn print(
    name: &str,
    budget: u64,
    sessions: &[Session],
    played: &[ReplayFigures],
    (sliding, raw): (&[ReplayFigures], &[ReplayFigures]),
) {
    let unlimited = raw;
    let sum = |of: &[ReplayFigures], group: Option<usize>, is_larger: bool| {
        let mut sum = ReplayFigures::default();
        let own = sessions.iter().zip(of).zip(unlimited);
        let own = own.filter(|((session, _), raw)| {
            group.is_none_or(|group| session.group == group) && (!is_larger || raw.full_sent > 0)
        });
        own.for_each(|((_, figures), _)| sum += *figures);
        sum
    };
    let groups = GROUPS.iter().enumerate();
    let groups = groups.map(|(group, name)| (format!("    {name}"), Some(group), false));
    let all = [(name.to_owned(), None, false), ("    larger than the room".to_owned(), None, true)];
    for (name, group, is_larger) in all.into_iter().chain(groups) {
        let sum = |of| sum(of, group, is_larger);
        let (of, sliding, raw) = (sum(played), sum(sliding), sum(raw));
        if of.turns == 0 {
            continue;
        }
        let beside =
            |other: ReplayFigures| of.billed_tokens() as f64 / other.billed_tokens().max(1) as f64;
        println!(
            "{name:<54} {budget:>7} {:>6} {:>11} {:>7.3} {:>11} {:>8.3} {:>7.3} {:>6.3} {:>6} {:>5} {:>5} {:>5} {:>7.3}",
            of.turns,
            of.tokens_sent,
            of.cached_ratio(),
            of.billed_tokens(),
            beside(sliding),
            beside(raw),
            of.room_used().unwrap_or(0.0),
            of.compressions,
            of.over_budget,
            of.unfit,
            of.orphans,
            of.identifiers_kept as f64 / of.identifiers_needed.max(1) as f64,
        );
    }
}
