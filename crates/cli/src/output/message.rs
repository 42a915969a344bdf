//! What goes to standard error.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use anstyle::{AnsiColor, Style};

use super::{Paint, page};
use crate::{
    failure::{Failure, Outcome, Stop},
    visible::printable,
};

/// A block of text for standard error, which is written in one piece.
pub(crate) struct Message {
    block: Vec<u8>,
    pub(crate) paint: Paint,
}

impl Message {
    pub(crate) fn new() -> Self {
        Self { block: Vec::new(), paint: Paint::stderr(&io::stderr()) }
    }

    /// Writes it.
    pub(crate) fn send(self) {
        // Without a standard error there is nobody to tell.
        let _ = io::stderr().write_all(&self.block);
    }
}

/// What is written is a page.
impl Write for Message {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write!(self, "{}", String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        page::write(&mut self.block, text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a note to standard error, on one line.
pub(crate) fn note(text: &str) {
    let mut message = Message::new();
    let style = message.paint.style(AnsiColor::Cyan.on_default().bold());
    // Writing to memory cannot fail.
    let _ = writeln!(message, "{style}note:{style:#} {}", printable(text));
    message.send();
}

/// Writes what went wrong to standard error, as a block.
pub(crate) fn report(failure: &Failure) {
    let mut block = Message::new();
    let red = block.paint.style(AnsiColor::Red.on_default().bold());
    let dim = block.paint.style(Style::new().dimmed());
    let _ = writeln!(block, "{red}error:{red:#} {}", printable(failure.sentence()));
    for (name, value) in failure.details() {
        // Writing to memory cannot fail.
        let _ = writeln!(block, "  {dim}{name:<7}{dim:#} {}", printable(value));
    }
    block.send();
}

/// The first of two outcomes that stops the command. The other one is said, where it has a failure.
pub(crate) fn first_stop(first: Outcome, second: Outcome) -> Outcome {
    match (first, second) {
        (Err(first), Err(Stop::Failure(second) | Stop::Output(second))) => {
            report(&second);
            Err(first)
        }
        (first, second) => first.and(second),
    }
}

/// Whether standard error is a terminal, where progress is shown.
pub(crate) fn shows_progress() -> bool {
    io::stderr().is_terminal()
}
