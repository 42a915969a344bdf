//! What `--pin` names stays as it is.

use std::sync::Arc;

use afterimage::{
    json::Value,
    veil::{Facet, FacetChange, Frame},
};

use crate::failure::{Failure, Outcome};

/// A number from here on names a text too, such as an order; a smaller one names a frame alone.
const LEAST_TEXT: u64 = 100_000;

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
                // A number that no frame has may stand in a text.
                let is_meant = number.is_some_and(|number| frame.sequence.get() == number)
                    || names(facet, pin) && number.is_none_or(|number| number >= LEAST_TEXT);
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

/// Whether a facet, or one inside of it, has this id or holds this text, in its arguments too.
fn names(facet: &Facet, pin: &str) -> bool {
    !pin.is_empty()
        && (&*facet.id == pin
            || facet.content.contains(pin)
            || facet.call().is_some_and(|call| {
                call.arguments.is_some_and(|arguments| arguments.contains(pin))
                    || call.parameters.is_some_and(|parameters| holds(parameters, pin))
            })
            || facet.children.iter().any(|child| names(child, pin)))
}

/// Whether a text of arguments holds this one, or they do as they are written.
fn holds(value: &Value, pin: &str) -> bool {
    match value {
        Value::String(text) => text.contains(pin),
        Value::Array(list) => list.iter().any(|item| holds(item, pin)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.contains(pin) || holds(value, pin))
        }
        _ => value.to_string() == pin,
    }
}
