//! Calls of a model that two instrumentations tell of: one span stands around another.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{
    message::SpanMessage,
    span::{SpanKey, SpanRecord},
};
use crate::{
    json::{ObjectExt, Value},
    transcript::Usage,
};

/// How many spans may stand between the two.
const LEVELS: usize = 32;

/// Leaves one span of each such call: the inner one, or else the one with the messages, with the usage
/// that either states. Returns how many it took out.
pub(super) fn merge(
    spans: &mut IndexMap<SpanKey, SpanRecord>,
    parents: &HashMap<SpanKey, Box<str>>,
) -> u64 {
    let mut around: IndexMap<SpanKey, Vec<SpanKey>> = IndexMap::new();
    for (key, _) in spans.iter().filter(|(_, span)| span.is_call()) {
        let mut outer = key.clone();
        for _ in 0..LEVELS {
            let Some(parent) = parents.get(&outer) else { break };
            outer.1.clone_from(parent);
            let Some(span) = spans.get(&outer) else { continue };
            if span.is_call() {
                around.entry(outer).or_default().push(key.clone());
            }
            break;
        }
    }
    let mut taken = 0;
    for (outer, inner) in around {
        let (Some(of), Some(first)) = (spans.get(&outer), inner.first()) else { continue };
        let inner_spans: Vec<&SpanRecord> = inner.iter().filter_map(|key| spans.get(key)).collect();
        if !is_same(of, &inner_spans) {
            continue;
        }
        let is_silent = inner_spans.iter().all(|span| said(span).is_empty());
        let gone = match inner.as_slice() {
            [only] if is_silent && !said(of).is_empty() => only,
            _ => &outer,
        };
        let kept = if gone == first { &outer } else { first };
        let lost = spans.get(gone).map(reported_by).unwrap_or_default();
        if let Some(kept) = spans.get_mut(kept).filter(|kept| usage(kept).is_none()) {
            lost.into_iter().for_each(|(name, value)| kept.attributes.put(&name, value));
        }
        taken += u64::from(spans.shift_remove(gone).is_some());
    }
    taken
}

/// Whether a span tells of the calls within it, and of no other: by its usage, or else by what was
/// said.
fn is_same(outer: &SpanRecord, inner: &[&SpanRecord]) -> bool {
    let begins_within = |span: &&SpanRecord| {
        let times = outer.start.zip(outer.end).zip(span.start);
        times.is_none_or(|((start, end), at)| start <= at && at <= end)
    };
    if !inner.iter().all(begins_within) {
        return false;
    }
    let usages: Vec<_> = inner.iter().filter_map(|span| usage(span)).collect();
    let sum = usages.iter().fold((0_u64, 0_u64), |(input, output), of| {
        (input.saturating_add(of.0), output.saturating_add(of.1))
    });
    match (usage(outer), inner) {
        (Some(own), _) if own == sum || usages.contains(&own) => true,
        (_, [only]) => is_like(outer, only),
        (Some(_), _) => false,
        (None, _) => !usages.is_empty() && inner.iter().any(|span| is_like(outer, span)),
    }
}

/// Whether both may hold the same messages: one has none, or both end with the same.
fn is_like(one: &SpanRecord, other: &SpanRecord) -> bool {
    let (one, other) = (said(one), said(other));
    one.is_empty() || other.is_empty() || one.last() == other.last()
}

/// The input and the output that a span reports.
fn usage(span: &SpanRecord) -> Option<(u64, u64)> {
    let usage = Usage::of(&span.usage()?)?;
    Some((usage.input.unwrap_or(0), usage.output.unwrap_or(0)))
}

/// The attributes that say what a call cost.
fn reported_by(span: &SpanRecord) -> Vec<(String, Value)> {
    let is_usage = |name: &str| name.contains("usage") || name.contains("token_count");
    let attributes = span.attributes.iter().filter(|(name, _)| is_usage(name));
    attributes.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The messages of the request, the operator's aside: some stand in an attribute of their own.
fn said(span: &SpanRecord) -> Vec<SpanMessage> {
    let messages = span.input(&mut Vec::new()).unwrap_or_default();
    messages.into_iter().filter(|message| !message.is_system()).collect()
}
