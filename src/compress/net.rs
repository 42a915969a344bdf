use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    Result,
    id::FacetId,
    veil::{FacetChange, FacetOp, Frame, Veil},
};

/// Leads `veil` through frames, and tells what their ops come to: one frame of the ops that are
/// answered leads to the same facets in the same order. Ops that later ones undo are left out.
///
/// # Errors
/// Those of [`Veil::apply`].
pub(super) fn lead(veil: &mut Veil, frames: &[Arc<Frame>]) -> Result<Vec<FacetOp>> {
    let ops = || frames.iter().flat_map(|frame| &frame.ops);
    let held: HashSet<&FacetId> =
        ops().map(FacetOp::facet_id).filter(|id| veil.get(id).is_some()).collect();
    for frame in frames {
        veil.apply(frame)?;
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
    for (at, op) in ops().enumerate() {
        let id = op.facet_id();
        if veil.get(id).is_some() {
            if added.get(id).is_none_or(|added| *added <= at) {
                net.push(op.clone());
            }
        } else if held.contains(id) && removed.insert(id) {
            net.push(FacetOp::remove(id.clone()));
        }
    }
    Ok(net)
}
