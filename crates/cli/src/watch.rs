//! Files that are followed: read again where they have changed.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use afterimage::{
    ErrorKind, record,
    request::{Exchange, Recording},
    transcript::{SourceContent, Transcript, Usage, subagent_files},
};

use crate::{
    args,
    failure::{Failure, Outcome, Stop},
    input::{self, Source, is_folder_of_files, is_stdin},
    store,
};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(500);
/// For how many looks a file must be as it is before its last answer counts as ended.
const QUIET: u32 = 3;
/// A file is read anew at most for this share of the time.
const SHARE: u32 = 4;

/// What a reading of a followed file found.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Whether something may still change, and is held back until the file is quiet.
    pub(crate) is_held: bool,
    /// Whether nothing was printed so far.
    pub(crate) is_none: bool,
}

/// Reads a file, and again when it has changed, until the program is interrupted. `refresh` is given
/// the file as input, and whether the file is quiet.
pub(crate) fn watch(
    input: &args::Input,
    mut refresh: impl FnMut(&args::Input, bool) -> Outcome<Reading>,
) -> Outcome {
    let chosen = input::chosen(input)?;
    let [path] = &*chosen else {
        return Err(Failure::new("expected one file to follow, found several").into());
    };
    let is_of_several = || store::open(path).map(|files| files.is_some_and(|of| of.len() != 1));
    if is_stdin(path) || is_folder_of_files(path) || is_of_several()? {
        let failure = Failure::new("expected a file to follow").file(&input::name(path));
        return Err(failure.hint("`--last` takes the newest session of a folder").into());
    }
    let input = args::Input {
        files: vec![path.clone()],
        last: false,
        is_silent: true,
        ..input.of_all_sessions()
    };
    let (mut looked, mut quiet) = (None, 0);
    let mut reading = Reading { is_held: false, is_none: true };
    loop {
        // What nobody writes any more is read once. Who holds it now may end it after this.
        if record::is_recording(path) && !record::is_live(path) {
            return refresh(&input, true).map(|_| ());
        }
        let looks = Some(look(path));
        quiet = if looks == looked { quiet + 1 } else { 0 };
        if quiet == 0 || (quiet == QUIET && reading.is_held) {
            looked = looks;
            let began = Instant::now();
            // What is written just now may be half a document, or nothing yet.
            if is_whole(path, reading.is_none)? {
                reading = refresh(&input, quiet == QUIET)?;
            }
            thread::sleep(began.elapsed() * (SHARE - 1));
        }
        thread::sleep(PAUSE);
    }
}

/// The requests that were printed already.
pub(crate) struct Printed<S> {
    /// Those of each session.
    sessions: HashMap<Arc<str>, PrintedOf>,
    /// The session of the last row.
    pub(crate) last: Option<Arc<str>>,
    /// The columns of the last table.
    pub(crate) shape: Option<S>,
}

/// The requests of a session that were printed already.
#[derive(Clone, Debug, Default)]
struct PrintedOf {
    /// How many.
    count: usize,
    /// When the last of them was.
    time: Option<String>,
    /// What was reported of its answer then: more of it may come, and is printed when it has.
    usage: Option<Usage>,
    failure: Option<String>,
}

impl<S> Default for Printed<S> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), last: None, shape: None }
    }
}

impl<S> Printed<S> {
    /// Whether nothing was printed yet.
    pub(crate) fn is_none(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether a request was printed as it is; `seen` counts those of each session.
    pub(crate) fn has(&self, of: &Exchange, seen: &mut HashMap<Arc<str>, usize>) -> bool {
        let number = seen.entry(Arc::clone(&of.session)).or_default();
        *number += 1;
        self.sessions.get(&of.session).is_some_and(|printed| {
            let is_same = || (&printed.usage, &printed.failure) == (&of.usage, &of.failure);
            *number < printed.count || *number == printed.count && is_same()
        })
    }

    /// Takes these requests for printed, with those that were before: the last of a session is held
    /// back again while its file goes on.
    pub(crate) fn take(&mut self, exchanges: &[&Exchange], shape: Option<S>) {
        let mut sessions: HashMap<Arc<str>, PrintedOf> = HashMap::new();
        for exchange in exchanges {
            let of = sessions.entry(Arc::clone(&exchange.session)).or_default();
            let Exchange { time, usage, failure, .. } = exchange;
            let (time, usage, failure) = (time.clone(), usage.clone(), failure.clone());
            *of = PrintedOf { count: of.count + 1, time, usage, failure };
            self.last = Some(Arc::clone(&exchange.session));
        }
        for (session, of) in sessions {
            if self.sessions.get(&session).is_none_or(|before| before.count <= of.count) {
                self.sessions.insert(session, of);
            }
        }
        self.shape = shape;
    }

    /// Whether these requests begin with those that were printed.
    pub(crate) fn are_in(&self, exchanges: &[Exchange]) -> bool {
        self.sessions.iter().all(|(session, PrintedOf { count, time, .. })| {
            let mut of_session = exchanges.iter().filter(|of| of.session == *session);
            let last = count.checked_sub(1).and_then(|before| of_session.nth(before));
            last.is_some_and(|last| last.time == *time)
        })
    }
}

/// The requests that may still change: those that follow one of a recording that still runs, and of
/// another file those whose answers end their sessions, unless it is quiet.
pub(crate) fn held(source: &Source, recording: &Recording, is_quiet: bool) -> HashSet<usize> {
    if recording.format().holds() == SourceContent::Recording {
        let running = source.running().unwrap_or(u64::MAX);
        let follows = |of: &&Exchange| of.line.is_some_and(|line| line > running);
        return recording.exchanges().iter().filter(follows).map(|of| of.number).collect();
    }
    if is_quiet { HashSet::new() } else { unfinished(recording) }
}

/// The requests whose answers end their sessions.
fn unfinished(recording: &Recording) -> HashSet<usize> {
    let is_last = |exchange: &&Exchange| {
        let frames = recording.history(&exchange.session).map(|history| history.frames());
        let last = frames.and_then(|frames| frames.sequence(frames.len().checked_sub(1)?));
        last.is_some() && exchange.answer_frames.last().copied() == last
    };
    recording.exchanges().iter().filter(is_last).map(|exchange| exchange.number).collect()
}

/// What the files of a session, or those of a folder that is a recording, look like from outside.
fn look(path: &Path) -> Vec<(PathBuf, Option<(u64, SystemTime)>)> {
    let inside = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    // What is written to a database may stand beside it for long.
    let mut ahead = path.as_os_str().to_owned();
    ahead.push("-wal");
    let own = [path.to_owned(), ahead.into()];
    let files = own.into_iter().chain(subagent_files(path)).chain(inside);
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
