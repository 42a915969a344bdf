//! Which result answers which call.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, PartRef},
};

/// Calls and results, paired by position as well as by id: ids repeat in real sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// The calls that wait, by id.
    open: HashMap<Box<str>, VecDeque<FrameSeq>>,
    waiting: usize,
    /// Whether the last frame that shows something is the agent's.
    is_agents: bool,
    whole: Vec<(FrameSeq, FrameSeq)>,
}

impl Pairs {
    /// Takes the next frame. Where a turn of the agent begins, the one before is over: what has no
    /// result by then gets none.
    pub(crate) fn push(&mut self, frame: FrameSeq, snapshot: &FrameSnapshot, is_agents: bool) {
        if snapshot.is_empty() {
            return;
        }
        if is_agents && !self.is_agents {
            self.open.clear();
            self.waiting = 0;
        }
        self.is_agents = is_agents;
        for part in parts(snapshot) {
            match part {
                PartRef::Call { id, .. } => {
                    self.open.entry(id.unwrap_or_default().into()).or_default().push_back(frame);
                    self.waiting += 1;
                }
                PartRef::Result { id } => {
                    let waiting = self.open.get_mut(id.unwrap_or_default());
                    if let Some(call) = waiting.and_then(VecDeque::pop_front) {
                        self.waiting -= 1;
                        self.whole.push((call, frame));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether every call has its result.
    pub(crate) fn is_closed(&self) -> bool {
        self.waiting == 0
    }

    /// Whether a frame of the agent would begin a turn.
    pub(crate) fn is_agents(&self) -> bool {
        self.is_agents
    }

    /// The frames of calls with those of their results.
    pub(crate) fn whole(&self) -> &[(FrameSeq, FrameSeq)] {
        &self.whole
    }
}

/// The calls and results of a frame, each once: a long one is several chunks, and what stands
/// inside of a result is a part of it.
fn parts(snapshot: &FrameSnapshot) -> impl Iterator<Item = PartRef<'_>> {
    let mut taken: HashSet<&str> = HashSet::new();
    // The results, and the facets inside of them.
    let mut results: HashSet<&str> = HashSet::new();
    snapshot.chunks().filter_map(move |chunk| {
        let facet = chunk.facet_ids().next();
        let around = chunk.structure().and_then(|structure| structure.parent);
        let around = around.and_then(|around| snapshot.chunk(around)?.facet_ids().next());
        let is_inside = around.is_some_and(|around| results.contains(around));
        let is_result = matches!(chunk.part(), PartRef::Result { .. });
        if is_result || is_inside {
            results.extend(facet);
        }
        let is_half = is_result || matches!(chunk.part(), PartRef::Call { .. });
        let is_new = is_half && facet.is_none_or(|facet| taken.insert(facet));
        (is_new && !is_inside).then_some(chunk.part())
    })
}
