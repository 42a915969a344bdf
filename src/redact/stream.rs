//! Streams of server-sent events: what an answer says is split over many of them.

use std::{borrow::Cow, collections::HashMap, fmt, ops::Range};

use super::{
    Redactor,
    json_text::{Literal, LiteralKind, decoded, encoded, walk},
    redactor::{Replacement, replaced},
};

/// Members that say which part of an answer an event goes on with.
const PARTS: [&str; 6] = [
    "\"index\"",
    "\"item_id\"",
    "\"output_index\"",
    "\"content_index\"",
    "\"summary_index\"",
    "\"choice_index\"",
];

/// Whether a body is a stream of events.
pub(super) fn is_stream(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|start| first.starts_with(start))
}

/// A piece of what an answer says.
struct Piece {
    /// The literal, in the stream.
    range: Range<usize>,
    said: String,
}

impl Redactor {
    pub(super) fn stream<'t>(&mut self, text: &'t str, place: &dyn fmt::Display) -> Cow<'t, str> {
        let mut found: Vec<Replacement> = Vec::new();
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        let mut known: HashMap<(u64, String), usize> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let at = start;
            start += line.len();
            let Some(data) = line.strip_prefix("data:") else {
                let whole = self.find(line, place).into_iter();
                found.extend(whole.map(|(range, to)| (at + range.start..at + range.end, to)));
                continue;
            };
            let at = at + (line.len() - data.len());
            let is_json = data.trim_start().starts_with(['{', '[', '"']);
            if !is_json || walk(data, |_| {}).is_none() {
                let whole = self.find(data, place).into_iter();
                found.extend(whole.map(|(range, to)| (at + range.start..at + range.end, to)));
                continue;
            }
            let part_of_event = part_of(data);
            walk(data, |literal| {
                let said = decoded(data, &literal.range).filter(|_| is_piece(literal));
                let Some(said) = said else {
                    let whole = self.find_in_literal(data, literal, place).into_iter();
                    found.extend(whole.map(|(range, to)| (at + range.start..at + range.end, to)));
                    return;
                };
                let range = at + literal.range.start..at + literal.range.end;
                let part = (literal.path_hash(), part_of_event.clone());
                let number = *known.entry(part).or_insert(parts.len());
                if number == parts.len() {
                    parts.push(Vec::new());
                }
                parts.get_mut(number).into_iter().for_each(|part| {
                    part.push(Piece { range: range.clone(), said: said.clone() });
                });
            });
        }
        for part in parts {
            self.joined(&part, place, &mut found);
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_by_key(|(range, _)| range.start);
        Cow::Owned(replaced(text, &found))
    }

    /// Redacts pieces as the text that they are together: a placeholder stands in the piece in which
    /// its secret began, and what the others had of it is gone.
    fn joined(&mut self, pieces: &[Piece], place: &dyn fmt::Display, found: &mut Vec<Replacement>) {
        let whole: String = pieces.iter().map(|piece| piece.said.as_str()).collect();
        let secrets = self.find_any(&whole, place);
        if secrets.is_empty() {
            return;
        }
        let mut start = 0;
        for Piece { range, said } in pieces {
            let end = start + said.len();
            let touches = |secret: &&Replacement| secret.0.start < end && start < secret.0.end;
            let mine: Vec<Replacement> = secrets
                .iter()
                .filter(touches)
                .map(|(secret, to)| {
                    let begins_here = secret.start >= start;
                    let cut = secret.start.max(start) - start..secret.end.min(end) - start;
                    (cut, if begins_here { to.clone() } else { String::new() })
                })
                .collect();
            if !mine.is_empty() {
                found.push((range.clone(), encoded(replaced(said, &mine))));
            }
            start = end;
        }
    }
}

/// Whether a string is a piece of a longer one, that goes on in the next event.
fn is_piece(literal: &Literal<'_, '_>) -> bool {
    if literal.kind != LiteralKind::Text {
        return false;
    }
    let last = literal.name.unwrap_or_default();
    let is_told = matches!(last, "id" | "type" | "role" | "name" | "signature");
    last == "text" || last == "delta" || !is_told && literal.is_in_delta()
}

/// Which part of the answer an event goes on with, by all that may tell it.
fn part_of(data: &str) -> String {
    let mut part = String::new();
    for name in PARTS {
        for (at, _) in data.match_indices(name) {
            let rest = data.get(at + name.len()..).unwrap_or_default();
            let value = rest.trim_start_matches([':', ' ']);
            let value = value.split([',', '}']).next().unwrap_or_default();
            part.push('|');
            part.push_str(value);
        }
    }
    part
}
