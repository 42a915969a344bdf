//! The pieces in which a stream says its texts: which of them go on with one another, and what of
//! them is to be replaced.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use super::{
    Redactor,
    json_text::{Literal, LiteralKind, Step, encoded, walk},
    redactor::{Replacement, replaced},
};

/// A piece of what an answer says.
struct Piece {
    /// The literal, in the stream.
    range: Range<usize>,
    said: String,
}

/// A text that an answer says in pieces.
struct Part {
    /// The name of the member that holds the pieces, as it is written.
    name: String,
    form: PieceForm,
    pieces: Vec<Piece>,
}

/// What is known of a string that may be a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceForm {
    /// It goes on in the next event: it stands in a `delta`.
    Delta,
    /// It goes on in the next event, or each event has a text of its own, or all that was said so
    /// far: the name does not tell.
    Unclear,
}

impl PieceForm {
    /// The form of a string; `None` where it is no piece.
    pub(super) fn of(literal: &Literal<'_, '_>) -> Option<Self> {
        if literal.kind != LiteralKind::Text {
            return None;
        }
        let name = literal.name.unwrap_or_default();
        let is_told = matches!(name, "id" | "type" | "role" | "name" | "signature");
        let is_said = || matches!(name, "content" | "thinking" | "reasoning" | "reasoning_content");
        if name == "delta" || !is_told && literal.is_in_delta() {
            return Some(Self::Delta);
        }
        let is_of_message =
            || literal.parent() == Some("message") && (is_said() || name == "refusal");
        let is_of_event =
            || literal.is_of_root() && (is_said() || matches!(name, "response" | "completion"));
        let is_piece = matches!(name, "text" | "arguments") || is_of_message() || is_of_event();
        is_piece.then_some(Self::Unclear)
    }
}

/// The parts of a stream, in the order in which they begin.
#[derive(Default)]
pub(super) struct Parts {
    list: Vec<Part>,
    /// The part of each key.
    known: HashMap<u64, usize>,
}

impl Parts {
    /// Adds a piece to the text that it goes on with. `key` is that of [`Indexes::key`].
    pub(super) fn add(
        &mut self,
        key: u64,
        name: Option<&str>,
        form: PieceForm,
        (range, said): (Range<usize>, String),
    ) {
        let number = *self.known.entry(key).or_insert(self.list.len());
        if number == self.list.len() {
            let name = name.unwrap_or_default().to_owned();
            self.list.push(Part { name, form, pieces: Vec::new() });
        }
        if let Some(part) = self.list.get_mut(number) {
            part.pieces.push(Piece { range, said });
        }
    }
}

/// A place in an event that is deeper is told by its path alone: no answer has pieces there.
const DEEPEST: usize = 32;

/// What the objects of an event say of the parts that they go on with.
pub(super) struct Indexes<'t>(HashMap<u64, Index<'t>>);

/// What an object says of the part that it goes on with.
#[derive(Default)]
struct Index<'t> {
    /// Its place in a list, whatever its place in the list of this event is.
    index: Option<&'t str>,
    /// All other indexes, whatever their order.
    others: u64,
    has_output: bool,
    item: Option<&'t str>,
}

impl<'t> Indexes<'t> {
    pub(super) fn of(data: &'t str) -> Self {
        let mut all: HashMap<u64, Index<'t>> = HashMap::new();
        walk(data, |literal| {
            let name = literal.name.unwrap_or_default();
            let is_index = matches!(
                name,
                "index"
                    | "item_id"
                    | "output_index"
                    | "content_index"
                    | "summary_index"
                    | "choice_index"
            );
            if !is_index || !matches!(literal.kind, LiteralKind::Text | LiteralKind::Number) {
                return;
            }
            let written = data.get(literal.range.clone()).unwrap_or_default();
            let of = all.entry(literal.container()).or_default();
            match name {
                "index" => of.index = Some(written),
                "item_id" => of.item = Some(written),
                _ => {
                    of.has_output |= name == "output_index";
                    of.others = of.others.wrapping_add(hash((name, written)));
                }
            }
        });
        Self(all)
    }

    /// The key of the part that a string goes on with. O(depth), which is bounded.
    pub(super) fn key(&self, literal: &Literal<'_, '_>) -> u64 {
        if literal.depth() > DEEPEST {
            return literal.path_hash();
        }
        let mut hasher = DefaultHasher::new();
        let mut place = None;
        for (container, step) in literal.path() {
            let own = self.0.get(&container);
            let index = own.and_then(|of| of.index);
            match place {
                // The index of an element counts, else its place.
                Some(place) => {
                    let index: Option<usize> = index.and_then(|index| index.parse().ok());
                    index.unwrap_or(place).hash(&mut hasher);
                }
                None => index.hash(&mut hasher),
            }
            if let Some(of) = own {
                of.others.hash(&mut hasher);
                // Some providers give the item another id in each event.
                of.item.filter(|_| !of.has_output).hash(&mut hasher);
            }
            place = match step {
                Step::Member(name) => {
                    name.hash(&mut hasher);
                    None
                }
                Step::Element(place) => Some(place),
            };
        }
        place.hash(&mut hasher);
        hasher.finish()
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Redactor {
    /// Redacts the pieces of each part as the text that they are together: a placeholder stands in
    /// the piece in which its secret began, and what the others had of it is gone. Of a stream that
    /// broke off any part may have done so.
    pub(super) fn parts(
        &mut self,
        parts: &Parts,
        is_cut: bool,
        place: &dyn fmt::Display,
        found: &mut Vec<Replacement>,
    ) {
        parts.list.iter().for_each(|part| self.part(part, is_cut, place, found));
    }

    fn part(
        &mut self,
        part: &Part,
        is_cut: bool,
        place: &dyn fmt::Display,
        found: &mut Vec<Replacement>,
    ) {
        let is_alone = part.form == PieceForm::Delta || part.pieces.len() == 1;
        let whole = part.whole(is_alone);
        let secrets = match self.named(&part.name, &whole, place) {
            Some(placeholder) => vec![(0..whole.len(), placeholder)],
            None if is_cut => self.find_any_cut(&whole, place),
            None => self.find_any(&whole, place),
        };
        // Each piece may be a text of its own, too.
        if is_alone && secrets.is_empty() {
            return;
        }
        let is_growing = matches!(whole, Cow::Borrowed(_));
        let mut start = 0;
        for Piece { range, said } in &part.pieces {
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
            let mut kept = replaced(said, &mine);
            if !is_alone && let Cow::Owned(redacted) = self.at(&kept, place) {
                kept = redacted;
            }
            if kept != *said {
                found.push((range.clone(), encoded(kept)));
            }
            if !is_growing {
                start = end;
            }
        }
    }
}

impl Part {
    /// The whole text. It is borrowed where each piece begins with the one before it: these have all
    /// that was said so far, and the last one has all.
    fn whole(&self, is_alone: bool) -> Cow<'_, str> {
        let pieces = self.pieces.iter().map(|piece| piece.said.as_str());
        let mut before = "";
        let is_growing = !is_alone
            && pieces.clone().all(|piece| piece.starts_with(std::mem::replace(&mut before, piece)));
        if is_growing { Cow::Borrowed(before) } else { Cow::Owned(pieces.collect()) }
    }
}
