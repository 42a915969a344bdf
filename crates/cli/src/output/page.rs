//! Pages for people: text whose controls are shown, and styles that take effect.

use std::{fmt, io};

use super::paint::{begins_style, ends_style};
use crate::visible;

/// Writes formatted text to `sink`: whatever it was made of, only its styles, line feeds and tabs
/// do more than show.
pub(super) fn write(sink: &mut impl io::Write, text: fmt::Arguments<'_>) -> io::Result<()> {
    let mut page = Page { sink, is_style: false, outcome: Ok(()) };
    match fmt::write(&mut page, text) {
        Ok(()) => Ok(()),
        Err(fmt::Error) => page.outcome.and(Err(io::Error::other("a value cannot be formatted"))),
    }
}

struct Page<'s, S> {
    sink: &'s mut S,
    /// Between the marks of a style.
    is_style: bool,
    outcome: io::Result<()>,
}

impl<S: io::Write> fmt::Write for Page<'_, S> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let written = if begins_style(piece) || ends_style(piece) {
            self.is_style = begins_style(piece);
            Ok(())
        } else if self.is_style {
            self.sink.write_all(piece.as_bytes())
        } else {
            self.sink.write_all(visible::lines(piece).as_bytes())
        };
        written.map_err(|error| {
            self.outcome = Err(error);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{args::Color, output::Paint, style};

    fn page(text: fmt::Arguments<'_>) -> String {
        let mut sink = Vec::new();
        write(&mut sink, text).unwrap();
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn a_style_takes_effect_and_text_that_looks_like_one_does_not() {
        let bold = Paint::stdout(Color::Always, &io::stdout()).style(style::HEADING);
        let forged = format!("\u{e}\u{1b}[1m\u{f}{bold}");
        assert_eq!(
            page(format_args!("{bold}{forged}{bold:#}\n")),
            "\u{1b}[1m␎␛[1m␏␎␛[1m␏\u{1b}[0m\n"
        );
    }

    #[test]
    fn without_colours_a_style_is_nothing() {
        let bold = Paint::stdout(Color::Never, &io::stdout()).style(style::HEADING);
        assert_eq!(page(format_args!("{bold}a{bold:#}")), "a");
    }
}
