//! `afterimage requests --follow`: the requests of a session as they come.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use afterimage::{
    ErrorKind,
    bill::Prices,
    request::{Exchange, Recording},
    transcript::{Transcript, subagent_files},
};

use super::{counted::RequestCounts, listing::Listing, page::Shape};
use crate::{
    args,
    failure::{Failure, Outcome, Stop},
    input::{self, InputRefusal, is_folder_of_files, is_stdin},
    lens::Lens,
    output::Output,
};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(500);
/// For how many looks a file must be as it is before its last answer counts as ended.
const QUIET: u32 = 3;
/// A file is read anew at most for this share of the time.
const SHARE: u32 = 4;

/// The requests that were printed already.
#[derive(Default)]
pub(super) struct Printed {
    /// How many of each session, and when the last of them was.
    sessions: HashMap<Arc<str>, (usize, Option<String>)>,
    /// The session of the last row.
    pub(super) last: Option<Arc<str>>,
    /// The columns of the last table.
    pub(super) shape: Option<Shape>,
}

impl Printed {
    /// Whether nothing was printed yet.
    pub(super) fn is_none(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether a request was printed; `seen` counts those of each session.
    pub(super) fn has(&self, of: &Exchange, seen: &mut HashMap<Arc<str>, usize>) -> bool {
        let number = seen.entry(Arc::clone(&of.session)).or_default();
        *number += 1;
        self.sessions.get(&of.session).is_some_and(|(printed, _)| *number <= *printed)
    }

    /// Takes the requests that there are for printed. Says whether those that were are still there.
    fn take(exchanges: &[&Exchange], shape: Option<Shape>) -> Self {
        let mut printed = Self { shape, ..Self::default() };
        for exchange in exchanges {
            let of = printed.sessions.entry(Arc::clone(&exchange.session)).or_default();
            *of = (of.0 + 1, exchange.time.clone());
            printed.last = Some(Arc::clone(&exchange.session));
        }
        printed
    }

    /// Whether these requests begin with those that were printed.
    fn are_in(&self, exchanges: &[Exchange]) -> bool {
        self.sessions.iter().all(|(session, (count, time))| {
            let mut of_session = exchanges.iter().filter(|of| of.session == *session);
            let last = count.checked_sub(1).and_then(|before| of_session.nth(before));
            last.is_some_and(|last| last.time == *time)
        })
    }
}

/// Prints the requests of a file, and those that come, until it is interrupted.
pub(super) fn run(
    args: &args::Requests,
    lens: &Lens,
    prices: &Prices,
    out: &mut Output,
) -> Outcome {
    let chosen = args.input.chosen()?;
    let [path] = &*chosen else {
        return Err(Failure::new("expected one file to follow, found several").into());
    };
    if is_stdin(path) || is_folder_of_files(path) {
        let failure = Failure::new("expected a file to follow").file(&input::name(path));
        return Err(failure.hint("`--last` takes the newest session of a folder").into());
    }
    let input = args::Input {
        files: vec![path.clone()],
        last: false,
        is_silent: true,
        ..args.input.of_all_sessions()
    };
    let mut printed = Printed::default();
    let (mut looked, mut quiet, mut is_held) = (None, 0, false);
    loop {
        let looks = Some(look(path));
        quiet = if looks == looked { quiet + 1 } else { 0 };
        if quiet == 0 || (quiet == QUIET && is_held) {
            looked = looks;
            let began = Instant::now();
            // What is written just now may be half a document, or nothing yet.
            if is_whole(path, printed.is_none())? {
                let following = Following { args, input: &input, lens, prices };
                is_held = following.refresh(quiet == QUIET, &mut printed, out)?;
            }
            thread::sleep(began.elapsed() * (SHARE - 1));
        }
        thread::sleep(PAUSE);
    }
}

/// What is followed, and how it is shown.
struct Following<'f> {
    args: &'f args::Requests,
    input: &'f args::Input,
    lens: &'f Lens,
    prices: &'f Prices,
}

impl Following<'_> {
    /// Prints what is new in a file. An answer that ends the session may still be written, with its
    /// usage: it is held back until the file is quiet. Says whether one is.
    fn refresh(&self, is_quiet: bool, printed: &mut Printed, out: &mut Output) -> Outcome<bool> {
        let mut is_held = false;
        input::read(self.input, false, InputRefusal::Ends, |source| {
            let recording = super::read(source, &self.lens.counter)?;
            if !printed.are_in(recording.exchanges()) {
                source.note("the file was replaced or cut: it is followed from its beginning");
                *printed = Printed::default();
            }
            let counts = RequestCounts::of(self.args, self.lens, &recording);
            let counts = counts.map_err(|error| source.refuse(error))?;
            let of = (&recording, counts);
            let mut listing = Listing::new(self.args, source, of, self.prices, Some(&*printed));
            listing.held = if is_quiet { HashSet::new() } else { unfinished(&recording) };
            let is_ready = |exchange: &&Exchange| !listing.held.contains(&exchange.number);
            let ready: Vec<&Exchange> = recording.exchanges().iter().filter(is_ready).collect();
            is_held = ready.len() < recording.exchanges().len();
            if !ready.is_empty() {
                if self.args.json { listing.json(out)? } else { listing.table(out)? }
            }
            let shape = listing.shape.get().or(printed.shape);
            *printed = Printed::take(&ready, shape);
            Ok(out.flush()?)
        })?;
        Ok(is_held)
    }
}

/// The requests whose answers end their sessions.
fn unfinished(recording: &Recording) -> HashSet<usize> {
    let is_last = |exchange: &&Exchange| {
        let frames = recording.history(&exchange.session).map(|history| history.frames());
        let last = frames.and_then(|frames| frames.sequence(frames.len().checked_sub(1)?));
        last.is_some() && exchange.response.frames.last().copied() == last
    };
    recording.exchanges().iter().filter(is_last).map(|exchange| exchange.number).collect()
}

/// What the files of a session, or those of a folder that is a recording, look like from outside.
fn look(path: &Path) -> Vec<(PathBuf, Option<(u64, SystemTime)>)> {
    let inside = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = std::iter::once(path.to_owned()).chain(subagent_files(path)).chain(inside);
    let looks = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    files.map(|file| (file.clone(), looks(&file))).collect()
}

/// Whether a file holds a transcript now. A failure where it never did, unless it is still empty.
fn is_whole(path: &Path, is_first: bool) -> Outcome<bool> {
    let error = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(true),
        Ok(metadata) if metadata.len() == 0 => return Ok(false),
        Ok(_) => match Transcript::open(path) {
            Ok(_) => return Ok(true),
            Err(error) => error,
        },
        Err(error) if is_first => return Err(Failure::cannot_open(&error).file(path).into()),
        // Who writes a file anew may remove it first.
        Err(_) => return Ok(false),
    };
    let may_come = matches!(error.kind(), ErrorKind::Json | ErrorKind::Utf8) || !is_first;
    if may_come { Ok(false) } else { Err(Stop::from(error)) }
}
