//! What a frame shows and what holds after it, worked out a second time: slowly, over plain JSON,
//! from the text of the design and sharing no code with the veil.

#![allow(dead_code, reason = "each test takes what it needs")]

use afterimage::{
    json::{Object, PathElement, Value},
    veil::{Facet, FacetChange, FacetOp, Frame},
};

/// The facets that hold, in the order in which they were added.
#[derive(Default)]
pub(crate) struct VeilModel {
    holding: Vec<Facet>,
    /// The same at the end of the last frame, before what is ephemeral went.
    at_the_end: Vec<Facet>,
}

impl VeilModel {
    pub(crate) fn facets(&self) -> Vec<&Facet> {
        self.holding.iter().collect()
    }

    /// The facets that held at the end of the last frame, those that went with it included.
    pub(crate) fn at_the_end(&self) -> &[Facet] {
        &self.at_the_end
    }

    /// Applies a valid frame and gives what it shows.
    pub(crate) fn apply(&mut self, frame: &Frame) -> Vec<Facet> {
        let before = self.holding.clone();
        for op in &frame.ops {
            match &op.change {
                // "Adding an id that exists replaces the facet."
                FacetChange::Add(facet) => {
                    self.holding.retain(|old| old.id != facet.id);
                    self.holding.push(Facet::clone(facet));
                }
                FacetChange::Rewrite { id, changes, unset } => {
                    let facet = self.holding.iter_mut().find(|facet| facet.id == *id);
                    let facet = facet.expect("generated frames name facets that hold");
                    *facet = rewritten(facet, changes, unset);
                }
                FacetChange::Remove(id) => self.holding.retain(|old| old.id != *id),
            }
        }
        let shown = self.shown(frame, &before);
        // "Ephemeral facets go at the end of their frame, after rendering."
        self.at_the_end.clone_from(&self.holding);
        self.holding.retain(|facet| !facet.ephemeral);
        shown
    }

    fn shown(&self, frame: &Frame, before: &[Facet]) -> Vec<Facet> {
        let mut shown: Vec<(usize, Facet)> = Vec::new();
        for facet in &self.holding {
            let ops: Vec<(usize, &FacetOp)> =
                frame.ops.iter().enumerate().filter(|(_, op)| *op.facet_id() == facet.id).collect();
            // "Remove and re-add makes a facet visible again": what stood before the removal is past.
            let gone = ops.iter().rposition(|(_, op)| matches!(&op.change, FacetChange::Remove(_)));
            let ops = ops.get(gone.map_or(0, |at| at + 1)..).unwrap_or_default();
            let added = ops.iter().find(|(_, op)| matches!(&op.change, FacetChange::Add(_)));
            // "A frame of only rewrites renders the state facets that changed, else nothing."
            let old = before.iter().find(|old| old.id == facet.id);
            let changed = facet.facet_type == "state" && old.is_some_and(|old| old != facet);
            if added.is_none() && !changed {
                continue;
            }
            // "A state facet changed several times renders once, where it first appeared."
            let mut then = if gone.is_some() { None } else { old.cloned() };
            let first = ops.iter().find(|(_, op)| {
                match &op.change {
                    FacetChange::Add(facet) => then = Some(Facet::clone(facet)),
                    FacetChange::Rewrite { changes, unset, .. } => {
                        then = then.as_ref().map(|facet| rewritten(facet, changes, unset));
                    }
                    FacetChange::Remove(_) => then = None,
                }
                let state = then.as_ref().is_some_and(|facet| facet.facet_type == "state");
                matches!(&op.change, FacetChange::Add(_)) || state
            });
            let at = first.expect("what is shown was added or changed").0;
            // Ambient facets float; what was not understood was not seen.
            if facet.facet_type != "ambient" && facet.facet_type != "unknown" {
                shown.push((at, facet.clone()));
            }
        }
        shown.sort_by_key(|(at, _)| *at);
        shown.into_iter().map(|(_, facet)| facet).collect()
    }
}

/// "Rewrites merge objects deeply, replace everything else, can store `null`, and can unset a key."
fn rewritten(facet: &Facet, changes: &Object, unset: &[afterimage::json::Path]) -> Facet {
    let mut value = merged(Some(&facet.to_json()), &Value::Object(changes.clone()));
    for path in unset {
        value = without(value, path.elements());
    }
    Facet::from_json(value).expect("generated rewrites leave a facet")
}

fn merged(old: Option<&Value>, new: &Value) -> Value {
    let (Some(Value::Object(old)), Value::Object(new)) = (old, new) else { return new.clone() };
    let kept = old.iter().map(|(key, value)| match new.get(key) {
        Some(change) => (key.clone(), merged(Some(value), change)),
        None => (key.clone(), value.clone()),
    });
    let added = new.iter().filter(|(key, _)| !old.contains_key(key));
    let added = added.map(|(key, value)| (key.clone(), value.clone()));
    Value::Object(kept.chain(added).collect())
}

fn without(value: Value, path: &[PathElement]) -> Value {
    let [PathElement::Key(first), rest @ ..] = path else { return value };
    let Value::Object(object) = value else { return value };
    let members = object.into_iter().filter_map(|(key, value)| match (key == *first, rest) {
        (true, []) => None,
        (true, rest) => Some((key, without(value, rest))),
        (false, _) => Some((key, value)),
    });
    Value::Object(members.collect())
}
