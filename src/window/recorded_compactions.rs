use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    compress::CompressionTransform,
    hud::Hud,
    id::{FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind},
    veil::{Branch, ContextEdit, Facet, FacetChange, FacetOp, Frame, History, Veil},
};

/// The compactions that a history tells of, as blocks in the place of the frames that they replaced.
///
/// A recording may say that a summary took the place of frames: the context from then on holds the
/// summary. Rendered with these [blocks](Self::blocks), a history is the context that was in force.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     hud::{Hud, RenderRequest}, id::{FacetType, Millis}, tokens::Chars4,
///     veil::{Compaction, Facet, FacetOp, Frame, History, Source}, window::RecordedCompactions,
/// };
///
/// let (hud, mut history) = (Hud::new(Arc::new(Chars4)), History::new());
/// for (n, text) in ["We looked for the key.", "It was gone."].into_iter().enumerate() {
///     let facet = Facet::new(format!("said-{n}"), FacetType::EVENT, text);
///     hud.capture(&mut history, Frame::new(n as u64, Source::User).with(FacetOp::add(facet)), Millis::new(0))?;
/// }
/// let mut told = Frame::new(2, Source::Environment);
/// let summary = Facet::new("summary", FacetType::SUMMARY, "The key is gone.");
/// told.events.push(Compaction::event(0.into(), 1.into(), "pi", Some(&summary)));
/// hud.capture(&mut history, told, Millis::new(0))?;
///
/// let mut compactions = RecordedCompactions::default();
/// compactions.follow(&hud, &history, Millis::new(0))?;
/// let request = RenderRequest { substitutions: compactions.blocks().to_vec(), ..RenderRequest::default() };
/// let context = hud.render(&history, &request, Millis::new(0))?;
/// assert_eq!(context.messages().len(), 1);
/// assert!(context.messages()[0].content().contains("The key is gone."));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RecordedCompactions {
    transform: CompressionTransform,
    blocks: Arc<Vec<Substitution>>,
    edits: Vec<Edit>,
    /// The frames that are on other branches, where an edit tells nothing.
    outside: Vec<RangeInclusive<FrameSeq>>,
    /// The first frame that was not asked for edits.
    next: FrameSeq,
}

/// What a context holds of a frame from another one on.
#[derive(Debug)]
struct Edit {
    told_at: FrameSeq,
    frame: FrameSeq,
    snapshot: Arc<FrameSnapshot>,
}

/// A result of an edit names its tool as the original does.
fn named(mut facet: Facet, original: &Frame) -> Facet {
    let added = original.ops.iter().filter_map(|op| match &op.change {
        FacetChange::Add(added) => Some(added),
        _ => None,
    });
    if facet.is_result() && facet.tool_name().is_none() {
        let same = added.into_iter().find(|added| added.id == facet.id && added.is_result());
        facet.part = same.and_then(|same| same.part.clone()).or(facet.part);
    }
    facet
}

impl RecordedCompactions {
    /// Takes over the compactions and edits that the frames since the last call tell of; says whether
    /// there were any. Of a damaged one nothing is taken over. Looks at each frame once.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where a frame has no snapshot, after those before it were followed; and
    /// those of [`CompressionTransform::adopt`], but for damaged compactions.
    pub fn follow(&mut self, hud: &Hud, history: &History, now: Millis) -> Result<bool> {
        let mut has_changed = false;
        loop {
            let (asked, tags) = (self.transform.asked(), history.veil().tags());
            let adopted = self
                .transform
                .adopt(history, now, |facet| hud.render_facet(facet, Role::User, tags, now));
            match adopted {
                Ok(None) => {
                    // Nobody knows what a frame tells of that was not looked at.
                    let Some(frame) = self.transform.first_unsealed(history) else {
                        has_changed |= self.take_edits(hud, history, now)?;
                        if has_changed {
                            self.blocks = Arc::new(self.in_force());
                        }
                        return Ok(has_changed);
                    };
                    let message = "expected a captured frame, found one without a snapshot";
                    return Err(Error::new(ErrorKind::Shape, message).at_frame(frame.get()));
                }
                Ok(Some(_)) => has_changed = true,
                // One that is damaged is passed over.
                Err(_) if self.transform.asked() > asked => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Renders what the new frames tell that others are read as; says whether they tell anything.
    fn take_edits(&mut self, hud: &Hud, history: &History, now: Millis) -> Result<bool> {
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
                let snapshot = Arc::new(hud.render_frame(&read, &shown, now)?);
                self.edits.push(Edit { told_at: frame.sequence, frame: edited, snapshot });
            }
        }
        Ok(self.edits.len() > known || !self.edits.is_empty() && self.outside != was_outside)
    }

    /// The blocks of the compactions, and the edits of frames that none of them stands for.
    fn in_force(&self) -> Vec<Substitution> {
        let mut blocks = self.transform.substitutions();
        let is_outside = |frame| self.outside.iter().any(|range| range.contains(&frame));
        let is_replaced = |frame: FrameSeq| {
            let after = blocks.partition_point(|block| block.from <= frame);
            after
                .checked_sub(1)
                .and_then(|at| blocks.get(at))
                .is_some_and(|block| frame <= block.to)
        };
        let in_force = self.edits.iter().filter(|edit| !is_outside(edit.told_at));
        let last: BTreeMap<FrameSeq, &Edit> = in_force.map(|edit| (edit.frame, edit)).collect();
        let edits = last.into_iter().filter(|(frame, _)| !is_replaced(*frame));
        let edits: Vec<_> = edits
            .map(|(frame, edit)| {
                let snapshot = Arc::clone(&edit.snapshot);
                let stands = if snapshot.is_empty() {
                    SubstitutionKind::Dropped
                } else {
                    SubstitutionKind::Shortened
                };
                let block = format!("edited-{frame}").into();
                Substitution { block, stands, from: frame, to: frame, snapshot }
            })
            .collect();
        blocks.extend(edits);
        blocks.sort_by_key(|block| block.from);
        blocks
    }

    /// The blocks in force, in order. Shared until the next compaction.
    pub fn blocks(&self) -> &Arc<Vec<Substitution>> {
        &self.blocks
    }
}
