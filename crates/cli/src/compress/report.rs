//! What `compress --json` says.

use std::sync::Arc;

use afterimage::{
    bill::MediaCount,
    id::{FacetId, FrameSeq},
    json::Value,
    request::RequestOverhead,
    window::Breakdown,
};

use super::places::{Places, RangePlace};
use crate::{
    answer::answer,
    labels::PlacedCall,
    lens::{CountsAnswer, LacksAnswer},
};

answer! {
    /// A session within a budget.
    pub(crate) struct CompressAnswer<'s> {
        /// the file, where several are named
        file?: String,
        /// the session
        session: &'s str,
        ..counts: CountsAnswer<'s>,
        ..lacks: LacksAnswer,
        ..overhead: OverheadAnswer,
        /// the tokens that a request may have: its context, `tools` and `schemas`; null with `--range`
        /// alone
        budget: Option<u64>,
        /// the tokens of the context after the last frame as it is: the exact count of its messages, and
        /// what the provider adds; with `--as openai`, `responses`, `anthropic` or `gemini` those of the request,
        /// names and ids in it too
        tokens_before: u64,
        /// the same of the context that fits
        tokens_after?: u64,
        /// images, sounds and documents, which are in no count of texts; `tokensAfter` and the
        /// tokens of `after` are within the budget together
        media: MediaOfContexts,
        /// where the context does not fit: the tokens that must stay
        breakdown?: BreakdownAnswer,
        ..fitted: Option<FittedAnswer>,
        /// with `--receipt`: what the context no longer says, see below
        receipt?: Value,
        /// with `--as`: the text as a string, the messages or the request of a provider, or the rendered
        /// context
        context?: Value,
        /// with `--as openai`, `responses`, `anthropic` or `gemini`: who wrote it, as a list
        owners?: Value,
    }

    /// What a request adds to its messages.
    pub(crate) struct OverheadAnswer {
        /// the tokens of the request's definitions of tools with what the provider adds to them,
        /// where a recorded request or `--tools` says so; they take room of `budget`
        tools?: u64,
        /// those of its schemas of structured output, where a recorded request has some; they take
        /// room of `budget` too
        schemas?: u64,
    }

    /// The media of two contexts.
    pub(crate) struct MediaOfContexts {
        /// those of the context as it is
        before: MediaCount,
        /// those of the context that fits
        after?: MediaCount,
    }

    /// What must stay, in tokens.
    pub(crate) struct BreakdownAnswer {
        /// definitions of tools, and schemas
        tools: u64,
        /// the system prompt, and the operator's words in the history
        system: u64,
        /// pinned facets in the history
        pinned: u64,
        /// blocks that stand for frames
        blocks: u64,
        /// the newest frames, which always stay
        recent: u64,
        /// other frames
        others: u64,
        /// what stands after the last frame
        tail: u64,
        /// what the provider adds
        framing: u64,
        /// all of these
        total: u64,
        /// the largest frames, five at most
        largest: Vec<LargeFrame>,
    }

    /// A large frame.
    pub(crate) struct LargeFrame {
        /// its sequence
        frame: FrameSeq,
        /// its tokens
        tokens: u64,
        ..place: PlacedCall,
    }

    /// A context that fits.
    pub(crate) struct FittedAnswer {
        /// the blocks in it, in order
        blocks: Vec<BlockAnswer>,
        /// frames that are left out
        dropped: Vec<DroppedAnswer>,
        /// frames whose text lacks its middle, or whose results are one line each
        shortened: Vec<ShortenedAnswer>,
        /// with `--as openai`, `responses`, `anthropic` or `gemini` what the report of an export says; else empty
        repaired: Vec<Value>,
        /// ranges that have no summary
        failed: Vec<FailedRange>,
    }

    /// A block.
    pub(crate) struct BlockAnswer {
        /// its id, for `expand`
        id: Arc<str>,
        /// its first frame
        from: FrameSeq,
        /// its last frame
        to: FrameSeq,
        /// 1 of a block of frames; of a block of blocks one more than these
        level: u32,
        /// the tokens of its frames
        original_tokens: u64,
        /// its own tokens
        tokens: u64,
        /// the facets that it stands for
        source_facets: Vec<FacetId>,
        /// the SHA-256 of the original text of its frames, one after the other: of the bytes that
        /// `expand` prints; in hexadecimal
        sha256: String,
        ..place: RangePlace,
        /// with `--as blocks`: the engine that wrote it
        engine?: String,
        /// with `--as blocks`: its text
        summary?: String,
    }

    /// Frames that are left out.
    pub(crate) struct DroppedAnswer {
        /// their id, for `expand`
        id: Arc<str>,
        /// the first of them
        from: FrameSeq,
        /// the last of them
        to: FrameSeq,
        /// their tokens
        tokens: u64,
        /// the id of the block that stood for them, where one did
        block?: Arc<str>,
        ..place: RangePlace,
    }

    /// A frame that says less.
    pub(crate) struct ShortenedAnswer {
        /// its id, for `expand`
        id: Arc<str>,
        /// `shortened`, `masked`, or `edited` where the recording says that it was read otherwise
        kind: &'static str,
        /// its sequence
        frame: FrameSeq,
        /// its tokens before
        original_tokens: u64,
        /// its tokens now
        tokens: u64,
        ..place: PlacedCall,
    }

    /// A range that has no summary.
    pub(crate) struct FailedRange {
        /// the id that its block would have
        id: Arc<str>,
        /// why it has none
        reason: String,
    }

    /// `compress --as blocks`: a rendered context with its blocks.
    pub(crate) struct ContextWithBlocks<'s> {
        /// the file, where several are named
        file?: String,
        /// the session
        session: &'s str,
        ..context: Value,
        /// the blocks in it, in order
        blocks: Vec<BlockAnswer>,
    }
}

impl From<RequestOverhead> for OverheadAnswer {
    fn from(RequestOverhead { tools, around, schemas, .. }: RequestOverhead) -> Self {
        let [tools, schemas] =
            [tools.saturating_add(around), schemas].map(|tokens| (tokens > 0).then_some(tokens));
        Self { tools, schemas }
    }
}

impl BreakdownAnswer {
    pub(super) fn of(breakdown: &Breakdown, places: &Places<'_>) -> Self {
        let large = |&(frame, tokens): &(FrameSeq, u64)| LargeFrame {
            frame,
            tokens,
            place: places.of_frame(frame).first.placed_call(),
        };
        Self {
            tools: breakdown.tools,
            system: breakdown.system_prompt,
            pinned: breakdown.pinned,
            blocks: breakdown.blocks,
            recent: breakdown.recent,
            others: breakdown.others,
            tail: breakdown.tail,
            framing: breakdown.framing,
            total: breakdown.total(),
            largest: breakdown.largest.iter().map(large).collect(),
        }
    }
}
