//! Documents whose header is not where a header is read: behind other text, or in a code block.

use super::{
    blocks::BlockKind,
    document::Document,
    front_matter::{FrontMatter, fields_at},
    lint::DocumentKind,
};
use crate::Error;

/// A header that stands where none is read.
#[derive(Debug)]
pub(super) struct MisplacedHeader {
    /// The kind of the document that the header begins.
    pub(super) kind: DocumentKind,
    /// What is wrong, at the line of the fence or of the header's first `---`, and what to do.
    pub(super) error: Error,
}

impl MisplacedHeader {
    /// The header that a document without one has further down; `None` where there is none.
    pub(super) fn of(document: &Document) -> Option<Self> {
        if document.front_matter().is_some() {
            return None;
        }
        document.blocks().iter().find_map(|block| {
            let start = block.lines.start;
            let (at, fence) = match block.kind {
                BlockKind::Code => (start + 1, Some(document.lines.get(start).trim())),
                // What is above the second `---` of a header reads as a heading.
                BlockKind::Rule | BlockKind::Heading { .. } => (start, None),
                _ => return None,
            };
            let (kind, name) = kind_of(&fields_at(&document.lines, at)?)?;
            let (wrong, expected) = match fence {
                Some(fence) => (
                    format!("the {name} stands in a code block, behind the fence {fence:?}"),
                    format!("the {name} alone, without the fences around it"),
                ),
                None => (
                    format!("the front matter of the {name} is not at its beginning"),
                    "`---` in the first line, and nothing before it".to_owned(),
                ),
            };
            Some(Self { kind, error: Error::wrong(start + 1, wrong, expected) })
        })
    }
}

/// What a header begins: only one that names what it is of counts, since rules and pairs with a
/// colon stand in any text.
fn kind_of(front: &FrontMatter) -> Option<(DocumentKind, &'static str)> {
    let has = |key: &str| front.field(key).is_some();
    match () {
        () if has("checkpoint") => Some((DocumentKind::Checkpoint, "checkpoint")),
        () if has("delta") || has("from") && has("to") => Some((DocumentKind::Delta, "delta")),
        () => None,
    }
}
