//! How much an outline can say within its limit.

use super::{
    entries::Entry,
    select::Names,
    write::{Detail, write},
};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// The lengths that beginnings may have, in bytes.
const LEADS: [usize; 12] = [40, 60, 80, 110, 150, 220, 320, 500, 800, 1_600, 100_000, usize::MAX];

/// So many lengths go before names that are not likely to be needed.
const FAIR_LEADS: usize = 4;

/// The length of a beginning where nothing longer fits.
const SHORTEST_LEAD: usize = 8;

/// While identifiers are still left out, beginnings may take a sixth of the limit; of a limit below
/// this many tokens a ninth.
const SMALL: usize = 500;

/// What stands at the head of an outline, from which limit on.
const HEADINGS: [(u64, &str); 3] = [
    (600, "Outline of what came before, in order; … marks what is left out."),
    (200, "Outline (…: left out)"),
    (0, ""),
];

/// Whether a line is what an outline begins with.
pub(super) fn is_heading(line: &str) -> bool {
    HEADINGS.iter().any(|(_, heading)| *heading == line)
}

/// The outline of what nobody can read.
const NOTHING: &str = "Nothing to outline.";

/// The outline that says the most within the limit.
pub(super) fn fit(
    entries: &[Entry<'_>],
    names: &Names,
    limit: u64,
    counter: &dyn TokenCounter,
) -> Result<String> {
    let heading = HEADINGS.iter().find(|(from, _)| *from <= limit).map_or("", |(_, text)| *text);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let lead_at = |step: usize| LEADS.get(step).copied().unwrap_or(usize::MAX);
    let detail =
        Detail { heading, lead: lead_at(0), task: limit / 3, leads: 0, context: 1, names: 0 };
    let mut fitting = Fitting { entries, names, counter, detail, best: None };
    let (most_leads, all_names) = (entries.len(), names.names.len());

    // Beginnings that leave room for names, and the names that are likely to be needed.
    let share = limit / if limit < SMALL { 9 } else { 6 };
    let leads = fitting.grow(most_leads, share, |detail, leads| detail.leads = leads);
    let likely = fitting.grow(names.likely, limit, |detail, names| detail.names = names);
    if likely == names.likely {
        // More beginnings, then longer ones, then the other names, then more of everything.
        let more = most_leads - leads;
        let has_all_leads =
            fitting.grow(more, limit, |detail, more| detail.leads = leads + more) == more;
        let longer = if has_all_leads { FAIR_LEADS } else { 0 };
        let step = fitting.grow(longer, limit, |detail, step| detail.lead = lead_at(step));
        let others = all_names - likely;
        let has_all_names =
            fitting.grow(others, limit, |detail, more| detail.names = likely + more) == others;
        if has_all_leads && has_all_names {
            fitting.grow((LEADS.len() - step) * 2, limit, |detail, more| {
                detail.task = usize::MAX;
                detail.lead = lead_at(step + more.div_ceil(2));
                detail.context = 1 + more / 2;
            });
        }
    }
    if fitting.best.as_ref().is_none_or(|text| text.len() <= heading.len()) {
        fitting.best = None;
        fitting.detail = Detail { heading: "", lead: SHORTEST_LEAD, leads: 0, ..detail };
        fitting.grow(1, limit, |detail, leads| detail.leads = leads);
    }
    if entries.is_empty() {
        fitting.detail.heading = NOTHING;
        fitting.grow(0, limit, |_, _| {});
    }
    fitting.best.filter(|text| !text.is_empty()).ok_or_else(|| {
        let message = format!("{limit} tokens are too few to outline anything");
        Error::new(ErrorKind::Limit, message)
    })
}

/// A search for the most detail.
struct Fitting<'a> {
    entries: &'a [Entry<'a>],
    names: &'a Names,
    counter: &'a dyn TokenCounter,
    /// The detail of the best outline.
    detail: Detail,
    best: Option<String>,
}

impl Fitting<'_> {
    /// Finds the most, from 0 to `most`, that `change` can be given for the outline to be within
    /// `limit`, and keeps the outline. Tries the logarithm of `most` outlines; each is counted
    /// whole, so that none is kept that only should have fitted.
    fn grow(&mut self, most: usize, limit: usize, change: impl Fn(&mut Detail, usize)) -> usize {
        let (mut reached, mut from, mut to) = (0, 0, most + 1);
        let start = self.detail;
        while from < to {
            let middle = usize::midpoint(from, to);
            let mut detail = start;
            change(&mut detail, middle);
            let text = write(self.entries, self.names, detail);
            if self.counter.count_up_to(&text, limit).is_some() {
                (self.detail, self.best) = (detail, Some(text));
                reached = middle;
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        reached
    }
}
