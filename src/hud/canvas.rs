use std::fmt::Write;

use super::guard;
use crate::{
    Result,
    id::{ChunkType, FacetId, Role},
    json::Value,
    snapshot::{FacetIds, FrameSnapshotBuilder, Part},
    veil::{Facet, TagSet},
};

/// Where a format writes a facet: every text is a chunk with its owner.
pub struct Canvas<'a> {
    builder: FrameSnapshotBuilder<'a>,
    role: Role,
    tags: &'a TagSet,
    /// The facet that is being written, with its part.
    owner: Option<(FacetId, ChunkType, Part)>,
    /// What must stand before the next text: a turn marker or a separator.
    pending: &'a str,
    scratch: String,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(builder: FrameSnapshotBuilder<'a>, role: Role, tags: &'a TagSet) -> Self {
        Self { builder, role, tags, owner: None, pending: "", scratch: String::new() }
    }

    /// The role in which the frame is spoken.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Writes text of the facet exactly as it is. An empty text writes nothing.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.part(text);
        }
    }

    /// Writes the facet's part, even where its text is empty: a call without arguments, a result
    /// without text. What native exports pair by must be there.
    pub fn part(&mut self, text: &str) {
        self.flush();
        if let Some((id, chunk_type, part)) = &self.owner {
            let ids = Some(FacetIds::from_buf([id.clone()]));
            self.builder.push_text(text, ids, chunk_type.clone(), self.role, part.clone());
        }
    }

    /// Writes text of the facet with every `<` that would begin one of the built-in tags, a
    /// facet's tag, or the closing of one, as `&lt;`. Nothing else in it changes.
    pub fn guarded(&mut self, text: &str) {
        let tags = self.tags;
        match guard::neutralised(text, tags) {
            std::borrow::Cow::Borrowed(text) => self.text(text),
            std::borrow::Cow::Owned(text) => self.text(&text),
        }
    }

    /// The guarded form of `text`, for formats that put a chunk together from several texts.
    pub fn guard<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        guard::neutralised(text, self.tags)
    }

    /// The tags of facets that content must not forge.
    #[cfg(feature = "templates")]
    pub(super) fn tags(&self) -> &'a TagSet {
        self.tags
    }

    /// Writes a tag or a label of the facet: a chunk of type `formatting` that the facet owns.
    pub fn tag(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.flush();
        let facet_ids = self.owner.as_ref().map(|(id, ..)| FacetIds::from_buf([id.clone()]));
        self.builder.push_text(text, facet_ids, ChunkType::FORMATTING, self.role, Part::Text);
    }

    /// Writes formatting that no facet owns, for example between a facet's children.
    pub fn formatting(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.builder.push_text(text, None, ChunkType::FORMATTING, self.role, Part::Text);
        }
    }

    /// Writes a JSON value as text of the facet, in compact form and unguarded.
    pub fn json(&mut self, value: &Value) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        // Writing to a string cannot fail.
        let _ = write!(scratch, "{value}");
        self.part(&scratch);
        self.scratch = scratch;
    }

    /// Writes `child` with `write`, as a facet that is nested in what was written last.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn nested(
        &mut self,
        child: &Facet,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.builder.nest();
        let outcome = self.owned(child, write);
        self.builder.unnest();
        outcome
    }

    /// Writes `facet` with `write`: what is written belongs to it.
    pub(super) fn owned(
        &mut self,
        facet: &Facet,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let part = match (facet.part(), &self.owner) {
            // The text inside of a result is the result's.
            (Part::Text, Some((_, _, part @ Part::Result { .. }))) => part.clone(),
            (part, _) => part,
        };
        let owner = (facet.id.clone(), ChunkType::from(&facet.facet_type), part);
        let outer = self.owner.replace(owner);
        let outcome = write(self);
        self.owner = outer;
        outcome
    }

    /// Has `text` stand before the next text, if there is one; replaces what was pending.
    pub(super) fn before_next(&mut self, text: &'a str) {
        self.pending = text;
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.builder.push_text(pending, None, ChunkType::FORMATTING, self.role, Part::Text);
        }
    }

    pub(super) fn chunks(&self) -> usize {
        self.builder.len()
    }

    pub(super) fn into_builder(self) -> FrameSnapshotBuilder<'a> {
        self.builder
    }
}
