//! Opening transcripts and archives of them, with progress, and saying what was odd about them.

mod at_once;
mod branch;
mod candidates;
mod counted;
mod folder;
mod opening;
mod passed_over;
mod places;
mod project;
mod redaction;
mod session_filter;
mod source;
mod stamp;

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    json::MAX_BYTES,
    log::{DiskFiles, read_file},
    transcript::TranscriptFormat,
};
use indexmap::IndexSet;

use crate::{
    args::Input,
    failure::{Failure, Outcome, Stop},
    output,
};
pub(crate) use candidates::{Candidate, Candidates, candidates, no_session};
use candidates::{by_id, newest};
pub(crate) use counted::{Progress, is_stdin};
pub(crate) use folder::{FolderContents, Found, FoundKind, is_named_database};
use opening::expanded;
pub(crate) use opening::{Opened, Opening, is_folder_of_files};
use passed_over::PassedOver;
pub(crate) use places::{Place, home, variable};
use redaction::Redaction;
#[cfg(feature = "record")]
pub(crate) use redaction::{RedactionReporter, redactor};
pub(crate) use session_filter::{Span, folder_of};
pub(crate) use source::{NoTranscript, Source};
pub(crate) use stamp::Stamp;

/// What comes of a file that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputRefusal {
    /// It is reported, and the others are still read.
    IsPassedOver,
    /// Nothing more is read: the outcome is made of all files, or of none.
    Ends,
}

/// Reads each of the files with `command`, and each of those that an archive was made of. A file
/// that is refused is reported, and the others are still read. `shows_progress` is to be false
/// where text appears on the terminal meanwhile.
pub(crate) fn each(
    input: &Input,
    shows_progress: bool,
    command: impl FnMut(&mut Source) -> Outcome,
) -> Outcome {
    read(input, shows_progress, InputRefusal::IsPassedOver, command)
}

/// As [`each`], with what comes of a file that is refused.
pub(crate) fn read(
    input: &Input,
    shows_progress: bool,
    refused: InputRefusal,
    mut command: impl FnMut(&mut Source) -> Outcome,
) -> Outcome {
    let (mut reading, openings) = Reading::of(input, refused)?;
    let progress = if shows_progress { Progress::Shown } else { Progress::Hidden };
    for opening in openings {
        let opened = opening.and_then(|opening| reading.open(opening, progress));
        reading.take(opened, &mut command)?;
    }
    reading.end()
}

/// As [`read`], with progress, in two steps: `work` runs for several files at once, `show` for one
/// after the other, in their order. Of files whose reading depends on those before them both run in
/// turn.
pub(crate) fn each_at_once<T: Send>(
    input: &Input,
    refused: InputRefusal,
    work: impl Fn(&mut Source) -> Outcome<T> + Sync,
    mut show: impl FnMut(&mut Source, T) -> Outcome,
) -> Outcome {
    let (mut reading, openings) = Reading::of(input, refused)?;
    if openings.len() < 2 || !reading.is_of_each_alone() {
        for opening in openings {
            let opened = opening.and_then(|opening| reading.open(opening, Progress::Shown));
            reading.take(opened, &mut |source: &mut Source| {
                let worked = work(source)?;
                show(source, worked)
            })?;
        }
        return reading.end();
    }
    let files = openings.iter().filter_map(|opening| opening.as_ref().ok()?.file());
    let bar = counted::bar_of_all(files);
    let opener = reading.opener();
    let open_and_work = |opening: Outcome<Opening>| {
        let mut opened = opener.open(opening?, Progress::PartOf(&bar))?;
        let worked = match &mut opened {
            Opened::Source(source) => Some(work(source)),
            Opened::NoTranscript(..) => None,
        };
        Ok((opened, worked))
    };
    at_once::in_order(openings, open_and_work, |done: Outcome<_>| {
        let (opened, mut worked) = match done {
            Ok((opened, worked)) => (Ok(opened), worked),
            Err(stop) => (Err(stop), None),
        };
        bar.suspend(|| {
            reading.take(opened, &mut |source: &mut Source| match worked.take() {
                Some(worked) => show(source, worked?),
                None => Ok(()),
            })
        })
    })?;
    bar.finish_and_clear();
    reading.end()
}

/// Does `work` for each of the files, where there are several that can be read twice, whichever of
/// their sessions are asked for; what cannot be read is left out, and nothing is said.
pub(crate) fn of_each<T: Send>(
    input: &Input,
    work: impl Fn(&mut Source) -> Outcome<T> + Sync,
) -> Outcome<Vec<T>> {
    let is_regular = |path: &PathBuf| !is_stdin(path) && (path.is_file() || path.is_dir());
    if input.last || !input.files.iter().all(is_regular) {
        return Ok(Vec::new());
    }
    let openings = expanded(&input.files, &mut PassedOver::default());
    if openings.len() < 2 {
        return Ok(Vec::new());
    }
    let opener = Opener {
        format: input.input_format,
        keeps_exchanges: false,
        all_branches: false,
        is_one_of_several: true,
    };
    let work = |opening: Outcome<Opening>| match opener.open(opening?, Progress::Hidden)? {
        Opened::Source(mut source) => work(&mut source).map(Some),
        Opened::NoTranscript(..) => Ok(None),
    };
    let mut all = Vec::with_capacity(openings.len());
    at_once::in_order(openings, work, |done: Outcome<_>| {
        all.extend(done.ok().flatten());
        Ok(())
    })?;
    Ok(all)
}

/// What opens the files of a command as its options ask for.
#[derive(Clone, Copy)]
struct Opener {
    format: Option<TranscriptFormat>,
    keeps_exchanges: bool,
    all_branches: bool,
    is_one_of_several: bool,
}

impl Opener {
    fn open(self, opening: Opening, progress: Progress<'_>) -> Outcome<Opened> {
        let mut opened = opening.open(progress, self.format)?;
        if let Opened::Source(source) = &mut opened {
            source.is_one_of_several = self.is_one_of_several;
            if self.keeps_exchanges {
                source.keep_exchanges();
            }
            if self.all_branches {
                source.take_all_branches();
            }
        }
        Ok(opened)
    }
}

/// The files of a command, and what was found of them so far.
struct Reading<'r> {
    input: &'r Input,
    refused: InputRefusal,
    redaction: Option<Redaction>,
    passed_over: PassedOver,
    is_one_of_several: bool,
    choice: Option<SessionChoice<'r>>,
    is_branch_found: bool,
    outcome: Outcome,
}

/// The files that are read.
pub(crate) fn chosen(input: &Input) -> Outcome<Cow<'_, [PathBuf]>> {
    if !input.last {
        return with_ids(&input.files);
    }
    let newest = newest(&input.files)?;
    output::note(&format!("the newest session is {}", newest.display()));
    Ok(Cow::Owned(vec![newest]))
}

/// The files, with the file of a session in the place of its id.
pub(crate) fn with_ids(files: &[PathBuf]) -> Outcome<Cow<'_, [PathBuf]>> {
    let mut found = Cow::Borrowed(files);
    for (index, path) in files.iter().enumerate() {
        if is_stdin(path) || path.exists() {
            continue;
        }
        if let Some(file) = by_id(path)? {
            output::note(&format!("the session {} is {}", path.display(), file.display()));
            if let Some(path) = found.to_mut().get_mut(index) {
                *path = file;
            }
        }
    }
    Ok(found)
}

impl<'r> Reading<'r> {
    fn of(input: &'r Input, refused: InputRefusal) -> Outcome<(Self, Vec<Outcome<Opening>>)> {
        if input.files.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(Failure::new("only one of the files can be `-`, standard input").into());
        }
        let files = chosen(input)?;
        let redaction = Redaction::of(input)?;
        if let Some(redaction) = &redaction {
            redaction.learn(&files, input.input_format);
        }
        let mut passed_over = PassedOver::default();
        let openings = session_filter::openings(&files, input, &mut passed_over)?;
        let reading = Self {
            input,
            refused,
            redaction,
            // What a folder holds is named, though it be one file.
            is_one_of_several: openings.len() > 1 || passed_over.is_of_folder(),
            passed_over,
            choice: input.session.as_deref().map(SessionChoice::new),
            is_branch_found: input.branches.branch.is_none(),
            outcome: Ok(()),
        };
        Ok((reading, openings))
    }

    fn opener(&self) -> Opener {
        Opener {
            format: self.input.input_format,
            keeps_exchanges: self.input.keeps_exchanges,
            all_branches: self.input.branches.all_branches,
            is_one_of_several: self.is_one_of_several,
        }
    }

    fn open(&self, opening: Opening, progress: Progress<'_>) -> Outcome<Opened> {
        self.opener().open(opening, progress)
    }

    /// Whether what is read of a file depends on no other.
    fn is_of_each_alone(&self) -> bool {
        self.redaction.is_none() && self.choice.is_none() && self.input.branches.branch.is_none()
    }

    /// Takes the next file, with what the command makes of it.
    fn take(
        &mut self,
        opened: Outcome<Opened>,
        command: &mut impl FnMut(&mut Source) -> Outcome,
    ) -> Outcome {
        match opened.and_then(|opened| self.run(opened, command)) {
            Err(Stop::Failure(failure)) if self.refused == InputRefusal::IsPassedOver => {
                crate::output::report(&failure);
                self.outcome = Err(Stop::Reported);
                Ok(())
            }
            other => other,
        }
    }

    fn run(&mut self, opened: Opened, command: &mut impl FnMut(&mut Source) -> Outcome) -> Outcome {
        let mut source = match opened {
            Opened::Source(source) => *source,
            Opened::NoTranscript(path, why) => {
                let shown = self.redaction.as_ref().map(|redaction| redaction.path(&path));
                self.passed_over.add(shown.unwrap_or(path), why);
                return Ok(());
            }
        };
        self.passed_over.read(source.path());
        if let Some(redaction) = &self.redaction {
            source.redact(redaction.clone());
        }
        if let Some(branch) = &self.input.branches.branch {
            if !source.choose_branch(branch)? {
                source.finish(true);
                return Ok(());
            }
            self.is_branch_found = true;
        }
        if let Some(choice) = &mut self.choice
            && !choice.is_in(&mut source)?
        {
            source.finish(true);
            return Ok(());
        }
        let read = command(&mut source);
        source.finish(read.is_ok() && !self.input.is_silent);
        read
    }

    /// Says what was passed over, and what was not found.
    fn end(mut self) -> Outcome {
        let reported = self.redaction.map_or(Ok(()), |of| of.report(self.input.is_silent));
        for failure in self.passed_over.report() {
            crate::output::report(&failure);
            self.outcome = Err(Stop::Reported);
        }
        output::first_stop(self.outcome, reported)?;
        if let (Some(branch), false) = (&self.input.branches.branch, self.is_branch_found) {
            let failure = Failure::new(format!("there is no frame of a record {branch:?}"));
            return Err(failure
                .hint("`afterimage frames FILE` has the `uuid` or the `id` of each record that makes a frame")
                .into());
        }
        match self.choice.and_then(SessionChoice::failure) {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }
}

/// The session that is asked for, and those that the files have.
struct SessionChoice<'c> {
    wanted: &'c str,
    is_found: bool,
    known: IndexSet<Arc<str>>,
}

impl<'c> SessionChoice<'c> {
    /// How many sessions are named where the one that is asked for is missing.
    const NAMED: usize = 8;

    fn new(wanted: &'c str) -> Self {
        Self { wanted, is_found: false, known: IndexSet::new() }
    }

    /// Leads a file to the session, and leaves the others out; says whether it has it.
    fn is_in(&mut self, source: &mut Source) -> Outcome<bool> {
        let is_in = source.choose(self.wanted, &mut self.known)?;
        self.is_found |= is_in;
        Ok(is_in)
    }

    /// What is said where no file has the session.
    fn failure(self) -> Option<Failure> {
        if self.is_found {
            return None;
        }
        let failure = Failure::new(format!("there is no session {:?}", self.wanted));
        let named: Vec<&str> = self.known.iter().take(Self::NAMED).map(AsRef::as_ref).collect();
        let (named, more) = (named.join(", "), self.known.len().saturating_sub(Self::NAMED));
        Some(match (self.known.len(), more) {
            (0, _) => failure,
            (1, _) => failure.hint(format!("the only session is {named}")),
            (_, 0) => failure.hint(format!("the sessions are {named}")),
            (_, more) => failure.hint(format!("the sessions are {named} and {more} more")),
        })
    }
}

/// The bytes of a regular file that a user named, `limit` bytes at most. A link is the choice of who
/// names it. A pipe or a device is refused without waiting for it.
pub(crate) fn regular(path: &Path, limit: u64) -> Outcome<Vec<u8>> {
    let target = path.canonicalize().map_err(|error| Failure::cannot_open(&error).file(path))?;
    Ok(read_file(&DiskFiles, target, limit).map_err(|error| error.in_file(path))?)
}

/// The bytes of a file, of a pipe, or of standard input, if they are no more than JSON may have.
pub(crate) fn whole(path: &Path) -> Outcome<Vec<u8>> {
    let cannot = |error: io::Error| Failure::cannot_open(&error).file(&name(path));
    let too_long =
        || Failure::new("expected an input of at most 256 MiB, found more").file(&name(path));
    let input: Box<dyn Read> = if is_stdin(path) {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(cannot)?;
        // Of a pipe the length is 0.
        if file.metadata().map_err(cannot)?.len() > MAX_BYTES as u64 {
            return Err(too_long().into());
        }
        Box::new(file)
    };
    let mut bytes = Vec::new();
    // One more than may be is enough to refuse it.
    input.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > MAX_BYTES {
        return Err(too_long().into());
    }
    Ok(bytes)
}

/// What a file is called in diagnostics.
pub(crate) fn name(path: &Path) -> PathBuf {
    if is_stdin(path) { PathBuf::from("standard input") } else { path.to_owned() }
}
