//! A working summary: where things stand, what was done, and the names that will be needed.
//!
//! ```text
//! task ─ material ─→ lines by section, from the ledger and the chronicle
//!      ─ entries, identifiers, select ─→ names, ranked by how likely each is needed, for a token
//!      ─ fit ─→ what the limit allows
//! ```

mod entries;
mod fit;
mod identifiers;
mod line;
mod material;
mod merge;
mod select;

use self::{
    entries::{entries, texts},
    fit::fit,
    material::Material,
    select::Names,
};
use super::Task;
use crate::{Result, steps::Passage, tokens::TokenCounter};

/// The summary of a task. Runs in time linear in its text, but for the sort of the names.
///
/// # Errors
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where the limit is too small to say anything.
pub(crate) fn outline(task: &Task<'_>, counter: &dyn TokenCounter) -> Result<String> {
    fit(Material::of(task, counter), task.token_limit, counter)
}

/// The names in a text that may be needed again: ids, numbers, dates, paths, addresses, and words
/// that look like code.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    identifiers::identifiers(text).map(|(range, _)| range.of(text))
}

/// The identifiers of a task that are likely to be needed again, the one that is most worth its
/// tokens first.
pub(crate) fn likely_names(task: &Task<'_>, counter: &dyn TokenCounter) -> Vec<String> {
    let entries = entries(task.passages, task.of_blocks);
    let names = Names::of(&entries, texts(task.tail), task.ledger.is_some(), counter);
    let ranked = names.ranked(&entries).into_iter();
    ranked.take(names.likely).map(|(name, _)| name).collect()
}

/// The identifiers of frames that may be needed again behind `tail`, the one that is most worth its
/// tokens first. `beside_ledger` leaves out those that say nothing where a ledger stands too.
pub(crate) fn ranked_names(
    passages: &[Passage],
    tail: &[Passage],
    beside_ledger: bool,
    counter: &dyn TokenCounter,
) -> Vec<String> {
    let entries = entries(passages, false);
    let names = Names::of(&entries, texts(tail), beside_ledger, counter);
    names.ranked(&entries).into_iter().map(|(name, _)| name).collect()
}
