//! What goes first where something must go.

use std::sync::Arc;

use crate::{
    id::{FacetType, FrameSeq},
    json::Number,
    veil::{Facet, FacetChange, Frame},
};

/// How much it is worth to keep; what compares less goes first. Saliency decides, then the type,
/// then age.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct KeepRank {
    /// Whether it holds the user's first message or last instruction.
    is_words: bool,
    is_recent: bool,
    is_reference: bool,
    /// Below zero where it loses its worth fast.
    lasting: f64,
    kind: u8,
    from: u64,
}

impl KeepRank {
    /// Of a block that stands for frames.
    pub(super) fn of_block(from: FrameSeq, is_recent: bool) -> Self {
        let (is_words, from) = (false, from.get());
        Self { is_words, is_recent, is_reference: true, lasting: 0.0, kind: 0, from }
    }

    /// Of frames: as much as the facet in them that is worth most.
    pub(super) fn of_frames(
        frames: impl Iterator<Item = Arc<Frame>>,
        from: FrameSeq,
        is_recent: bool,
    ) -> Self {
        let frames: Vec<Arc<Frame>> = frames.collect();
        let ops = frames.iter().flat_map(|frame| &frame.ops);
        let added = ops.filter_map(|op| match &op.change {
            FacetChange::Add(facet) => Some(facet),
            _ => None,
        });
        let none = Self {
            is_words: false,
            is_recent,
            is_reference: false,
            lasting: f64::NEG_INFINITY,
            kind: 0,
            from: from.get(),
        };
        let worth = added.fold(none, |worth, facet| Self {
            is_reference: worth.is_reference || is_reference(facet),
            lasting: worth.lasting.max(-transience(facet)),
            kind: worth.kind.max(kind(&facet.facet_type)),
            ..worth
        });
        if worth.lasting.is_finite() {
            return worth;
        }
        // Frames that add nothing show the state that they change.
        Self { lasting: 0.0, kind: kind(&FacetType::STATE), ..worth }
    }

    /// The rank of frames that hold the user's first message or last instruction, or not.
    pub(super) fn keep(self, is_words: bool) -> Self {
        Self { is_words, ..self }
    }

    /// The rank of frames in which something was done, whatever their types: a command in the
    /// agent's text, and its output.
    pub(super) fn as_done(self) -> Self {
        Self { kind: self.kind.min(DONE), ..self }
    }

    /// Whether more of the kind may go than must, so that it happens less often.
    pub(super) fn is_cheap(&self) -> bool {
        !self.is_words && !self.is_recent && !self.is_reference
    }

    pub(super) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal)
    }
}

fn is_reference(facet: &Facet) -> bool {
    facet.saliency.as_ref().is_some_and(|saliency| saliency.reference)
}

fn transience(facet: &Facet) -> f64 {
    let transient = facet.saliency.as_ref().and_then(|saliency| saliency.transient.as_ref());
    transient.map(Number::as_f64).filter(|rate| rate.is_finite()).unwrap_or(0.0)
}

const DONE: u8 = 2;

/// What was said outlives what was done, and that what was thought.
fn kind(facet_type: &FacetType) -> u8 {
    match facet_type.as_str() {
        "event" => 4,
        "speech" => 3,
        "action" | "result" | "state" => DONE,
        _ => 1,
    }
}
