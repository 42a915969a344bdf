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
    usage, view,
};

/// What the figures are, and are not.
const SIMULATED: &str =
    "What requests made of these frames would have cost; the usage that was reported is not read.";

/// The fewest columns in which the end of a file's name says which it is.
const LEAST_NAME: usize = 16;

/// From how many columns on a row has room for all figures.
const WIDE: usize = 106;

/// A table with a row for each file and policy.
pub(super) struct Page {
    table: Table,
    shows: Shown,
    /// Whether names of files have room in their rows.
    has_room: bool,
    /// Whether rows have no room: the policy and what was asked stand above and below them.
    is_narrow: bool,
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
    pub(super) fn new(shows: Shown, out: &Output) -> Self {
        let is_narrow = out.is_bounded && out.width < WIDE;
        let only = |shown: bool, column| Some(column).filter(|_| shown);
        let columns = [
            only(shows.policy && !is_narrow, Column::text("policy", 14)),
            Some(Column::number("turns", 5)),
            Some(Column::number("sent", 10)),
            Some(Column::number("cached", 6)),
            Some(Column::number("billed", 9)),
            only(shows.asked && !is_narrow, Column::number("asked", 9)),
            Some(Column::number("used", 6)),
            Some(Column::number("blocks", 6)),
            Some(Column::number("names", 6)),
            // What they are stands below the rows that have any.
            only(!(shows.cost && is_narrow), Column::number("faults", 6)),
            only(shows.cost, Column::number("cost", 11)),
            Some(Column::text("file", 40)),
        ];
        let mut columns: Vec<Column> = columns.into_iter().flatten().collect();
        let has_room = Table::rest_of(&columns, out) >= LEAST_NAME;
        if !has_room {
            columns.pop();
        }
        Self { table: Table::new(columns), shows, has_room, is_narrow }
    }

    pub(super) fn head(&self, title: &str, counts: &Counts, out: &mut Output) -> Outcome {
        let heading = out.paint.style(style::HEADING);
        let dim = out.paint.style(style::DIM);
        writeln!(out, "{heading}{title}, simulated{heading:#}")?;
        writeln!(out, "{dim}Counted by {counts}{dim:#}")?;
        view::note(out, 0, SIMULATED)?;
        writeln!(out)?;
        self.table.head(out)
    }

    /// Prints the name of a file over its rows, where they have no room for it.
    pub(super) fn file(&self, name: &str, out: &mut Output) -> Outcome {
        if self.has_room {
            return Ok(());
        }
        let dim = out.paint.style(style::DIM);
        let name = last_columns(&printable(name), out.width.saturating_sub(1));
        Ok(writeln!(out, " {dim}{name}{dim:#}")?)
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
        let asked = of.summary_input + of.summary_output;
        let cost = played.cost.map_or_else(|| "–".to_owned(), usage::money);
        let cells = [
            only(self.shows.policy && !self.is_narrow, policy.to_owned()),
            Some(plain(grouped(of.turns))),
            Some(plain(grouped(of.tokens_sent))),
            Some(plain(percent(of.tokens_cached, of.tokens_sent))),
            Some(plain(grouped(billed))),
            only(self.shows.asked && !self.is_narrow, grouped(asked)),
            Some(plain(share(of.full_sent, of.full_room))),
            Some(plain(grouped(of.compressions))),
            Some(plain(share(of.identifiers_kept, of.identifiers_needed))),
            Some((grouped(count), style)).filter(|_| !(self.shows.cost && self.is_narrow)),
            only(self.shows.cost, cost),
            self.has_room.then(|| plain(self.cut(name, out))),
        ];
        let cells = cells.into_iter().flatten().collect();
        if self.is_narrow && self.shows.policy {
            writeln!(out, " {}", printable(policy))?;
        }
        self.table.row(out, cells)?;
        if self.is_narrow && self.shows.asked {
            writeln!(out, "        {} asked for summaries", grouped(asked))?;
        }
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
    ]);
    table.head(out)?;
    for (name, played) in policies {
        let of = &played.figures.survival;
        let shares = of.shares().map(|(_, share)| {
            let none = share.wanted == 0;
            plain(if none { "–".to_owned() } else { percent(share.found, share.wanted) })
        });
        let cells = [plain(name), plain(grouped(of.texts))].into_iter().chain(shares);
        table.row(out, cells.collect())?;
    }
    Ok(())
}
