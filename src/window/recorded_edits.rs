//! Frames that a recording says are read otherwise than they were written: a client or a provider
//! cleared results, or took messages out.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use super::{ShortenedFrame, change::Change, shrink::tokens_of};
use crate::{
    Result,
    hud::Hud,
    id::{FrameSeq, Millis},
    snapshot::FrameSnapshot,
    veil::{Branch, ContextEdit, Facet, FacetOp, Frame, History, Veil},
};

/// The edits that a history tells of.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedEdits {
    edits: Vec<Edit>,
    /// The frames that are on other branches, where an edit tells nothing.
    outside: Vec<RangeInclusive<FrameSeq>>,
    /// The first frame that was not asked for edits.
    next: FrameSeq,
    /// What contexts hold of the frames that are read otherwise.
    in_force: BTreeMap<FrameSeq, Change>,
}

/// What a context holds of a frame from another one on.
#[derive(Clone, Debug)]
struct Edit {
    told_at: FrameSeq,
    change: Change,
}

impl RecordedEdits {
    /// Renders what the new frames tell that others are read as; gives the frames that are read
    /// otherwise than before. Looks at each frame once.
    ///
    /// # Errors
    /// Those of the veil and of the renderer.
    pub(super) fn follow(
        &mut self,
        hud: &Hud,
        history: &History,
        now: Millis,
    ) -> Result<Vec<FrameSeq>> {
        let frames = history.frames();
        let known = self.edits.len();
        let was_outside = self.outside.clone();
        for frame in frames.slice(frames.first_from(self.next)..frames.len()) {
            self.next = FrameSeq::new(frame.sequence.get().saturating_add(1));
            if let Ok(Some(branch)) = Branch::of(&frame) {
                self.outside = branch.outside;
            }
            // Of a damaged one nothing is taken over.
            let Ok(Some(edit)) = ContextEdit::of(&frame) else { continue };
            for (edited, facets) in edit.frames {
                let Some(original) = history.get(edited) else { continue };
                let ops = facets.into_iter().map(|facet| FacetOp::add(named(facet, &original)));
                let source = original.source.clone();
                let read = Frame { ops: ops.collect(), ..Frame::new(edited.get(), source) };
                let shown = Veil::default().apply(&read)?;
                let snapshot = hud.render_frame(&read, &shown, now)?;
                let original = original.rendered_snapshot.as_deref();
                let what = ShortenedFrame {
                    frame: edited,
                    id: format!("edited-{edited}").into(),
                    original_tokens: original.map_or(0, tokens_of),
                    tokens: tokens_of(&snapshot),
                };
                let change = Change::Shortened { what, snapshot: Arc::new(snapshot) };
                self.edits.push(Edit { told_at: frame.sequence, change });
            }
        }
        if self.edits.len() == known && self.outside == was_outside {
            return Ok(Vec::new());
        }
        let is_outside = |frame| self.outside.iter().any(|range| range.contains(&frame));
        let told = self.edits.iter().filter(|edit| !is_outside(edit.told_at));
        let now = told.map(|edit| (edit.change.from(), edit.change.clone())).collect();
        let before = std::mem::replace(&mut self.in_force, now);
        let snapshot = |of: &BTreeMap<FrameSeq, Change>, frame: &FrameSeq| {
            of.get(frame).and_then(Change::snapshot).map(Arc::as_ptr)
        };
        let is_other =
            |frame: &FrameSeq| snapshot(&before, frame) != snapshot(&self.in_force, frame);
        let mut all: Vec<FrameSeq> =
            before.keys().chain(self.in_force.keys()).copied().filter(is_other).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// What contexts hold of a frame, where that is not what was written.
    pub(super) fn of(&self, frame: FrameSeq) -> Option<&Arc<FrameSnapshot>> {
        self.in_force.get(&frame)?.snapshot()
    }

    /// The frames that are read otherwise, in order.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.in_force.values()
    }
}

/// A result of an edit names its tool as the original does.
fn named(mut facet: Facet, original: &Frame) -> Facet {
    if facet.is_result() && facet.tool_name().is_none() {
        let same = original.added().find(|added| added.id == facet.id && added.is_result());
        facet.part = same.and_then(|same| same.part.clone()).or(facet.part);
    }
    facet
}
