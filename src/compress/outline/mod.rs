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
const LEADS: [usize; 12] =
    [40, 60, 80, 110, 150, 220, 320, 500, 800, 1_600, 100_000, usize::MAX];

/// The length up to which beginnings go before names that are not likely to be needed.
const FAIR_LEAD: usize = 4;

/// While identifiers are still left out, beginnings may take a fifth of the limit; of a limit below
/// this many tokens a seventh.
const SMALL: usize = 500;

/// What stands at the head of an outline, and of one that has no room for that.
const HEADINGS: [(u64, &str); 3] = [
    (600, "Outline of what came before, in order; … marks what is left out."),
    (150, "Outline (…: left out)"),
    (0, ""),
];

impl Engine for OutlineEngine {
    fn id(&self) -> &'static str {
        "outline"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let entries = entries(job);
        let names = Names::of(&entries, entries::texts(&job.tail), job.token_limit, counter);
        let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
        let heading = HEADINGS.iter().find(|(from, _)| *from <= job.token_limit);
        let heading = heading.map_or("", |(_, heading)| heading);
        let fits = |detail: Detail, limit: usize| {
            let text = write(&entries, &names, detail);
            counter.count_up_to(&text, limit).is_some().then_some(text)
        };
        let all = names.names.len();
        let share = limit / if limit < SMALL { 7 } else { 5 };
        let lead_at = |index: usize| LEADS.get(index).copied().unwrap_or_default();
        // 1. Beginnings that leave room for names.
        let bare = Detail { heading, lead: lead_at(0), leads: 0, context: 1, names: 0 };
        let leads = last_fitting(entries.len() + 1, |leads| fits(Detail { leads, ..bare }, share));
        let mut detail = Detail { leads: leads.map_or(0, |(leads, _)| leads), ..bare };
        // 2. The names that are likely to be needed.
        let mut best = last_fitting(names.likely + 1, |names| fits(Detail { names, ..detail }, limit));
        detail.names = best.as_ref().map_or(0, |(names, _)| *names);
        if detail.names == names.likely {
            // 3. They fit: more beginnings, then longer ones.
            let more = last_fitting(entries.len() + 1 - detail.leads, |more| {
                fits(Detail { leads: detail.leads + more, ..detail }, limit)
            });
            if let Some((more, text)) = more {
                detail.leads += more;
                best = Some((0, text));
            }
            let mut step = 0;
            if detail.leads == entries.len() {
                let longer = last_fitting(FAIR_LEAD, |step| fits(Detail { lead: lead_at(step), ..detail }, limit));
                if let Some((longer, text)) = longer {
                    step = longer;
                    detail.lead = lead_at(longer);
                    best = Some((0, text));
                }
            }
            // 4. The other names.
            let others = last_fitting(all + 1 - names.likely, |more| {
                fits(Detail { names: names.likely + more, ..detail }, limit)
            });
            if let Some((more, text)) = others {
                detail.names += more;
                best = Some((0, text));
            }
            // 5. More of everything.
            if detail.names == all && detail.leads == entries.len() {
                let more = last_fitting((LEADS.len() - step) * 2, |more| {
                    let detail = Detail {
                        lead: lead_at(step + more.div_ceil(2)),
                        context: 1 + more / 2,
                        ..detail
                    };
                    fits(detail, limit)
                });
                best = more.or(best);
            }
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
