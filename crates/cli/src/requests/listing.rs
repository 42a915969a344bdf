//! The requests of a recording as a table or as JSON.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    io::Write,
    sync::Arc,
};

use afterimage::{
    bill::Prices,
    export::Divergence,
    hud::Owner,
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
    request::{
        Exchange, ExchangeOutcome, Lack, Recording, ReportedExchange, RequestDiff, RequestTokens,
    },
    veil::SubagentStart,
};
use indexmap::IndexSet;

use super::{breaks_json, counted::RequestCounts, follow::Printed, provenance_note};
use crate::{
    args,
    diff::rules,
    failure::Outcome,
    input::Source,
    json::{object, or_null},
    labels::{Label, RecordingLabels},
    moment::clock,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{grouped, printable, shortened},
    usage::{self, Reported},
    view,
};

/// From how many columns on a table has room for all figures.
const WIDE: usize = 110;

/// The requests of a source that are asked for, and how they are shown.
pub(super) struct Listing<'l> {
    pub(super) args: &'l args::Requests,
    pub(super) source: &'l Source,
    pub(super) recording: &'l Recording,
    counts: RequestCounts,
    pub(super) prices: &'l Prices,
    /// Those that were printed already, where a file is followed.
    printed: Option<&'l Printed>,
    /// The numbers of those that are not to be printed yet.
    pub(super) held: HashSet<usize>,
    /// The columns of the table that was printed.
    pub(super) shape: Cell<Option<Shape>>,
    labels: RecordingLabels<'l>,
}

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

impl<'l> Listing<'l> {
    pub(super) fn new(
        args: &'l args::Requests,
        source: &'l Source,
        (recording, counts): (&'l Recording, RequestCounts),
        prices: &'l Prices,
        printed: Option<&'l Printed>,
    ) -> Self {
        let labels = RecordingLabels::new(recording);
        let (held, shape) = Default::default();
        Self { args, source, recording, counts, prices, printed, held, shape, labels }
    }

    /// Where a recorded request stands in the file, or else the answer of one that was worked out.
    pub(super) fn label(&self, exchange: &Exchange) -> Label {
        let of = |frame| self.labels.of(&exchange.session, frame, None);
        let label = exchange.answer().map_or_else(Label::default, of);
        match exchange.line {
            // The frames of a conversation stand where its last request does.
            Some(line) => Label::of_line(line),
            None => label,
        }
    }

    /// What is reported of the exchanges that are asked for, and of answers that are in no list.
    fn reported(&self) -> Reported<'_> {
        let wanted = self.args.input.session.as_deref();
        let reported = self.recording.reported();
        let of = reported.filter(|of| wanted.is_none_or(|wanted| wanted == &*of.session));
        Reported::of(&of.collect::<Vec<_>>(), self.prices)
    }

    /// The exchanges that are asked for.
    pub(super) fn exchanges(&self) -> Outcome<Vec<&Exchange>> {
        let all = self.recording.exchanges();
        let ready = || all.iter().filter(|exchange| !self.held.contains(&exchange.number));
        let Some(wanted) = self.args.input.session.as_deref() else {
            return Ok(ready().collect());
        };
        let found: Vec<_> = ready().filter(|exchange| &*exchange.session == wanted).collect();
        if found.is_empty() {
            let mut names: Vec<&str> = all.iter().map(|exchange| &*exchange.session).collect();
            names.dedup();
            names.truncate(8);
            let failure =
                self.source.fail(format!("there is no session {wanted:?} with a request"));
            return Err(if names.is_empty() {
                failure.into()
            } else {
                failure.hint(format!("the sessions are {}", names.join(", "))).into()
            });
        }
        Ok(found)
    }

    /// Whether a request was printed already; `seen` counts those of each session.
    fn is_printed(&self, exchange: &Exchange, seen: &mut HashMap<Arc<str>, usize>) -> bool {
        self.printed.is_some_and(|printed| printed.has(exchange, seen))
    }

    fn differences(&self, exchange: &Exchange) -> Outcome<Option<RequestDiff>> {
        let found = self.recording.compare(exchange.number, rules(self.args.cache));
        found.map_err(|error| self.source.refuse(error))
    }

    /// The tokens of a request, and how many more they are than those of the one before it.
    fn tokens(
        &self,
        exchange: &Exchange,
        totals: &mut HashMap<Arc<str>, u64>,
    ) -> Outcome<(RequestTokens, i128)> {
        let tokens = self.recording.tokens(exchange.number);
        let tokens = tokens.map_err(|error| self.source.refuse(error))?;
        let before = totals.insert(Arc::clone(&exchange.session), tokens.total()).unwrap_or(0);
        Ok((tokens, i128::from(tokens.total()) - i128::from(before)))
    }

    pub(super) fn json(&self, out: &mut Output) -> Outcome {
        let (mut totals, mut seen) = (HashMap::new(), HashMap::new());
        for exchange in self.exchanges()? {
            if self.is_printed(exchange, &mut seen) {
                self.tokens(exchange, &mut totals)?;
                continue;
            }
            let label = self.label(exchange);
            let mut line = object! {
                "request": exchange.number as u64,
                "session": &*exchange.session,
                "api": exchange.api.as_str(),
                "provenance": exchange.provenance.as_str(),
                "lacks": exchange.provenance.lacks().iter().map(|lack| lack.as_str()).collect::<Value>(),
                "frame": or_null(exchange.answer().map(FrameSeq::get)),
                "lastFrame": or_null(exchange.last_frame.map(FrameSeq::get)),
                "time": or_null(exchange.time.as_deref()),
                "line": or_null(label.line()),
                "uuid": or_null(label.uuid()),
                "calls": self.calls_json(exchange),
                "durationMs": or_null(exchange.duration_ms),
                "model": or_null(exchange.model.as_deref()),
                "outcome": exchange.outcome.as_str(),
                "retry": exchange.is_retry,
            };
            if let ExchangeOutcome::Failed { reason } = &exchange.outcome {
                line.put("reason", reason.as_str());
            }
            let (tokens, growth) = self.tokens(exchange, &mut totals)?;
            line.put(
                "tokens",
                object! { "tools": tokens.tools, "system": tokens.system, "messages": tokens.messages },
            );
            let of = (self.recording, self.source);
            line.put("counted", self.counts.counted(of, exchange, &tokens)?);
            line.put("growth", i64::try_from(growth).unwrap_or(i64::MAX));
            let differs = self.differences(exchange)?;
            line.put(
                "differs",
                or_null(differs.as_ref().map(|diff| self.difference_json(exchange, diff))),
            );
            line.put(
                "usage",
                or_null(exchange.usage.as_ref().map(afterimage::transcript::Usage::to_json)),
            );
            let price = self.prices.cost(&ReportedExchange::from(exchange));
            line.put("price", or_null(price.ok()));
            if let Some(start) = self.recording.started_by(&exchange.session) {
                line.put(
                    "startedBy",
                    object! {
                        "session": start.session.as_str(),
                        "call": start.call.as_str(),
                        "frame": or_null(start.frame.map(FrameSeq::get)),
                    },
                );
            }
            if self.source.is_one_of_several {
                line.shift_insert(0, "file".to_owned(), self.source.name().into());
            }
            out.json(line)?;
        }
        let reported = self.reported();
        // A file that is followed has no end.
        if reported.sums.total.with_usage == 0 || self.printed.is_some() {
            return Ok(());
        }
        let mut sums = Object::new();
        reported.put(&mut sums);
        if self.source.is_one_of_several {
            sums.shift_insert(0, "file".to_owned(), self.source.name().into());
        }
        out.json(sums)
    }

    pub(super) fn table(&self, out: &mut Output) -> Outcome {
        let exchanges = self.exchanges()?;
        let goes_on = self.printed.is_some_and(|printed| !printed.is_none());
        if !goes_on {
            view::rule(out, &self.source.name(), style::HEADING, self.source.format().name())?;
        }
        let Some(first) = exchanges.first() else {
            return Ok(writeln!(out, " There is no request to a model in it.")?);
        };
        if let Some(note) = provenance_note(&first.provenance).filter(|_| !goes_on) {
            let dim = out.paint.style(style::DIM);
            writeln!(out, " {dim}{note}{dim:#}")?;
        }
        let models: IndexSet<&str> =
            exchanges.iter().filter_map(|exchange| exchange.model.as_deref()).collect();
        if !models.is_empty() && !goes_on {
            let models: Vec<&str> = models.into_iter().collect();
            let line = format!("model {}", models.join(", "));
            writeln!(out, " {}", shortened(&printable(&line), out.width.saturating_sub(1)))?;
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
        let retry = match exchange.outcome {
            ExchangeOutcome::Superseded => "superseded; ",
            _ if exchange.is_retry => "a retry; ",
            _ => "",
        };
        if let ExchangeOutcome::Failed { reason } = &exchange.outcome {
            let reason = reason.strip_prefix("failed: ").unwrap_or(reason);
            return Ok((format!("{retry}failed: {reason}"), style::REMOVED));
        }
        let Some(diff) = self.differences(exchange)? else {
            return Ok((format!("{retry}first{}", self.calls(exchange)), style::DIM));
        };
        Ok(match &diff.prefix.divergence {
            None if diff.parameters.is_empty() && diff.breaks.is_empty() => {
                (format!("{retry}+{}", self.calls(exchange)), style::DIM)
            }
            None => {
                let parameters = diff.parameters.iter().map(|change| change.name.as_str());
                let names: IndexSet<&str> =
                    parameters.chain(diff.breaks.iter().map(|of| of.cause.as_str())).collect();
                let names: Vec<&str> = names.into_iter().collect();
                let again = diff.prefix.unchanged.saturating_sub(diff.prefix.cached);
                let (billed, look) = if diff.breaks.is_empty() {
                    (String::new(), style::DIM)
                } else {
                    (format!("; {} billed again", grouped(again)), style::ADDED)
                };
                (format!("{retry}+ other {}{billed}", names.join(", ")), look)
            }
            Some(divergence) => {
                let again = diff.prefix.tokens.saturating_sub(diff.prefix.cached);
                let place = self.place(exchange, divergence, &diff);
                (format!("{retry}{place}; {} billed again", grouped(again)), style::ADDED)
            }
        })
    }

    /// The tools that the answer calls.
    fn called(&self, exchange: &Exchange) -> Vec<String> {
        let frames = exchange.response.frames.iter();
        frames.flat_map(|frame| self.labels.calls(&exchange.session, *frame)).collect()
    }

    pub(super) fn calls_json(&self, exchange: &Exchange) -> Value {
        self.called(exchange).into_iter().map(Value::from).collect()
    }

    /// The tools that the answer calls, in a few words.
    fn calls(&self, exchange: &Exchange) -> String {
        let tools = self.called(exchange);
        if tools.is_empty() { String::new() } else { format!("  → {}", tools.join(", ")) }
    }

    /// Where two requests first differ, in a few words.
    pub(super) fn place(
        &self,
        exchange: &Exchange,
        divergence: &Divergence,
        diff: &RequestDiff,
    ) -> String {
        let owner = divergence.owner.as_ref().or(divergence.previous_owner.as_ref());
        let label = owner.and_then(|owner| self.labels.of_owner(&exchange.session, owner));
        let named = |frame: &FrameSeq| match label.as_ref().map(Label::words) {
            Some(words) if !words.is_empty() => format!("frame {frame}, {words}"),
            _ => format!("frame {frame}"),
        };
        match owner {
            Some(Owner::Recorded { facet, frame }) => {
                let name = facet.as_str();
                let within = name.strip_prefix("tool:").and_then(|tool| {
                    let change = diff.tools.iter().find(|change| change.name == tool)?;
                    (!change.path.elements().is_empty()).then(|| change.path.to_string())
                });
                match (within, frame) {
                    (Some(path), _) => format!("{name} at {path}"),
                    (None, Some(frame)) => format!("{name}, {}", named(frame)),
                    (None, None) => name.to_owned(),
                }
            }
            Some(Owner::Chunk { frame, facet_ids, .. }) => match facet_ids.first() {
                Some(facet) => format!("{facet}, {}", named(frame)),
                None => named(frame),
            },
            Some(Owner::Block { block, .. }) => format!("block {block}"),
            _ => divergence.path.to_string(),
        }
    }

    /// What differs from the request before, as JSON.
    pub(super) fn difference_json(&self, exchange: &Exchange, diff: &RequestDiff) -> Object {
        let divergence = diff.prefix.divergence.as_ref().map(|divergence| {
            let owner = divergence.owner.as_ref().or(divergence.previous_owner.as_ref());
            let mut json = object! {
                "path": divergence.path.to_string(),
                "byte": or_null(divergence.offset.map(|offset| offset as u64)),
                "owner": or_null(owner.map(Owner::to_json)),
            };
            let label = owner.and_then(|owner| self.labels.of_owner(&exchange.session, owner));
            if let Some(label) = label {
                label.put(&mut json);
            }
            json
        });
        let again = match diff.prefix.divergence {
            Some(_) => diff.prefix.tokens.saturating_sub(diff.prefix.cached),
            None => diff.prefix.unchanged.saturating_sub(diff.prefix.cached),
        };
        object! {
            "at": or_null(divergence),
            "unchanged": diff.prefix.unchanged,
            "cached": diff.prefix.cached,
            "billedAgain": again,
            "tools": diff.tools.iter().map(|tool| {
                Value::from(object! { "name": tool.name.as_str(), "path": tool.path.to_string() })
            }).collect::<Value>(),
            "parameters": diff.parameters.iter().map(|change| Value::from(change.name.as_str())).collect::<Value>(),
            "breaks": breaks_json(&diff.breaks),
        }
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
