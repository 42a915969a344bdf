//! What an exchange is to a calibration: what its request holds by our count, and what was reported.

use std::{collections::HashMap, sync::Arc};

use super::TextKind;
use crate::{
    Result,
    bill::media::RequestMedia,
    id::FrameSeq,
    request::{Exchange, PartKind, Recording},
    snapshot::FrameSnapshot,
    tokens::TokenCounter,
};

/// The tokens of a context by kind of text, and its messages, by an uncalibrated counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KindCounts {
    /// The tokens, in the order of [`TextKind::ALL`].
    pub tokens: [u64; TextKind::ALL.len()],
    /// The messages.
    pub messages: u64,
    /// The tokens of images and documents, by the rule of the model: they are taken as they are.
    pub media: u64,
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
        self.media = join(self.media, other.media);
        self
    }
}

/// An exchange with a model that is named, whose input is reported.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) session: Arc<str>,
    /// The recording that it is of: sessions of several recordings may have one name.
    pub(super) recording: usize,
    pub(super) model: Arc<str>,
    pub(super) request: u64,
    pub(super) counts: KindCounts,
    pub(super) reported: u64,
    /// Whether the answer is a copy of another session's.
    pub(super) is_copy: bool,
}

impl Sample {
    /// What tells its session from all others.
    pub(super) fn key(&self) -> (usize, &str) {
        (self.recording, &self.session)
    }
}

/// What was left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) unnamed: u64,
    pub(super) unreported: u64,
}

/// The samples of a recording, in its order.
pub(super) fn samples(recording: &Recording, number: usize) -> Result<(Vec<Sample>, LeftOut)> {
    let mut held = HeldCounts::new(recording, &**recording.hud().counter());
    let (mut samples, mut left_out) = (Vec::new(), LeftOut::default());
    for exchange in recording.exchanges() {
        let Some(reported) = reported_input(exchange) else {
            left_out.unreported += 1;
            continue;
        };
        let Some(model) = exchange.answering_model() else {
            left_out.unnamed += 1;
            continue;
        };
        let counts = held.of(exchange)?;
        samples.push(Sample {
            session: Arc::clone(&exchange.session),
            recording: number,
            model: Arc::clone(model),
            request: exchange.number as u64,
            counts,
            reported,
            is_copy: exchange.copied.is_some(),
        });
    }
    Ok((samples, left_out))
}

/// The input that was reported, where it was and can be read. No request has no tokens; one that the
/// provider compacted reports the sum of several runs, and none of them is of its text. What a copy
/// reports is true of its request too.
pub(super) fn reported_input(exchange: &Exchange) -> Option<u64> {
    let usage = exchange.figures().filter(|usage| usage.iterations.is_empty())?;
    usage.input.filter(|input| *input > 0)
}

/// What requests hold, by the count of one tokenizer.
pub(super) struct HeldCounts<'r> {
    recording: &'r Recording,
    counter: &'r dyn TokenCounter,
    media: RequestMedia<'r>,
    /// Of each session its frames, each with the sum up to it.
    sessions: HashMap<Arc<str>, Vec<(FrameSeq, KindCounts)>>,
}

impl<'r> HeldCounts<'r> {
    /// Counts by `counter`: chunks that it counted already are not counted again.
    pub(super) fn new(recording: &'r Recording, counter: &'r dyn TokenCounter) -> Self {
        Self { recording, counter, media: RequestMedia::new(recording), sessions: HashMap::new() }
    }

    /// What the request of an exchange holds.
    pub(super) fn of(&mut self, exchange: &Exchange) -> Result<KindCounts> {
        let media = self.media.of(exchange)?.tokens;
        Ok(KindCounts { media, ..self.texts(exchange)? })
    }

    fn texts(&mut self, exchange: &Exchange) -> Result<KindCounts> {
        let recording = self.recording;
        let Some((to, blocks)) = recording.in_force(exchange.number) else {
            return self.recorded(exchange);
        };
        let name = &exchange.session;
        if !self.sessions.contains_key(name) {
            self.sessions.insert(Arc::clone(name), self.sums(name));
        }
        let frames = self.sessions.get(name).map(Vec::as_slice).unwrap_or_default();
        let before = |end: usize| {
            let last = end.checked_sub(1).and_then(|last| frames.get(last));
            last.map_or_else(KindCounts::default, |(_, counts)| *counts)
        };
        let until = |to: FrameSeq| frames.partition_point(|(frame, _)| *frame <= to);
        let mut held = before(until(to));
        for block in blocks.iter().filter(|block| block.from <= to) {
            let from = frames.partition_point(|(frame, _)| *frame < block.from);
            let replaced = before(until(block.to.min(to))).join(before(from), u64::saturating_sub);
            let shown = self.snapshot(&block.snapshot);
            held = held.join(replaced, u64::saturating_sub).join(shown, u64::saturating_add);
        }
        Ok(held)
    }

    fn sums(&self, name: &str) -> Vec<(FrameSeq, KindCounts)> {
        let Some(history) = self.recording.history(name) else { return Vec::new() };
        let frames = history.frames();
        let shown = (0..frames.len()).filter_map(|index| {
            let snapshot = frames.snapshot(index).filter(|snapshot| !snapshot.is_empty())?;
            Some((frames.sequence(index)?, self.snapshot(&snapshot)))
        });
        let mut sum = KindCounts::default();
        shown
            .map(|(frame, counts)| {
                sum = sum.join(counts, u64::saturating_add);
                (frame, sum)
            })
            .collect()
    }

    fn snapshot(&self, snapshot: &FrameSnapshot) -> KindCounts {
        let messages = u64::from(!snapshot.is_empty());
        let mut counts = KindCounts { messages, ..KindCounts::default() };
        let made_by = snapshot.identity().map(|identity| identity.tokenizer.as_str());
        let is_counted = made_by == Some(self.counter.id());
        for chunk in snapshot.chunks() {
            let tokens = if is_counted {
                chunk.tokens()
            } else {
                self.counter.count(chunk.content()) as u64
            };
            counts.add(TextKind::of_chunk(chunk.chunk_type()), tokens);
        }
        counts
    }

    /// A recorded request: definitions of tools are data as calls are, and all else is prose.
    fn recorded(&self, exchange: &Exchange) -> Result<KindCounts> {
        let request = self.recording.request(exchange.number)?;
        let mut counts = KindCounts::default();
        for part in request.parts() {
            let kind = match part.kind {
                PartKind::Tool { .. } => TextKind::Calls,
                PartKind::System { .. } | PartKind::Message { .. } => TextKind::Prose,
                _ => continue,
            };
            counts.messages += u64::from(matches!(part.kind, PartKind::Message { .. }));
            counts.add(kind, request.tokens_of(&part, self.counter));
        }
        Ok(counts)
    }
}
