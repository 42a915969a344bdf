//! `afterimage render`: what the model reads.

use std::{io::Write, sync::Arc};

use afterimage::{
    hud::RenderRequest,
    id::{Millis, Role},
    snapshot::FrameSnapshot,
    veil::History,
    window::RecordedCompactions,
};
use indexmap::{IndexMap, IndexSet};

use crate::{
    args::{self, RenderAs},
    failure::Outcome,
    input::{self, Source},
    json::object,
    lens::{Counting, Lens, Lenses},
    moment::moment,
    output::Output,
    pages::{Page, Pages},
    requests, style,
    text::counted,
    view,
    wanted::{FrameFilter, Place},
};

pub(crate) fn run(args: &args::Render) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    if let Some(number) = args.request {
        return request(args, number, &mut out);
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
    let mut text = Text { is_view: out.paint.is_on() && !args.json, ..Text::default() };
    let outcome = input::each(&args.input, !(streams && out.is_terminal), |source| {
        wanted.begin();
        let lens = lenses.of(source)?;
        match what {
            RenderAs::Text => text.file(source, &lens, &mut wanted, &mut out)?,
            RenderAs::Snapshots => snapshots(source, &lens, &mut wanted, &mut out)?,
            RenderAs::Messages => messages(source, &lens, &mut wanted, &mut out)?,
        }
        out.flush()?;
        wanted.check(source)
    });
    if text.wrote {
        out.write_all(b"\n")?;
        out.flush()?;
    }
    outcome
}

/// Prints a request as it was sent.
fn request(args: &args::Render, number: usize, out: &mut Output) -> Outcome {
    requests::of_one_file(&args.input)?;
    let lens = Lens::new(&args.rendering, Counting::OnDemand)?;
    input::each(&args.input.of_all_sessions(), true, |source| {
        let (_, request) =
            requests::one(source, number, args.input.session.as_deref(), &lens.counter)?;
        if let Some(note) = requests::provenance_note(request.provenance()) {
            source.note(&format!("request {number} is {note}"));
        }
        if args.json {
            out.json(request.to_json())?;
        } else {
            out.write_all(request.body().as_bytes())?;
        }
        Ok(out.flush()?)
    })
}

/// The text of messages, one after the other.
#[derive(Default)]
struct Text {
    /// Coloured and with headings, or nothing but the text.
    is_view: bool,
    wrote: bool,
    session: Option<Arc<str>>,
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
        let mut shown = IndexSet::new();
        while let Some(page) = pages.next(wanted)? {
            let Page { session, sequence, message, snapshot, .. } = page;
            if let Some(message) = message {
                let after = || {
                    let tokens = lens.total_tokens(&snapshot);
                    format!("frame {sequence} · {}", counted(tokens, "token"))
                };
                self.message(&snapshot, &session, message, after, out)?;
            }
            shown.insert(session);
        }
        pages.each_tail(shown, |tail| {
            let after = || {
                let tokens = lens.total_tokens(&tail.snapshot);
                format!("after the last frame · {}", counted(tokens, "token"))
            };
            self.message(&tail.snapshot, &tail.session, tail.message, after, out)
        })
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
            if self.wrote {
                out.write_all(b"\n\n")?;
            }
            out.write_all(snapshot.text().as_bytes())?;
            self.wrote = true;
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
        let mut line = object! {
            "session": &*page.session,
            "sequence": page.sequence.get(),
            "snapshot": page.snapshot.to_json(),
        };
        name_file(&mut line, pages.source());
        out.json(line)?;
    }
    Ok(())
}

fn messages(
    source: &mut Source,
    lens: &Lens,
    wanted: &mut FrameFilter,
    out: &mut Output,
) -> Outcome {
    let mut sessions: IndexMap<Arc<str>, (History, bool)> = IndexMap::new();
    while let Some(record) = source.next() {
        let record = record?;
        let place = wanted.place(record.frame.sequence);
        if place == Place::After {
            break;
        }
        let record = source.sealed(record)?;
        let (history, is_wanted) = sessions.entry(record.session).or_default();
        *is_wanted |= place == Place::Inside;
        let now = moment(&record.frame);
        lens.hud.capture(history, record.frame, now).map_err(|error| source.refuse(error))?;
    }
    let range = (wanted.from.is_some() || wanted.to.is_some())
        .then(|| wanted.from.unwrap_or(0).into()..=wanted.to.unwrap_or(u64::MAX).into());
    for (session, (history, is_wanted)) in sessions {
        if !is_wanted {
            continue;
        }
        let mut compactions = RecordedCompactions::default();
        let followed = compactions.follow(&lens.hud, &history, Millis::default());
        followed.map_err(|error| source.refuse(error))?;
        let request = RenderRequest {
            frames: range.clone(),
            substitutions: compactions.blocks().to_vec(),
            ..RenderRequest::default()
        };
        let context = lens.hud.render(&history, &request, Millis::default());
        let context = context.map_err(|error| source.refuse(error))?;
        let mut line = object! { "session": &*session };
        name_file(&mut line, source);
        if let afterimage::json::Value::Object(context) = context.to_json() {
            line.extend(context);
        }
        out.json(line)?;
    }
    Ok(())
}

/// Where several files are read, each line says from which it is.
fn name_file(line: &mut afterimage::json::Object, source: &Source) {
    if source.is_one_of_several {
        line.shift_insert(0, "file".to_owned(), source.name().into());
    }
}
