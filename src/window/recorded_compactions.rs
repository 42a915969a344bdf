use std::sync::Arc;

use super::{change::Change, recorded_edits::RecordedEdits};
use crate::{
    Error, ErrorKind, Result,
    compress::CompressionTransform,
    hud::Hud,
    id::{Millis, Role},
    snapshot::Substitution,
    veil::History,
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
    edits: RecordedEdits,
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
                        has_changed |= !self.edits.follow(hud, history, now)?.is_empty();
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

    /// The blocks of the compactions, and the edits of frames that none of them stands for.
    fn in_force(&self) -> Vec<Substitution> {
        let mut blocks = self.transform.substitutions();
        let edit = |change: &Change| Some(change.substitution(change.snapshot()?));
        let is_replaced = |edit: &Substitution| {
            let after = blocks.partition_point(|block| block.from <= edit.from);
            let block = after.checked_sub(1).and_then(|at| blocks.get(at));
            block.is_some_and(|block| edit.from <= block.to)
        };
        let edits = self.edits.changes().filter_map(edit);
        let edits: Vec<_> = edits.filter(|edit| !is_replaced(edit)).collect();
        blocks.extend(edits);
        blocks.sort_by_key(|block| block.from);
        blocks
    }

    /// The blocks in force, in order. Shared until the next compaction.
    pub fn blocks(&self) -> &Arc<Vec<Substitution>> {
        &self.blocks
    }
}
