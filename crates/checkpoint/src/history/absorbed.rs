//! The deltas that a history no longer needs.

use std::collections::{HashMap, HashSet};

use super::{History, ends, reached};
use crate::{
    algebra::{invert, validate},
    apply::apply,
    delta::CheckpointDelta,
};

impl History {
    /// The names of the deltas that a checkpoint at their end, or after it, has absorbed: without
    /// them every checkpoint that is there is still there.
    ///
    /// A checkpoint that a delta does not lead to absorbs neither that delta nor those before it.
    /// This is checked by applying the delta to the checkpoint before, or its inverse to the one
    /// after. Where neither can be made, the headers decide.
    ///
    /// Cost: applies each delta once at most: O(deltas) documents.
    pub fn absorbed(&self) -> Vec<&str> {
        let steps = self.steps();
        let holds: Vec<bool> = self
            .deltas
            .iter()
            .map(|(_, delta)| {
                let Some((from, to)) = ends(delta) else { return false };
                let Some(stored) = self.stored(to) else { return true };
                match self.rebuild_without(from, Some(to), &steps) {
                    Some(Ok(base)) => {
                        validate(&base, delta, stored).is_ok_and(|found| found.is_empty())
                    }
                    Some(Err(_)) => false,
                    None => invert(delta).map_or(true, |back| apply(stored, &back).is_ok()),
                }
            })
            .collect();
        let covered = self.covered(&holds);
        let is_absorbed = |(delta, holds): (&CheckpointDelta, &bool)| {
            *holds && ends(delta).is_some_and(|(_, to)| covered.contains(to))
        };
        let deltas = self.deltas.iter().zip(&holds);
        let absorbed = deltas.filter(|((_, delta), holds)| is_absorbed((delta, *holds)));
        absorbed.map(|((name, _), _)| name.as_str()).collect()
    }

    /// The ids of the checkpoints that are there, and of those before them.
    fn covered(&self, holds: &[bool]) -> HashSet<&str> {
        let mut links: HashMap<(&str, &str), bool> = HashMap::new();
        let deltas = self.deltas.iter().zip(holds);
        for (ends, holds) in deltas.filter_map(|((_, delta), holds)| Some((ends(delta)?, *holds))) {
            *links.entry(ends).or_default() |= holds;
        }
        for ends in self.parents() {
            // A delta between the two knows better than the header.
            links.entry(ends).or_insert(true);
        }
        let mut before: HashMap<&str, Vec<&str>> = HashMap::new();
        for ((from, to), _) in links.into_iter().filter(|(_, holds)| *holds) {
            before.entry(to).or_default().push(from);
        }
        reached(self.by_id.keys().map(String::as_str), |at| {
            before.get(at).cloned().unwrap_or_default()
        })
    }
}
