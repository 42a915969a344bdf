//! Observation masking: old results of tools have one line each.

use std::sync::Arc;

use super::keeper::Asking;
use crate::{
    compress::CompressionTransform,
    id::FrameSeq,
    snapshot::{FrameSnapshot, PartRef, Substitution, SubstitutionKind, ToolOutput},
    veil::{History, Source},
    window::{DroppedFrames, ShortenedFrame},
};

/// The results that were masked.
#[derive(Debug)]
pub(super) struct Masking {
    turns: u64,
    batch: u64,
    /// The frames with results that are not masked yet, each with the turn that it came before.
    waiting: Vec<(u64, FrameSeq)>,
    turn: u64,
    /// How many frames were looked at.
    seen: usize,
    masks: Vec<Substitution>,
    shortened: Arc<Vec<ShortenedFrame>>,
}

impl Masking {
    pub(super) fn new(turns: u64, batch: u64) -> Self {
        let (waiting, turn, seen, masks, shortened) = Default::default();
        Self { turns, batch: batch.max(1), waiting, turn, seen, masks, shortened }
    }

    /// What stands in the place of results.
    pub(super) fn masks(&self) -> &[Substitution] {
        &self.masks
    }

    /// The frames whose results are masked, but for those that were dropped since.
    pub(super) fn shortened(&self, dropped: &[DroppedFrames]) -> Arc<Vec<ShortenedFrame>> {
        let Some(last) = dropped.last() else { return Arc::clone(&self.shortened) };
        let from = self.shortened.partition_point(|what| what.frame <= last.to);
        Arc::new(self.shortened.get(from..).unwrap_or_default().to_vec())
    }

    /// Another turn begins: masks what became old, if that is a whole batch. Only frames of
    /// units are masked; others stay as they are.
    pub(super) fn follow(&mut self, asking: &Asking<'_>, transform: &CompressionTransform) {
        let Asking { history, hud, .. } = *asking;
        let (frames, units) = (history.frames(), transform.units());
        self.turn += 1;
        for index in self.seen..frames.len() {
            let sequence = frames.sequence(index);
            if let Some(sequence) = sequence.filter(|_| has_output(history, transform, index)) {
                self.waiting.push((self.turn, sequence));
            }
        }
        self.seen = frames.len();
        let is_old = |(turn, _): &(u64, FrameSeq), age| turn.saturating_add(age) <= self.turn;
        let first_is = |age| self.waiting.first().is_some_and(|first| is_old(first, age));
        if !first_is(self.turns.saturating_add(self.batch).saturating_sub(1)) {
            return;
        }
        let old = self.waiting.partition_point(|waiting| is_old(waiting, self.turns));
        for (_, frame) in self.waiting.drain(..old) {
            let at = units.partition_point(|unit| unit.to < frame);
            if units.get(at).is_none_or(|unit| unit.from > frame) {
                continue;
            }
            let Some(whole) = history.snapshot(frame) else { continue };
            let line = |output: ToolOutput<'_>| {
                format!("[… {} tokens of output left out …]", output.tokens)
            };
            let Some(masked) = whole.masked(&**hud.counter(), line) else { continue };
            let what = ShortenedFrame {
                frame,
                id: format!("masked-{frame}").into(),
                original_tokens: tokens_of(&whole),
                tokens: tokens_of(&masked),
            };
            self.masks.push(Substitution {
                block: Arc::clone(&what.id),
                stands: SubstitutionKind::Shortened,
                from: frame,
                to: frame,
                snapshot: Arc::new(masked),
            });
            Arc::make_mut(&mut self.shortened).push(what);
        }
    }
}

/// Whether a frame holds what a tool gave: a result, words of the environment, or what a program
/// answered to a command in the agent's text.
fn has_output(history: &History, transform: &CompressionTransform, index: usize) -> bool {
    let frames = history.frames();
    let Some(snapshot) = frames.snapshot(index).filter(|snapshot| !snapshot.is_empty()) else {
        return false;
    };
    frames.source(index) == Some(Source::Environment)
        || transform.command_answered(index).is_some()
        || snapshot.chunks().any(|chunk| matches!(chunk.part(), PartRef::Result { .. }))
}

fn tokens_of(snapshot: &FrameSnapshot) -> u64 {
    snapshot.exact_tokens().unwrap_or(snapshot.total_tokens())
}
