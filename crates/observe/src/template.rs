use std::{borrow::Cow, fmt};

use super::{Pointer, shown};
use crate::{Error, Result, json::Value};

/// A text with the values of a response in it: `{/ship/hull}/{/ship/max_hull}`.
///
/// `{/a|/b}` is the first of them that is there, `{#/systems}` is how many elements or members
/// stand there, `{{` is a brace. A value that is missing reads `unknown`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// What a template makes of a value.
#[derive(Debug, Default)]
pub(super) struct FilledTemplate {
    pub(super) text: String,
    /// The places that it shows.
    pub(super) places: Vec<Pointer>,
    /// How many values it asks for.
    pub(super) values: usize,
    /// The places of those that are missing.
    pub(super) missing: Vec<String>,
}

impl FilledTemplate {
    /// Whether it asks for values, and none of them is there.
    pub(super) fn is_blank(&self) -> bool {
        self.values > 0 && self.missing.len() == self.values
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Vec<Pointer>),
    Count(Vec<Pointer>),
}

impl Piece {
    fn places(&self) -> &[Pointer] {
        match self {
            Self::Text(_) => &[],
            Self::Value(places) | Self::Count(places) => places,
        }
    }
}

impl Template {
    /// Reads a template. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where a brace stays open or what it holds is
    /// no pointer.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if let Some(literal) = after.strip_prefix('{') {
                pieces.push(Piece::Text(format!("{before}{{")));
                rest = literal;
                continue;
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let (inside, after) = after.split_once('}').ok_or_else(|| {
                Error::expected("a template whose braces are closed", format!("{text:?}"))
            })?;
            pieces.push(match inside.strip_prefix('#') {
                Some(inside) => Piece::Count(alternatives(inside)?),
                None => Piece::Value(alternatives(inside)?),
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// The places that it may show.
    pub(super) fn places(&self) -> impl Iterator<Item = &Pointer> {
        self.pieces.iter().flat_map(Piece::places)
    }

    /// The text for this value, with `unknown` for what is missing.
    pub(super) fn fill(&self, value: &Value) -> FilledTemplate {
        let mut filled = FilledTemplate::default();
        for piece in &self.pieces {
            let (pointers, found) = match piece {
                Piece::Text(literal) => {
                    filled.text.push_str(literal);
                    continue;
                }
                Piece::Value(pointers) => (pointers, first(pointers, value, of_value)),
                Piece::Count(pointers) => (pointers, first(pointers, value, of_count)),
            };
            filled.values += 1;
            if let Some((place, text)) = found {
                filled.text.push_str(&text);
                filled.places.push(place.clone());
            } else {
                filled.text.push_str("unknown");
                filled.missing.extend(pointers.first().map(Pointer::to_string));
            }
        }
        filled
    }

    /// Whether what it writes first is the policy's own text.
    pub(super) fn begins_with_text(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(_)))
    }
}

fn alternatives(text: &str) -> Result<Vec<Pointer>> {
    text.split('|').map(Pointer::parse).collect()
}

/// The first of these places whose value can be shown.
fn first<'a, 'v>(
    pointers: &'a [Pointer],
    value: &'v Value,
    show: fn(&'v Value) -> Option<Cow<'v, str>>,
) -> Option<(&'a Pointer, Cow<'v, str>)> {
    pointers.iter().find_map(|pointer| Some((pointer, show(pointer.of_value(value)?)?)))
}

fn of_value(value: &Value) -> Option<Cow<'_, str>> {
    shown::value(value)
}

fn of_count(value: &Value) -> Option<Cow<'_, str>> {
    Some(shown::grouped(&shown::count(value)?.to_string()).into())
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
