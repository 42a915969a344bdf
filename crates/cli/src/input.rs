//! Opening transcripts and archives of them, with progress, and saying what was odd about them.

mod branch;
mod counted;
mod folder;
mod opening;
mod passed_over;
mod redaction;
mod source;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    json::MAX_BYTES,
    log::{DiskFiles, read_file},
};
use indexmap::IndexSet;

use crate::{
    args::Input,
    failure::{Failure, Outcome, Stop},
};
pub(crate) use counted::{Progress, is_stdin};
pub(crate) use folder::{FolderContents, Found, FoundKind};
use opening::expanded;
pub(crate) use opening::{Opened, Opening, is_folder_of_files};
use passed_over::PassedOver;
use redaction::Redaction;
#[cfg(feature = "record")]
pub(crate) use redaction::{redactor, report as report_redaction};
pub(crate) use source::Source;

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
    let format = input.input_format;
    if input.files.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::new("only one of the files can be `-`, standard input").into());
    }
    let files = input.chosen()?;
    let redaction = Redaction::of(input)?;
    if let Some(redaction) = &redaction {
        redaction.learn(&files, format);
    }
    let mut passed_over = PassedOver::default();
    let inputs = expanded(&files, &mut passed_over);
    // What a folder holds is named, though it be one file.
    let is_one_of_several = inputs.len() > 1 || passed_over.is_of_folder();
    let progress = if shows_progress { Progress::Shown } else { Progress::Hidden };
    let mut outcome = Ok(());
    let mut choice = input.session.as_deref().map(SessionChoice::new);
    let mut is_branch_found = input.branches.branch.is_none();
    for opening in inputs {
        let opened = opening.and_then(|opening| opening.open(progress, format));
        let read = opened.and_then(|opened| {
            let mut source = match opened {
                Opened::Source(source) => *source,
                Opened::NoTranscript(path, why) => {
                    passed_over.add(path, why);
                    return Ok(());
                }
            };
            source.is_one_of_several = is_one_of_several;
            passed_over.read(source.path());
            if let Some(redaction) = &redaction {
                source.redact(redaction.clone());
            }
            if input.keeps_exchanges {
                source.keep_exchanges();
            }
            if input.branches.all_branches {
                source.take_all_branches();
            }
            if let Some(branch) = &input.branches.branch {
                if !source.choose_branch(branch)? {
                    source.finish(true);
                    return Ok(());
                }
                is_branch_found = true;
            }
            if let Some(choice) = &mut choice
                && !choice.is_in(&mut source)?
            {
                source.finish(true);
                return Ok(());
            }
            let read = command(&mut source);
            source.finish(read.is_ok() && !input.is_silent);
            read
        });
        match read {
            Err(Stop::Failure(failure)) if refused == InputRefusal::IsPassedOver => {
                failure.report();
                outcome = Err(Stop::Reported);
            }
            Err(stop) => return Err(stop),
            Ok(()) => {}
        }
    }
    if let Some(redaction) = redaction.filter(|_| !input.is_silent) {
        redaction.report();
    }
    for failure in passed_over.report() {
        failure.report();
        outcome = Err(Stop::Reported);
    }
    if let (Some(branch), false, true) = (&input.branches.branch, is_branch_found, outcome.is_ok())
    {
        let failure = Failure::new(format!("there is no frame of a record {branch:?}"));
        return Err(failure
            .hint("`afterimage frames FILE` has the `uuid` or the `id` of each record that makes a frame")
            .into());
    }
    match choice.and_then(SessionChoice::failure).filter(|_| outcome.is_ok()) {
        Some(failure) => Err(failure.into()),
        None => outcome,
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
