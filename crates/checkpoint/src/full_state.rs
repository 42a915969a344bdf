use super::{
    document::{Document, Section},
    names::SectionKind,
};
use crate::Result;

/// A checkpoint: the summary of a long piece of work from which an agent can go on.
///
/// It is read forgivingly: any text is one. [`lint()`](super::lint()) says what is missing.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, SectionKind};
///
/// let text = "---\ncheckpoint: chk-1\ncreated: 2026-01-05T10:00:00Z\n---\n\n## Problem\n\nA leak.\n";
/// let checkpoint = Checkpoint::parse(text)?;
/// assert_eq!(checkpoint.id(), Some("chk-1"));
/// let problem = checkpoint.document().section(SectionKind::Problem).unwrap();
/// assert_eq!(checkpoint.document().body_of(problem), "A leak.");
/// assert_eq!(checkpoint.text(), text);
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    document: Document,
    /// The id where the header has none.
    name: Option<String>,
}

impl Checkpoint {
    /// Reads a checkpoint. Linear in its length.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn parse(text: impl Into<String>) -> Result<Self> {
        Document::parse(text).map(Self::from)
    }

    pub(super) fn called(document: Document, name: Option<&str>) -> Self {
        Self { document, name: name.map(str::to_owned) }
    }

    /// Names a checkpoint whose header has no id, such as after its file.
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.name = Some(id.into());
        self
    }

    /// The document that it is.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The text as it was read or made.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// The id: the header's `checkpoint`, else the name that it was given. O(fields of the header).
    pub fn id(&self) -> Option<&str> {
        self.header("checkpoint").or(self.name.as_deref())
    }

    /// The header's `created`. O(fields of the header).
    pub fn created(&self) -> Option<&str> {
        self.header("created")
    }

    /// The header's `parent`: the id of the checkpoint before. O(fields of the header).
    pub fn parent(&self) -> Option<&str> {
        self.header("parent")
    }

    pub(super) fn header(&self, key: &str) -> Option<&str> {
        self.document.front_matter()?.get(key)
    }

    /// The text of a section without its heading, with the sections inside of it that the format
    /// does not name. Linear in the document.
    pub fn body(&self, kind: SectionKind) -> Option<String> {
        self.document.section(kind).map(|section| self.document.content_of(section))
    }
}

impl From<Document> for Checkpoint {
    fn from(document: Document) -> Self {
        Self { document, name: None }
    }
}

/// The time of a section `## Delta: <time>`.
pub(super) fn inline_time(section: &Section) -> Option<&str> {
    let rest = section.title.strip_prefix("Delta:").filter(|_| section.level == 2)?;
    Some(rest.trim())
}
