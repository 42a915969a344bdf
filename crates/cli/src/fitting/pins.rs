//! What `--pin` names stays as it is.

use std::sync::Arc;

use afterimage::veil::{Facet, FacetChange, Frame};

use crate::failure::{Failure, Outcome};

/// What is to stay, and whether it was found.
pub(crate) struct Pins<'a> {
    all: Vec<(&'a str, bool)>,
}

impl<'a> Pins<'a> {
    pub(super) fn new(pins: &'a [String]) -> Self {
        Self { all: pins.iter().map(|pin| (pin.as_str(), false)).collect() }
    }

    /// Pins what the frame adds and one of them names.
    pub(super) fn pin(&mut self, frame: &mut Frame) {
        for (pin, is_found) in &mut self.all {
            let number = pin.parse::<u64>().ok();
            for op in &mut frame.ops {
                let FacetChange::Add(facet) = &mut op.change else { continue };
                let is_meant = match number {
                    Some(number) => frame.sequence.get() == number,
                    None => names(facet, pin),
                };
                if is_meant {
                    *is_found = true;
                    Arc::make_mut(facet).saliency.get_or_insert_default().pinned = true;
                }
            }
        }
    }

    /// Refuses what was not found: whoever pins a rule wants to know that it does not stay.
    pub(super) fn expect_found(&self) -> Outcome {
        let Some((pin, _)) = self.all.iter().find(|(_, is_found)| !is_found) else { return Ok(()) };
        let failure = Failure::new(format!("no frame, facet or text {pin:?} was found to pin"));
        Err(failure.hint("`afterimage frames` lists the frames, `trace` finds a text").into())
    }
}

/// Whether a facet, or one inside of it, has this id or holds this text.
fn names(facet: &Facet, pin: &str) -> bool {
    !pin.is_empty()
        && (&*facet.id == pin
            || facet.content.contains(pin)
            || facet.children.iter().any(|child| names(child, pin)))
}
