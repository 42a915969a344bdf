//! `afterimage render`: what the model reads.

use std::{io::Write, sync::Arc};

use afterimage::{
    hud::RenderRequest,
    id::{FrameSeq, Millis, Role},
    snapshot::{ChunkRef, FrameSnapshot},
    veil::History,
};
use indexmap::{IndexMap, IndexSet};

use crate::{
    args::{self, RenderAs},
    failure::{Failure, Outcome},
    input::{self, Source},
    json::object,
    output::Output,
    style,
    text::counted,
    view,
    viewer::{Lens, Viewer, moment},
};

pub(crate) fn run(args: &args::Render) -> Outcome {
    let mut out = Output::new(args.color);
    let mut wanted = Wanted { from: args.from, to: args.to, ..Wanted::default() };
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::new(format!("the range runs from frame {from} back to {to}")).into());
    }
    let default = if args.json { RenderAs::Messages } else { RenderAs::Text };
    let what = args.what.unwrap_or(default);
    let streams = what != RenderAs::Messages;
    let lens = match what {
        RenderAs::Text => Lens::counting_on_demand(&args.rendering)?,
        RenderAs::Messages | RenderAs::Snapshots => Lens::counting(&args.rendering)?,
    };
    let mut text = Text { is_view: out.paint.is_on() && !args.json, ..Text::default() };
    let outcome = input::each(&args.input, !(streams && out.is_terminal), |source| {
        wanted.seen = None;
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

/// The frames that are wanted, and those that there were.
#[derive(Default)]
struct Wanted {
    from: Option<u64>,
    to: Option<u64>,
    /// The first and the last sequence, and whether one of them was wanted.
    seen: Option<(u64, u64, bool)>,
}

/// Where a frame stands to the range that is wanted.
#[derive(PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    /// Sequences rise over the whole file: nothing that follows is wanted.
    After,
}

impl Wanted {
    fn place(&mut self, sequence: FrameSeq) -> Place {
        let sequence = sequence.get();
        let place = if self.from.is_some_and(|from| sequence < from) {
            Place::Before
        } else if self.to.is_some_and(|to| sequence > to) {
            Place::After
        } else {
            Place::Inside
        };
        let (first, _, any) = self.seen.unwrap_or((sequence, sequence, false));
        self.seen = Some((first, sequence, any || place == Place::Inside));
        place
    }

    /// Refuses a range in which there is no frame.
    fn check(&self, source: &Source) -> Outcome {
        let range = match (self.from, self.to) {
            (None, None) => return Ok(()),
            (Some(from), Some(to)) => format!("from {from} to {to}"),
            (Some(from), None) => format!("from {from}"),
            (None, Some(to)) => format!("to {to}"),
        };
        let found = match self.seen {
            None => "there is no frame at all".to_owned(),
            Some((_, last, true)) => {
                if let Some(to) = self.to.filter(|to| *to > last) {
                    source.note(&format!("the last frame is {last}, before {to}"));
                }
                return Ok(());
            }
            Some((first, _, false)) if self.to.is_some_and(|to| to < first) => {
                format!("the frames begin at {first}")
            }
            Some((first, last, false)) => format!("the frames are {first} to {last}"),
        };
        Err(source.fail(format!("no frame is in the range {range}: {found}")).into())
    }
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
        wanted: &mut Wanted,
        out: &mut Output,
    ) -> Outcome {
        let mut viewer = Viewer::new(lens, source.format());
        self.session = None;
        if self.is_view && source.is_one_of_several {
            view::rule(out, &source.name(), style::HEADING, source.format().name())?;
        }
        let mut shown = IndexSet::new();
        while let Some(record) = source.next() {
            let record = record?;
            let place = wanted.place(record.frame.sequence);
            if place == Place::After {
                break;
            }
            let seen = viewer.see(record).map_err(|error| source.refuse(error))?;
            if place == Place::Before {
                continue;
            }
            if !shown.contains(&seen.session) {
                shown.insert(Arc::clone(&seen.session));
            }
            if let Some(message) = seen.message {
                let after = || {
                    let tokens = viewer.total_tokens(&seen.snapshot);
                    format!("frame {} · {}", seen.frame.sequence, counted(tokens, "token"))
                };
                self.message(&seen.snapshot, &seen.session, message, after, out)?;
            }
        }
        for session in shown {
            let tail = viewer.tail(&session).map_err(|error| source.refuse(error))?;
            if let Some(tail) = tail {
                let after = || {
                    let tokens = viewer.total_tokens(&tail.snapshot);
                    format!("after the last frame · {}", counted(tokens, "token"))
                };
                self.message(&tail.snapshot, &tail.session, tail.message, after, out)?;
            }
        }
        Ok(())
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
        let role: Option<Role> = snapshot.chunks().find_map(ChunkRef::role);
        view::heading(out, message, role, &after())?;
        view::body(out, snapshot)?;
        writeln!(out)?;
        Ok(out.flush_if_terminal()?)
    }
}

fn snapshots(source: &mut Source, lens: &Lens, wanted: &mut Wanted, out: &mut Output) -> Outcome {
    let mut viewer = Viewer::new(lens, source.format());
    while let Some(record) = source.next() {
        let record = record?;
        let place = wanted.place(record.frame.sequence);
        if place == Place::After {
            break;
        }
        let seen = viewer.see(record).map_err(|error| source.refuse(error))?;
        if place == Place::Inside {
            let mut line = object! {
                "session": &*seen.session,
                "sequence": seen.frame.sequence.get(),
                "snapshot": seen.snapshot.to_json(),
            };
            name_file(&mut line, source);
            out.json(line)?;
        }
    }
    Ok(())
}

fn messages(source: &mut Source, lens: &Lens, wanted: &mut Wanted, out: &mut Output) -> Outcome {
    let mut sessions: IndexMap<Arc<str>, (History, bool)> = IndexMap::new();
    while let Some(record) = source.next() {
        let record = record?;
        let place = wanted.place(record.frame.sequence);
        if place == Place::After {
            break;
        }
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
        let request = RenderRequest { frames: range.clone(), ..RenderRequest::default() };
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
