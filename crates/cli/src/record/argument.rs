//! The arguments of a command, which may hold base URLs of the recorder.

use std::{ffi::OsString, io::Write};

use tempfile::NamedTempFile;

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
            Self::File { before, pieces } => {
                let mut builder = tempfile::Builder::new();
                let mut file = builder.prefix("afterimage-").suffix(".json").tempfile()?;
                file.write_all(resolve(pieces).as_bytes())?;
                let mut argument = OsString::from(before);
                argument.push(file.path());
                (argument, Some(file))
            }
        })
    }
}
