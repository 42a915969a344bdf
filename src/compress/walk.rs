use std::{collections::HashMap, sync::Arc};

use super::{Passage, net};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetType, FrameSeq, Role},
    snapshot::{ChunkRef, FrameSnapshot, Part},
    veil::{FacetChange, FacetOp, Frame, History, Source, Veil},
};

/// The frames of a history as compression sees them, walked once.
#[derive(Debug, Default)]
pub(super) struct Walk {
    steps: Vec<Step>,
    /// The calls that wait for a result, by id, and how many.
    open: HashMap<Box<str>, usize>,
    waiting: usize,
    veil: Veil,
    /// How far `veil` has been led.
    led: usize,
}

/// A frame, without its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) sequence: FrameSeq,
    pub(super) tokens: u64,
    pub(super) role: Role,
    /// Whether it stays as it is: the operator's words, and pinned facets.
    pub(super) stays: bool,
    /// Whether every call before the end of the frame has its result by then.
    pub(super) is_closed: bool,
}

impl Walk {
    /// Looks at the frames that were not there before. Runs in time proportional to their chunks.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where a frame was not captured, [`ErrorKind::Sequence`] where the
    /// history is not the one that was walked before.
    pub(super) fn follow(&mut self, history: &History) -> Result<()> {
        let frames = history.frames();
        let is_same = |step: &Step, frame: &Arc<Frame>| step.sequence == frame.sequence;
        let last = self.steps.len().checked_sub(1);
        let known = last.map(|last| (self.steps.get(last), frames.get(last)));
        if let Some((Some(step), frame)) = known
            && !frame.is_some_and(|frame| is_same(step, frame))
        {
            let message = format!(
                "expected the history that was planned up to frame {}, found another",
                step.sequence
            );
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        for frame in frames.iter().skip(self.steps.len()) {
            let snapshot = snapshot_of(frame)?;
            let step = self.step(frame, snapshot, history);
            self.steps.push(step);
        }
        Ok(())
    }

    fn step(&mut self, frame: &Frame, snapshot: &FrameSnapshot, history: &History) -> Step {
        let role = snapshot.chunks().find_map(ChunkRef::role).unwrap_or(Role::User);
        let calls = || {
            snapshot
                .chunks()
                .filter(|chunk| !chunk.range().is_empty() || !matches!(chunk.part(), Part::Text))
        };
        // A turn of the agent ends its last one: what has no result by then gets none.
        let is_new_turn = role == Role::Assistant && frame.source == Source::Agent;
        if is_new_turn && snapshot.chunks().next().is_some() {
            self.open.clear();
            self.waiting = 0;
        }
        for chunk in calls() {
            match chunk.part() {
                Part::Call { id, .. } => {
                    *self.open.entry(id.clone().unwrap_or_default()).or_default() += 1;
                    self.waiting += 1;
                }
                Part::Result { id } => {
                    let waits = self.open.get_mut(&id.clone().unwrap_or_default());
                    if let Some(waits) = waits.filter(|waits| **waits > 0) {
                        *waits -= 1;
                        self.waiting -= 1;
                    }
                }
                _ => {}
            }
        }
        let is_pinned = |id: &str| {
            let facet = history.veil().get(id);
            let added = || {
                frame.ops.iter().find_map(|op| match &op.change {
                    FacetChange::Add(facet) if &*facet.id == id => Some(facet),
                    _ => None,
                })
            };
            facet.or_else(added).is_some_and(|facet| {
                facet.facet_type == FacetType::SYSTEM
                    || facet.saliency.as_ref().is_some_and(|saliency| saliency.pinned)
            })
        };
        let stays = role == Role::System
            || snapshot.chunks().any(|chunk| chunk.facet_ids().iter().any(|id| is_pinned(id)));
        Step {
            sequence: frame.sequence,
            tokens: snapshot.total_tokens(),
            role,
            stays,
            is_closed: self.waiting == 0,
        }
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The frames with these indices as passages.
    pub(super) fn passages(
        &self,
        history: &History,
        frames: std::ops::Range<usize>,
    ) -> Result<Vec<Passage>> {
        let steps = self.steps.get(frames.clone()).unwrap_or_default();
        let frames = history.frames().get(frames).unwrap_or_default();
        let passage = |(step, frame): (&Step, &Arc<Frame>)| {
            let snapshot = Arc::clone(snapshot_of(frame)?);
            Ok(Passage { from: step.sequence, to: step.sequence, role: step.role, snapshot })
        };
        let shown = |passage: &Result<Passage>| {
            passage.as_ref().map_or(true, |passage| !passage.snapshot.is_empty())
        };
        steps.iter().zip(frames).map(passage).filter(shown).collect()
    }

    /// What the ops of these frames come to. The frames are led through once, front to back.
    ///
    /// # Errors
    /// Those of [`Veil::apply`].
    pub(super) fn net_ops(
        &mut self,
        history: &History,
        frames: std::ops::Range<usize>,
    ) -> Result<Vec<FacetOp>> {
        let all = history.frames();
        if frames.start < self.led {
            (self.led, self.veil) = (0, Veil::default());
        }
        for frame in all.get(self.led..frames.start).unwrap_or_default() {
            self.veil.apply(frame)?;
        }
        let ops = net::lead(&mut self.veil, all.get(frames.clone()).unwrap_or_default())?;
        self.led = frames.end;
        Ok(ops)
    }
}

fn snapshot_of(frame: &Frame) -> Result<&Arc<FrameSnapshot>> {
    frame.rendered_snapshot.as_ref().ok_or_else(|| {
        let message = "expected a captured frame, found one without a snapshot";
        Error::new(ErrorKind::Shape, message).at_frame(frame.sequence.get())
    })
}
