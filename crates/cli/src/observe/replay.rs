//! `afterimage observe replay`: what interception would have saved of a recorded session.

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    ErrorKind,
    id::{FrameSeq, Millis},
    json::Value,
    observe::{self, Moment, Observations, Policy, Response},
    request::Lack,
    session::{ViewedFrame, Viewer},
    tokens::{Memo, TokenCounter},
    transcript::Transcript,
    veil::{Facet, OpenCalls, Source},
};
use indexmap::IndexMap;

use super::{
    args::Replay,
    counter,
    ledger::{Ledger, Size, Turn},
    responses,
};
use crate::{
    answer::answer,
    args::Input,
    failure::{Failure, Outcome, Stop},
    input,
    lens::Lens,
    moment::moment,
    output::{Output, note},
    recorded, style,
    table::{Column, Table, plain},
    text::{grouped, percent},
    view,
};

/// The most turns of which each has a row.
const ROWS: usize = 40;

pub(super) fn run(args: &Replay, policy: &Policy, as_json: bool, out: &mut Output) -> Outcome {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(counter(args.tokenizer)?));
    let (documents, files): (Vec<PathBuf>, Vec<PathBuf>) =
        args.files.iter().cloned().partition(|file| is_document(file));
    let mut replay =
        Replaying { args, policy, counter, as_json, count: 0, all: Default::default(), said: None };
    let mut outcome = Ok(());
    if !files.is_empty() {
        let (session, branches) = (args.session.clone(), args.branches.clone());
        let input = Input { session, branches, ..Input::of(files) };
        outcome = input::each(&input, !out.is_terminal, |source| replay.transcript(source, out));
    }
    for file in documents {
        match replay.document(&file, out) {
            Err(Stop::Failure(failure)) => {
                crate::output::report(&failure);
                outcome = Err(Stop::Reported);
            }
            replayed => replayed?,
        }
    }
    if !as_json && replay.count > 1 {
        view::rule(out, "all files", style::HEADING, "")?;
        total(replay.all, out)?;
    }
    out.flush()?;
    if let Some(said) = replay.said {
        note(&said);
    }
    outcome
}

/// Whether it is no transcript, and may hold the responses of tools.
fn is_document(file: &Path) -> bool {
    let is_unknown = |error: afterimage::Error| error.kind() == ErrorKind::UnknownFormat;
    file.is_file() && Transcript::open(file).is_err_and(is_unknown)
}

/// Files on their way through interception, each with a database of its own.
struct Replaying<'a> {
    args: &'a Replay,
    policy: &'a Policy,
    counter: Arc<dyn TokenCounter>,
    as_json: bool,
    count: usize,
    all: (Size, Size),
    /// What is to be said of the contexts of the first transcript.
    said: Option<String>,
}

impl Replaying<'_> {
    fn observations(&self) -> Outcome<Observations> {
        let observations = Observations::in_memory(self.policy.clone())?;
        Ok(observations.counted_by(Arc::clone(&self.counter)))
    }

    fn transcript(&mut self, source: &mut input::Source, out: &mut Output) -> Outcome {
        let observations = self.observations()?;
        let (ledgers, lacks) = of_transcript(source, self.args, &observations, &self.counter)?;
        self.said.get_or_insert_with(|| recorded::context_note(source.format(), &lacks));
        let sums = self.say(&source.name(), &ledgers, out)?;
        self.add(sums);
        Ok(())
    }

    fn document(&mut self, file: &Path, out: &mut Output) -> Outcome {
        let observations = self.observations()?;
        let ledgers = of_responses(file, self.args, &observations, &self.counter)?;
        let sums = self.say(&file.display().to_string(), &ledgers, out)?;
        self.add(sums);
        Ok(())
    }

    fn add(&mut self, (without, with): (Size, Size)) {
        self.count += 1;
        self.all = (self.all.0.plus(without), self.all.1.plus(with));
    }

    fn say(&self, file: &str, ledgers: &Ledgers<'_>, out: &mut Output) -> Outcome<(Size, Size)> {
        let mut all = (Size::default(), Size::default());
        for (session, ledger) in ledgers {
            let (without, with) = ledger.totals();
            all = (all.0.plus(without), all.1.plus(with));
            if self.as_json {
                let turns = &ledger.turns;
                out.answer(&ReplayedSession { file, session, turns, without, with })?;
            } else {
                view::rule(out, file, style::HEADING, session)?;
                page(ledger, out)?;
                total((without, with), out)?;
            }
        }
        Ok(all)
    }
}

answer! {
    /// A session with interception, and without.
    pub(crate) struct ReplayedSession<'r> {
        /// its file
        file: &'r str,
        /// its name
        session: &'r str,
        /// its turns
        turns: &'r [Turn],
        /// the sum over all turns without interception
        without: Size,
        /// the sum over all turns with interception
        with: Size,
    }
}

type Ledgers<'o> = IndexMap<Arc<str>, Ledger<'o>>;

fn of_transcript<'o>(
    source: &mut input::Source,
    args: &Replay,
    observations: &'o Observations,
    counter: &'o Arc<dyn TokenCounter>,
) -> Outcome<(Ledgers<'o>, Vec<Lack>)> {
    let rendering = crate::args::Rendering { format: None, tokenizer: Some(args.tokenizer.into()) };
    let lens = Lens::new(&rendering, crate::lens::Counting::Always)?;
    let mut viewer = Viewer::new(&lens.hud, source.format());
    let mut ledgers: Ledgers<'o> = IndexMap::new();
    let mut calls: HashMap<Arc<str>, OpenCalls<Option<Value>>> = HashMap::new();
    // What the results cost is counted by the tokenizer that is asked for, whatever an archive has.
    source.render_anew();
    while let Some(record) = source.next() {
        let record = record?;
        // The frame may itself tell that others left the context: the model answered before that.
        let before = viewer.context(&record.session).map(|context| Arc::clone(context.blocks()));
        let ViewedFrame { session, frame, request, .. } = source.see(&mut viewer, record)?;
        let now = Moment::at(moment(&frame));
        if !ledgers.contains_key(&session) {
            let ledger = Ledger::new(observations, &**counter, args.tokens, &named(&session), now)?;
            ledgers.insert(Arc::clone(&session), ledger);
        }
        let Some(ledger) = ledgers.get_mut(&session) else { continue };
        if let Some(context) = request {
            let without = Size { bytes: context.bytes, tokens: context.tokens() };
            let blocks = before.unwrap_or_default();
            let is_in_context = |frame: u64| {
                let frame = FrameSeq::new(frame);
                let after = blocks.partition_point(|block| block.from <= frame);
                let block = after.checked_sub(1).and_then(|at| blocks.get(at));
                block.is_none_or(|block| block.to < frame)
            };
            ledger.turn(frame.sequence.get(), without, is_in_context, now)?;
        }
        let (calls, at) = (calls.entry(session).or_default(), frame.sequence.get());
        if frame.added().next().is_some() {
            calls.next_frame(frame.source == Source::Agent);
        }
        for facet in frame.added() {
            if let Some(call) = facet.call() {
                calls.call(call.id, call.name, call.parameters.cloned());
            } else if facet.is_result() {
                let called = calls.answer(facet.call_id(), facet.tool_name());
                let (name, arguments) = called.map(|called| (called.name, called.call)).unzip();
                let name = facet.tool_name().map(Box::from).or(name);
                let Some(name) = name else { continue };
                let arguments = arguments.flatten();
                let text = text_of(facet);
                let response = read(&text, facet)?;
                ledger.result(at, &name, arguments.as_ref(), &response, &text, now)?;
            }
        }
    }
    Ok((ledgers, viewer.lacks()))
}

/// The name of a session as an account: it may be empty, or longer than one may be.
fn named(session: &str) -> String {
    let name: String = session.chars().take(200).collect();
    if name.is_empty() { "session".to_owned() } else { name }
}

fn text_of(facet: &Facet) -> String {
    let inside: String = facet.children.iter().map(text_of).collect();
    format!("{}{inside}", facet.content)
}

/// A recorded result. What is no JSON was text.
fn read(text: &str, facet: &Facet) -> Outcome<Response> {
    let response = match Response::text(text) {
        Ok(response) => response,
        Err(error)
            if matches!(error.kind(), observe::ErrorKind::Json | observe::ErrorKind::Utf8) =>
        {
            Response::json(Value::from(text))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(if facet.outcome().is_failure() { response.failed() } else { response })
}

/// A document of responses: each is the answer to a turn of its own.
fn of_responses<'o>(
    file: &Path,
    args: &Replay,
    observations: &'o Observations,
    counter: &'o Arc<dyn TokenCounter>,
) -> Outcome<Ledgers<'o>> {
    let bytes = input::regular(file, Response::MAX_BYTES as u64)?;
    let Some(recorded) = responses::read(&bytes) else {
        let failure = Failure::new("expected a transcript or responses by tool, found neither");
        return Err(failure.file(file).into());
    };
    let now = Moment::at(Millis::new(0));
    let mut ledger = Ledger::new(observations, &**counter, args.tokens, "responses", now)?;
    let last = recorded.len() as u64;
    let (mut so_far, is_in_context) = (Size::default(), |_| true);
    for (at, recorded) in (0..).zip(&recorded) {
        ledger.turn(at, so_far, is_in_context, now)?;
        so_far = so_far.plus(ledger.counted(&recorded.text));
        ledger.result(at, &recorded.tool, None, &recorded.response, &recorded.text, now)?;
    }
    // The first context after the last response holds it, the next one no longer.
    ledger.turn(last, so_far, is_in_context, now)?;
    ledger.turn(last + 1, so_far, is_in_context, now)?;
    Ok(IndexMap::from([("responses".into(), ledger)]))
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
        "{bold}all turns, simulated{bold:#}  {} tokens without, {} with: {} of them\n",
        grouped(without.tokens),
        grouped(with.tokens),
        percent(with.tokens, without.tokens),
    )?)
}
