//! The engine that needs no model.

mod entries;
mod identifiers;
mod select;
mod write;

use self::{
    entries::entries,
    select::Names,
    write::{Detail, write},
};
use super::{CompressionJob, Engine};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// Outlines without a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlineEngine;

/// The lengths that beginnings may have, in bytes.
const LEADS: [usize; 16] = [
    0, 20, 30, 45, 60, 80, 110, 150, 220, 320, 500, 800, 1_600, 6_400, 100_000, usize::MAX,
];

/// What part of the limit the beginnings may take while identifiers are still left out.
const LEAD_SHARE: f64 = 0.2;

impl Engine for OutlineEngine {
    fn id(&self) -> &'static str {
        "outline"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let entries = entries(job);
        let names = Names::of(&entries, entries::texts(&job.tail), counter);
        let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
        let fits = |detail: Detail, limit: usize| {
            let text = write(&entries, &names, detail);
            counter.count_up_to(&text, limit).is_some().then_some(text)
        };
        let all = names.names.len();
        let share = (limit as f64 * LEAD_SHARE) as usize;
        let lead_at = |index: usize| LEADS.get(index).copied().unwrap_or_default();
        // 1. Beginnings that leave room for names.
        let lead = last_fitting(LEADS.len(), |index| {
            fits(Detail { lead: lead_at(index), context: 1, names: 0 }, share)
        });
        let base = lead.map_or(0, |(index, _)| index);
        // 2. As many names as fit.
        let mut best = last_fitting(all + 1, |names| {
            fits(Detail { lead: lead_at(base), context: 1, names }, limit)
        });
        // 3. All fit: say more of everything.
        if best.as_ref().is_some_and(|(names, _)| *names == all) {
            let more = last_fitting((LEADS.len() - base) * 2, |step| {
                let detail = Detail { lead: lead_at(base + step.div_ceil(2)), context: 1 + step / 2, names: all };
                fits(detail, limit)
            });
            best = more.or(best);
        }
        best.map(|(_, text)| text).ok_or_else(|| {
            Error::new(ErrorKind::Limit, format!("an outline does not fit into {limit} tokens"))
        })
    }
}

/// The last of `count` tries that succeeds, where all before it do.
fn last_fitting(count: usize, attempt: impl Fn(usize) -> Option<String>) -> Option<(usize, String)> {
    let (mut best, mut from, mut to) = (None, 0, count);
    while from < to {
        let middle = usize::midpoint(from, to);
        match attempt(middle) {
            Some(text) => {
                best = Some((middle, text));
                from = middle + 1;
            }
            None => to = middle,
        }
    }
    best
}
