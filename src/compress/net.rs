use std::{
    collections::{HashMap, HashSet},
    fmt,
    ops::Range,
};

use crate::{
    Result,
    id::FacetId,
    veil::{FacetChange, FacetOp, HeldOp, History, LastRead, Veil},
};

/// What the ops of some frames come to. Additions in frames that a history has packed are read there
/// when they are asked for; a block whose originals were spilled or forgotten has them no more.
#[derive(Clone, Default)]
pub struct NetOps(Vec<HeldOp>);

impl NetOps {
    /// The ops, in order. Those of frames that were forgotten are left out. O(ops), and reads their
    /// frames where they are packed.
    pub fn read(&self) -> Vec<FacetOp> {
        let mut last = LastRead::default();
        self.0.iter().filter_map(|op| op.read(&mut last)).collect()
    }

    /// Without what is read in frames that a history has packed.
    pub(super) fn let_go(&mut self) {
        self.0.retain(|op| matches!(op, HeldOp::Live(_)));
        self.0.shrink_to_fit();
    }

    /// Ops that refer to no history.
    pub(super) fn live(ops: Vec<FacetOp>) -> Self {
        Self(ops.into_iter().map(HeldOp::Live).collect())
    }

    pub(super) fn joined<'n>(all: impl Iterator<Item = &'n Self>) -> Self {
        Self(all.flat_map(|ops| ops.0.iter().cloned()).collect())
    }
}

impl fmt::Debug for NetOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.read()).finish()
    }
}

/// Leads `veil` through the frames with these indices, and tells what their ops come to: one frame
/// of the ops that are answered leads to the same facets in the same order. Ops that later ones undo
/// are left out.
///
/// # Errors
/// Those of [`Veil::apply`].
pub(super) fn lead(veil: &mut Veil, history: &History, range: Range<usize>) -> Result<NetOps> {
    let start = range.start;
    let frames: Vec<_> = history.frames().slice(range).collect();
    let ops = || frames.iter().flat_map(|frame| &frame.ops);
    let mut last = LastRead::default();
    let held: HashSet<&FacetId> =
        ops().map(FacetOp::facet_id).filter(|id| veil.holds_after(id, &mut last)).collect();
    for (index, frame) in (start..).zip(&frames) {
        history.lead(veil, index, frame)?;
    }
    // What happened to a facet before its last addition does not matter.
    let mut added: HashMap<&FacetId, usize> = HashMap::new();
    for (at, op) in ops().enumerate() {
        if let FacetChange::Add(_) = &op.change {
            added.insert(op.facet_id(), at);
        }
    }
    let mut net = Vec::new();
    let mut removed = HashSet::new();
    let numbered = (start..).zip(&frames).flat_map(|(index, frame)| {
        frame.ops.iter().enumerate().map(move |(number, op)| (index, number, op))
    });
    for (at, (index, number, op)) in numbered.enumerate() {
        let id = op.facet_id();
        if veil.holds_after(id, &mut last) {
            if added.get(id).is_none_or(|added| *added <= at) {
                net.push(history.held_op(index, number, op));
            }
        } else if held.contains(id) && removed.insert(id) {
            net.push(HeldOp::Live(FacetOp::remove(id.clone())));
        }
    }
    net.shrink_to_fit();
    Ok(NetOps(net))
}
