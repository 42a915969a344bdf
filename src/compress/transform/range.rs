use std::{ops::Range, sync::Arc};

use crate::{compress::CompressionBlock, id::Millis};

/// A range that is planned once and never again.
#[derive(Clone, Debug)]
pub(super) struct PlannedRange {
    pub(super) id: Arc<str>,
    pub(super) covers: Covers,
    pub(super) level: u32,
    pub(super) tokens: u64,
    pub(super) original_tokens: u64,
    pub(super) limit: u64,
    /// The frames after it that were there when it was planned.
    pub(super) seen: usize,
    pub(super) state: RangeState,
    /// How often it was handed out, and when last.
    pub(super) tried: u32,
    pub(super) handed_out: Millis,
    /// How many frames there were then.
    pub(super) handed_after: usize,
    /// When it is handed out again after it failed; never where there is no moment.
    pub(super) retry_at: Option<Millis>,
}

impl PlannedRange {
    /// A range that waits for its first try.
    pub(super) fn waiting(id: Arc<str>, covers: Covers, level: u32, tokens: u64) -> Self {
        Self {
            id,
            covers,
            level,
            tokens,
            original_tokens: tokens,
            limit: 0,
            seen: 0,
            state: RangeState::Pending { tried: 0, not_before: Millis::new(i64::MIN) },
            tried: 0,
            handed_out: Millis::new(i64::MIN),
            handed_after: 0,
            retry_at: None,
        }
    }
}

impl Covers {
    /// Whether a block is among what is replaced.
    pub(super) fn holds(&self, id: &str) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.iter().any(|block| *block.id == *id),
            Self::Frames(_) => false,
        }
    }
}

/// How the next range is cut.
#[derive(Clone, Copy)]
pub(super) struct RangeLimits {
    pub(super) protected_frames: usize,
    pub(super) min_frames: usize,
    /// A range of so many tokens goes no further.
    pub(super) enough: u64,
}

/// What a range replaces.
#[derive(Clone, Debug)]
pub(super) enum Covers {
    Frames(Range<usize>),
    Blocks(Vec<Arc<CompressionBlock>>),
}

/// Where a planned range is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeState {
    /// It waits to be handed out, until this moment at least.
    Pending {
        /// How often it was tried before.
        tried: u32,
        /// Not to be handed out before.
        not_before: Millis,
    },
    /// It was handed out.
    InProgress {
        /// Which try this is, from one.
        attempt: u32,
    },
    /// Its summary is there.
    Ready,
    /// It was tried as often as the options say. It is tried again later, as
    /// [`CompressionOptions::retry_most_ms`](super::super::CompressionOptions::retry_most_ms) says.
    Failed {
        /// Why, the last time.
        reason: String,
    },
    /// Its block was undone: the frames stand for themselves again.
    Undone,
}

impl RangeState {
    /// The name on the wire.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::InProgress { .. } => "inProgress",
            Self::Ready => "ready",
            Self::Failed { .. } => "failed",
            Self::Undone => "undone",
        }
    }

    /// Why it failed.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason } => Some(reason),
            _ => None,
        }
    }
}
