//! The table of a replay.

use std::io::Write;

use super::Played;
use crate::{
    failure::Outcome,
    lens::Counts,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{grouped, last_columns, percent, printable},
    usage,
};

/// What the figures are, and are not.
const SIMULATED: &str =
    "What requests made of these frames would have cost; the usage that was reported is not read.";

/// The fewest columns in which the end of a file's name says which it is.
const LEAST_NAME: usize = 16;

/// A table with a row for each file and policy.
pub(super) struct Page {
    table: Table,
    shows: Shown,
}

/// Which columns a table has besides those that each has.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    /// The policy, where there are several.
    pub(super) policy: bool,
    /// What a model was asked for summaries, where that costs.
    pub(super) asked: bool,
    /// The cost, where a model is named.
    pub(super) cost: bool,
}

impl Page {
    pub(super) fn new(shows: Shown) -> Self {
        let only = |shown: bool, column| Some(column).filter(|_| shown);
        let columns = [
            only(shows.policy, Column::text("policy", 14)),
            Some(Column::number("turns", 5)),
            Some(Column::number("sent", 11)),
            Some(Column::number("cached", 6)),
            Some(Column::number("billed", 11)),
            only(shows.asked, Column::number("asked", 9)),
            Some(Column::number("used", 6)),
            Some(Column::number("blocks", 6)),
            Some(Column::number("names", 6)),
            Some(Column::number("faults", 6)),
            only(shows.cost, Column::number("cost", 10)),
            Some(Column::text("file", 40)),
        ];
        Self { table: Table::new(columns.into_iter().flatten()), shows }
    }

    pub(super) fn head(&self, title: &str, counts: &Counts, out: &mut Output) -> Outcome {
        let heading = out.paint.style(style::HEADING);
        let dim = out.paint.style(style::DIM);
        writeln!(out, "{heading}{title}, simulated{heading:#}")?;
        writeln!(out, "{dim}Counted by {counts}{dim:#}")?;
        writeln!(out, "{dim}{SIMULATED}{dim:#}\n")?;
        self.table.head(out)
    }

    /// Prints the name of a file over its rows, where they have no room for it.
    pub(super) fn file(&self, name: &str, out: &mut Output) -> Outcome {
        if self.has_room(out) {
            return Ok(());
        }
        let dim = out.paint.style(style::DIM);
        let name = last_columns(&printable(name), out.width.saturating_sub(1));
        Ok(writeln!(out, " {dim}{name}{dim:#}")?)
    }

    fn has_room(&self, out: &Output) -> bool {
        self.table.rest(out) >= LEAST_NAME
    }

    fn cut(&self, name: &str, out: &Output) -> String {
        last_columns(&printable(name), self.table.rest(out))
    }

    /// Prints a file's figures, and what should not be among them.
    pub(super) fn row(
        &self,
        policy: &str,
        name: &str,
        played: &Played,
        billed: u64,
        out: &mut Output,
    ) -> Outcome {
        let of = &played.figures;
        let share = |part, whole| {
            if whole == 0 { "–".to_owned() } else { percent(part, whole) }
        };
        let faults = [
            (of.over_budget, "over the budget"),
            (of.unfit, "without room for what must stay"),
            (of.orphans, "pairs of call and result cut"),
        ];
        let count: u64 = faults.iter().map(|(count, _)| count).sum();
        let style = if count > 0 { style::REMOVED } else { anstyle::Style::new() };
        let only = |shown: bool, cell| Some(plain(cell)).filter(|_| shown);
        let cost = played.cost.map_or_else(|| "–".to_owned(), usage::money);
        let cells = [
            only(self.shows.policy, policy.to_owned()),
            Some(plain(grouped(of.turns))),
            Some(plain(grouped(of.tokens_sent))),
            Some(plain(percent(of.tokens_cached, of.tokens_sent))),
            Some(plain(grouped(billed))),
            only(self.shows.asked, grouped(of.summary_input + of.summary_output)),
            Some(plain(share(of.full_sent, of.full_room))),
            Some(plain(grouped(of.compressions))),
            Some(plain(share(of.identifiers_kept, of.identifiers_needed))),
            Some((grouped(count), style)),
            only(self.shows.cost, cost),
            Some(plain(if self.has_room(out) { self.cut(name, out) } else { String::new() })),
        ];
        let cells = cells.into_iter().flatten().collect();
        self.table.row(out, cells)?;
        let style = out.paint.style(style);
        for (count, what) in faults.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(out, "        {style}{} {what}{style:#}", grouped(count))?;
        }
        Ok(())
    }
}

/// Prints what requests still said, by policy.
pub(super) fn survival<'p>(
    policies: impl Iterator<Item = (String, &'p Played)>,
    out: &mut Output,
) -> Outcome {
    let heading = out.paint.style(style::HEADING);
    writeln!(out, "\n{heading}What requests still say of all sessions{heading:#}\n")?;
    let table = Table::new([
        Column::text("policy", 14),
        Column::number("looked at", 9),
        Column::number("first", 7),
        Column::number("later", 7),
        Column::number("rules", 7),
        Column::number("error", 7),
        Column::number("todo", 7),
        Column::number("files", 7),
        Column::text("", 0),
    ]);
    table.head(out)?;
    for (name, played) in policies {
        let of = &played.figures.survival;
        let shares = of.shares().map(|(_, share)| {
            let none = share.wanted == 0;
            plain(if none { "–".to_owned() } else { percent(share.found, share.wanted) })
        });
        let cells = [plain(name), plain(grouped(of.texts))].into_iter().chain(shares);
        table.row(out, cells.chain([plain("")]).collect())?;
    }
    Ok(())
}
