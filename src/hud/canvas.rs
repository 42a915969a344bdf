use std::{borrow::Cow, fmt};

use super::guard;
use crate::{
    Result,
    id::{ChunkType, Role},
    json::Value,
    snapshot::{Chunk, Facets, Nesting, Part, Tiling},
    text::tag_name,
    tokens::TokenCounter,
    veil::{Facet, TagSet},
};

/// Where a format writes a facet: every text is a chunk with its owner.
pub struct Canvas<'a> {
    page: Page<'a>,
    /// The facet that is being written: what is written belongs to it.
    owner: &'a Facet,
    /// The result that the owner is a text inside of.
    result: Option<&'a Facet>,
    /// In which chunk of the parent the owner is nested; `None` at the top, and where the parent
    /// has none.
    nesting: Option<Nesting>,
    /// The index of the owner's first chunk.
    first: Option<usize>,
    /// Whether the owner has said something that a separator has to part from its first child.
    said: bool,
    /// What must stand before the next text: a turn marker or a separator.
    pending: &'a str,
}

/// What all facets of a frame are written on.
pub(super) struct Page<'a> {
    pub(super) tiling: &'a mut Tiling,
    pub(super) counter: &'a dyn TokenCounter,
    pub(super) role: Role,
    pub(super) tags: &'a TagSet,
    /// The facet that the HUD itself made, where there is one: its display name is a built-in tag.
    pub(super) own: Option<&'a Facet>,
}

impl Page<'_> {
    /// Writes formatting that no facet owns.
    pub(super) fn formatting(&mut self, text: &str) {
        self.tiling.out().push_str(text);
        self.tiling.end_chunk(self.counter, None, |range, tokens| Chunk {
            range,
            tokens,
            chunk_type: Some(ChunkType::FORMATTING),
            role: Some(self.role),
            ..Chunk::default()
        });
    }

    /// Where `owner` is written at the top of the frame, with `pending` before its first text.
    pub(super) fn canvas<'c>(&'c mut self, owner: &'c Facet, pending: &'c str) -> Canvas<'c> {
        let Self { counter, role, tags, own, .. } = *self;
        let page = Page { tiling: self.tiling, counter, role, tags, own };
        let (result, nesting, first, said) = Default::default();
        Canvas { page, owner, result, nesting, first, said, pending }
    }
}

impl<'a> Canvas<'a> {
    /// The role in which the frame is spoken.
    pub fn role(&self) -> Role {
        self.page.role
    }

    /// Writes text of the facet exactly as it is. An empty text writes nothing. O(text), and counts
    /// it.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.part(text);
        }
    }

    /// Writes the facet's part, even where its text is empty: a call without arguments, a result
    /// without text. What native exports pair by must be there. O(text), and counts it.
    pub fn part(&mut self, text: &str) {
        self.part_with(|out, _| out.push_str(text));
        self.said |= !text.is_empty();
    }

    /// As [`Canvas::part`], for text that is put together of whole lines, so that nothing parts it
    /// from a child: `write` appends it, and gets the tags that content must not forge.
    pub(super) fn part_with(&mut self, write: impl FnOnce(&mut String, &TagSet)) {
        let tags = self.page.tags;
        let chunk_type = ChunkType::from(&self.owner.facet_type);
        self.push(chunk_type, self.part_of_owner(), |out| write(out, tags));
    }

    /// Writes a chunk that the facet owns.
    fn push(&mut self, chunk_type: ChunkType, part: Part, write: impl FnOnce(&mut String)) {
        self.flush();
        self.first.get_or_insert(self.page.tiling.len());
        write(self.page.tiling.out());
        self.page.tiling.end_chunk(self.page.counter, self.nesting, |range, tokens| Chunk {
            range,
            tokens,
            facets: Facets::One(self.owner.id.clone()),
            chunk_type: Some(chunk_type),
            role: Some(self.page.role),
            part,
            rare: None,
        });
    }

    /// Which part of a message the facet is; the text inside of a result is the result's.
    fn part_of_owner(&self) -> Part {
        match (self.owner.chunk_part(), self.result) {
            (Part::Text, Some(result)) => result.chunk_part(),
            (part, _) => part,
        }
    }

    /// Writes text of the facet with every `<` that would begin one of the built-in tags, a
    /// facet's tag, or the closing of one, as `&lt;`. Nothing else in it changes. O(text), and
    /// counts it.
    pub fn guarded(&mut self, text: &str) {
        if !text.is_empty() {
            self.part_with(|out, tags| guard::push_neutralised(out, text, tags));
            self.said = true;
        }
    }

    /// The guarded form of `text`, for formats that put a chunk together from several texts.
    /// O(text).
    pub fn guard<'t>(&self, text: &'t str) -> Cow<'t, str> {
        guard::neutralised(text, self.page.tags)
    }

    /// The tag of a facet with this display name.
    pub(super) fn tag_name<'n>(&self, facet: &Facet, display_name: &'n str) -> Cow<'n, str> {
        let is_own = self.page.own.is_some_and(|own| std::ptr::eq(own, facet));
        if is_own { display_name.into() } else { tag_name(display_name) }
    }

    /// The tags of facets that content must not forge.
    #[cfg(feature = "templates")]
    pub(super) fn tags(&self) -> &'a TagSet {
        self.page.tags
    }

    /// Writes a tag or a label of the facet: a chunk of type `formatting` that the facet owns.
    /// O(text), and counts it.
    pub fn tag(&mut self, text: &str) {
        self.tag_of(&[text]);
    }

    /// As [`Canvas::tag`], for a tag that is put together.
    pub(super) fn tag_of(&mut self, texts: &[&str]) {
        if texts.iter().all(|text| text.is_empty()) {
            return;
        }
        self.push(ChunkType::FORMATTING, Part::Text, |out| {
            texts.iter().for_each(|text| out.push_str(text));
        });
    }

    /// Writes formatting that no facet owns, for example between a facet's children. O(text), and
    /// counts it.
    pub fn formatting(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.page.formatting(text);
        }
    }

    /// Writes a JSON value as text of the facet, in compact form and unguarded. O(size), and counts
    /// it.
    pub fn json(&mut self, value: &Value) {
        self.part_with(|out, _| {
            // Writing to a string cannot fail.
            let _ = value.write(out);
        });
        self.said = true;
    }

    /// Writes the children of `facet`, the facet that is being written, each with `write`. A child
    /// that is not shown is passed over: see [`Facet::is_shown_in_frames`]; ambient children are
    /// shown in an ambient facet.
    ///
    /// `separator` stands between two children that write something, and between what the facet
    /// said and the first of them; no facet owns it. The chunks of a child are nested in the first
    /// chunk of `facet`, where it has one by then. O(children), besides what `write` costs.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub fn children(
        &mut self,
        facet: &Facet,
        separator: &str,
        mut write: impl FnMut(&Facet, &mut Canvas<'_>) -> Result<()>,
    ) -> Result<()> {
        if facet.children.is_empty() {
            return Ok(());
        }
        let (result, nesting) = (self.result_around_children(), self.nesting_of_children());
        let mut parts = self.said;
        for child in facet.shown_children() {
            let before = self.chunks();
            let pending = if parts { separator } else { self.pending };
            let canvas = self.page.canvas(child, pending);
            write(child, &mut Canvas { result, nesting, ..canvas })?;
            if self.chunks() > before {
                // What was pending stands there now.
                self.pending = "";
                parts = true;
            }
        }
        Ok(())
    }

    fn result_around_children(&self) -> Option<&'a Facet> {
        if self.owner.is_result() {
            Some(self.owner)
        } else {
            self.result.filter(|_| self.owner.chunk_part() == Part::Text)
        }
    }

    fn nesting_of_children(&self) -> Option<Nesting> {
        let level = self.nesting.map_or(0, |nesting| nesting.level) + 1;
        self.first.map(|parent| Nesting { level, parent })
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.page.formatting(pending);
        }
    }

    pub(super) fn chunks(&self) -> usize {
        self.page.tiling.len()
    }
}

impl fmt::Debug for Canvas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canvas")
            .field("role", &self.page.role)
            .field("owner", &self.owner.id)
            .field("pending", &self.pending)
            .field("tiling", &self.page.tiling)
            .finish_non_exhaustive()
    }
}
