//! Searching requests, their tools, system prompts, messages and parameters, and their answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io::Write,
    ops::Bound::{Excluded, Unbounded},
    rc::Rc,
    sync::Arc,
};

use afterimage::{
    export::OwnedJson,
    hud::Owner,
    id::{FacetId, FrameSeq},
    json::Path,
    request::{Exchange, PartKind, Recording, Request, RequestPart},
    text::TextRange,
    transcript::Api,
};

use super::args::Trace;
use crate::phrase::Phrase;
use crate::{
    answer::answer,
    failure::{Failure, Outcome, Stop},
    hit, input,
    labels::{Label, Place, RecordingLabels},
    lens::{Counting, Lens},
    output::{Output, note},
    recorded, style,
    table::{Column, Table, plain},
    text::grouped,
};

pub(super) fn run(
    args: &Trace,
    number: usize,
    phrase: Option<&Phrase>,
    out: &mut Output,
) -> Outcome {
    recorded::of_one_file(&args.input)?;
    let Some(phrase) = phrase else {
        return Err(Failure::new("a request is searched for --text").into());
    };
    let lens = Lens::new(&args.rendering, Counting::OnDemand)?;
    let mut hits = Vec::new();
    input::each(&args.input.of_all_sessions(), true, |source| {
        let (recording, request) =
            recorded::one(source, number, args.input.session.as_deref(), &lens.counter)?;
        if let Some(note) = recorded::provenance_note(source.format(), request.provenance()) {
            source.note(&format!("request {number} is {note}"));
        }
        let exchange = recording.exchanges().get(number.saturating_sub(1));
        let labels = RecordingLabels::new(&recording);
        let cleared = recording.cleared(number).map_err(|error| source.refuse(error))?;
        let found = search(&request, phrase).map_err(|error| source.refuse(error))?;
        let answer = exchange.map(|exchange| of_answer(&recording, exchange, phrase));
        for mut hit in found.into_iter().chain(answer.into_iter().flatten()) {
            if let (Some(exchange), Some(frame)) = (exchange, hit.frame) {
                // Of a message the facet that says it, where the frame tells which that is.
                let said = recording
                    .facet_of(exchange, frame, &hit.text)
                    .filter(|_| hit.is_recorded && hit.facet != ANSWER);
                hit.facet = said.map_or(hit.facet, |facet| facet.to_string());
                hit.label = labels.of(&exchange.session, frame, Some(&hit.facet));
            }
            hit.is_cleared = cleared.iter().any(|block| block.holds(&hit.path));
            hits.push(hit);
        }
        Ok(())
    })?;
    if args.json {
        out.answer(&hits.iter().map(RequestHit::answer).collect::<Vec<_>>())?;
    } else if !hits.is_empty() {
        let table = RequestHit::table(false);
        table.head(out)?;
        hits.iter().try_for_each(|hit| hit.print(&table, None, out))?;
    }
    out.flush()?;
    if hits.is_empty() {
        note("no hit");
        return Err(Stop::Negative);
    }
    Ok(())
}

/// The facet that a recorded answer is.
const ANSWER: &str = "answer";

/// Where a text stands in a request, or in its answer.
pub(super) struct RequestHit {
    facet: String,
    frame: Option<FrameSeq>,
    /// Whether it is a part of a request that was recorded.
    is_recorded: bool,
    label: Label,
    path: Path,
    /// The string that it stands in, and where.
    text: Rc<str>,
    range: TextRange,
    /// Whether the provider cleared it before the model read the request.
    is_cleared: bool,
}

answer! {
    /// A hit in a request, or in its answer.
    pub(crate) struct RequestHitAnswer<'h> {
        /// without `--request`, the file, where several are named
        file?: &'h str,
        /// without `--request`, the session
        session?: &'h str,
        /// without `--request`, the number of the first request that holds it; missing where a frame
        /// tells of the tool and no whole request is recorded
        request?: usize,
        /// of a message the facet of its frame that says the string, else the part:
        /// `message:INDEX`, `system`, `tool:NAME`, `parameter:NAME`; in the recorded body of an
        /// answer `answer`
        facet: &'h str,
        /// the frame that says it; in the recorded body of an answer the first of its frames
        frame: Option<FrameSeq>,
        /// the path of the string: in the request, or in the body of the answer (of a stream in what it
        /// would have been in one, else in the list of its events). Empty where the body is no JSON, or
        /// is not recorded
        path: String,
        /// the first byte of the hit in the string; of an answer whose body is not recorded, in the
        /// text of the frame
        start: usize,
        /// the byte after its last
        end: usize,
        /// false where the provider cleared it before the model read the request
        read: bool,
        ..place: Place,
        /// the tool of the call that it is or answers
        tool: Option<&'h str>,
    }
}

/// Where a phrase stands in a request.
fn search(request: &Request, phrase: &Phrase) -> afterimage::Result<Vec<RequestHit>> {
    let mut hits = places(request.in_cache_order()?.root(), &Path::default(), phrase);
    // The request in cache order holds the model already.
    let is_parameter =
        |part: &RequestPart| matches!(&part.kind, PartKind::Parameter { name } if name != "model");
    for part in request.parts().into_iter().filter(is_parameter) {
        hits.extend(places_in(request, &part, phrase));
    }
    Ok(hits)
}

/// Where a phrase stands in a part of a request.
fn places_in(request: &Request, part: &RequestPart, phrase: &Phrase) -> Vec<RequestHit> {
    let owned = request.owned_part(part);
    owned.map_or_else(Vec::new, |(at, owned)| places(&owned, &at, phrase))
}

/// Where a phrase stands in the strings of a value, which stands at this path.
fn places(owned: &OwnedJson, at: &Path, phrase: &Phrase) -> Vec<RequestHit> {
    let mut hits = Vec::new();
    for (path, text) in owned.texts() {
        let places = phrase.places(text.as_str());
        if places.is_empty() {
            continue;
        }
        let elements = at.elements().iter().chain(path.elements());
        let (path, string): (Path, Rc<str>) = (elements.cloned().collect(), text.as_str().into());
        hits.extend(places.into_iter().map(|range| {
            let (facet, frame, is_recorded) = owner(text.owner_of(range.start()));
            let (label, is_cleared) = (Label::default(), false);
            let (path, text) = (path.clone(), Rc::clone(&string));
            RequestHit { facet, frame, is_recorded, label, path, text, range, is_cleared }
        }));
    }
    hits
}

/// The facet and the frame of an owner, and whether that is a part of a recorded request.
fn owner(owner: Option<&Owner>) -> (String, Option<FrameSeq>, bool) {
    let first = |ids: &[FacetId]| ids.first().map(ToString::to_string);
    match owner {
        Some(Owner::Recorded { facet, frame }) => (facet.to_string(), *frame, true),
        Some(Owner::Chunk { frame, facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| "form".to_owned()), Some(*frame), false)
        }
        Some(Owner::Tail { facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| "form".to_owned()), None, false)
        }
        Some(Owner::Block { block, facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| format!("block {block}")), None, false)
        }
        _ => ("form".to_owned(), None, false),
    }
}

/// What was found in a frame.
pub(super) struct Shown {
    pub(super) is_agents: bool,
    /// As [`Phrase::found`] has it.
    pub(super) texts: HashSet<String>,
}

/// Finds what stands in recorded requests and answers and in no frame of their sessions: in tools,
/// parameters, system prompts, messages that a later request has no more, in what a frame does not
/// show of its message, and in answers. Each is named once, with the first request that holds it.
pub(super) fn search_all(
    listed: &[Exchange],
    shown: &BTreeMap<(Arc<str>, FrameSeq), Shown>,
    phrase: &Phrase,
    mut found: impl FnMut(&Exchange, RequestHit) -> Outcome,
) -> Outcome {
    let system = |part: &RequestPart| matches!(part.kind, PartKind::System { .. });
    let slice = |exchange: &Exchange, part: &RequestPart| {
        exchange.request.get(part.range.clone()).map(|text| (part.facet_id(), text.to_owned()))
    };
    let mut seen = HashSet::new();
    let mut read = HashSet::new();
    let mut said: HashSet<(Arc<str>, Rc<str>)> = HashSet::new();
    let answers = listed.iter().filter_map(|of| Some((Arc::clone(&of.session), of.answer()?)));
    let answers: BTreeSet<(Arc<str>, FrameSeq)> = answers.collect();
    let is_in =
        |of: &Shown, hit: &RequestHit| of.texts.contains(phrase.found(&hit.text, hit.range));
    // An answer ends where another one begins.
    let is_answered = |exchange: &Exchange, hit: &RequestHit| {
        let Some(first) = exchange.answer() else { return false };
        let first = (Arc::clone(&exchange.session), first);
        let next = answers.range((Excluded(first.clone()), Unbounded)).next();
        let frames = shown.range(first.clone()..).take_while(|((of, _), _)| *of == first.0);
        let mut frames = frames.take_while(|(frame, _)| next.is_none_or(|next| *frame < next));
        frames.any(|(_, of)| of.is_agents && is_in(of, hit))
    };
    // The frame of a system prompt is that of the last request.
    let last: HashMap<&str, &Exchange> =
        listed.iter().map(|exchange| (&*exchange.session, exchange)).collect();
    for exchange in last.into_values().filter(|exchange| exchange.system_frame.is_some()) {
        let parts = Request::recorded(exchange).parts();
        let text = parts.iter().find(|part| system(part)).and_then(|part| slice(exchange, part));
        seen.extend(text.map(|(id, text)| (Arc::clone(&exchange.session), id, text)));
    }
    for exchange in listed {
        let session = &exchange.session;
        let request = Request::recorded(exchange);
        let mut is_new = |part: &RequestPart| match part.kind {
            PartKind::Form => false,
            PartKind::Message { frame: Some(frame), .. } => {
                read.insert((Arc::clone(session), frame))
            }
            _ => slice(exchange, part).is_some_and(|(id, text)| {
                // What is said in any place of the conversation is said once.
                let id = if id.as_str().starts_with("message:") { "message".into() } else { id };
                seen.insert((Arc::clone(session), id, text))
            }),
        };
        // A body that cannot be read was told of when it was read.
        let mut hits = Vec::new();
        for part in request.parts().iter().filter(|part| is_new(part)) {
            let frame = part.frame().and_then(|frame| shown.get(&(Arc::clone(session), frame)));
            let found = places_in(&request, part, phrase).into_iter();
            hits.extend(found.filter(|hit| !frame.is_some_and(|frame| is_in(frame, hit))));
        }
        if let Some(body) = &exchange.response {
            let mut answer = in_answer(exchange.api, body, phrase);
            let text = |hit: &RequestHit| (Arc::clone(session), Rc::clone(&hit.text));
            answer.retain(|hit| !said.contains(&text(hit)) && !is_answered(exchange, hit));
            said.extend(answer.iter().map(text));
            hits.extend(answer);
        }
        for mut hit in hits.into_iter().filter(|hit| hit.is_recorded) {
            hit.frame = None;
            hit.label = exchange.line.map_or_else(Label::default, Label::of_line);
            found(exchange, hit)?;
        }
    }
    Ok(())
}

/// Where a phrase stands in the answer of an exchange: in its body, or where there is none in its
/// frames.
fn of_answer(recording: &Recording, exchange: &Exchange, phrase: &Phrase) -> Vec<RequestHit> {
    if let Some(body) = &exchange.response {
        let mut hits = in_answer(exchange.api, body, phrase);
        hits.iter_mut().for_each(|hit| hit.frame = exchange.answer());
        return hits;
    }
    let history = recording.history(&exchange.session);
    let mut hits = Vec::new();
    for frame in exchange.answer_frames.iter().filter_map(|frame| history?.get(*frame)) {
        let Some(shown) = &frame.rendered_snapshot else { continue };
        let text: Rc<str> = shown.text().into();
        hits.extend(phrase.places(&text).into_iter().map(|range| {
            let facets = shown.chunk_at(range.start()).map(|chunk| chunk.facet_ids());
            let facet = facets.and_then(|mut ids| ids.next()).unwrap_or("form").to_owned();
            let (frame, is_recorded) = (Some(frame.sequence), false);
            let (label, path, text, is_cleared) =
                (Label::default(), Path::default(), Rc::clone(&text), false);
            RequestHit { facet, frame, is_recorded, label, path, text, range, is_cleared }
        }));
    }
    hits
}

/// Where a phrase stands in the body of a response: in what a stream would have been in one, else in its
/// events.
fn in_answer(api: Api, body: &str, phrase: &Phrase) -> Vec<RequestHit> {
    let mut hits: Vec<RequestHit> = Vec::new();
    for owned in api.owned_answer(body) {
        let mut more = places(&owned, &Path::default(), phrase);
        let found = |hit: &RequestHit| phrase.found(&hit.text, hit.range).to_owned();
        let known: HashSet<String> = hits.iter().map(found).collect();
        more.retain(|hit| !known.contains(&found(hit)));
        hits.extend(more);
    }
    hits
}

impl RequestHit {
    /// The hit, of a request that is named.
    pub(super) fn answer(&self) -> RequestHitAnswer<'_> {
        RequestHitAnswer {
            file: None,
            session: None,
            request: None,
            facet: &self.facet,
            frame: self.frame,
            path: self.path.to_string(),
            start: self.range.start(),
            end: self.range.end(),
            read: !self.is_cleared,
            place: self.label.place(),
            tool: self.label.tool(),
        }
    }

    /// The table of hits, with the numbers of their requests where they are in several.
    pub(super) fn table(has_numbers: bool) -> Table {
        let [time, line] = Label::columns();
        let mut columns = Vec::from_iter(has_numbers.then(|| Column::number("REQUEST", 7)));
        columns.extend([time, line, Column::number("FRAME", 5), Column::number("BYTE", 7)]);
        columns.push(Column::text("OWNER, PATH", 0));
        Table::new(columns)
    }

    pub(super) fn print(&self, table: &Table, number: Option<usize>, out: &mut Output) -> Outcome {
        let number = number.map(|number| match number {
            0 => plain("–".to_owned()),
            number => plain(number.to_string()),
        });
        let mut cells = Vec::from_iter(number);
        cells.extend(self.label.cells());
        let rest = table.rest(out);
        let owner = self.label.after(&self.facet, rest / 2);
        cells.extend([
            plain(self.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string())),
            plain(grouped(self.range.start() as u64)),
            (format!("{owner}  {}", self.path).trim_end().to_owned(), style::HEADING),
        ]);
        table.row(out, cells)?;
        hit::quote(out, &self.text, self.range)?;
        if !self.is_cleared {
            return Ok(());
        }
        let dim = out.paint.style(style::DIM);
        let says = "not read by the model: its provider had cleared it";
        Ok(writeln!(out, "{:7}{dim}└ {says}{dim:#}", "")?)
    }
}
