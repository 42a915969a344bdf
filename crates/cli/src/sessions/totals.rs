//! `sessions --by`: what all sessions used, added up by one of their members. Each answer counts once,
//! in however many files it stands.

use std::{cmp::Reverse, collections::HashSet, io::Write, ops::RangeInclusive};

use afterimage::transcript::{LimitWindow, Money};
use clap::ValueEnum;
use indexmap::IndexMap;
use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{
    figures::{CELL, Cell, Figures},
    listing::Listed,
    page::{UNKNOWN, cost},
};
use crate::{
    answer::answer,
    failure::Outcome,
    moment::minute,
    output::Output,
    table::{Column, Table, plain},
    text::grouped,
    usage, when,
};

/// What totals are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The day in UTC
    Day,
    /// The week in UTC, as ISO 8601 numbers them
    Week,
    /// The folder that the session worked in
    Project,
    /// The model that answered
    Model,
    /// The format of the file, which tells the agent
    Client,
    /// The tools that an answer called
    Tool,
    /// The window of a rate limit, where the file holds it
    Window,
}

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// What was last
    Time,
    /// What cost most
    Cost,
    /// What used most tokens
    Tokens,
}

impl By {
    /// What comes first where nobody says it.
    fn sort(self) -> Sort {
        let is_time = matches!(self, Self::Day | Self::Week | Self::Window);
        if is_time { Sort::Time } else { Sort::Cost }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Project => "PROJECT",
            Self::Model => "MODEL",
            Self::Client => "CLIENT",
            Self::Tool => "TOOL",
            Self::Window => "WINDOW",
        }
    }
}

/// The sum of a part of all answers.
#[derive(Default)]
pub(super) struct Total {
    name: Option<String>,
    window: Option<LimitWindow>,
    sessions: u64,
    /// When the last of them came, where that is said.
    last: Option<i64>,
    figures: Figures,
}

/// A total's name, and of a window its number.
type Key = (Option<String>, Option<usize>);

/// The totals of the answers that came within a time, by one of their members, and that of all.
pub(super) fn totals(
    listed: &[Listed],
    by: By,
    sort: Option<Sort>,
    within: &RangeInclusive<i64>,
) -> (Vec<Total>, Total) {
    let (mut totals, mut all) = (IndexMap::<Key, Total>::new(), Total::default());
    let windows = windows(listed);
    let mut seen = HashSet::new();
    for session in listed {
        let Some(summary) = &session.summary else { continue };
        // A copy of a file holds the same session as far as the file.
        let name = (&summary.session, summary.started, summary.ended, &summary.answers);
        let is_named = summary.ended.is_some() || !summary.answers.is_empty();
        if is_named && !seen.insert((name, summary.total().requests)) {
            continue;
        }
        let mut keys = HashSet::new();
        for cell in &summary.cells {
            // What says no time is chosen by that of its file, and is told of none.
            let stated = cell.at.or(summary.ended);
            let at = stated.unwrap_or_else(|| session.at());
            if at.saturating_add(CELL) <= *within.start() || at > *within.end() {
                continue;
            }
            let client = &summary.format;
            let of = match by {
                By::Window => of_windows(&windows, client, stated),
                _ => vec![(name_of(by, session, client, cell, stated), None)],
            };
            for key in of {
                let total = totals.entry(key.clone()).or_default();
                total.sessions += u64::from(keys.insert(key));
                total.add(cell, stated);
            }
            all.add(cell, stated);
        }
        all.sessions += u64::from(!keys.is_empty());
    }
    let mut totals: Vec<Total> = totals
        .into_iter()
        .map(|((name, window), total)| {
            let window = window.and_then(|index| windows.get(index)).map(|(_, window)| *window);
            Total { name, window, ..total }
        })
        .collect();
    totals.sort_by(|one, other| one.name.cmp(&other.name));
    match sort.unwrap_or_else(|| by.sort()) {
        Sort::Time => totals.sort_by_key(|of| Reverse((of.window.map(|of| of.resets), of.last))),
        Sort::Cost => totals.sort_by_key(|of| Reverse(of.figures.weight())),
        Sort::Tokens => totals.sort_by_key(|of| Reverse(of.figures.tokens())),
    }
    (totals, all)
}

impl Total {
    fn add(&mut self, cell: &Cell, at: Option<i64>) {
        self.last = self.last.max(at);
        self.figures.add(&cell.figures);
    }
}

fn name_of(by: By, session: &Listed, client: &str, cell: &Cell, at: Option<i64>) -> Option<String> {
    match by {
        By::Day => at.and_then(day).map(|day| day.to_string()),
        By::Week => at.and_then(day).map(|day| {
            let week = day.iso_week_date();
            format!("{}-W{:02}", week.year(), week.week())
        }),
        By::Project => Some(session.project()),
        By::Model => cell.model.clone(),
        By::Client | By::Window => Some(client.to_owned()),
        By::Tool => Some(cell.tools.clone()).filter(|tools| !tools.is_empty()),
    }
}

fn day(at: i64) -> Option<Date> {
    Some(Timestamp::from_millisecond(at).ok()?.to_zoned(TimeZone::UTC).date())
}

/// The windows that the sessions of each client report, the newest first.
fn windows(listed: &[Listed]) -> Vec<(&str, LimitWindow)> {
    let mut windows: Vec<(&str, LimitWindow)> = Vec::new();
    let summaries = listed.iter().filter_map(|session| session.summary.as_ref());
    let mut all: Vec<_> = summaries
        .flat_map(|summary| summary.limits.iter().map(|limit| (summary.format.as_str(), *limit)))
        .collect();
    all.sort_by_key(|(client, limit)| (*client, limit.minutes, Reverse(limit.resets)));
    for (client, limit) in all {
        let is_known = |(of, last): &mut (&str, LimitWindow)| *of == client && last.join(&limit);
        if !windows.last_mut().is_some_and(is_known) {
            windows.push((client, limit));
        }
    }
    windows
}

/// The windows of a client that an answer falls into, one of each length; without a number where there
/// is none.
fn of_windows(windows: &[(&str, LimitWindow)], client: &str, at: Option<i64>) -> Vec<Key> {
    let holds = |window: &LimitWindow| {
        at.is_some_and(|at| window.begins() < at + CELL && at < window.resets)
    };
    let mut of: Vec<Key> = Vec::new();
    let mut last = None;
    for (index, (owner, window)) in windows.iter().enumerate() {
        if *owner == client && last != Some(window.minutes) && holds(window) {
            last = Some(window.minutes);
            of.push((Some(client.to_owned()), Some(index)));
        }
    }
    if of.is_empty() {
        of.push((Some(client.to_owned()), None));
    }
    of
}

/// Writes the totals, and that of all of them.
pub(super) fn table(totals: &[Total], all: &Total, by: By, out: &mut Output) -> Outcome {
    if totals.is_empty() {
        return Ok(writeln!(out, " There is no session in it.")?);
    }
    let mut columns = vec![Column::number("SESSIONS", 8), Column::number("REQUESTS", 8)];
    columns.extend(usage::columns());
    columns.push(Column::number("COST", 7));
    columns.extend((by == By::Window).then(|| Column::number("USED", 4)));
    columns.push(Column::text(by.title(), 0));
    let row = |total: &Total, name: String| {
        let figures = &total.figures;
        let mut row = vec![plain(grouped(total.sessions)), plain(grouped(figures.requests))];
        row.extend(usage::cells(figures.reported_usage()));
        row.push(plain(cost(figures)));
        if by == By::Window {
            let used = total.window.and_then(|window| window.used);
            row.push(plain(used.map_or_else(|| UNKNOWN.to_owned(), |used| format!("{used}%"))));
        }
        row.push(plain(name));
        row
    };
    let none = if matches!(by, By::Day | By::Week) { "no time" } else { UNKNOWN };
    let mut rows: Vec<_> = totals.iter().map(|total| row(total, total.shown(none))).collect();
    rows.push(row(all, "total".to_owned()));
    let table = Table::new(columns).fitted(&rows);
    table.head(out)?;
    rows.into_iter().try_for_each(|row| table.row(out, row))
}

impl Total {
    /// What it is called for people; `none` where it has no name.
    fn shown(&self, none: &str) -> String {
        let name = self.name.as_deref().unwrap_or(none);
        let Some(window) = self.window else { return name.to_owned() };
        let length = match (window.minutes / 60, window.minutes % 60) {
            (hours, 0) if hours > 0 && hours % 24 == 0 => format!("{} d", hours / 24),
            (hours, 0) => format!("{hours} h"),
            _ => format!("{} min", window.minutes),
        };
        format!("{name}, {length} until {}", minute(window.resets))
    }

    pub(super) fn answer<'t>(&'t self, prices_of: &'t str) -> TotalRow<'t> {
        TotalRow {
            name: self.name.as_deref(),
            window: self.window.as_ref().map(|window| WindowAnswer {
                minutes: window.minutes,
                begins: when::rfc3339(window.begins()),
                resets: when::rfc3339(window.resets),
                used: window.used,
            }),
            sessions: self.sessions,
            requests: self.figures.requests,
            reported: self.figures.reported,
            usage: self.figures.reported_usage(),
            usage_partial: self.figures.is_usage_partial,
            cost: self.figures.cost,
            cost_partial: self.figures.is_cost_partial,
            prices_of,
        }
    }
}

answer! {
    /// The sum of a part of all answers.
    pub(crate) struct TotalRow<'t> {
        /// the day (`2026-11-27`), the week (`2026-W48`), the folder of the project, the model, the
        /// format, or the tools with `, ` between them; of a window the format; null for the answers of
        /// which the source does not say it (of a day: no time), or that called no tool
        name: Option<&'t str>,
        /// with `--by window`: the window that the answers fall into; left out where none is known
        window?: WindowAnswer,
        /// how many files the answers stand in
        sessions: u64,
        /// the requests that are listed
        requests: u64,
        /// the answers whose usage was reported
        reported: u64,
        /// the sum of it; null where none was
        usage: Option<&'t afterimage::transcript::Usage>,
        /// whether an answered request reports no input or no output
        usage_partial: bool,
        /// what the answers with a price cost; null where none has one
        cost: Option<Money>,
        /// whether some answers have no price
        cost_partial: bool,
        /// the table of prices, as in a row of a session
        prices_of: &'t str,
    }

    /// A window of a rate limit.
    pub(crate) struct WindowAnswer {
        /// how long it is
        minutes: u64,
        /// when it begins, in RFC 3339
        begins: Option<String>,
        /// when it ends
        resets: Option<String>,
        /// the most that a file says was used of it, in percent
        used: Option<u64>,
    }
}
