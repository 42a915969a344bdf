//! Where progress is drawn.

use std::io::{self, Write};

use indicatif::{ProgressDrawTarget, TermLike};

use crate::visible::lines_in_color;

/// How often a bar is drawn in a second.
const DRAWN: u8 = 20;

/// Standard error, for progress.
pub(crate) fn progress_target() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Bars), DRAWN)
}

/// Moves the cursor as bars ask for it, and shows their text as every other.
#[derive(Debug)]
struct Bars;

fn put(text: &str) -> io::Result<()> {
    io::stderr().write_all(text.as_bytes())
}

fn moved(count: usize, direction: char) -> io::Result<()> {
    if count == 0 { Ok(()) } else { put(&format!("\u{1b}[{count}{direction}")) }
}

impl TermLike for Bars {
    fn width(&self) -> u16 {
        terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0)
    }

    fn height(&self) -> u16 {
        terminal_size::terminal_size_of(io::stderr()).map_or(24, |(_, height)| height.0)
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        moved(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        moved(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        moved(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        moved(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        put(&format!("{}\n", lines_in_color(text)))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // A bar goes back to the beginning of its line before it is drawn again.
        match text.strip_prefix('\r') {
            Some(rest) => put(&format!("\r{}", lines_in_color(rest))),
            None => put(&lines_in_color(text)),
        }
    }

    fn clear_line(&self) -> io::Result<()> {
        put("\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
