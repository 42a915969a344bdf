//! The arguments of a command, which may hold base URLs of the recorder.

use std::{ffi::OsString, io::Write};

use tempfile::NamedTempFile;

use super::settings_text::SettingsText;

/// An argument of the command.
#[derive(Debug)]
pub(super) enum Argument {
    Plain(OsString),
    /// A text whose base URLs are known when the recorder listens.
    Pieces(Vec<Piece>),
    /// The path of a private file with such a text, behind what stands before it: what others must
    /// not read is in no argument.
    File {
        before: String,
        pieces: Vec<Piece>,
    },
    /// The same with a copy of settings, whose base URLs are other ones.
    Settings {
        before: String,
        settings: SettingsText,
    },
}

/// A piece of such a text.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    /// The base URL of this route, in quotes.
    Base(String),
    /// The same without quotes.
    PlainBase(String),
}

impl Argument {
    /// A text, and behind it the base URL of a route.
    pub(super) fn base(before: impl Into<String>, route: impl Into<String>) -> Self {
        Self::Pieces(vec![Piece::Text(before.into()), Piece::Base(route.into())])
    }

    /// The argument, with the base URLs of routes. The command needs its file, where it has one.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn resolve(
        self,
        base: impl Fn(&str) -> Option<String>,
    ) -> std::io::Result<(OsString, Option<NamedTempFile>)> {
        let resolve = |pieces: Vec<Piece>| -> String {
            let resolved = pieces.into_iter().map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Base(route) => format!("\"{}\"", base(&route).unwrap_or_default()),
                Piece::PlainBase(route) => base(&route).unwrap_or_default(),
            });
            resolved.collect()
        };
        Ok(match self {
            Self::Plain(text) => (text, None),
            Self::Pieces(pieces) => (resolve(pieces).into(), None),
            Self::File { before, pieces } => private_file(before, ".json", &resolve(pieces))?,
            Self::Settings { before, settings } => {
                private_file(before, ".yaml", &settings.resolve(base).text)?
            }
        })
    }
}

/// Writes a file that its owner alone can read, and gives its path behind `before`.
fn private_file(
    before: String,
    suffix: &str,
    text: &str,
) -> std::io::Result<(OsString, Option<NamedTempFile>)> {
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix("afterimage-").suffix(suffix).tempfile()?;
    file.write_all(text.as_bytes())?;
    let mut argument = OsString::from(before);
    argument.push(file.path());
    Ok((argument, Some(file)))
}
