//! What two requests share, and what of it is in the cache.

use super::{
    FirstDifference, Lifetime, SentRequest, UnservedEntry,
    layout::{End, Layout},
    lookup::{Entry, entries, in_steps, places},
    rules::{Breakpoints, ModelRules, Section},
    scale::Scale,
};
use crate::{
    Error, Result,
    export::{PrefixCounts, PrefixRules, prefix_counts},
    request::{CacheBreak, CacheFrom, Changes, Request, changes},
    tokens::TokenCounter,
};

/// What two requests share.
pub(super) struct Comparison {
    pub(super) counts: PrefixCounts,
    pub(super) difference: Option<FirstDifference>,
    pub(super) breaks: Vec<CacheBreak>,
    previous: Option<Layout>,
    pub(super) next: Layout,
}

impl Comparison {
    pub(super) fn of(
        previous: Option<&SentRequest<'_>>,
        next: &SentRequest<'_>,
        order: [Section; 3],
        counter: &dyn TokenCounter,
    ) -> Result<Self> {
        let laid_out = |request: &Request| {
            let keys = order.map(|section| match section {
                Section::Tools => "tools",
                Section::System => request.api().system_key(),
                Section::Messages => request.api().conversation_key(),
            });
            Ok::<_, Error>(request.as_cached()?.with_members_in_order(&keys))
        };
        let is = laid_out(next.request)?;
        let Some(previous) = previous else {
            let mut counts = prefix_counts(&is, &is, counter, PrefixRules::EXACT);
            (counts.same, counts.bytes, counts.report.unchanged) = (0, 0, 0);
            let next = Layout::of(next.request, &counts.next, order)?;
            let (difference, breaks) = (None, Vec::new());
            return Ok(Self { counts, difference, breaks, previous: None, next });
        };
        let counts = prefix_counts(&laid_out(previous.request)?, &is, counter, PrefixRules::EXACT);
        let Changes { tools, breaks, .. } = changes(previous.request, next.request)?;
        let requests = (previous.request, next.request);
        let difference = FirstDifference::of(requests, &counts, &tools, order);
        let previous = Layout::of(previous.request, &counts.previous, order)?;
        let next = Layout::of(next.request, &counts.next, order)?;
        Ok(Self { counts, difference, breaks, previous: Some(previous), next })
    }

    /// What the request before left in the cache, in the provider's tokens, and how counts become
    /// those.
    pub(super) fn left(
        &self,
        rules: &ModelRules,
        previous: Option<&SentRequest<'_>>,
    ) -> (Scale, u64) {
        let (Some(layout), Some(previous)) = (&self.previous, previous) else {
            return (Scale::same(), 0);
        };
        let last = |scale: &Scale| {
            entries(layout, rules, scale).last().map_or(0, |entry| entry.end.tokens)
        };
        // Whether the last place was long enough to be kept shows in the provider's tokens.
        let rough = Scale::fitted(previous.usage, layout.tokens, 0);
        let scale = Scale::fitted(previous.usage, layout.tokens, last(&rough));
        let left = match rules.breakpoints {
            Breakpoints::Steps { step, interval } => {
                in_steps(scale.of(layout.tokens), rules.minimum, (step, interval)).0
            }
            _ => scale.of(last(&scale)),
        };
        (scale, left)
    }

    /// How much of what is the same the cache may serve.
    pub(super) fn limit(&self, order: [Section; 3]) -> End {
        let whole = End { leaves: usize::MAX, tokens: u64::MAX };
        let before = |section: Section| {
            let at = order.iter().position(|of| *of == section)?.checked_sub(1)?;
            self.next.section_ends.get(at).copied()
        };
        match self.breaks.iter().map(|of| of.from).min() {
            None => whole,
            Some(CacheFrom::Start) => End::default(),
            Some(CacheFrom::System) => before(Section::System).unwrap_or_default(),
            Some(CacheFrom::Messages) => before(Section::Messages).unwrap_or_default(),
        }
    }

    /// The longest entry of the request before that the next one asks for and shares.
    pub(super) fn read(
        &self,
        rules: &ModelRules,
        scale: &Scale,
        limit: usize,
        (previous, next): (Option<&SentRequest<'_>>, &SentRequest<'_>),
    ) -> u64 {
        let Some(layout) = &self.previous else { return 0 };
        let places = places(&self.next, rules);
        let most = self.counts.same.min(limit);
        let gap = gap(previous, next);
        let is_served = |entry: &Entry| {
            let end = entry.end.leaves;
            let is_kept = age(rules, entry.is_long, gap) != Lifetime::Expired;
            end <= most && is_kept && places.contains(&end)
        };
        let entries = entries(layout, rules, scale);
        let served = entries.iter().filter(|entry| is_served(entry));
        served.map(|entry| scale.of(entry.end.tokens)).max().unwrap_or(0)
    }

    /// Why the longest entry of the request before is not served, where the next one shares it.
    pub(super) fn unserved(
        &self,
        rules: &ModelRules,
        scale: &Scale,
        limit: usize,
        (previous, next): (Option<&SentRequest<'_>>, &SentRequest<'_>),
    ) -> Option<UnservedEntry> {
        let Entry { end, is_long } = entries(self.previous.as_ref()?, rules, scale).pop()?;
        if end.leaves > self.counts.same.min(limit) {
            return None;
        }
        if age(rules, is_long, gap(previous, next)) == Lifetime::Expired {
            return Some(UnservedEntry::Expired);
        }
        let places = places(&self.next, rules);
        let is_behind = |place: &usize| *place > end.leaves;
        match places.contains(&end.leaves) {
            true => None,
            false if places.iter().any(is_behind) => Some(UnservedEntry::OutOfReach),
            false => Some(UnservedEntry::NotAskedFor),
        }
    }

    /// Whether what the request before left can still be there: what it asked to keep longest.
    pub(super) fn lifetime(
        &self,
        rules: &ModelRules,
        previous: Option<&SentRequest<'_>>,
        next: &SentRequest<'_>,
    ) -> Lifetime {
        let marked = self.previous.iter().flat_map(Layout::marked);
        let is_long = marked.into_iter().any(|(.., mark)| mark.is_long);
        age(rules, is_long, gap(previous, next))
    }
}

/// The milliseconds between two requests, where both have a time.
fn gap(previous: Option<&SentRequest<'_>>, next: &SentRequest<'_>) -> Option<u64> {
    let (was, is) = previous.and_then(|previous| previous.time).zip(next.time)?;
    u64::try_from(is.get().checked_sub(was.get())?).ok()
}

/// What a cache has kept for so long is.
fn age(rules: &ModelRules, is_long: bool, gap: Option<u64>) -> Lifetime {
    let long = rules.ttl_long.filter(|_| is_long);
    let (Some(gap), Some(least)) = (gap, long.or(rules.ttl)) else { return Lifetime::Unknown };
    let most = rules.ttl_most.unwrap_or(least).max(least);
    match gap {
        gap if gap <= least.saturating_mul(1000) => Lifetime::Kept,
        gap if gap <= most.saturating_mul(1000) => Lifetime::Uncertain,
        _ => Lifetime::Expired,
    }
}
