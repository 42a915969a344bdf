use std::sync::Arc;

use serde::Serialize;

use super::{
    lost::{LostTexts, last_frame_of},
    originals::Replaced,
};
use crate::{
    Result,
    compress::Epoch,
    id::FrameSeq,
    veil::History,
    window::{ContextWindow, FittedContext, WindowOriginals},
};

/// What a context no longer says of its history: the frames that something else stands for, and the
/// rules, numbers, paths and names in them that cannot be read in the context.
///
/// A text can be read where it stands in the text of the messages with no letter, digit or `_`
/// beside it. White space counts as one blank, and the escapes `\n`, `\t` and `\r` as white space.
///
/// [`WindowOriginals::search`] finds each of them, and [`WindowOriginals::page`] shows it in as many
/// tokens as are asked for. What was forgotten on demand is named as such, and cannot be found.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossReceipt {
    /// The epoch that this is the receipt of; `None` where it is that of the whole context, or where
    /// nothing of the context before has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// What stands for frames, in the order of these.
    pub replaced: Vec<ReplacedFrames>,
    /// What can no longer be read: rules, paths, names, numbers, each kind in the order of frames.
    pub lost: Vec<LostText>,
}

/// Frames that something else stands for.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedFrames {
    /// What was done to them.
    pub kind: ReplacementKind,
    /// The id that [`ContextWindow::expand`] takes.
    pub id: Arc<str>,
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// How many frames these are.
    pub frames: u64,
    /// Their tokens; of a block that was left out, those of the block.
    pub tokens_before: u64,
    /// The tokens of what stands in the context for them.
    pub tokens_after: u64,
    /// Where the originals are.
    pub originals: OriginalsState,
}

crate::json::name_enum! {
    /// What was done to frames.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ReplacementKind {
        /// A block says what they said.
        Summarised = "summarised",
        /// Each result of a tool in a frame is one line.
        Masked = "masked",
        /// The middle of a frame is left out.
        Shortened = "shortened",
        /// They are left out.
        Dropped = "dropped",
    }
}

crate::json::name_enum! {
    /// Where the originals of frames are.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum OriginalsState {
        /// The window and its history hold them.
        #[default]
        Held = "held",
        /// They were spilled to an archive, or some of them: name it by [`WindowOriginals::archive`].
        Archived = "archived",
        /// They were forgotten on demand, or some of them: what these said is known to nobody.
        Forgotten = "forgotten",
    }
}

/// A text that stands in frames, and can no longer be read in the context.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostText {
    /// What it is.
    pub kind: LostKind,
    /// The text, letter by letter as the frame says it.
    pub text: String,
    /// The first frame that says it.
    pub frame: FrameSeq,
    /// How many of the replaced frames say it.
    pub frames: u64,
    /// The id that [`ContextWindow::expand`] takes for that frame.
    pub id: Arc<str>,
}

crate::json::name_enum! {
    /// What a lost text is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum LostKind {
        /// A sentence of the user that is a rule or a preference.
        Rule = "rule",
        /// An identifier with a slash that is no address.
        Path = "path",
        /// Any other identifier: ids, words of programs, files, addresses.
        Name = "name",
        /// Four digits or more without a letter; dates and times.
        Number = "number",
    }
}

impl LostKind {
    /// All kinds, in the order of a receipt.
    pub const ALL: [Self; 4] = [Self::Rule, Self::Path, Self::Name, Self::Number];
}

impl LossReceipt {
    /// What was lost of one kind, in the order of frames. O(what was lost).
    pub fn of_kind(&self, kind: LostKind) -> impl Iterator<Item = &LostText> {
        self.lost.iter().filter(move |lost| lost.kind == kind)
    }
}

impl ContextWindow {
    /// What the newest context no longer says: as [`WindowOriginals::receipt`]. Costs what that
    /// does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     compress::OutlineEngine, hud::{Hud, RenderRequest}, id::{FacetType, Millis},
    ///     text::TextRange, tokens::Chars4, veil::{Facet, FacetOp, Frame, History, Source},
    ///     window::{Budget, ContextWindow},
    /// };
    ///
    /// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
    /// for n in 0..400_u64 {
    ///     let text = format!("Reading {n} of sensor S-{}: {}", 1000 + n, "calm ".repeat(20));
    ///     let facet = Facet::new(format!("reading-{n}"), FacetType::EVENT, text);
    ///     let frame = Frame::new(n, Source::Environment).with(FacetOp::add(facet));
    ///     hud.capture(&mut history, frame, now)?;
    /// }
    /// let budget = Budget::new(600);
    /// let mut window = ContextWindow::new(hud, budget, budget.compression());
    /// let fitted = window.render(&mut history, &RenderRequest::default(), &OutlineEngine, now)?;
    ///
    /// let receipt = window.receipt(&history, &fitted)?;
    /// let lost = receipt.lost.first().expect("400 sensors have no room");
    /// let originals = window.originals(&history);
    /// let found = originals.search(&lost.text)?.remove(0);
    /// let page = originals.page(found.frame, found.range, 20)?;
    /// assert!(page.text.contains(&lost.text) && page.tokens <= 20);
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`WindowOriginals::receipt`].
    pub fn receipt(&self, history: &History, fitted: &FittedContext) -> Result<LossReceipt> {
        self.originals(history).receipt(fitted)
    }
}

impl WindowOriginals<'_> {
    /// Everything that the history says and `fitted` does not; it is the newest context of the
    /// window. Frames on branches that the session left are not counted.
    ///
    /// Costs time linear in the texts of the frames that something stands for, and a sort of the
    /// words of the context. Memory grows with the distinct names in these frames.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the archive holds another text than
    /// a block stands for, and those of reading the archive.
    pub fn receipt(&self, fitted: &FittedContext) -> Result<LossReceipt> {
        let replaced = self.replaced()?;
        let lost = LostTexts::of(&fitted.context).read(self, &replaced);
        let replaced = replaced.into_iter().map(|replaced| replaced.what).collect();
        Ok(LossReceipt { epoch: None, replaced, lost })
    }

    /// What went between two contexts, the newest of the window and the one before it: what stands
    /// for frames since then, and what `before` said and `fitted` does not. What came after `before`
    /// and was never shown is part of it.
    ///
    /// Costs as much as [`WindowOriginals::receipt`], and the words of `before`.
    ///
    /// # Errors
    /// Those of [`WindowOriginals::receipt`].
    pub fn receipt_since(
        &self,
        before: &FittedContext,
        fitted: &FittedContext,
    ) -> Result<LossReceipt> {
        let replaced = self.replaced()?;
        let lost = LostTexts::of(&fitted.context).since(before).read(self, &replaced);
        let is_new = |of: &Replaced| is_new(&of.what, before, fitted);
        let replaced = replaced.into_iter().filter(is_new).map(|of| of.what).collect();
        Ok(LossReceipt { epoch: fitted.epoch.clone(), replaced, lost })
    }
}

/// Whether something stands for frames in `fitted` that did not in `before`.
fn is_new(what: &ReplacedFrames, before: &FittedContext, fitted: &FittedContext) -> bool {
    match what.kind {
        ReplacementKind::Summarised => {
            let took_effect = |epoch: &Epoch| epoch.blocks.contains(&what.id);
            fitted.epoch.as_ref().is_some_and(took_effect)
                || last_frame_of(before).is_none_or(|last| what.to > last)
        }
        ReplacementKind::Masked | ReplacementKind::Shortened => {
            let mut known = before.shortened.iter();
            !known.any(|known| known.frame == what.from && known.tokens == what.tokens_after)
        }
        ReplacementKind::Dropped => {
            let mut known = before.dropped.iter();
            !known.any(|known| (known.from, known.to) == (what.from, what.to))
        }
    }
}
