//! Opening transcripts, with progress, and saying what was odd about them.

use std::{
    fs::File,
    io::{self, BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
};

use afterimage::{
    Error,
    transcript::{Record, Report, Transcript, TranscriptFormat},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    args::{Input, InputFormat},
    failure::{Failure, Outcome, Stop},
    output,
    text::{grouped, plural},
};

/// Progress is shown from this many bytes on.
const LARGE: u64 = 4 << 20;

/// A transcript that is being read.
pub(crate) struct Source {
    path: PathBuf,
    transcript: Transcript<BufReader<Counted>>,
    bar: ProgressBar,
    is_empty: bool,
    /// Whether the command reads several files, so that each must be named.
    pub(crate) is_one_of_several: bool,
}

/// Reads each of the files with `command`. A file that is refused is reported, and the others
/// are still read. `shows_progress` is to be false where text appears on the terminal meanwhile.
pub(crate) fn each(
    input: &Input,
    shows_progress: bool,
    mut command: impl FnMut(&mut Source) -> Outcome,
) -> Outcome {
    let format = match input.input_format {
        Some(InputFormat::Of(format)) => Some(format),
        _ => None,
    };
    let mut outcome = Ok(());
    for path in &input.files {
        let opened = Counted::open(path, shows_progress)
            .and_then(|counted| Source::new(path, counted, format, input.files.len() > 1));
        let read = opened.and_then(|mut source| {
            let read = command(&mut source);
            source.bar.finish_and_clear();
            if read.is_ok() {
                source.say_what_was_odd();
            }
            read
        });
        match read {
            Err(Stop::Failure(failure)) => {
                failure.report();
                outcome = Err(Stop::Reported);
            }
            Err(stop) => return Err(stop),
            Ok(()) => {}
        }
    }
    outcome
}

impl Source {
    fn new(
        path: &Path,
        counted: Counted,
        format: Option<TranscriptFormat>,
        is_one_of_several: bool,
    ) -> Outcome<Self> {
        let bar = counted.bar.clone();
        let reader = BufReader::with_capacity(1 << 16, counted);
        let transcript = Transcript::with_format(reader, format).map_err(|error| {
            bar.finish_and_clear();
            error.in_file(name(path))
        })?;
        Ok(Self { path: path.to_owned(), transcript, bar, is_empty: true, is_one_of_several })
    }

    /// What the file is called in output.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn format(&self) -> TranscriptFormat {
        self.transcript.format()
    }

    pub(crate) fn report(&self) -> &Report {
        self.transcript.report()
    }

    /// Names the file in an error of something that was made of its frames.
    pub(crate) fn refuse(&self, error: Error) -> Stop {
        error.in_file(name(&self.path)).into()
    }

    pub(crate) fn fail(&self, sentence: impl Into<String>) -> Failure {
        Failure::new(sentence).file(&name(&self.path))
    }

    pub(crate) fn note(&self, text: &str) {
        let text = if self.is_one_of_several {
            format!("{}: {text}", self.name())
        } else {
            text.to_owned()
        };
        self.bar.suspend(|| output::note(&text));
    }

    fn say_what_was_odd(&self) {
        let report = self.report();
        if self.is_empty {
            self.note(&format!("there is no message in it ({} was recognised)", self.format()));
        }
        let Some(first) = report.unknown.first() else { return };
        let (count, line) = (report.unknown_records, first.line);
        let (records, were) = (plural(count, "record"), if count == 1 { "was" } else { "were" });
        let at = if count == 1 { "at" } else { "first at" };
        self.note(&format!(
            "{} {records} {were} not understood, {at} line {}: {}",
            grouped(count),
            grouped(line),
            crate::text::printable(&first.reason)
        ));
    }
}

impl Iterator for Source {
    type Item = Outcome<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.transcript.next()?;
        self.is_empty = false;
        Some(record.map_err(|error| self.refuse(error)))
    }
}

/// A file, or standard input, with the progress of reading it.
struct Counted {
    input: Box<dyn Read>,
    bar: ProgressBar,
    /// Bytes that are still to be read before progress is shown; `None` once it is, or never is.
    hidden: Option<u64>,
}

impl Counted {
    fn open(path: &Path, shows: bool) -> Outcome<Self> {
        let cannot = |error: io::Error| {
            let reason = error.to_string();
            let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
            Failure::new(format!("cannot open the file: {reason}")).file(path)
        };
        let (input, size): (Box<dyn Read>, _) = if is_stdin(path) {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path).map_err(cannot)?;
            let metadata = file.metadata().map_err(cannot)?;
            if metadata.is_dir() {
                let failure = Failure::new("expected a file, found a directory").file(path);
                return Err(failure.hint("name the files in it, as in DIR/*.jsonl").into());
            }
            (Box::new(file), Some(metadata.len()).filter(|_| metadata.is_file()))
        };
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = match size {
            Some(_) => "{bar:30.cyan/dim} {bytes:>10} of {total_bytes}, {eta} left",
            None => "{spinner:.cyan} {bytes} read",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let is_worth_it =
            shows && io::stderr().is_terminal() && size.is_none_or(|size| size > LARGE);
        let after = if size.is_some() { 0 } else { LARGE };
        Ok(Self { input, bar, hidden: is_worth_it.then_some(after) })
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bar.inc(read as u64);
        if let Some(left) = self.hidden {
            self.hidden = left.checked_sub(read as u64);
            if self.hidden.is_none() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
        Ok(read)
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a file is called in diagnostics.
fn name(path: &Path) -> PathBuf {
    if is_stdin(path) { PathBuf::from("standard input") } else { path.to_owned() }
}

/// Names every format, one a line.
pub(crate) fn list_formats(out: &mut impl io::Write) -> io::Result<()> {
    let mut names: Vec<_> = TranscriptFormat::ALL.iter().map(|format| format.name()).collect();
    names.sort_unstable();
    names.iter().try_for_each(|name| writeln!(out, "{name}"))
}
