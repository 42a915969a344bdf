//! Styles, and whether a stream takes them.

use std::{fmt, io};

use anstyle::Style;

use crate::args::Color;

/// Lets styles through, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

/// A style on its way to a page: `{ink}` begins it, `{ink:#}` ends it.
///
/// It takes effect where it is written straight to a page. Once it was formatted into a string it
/// is text like any other, and is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ink(Style);

/// What stands before and after a style.
///
/// A page takes them for what they are by their address, not by what they say: text that came from
/// outside lies elsewhere, whatever it holds.
static BEGIN: &str = "\u{e}";
static END: &str = "\u{f}";

/// Whether a piece of a page begins a style.
pub(super) fn begins_style(piece: &str) -> bool {
    std::ptr::eq(piece, BEGIN)
}

/// Whether a piece of a page ends a style.
pub(super) fn ends_style(piece: &str) -> bool {
    std::ptr::eq(piece, END)
}

impl fmt::Display for Ink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Style::new() {
            return Ok(());
        }
        f.write_str(BEGIN)?;
        fmt::Display::fmt(&self.0, f)?;
        f.write_str(END)
    }
}

impl Paint {
    fn of(color: Color, choice: anstream::ColorChoice) -> Self {
        Self(match color {
            Color::Auto => choice != anstream::ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        })
    }

    /// As standard output takes it.
    pub(super) fn stdout(color: Color, stdout: &io::Stdout) -> Self {
        Self::of(color, anstream::AutoStream::choice(stdout))
    }

    /// As standard error takes it.
    pub(super) fn stderr(stderr: &io::Stderr) -> Self {
        Self::of(Color::Auto, anstream::AutoStream::choice(stderr))
    }

    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    /// `style`, or the style that changes nothing.
    pub(crate) fn style(self, style: Style) -> Ink {
        Ink(if self.0 { style } else { Style::new() })
    }
}
