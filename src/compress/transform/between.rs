//! Frames between blocks that are too few for a block of their own: they go into blocks of blocks as
//! they are.

use std::{ops::Range, sync::Arc};

use super::{CompressionTransform, RangeState, range::Covers};
use crate::{
    compress::{
        CompressionBlock, Passage,
        block::{Originals, content_hash},
    },
    id::{FacetId, FacetType, Millis, Role},
    veil::{Facet, History},
};

/// What is named as the engine of blocks that say a frame as it is.
const VERBATIM: &str = "verbatim";

/// Whether a block says a frame as it is: it stands inside of others alone. An engine may have the
/// same name, but what it writes is shorter than what it read.
pub(super) fn is_verbatim(block: &CompressionBlock) -> bool {
    block.engine == VERBATIM && block.from == block.to && block.tokens == block.original_tokens
}

/// What a block is in a block of blocks: its summary, or the frame that it says as it is.
pub(super) fn passages_of(block: &CompressionBlock) -> Vec<Passage> {
    match &block.originals {
        Originals::Held(frames) if is_verbatim(block) => frames.clone(),
        _ => {
            let snapshot = Arc::clone(&block.snapshot);
            vec![Passage::new(block.from, block.to, Role::User, snapshot)]
        }
    }
}

impl CompressionTransform {
    /// The frames that no block of blocks takes in by itself: ranges of theirs wait, failed, or were
    /// undone. In order.
    pub(super) fn kept_frames(&self) -> Vec<Range<usize>> {
        let is_open = |state: &RangeState| !matches!(state, RangeState::Ready);
        let open = self.ranges.iter().filter(|range| is_open(&range.state));
        let mut kept: Vec<Range<usize>> = open
            .filter_map(|range| match &range.covers {
                Covers::Frames(frames) => Some(frames.clone()),
                Covers::Blocks(_) => None,
            })
            .collect();
        kept.sort_by_key(|frames| frames.start);
        kept
    }

    /// A run of blocks with blocks that say the frames between them as they are. `None` where one of
    /// these is forgotten.
    pub(super) fn with_frames_between(
        &mut self,
        history: &History,
        run: Vec<Arc<CompressionBlock>>,
    ) -> Option<Vec<Arc<CompressionBlock>>> {
        let mut all: Vec<Arc<CompressionBlock>> = Vec::with_capacity(run.len());
        for block in run {
            if let Some(before) = all.last() {
                for at in self.walk.first_after(before.to)..self.walk.first_from(block.from) {
                    all.push(Arc::new(self.verbatim(history, at, block.level)?));
                }
            }
            all.push(block);
        }
        Some(all)
    }

    /// A block that says a frame as it is, to be inside of a block of blocks.
    fn verbatim(&mut self, history: &History, at: usize, level: u32) -> Option<CompressionBlock> {
        let passages = self.walk.passages(history, at..at + 1).ok()?;
        let net_ops = self.walk.net_ops(history, at..at + 1).ok()?;
        let snapshot = history.frames().snapshot(at)?;
        let step = self.walk.steps().get(at)?;
        let id: Arc<str> = format!("block-{}-{}", step.sequence, step.sequence).into();
        Some(CompressionBlock {
            facet: Arc::new(Facet::new(FacetId::from(&*id), FacetType::SUMMARY, snapshot.text())),
            id,
            from: step.sequence,
            to: step.sequence,
            level,
            source_facets: Passage::facets_of(&passages),
            content_hash: content_hash(&passages),
            original_tokens: step.tokens,
            tokens: step.tokens,
            snapshot,
            net_ops,
            engine: VERBATIM.to_owned(),
            created_at: Millis::default(),
            originals: Originals::Held(passages),
            inner: Vec::new(),
        })
    }
}
