//! A transform as JSON (`docs/FORMAT.md`): what was decided, and no text that the history has.

use std::{collections::HashMap, sync::Arc};

use super::{CompressionTransform, PlannedRange, RangeState, range::Covers};
use crate::{
    compress::{
        CompressionBlock,
        block::Originals,
        saved::{range_to_json, to_json},
    },
    id::{FacetId, FrameSeq, Millis},
    json::{Object, ObjectExt, Value},
    veil::FacetOp,
};

/// The version that is written, and the only one that is read.
pub(super) const VERSION: u64 = 1;

impl CompressionTransform {
    /// What was planned and done, to be saved beside the history:
    /// [`CompressionTransform::from_json`] goes on from there. A job that is under way is not in it;
    /// its range waits again after loading. Holds the texts of summaries, and none that the history
    /// holds. Costs time in the ranges and blocks.
    pub fn to_json(&self) -> Value {
        let mut blocks = Blocks::default();
        let applied: Value = self.applied.values().map(|block| blocks.number(block)).collect();
        let ready = self.ready.iter().map(|(range, block)| {
            [Value::from(*range as u64), blocks.number(block)].into_iter().collect::<Value>()
        });
        let ready: Value = ready.collect();
        let ranges: Value =
            self.ranges.iter().map(|range| planned_to_json(range, &mut blocks)).collect();
        let ids = |ids: &std::collections::HashSet<Arc<str>>| -> Value {
            let mut ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
            ids.sort_unstable();
            ids.into_iter().collect()
        };
        let steps = self.walk.steps();
        let mut object = Object::new();
        object.put("compression", VERSION);
        object.put("options", to_json(&self.options));
        object.put("frames", steps.len() as u64);
        object.put_some("last", steps.last().map(|step| step.sequence.get()));
        object.put("stays", self.walk.staying().iter().map(range_to_json).collect::<Value>());
        object.put("replaced", self.walk.imported().iter().map(range_to_json).collect::<Value>());
        object.put("outside", self.outside.iter().map(range_to_json).collect::<Value>());
        object.put("front", self.front as u64);
        let taken = self.taken.iter().map(|(start, end)| range_to_json(&(*start..*end)));
        object.put("taken", taken.collect::<Value>());
        object.put("blocks", blocks.written.into_iter().collect::<Value>());
        object.put("applied", applied);
        object.put("ready", ready);
        object.put("ranges", ranges);
        object.put("merged", ids(&self.merged));
        object.put("imported", ids(&self.imported));
        object.put("adopted", self.adopted as u64);
        object.put("telling", self.telling.iter().map(|at| *at as u64).collect::<Value>());
        object.put("liveTokens", self.live_tokens);
        object.put("isSettled", self.is_settled);
        object.put("isStarted", self.is_started);
        object.put("epoch", self.epoch);
        object.into()
    }
}

fn planned_to_json(range: &PlannedRange, blocks: &mut Blocks) -> Value {
    let mut object = Object::new();
    object.put("id", &*range.id);
    match &range.covers {
        Covers::Frames(frames) => object.put("frames", range_to_json(frames)),
        Covers::Blocks(of) => {
            object.put("blocks", of.iter().map(|of| blocks.number(of)).collect::<Value>());
        }
    }
    object.put("level", u64::from(range.level));
    object.put("tokens", range.tokens);
    object.put("originalTokens", range.original_tokens);
    object.put("limit", range.limit);
    object.put("seen", range.seen as u64);
    object.put("tried", u64::from(range.tried));
    let moment = |of: Millis| Some(of.get()).filter(|at| *at != i64::MIN);
    object.put_some("handedOut", moment(range.handed_out));
    object.put_some("handedAfter", Some(range.handed_after as u64).filter(|_| range.tried > 0));
    if let RangeState::Pending { not_before, .. } = range.state {
        object.put_some("notBefore", moment(not_before));
    }
    object.put("state", range.state.name());
    object.put_some("reason", range.state.reason());
    object.put_some("retryAt", range.retry_at.map(Millis::get));
    object.into()
}

/// Blocks in a list, the blocks inside of one before it: nested, they would nest as deep as a
/// session was compacted often.
#[derive(Default)]
struct Blocks {
    written: Vec<Value>,
    /// The place of each in the list, by where it is in memory.
    numbers: HashMap<*const CompressionBlock, usize>,
}

impl Blocks {
    /// The number of a block in the list.
    fn number(&mut self, block: &Arc<CompressionBlock>) -> Value {
        let key = Arc::as_ptr(block);
        if let Some(number) = self.numbers.get(&key) {
            return Value::from(*number as u64);
        }
        let inner: Value = block.blocks().iter().map(|inner| self.number(inner)).collect();
        let mut object = Object::new();
        object.put("id", &*block.id);
        object.put("from", FrameSeq::get(block.from));
        object.put("to", FrameSeq::get(block.to));
        object.put("level", u64::from(block.level));
        object.put("facet", block.facet.to_json());
        object.put("snapshot", block.snapshot.to_json());
        if block.source_facets != block.facet.target_facet_ids {
            let facets = block.source_facets.iter().map(FacetId::as_str);
            object.put("sourceFacets", facets.collect::<Value>());
        }
        object.put("contentHash", block.content_hash.as_str());
        object.put("originalTokens", block.original_tokens);
        object.put("engine", block.engine.as_str());
        object.put("createdAt", block.created_at.get());
        let (originals, has_ops) = match &block.originals {
            Originals::Held(_) => ("held", false),
            Originals::Inner => ("blocks", false),
            Originals::Spilled => ("spilled", true),
            Originals::Forgotten => ("forgotten", true),
        };
        object.put("originals", originals);
        if has_ops {
            let ops = block.net_ops.read();
            object.put("ops", ops.iter().map(FacetOp::to_json).collect::<Value>());
        }
        object.put("blocks", inner);
        self.written.push(object.into());
        let number = self.written.len() - 1;
        self.numbers.insert(key, number);
        Value::from(number as u64)
    }
}
