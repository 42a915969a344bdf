//! Standard output and standard error: whatever reaches a terminal passes through here, so that no
//! escape sequence of a transcript, a file name or a document does.
//!
//! | written by | is | controls in it |
//! |---|---|---|
//! | `write!`, `writeln!`, [`note`], [`Message`] | a page for people | are shown as text, wherever it goes |
//! | [`Output::json`], [`Json`] | JSON | are escaped as JSON escapes them, wherever it goes |
//! | `write_all` | a document: rendered text, Markdown, a script | are shown as text on a terminal, and stay as they are in a pipe or a file |
//!
//! Nothing else in the program may name the streams: the lints in `clippy.toml` and `main.rs`
//! forbid it.
#![expect(clippy::disallowed_methods, reason = "the one place that writes to the streams")]

mod command_line;
mod document;
mod message;
mod page;
mod paint;
mod progress;

use std::{
    fmt,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
};

use afterimage::json::{Value, to_value};
use serde::Serialize;

pub(crate) use self::{
    command_line::say as say_of_command_line,
    message::{Message, first_stop, note, report, shows_progress},
    paint::Paint,
    progress::progress_target,
};
use self::{document::Document, page::write as write_page};
use crate::{
    args::Color,
    failure::{Failure, Outcome, Stop},
    visible::{in_json, printable},
};

/// Standard output, buffered.
pub(crate) struct Output {
    out: Pipe,
    document: Document,
    pub(crate) paint: Paint,
    pub(crate) is_terminal: bool,
    /// How many columns a table or a view may take.
    pub(crate) width: usize,
    /// Whether a cell that has no room is cut: on a terminal, and where `COLUMNS` says how wide a pipe
    /// is read.
    pub(crate) is_bounded: bool,
}

/// The stream itself, and whether somebody reads it.
struct Pipe {
    out: BufWriter<StdoutLock<'static>>,
    outlives_reader: bool,
    /// Nobody reads any more, and the command goes on without saying what it does.
    is_unread: bool,
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let paint = Paint::stdout(color, &stdout);
        let (width, is_bounded) = width(&stdout);
        let out = BufWriter::with_capacity(1 << 16, stdout.lock());
        let out = Pipe { out, outlives_reader: false, is_unread: false };
        Self { out, document: Document::default(), paint, is_terminal, width, is_bounded }
    }

    /// How many columns a line may take of which so many are taken.
    pub(crate) fn room(&self, taken: usize) -> usize {
        if self.is_bounded { self.width.saturating_sub(taken) } else { usize::MAX }
    }

    /// For a command whose purpose is not what it says: it goes on where nobody reads that any more.
    pub(crate) fn outlive_reader(&mut self) {
        self.out.outlives_reader = true;
    }

    /// Writes a value on a line of its own.
    pub(crate) fn json(&mut self, value: impl Into<Value>) -> Outcome {
        Ok(writeln!(self, "{}", Json(&value.into()))?)
    }

    /// Writes an answer as JSON, on a line of its own.
    pub(crate) fn answer(&mut self, answer: &impl Serialize) -> Outcome {
        self.json(to_value(answer)?)
    }

    /// Parts a text from what was written before it. Where it is of another session a line says so:
    /// nobody said it in the session before.
    pub(crate) fn part_texts(&mut self, wrote: bool, other: Option<&str>) -> io::Result<()> {
        if !wrote {
            return Ok(());
        }
        self.write_all(b"\n\n")?;
        other.map_or(Ok(()), |name| write!(self, "[Session {}]\n\n", printable(name)))
    }

    /// Shows what was written so far to a person who is reading along.
    pub(crate) fn flush_if_terminal(&mut self) -> io::Result<()> {
        if self.is_terminal { self.flush() } else { Ok(()) }
    }
}

/// A value as JSON in which no control is but as an escape.
pub(crate) struct Json<'v>(pub(crate) &'v Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaped<'f, 'a>(&'f mut fmt::Formatter<'a>);
        impl fmt::Write for Escaped<'_, '_> {
            fn write_str(&mut self, piece: &str) -> fmt::Result {
                self.0.write_str(&in_json(piece))
            }
        }
        fmt::Write::write_fmt(&mut Escaped(f), format_args!("{}", self.0))
    }
}

/// The columns of the terminal, at least 40, at most 140, or else those that `COLUMNS` asks for; 80
/// where nothing says it. And whether anything does.
fn width(stdout: &io::Stdout) -> (usize, bool) {
    let terminal = terminal_size::terminal_size_of(stdout);
    let terminal = terminal.map(|(width, _)| usize::from(width.0).clamp(40, 140));
    let asked = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let columns = terminal.or_else(|| asked().map(|columns| columns.clamp(40, MOST_COLUMNS)));
    (columns.unwrap_or(80), columns.is_some())
}

/// A line of a table has no more columns.
const MOST_COLUMNS: usize = 10_000;

/// Bytes are a document, formatted text is a page.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        self.out.write_all(self.document.shown(bytes).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.out.write_all(self.document.end().as_bytes())?;
        write_page(&mut self.out, text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Who wants to know what became of it flushes.
        let _ = self.out.write_all(self.document.end().as_bytes());
    }
}

impl Pipe {
    /// Takes the end of a reader for a success, where the command outlives it.
    fn unless_unread<T>(&mut self, done: T, result: io::Result<T>) -> io::Result<T> {
        match result {
            Err(error) if self.outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread = true;
                Ok(done)
            }
            result => result,
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_unread {
            return Ok(bytes.len());
        }
        let result = self.out.write(bytes);
        self.unless_unread(bytes.len(), result)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_unread {
            return Ok(());
        }
        let result = self.out.flush();
        self.unless_unread((), result)
    }
}

/// Errors of standard output; reading reports its errors itself.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::Output(Box::new(Failure::new(format!("cannot write to standard output: {error}"))))
    }
}
