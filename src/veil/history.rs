use std::sync::Arc;

use super::{Frame, Shown, Veil};
use crate::{Error, ErrorKind, Result, id::FrameSeq, snapshot::FrameSnapshot};

/// The frames of one session with the veil that they lead to. A frame in a history never changes.
#[derive(Clone, Debug, Default)]
pub struct History {
    frames: Vec<Arc<Frame>>,
    veil: Veil,
}

/// What a frame is sealed with.
pub(crate) struct Sealed {
    pub(crate) snapshot: Arc<FrameSnapshot>,
    pub(crate) tail: Option<Arc<FrameSnapshot>>,
}

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a frame and applies its ops. The first frame may have any sequence, each further
    /// one has the next. To capture what the frame renders to, push it through
    /// [`Hud::capture`](crate::hud::Hud::capture) instead.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the sequence is not the next, and what [`Veil::apply`]
    /// refuses. The history is then as it was.
    pub fn push(&mut self, frame: Frame) -> Result<Shown> {
        self.expect(frame.sequence)?;
        let shown = self.veil.apply(&frame)?;
        self.frames.push(Arc::new(frame));
        Ok(shown)
    }

    /// Pushes the frame that `seal` makes of it and of what it shows. Where `seal` fails, the
    /// history is as it was.
    pub(crate) fn push_sealed(
        &mut self,
        frame: Frame,
        seal: impl FnOnce(&Frame, &Shown) -> Result<Sealed>,
    ) -> Result<Arc<Frame>> {
        self.expect(frame.sequence)?;
        let prepared = self.veil.prepare(&frame)?;
        let sealed = seal(&frame, &prepared.shown)?;
        self.veil.commit(prepared);
        let frame = Arc::new(Frame {
            rendered_snapshot: Some(sealed.snapshot),
            rendered_tail: sealed.tail.or(frame.rendered_tail),
            ..frame
        });
        self.frames.push(Arc::clone(&frame));
        Ok(frame)
    }

    fn expect(&self, sequence: FrameSeq) -> Result<()> {
        let Some(last) = self.frames.last() else { return Ok(()) };
        if last.sequence.next() == Some(sequence) {
            return Ok(());
        }
        let expected =
            last.sequence.next().map_or("none after it".to_owned(), |next| next.to_string());
        let message = format!("sequences rise by one: expected {expected}, found {sequence}");
        Err(Error::new(ErrorKind::Sequence, message).at_frame(sequence.get()))
    }

    /// The frames in order.
    pub fn frames(&self) -> &[Arc<Frame>] {
        &self.frames
    }

    /// The frame with this sequence, in O(1).
    pub fn get(&self, sequence: FrameSeq) -> Option<&Arc<Frame>> {
        let first = self.frames.first()?.sequence.get();
        self.frames.get(usize::try_from(sequence.get().checked_sub(first)?).ok()?)
    }

    /// The sequence that the next frame must have; `None` past `u64::MAX`. Zero for an empty
    /// history, which takes any.
    pub fn next_sequence(&self) -> Option<FrameSeq> {
        self.frames.last().map_or(Some(FrameSeq::default()), |last| last.sequence.next())
    }

    /// The facets that hold after the last frame.
    pub fn veil(&self) -> &Veil {
        &self.veil
    }
}
