//! What clap says of the command line: help, the version, and what is wrong.

use std::io::{self, Write};

use crate::visible::lines_in_color;

/// Writes it where it belongs, and tells whether that is standard error.
///
/// `again` reads another command line: one without controls, so that all that stands between the
/// colours of the message is text.
pub(crate) fn say(
    error: clap::Error,
    again: impl FnOnce(Vec<String>) -> Option<clap::Error>,
) -> bool {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let shown: Vec<String> =
        words.iter().map(|word| crate::visible::printable(word).into_owned()).collect();
    let error = if words == shown { error } else { again(shown).unwrap_or(error) };
    let is_error = error.use_stderr();
    let has_colors = if is_error {
        anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
    } else {
        anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
    };
    let text = error.render();
    let text = if has_colors { text.ansi().to_string() } else { text.to_string() };
    let text = lines_in_color(&text);
    // Where nobody reads the help, nobody needs it.
    let _ = if is_error {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes())
    };
    is_error
}
