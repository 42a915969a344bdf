//! What stands in a context in place of a frame, besides blocks.

use std::sync::Arc;

use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind},
    tokens::TokenCounter,
};

/// Frames that a context leaves out; they stay in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedFrames {
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// What a context has less without them: the tokens that stood for them, exact, and those that
    /// the provider adds for each message.
    pub tokens: u64,
    /// The block that stood for them, where it was a block that was dropped.
    pub block: Option<Arc<str>>,
}

impl DroppedFrames {
    /// The id under which they are found: `dropped-FROM-TO`.
    pub fn id(&self) -> Arc<str> {
        format!("dropped-{}-{}", self.from, self.to).into()
    }
}

/// A frame of whose texts the middle is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedFrame {
    /// The frame.
    pub frame: FrameSeq,
    /// The id that its marker names: `shortened-FRAME`.
    pub id: Arc<str>,
    /// The tokens of the frame: the exact count of its text.
    pub original_tokens: u64,
    /// What is left of them.
    pub tokens: u64,
}

/// What replaces a range of frames.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Dropped(DroppedFrames),
    Shortened { what: ShortenedFrame, snapshot: Arc<FrameSnapshot> },
}

impl Change {
    pub(super) fn from(&self) -> FrameSeq {
        match self {
            Self::Dropped(dropped) => dropped.from,
            Self::Shortened { what, .. } => what.frame,
        }
    }

    pub(super) fn to(&self) -> FrameSeq {
        match self {
            Self::Dropped(dropped) => dropped.to,
            Self::Shortened { what, .. } => what.frame,
        }
    }

    pub(super) fn dropped(&self) -> Option<&DroppedFrames> {
        match self {
            Self::Dropped(dropped) => Some(dropped),
            Self::Shortened { .. } => None,
        }
    }

    pub(super) fn shortened(&self) -> Option<&ShortenedFrame> {
        match self {
            Self::Shortened { what, .. } => Some(what),
            Self::Dropped(_) => None,
        }
    }

    /// The id that stands in contexts.
    pub(super) fn id(&self) -> Arc<str> {
        match self {
            Self::Dropped(dropped) => dropped.id(),
            Self::Shortened { what, .. } => Arc::clone(&what.id),
        }
    }

    /// What a renderer puts in place of the frames.
    /// `nothing` is a snapshot without text.
    pub(super) fn substitution(&self, nothing: &Arc<FrameSnapshot>) -> Substitution {
        let snapshot = match self {
            Self::Dropped(_) => nothing,
            Self::Shortened { snapshot, .. } => snapshot,
        };
        let snapshot = Arc::clone(snapshot);
        let stands = match self {
            Self::Dropped(_) => SubstitutionKind::Dropped,
            Self::Shortened { .. } => SubstitutionKind::Shortened,
        };
        Substitution { block: self.id(), stands, from: self.from(), to: self.to(), snapshot }
    }

    /// The frame whose snapshot is `original`, shortened to about `limit` tokens.
    pub(super) fn shorten(
        frame: FrameSeq,
        original: &FrameSnapshot,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Option<Self> {
        let id: Arc<str> = format!("shortened-{frame}").into();
        let marker = |tokens| format!("\n[… {tokens} tokens left out; expand {id} …]\n");
        let snapshot = original.shortened(counter, limit, marker)?;
        let tokens = |of: &FrameSnapshot| of.exact_tokens().unwrap_or(of.total_tokens());
        let what = ShortenedFrame {
            frame,
            original_tokens: tokens(original),
            tokens: tokens(&snapshot),
            id: Arc::clone(&id),
        };
        Some(Self::Shortened { what, snapshot: Arc::new(snapshot) })
    }
}
