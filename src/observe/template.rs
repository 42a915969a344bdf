use std::fmt;

use super::{Pointer, shown};
use crate::{Error, Result, json::Value};

/// A text with the values of a response in it: `{/ship/hull}/{/ship/max_hull}`.
///
/// `{/a|/b}` is the first of them that is there, `{#/systems}` is how many elements or members
/// stand there, `{{` is a brace. A template one of whose values is missing says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Vec<Pointer>),
    Count(Vec<Pointer>),
}

impl Template {
    /// Reads a template.
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

    /// The text for this value, and the places that it shows; `None` where one of them is missing.
    pub(super) fn fill(&self, value: &Value) -> Option<(String, Vec<Pointer>)> {
        let mut text = String::new();
        let mut places = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Value(pointers) => {
                    let (place, found) = first(pointers, value)?;
                    text.push_str(&shown::value(found)?);
                    places.push(place.clone());
                }
                Piece::Count(pointers) => {
                    let (place, found) = first(pointers, value)?;
                    text.push_str(&shown::grouped(&shown::count(found)?.to_string()));
                    places.push(place.clone());
                }
            }
        }
        Some((text, places))
    }

    /// Whether what it writes first is the policy's own text.
    pub(super) fn begins_with_text(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(_)))
    }
}

fn alternatives(text: &str) -> Result<Vec<Pointer>> {
    text.split('|').map(Pointer::parse).collect()
}

fn first<'a>(pointers: &'a [Pointer], value: &'a Value) -> Option<(&'a Pointer, &'a Value)> {
    pointers.iter().find_map(|pointer| Some((pointer, pointer.of_value(value)?)))
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
