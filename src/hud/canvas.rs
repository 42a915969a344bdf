use std::fmt::{self, Write};

use super::guard;
use crate::{
    Result,
    id::{ChunkType, FacetId, FacetType, Role},
    json::Value,
    snapshot::{FacetIds, FrameSnapshotBuilder, Nesting, Part},
    veil::{Facet, TagSet},
};

/// Where a format writes a facet: every text is a chunk with its owner.
pub struct Canvas<'a> {
    builder: FrameSnapshotBuilder<'a>,
    role: Role,
    tags: &'a TagSet,
    /// The facet that is being written.
    owner: Option<Owner>,
    /// What must stand before the next text: a turn marker or a separator.
    pending: &'a str,
}

/// The facet that is being written, and what of it is there.
#[derive(Debug)]
struct Owner {
    id: FacetId,
    chunk_type: ChunkType,
    part: Part,
    /// In which chunk of the parent it is nested; `None` at the top, and where the parent has none.
    nesting: Option<Nesting>,
    /// The index of its first chunk.
    first: Option<usize>,
    /// Whether it has said something that a separator has to part from its first child.
    said: bool,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(builder: FrameSnapshotBuilder<'a>, role: Role, tags: &'a TagSet) -> Self {
        Self { builder, role, tags, owner: None, pending: "" }
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
        self.part_with(|out, _| out.push_str(text));
        self.said(!text.is_empty());
    }

    /// As [`Canvas::part`], for text that is put together of whole lines, so that nothing parts it
    /// from a child: `write` appends it, and gets the tags that content must not forge.
    pub(super) fn part_with(&mut self, write: impl FnOnce(&mut String, &TagSet)) {
        self.flush();
        if let Some(owner) = &mut self.owner {
            owner.first.get_or_insert(self.builder.len());
            let (ids, tags) = (FacetIds::from_buf([owner.id.clone()]), self.tags);
            let (chunk_type, part) = (owner.chunk_type.clone(), owner.part.clone());
            let write = |out: &mut String| write(out, tags);
            let nesting = owner.nesting;
            self.builder.push_written(nesting, Some(ids), chunk_type, self.role, part, write);
        }
    }

    fn said(&mut self, something: bool) {
        if let Some(owner) = &mut self.owner {
            owner.said |= something;
        }
    }

    /// Writes text of the facet with every `<` that would begin one of the built-in tags, a
    /// facet's tag, or the closing of one, as `&lt;`. Nothing else in it changes.
    pub fn guarded(&mut self, text: &str) {
        if !text.is_empty() {
            self.part_with(|out, tags| guard::push_neutralised(out, text, tags));
            self.said(true);
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
        self.tag_of(&[text]);
    }

    /// As [`Canvas::tag`], for a tag that is put together.
    pub(super) fn tag_of(&mut self, texts: &[&str]) {
        if texts.iter().all(|text| text.is_empty()) {
            return;
        }
        self.flush();
        let (mut ids, mut nesting) = (None, None);
        if let Some(owner) = &mut self.owner {
            owner.first.get_or_insert(self.builder.len());
            ids = Some(FacetIds::from_buf([owner.id.clone()]));
            nesting = owner.nesting;
        }
        let write = |out: &mut String| texts.iter().for_each(|text| out.push_str(text));
        let (formatting, role) = (ChunkType::FORMATTING, self.role);
        self.builder.push_written(nesting, ids, formatting, role, Part::Text, write);
    }

    /// Writes formatting that no facet owns, for example between a facet's children.
    pub fn formatting(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.push_formatting(text);
        }
    }

    fn push_formatting(&mut self, text: &str) {
        let write = |out: &mut String| out.push_str(text);
        let (formatting, role) = (ChunkType::FORMATTING, self.role);
        self.builder.push_written(None, None, formatting, role, Part::Text, write);
    }

    /// Writes a JSON value as text of the facet, in compact form and unguarded.
    pub fn json(&mut self, value: &Value) {
        self.part_with(|out, _| {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        });
        self.said(true);
    }

    /// Writes the children of `facet`, the facet that is being written, each with `write`. A child
    /// that is not shown is passed over: see [`Facet::is_shown_in_frames`]; ambient children are
    /// shown in an ambient facet.
    ///
    /// `separator` stands between two children that write something, and between what the facet
    /// said and the first of them; no facet owns it. The chunks of a child are nested in the first
    /// chunk of `facet`, where it has one by then.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn children(
        &mut self,
        facet: &Facet,
        separator: &'a str,
        mut write: impl FnMut(&Facet, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut parts = self.owner.as_ref().is_some_and(|owner| owner.said);
        for child in shown_children(facet) {
            let (before, pending) = (self.chunks(), self.pending);
            if parts {
                self.pending = separator;
            }
            self.owned(child, |canvas| write(child, canvas))?;
            if self.chunks() > before {
                parts = true;
            } else {
                self.pending = pending;
            }
        }
        Ok(())
    }

    /// Writes `facet` with `write`: what is written belongs to it.
    pub(super) fn owned(
        &mut self,
        facet: &Facet,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let outer = self.owner.as_ref();
        let part = match (facet.part(), outer.map(|owner| &owner.part)) {
            // The text inside of a result is the result's.
            (Part::Text, Some(part @ Part::Result { .. })) => part.clone(),
            (part, _) => part,
        };
        let nesting = outer.and_then(|owner| {
            let level = owner.nesting.map_or(0, |nesting| nesting.level) + 1;
            owner.first.map(|parent| Nesting { level, parent })
        });
        let (id, chunk_type) = (facet.id.clone(), ChunkType::from(&facet.facet_type));
        let (first, said) = Default::default();
        let owner = Owner { id, chunk_type, part, nesting, first, said };
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
            self.push_formatting(pending);
        }
    }

    pub(super) fn chunks(&self) -> usize {
        self.builder.len()
    }

    pub(super) fn into_builder(self) -> FrameSnapshotBuilder<'a> {
        self.builder
    }
}

impl fmt::Debug for Canvas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canvas")
            .field("role", &self.role)
            .field("owner", &self.owner)
            .field("pending", &self.pending)
            .field("builder", &self.builder)
            .finish_non_exhaustive()
    }
}

/// The children that are shown with `facet`.
fn shown_children(facet: &Facet) -> impl Iterator<Item = &Facet> {
    let ambient = facet.facet_type == FacetType::AMBIENT;
    let is_shown = move |child: &&Facet| {
        child.is_shown_in_frames() || ambient && child.facet_type == FacetType::AMBIENT
    };
    facet.children.iter().filter(is_shown)
}

/// Whether the built-in formats write anything of `facet`: a call, a result, a content, or a child
/// that does. Labels and tags alone say nothing.
pub(super) fn says_something(facet: &Facet) -> bool {
    !facet.content.is_empty()
        || facet.is_result()
        || facet.call().is_some()
        || shown_children(facet).any(says_something)
}
