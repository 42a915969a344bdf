//! What a cache serves of a request, and what it takes, by the published rules.

use super::{
    layout::{BlockKind, End, Layout, MessageEnd},
    rules::{Breakpoints, ModelRules},
    scale::Scale,
};

/// How many explicit breakpoints are asked for: the first and the latest (OpenAI's guide).
const FIRST_MARKS: usize = 2;
const LATEST_MARKS: usize = 50;

/// What a request leaves in the cache at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) end: End,
    pub(super) is_long: bool,
}

/// The entries that a request writes, or reads and so keeps, from the shortest on.
pub(super) fn entries(layout: &Layout, rules: &ModelRules, scale: &Scale) -> Vec<Entry> {
    let mut entries: Vec<Entry> = match rules.breakpoints {
        Breakpoints::Marks { .. } => {
            let entry = |mark: super::layout::Mark, end| Entry { end, is_long: mark.is_long };
            layout.marked().map(|(_, position, mark)| entry(mark, position.end)).collect()
        }
        Breakpoints::Messages { most, .. } => {
            let implicit = implicit(layout);
            let most = most.saturating_sub(usize::from(implicit.is_some()));
            let marked = layout.marked().rev().take(most).map(|(_, position, _)| position.end);
            let ends = marked.chain(implicit);
            ends.map(|end| Entry { end, is_long: false }).collect()
        }
        Breakpoints::Steps { .. } => Vec::new(),
    };
    entries.retain(|entry| scale.of(entry.end.tokens) >= rules.minimum);
    entries.sort_by_key(|entry| entry.end.leaves);
    entries
}

/// The breakpoint that the provider sets itself.
fn implicit(layout: &Layout) -> Option<End> {
    let last = layout.eligible().next_back().map(|position| position.end);
    last.filter(|_| !layout.is_explicit)
}

/// The places at which the cache is asked for an entry, by how many values stand before them.
pub(super) fn places(layout: &Layout, rules: &ModelRules) -> Vec<usize> {
    match rules.breakpoints {
        Breakpoints::Marks { look_back, .. } => {
            let backwards = layout.marked().flat_map(|(at, ..)| back_from(layout, at, look_back));
            backwards.collect()
        }
        Breakpoints::Messages { look_back, .. } => {
            let marked: Vec<usize> =
                layout.marked().map(|(_, position, _)| position.end.leaves).collect();
            let latest = marked.len().saturating_sub(LATEST_MARKS);
            let mut places: Vec<usize> = marked.iter().take(FIRST_MARKS).copied().collect();
            places.extend(marked.get(latest..).unwrap_or_default());
            if !layout.is_explicit {
                let latest = layout.eligible().rev().take(look_back.saturating_add(1));
                places.extend(latest.map(|position| position.end.leaves));
                let opening = layout.positions.iter().find(|of| of.message == MessageEnd::Opening);
                places.extend(opening.map(|position| position.end.leaves));
            }
            places
        }
        Breakpoints::Steps { .. } => Vec::new(),
    }
}

/// The places from a mark backwards, the mark among them. Calls that follow each other are one
/// place, and so are results.
fn back_from(layout: &Layout, mark: usize, look_back: usize) -> Vec<usize> {
    let mut places = Vec::new();
    let (mut steps, mut run) = (0, BlockKind::Other);
    for position in layout.positions.iter().take(mark + 1).rev() {
        let goes_on = position.kind == run && matches!(run, BlockKind::Call | BlockKind::Result);
        steps += usize::from(!goes_on);
        if steps > look_back {
            break;
        }
        run = position.kind;
        places.push(position.end.leaves);
    }
    places
}

/// What a request writes: tokens that stay for the usual time, and those that stay longer.
pub(super) fn written(entries: &[Entry], read: u64, scale: &Scale) -> (u64, u64) {
    let end = |entry: &Entry| scale.of(entry.end.tokens);
    let last = entries.iter().map(end).max().unwrap_or(0);
    let long = entries.iter().filter(|entry| entry.is_long).map(end).max().unwrap_or(0);
    let written_long = long.saturating_sub(read);
    (last.saturating_sub(read.max(long)), written_long)
}

/// The tokens that a cache that keeps steps serves of an unchanged prefix: at most, and at the
/// least where that is known.
pub(super) fn in_steps(
    tokens: u64,
    minimum: u64,
    (step, interval): (u64, Option<u64>),
) -> (u64, Option<u64>) {
    let served = |tokens: u64| if tokens < minimum { 0 } else { tokens - tokens % step };
    let least = interval.map(|interval| served(tokens.saturating_sub(interval.saturating_sub(1))));
    (served(tokens), least)
}
