use std::{ops::RangeInclusive, sync::Arc};

use super::{Hud, RenderRequest, RenderedContext};
use crate::{
    Result,
    id::{FrameSeq, Millis},
    snapshot::{FrameSnapshot, check_range},
    veil::{Frame, History, SealedFrame},
};

/// When frames are sealed with what they rendered to. Whenever that is, a frame is rendered from
/// the veil as it was at that frame, so that the bytes and chunks are the same; the moment of the
/// snapshot is that of the sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum CapturePolicy {
    /// When it is pushed: what was shown is captured before anything else happens.
    #[default]
    OnPush,
    /// When a context that holds it is first rendered by [`Hud::capture_and_render`]; frames that
    /// nobody looks at cost nothing.
    OnFirstRender,
    /// As `OnFirstRender`, but the last so many frames of the history stay without a snapshot, and
    /// are rendered anew for each context. A `window::ContextWindow` has to
    /// count each frame, and seals these too when it first looks at them.
    OlderThan(usize),
}

impl CapturePolicy {
    /// How many of so many frames are to be sealed, from the first on.
    fn sealed_of(self, frames: usize) -> usize {
        match self {
            Self::OnPush | Self::OnFirstRender => frames,
            Self::OlderThan(young) => frames.saturating_sub(young),
        }
    }
}

impl Hud {
    /// Pushes `frame` to `history` and, where the policy is [`CapturePolicy::OnPush`], seals it
    /// with the snapshot of what it renders to, taken at `now`. A frame that brings a snapshot
    /// keeps it.
    ///
    /// Costs the rendering of this one frame and the counting of its text.
    ///
    /// # Errors
    /// Those of [`History::push`] and of the format. The history is then as it was.
    pub fn capture(&self, history: &mut History, frame: Frame, now: Millis) -> Result<Arc<Frame>> {
        self.seal(history, frame, None, now)
    }

    /// As [`Hud::capture`], for the frame in which the agent answers `context`: the tail of that
    /// context is sealed with the frame whatever the policy, so that every byte that was sent is
    /// captured. Costs what [`Hud::capture`] does.
    ///
    /// # Errors
    /// Those of [`Hud::capture`].
    pub fn capture_answer(
        &self,
        history: &mut History,
        frame: Frame,
        context: &RenderedContext,
        now: Millis,
    ) -> Result<Arc<Frame>> {
        self.seal(history, frame, context.tail().cloned(), now)
    }

    /// As [`Hud::capture_answer`], where the tail of the context that was sent is known.
    pub(crate) fn seal(
        &self,
        history: &mut History,
        frame: Frame,
        tail: Option<Arc<FrameSnapshot>>,
        now: Millis,
    ) -> Result<Arc<Frame>> {
        history.push_sealed(frame, |frame, shown| {
            let snapshot = match &frame.rendered_snapshot {
                None if self.capture_policy() == CapturePolicy::OnPush => {
                    Some(Arc::new(self.render_frame(frame, shown, now)?))
                }
                snapshot => snapshot.clone(),
            };
            Ok(SealedFrame { snapshot, tail })
        })
    }

    /// Seals the frames that have no snapshot and that the policy selects: all of them, or under
    /// [`CapturePolicy::OlderThan`] all but the last. Answers with how many were sealed.
    ///
    /// Each is rendered from the veil as it was at that frame. The veil is followed once in all:
    /// the history remembers how far, so that a later call goes on from there. A frame that
    /// somebody took from the history before is not changed: the history holds a sealed one in
    /// its place. Costs the rendering and the counting of what it seals, the ops of the frames up
    /// to there, and a copy of the facets that hold.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     hud::{CapturePolicy, Hud}, id::{FacetType, Millis}, tokens::Chars4,
    ///     veil::{Facet, FacetOp, Frame, History, Source},
    /// };
    ///
    /// let policy = CapturePolicy::OlderThan(1);
    /// let hud = Hud::builder(Arc::new(Chars4)).capture_policy(policy).build();
    /// let mut history = History::new();
    /// for sequence in 0..3_u64 {
    ///     let event = Facet::new(format!("event-{sequence}"), FacetType::EVENT, "Tick.");
    ///     let frame = Frame::new(sequence, Source::Environment).with(FacetOp::add(event));
    ///     hud.capture(&mut history, frame, Millis::new(0))?;
    /// }
    /// assert_eq!(hud.capture_missing(&mut history, Millis::new(0))?, 2);
    /// assert!(history.frames().get(1).unwrap().rendered_snapshot.is_some());
    /// assert!(history.frames().get(2).unwrap().rendered_snapshot.is_none());
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the format, with frame and facet. Frames before that one are then sealed.
    pub fn capture_missing(&self, history: &mut History, now: Millis) -> Result<usize> {
        self.seal_missing(history, None, now)
    }

    /// As [`Hud::capture_missing`], but for every frame that has no snapshot, whatever the policy.
    /// Answers with which they were. Costs nothing where all have one.
    ///
    /// # Errors
    /// Those of the format, with frame and facet. Frames before that one are then sealed.
    pub fn seal_all(&self, history: &mut History, now: Millis) -> Result<Vec<FrameSeq>> {
        history.seal_all(|frame, shown| self.render_frame(frame, shown, now))
    }

    /// As [`Hud::render`], after sealing what the policy selects of the frames that are rendered.
    /// Costs what [`Hud::capture_missing`] does for these, and [`Hud::render`].
    ///
    /// # Errors
    /// Those of [`Hud::render`]. Some frames may then be sealed.
    pub fn capture_and_render(
        &self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<RenderedContext> {
        let range = request.frames.as_ref();
        range.map_or(Ok(()), check_range)?;
        self.seal_missing(history, range, now)?;
        self.render(history, request, now)
    }

    fn seal_missing(
        &self,
        history: &mut History,
        range: Option<&RangeInclusive<FrameSeq>>,
        now: Millis,
    ) -> Result<usize> {
        let until = self.capture_policy().sealed_of(history.frames().len());
        let is_wanted = |frame: &Frame| range.is_none_or(|range| range.contains(&frame.sequence));
        history.seal_missing(until, is_wanted, |frame, shown| {
            self.render_frame(frame, shown, now).map(Arc::new)
        })
    }
}
