//! Which sessions are read: those that ended in a span of time, or of some project.

use std::{
    io,
    path::{self, Path, PathBuf},
};

use afterimage::transcript::subagent_files;

use super::{
    Found, FoundKind, Opened, Opening, at_once,
    counted::{self, Progress, is_stdin},
    folder::is_named_database,
    opening::expanded,
    passed_over::PassedOver,
    stamp::Stamp,
};
use crate::{
    args::{Input, SessionFilter},
    failure::{Failure, Outcome},
    output,
    text::{counted, grouped},
    when::written,
};

/// When a session was, by what its records say, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

impl Span {
    /// Takes the time of one more record.
    pub(crate) fn take(&mut self, time: Option<&str>) {
        let Some(at) = time.and_then(written) else { return };
        self.first = Some(self.first.map_or(at, |before| before.min(at)));
        self.last = Some(self.last.map_or(at, |before| before.max(at)));
    }
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> String {
    let file = path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.parent().map(|folder| folder.display().to_string()).unwrap_or_default()
}

/// What is opened of these files: all of it, or the sessions that are asked for. To find these, each is
/// read once more.
pub(super) fn openings(
    files: &[PathBuf],
    input: &Input,
    passed_over: &mut PassedOver,
) -> Outcome<Vec<Outcome<Opening>>> {
    let of_each = |passed_over: &mut PassedOver| -> Vec<Outcome<Opening>> {
        let openings = expanded(files, passed_over).into_iter();
        openings
            .flat_map(|opening| match opening {
                Ok(opening) => by_session(opening).into_iter().map(Ok).collect(),
                Err(stop) => vec![Err(stop)],
            })
            .collect()
    };
    if !input.filter.is_asked() {
        let all =
            if input.by_session { of_each(passed_over) } else { expanded(files, passed_over) };
        return Ok(all);
    }
    if files.iter().any(|path| is_stdin(path)) {
        let failure = Failure::new("standard input is read once, and not chosen by what is in it");
        return Err(failure.hint("leave out --since, --until and --project").into());
    }
    let mut openings = of_each(passed_over);
    let bar = counted::bar_of_all(openings.iter().filter_map(|of| of.as_ref().ok()?.file()));
    let times = input.filter.times();
    let is_asked = |opening: Outcome<Opening>| {
        Looked::at(opening?, input, Progress::PartOf(&bar))
            .map(|looked| looked.map(|of| of.is_asked(&input.filter, &times)))
    };
    let mut asked = Vec::with_capacity(openings.len());
    at_once::in_order(of_each(&mut PassedOver::default()), is_asked, |is_asked: Outcome<_>| {
        // What cannot be read is said when it is read for the command.
        asked.push(is_asked.ok().flatten());
        Ok(())
    })?;
    bar.finish_and_clear();
    let all = asked.iter().flatten().count() as u64;
    let kept = asked.iter().flatten().filter(|is_asked| **is_asked).count() as u64;
    if all > 0 && kept == 0 {
        let failure = format!("of {} none is asked for", counted(all, "session"));
        let hint = "`afterimage sessions` lists when they ended, and their projects";
        return Err(Failure::new(failure).hint(hint).into());
    }
    if kept < all && !input.is_silent {
        output::note(&format!("{} of {} are asked for", grouped(kept), counted(all, "session")));
    }
    let mut asked = asked.into_iter().map(|is_asked| is_asked.unwrap_or(true));
    openings.retain(|opening| {
        let is_asked = asked.next().unwrap_or(true);
        if let (false, Some(path)) = (is_asked, opening.as_ref().ok().and_then(Opening::file)) {
            passed_over.read(path);
        }
        is_asked
    });
    Ok(openings)
}

/// Each session of a database by itself, and anything else as it is.
fn by_session(opening: Opening) -> Vec<Opening> {
    let found = match &opening {
        Opening::File(path) if is_named_database(path) => {
            Found::of(path, FoundKind::File, Vec::new())
        }
        Opening::Found(found) if found.session.is_none() => found.clone(),
        _ => return vec![opening],
    };
    let sessions = found.sessions();
    if sessions.iter().any(|of| of.session.is_none()) {
        return vec![opening];
    }
    sessions.into_iter().map(Opening::Found).collect()
}

/// What decides whether a session is asked for.
struct Looked {
    ended: i64,
    project: String,
}

impl Looked {
    /// Reads a session to its end; `None` of what is no transcript.
    fn at(opening: Opening, input: &Input, progress: Progress<'_>) -> Outcome<Option<Self>> {
        let changed = stamp(&opening).unwrap_or_default().modified_millis();
        let opened = opening.open(progress, input.input_format)?;
        let Opened::Source(mut source) = opened else { return Ok(None) };
        source.keep_exchanges();
        let mut span = Span::default();
        while let Some(record) = source.next() {
            span.take(record?.frame.timestamp.as_deref());
            source.take_exchanges()?.iter().for_each(|of| span.take(of.time.as_deref()));
        }
        source.take_exchanges()?.iter().for_each(|of| span.take(of.time.as_deref()));
        let project = source.project().unwrap_or_else(|| folder_of(source.path()));
        Ok(Some(Self { ended: span.last.unwrap_or(changed), project }))
    }

    fn is_asked(&self, filter: &SessionFilter, times: &std::ops::RangeInclusive<i64>) -> bool {
        times.contains(&self.ended) && filter.has_project(&self.project)
    }
}

/// What the files look like from outside.
fn stamp(opening: &Opening) -> io::Result<Stamp> {
    match opening {
        Opening::File(path) => Stamp::of(&Found::of(path, FoundKind::File, subagent_files(path))),
        Opening::Folder(path, _) => Stamp::of_folder(path),
        Opening::Found(found) => Stamp::of(found),
        Opening::Archived(file) => Stamp::of_folder(file.folder()),
    }
}
