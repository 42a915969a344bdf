use std::sync::Arc;

use super::{Essential, NetOps, Revision, SentRequest};
use crate::{
    id::{FacetId, FrameSeq, Role},
    snapshot::ChunkRef,
    steps::Passage,
    summary::{ContextTexts, Ledger, Task},
    tokens::TokenCounter,
};

/// A range of frames that is to be summarised: everything that an engine may look at, as plain
/// data. Nothing in it is from after the moment of the plan.
///
/// One that [`CompressionTransform::next_job`](super::CompressionTransform::next_job) handed out is
/// under way as long as a copy of it lives: to drop it without an answer gives its range back.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct CompressionJob {
    /// The id of the block that the job makes: `block-FROM-TO`, and `.LEVEL` above the first.
    pub id: Arc<str>,
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// One for frames, one more than its blocks for a block of blocks.
    pub level: u32,
    /// What is to be summarised, in order: frames, or the blocks that stand for them.
    pub passages: Vec<Passage>,
    /// The tokens of the original frames, the sum over their chunks.
    pub original_tokens: u64,
    /// The tokens that the summary may have.
    pub token_limit: u64,
    /// The facets whose text is summarised, in order of first appearance.
    pub source_facets: Vec<FacetId>,
    /// What the ops of the frames come to: applied to the veil before the range they lead to the
    /// veil after it.
    pub net_ops: NetOps,
    /// What the model reads after the range: the protected tail at the moment of the plan, newest
    /// last. An engine that keeps what is in use looks here for what that is.
    pub tail: Vec<Passage>,
    /// Which try this is, from one.
    pub attempt: u32,
    #[expect(dead_code, reason = "it lives as long as a copy of the job: the plan watches it")]
    pub(super) lease: Option<Arc<()>>,

    /// Where things stand after the range, where that is said behind the blocks anyway: then an
    /// engine need not say it.
    pub ledger: Option<Arc<Ledger>>,
    /// Where things stood before the range, where that is known.
    pub before: Option<Arc<Ledger>>,
    /// The tokens that are left for the ledger in the context, where it is said there.
    pub ledger_tokens: u64,
    /// The words of the user that stand in the context besides any block.
    pub words: Vec<Passage>,
    /// The summary that is to be written again, and what it lost.
    pub revision: Option<Arc<Revision>>,
    /// What the session sent last, where that is known: a request for the summary may go on from it,
    /// as [`ContinuedRequest`](super::ContinuedRequest) does.
    pub sent: Option<Arc<SentRequest>>,
    /// Whether an engine that checks its answers does so for this job.
    pub is_checked: bool,
}

impl CompressionJob {
    /// The job of summarising `passages` in at most `token_limit` tokens, for whoever calls an
    /// [`Engine`](super::Engine) without a plan: the first try of a block of the first level, with
    /// no tail and no ops.
    ///
    /// The passages are in the order of their frames; without any, the block stands at frame 0.
    /// O(chunks).
    pub fn new(passages: Vec<Passage>, token_limit: u64) -> Self {
        let from = passages.first().map_or(FrameSeq::new(0), |passage| passage.from);
        let to = passages.last().map_or(from, |passage| passage.to);
        let source_facets = Passage::facets_of(&passages);
        Self {
            id: format!("block-{from}-{to}").into(),
            from,
            to,
            level: 1,
            original_tokens: passages.iter().map(|passage| passage.snapshot.total_tokens()).sum(),
            passages,
            token_limit,
            source_facets,
            net_ops: NetOps::default(),
            tail: Vec::new(),
            attempt: 1,
            lease: None,
            ledger: None,
            before: None,
            ledger_tokens: 0,
            words: Vec::new(),
            revision: None,
            sent: None,
            is_checked: true,
        }
    }

    /// The same job; its range may wait again while this copy lives.
    pub(crate) fn unleased(&self) -> Self {
        Self { lease: None, ..self.clone() }
    }

    /// Sets where things stand, where that is said elsewhere in the context.
    pub fn with_ledger(mut self, ledger: Arc<Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Sets where things stood before the range.
    pub fn with_ledger_before(mut self, ledger: Arc<Ledger>) -> Self {
        self.before = Some(ledger);
        self
    }

    /// Sets what the context says besides blocks: these words of the user, and the ledger in so many
    /// tokens. A summary need not say it again.
    pub fn with_context(mut self, words: Vec<Passage>, ledger_tokens: u64) -> Self {
        (self.words, self.ledger_tokens) = (words, ledger_tokens);
        self
    }

    /// Sets what the session sent last.
    pub fn with_sent(mut self, sent: Arc<SentRequest>) -> Self {
        self.sent = Some(sent);
        self
    }

    /// The same job without a check of its answer, for whoever checks it in another way.
    pub fn unchecked(mut self) -> Self {
        self.is_checked = false;
        self
    }

    /// The job of writing this answer again with what it lost. Copies the answer: O(its text).
    pub fn revising(mut self, answer: &str, lost: Vec<Essential>) -> Self {
        self.revision = Some(Arc::new(Revision { answer: answer.to_owned(), lost }));
        self
    }

    /// What the summariser without a model looks at.
    pub(crate) fn task(&self) -> Task<'_> {
        Task {
            passages: &self.passages,
            to: self.to,
            of_blocks: self.level > 1,
            token_limit: usize::try_from(self.token_limit).unwrap_or(usize::MAX),
            tail: &self.tail,
            words: &self.words,
            before: self.before.as_deref(),
            ledger: self.ledger.as_deref(),
        }
    }

    /// The user's words that stand in the context besides any block.
    pub(super) fn said_words(&self) -> String {
        let texts: Vec<&str> = self.words.iter().map(|words| words.snapshot.text()).collect();
        texts.join("\n")
    }

    /// What the ledger in the context still says when twice as much is in it.
    pub(super) fn said_ledger(&self, counter: &dyn TokenCounter) -> String {
        let limit = self.ledger_tokens / 2;
        let Some(ledger) = self.ledger.as_ref().filter(|_| limit > 0) else { return String::new() };
        let elsewhere = ContextTexts::new(&self.words, Vec::new());
        let lines = ledger.lines(limit, &elsewhere, counter);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        texts.join("\n")
    }

    /// Sets what the model reads after the range.
    pub fn with_tail(mut self, tail: Vec<Passage>) -> Self {
        self.tail = tail;
        self
    }

    /// The chunks of all passages in order, each with who speaks it. O(chunks) for all of them.
    pub fn chunks(&self) -> impl Iterator<Item = (Role, ChunkRef<'_>)> {
        self.passages.iter().flat_map(Passage::chunks)
    }

    /// The original text: the passages one after the other, parted by an empty line. O(text).
    pub fn text(&self) -> String {
        let texts: Vec<&str> =
            self.passages.iter().map(|passage| passage.snapshot.text()).collect();
        texts.join("\n\n")
    }
}
