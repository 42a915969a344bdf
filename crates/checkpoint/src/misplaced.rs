//! Documents whose header is not where a header is read: behind other text, or in a code block.

use super::{
    blocks::BlockKind,
    document::Document,
    front_matter::{FrontMatter, fields_at},
    lint::DocumentKind,
};
use crate::Error;

/// A header that stands where none is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MisplacedHeader {
    /// The kind of the document that the header begins.
    pub(super) kind: DocumentKind,
    /// The line of the fence, or of the header's first `---`, from one.
    pub(super) line: usize,
    /// The line that opens the code block, where the document stands in one.
    fence: Option<String>,
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
                BlockKind::Code => (start + 1, Some(document.lines.get(start).trim().to_owned())),
                // What is above the second `---` of a header reads as a heading.
                BlockKind::Rule | BlockKind::Heading { .. } => (start, None),
                _ => return None,
            };
            let kind = kind_of(&fields_at(&document.lines, at)?)?;
            Some(Self { kind, line: start + 1, fence })
        })
    }

    /// What is wrong.
    pub(super) fn message(&self) -> String {
        let name = self.name();
        match &self.fence {
            Some(fence) => format!("the {name} stands in a code block, behind the fence {fence:?}"),
            None => format!("the front matter of the {name} is not at its beginning"),
        }
    }

    /// What to do.
    pub(super) fn expected(&self) -> String {
        match &self.fence {
            Some(_) => format!("the {} alone, without the fences around it", self.name()),
            None => "`---` in the first line, and nothing before it".to_owned(),
        }
    }

    /// Why a delta with such a header is not applied.
    pub(super) fn refusal(&self) -> Error {
        Error::wrong(self.line, self.message(), self.expected())
    }

    fn name(&self) -> &'static str {
        match self.kind {
            DocumentKind::Checkpoint => "checkpoint",
            DocumentKind::Delta => "delta",
        }
    }
}

/// What a header begins: only one that names what it is of counts, since rules and pairs with a
/// colon stand in any text.
fn kind_of(front: &FrontMatter) -> Option<DocumentKind> {
    let has = |key: &str| front.field(key).is_some();
    match () {
        () if has("checkpoint") => Some(DocumentKind::Checkpoint),
        () if has("delta") || has("from") && has("to") => Some(DocumentKind::Delta),
        () => None,
    }
}
