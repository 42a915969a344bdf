//! `afterimage requests`: the requests of a session, one a line.

mod broken;
mod follow;

use std::{collections::HashMap, io::Write, path::PathBuf, sync::Arc};

use afterimage::{
    bill::{CalibratedCount, MediaCount, Prices, exact_input, media_counts},
    export::Divergence,
    hud::Owner,
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
    request::{
        CacheBreak, Exchange, ExchangeOutcome, Lack, Provenance, Recording, ReportedExchange,
        Request, RequestDiff, RequestTokens,
    },
    tokens::{Certainty, TokenCounter},
    transcript::TranscriptFormat,
    veil::{self, History, SubagentStart},
};

use indexmap::IndexSet;

use self::follow::Printed;
use crate::{
    args,
    diff::rules,
    failure::{Failure, Outcome},
    input::{self, Source},
    json::{object, or_null},
    lens::{Counting, Lens},
    moment::moment,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, printable, shortened},
    usage::{self, Reported},
    view,
};

/// From how many columns on a table has room for all figures.
const WIDE: usize = 110;

pub(crate) fn run(args: &args::Requests) -> Outcome {
    let rendering = args::Rendering { format: None, tokenizer: args.tokenizer.clone() };
    let lens = Lens::new(&rendering, Counting::Always)?;
    let prices = usage::prices(&args.pricing)?;
    let mut out = Output::new(args.coloring.color);
    if args.follow {
        return follow::run(args, &lens, &prices, &mut out);
    }
    input::each(&args.input.of_all_sessions(), true, |source| {
        let recording = read(source, &lens.counter)?;
        let counts = RequestCounts::of(args, &lens, &recording);
        let counts = counts.map_err(|error| source.refuse(error))?;
        let (recording, prices) = (&recording, &prices);
        let listing = Listing { args, source, recording, prices, counts, printed: None };
        if args.broken {
            broken::list(&listing, &mut out)?;
        } else if args.json {
            listing.json(&mut out)?;
        } else {
            listing.table(&mut out)?;
        }
        Ok(out.flush()?)
    })
}

/// What is counted of requests as a whole, for JSON alone.
#[derive(Default)]
struct RequestCounts {
    /// The input of each, where counts are calibrated and it is known.
    calibrated: Vec<Option<CalibratedCount>>,
    /// The images and documents of each.
    media: Vec<MediaCount>,
}

impl RequestCounts {
    fn of(args: &args::Requests, lens: &Lens, recording: &Recording) -> afterimage::Result<Self> {
        if !args.json || args.broken {
            return Ok(Self::default());
        }
        let calibrated = lens.calibrated.as_ref().map(|calibrated| calibrated.counts(recording));
        let calibrated = calibrated.transpose()?.unwrap_or_default();
        Ok(Self { calibrated, media: media_counts(recording)? })
    }
}

/// Reads a source to its end, with its requests.
pub(crate) fn read(source: &mut Source, counter: &Arc<dyn TokenCounter>) -> Outcome<Recording> {
    source.keep_exchanges();
    let mut recording = Recording::new(source.format(), Arc::clone(counter));
    while let Some(record) = source.next() {
        let record = record?;
        let now = moment(&record.frame);
        recording.push(record, now).map_err(|error| source.refuse(error))?;
    }
    recording.finish(&source.take_exchanges()?);
    Ok(recording)
}

/// The request with this number of a source.
pub(crate) fn one(
    source: &mut Source,
    number: usize,
    session: Option<&str>,
    counter: &Arc<dyn TokenCounter>,
) -> Outcome<(Recording, Request)> {
    let recording = with(source, number, session, counter)?;
    let request = recording.request(number).map_err(|error| source.refuse(error))?;
    Ok((recording, request))
}

/// The recording of a source that has a request with this number.
pub(crate) fn with(
    source: &mut Source,
    number: usize,
    session: Option<&str>,
    counter: &Arc<dyn TokenCounter>,
) -> Outcome<Recording> {
    let recording = read(source, counter)?;
    let count = recording.exchanges().len() as u64;
    if number == 0 || number as u64 > count {
        let there_is = if count == 0 {
            "there is no request in it".to_owned()
        } else {
            format!(
                "there {} {} in it",
                if count == 1 { "is" } else { "are" },
                counted(count, "request")
            )
        };
        let failure = source.fail(format!("{there_is}, and none with the number {number}"));
        return Err(failure.hint("`afterimage requests FILE` lists them").into());
    }
    let of = recording.exchanges().get(number - 1).map(|exchange| &*exchange.session);
    if let (Some(wanted), Some(of)) = (session, of)
        && wanted != of
    {
        let failure = source.fail(format!("request {number} is of the session {of:?}"));
        return Err(failure
            .hint("`afterimage requests --session NAME FILE` lists those of one")
            .into());
    }
    Ok(recording)
}

/// Says that a request was worked out, and what its source lacks.
pub(crate) fn provenance_note(provenance: &Provenance) -> Option<String> {
    let Provenance::Reconstructed { lacks } = provenance else { return None };
    Some(reconstructed(lacks))
}

/// Says that a context was worked out from a transcript, and what that lacks.
pub(crate) fn reconstructed(lacks: &[Lack]) -> String {
    format!("reconstructed from a transcript, without {}", named(lacks))
}

/// Says of a context that its source holds no such text: what it was worked out from, and what that
/// lacks.
pub(crate) fn context_note(format: TranscriptFormat, lacks: &[Lack]) -> String {
    match format {
        TranscriptFormat::Wire
        | TranscriptFormat::Har
        | TranscriptFormat::CodexTrace
        | TranscriptFormat::ClaudeBodies => {
            "the context holds the messages of recorded requests alone: `--request N` has them as \
             they were sent, with their tools and parameters"
                .to_owned()
        }
        _ => format!("the context is {}", reconstructed(lacks)),
    }
}

/// As [`context_note`], of the contexts of these histories.
pub(crate) fn note_of<'h>(
    format: TranscriptFormat,
    mut histories: impl Iterator<Item = &'h History>,
) -> String {
    let has_system = histories.all(|history| {
        let frames = history.frames();
        (0..frames.len()).any(|index| frames.source(index) == Some(veil::Source::System))
    });
    context_note(format, &Lack::of_transcript(format, has_system))
}

fn named(lacks: &[Lack]) -> String {
    let names: Vec<String> = lacks.iter().map(ToString::to_string).collect();
    match names.split_last() {
        None => "all of it".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

struct Listing<'l> {
    args: &'l args::Requests,
    source: &'l Source,
    recording: &'l Recording,
    prices: &'l Prices,
    counts: RequestCounts,
    /// Those that were printed already, where a file is followed.
    printed: Option<&'l Printed>,
}

impl Listing<'_> {
    /// What is reported of the exchanges that are asked for, and of answers that are in no list.
    fn reported(&self) -> Reported<'_> {
        let wanted = self.args.input.session.as_deref();
        let reported = self.recording.reported();
        let of = reported.filter(|of| wanted.is_none_or(|wanted| wanted == &*of.session));
        Reported::of(&of.collect::<Vec<_>>(), self.prices)
    }

    /// The exchanges that are asked for.
    fn exchanges(&self) -> Outcome<Vec<&Exchange>> {
        let all = self.recording.exchanges();
        let Some(wanted) = self.args.input.session.as_deref() else {
            return Ok(all.iter().collect());
        };
        let found: Vec<_> = all.iter().filter(|exchange| &*exchange.session == wanted).collect();
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

    /// The input of a request by the best count that there is of it, and which that is.
    fn counted(&self, exchange: &Exchange, tokens: &RequestTokens) -> Outcome<Object> {
        if exchange.provenance.lacks().is_empty() {
            let request = self.recording.request(exchange.number);
            let request = request.map_err(|error| self.source.refuse(error))?;
            // A report that is another says that the recorder changed the texts, or a proxy the figure.
            let reported = exchange.usage.and_then(|usage| usage.input);
            let exact = exact_input(&request).ok();
            if let Some(input) = exact.filter(|input| reported.is_none_or(|of| of == *input)) {
                return Ok(object! { "input": input, "counts": Certainty::Exact.as_str() });
            }
        }
        let index = exchange.number.checked_sub(1);
        let count = index.and_then(|index| self.counts.calibrated.get(index)).copied().flatten();
        let media =
            index.and_then(|index| self.counts.media.get(index)).copied().unwrap_or_default();
        let mut counted = if let Some(CalibratedCount { tokens, low, high }) = count {
            object! {
                "input": tokens,
                "counts": Certainty::Calibrated.as_str(),
                "low": low,
                "high": high,
            }
        } else {
            let input = tokens.total().saturating_add(media.tokens);
            object! { "input": input, "counts": Certainty::Estimated.as_str() }
        };
        if media.parts > 0 {
            let MediaCount { parts, tokens, unknown, .. } = media;
            counted.put("media", object! { "parts": parts, "tokens": tokens, "unknown": unknown });
        }
        Ok(counted)
    }

    fn json(&self, out: &mut Output) -> Outcome {
        let (mut totals, mut seen) = (HashMap::new(), HashMap::new());
        for exchange in self.exchanges()? {
            if self.is_printed(exchange, &mut seen) {
                self.tokens(exchange, &mut totals)?;
                continue;
            }
            let mut line = object! {
                "request": exchange.number as u64,
                "session": &*exchange.session,
                "api": exchange.api.as_str(),
                "provenance": exchange.provenance.as_str(),
                "lacks": exchange.provenance.lacks().iter().map(|lack| lack.as_str()).collect::<Value>(),
                "frame": or_null(exchange.answer().map(FrameSeq::get)),
                "lastFrame": or_null(exchange.last_frame.map(FrameSeq::get)),
                "time": or_null(exchange.time.as_deref()),
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
            line.put("counted", self.counted(exchange, &tokens)?);
            line.put("growth", i64::try_from(growth).unwrap_or(i64::MAX));
            let differs = self.differences(exchange)?;
            line.put("differs", or_null(differs.as_ref().map(difference_json)));
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

    fn table(&self, out: &mut Output) -> Outcome {
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
        // What no request has takes no room.
        let has_times = exchanges.iter().any(|exchange| exchange.time.is_some());
        let lacks_tools = |exchange: &Exchange| exchange.provenance.lacks().contains(&Lack::Tools);
        let has_usage = exchanges.iter().any(|exchange| exchange.usage.is_some());
        let has_tools = !exchanges.iter().all(|exchange| lacks_tools(exchange));
        // Beside what is reported, a narrow terminal has no room for every count of ours.
        let has_counts = !has_usage || out.width >= WIDE;
        let mut columns = vec![Column::number("#", 4), Column::number("FRAME", 5)];
        columns.extend(has_times.then(|| Column::text("TIME", 8)));
        columns.extend(has_tools.then(|| Column::number("TOOLS", 6)));
        columns.extend(has_counts.then(|| Column::number("SYSTEM", 6)));
        columns.push(Column::number("MESSAGES", 8));
        columns.extend(has_counts.then(|| Column::number("GROWTH", 7)));
        // As reported: never counts of ours.
        columns.extend(has_usage.then(usage::columns).into_iter().flatten());
        columns.push(Column::text("THEN", 0));
        let table = Table::new(columns);
        if !goes_on {
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
            cells.extend(has_times.then(|| plain(time)));
            cells.extend(has_tools.then(|| plain(grouped(tokens.tools))));
            cells.extend(has_counts.then(|| plain(grouped(tokens.system))));
            cells.push(plain(grouped(tokens.messages)));
            cells.extend(has_counts.then(|| plain(format!("{sign}{}", grouped(growth)))));
            if has_usage {
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
            return Ok((format!("{retry}first"), style::DIM));
        };
        Ok(match &diff.prefix.divergence {
            None if diff.parameters.is_empty() && diff.breaks.is_empty() => {
                (format!("{retry}+"), style::DIM)
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
                let place = place(divergence, &diff);
                (format!("{retry}{place}; {} billed again", grouped(again)), style::ADDED)
            }
        })
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

/// Where two requests first differ, in a few words.
fn place(divergence: &Divergence, diff: &RequestDiff) -> String {
    let owner = divergence.owner.as_ref().or(divergence.previous_owner.as_ref());
    match owner {
        Some(Owner::Recorded { facet, frame }) => {
            let name = facet.as_str();
            let within = name.strip_prefix("tool:").and_then(|tool| {
                let change = diff.tools.iter().find(|change| change.name == tool)?;
                (!change.path.elements().is_empty()).then(|| change.path.to_string())
            });
            match (within, frame) {
                (Some(path), _) => format!("{name} at {path}"),
                (None, Some(frame)) => format!("{name}, frame {frame}"),
                (None, None) => name.to_owned(),
            }
        }
        Some(Owner::Chunk { frame, facet_ids, .. }) => match facet_ids.first() {
            Some(facet) => format!("{facet}, frame {frame}"),
            None => format!("frame {frame}"),
        },
        Some(Owner::Block { block, .. }) => format!("block {block}"),
        _ => divergence.path.to_string(),
    }
}

/// What differs from the request before, as JSON.
fn difference_json(diff: &RequestDiff) -> Object {
    let divergence = diff.prefix.divergence.as_ref().map(|divergence| {
        let owner = divergence.owner.as_ref().or(divergence.previous_owner.as_ref());
        object! {
            "path": divergence.path.to_string(),
            "byte": or_null(divergence.offset.map(|offset| offset as u64)),
            "owner": or_null(owner.map(Owner::to_json)),
        }
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

/// What takes the cache, as JSON.
pub(crate) fn breaks_json(breaks: &[CacheBreak]) -> Value {
    let json = breaks
        .iter()
        .map(|of| Value::from(object! { "cause": of.cause.as_str(), "from": of.from.as_str() }));
    json.collect()
}

/// The time of day in a time as a source writes it; all of it where it is none.
fn clock(time: &str) -> String {
    let stamp = time.parse::<jiff::Timestamp>().ok().or_else(|| {
        let millis = time.parse::<i64>().ok()?;
        jiff::Timestamp::from_millisecond(millis).ok()
    });
    stamp.map_or_else(|| time.to_owned(), |stamp| stamp.strftime("%H:%M:%S").to_string())
}

/// A failure where a request is asked for and there are several files.
pub(crate) fn of_one_file(input: &args::Input) -> Outcome {
    let is_folder = |path: &PathBuf| !input.last && input::is_folder_of_files(path);
    if input.files.len() > 1 || input.files.iter().any(is_folder) {
        return Err(Failure::new(
            "a request is asked for by its number in one file, found several files",
        )
        .into());
    }
    Ok(())
}
