//! The arguments of a command, which may hold base URLs of the recorder.

use std::ffi::OsString;

/// An argument of the command.
#[derive(Debug)]
pub(super) enum Argument {
    Plain(OsString),
    /// A text whose base URLs are known when the recorder listens.
    Pieces(Vec<Piece>),
}

/// A piece of such a text.
#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    /// The base URL of this route, in quotes.
    Base(String),
}

impl Argument {
    /// A text, and behind it the base URL of a route.
    pub(super) fn base(before: impl Into<String>, route: impl Into<String>) -> Self {
        Self::Pieces(vec![Piece::Text(before.into()), Piece::Base(route.into())])
    }

    /// The argument, with the base URLs of routes.
    pub(super) fn resolve(self, base: impl Fn(&str) -> Option<String>) -> OsString {
        let pieces = match self {
            Self::Plain(text) => return text,
            Self::Pieces(pieces) => pieces,
        };
        let resolved = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Base(route) => format!("\"{}\"", base(&route).unwrap_or_default()),
        });
        resolved.collect::<String>().into()
    }
}
