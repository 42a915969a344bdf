use std::{collections::HashSet, sync::Arc};

use memchr::memmem::Finder;

use super::{FramePage, OriginalsState, ReplacedFrames, ReplacementKind};
use crate::{
    Error, ErrorKind, Result,
    compress::{CompressionBlock, Passage, Step},
    id::FrameSeq,
    snapshot::ArchiveReader,
    text::TextRange,
    veil::History,
    window::{ContextWindow, change::Change},
};

/// The frames that something stands for in the contexts of a window, as they were captured.
#[derive(Clone, Copy, Debug)]
pub struct WindowOriginals<'a> {
    window: &'a ContextWindow,
    history: &'a History,
    archive: Option<&'a ArchiveReader>,
}

/// A frame that says a text.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundText {
    /// The frame.
    pub frame: FrameSeq,
    /// The id that [`ContextWindow::expand`] takes for it.
    pub id: Arc<str>,
    /// Where the text stands first in what the frame rendered to.
    pub range: TextRange,
    /// How often it stands there.
    pub times: u64,
}

/// What stands for frames, with those of them that can be read.
pub(super) struct Replaced {
    pub(super) what: ReplacedFrames,
    pub(super) originals: Vec<Original>,
}

/// A frame as it was captured.
pub(super) struct Original {
    /// The id that it is expanded by.
    pub(super) id: Arc<str>,
    pub(super) passage: Passage,
}

impl ContextWindow {
    /// The frames that something stands for, to be searched and read.
    pub fn originals<'a>(&'a self, history: &'a History) -> WindowOriginals<'a> {
        WindowOriginals { window: self, history, archive: None }
    }
}

impl<'a> WindowOriginals<'a> {
    /// Reads from this archive what was spilled to it.
    #[must_use]
    pub fn archive(self, archive: &'a ArchiveReader) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// The frames that say a text, letter by letter, in order. Frames that stand in the context as
    /// they are, and what was forgotten, are not searched. Runs in time linear in the frames' texts.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the archive holds another text than a block stands for, and
    /// those of reading the archive.
    pub fn search(&self, text: &str) -> Result<Vec<FoundText>> {
        let finder = Finder::new(text);
        let mut found = Vec::new();
        for Original { id, passage } in self.replaced()?.into_iter().flat_map(|of| of.originals) {
            let mut places = finder.find_iter(passage.snapshot.text().as_bytes());
            if let Some(at) = places.next() {
                let (range, times) = (TextRange::at(at, text.len()), 1 + places.count() as u64);
                found.push(FoundText { frame: passage.from, id, range, times });
            }
        }
        Ok(found)
    }

    /// At most `limit` tokens of a frame: all of it, or the part around `around`. It holds that place
    /// whole where it fits. A frame that stands in the context as it is has pages too.
    ///
    /// Costs time in what stands for frames, and counts a few texts of about `limit` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there is no such frame or it shows nothing,
    /// [`ErrorKind::Dropped`] where it was forgotten, [`ErrorKind::Stored`] where an archive has it
    /// that was not named, and those of [`WindowOriginals::search`].
    pub fn page(&self, frame: FrameSeq, around: TextRange, limit: u64) -> Result<FramePage> {
        let counter = &**self.window.hud.counter();
        let of = |passage: &Passage| {
            FramePage::of(passage.from, &passage.snapshot, around, limit, counter)
        };
        let replaced = self.replaced_in(|from, to| (from..=to).contains(&frame))?.pop();
        if let Some(Replaced { what, originals }) = replaced {
            if let Some(found) = originals.iter().find(|of| of.passage.from == frame) {
                return Ok(of(&found.passage));
            }
            let kind = match what.originals {
                OriginalsState::Held => None,
                OriginalsState::Archived => Some(ErrorKind::Stored),
                OriginalsState::Forgotten => Some(ErrorKind::Dropped),
            };
            if let Some(kind) = kind {
                let (id, state) = (&what.id, what.originals.as_str());
                let message = format!("the originals of {id} are {state}");
                return Err(Error::new(kind, message).at_frame(frame.get()));
            }
        }
        let shown = self.window.passages_in(self.history, frame..=frame);
        shown.first().map(of).ok_or_else(|| {
            let message = "expected a frame that shows something";
            Error::new(ErrorKind::OutOfRange, message).at_frame(frame.get())
        })
    }

    /// Whether a frame holds words of the user.
    pub(super) fn is_words(&self, frame: FrameSeq) -> bool {
        let steps = self.window.transform.steps();
        let at = steps.partition_point(|step| step.sequence < frame);
        self.window.transform.is_words(at)
    }

    /// Everything that stands for frames, in their order. Copies no text that the window or its
    /// history holds.
    pub(super) fn replaced(&self) -> Result<Vec<Replaced>> {
        self.replaced_in(|_, _| true)
    }

    /// What stands for frames where `is_wanted` says so of the first and the last.
    fn replaced_in(&self, is_wanted: impl Fn(FrameSeq, FrameSeq) -> bool) -> Result<Vec<Replaced>> {
        let Self { window, .. } = self;
        let changes = window.changes.values();
        let dropped: HashSet<&str> =
            changes.clone().filter_map(|change| change.dropped()?.block.as_deref()).collect();
        let blocks = window.transform.blocks();
        let blocks =
            blocks.filter(|block| !dropped.contains(&*block.id) && !self.is_outside(block));
        let blocks = blocks.filter(|block| is_wanted(block.from, block.to));
        let changes = changes.chain(window.edited());
        let changes = changes.filter(|change| is_wanted(change.from(), change.to()));
        let mut all = Vec::new();
        for block in blocks {
            all.push(self.of_block(block)?);
        }
        for change in changes {
            all.push(self.of_change(change)?);
        }
        all.sort_by_key(|replaced| replaced.what.from);
        Ok(all)
    }

    /// Whether a block stands for frames on a branch that the session left.
    fn is_outside(&self, block: &CompressionBlock) -> bool {
        let steps = self.window.transform.steps();
        let at = steps.partition_point(|step| step.sequence < block.from);
        steps.get(at).is_some_and(Step::is_outside)
    }

    fn of_block(&self, block: &Arc<CompressionBlock>) -> Result<Replaced> {
        let (mut originals, mut state) = (Vec::new(), OriginalsState::Held);
        self.gather(block, &mut originals, &mut state)?;
        let what = ReplacedFrames {
            kind: ReplacementKind::Summarised,
            id: Arc::clone(&block.id),
            from: block.from,
            to: block.to,
            frames: self.frames(block.from, block.to),
            tokens_before: block.original_tokens,
            tokens_after: block.tokens,
            originals: state,
        };
        Ok(Replaced { what, originals })
    }

    /// The frames of a block, each with the block that it is expanded by: itself, or one inside where
    /// others inside of it were forgotten or are in an archive.
    fn gather(
        &self,
        block: &Arc<CompressionBlock>,
        originals: &mut Vec<Original>,
        state: &mut OriginalsState,
    ) -> Result<()> {
        let expanded = match (block.expand(), self.archive) {
            (Err(error), Some(archive)) if error.kind() == ErrorKind::Stored => {
                *state = OriginalsState::Archived.max(*state);
                block.expand_from(archive)
            }
            (expanded, _) => expanded,
        };
        let missing = match expanded {
            Ok(passages) => {
                let id = &block.id;
                let of = |passage| Original { id: Arc::clone(id), passage };
                originals.extend(passages.into_iter().map(of));
                return Ok(());
            }
            Err(error) => match error.kind() {
                ErrorKind::Stored => OriginalsState::Archived,
                ErrorKind::Dropped => OriginalsState::Forgotten,
                _ => return Err(error),
            },
        };
        *state = missing.max(*state);
        block.blocks().iter().try_for_each(|inner| self.gather(inner, originals, state))
    }

    fn of_change(&self, change: &Change) -> Result<Replaced> {
        let (from, to) = (change.from(), change.to());
        let (kind, tokens_before, tokens_after) = match change {
            Change::Dropped(dropped) => (ReplacementKind::Dropped, dropped.tokens, 0),
            Change::Shortened { what, .. } => {
                let is_masked = what.is_masked();
                let kind =
                    if is_masked { ReplacementKind::Masked } else { ReplacementKind::Shortened };
                (kind, what.original_tokens, what.tokens)
            }
        };
        let (mut originals, mut state) = (Vec::new(), OriginalsState::Held);
        let frames = self.history.frames();
        let mut inside = frames.first_from(from)..frames.first_after(to);
        let id = change.id();
        if inside.any(|at| frames.is_forgotten(at)) {
            let block = change.dropped().and_then(|dropped| dropped.block.as_deref());
            match block.and_then(|id| self.window.transform.block(id)) {
                Some(block) => self.gather(block, &mut originals, &mut state)?,
                None => state = OriginalsState::Forgotten,
            }
        } else {
            let passages = self.window.passages_in(self.history, from..=to).into_iter();
            originals.extend(passages.map(|passage| Original { id: Arc::clone(&id), passage }));
        }
        let frames = self.frames(from, to);
        let what = ReplacedFrames {
            kind,
            id,
            from,
            to,
            frames,
            tokens_before,
            tokens_after,
            originals: state,
        };
        Ok(Replaced { what, originals })
    }

    fn frames(&self, from: FrameSeq, to: FrameSeq) -> u64 {
        let frames = self.history.frames();
        frames.first_after(to).saturating_sub(frames.first_from(from)) as u64
    }
}
