//! Standard output, and what is known of the terminal behind it.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use afterimage::json::Value;
use anstyle::Style;

use crate::{
    args::Color,
    failure::{Failure, Outcome, Stop},
};

/// Standard output, buffered.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
    outlives_reader: bool,
    /// Nobody reads any more, and the command goes on without saying what it does.
    is_unread: bool,
    pub(crate) paint: Paint,
    pub(crate) is_terminal: bool,
    /// How many columns a table or a view may take.
    pub(crate) width: usize,
}

/// Lets styles through, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    fn of(color: Color, choice: anstream::ColorChoice) -> Self {
        Self(match color {
            Color::Auto => choice != anstream::ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        })
    }

    /// As standard error takes it.
    pub(crate) fn stderr() -> Self {
        Self::of(Color::Auto, anstream::AutoStream::choice(&io::stderr()))
    }

    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    /// `style`, or the style that changes nothing.
    pub(crate) fn style(self, style: Style) -> Style {
        if self.0 { style } else { Style::new() }
    }
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let paint = Paint::of(color, anstream::AutoStream::choice(&stdout));
        let width = width(&stdout);
        let out = BufWriter::with_capacity(1 << 16, stdout.lock());
        Self { out, outlives_reader: false, is_unread: false, paint, is_terminal, width }
    }

    /// For a command whose purpose is not what it says: it goes on where nobody reads that any more.
    pub(crate) fn outlive_reader(&mut self) {
        self.outlives_reader = true;
    }

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

    /// Writes a value on a line of its own.
    pub(crate) fn json(&mut self, value: impl Into<Value>) -> Outcome {
        Ok(writeln!(self.out, "{}", value.into())?)
    }

    /// Shows what was written so far to a person who is reading along.
    pub(crate) fn flush_if_terminal(&mut self) -> io::Result<()> {
        if self.is_terminal { self.out.flush() } else { Ok(()) }
    }
}

/// The columns of the terminal: at least 40, at most 140, 80 where there is no terminal.
fn width(stdout: &io::Stdout) -> usize {
    let columns = terminal_size::terminal_size_of(stdout).map_or(80, |(width, _)| width.0.into());
    usize::clamp(columns, 40, 140)
}

impl Write for Output {
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

/// Writes a note to standard error.
pub(crate) fn note(text: &str) {
    let style = Paint::stderr().style(anstyle::AnsiColor::Cyan.on_default().bold());
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "{style}note:{style:#} {text}");
}
