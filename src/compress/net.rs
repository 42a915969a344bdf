use std::{
    collections::{HashMap, HashSet},
    fmt,
    ops::Range,
    sync::Arc,
};

use crate::{
    Result,
    id::FacetId,
    veil::{FacetChange, FacetOp, Frame, HeldOp, History, LastRead, Veil},
};

/// The member of a facet that does not hold after its frame.
const EPHEMERAL: &str = "ephemeral";

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

/// What the ops of the frames with these indices come to: one frame of the ops that are answered leads
/// to the same facets in the same order. Ops that later ones undo are left out. `None` where that
/// depends on what held before: see [`lead`]. O(ops).
pub(super) fn of_frames(history: &History, range: Range<usize>) -> Option<NetOps> {
    let start = range.start;
    let frames: Vec<_> = history.frames().slice(range).collect();
    // Whether each facet held before, and holds now.
    let mut ends: HashMap<&FacetId, (bool, bool)> = HashMap::new();
    for op in frames.iter().flat_map(|frame| &frame.ops) {
        let (_, holds) = ends.entry(op.facet_id()).or_insert((!is_add(op), true));
        *holds = match &op.change {
            FacetChange::Add(facet) if facet.ephemeral => return None,
            FacetChange::Rewrite { changes, .. } if changes.contains_key(EPHEMERAL) => return None,
            FacetChange::Add(_) | FacetChange::Rewrite { .. } => true,
            FacetChange::Remove(_) => false,
        };
    }
    // What was added here and is gone may have held before.
    if ends.values().any(|ends| *ends == (false, false)) {
        return None;
    }
    let ends = |id: &FacetId| ends.get(id).copied().unwrap_or_default();
    Some(net(history, start, &frames, |id| ends(id).0, |id| ends(id).1))
}

/// As [`of_frames`], whatever held before: leads `veil` through the frames.
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
    let holds = |id: &FacetId| veil.holds_after(id, &mut last);
    Ok(net(history, start, &frames, |id| held.contains(id), holds))
}

fn is_add(op: &FacetOp) -> bool {
    matches!(op.change, FacetChange::Add(_))
}

/// The net effect of the ops of frames. `start` is the index of the first frame.
fn net(
    history: &History,
    start: usize,
    frames: &[Arc<Frame>],
    held: impl Fn(&FacetId) -> bool,
    mut holds: impl FnMut(&FacetId) -> bool,
) -> NetOps {
    // What happened to a facet before its last addition does not matter.
    let mut added: HashMap<&FacetId, usize> = HashMap::new();
    for (at, op) in frames.iter().flat_map(|frame| &frame.ops).enumerate() {
        if is_add(op) {
            added.insert(op.facet_id(), at);
        }
    }
    let mut net = Vec::new();
    let mut removed = HashSet::new();
    let numbered = (start..).zip(frames).flat_map(|(index, frame)| {
        frame.ops.iter().enumerate().map(move |(number, op)| (index, number, op))
    });
    for (at, (index, number, op)) in numbered.enumerate() {
        let id = op.facet_id();
        if holds(id) {
            if added.get(id).is_none_or(|added| *added <= at) {
                net.push(history.held_op(index, number, op));
            }
        } else if held(id) && removed.insert(id) {
            net.push(HeldOp::Live(FacetOp::remove(id.clone())));
        }
    }
    net.shrink_to_fit();
    NetOps(net)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        hud::Hud,
        id::{FacetType, Millis},
        json::{Object, ObjectExt},
        tokens::Chars4,
        veil::{Facet, Source},
    };

    proptest! {
        #[test]
        fn ops_come_to_the_same_whether_a_veil_is_led_through_them(
            ops in prop::collection::vec((0..5_u8, 0..4_usize), 1..24),
            start in 0..20_usize,
            len in 0..6_usize,
        ) {
            let (hud, mut history) = (Hud::new(Arc::new(Chars4)), History::new());
            for (number, (kind, of)) in ops.iter().enumerate() {
                let id = ["a", "b", "c", "d"][*of];
                let added = Facet::new(id, FacetType::EVENT, format!("{number}"));
                let op = match kind {
                    0 | 1 => FacetOp::add(added),
                    2 => FacetOp::add(added.ephemeral()),
                    _ if !history.veil().holds(id) => continue,
                    3 => {
                        let mut change = Object::new();
                        change.put("content", format!("again {number}"));
                        FacetOp::rewrite(id, change)
                    }
                    _ => FacetOp::remove(id),
                };
                let frame = Frame::new(number as u64, Source::Agent).with(op);
                hud.capture(&mut history, frame, Millis::new(0)).unwrap();
            }
            let start = start.min(history.frames().len());
            let range = start..(start + len).min(history.frames().len());
            let mut veil = Veil::default();
            lead(&mut veil, &history, 0..start).unwrap();
            let led = lead(&mut veil, &history, range.clone()).unwrap();
            if let Some(ops) = of_frames(&history, range) {
                prop_assert_eq!(ops.read(), led.read());
            }
        }
    }
}
