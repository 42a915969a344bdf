//! The requests of a recording as a table.

use std::{collections::HashMap, io::Write};

use afterimage::{
    request::{Exchange, ExchangeOutcome, Lack, Provenance},
    transcript::{TranscriptFormat, Usage},
    veil::SubagentStart,
};
use indexmap::{IndexMap, IndexSet};

use super::listing::Listing;
use crate::{
    failure::Outcome,
    moment::clock,
    output::Output,
    recorded::provenance_note,
    style,
    table::{Column, Table, plain},
    text::{MOST_REASON, counted, grouped, printable, shortened, truncated},
    usage, view,
};

/// From how many columns on a table has room for all figures.
const WIDE: usize = 110;
/// How many spans of requests a note names.
const MOST_SPANS: usize = 4;

/// What a table of requests has columns for.
#[expect(clippy::struct_excessive_bools, reason = "each is a column that may be there")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    times: bool,
    lines: bool,
    tools: bool,
    counts: bool,
    usage: bool,
}

impl Shape {
    /// What no request has takes no room.
    fn of(listing: &Listing<'_>, exchanges: &[&Exchange], out: &Output) -> Self {
        let lacks_tools = |of: &&Exchange| of.provenance.lacks().contains(&Lack::Tools);
        let usage = exchanges.iter().any(|exchange| exchange.usage.is_some());
        Self {
            times: exchanges.iter().any(|exchange| exchange.time.is_some()),
            lines: exchanges.iter().any(|exchange| listing.label(exchange).line().is_some()),
            tools: !exchanges.iter().all(lacks_tools),
            // Beside what is reported, a narrow terminal has no room for counts of ours.
            counts: !usage || out.width >= WIDE,
            usage,
        }
    }

    fn table(self) -> Table {
        let mut columns = vec![Column::number("#", 4), Column::number("FRAME", 5)];
        let mut add = |is_there: bool, column: Column| columns.extend(is_there.then_some(column));
        add(self.times, Column::text("TIME", 8));
        add(self.lines, Column::number("LINE", 6));
        add(self.tools, Column::number("TOOLS", 6));
        add(self.counts, Column::number("SYSTEM", 6));
        add(self.counts, Column::number("MESSAGES", 8));
        add(self.counts, Column::number("GROWTH", 7));
        // As reported: never counts of ours.
        columns.extend(self.usage.then(usage::columns).into_iter().flatten());
        columns.push(Column::text("THEN", 0));
        Table::new(columns)
    }
}

/// What is said of where requests come from, each with the requests of which it is said where
/// that is not all.
fn provenance_notes(format: TranscriptFormat, exchanges: &[&Exchange]) -> Vec<String> {
    let mut notes: IndexMap<Option<String>, Vec<usize>> = IndexMap::new();
    for exchange in exchanges {
        // Each of these says it of itself.
        let is_resolved = matches!(exchange.provenance, Provenance::Resolved { .. });
        let note = provenance_note(format, &exchange.provenance).filter(|_| !is_resolved);
        notes.entry(note).or_default().push(exchange.number);
    }
    let is_one = notes.len() == 1;
    let said = notes.iter().filter_map(|(note, numbers)| {
        let note = note.as_ref()?;
        Some(if is_one { note.clone() } else { format!("{}: {note}", spans(numbers)) })
    });
    said.collect()
}

/// Numbers of requests, those that follow each other as a span: `requests 1–3, 5`. Many spans are a count.
fn spans(numbers: &[usize]) -> String {
    let spans = numbers.chunk_by(|before, after| before + 1 == *after);
    let spans = spans.filter_map(|span| match span {
        [only] => Some(only.to_string()),
        [first, .., last] => Some(format!("{first}–{last}")),
        [] => None,
    });
    let spans: Vec<String> = spans.collect();
    match numbers {
        [_] => format!("request {}", spans.concat()),
        _ if spans.len() > MOST_SPANS => counted(numbers.len() as u64, "request"),
        _ => format!("requests {}", spans.join(", ")),
    }
}

impl Listing<'_> {
    pub(super) fn table(&self, out: &mut Output) -> Outcome {
        let exchanges = self.exchanges()?;
        let goes_on = self.printed.is_some_and(|printed| !printed.is_none());
        if !goes_on {
            view::rule(out, &self.source.name(), style::HEADING, self.source.format().name())?;
        }
        if exchanges.is_empty() {
            let has_unread = !self.source.report().unread_requests.is_empty();
            let what = if has_unread { " that can be read" } else { "" };
            return Ok(writeln!(out, " There is no request to a model in it{what}.")?);
        }
        if !goes_on {
            provenance_notes(self.source.format(), &exchanges)
                .iter()
                .try_for_each(|note| view::note(out, 1, note))?;
        }
        let models: IndexSet<&str> =
            exchanges.iter().filter_map(|exchange| exchange.model.as_deref()).collect();
        if !models.is_empty() && !goes_on {
            let models: Vec<&str> = models.into_iter().collect();
            let line = format!("model {}", models.join(", "));
            writeln!(out, " {}", shortened(&printable(&line), out.room(1)))?;
        }
        let shape = Shape::of(self, &exchanges, out);
        let table = shape.table();
        self.shape.set(Some(shape));
        // What comes later may have what nothing had before.
        if !goes_on || self.printed.is_some_and(|printed| printed.shape != Some(shape)) {
            table.head(out)?;
        }
        let mut session = self.printed.and_then(|printed| printed.last.as_ref());
        let (mut totals, mut seen) = (HashMap::new(), HashMap::new());
        for exchange in exchanges {
            if self.is_printed(exchange, &mut seen) {
                self.tokens(exchange, &mut totals)?;
                continue;
            }
            let start = self.recording.started_by(&exchange.session);
            let is_other = session.is_some_and(|session| *session != exchange.session);
            if is_other || (session.is_none() && start.is_some()) {
                view::rule(out, &format!("session {}", exchange.session), style::HEADING, "")?;
            }
            if session != Some(&exchange.session)
                && let Some(start) = start
            {
                let dim = out.paint.style(style::DIM);
                writeln!(out, " {dim}{}{dim:#}", printable(&started(start)))?;
            }
            session = Some(&exchange.session);
            let (tokens, growth) = self.tokens(exchange, &mut totals)?;
            let sign = if growth < 0 { "-" } else { "+" };
            let growth = u64::try_from(growth.unsigned_abs()).unwrap_or(u64::MAX);
            let (then, look) = self.then(exchange)?;
            let answer =
                exchange.answer().map_or_else(|| "–".to_owned(), |frame| frame.to_string());
            let time = exchange.time.as_deref().map_or("–".into(), clock);
            let mut cells = vec![plain(exchange.number.to_string()), plain(answer)];
            cells.extend(shape.times.then(|| plain(time)));
            cells.extend(shape.lines.then(|| {
                let line = self.label(exchange).line();
                plain(line.map_or_else(|| "–".to_owned(), |line| line.to_string()))
            }));
            cells.extend(shape.tools.then(|| plain(grouped(tokens.tools))));
            cells.extend(shape.counts.then(|| plain(grouped(tokens.system))));
            cells.extend(shape.counts.then(|| plain(grouped(tokens.messages))));
            cells.extend(shape.counts.then(|| plain(format!("{sign}{}", grouped(growth)))));
            if shape.usage {
                cells.extend(usage::cells(exchange.usage.as_ref()));
            }
            cells.push((then, look));
            table.row(out, cells)?;
            out.flush_if_terminal()?;
        }
        // A file that is followed has no end.
        if self.printed.is_some() {
            return Ok(());
        }
        self.reported().block(out)
    }

    /// Why a request failed, or where it differs from the one before.
    fn then(&self, exchange: &Exchange) -> Outcome<(String, anstyle::Style)> {
        let retry = match exchange.outcome() {
            ExchangeOutcome::Superseded => "superseded; ",
            _ if exchange.is_retry => "a retry; ",
            _ if exchange.is_warm_up() => "warm-up; ",
            _ if exchange.copied.is_some() => "copied; ",
            _ => "",
        };
        let unread = exchange.unread.as_ref().map(|reason| format!("request unread: {reason}; "));
        let unread = unread.unwrap_or_default();
        let retry = &format!("{retry}{unread}{}", resolved(exchange));
        if let Some(reason) = &exchange.failure {
            let reason = reason.strip_prefix("failed: ").unwrap_or(reason);
            let reason = truncated(reason, MOST_REASON);
            return Ok((format!("{retry}failed: {reason}"), style::REMOVED));
        }
        if let Some(reason) = &exchange.cut {
            return Ok((format!("{retry}cut: {reason}"), style::REMOVED));
        }
        if exchange.unread.is_some() {
            return Ok((format!("{retry}answered"), style::DIM));
        }
        let Some(diff) = self.differences(exchange)? else {
            return Ok((format!("{retry}first{}", self.calls(exchange)), style::DIM));
        };
        // Where the provider reports what its cache served, that decides, and no count of ours.
        let lost = self.broken.lost(exchange);
        let billed = |counted: u64| match (lost, counted) {
            (Some(0), _) => "; the cache served it".to_owned(),
            (Some(lost), _) => format!("; {} billed again", grouped(lost)),
            (None, counted) if counted == 0 || self.nothing_was_cached(exchange) => String::new(),
            (None, counted) => format!("; ~{} billed again", grouped(counted)),
        };
        let look = if lost == Some(0) { style::DIM } else { style::ADDED };
        if let Some(divergence) = &diff.prefix.divergence {
            let place = self.place(exchange, divergence, &diff);
            return Ok((format!("{retry}{place}{}", billed(diff.prefix.billed_again())), look));
        }
        let calls = self.calls(exchange);
        if diff.parameters.is_empty() && diff.breaks.is_empty() {
            let broken = self.broken.get(exchange.number);
            let Some(cause) = broken.and_then(|broken| broken.cause.words()) else {
                return Ok((format!("{retry}+{calls}"), style::DIM));
            };
            let again = grouped(lost.unwrap_or(0));
            return Ok((format!("{retry}+; {again} billed again: {cause}{calls}"), style::ADDED));
        }
        let parameters = diff.parameters.iter().map(|change| change.name.as_str());
        let names: IndexSet<&str> =
            parameters.chain(diff.breaks.iter().map(|of| of.cause.as_str())).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let (billed, look) = if diff.breaks.is_empty() {
            (String::new(), style::DIM)
        } else {
            (billed(diff.prefix.billed_again()), look)
        };
        Ok((format!("{retry}+ other {}{billed}", names.join(", ")), look))
    }

    /// Whether the reports of a request and of the one before say that there was nothing in the cache.
    fn nothing_was_cached(&self, exchange: &Exchange) -> bool {
        let previous = exchange.previous.and_then(|number| self.recording.exchange(number));
        let figures = |usage: &Usage| [usage.cache_read, usage.cache_write];
        let of_both = [Some(exchange), previous].map(|of| of?.usage.as_ref().map(figures));
        let is_none =
            |[read, written]: [Option<u64>; 2]| read == Some(0) && written.unwrap_or(0) == 0;
        of_both.into_iter().all(|of| of.is_some_and(is_none))
    }

    /// The tools that the answer calls, in a few words.
    fn calls(&self, exchange: &Exchange) -> String {
        let tools = self.called(exchange);
        if tools.is_empty() { String::new() } else { format!("  → {}", tools.join(", ")) }
    }
}

/// That a request is joined with what it goes on from, in a few words.
fn resolved(exchange: &Exchange) -> String {
    match &exchange.provenance {
        Provenance::Resolved { wrong: Some(wrong), .. } => {
            format!("not joined, {}; ", printable(wrong))
        }
        Provenance::Resolved { missing: None, .. } => "resolved; ".to_owned(),
        Provenance::Resolved { messages, missing: Some(id), .. } => {
            let what = if *messages == 0 { "alone" } else { "resolved" };
            format!("{what}, without what leads to {}; ", printable(id))
        }
        _ => String::new(),
    }
}

/// What started a subagent, in a few words.
fn started(start: &SubagentStart) -> String {
    let SubagentStart { session, call, .. } = start;
    match start.frame {
        Some(frame) => format!("started by call {call} in frame {frame} of session {session}"),
        None => format!("started by call {call} of session {session}"),
    }
}
