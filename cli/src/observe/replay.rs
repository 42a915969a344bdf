//! `afterimage observe replay`: what interception would have saved of a recorded session.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read, Write},
    path::Path,
    sync::Arc,
};

use afterimage::{
    ErrorKind,
    id::Millis,
    json::Value,
    observe::{Moment, Observations, Policy, Response},
    tokens::{Memo, TokenCounter},
    transcript::{Record, Transcript},
    veil::{Facet, FacetChange, Frame, Source},
};
use indexmap::IndexMap;

use super::{
    args::Replay,
    counter,
    ledger::{Ledger, Size},
    responses,
};
use crate::{
    failure::{Failure, Outcome, Stop},
    json::object,
    lens::Lens,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{grouped, percent},
    view,
    viewer::{Seen, Viewer, moment},
};

/// The most turns of which each has a row.
const ROWS: usize = 40;

pub(super) fn run(args: &Replay, policy: &Policy, as_json: bool, out: &mut Output) -> Outcome {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(counter(args.tokenizer)?));
    let mut outcome = Ok(());
    let mut all = (Size::default(), Size::default());
    for file in &args.files {
        let replayed = replay(file, args, policy, &counter, as_json, out);
        match replayed {
            Ok((without, with)) => {
                all = (sum(all.0, without), sum(all.1, with));
            }
            Err(Stop::Failure(failure)) => {
                failure.report();
                outcome = Err(Stop::Reported);
            }
            Err(stop) => return Err(stop),
        }
    }
    if !as_json && args.files.len() > 1 {
        view::rule(out, "all files", style::HEADING, "")?;
        total(all, out)?;
    }
    out.flush()?;
    outcome
}

fn sum(a: Size, b: Size) -> Size {
    Size { bytes: a.bytes.saturating_add(b.bytes), tokens: a.tokens.saturating_add(b.tokens) }
}

fn replay(
    file: &Path,
    args: &Replay,
    policy: &Policy,
    counter: &Arc<dyn TokenCounter>,
    as_json: bool,
    out: &mut Output,
) -> Outcome<(Size, Size)> {
    let observations = Observations::in_memory(policy.clone())?.counted_by(Arc::clone(counter));
    let ledgers = match Transcript::open(file) {
        Ok(transcript) => of_transcript(transcript, file, args, &observations, counter)?,
        Err(error) if error.kind() == ErrorKind::UnknownFormat => {
            let Some(found) = of_responses(file, args, &observations, counter)? else {
                return Err(error.into());
            };
            found
        }
        Err(error) => return Err(error.into()),
    };
    let mut all = (Size::default(), Size::default());
    for (session, ledger) in &ledgers {
        let (without, with) = ledger.totals();
        all = (sum(all.0, without), sum(all.1, with));
        if as_json {
            out.json(object! {
                "file": file.display().to_string(),
                "session": &**session,
                "turns": ledger.turns.iter().map(|turn| turn.to_json()).collect::<Value>(),
                "without": without.to_json(),
                "with": with.to_json(),
            })?;
        } else {
            view::rule(out, &file.display().to_string(), style::HEADING, session)?;
            page(ledger, out)?;
            total((without, with), out)?;
        }
    }
    Ok(all)
}

type Ledgers<'o> = IndexMap<Arc<str>, Ledger<'o>>;

/// The calls of a session, by the provider's id.
#[derive(Default)]
struct Calls {
    by_id: HashMap<String, (String, Option<Value>)>,
    /// The last call without an id, which results without one answer.
    last: Option<(String, Option<Value>)>,
}

impl Calls {
    fn note(&mut self, facet: &Facet) {
        let Some(call) = facet.call() else { return };
        let noted = (call.name.to_owned(), call.parameters.cloned());
        match call.id {
            Some(id) => drop(self.by_id.insert(id.to_owned(), noted)),
            None => self.last = Some(noted),
        }
    }

    fn of(&self, result: &Facet) -> Option<&(String, Option<Value>)> {
        let id = result.state.as_ref()?.str_at("toolCallId");
        match id {
            Some(id) => self.by_id.get(id),
            None => self.last.as_ref(),
        }
    }
}

fn of_transcript<'o>(
    mut transcript: Transcript<BufReader<File>>,
    file: &Path,
    args: &Replay,
    observations: &'o Observations,
    counter: &'o Arc<dyn TokenCounter>,
) -> Outcome<Ledgers<'o>> {
    let rendering = crate::args::Rendering { format: None, tokenizer: Some(args.tokenizer) };
    let lens = Lens::new(&rendering, crate::lens::Counting::Always)?;
    let mut viewer = Viewer::new(&lens, transcript.format());
    let mut ledgers: Ledgers<'o> = IndexMap::new();
    let mut calls: HashMap<Arc<str>, Calls> = HashMap::new();
    for record in &mut transcript {
        let record: Record = record.map_err(|error| error.in_file(file))?;
        let Seen { session, frame, snapshot, .. } =
            viewer.see(record, None).map_err(|error| error.in_file(file))?;
        let now = Moment::at(moment(&frame));
        if !ledgers.contains_key(&session) {
            let ledger = Ledger::new(observations, &**counter, args.tokens, &named(&session), now)?;
            ledgers.insert(Arc::clone(&session), ledger);
        }
        let Some(ledger) = ledgers.get_mut(&session) else { continue };
        if frame.source == Source::Agent && !snapshot.is_empty() {
            ledger.turn(frame.sequence.get(), now)?;
        }
        ledger.add(Size {
            bytes: snapshot.text().len() as u64,
            tokens: lens.total_tokens(&snapshot),
        });
        let calls = calls.entry(session).or_default();
        for facet in added(&frame) {
            calls.note(facet);
            if facet.is_result() {
                let called = calls.of(facet).cloned();
                let name = facet.tool_name().map(str::to_owned);
                let name = name.or_else(|| called.as_ref().map(|(name, _)| name.clone()));
                let Some(name) = name else { continue };
                let text = text_of(facet);
                let arguments = called.and_then(|(_, arguments)| arguments);
                let response = read(&text, facet)?;
                ledger.result(&name, arguments.as_ref(), &response, &text, now)?;
            }
        }
    }
    Ok(ledgers)
}

/// The name of a session as an account: it may be empty, or longer than one may be.
fn named(session: &str) -> String {
    let name: String = session.chars().take(200).collect();
    if name.is_empty() { "session".to_owned() } else { name }
}

fn added(frame: &Frame) -> impl Iterator<Item = &Facet> {
    frame.ops.iter().filter_map(|op| match &op.change {
        FacetChange::Add(facet) => Some(&**facet),
        _ => None,
    })
}

fn text_of(facet: &Facet) -> String {
    let inside: String = facet.children.iter().map(text_of).collect();
    format!("{}{inside}", facet.content)
}

/// A recorded result. What is no JSON was text.
fn read(text: &str, facet: &Facet) -> Outcome<Response> {
    let response = match Response::text(text) {
        Ok(response) => response,
        Err(error) if matches!(error.kind(), ErrorKind::Json | ErrorKind::Utf8) => {
            Response::json(Value::from(text))
        }
        Err(error) => return Err(error.into()),
    };
    let is_error = facet.state.as_ref().and_then(|state| state.get("isError"));
    let is_error = is_error.and_then(Value::as_bool).unwrap_or_default();
    Ok(if is_error { response.failed() } else { response })
}

/// A document of responses: each is the answer to a turn of its own.
fn of_responses<'o>(
    file: &Path,
    args: &Replay,
    observations: &'o Observations,
    counter: &'o Arc<dyn TokenCounter>,
) -> Outcome<Option<Ledgers<'o>>> {
    let mut bytes = Vec::new();
    let opened = File::open(file)
        .and_then(|file| file.take(Response::MAX_BYTES as u64).read_to_end(&mut bytes));
    opened.map_err(|error| Failure::cannot_open(&error).file(file))?;
    let Some(recorded) = responses::read(&bytes) else { return Ok(None) };
    let now = Moment::at(Millis::new(0));
    let mut ledger = Ledger::new(observations, &**counter, args.tokens, "responses", now)?;
    let last = recorded.len() as u64;
    for (at, recorded) in recorded.iter().enumerate() {
        ledger.turn(at as u64, now)?;
        ledger.add(ledger.counted(&recorded.text));
        ledger.result(&recorded.tool, None, &recorded.response, &recorded.text, now)?;
    }
    // The first context after the last response holds it, the next one no longer.
    ledger.turn(last, now)?;
    ledger.turn(last + 1, now)?;
    Ok(Some(IndexMap::from([("responses".into(), ledger)])))
}

fn page(ledger: &Ledger<'_>, out: &mut Output) -> Outcome {
    let table = Table::new([
        Column::number("FRAME", 6),
        Column::number("RESULTS", 7),
        Column::number("KEPT", 5),
        Column::number("WITHOUT", 9),
        Column::number("WITH", 9),
        Column::number("SUMMARY", 7),
        Column::number("SAVED", 8),
    ]);
    table.head(out)?;
    let skipped = ledger.turns.len().saturating_sub(ROWS);
    if skipped > 0 {
        let dim = out.paint.style(style::DIM);
        writeln!(out, " {dim}(the first {} turns are left out){dim:#}", grouped(skipped as u64))?;
    }
    for turn in ledger.turns.iter().skip(skipped) {
        let saved = turn.without.tokens as f64 - turn.with.tokens as f64;
        let saved = match turn.without.tokens {
            0 => "–".to_owned(),
            without => format!("{:.1} %", saved * 100.0 / without as f64),
        };
        table.row(
            out,
            vec![
                plain(turn.frame.to_string()),
                plain(grouped(turn.calls)),
                plain(grouped(turn.kept)),
                plain(grouped(turn.without.tokens)),
                plain(grouped(turn.with.tokens)),
                plain(grouped(turn.summary.tokens)),
                plain(saved),
            ],
        )?;
    }
    Ok(())
}

fn total((without, with): (Size, Size), out: &mut Output) -> Outcome {
    let bold = out.paint.style(style::HEADING);
    Ok(writeln!(
        out,
        "{bold}all turns{bold:#}  {} tokens without, {} with: {} of them\n",
        grouped(without.tokens),
        grouped(with.tokens),
        percent(with.tokens, without.tokens),
    )?)
}
