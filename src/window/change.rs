//! What stands in a context in place of a frame, besides blocks.

use std::sync::Arc;

use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind, ToolOutput},
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

/// A frame of whose texts the middle is left out, or whose results of tools are one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedFrame {
    /// The frame.
    pub frame: FrameSeq,
    /// The id that its marker names: `shortened-FRAME`, or `masked-FRAME` where its results are one
    /// line each.
    pub id: Arc<str>,
    /// The tokens of the frame: the exact count of its text.
    pub original_tokens: u64,
    /// What is left of them.
    pub tokens: u64,
}

impl ShortenedFrame {
    /// Whether each result of a tool in it is one line.
    pub fn is_masked(&self) -> bool {
        self.kind() == "masked"
    }

    /// What was done to it: `masked`, `shortened`, or `edited` where the recording says that it was
    /// read otherwise.
    pub fn kind(&self) -> &'static str {
        let kind = self.id.split_once('-').map_or("", |(kind, _)| kind);
        ["masked", "edited"].into_iter().find(|known| *known == kind).unwrap_or("shortened")
    }
}

/// The id of a frame of whose texts the middle is left out.
pub(super) fn shortened_id(frame: FrameSeq) -> Arc<str> {
    format!("shortened-{frame}").into()
}

/// The id of a frame whose results are one line each.
pub(super) fn masked_id(frame: FrameSeq) -> Arc<str> {
    format!("masked-{frame}").into()
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

    /// What is left of a frame; `None` of frames that are left out.
    pub(super) fn snapshot(&self) -> Option<&Arc<FrameSnapshot>> {
        match self {
            Self::Shortened { snapshot, .. } => Some(snapshot),
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
        let snapshot = Arc::clone(self.snapshot().unwrap_or(nothing));
        let stands = if snapshot.is_empty() {
            SubstitutionKind::Dropped
        } else {
            SubstitutionKind::Shortened
        };
        Substitution { block: self.id(), stands, from: self.from(), to: self.to(), snapshot }
    }

    /// The frame whose snapshot is `original`, with the line that `line` makes of the id and of each
    /// result in its place. `None` where that is no shorter.
    pub(super) fn mask(
        frame: FrameSeq,
        original: &FrameSnapshot,
        counter: &dyn TokenCounter,
        line: impl Fn(&str, ToolOutput<'_>) -> String,
    ) -> Option<Self> {
        let id = masked_id(frame);
        let snapshot = original.masked(counter, |output| line(&id, output))?;
        Some(Self::shorter(frame, Arc::clone(&id), original, snapshot))
    }

    pub(super) fn shorter(
        frame: FrameSeq,
        id: Arc<str>,
        original: &FrameSnapshot,
        snapshot: FrameSnapshot,
    ) -> Self {
        let tokens = |of: &FrameSnapshot| of.exact_tokens().unwrap_or(of.total_tokens());
        let (original_tokens, tokens) = (tokens(original), tokens(&snapshot));
        let what = ShortenedFrame { frame, id, original_tokens, tokens };
        Self::Shortened { what, snapshot: Arc::new(snapshot) }
    }
}
