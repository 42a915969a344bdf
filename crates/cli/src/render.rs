//! `afterimage render`: what the model reads.

pub(crate) mod args;
mod raw;

use std::{collections::HashSet, io::Write, sync::Arc};

use afterimage::{
    hud::RenderRequest,
    id::{FrameSeq, Millis, Role},
    json::{self, Value},
    record,
    request::{Exchange, Lack, Request},
    session::Viewer,
    snapshot::{ChunkRef, FrameSnapshot, PartRef, Substitution, SubstitutionKind},
    veil::{Frame, History},
    window::ContextInForce,
};
use indexmap::{IndexMap, IndexSet};

use self::args::RenderAs;
use self::raw::Side;
use crate::{
    answer::answer,
    args::Input,
    failure::{Failure, Outcome, Stop},
    input::{self, Source},
    json::object,
    lens::{Counting, Lens, Lenses, uncounted},
    moment::moment,
    output::{Output, note},
    pages::{Page, Pages},
    recorded, style,
    text::{MOST_REASON, counted, truncated},
    view,
    wanted::{FrameFilter, Place},
};

pub(crate) fn run(args: &args::Render) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    match (args.request, args.response) {
        (Some(number), _) if args.raw => return raw::print(args, number, Side::Request, &mut out),
        (_, Some(number)) if args.raw => return raw::print(args, number, Side::Response, &mut out),
        (Some(number), _) => return request(args, number, &mut out),
        (_, Some(number)) => return response(args, number, &mut out),
        _ => {}
    }
    let mut wanted = FrameFilter::new(args.from, args.to)?;
    let default = if args.json { RenderAs::Messages } else { RenderAs::Text };
    let what = args.what.unwrap_or(default);
    let streams = what != RenderAs::Messages;
    let counting = match what {
        RenderAs::Text => Counting::OnDemand,
        RenderAs::Messages | RenderAs::Snapshots => Counting::Always,
    };
    let mut lenses = Lenses::new(&args.rendering, counting);
    let is_view = out.paint.is_on() && !args.json;
    let mut text = Text { is_view, is_whole: args.whole, ..Text::default() };
    let outcome = input::each(&args.input, !(streams && out.is_terminal), |source| {
        wanted.begin();
        let lens = lenses.of(source)?;
        match what {
            RenderAs::Text => text.file(source, &lens, &mut wanted, &mut out)?,
            RenderAs::Snapshots => snapshots(source, &lens, &mut wanted, &mut out)?,
            RenderAs::Messages => {
                let lacks = messages(source, &lens, &mut wanted, args.whole, &mut out)?;
                let note = lacks.map(|lacks| recorded::context_note(source.format(), &lacks));
                text.note = text.note.take().or(note);
            }
        }
        out.flush()?;
        wanted.check(source)
    });
    if text.wrote {
        out.write_all(b"\n")?;
        out.flush()?;
    }
    if let Some(text) = text.note {
        note(&text);
    }
    outcome
}

/// Prints a request: as it was sent, or joined with what it goes on from.
fn request(args: &args::Render, number: usize, out: &mut Output) -> Outcome {
    recorded::of_one_file(&args.input)?;
    if let Some(request) = alone(args, number)? {
        return print_request(args, &request, out);
    }
    input::each(&args.input.of_all_sessions(), true, |source| {
        let recording =
            recorded::with(source, number, args.input.session.as_deref(), &uncounted())?;
        recorded::known(source, &recording, number)?;
        let request = if args.as_sent { recording.sent(number) } else { recording.request(number) };
        let request = request.map_err(|error| source.refuse(error))?;
        if let Some(note) = recorded::provenance_note(source.format(), request.provenance()) {
            source.note(&format!("request {number} is {note}"));
        }
        print_request(args, &request, out)
    })
}

/// A request of a recording that can be read without the others; `None` where it cannot.
fn alone(args: &args::Render, number: usize) -> Outcome<Option<Request>> {
    let Input { files, last, input_format, session, redaction, .. } = &args.input;
    let is_chosen =
        *last || args.input.branches.is_asked() || input_format.is_some() || session.is_some();
    match files.as_slice() {
        [folder] if !redaction.is_on() && !is_chosen && record::is_recording(folder) => {
            Ok(Request::of_recording(folder, number)?)
        }
        _ => Ok(None),
    }
}

fn print_request(args: &args::Render, request: &Request, out: &mut Output) -> Outcome {
    if args.json {
        out.json(request.to_json())?;
    } else {
        out.write_all(request.body().as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Prints what came back for a request.
fn response(args: &args::Render, number: usize, out: &mut Output) -> Outcome {
    recorded::of_one_file(&args.input)?;
    input::each(&args.input.of_all_sessions(), true, |source| {
        let session = args.input.session.as_deref();
        let recording = recorded::with(source, number, session, &uncounted())?;
        let Some(exchange) = recording.exchange(number) else { return Ok(()) };
        let Exchange { session, response, cut, answer_frames, .. } = exchange;
        let history = recording.history(session);
        let said = history.map(|history| said(history, answer_frames)).unwrap_or_default();
        if let Some(cut) = cut {
            source.note(&format!("response {number} is cut, its end is missing: {cut}"));
        }
        if args.json {
            let read = |body: &str| json::read(body.as_bytes()).unwrap_or_else(|_| body.into());
            out.answer(&ResponseAnswer {
                provenance: exchange.provenance.as_str(),
                status: exchange.status,
                outcome: exchange.outcome().as_str(),
                frames: answer_frames,
                body: response.as_deref().map(read),
                cut: cut.as_deref(),
                text: (!said.is_empty()).then_some(said),
            })?;
        } else if let Some(body) = response {
            out.write_all(body.as_bytes())?;
        } else if answer_frames.is_empty() {
            return Err(no_text(source, number, exchange).into());
        } else {
            source.note(&format!("response {number} is what the frames of a transcript say"));
            writeln!(out, "{said}")?;
        }
        out.flush()?;
        // What is printed must not be taken for the whole.
        if cut.is_some() { Err(Stop::Negative) } else { Ok(()) }
    })
}

/// What is said of a response that is no text, or that did not come.
fn no_text(source: &Source, number: usize, exchange: &Exchange) -> Failure {
    let reason = exchange.failure.as_deref().or(exchange.cut.as_deref());
    let reason = reason.map(|reason| truncated(reason, MOST_REASON));
    if raw::has_response(source, exchange) {
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let failure = source.fail(format!("response {number} cannot be printed as text{why}"));
        let hint = format!("`afterimage render --response {number} --raw FILE` prints the body");
        return failure.hint(hint);
    }
    let why = reason.map(|reason| format!(": it failed, {reason}")).unwrap_or_default();
    source.fail(format!("request {number} has no response{why}"))
}

/// What frames show, a line for each part, a call with the name of its tool.
fn said(history: &History, frames: &[FrameSeq]) -> String {
    let shown: Vec<_> = frames.iter().filter_map(|frame| history.snapshot(*frame)).collect();
    let part = |chunk: ChunkRef<'_>| match chunk.part() {
        PartRef::Call { name, .. } => format!("{name} {}", chunk.content()),
        _ => chunk.content().to_owned(),
    };
    let parts = shown.iter().flat_map(|snapshot| snapshot.chunks()).map(part);
    parts.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text of messages, one after the other.
#[derive(Default)]
struct Text {
    /// Coloured and with headings, or nothing but the text.
    is_view: bool,
    /// Every frame, whether the context still holds it or not.
    is_whole: bool,
    wrote: bool,
    session: Option<Arc<str>>,
    /// What is to be said of the first of the contexts.
    note: Option<String>,
}

impl Text {
    fn file(
        &mut self,
        source: &mut Source,
        lens: &Lens,
        wanted: &mut FrameFilter,
        out: &mut Output,
    ) -> Outcome {
        self.session = None;
        if self.is_view && source.is_one_of_several {
            view::rule(out, &source.name(), style::HEADING, source.format().name())?;
        }
        let mut pages = Pages::new(source, lens)?;
        let (mut shown, mut held) = (IndexSet::new(), Vec::new());
        let is_held = pages.may_replace() && !self.is_whole;
        while let Some(page) = pages.next(wanted)? {
            if is_held {
                // What the context holds is known after the last frame.
                held.push(page);
                continue;
            }
            if let Some(message) = page.message {
                self.frame(&page, message, lens, out)?;
            }
            shown.insert(page.session);
        }
        let mut blocks = HashSet::new();
        for page in held {
            let Some(context) = pages.context(&page.session) else { continue };
            match context.block_of(page.sequence) {
                Some(block) if blocks.insert((Arc::clone(&page.session), block.from)) => {
                    self.block(block, &page.session, context, lens, out)?;
                }
                Some(_) => {}
                None => {
                    if let Some(message) = context.message_of(page.sequence) {
                        self.frame(&page, message, lens, out)?;
                    }
                }
            }
            shown.insert(page.session);
        }
        if !shown.is_empty() && self.note.is_none() {
            let format = pages.source().format();
            self.note = Some(recorded::context_note(format, &pages.lacks()?));
        }
        pages.each_tail(shown, |tail| {
            let after = || {
                let tokens = lens.total_tokens(&tail.snapshot);
                format!("after the last frame · {}", counted(tokens, "token"))
            };
            let message = if self.is_whole { pages.shown(&tail.session) } else { None };
            let message = message.unwrap_or(tail.message);
            self.message(&tail.snapshot, &tail.session, message, after, out)
        })
    }

    fn frame(&mut self, page: &Page, message: usize, lens: &Lens, out: &mut Output) -> Outcome {
        let Page { session, sequence, snapshot, .. } = page;
        let after = || {
            let tokens = lens.total_tokens(snapshot);
            format!("frame {sequence} · {}", counted(tokens, "token"))
        };
        self.message(snapshot, session, message, after, out)
    }

    /// Writes what stands in the place of frames.
    fn block(
        &mut self,
        block: &Substitution,
        session: &Arc<str>,
        context: &ContextInForce,
        lens: &Lens,
        out: &mut Output,
    ) -> Outcome {
        if block.snapshot.is_empty() {
            return Ok(());
        }
        let after = || {
            let tokens = counted(lens.total_tokens(&block.snapshot), "token");
            match block.stands {
                SubstitutionKind::Shortened => {
                    format!("frame {}, as edited · {tokens}", block.from)
                }
                _ => format!("summary of frames {}–{} · {tokens}", block.from, block.to),
            }
        };
        let message = context.messages_before(block.from);
        self.message(&block.snapshot, session, message, after, out)
    }

    fn message(
        &mut self,
        snapshot: &FrameSnapshot,
        session: &Arc<str>,
        message: usize,
        after: impl FnOnce() -> String,
        out: &mut Output,
    ) -> Outcome {
        if !self.is_view {
            let is_same = self.session.as_ref().is_some_and(|last| last == session);
            let other = (!is_same).then_some(&**session);
            out.part_texts(std::mem::replace(&mut self.wrote, true), other)?;
            self.session = Some(Arc::clone(session));
            out.write_all(snapshot.text().as_bytes())?;
            return Ok(out.flush_if_terminal()?);
        }
        if self.session.as_ref().is_some_and(|last| last != session) {
            view::rule(out, &format!("session {session}"), style::HEADING, "")?;
        }
        self.session = Some(Arc::clone(session));
        let role: Option<Role> = snapshot.chunks().find_map(|chunk| chunk.role());
        view::heading(out, message, role, &after())?;
        view::body(out, snapshot)?;
        writeln!(out)?;
        Ok(out.flush_if_terminal()?)
    }
}

fn snapshots(
    source: &mut Source,
    lens: &Lens,
    wanted: &mut FrameFilter,
    out: &mut Output,
) -> Outcome {
    let mut pages = Pages::new(source, lens)?;
    while let Some(page) = pages.next(wanted)? {
        out.answer(&SnapshotLine {
            file: pages.source().file(),
            session: &page.session,
            sequence: page.sequence,
            snapshot: &page.snapshot,
        })?;
    }
    Ok(())
}

fn messages(
    source: &mut Source,
    lens: &Lens,
    wanted: &mut FrameFilter,
    is_whole: bool,
    out: &mut Output,
) -> Outcome<Option<Vec<Lack>>> {
    let mut viewer = Viewer::new(&lens.hud, source.format());
    let mut sessions: IndexMap<Arc<str>, (History, bool)> = IndexMap::new();
    while let Some(record) = source.next() {
        let record = record?;
        let place = wanted.place(record.frame.sequence);
        if place == Place::After {
            break;
        }
        let seen = source.see(&mut viewer, record)?;
        let (history, is_wanted) = sessions.entry(seen.session).or_default();
        *is_wanted |= place == Place::Inside;
        let now = moment(&seen.frame);
        let frame = Frame { rendered_snapshot: Some(seen.snapshot), ..seen.frame };
        lens.hud.capture(history, frame, now).map_err(|error| source.refuse(error))?;
    }
    let mut lacks = None;
    for (session, (history, is_wanted)) in sessions {
        let Some(context) = viewer.context(&session).filter(|_| is_wanted) else { continue };
        lacks.get_or_insert_with(|| viewer.lacks());
        let substitutions = if is_whole { Vec::new() } else { context.blocks().to_vec() };
        // What stands in the place of frames begins with the first of them.
        let block_of = |frame: u64| context.block_of(frame.into()).filter(|_| !is_whole);
        let from = wanted.from.map(|from| block_of(from).map_or(from.into(), |block| block.from));
        let range = (wanted.from.is_some() || wanted.to.is_some())
            .then(|| from.unwrap_or_default()..=wanted.to.unwrap_or(u64::MAX).into());
        let request = RenderRequest { frames: range, substitutions, ..RenderRequest::default() };
        let context = lens.hud.render(&history, &request, Millis::default());
        let context = context.map_err(|error| source.refuse(error))?;
        let mut line = object! { "session": &*session };
        name_file(&mut line, source);
        if let afterimage::json::Value::Object(context) = context.to_json() {
            line.extend(context);
        }
        out.json(line)?;
    }
    Ok(lacks)
}

/// Where several files are read, each line says from which it is.
fn name_file(line: &mut afterimage::json::Object, source: &Source) {
    if source.is_one_of_several {
        line.shift_insert(0, "file".to_owned(), source.name().into());
    }
}

answer! {
    /// What a frame rendered to.
    pub(crate) struct SnapshotLine<'p> {
        /// the file, where several are named
        file?: String,
        /// the session of the frame
        session: &'p str,
        /// the position of the frame in its history
        sequence: FrameSeq,
        /// what the frame rendered to, or, with its own counts, the one that it brought along; without
        /// chunks where it shows nothing
        snapshot: &'p FrameSnapshot,
    }

    /// What a request was answered.
    pub(crate) struct ResponseAnswer<'r> {
        /// where its request comes from, as in `requests --json`
        provenance: &'static str,
        /// the status of HTTP, where the source has it
        status: Option<u64>,
        /// what became of its request, as in `requests --json`
        outcome: &'static str,
        /// the sequences of the answer's frames
        frames: &'r [FrameSeq],
        /// JSON, or a text where it is none; null where the source holds no body
        body: Option<Value>,
        /// why the end of the body is missing; null where it is there
        cut: Option<&'r str>,
        /// what these frames show; null where that is nothing
        text: Option<String>,
    }
}
