//! Parts of a message that are not the user's.

use std::ops::Range;

/// A part of a message that is not the user's.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// What its rest begins with, and its beginning ends with, where a text is cut inside of it.
    pub(super) open: String,
    pub(super) close: String,
    /// The lines around it where a part of the text is left out, if it marks itself by none.
    pub(super) label: Option<[&'static str; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In tags, or behind marks of a quotation.
    Quote,
    Paste,
    /// A heading or the tag of a client: no rule, but no material either.
    Heading,
    /// Whole sentences inside of a line.
    Sentences,
    /// Less than a sentence: a name, a word.
    Name,
}
