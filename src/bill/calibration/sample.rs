//! What an exchange is to a calibration: what its request holds by our count, and what was reported.

use std::{collections::HashMap, sync::Arc};

use super::TextKind;
use crate::{
    Result,
    id::FrameSeq,
    request::{Exchange, PartKind, Recording},
    snapshot::FrameSnapshot,
};

/// The tokens of a context by kind of text, and its messages, by an uncalibrated counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// The tokens, in the order of [`TextKind::ALL`].
    pub tokens: [u64; TextKind::ALL.len()],
    /// The messages.
    pub messages: u64,
}

impl KindCounts {
    /// The tokens of all kinds.
    pub fn total(&self) -> u64 {
        self.tokens.iter().fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// Adds tokens of a kind.
    pub fn add(&mut self, kind: TextKind, tokens: u64) {
        if let Some(own) = self.tokens.get_mut(kind as usize) {
            *own = own.saturating_add(tokens);
        }
    }

    fn join(mut self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        for (own, other) in self.tokens.iter_mut().zip(other.tokens) {
            *own = join(*own, other);
        }
        self.messages = join(self.messages, other.messages);
        self
    }
}

/// An exchange with a model that is named, whose input is reported.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) session: Arc<str>,
    pub(super) model: Arc<str>,
    pub(super) request: u64,
    pub(super) counts: KindCounts,
    pub(super) reported: u64,
}

/// What was left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) unnamed: u64,
    pub(super) unreported: u64,
}

/// The samples of a recording, in its order, each with its exchange's index.
pub(super) fn samples(recording: &Recording) -> Result<(Vec<Sample>, LeftOut)> {
    let mut sessions = HashMap::new();
    let (mut samples, mut left_out) = (Vec::new(), LeftOut::default());
    for exchange in recording.exchanges() {
        let Some(reported) = reported_input(exchange) else {
            left_out.unreported += 1;
            continue;
        };
        let Some(model) = model_of(exchange) else {
            left_out.unnamed += 1;
            continue;
        };
        let counts = counts_of(recording, &mut sessions, exchange)?;
        samples.push(Sample {
            session: Arc::clone(&exchange.session),
            model: model.into(),
            request: exchange.number as u64,
            counts,
            reported,
        });
    }
    Ok((samples, left_out))
}

/// The input that was reported, where it was and can be read. No request has no tokens.
fn reported_input(exchange: &Exchange) -> Option<u64> {
    exchange.usage?.input.filter(|input| *input > 0)
}

/// The model, where one is named that answers: a client that answers itself writes `<synthetic>`.
fn model_of(exchange: &Exchange) -> Option<&str> {
    exchange.model.as_deref().filter(|name| !name.is_empty() && !name.starts_with('<'))
}

/// The counts of a session's frames, each with those before it.
pub(super) type Sessions = HashMap<Arc<str>, Vec<(FrameSeq, KindCounts)>>;

/// What the request of an exchange holds.
pub(super) fn counts_of(
    recording: &Recording,
    sessions: &mut Sessions,
    exchange: &Exchange,
) -> Result<KindCounts> {
    let Some((to, blocks)) = recording.in_force(exchange.number) else {
        return recorded(recording, exchange);
    };
    let name = &exchange.session;
    if !sessions.contains_key(name) {
        sessions.insert(Arc::clone(name), running_counts(recording, name));
    }
    let frames = sessions.get(name).map(Vec::as_slice).unwrap_or_default();
    let before = |end: usize| {
        let last = end.checked_sub(1).and_then(|last| frames.get(last));
        last.map_or_else(KindCounts::default, |(_, counts)| *counts)
    };
    let until = |to: FrameSeq| frames.partition_point(|(frame, _)| *frame <= to);
    let mut held = before(until(to));
    for block in blocks.iter().filter(|block| block.from <= to) {
        let from = frames.partition_point(|(frame, _)| *frame < block.from);
        let replaced = before(until(block.to.min(to))).join(before(from), u64::saturating_sub);
        let shown = counts_of_snapshot(recording, &block.snapshot);
        held = held.join(replaced, u64::saturating_sub).join(shown, u64::saturating_add);
    }
    Ok(held)
}

fn running_counts(recording: &Recording, name: &str) -> Vec<(FrameSeq, KindCounts)> {
    let Some(history) = recording.history(name) else { return Vec::new() };
    let frames = history.frames();
    let shown = (0..frames.len()).filter_map(|index| {
        let snapshot = frames.snapshot(index).filter(|snapshot| !snapshot.is_empty())?;
        Some((frames.sequence(index)?, counts_of_snapshot(recording, &snapshot)))
    });
    let mut sum = KindCounts::default();
    shown
        .map(|(frame, counts)| {
            sum = sum.join(counts, u64::saturating_add);
            (frame, sum)
        })
        .collect()
}

fn counts_of_snapshot(recording: &Recording, snapshot: &FrameSnapshot) -> KindCounts {
    let messages = u64::from(!snapshot.is_empty());
    let mut counts = KindCounts { messages, ..KindCounts::default() };
    let tokens = recording.hud().tokens_of_chunks(snapshot);
    for (chunk, tokens) in snapshot.chunks().zip(tokens) {
        counts.add(TextKind::of_chunk(chunk.chunk_type()), tokens);
    }
    counts
}

/// A recorded request: definitions of tools are data as calls are, and all else is prose.
fn recorded(recording: &Recording, exchange: &Exchange) -> Result<KindCounts> {
    let request = recording.request(exchange.number)?;
    let counter = recording.hud().counter();
    let mut counts = KindCounts::default();
    for part in request.parts() {
        let kind = match part.kind {
            PartKind::Tool { .. } => TextKind::Calls,
            PartKind::System { .. } | PartKind::Message { .. } => TextKind::Prose,
            _ => continue,
        };
        counts.messages += u64::from(matches!(part.kind, PartKind::Message { .. }));
        counts.add(kind, request.tokens_of(&part, &**counter));
    }
    Ok(counts)
}
