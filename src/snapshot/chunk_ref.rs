use std::{borrow::Cow, fmt, iter::FusedIterator, ops::Deref};

use super::{
    archive::{ArchivedFacets, ArchivedPlace},
    chunk::{Chunk, FacetIds, Part, PartRef, RenderedChunk, Structure},
};
use crate::{
    id::{FacetId, FrameSeq, Role},
    json::Object,
    text::TextRange,
};

/// What is known of a chunk but its text, wherever the chunk lies: in a [`FrameSnapshot`], in an
/// archive, or by itself. Cheap to copy.
///
/// [`FrameSnapshot`]: super::FrameSnapshot
#[derive(Clone, Copy)]
pub struct ChunkInfo<'a>(Place<'a>);

#[derive(Clone, Copy)]
enum Place<'a> {
    Snapshot { chunk: &'a Chunk, index: usize },
    Archive(ArchivedPlace<'a>),
    Alone(&'a RenderedChunk),
}

impl<'a> ChunkInfo<'a> {
    pub(super) fn archived(place: ArchivedPlace<'a>) -> Self {
        Self(Place::Archive(place))
    }

    /// Where the chunk lies in an archive.
    pub(super) fn place(self) -> Option<ArchivedPlace<'a>> {
        match self.0 {
            Place::Archive(place) => Some(place),
            _ => None,
        }
    }

    /// The sequence of its frame: known of chunks in an archive. O(log n).
    pub fn sequence(self) -> Option<FrameSeq> {
        self.place().map(ArchivedPlace::sequence)
    }

    /// The index in the frame's snapshot, from zero. A chunk by itself is the only one. O(log n)
    /// in an archive.
    pub fn index(self) -> usize {
        match self.0 {
            Place::Snapshot { index, .. } => index,
            Place::Archive(place) => place.index(),
            Place::Alone(_) => 0,
        }
    }

    /// Where the text stands in the frame's text. O(log n) in an archive.
    pub fn range(self) -> TextRange {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.range,
            Place::Archive(place) => place.range(),
            Place::Alone(chunk) => TextRange::at(0, chunk.content.len()),
        }
    }

    /// The tokens of the text alone.
    pub fn tokens(self) -> u64 {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.tokens,
            Place::Archive(place) => place.tokens(),
            Place::Alone(chunk) => chunk.tokens,
        }
    }

    /// The facets that the text represents; none for formatting.
    pub fn facet_ids(self) -> ChunkFacets<'a> {
        ChunkFacets(match self.0 {
            Place::Snapshot { chunk, .. } => {
                FacetsIn::Ids(chunk.facets.as_slice().unwrap_or_default().iter())
            }
            Place::Archive(place) => FacetsIn::Archive(place.facets()),
            Place::Alone(chunk) => {
                FacetsIn::Ids(chunk.facet_ids.as_deref().unwrap_or_default().iter())
            }
        })
    }

    /// The same as ids that own their text; of a snapshot they share it.
    pub(crate) fn owned_facet_ids(self) -> FacetIds {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.facets.as_slice().unwrap_or_default().into(),
            Place::Archive(place) => place.facets().map(FacetId::from).collect(),
            Place::Alone(chunk) => chunk.facet_ids.clone().unwrap_or_default(),
        }
    }

    /// Whether the chunk belongs to a facet.
    pub fn is_attributed(self) -> bool {
        self.facet_ids().len() > 0
    }

    /// The type of the chunk; [`ChunkType`](crate::id::ChunkType) has the names of the common ones.
    pub fn chunk_type(self) -> Option<&'a str> {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.chunk_type.as_deref(),
            Place::Archive(place) => place.chunk_type(),
            Place::Alone(chunk) => chunk.chunk_type.as_deref(),
        }
    }

    /// Who speaks it.
    pub fn role(self) -> Option<Role> {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.role,
            Place::Archive(place) => place.role(),
            Place::Alone(chunk) => chunk.role,
        }
    }

    /// Which part of a message it is.
    pub fn part(self) -> PartRef<'a> {
        match self.0 {
            Place::Snapshot { chunk, .. } => PartRef::from(&chunk.part),
            Place::Archive(place) => place.part(),
            Place::Alone(chunk) => PartRef::from(&chunk.part),
        }
    }

    /// Where it stands in the frame's nesting. An archive builds it anew. O(log n) there, and
    /// O(children).
    pub fn structure(self) -> Option<Cow<'a, Structure>> {
        match self.0 {
            Place::Snapshot { chunk, .. } => {
                chunk.rare.as_ref()?.structure.as_ref().map(Cow::Borrowed)
            }
            Place::Archive(place) => place.structure().map(Cow::Owned),
            Place::Alone(chunk) => chunk.structure.as_ref().map(Cow::Borrowed),
        }
    }

    /// Free fields of whoever made the chunk. O(log n) in an archive.
    pub fn metadata(self) -> Option<&'a Object> {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.rare.as_ref()?.metadata.as_deref(),
            Place::Archive(place) => place.metadata(),
            Place::Alone(chunk) => chunk.metadata.as_ref(),
        }
    }

    fn to_owned_with(self, content: &str) -> RenderedChunk {
        match self.0 {
            Place::Snapshot { chunk, .. } => chunk.to_rendered(content),
            Place::Archive(place) => {
                RenderedChunk { content: content.to_owned(), ..place.without_text() }
            }
            Place::Alone(chunk) => chunk.clone(),
        }
    }

    fn debug(self, name: &str, content: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(name);
        if let Some(sequence) = self.sequence() {
            out.field("sequence", &sequence);
        }
        out.field("index", &self.index()).field("range", &self.range());
        if let Some(content) = content {
            out.field("content", &content);
        }
        out.field("tokens", &self.tokens())
            .field("facet_ids", &self.facet_ids())
            .field("chunk_type", &self.chunk_type())
            .field("role", &self.role())
            .field("part", &self.part())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChunkInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.debug("ChunkInfo", None, f)
    }
}

/// A chunk with its text, wherever it lies. Cheap to copy.
///
/// It dereferences to its [`ChunkInfo`], which has all methods but those for text.
///
/// ```
/// use afterimage::{
///     id::Millis,
///     snapshot::{
///         ChunkOptions, ChunkRef, FrameSnapshotBuilder, RenderedChunk, SnapshotArchive,
///         find_chunks_by_facet,
///     },
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Hull at 98 %", ChunkOptions::new().facet("hull"));
/// let snapshot = builder.build(Millis::new(0));
/// let mut archive = SnapshotArchive::new();
/// archive.push(0, &snapshot)?;
/// let view = archive.range(0.into()..=0.into())?;
/// let owned: Vec<RenderedChunk> = snapshot.chunks().map(ChunkRef::to_owned).collect();
///
/// // The same questions are asked of a snapshot, of an archive, and of owned chunks.
/// assert_eq!(find_chunks_by_facet(&snapshot, "hull")[0].content(), "Hull at 98 %");
/// assert_eq!(find_chunks_by_facet(&view, "hull")[0].content(), "Hull at 98 %");
/// assert_eq!(find_chunks_by_facet(&owned, "hull")[0].content, "Hull at 98 %");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct ChunkRef<'a> {
    info: ChunkInfo<'a>,
    content: &'a str,
}

impl<'a> ChunkRef<'a> {
    pub(super) fn of_snapshot(text: &'a str, chunk: &'a Chunk, index: usize) -> Self {
        let info = ChunkInfo(Place::Snapshot { chunk, index });
        Self { info, content: chunk.range.of(text) }
    }

    pub(super) fn archived(place: ArchivedPlace<'a>, content: &'a str) -> Self {
        Self { info: ChunkInfo::archived(place), content }
    }

    /// The rendered text.
    pub fn content(self) -> &'a str {
        self.content
    }

    /// The owned form. Copies the text.
    pub fn to_owned(self) -> RenderedChunk {
        self.info.to_owned_with(self.content)
    }
}

impl<'a> Deref for ChunkRef<'a> {
    type Target = ChunkInfo<'a>;

    fn deref(&self) -> &ChunkInfo<'a> {
        &self.info
    }
}

impl fmt::Debug for ChunkRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.debug("ChunkRef", Some(self.content), f)
    }
}

impl<'a> From<ChunkRef<'a>> for ChunkInfo<'a> {
    fn from(chunk: ChunkRef<'a>) -> Self {
        chunk.info
    }
}

impl<'a> From<&'a RenderedChunk> for ChunkInfo<'a> {
    fn from(chunk: &'a RenderedChunk) -> Self {
        Self(Place::Alone(chunk))
    }
}

impl<'a> From<&'a RenderedChunk> for ChunkRef<'a> {
    fn from(chunk: &'a RenderedChunk) -> Self {
        Self { info: chunk.into(), content: &chunk.content }
    }
}

/// The facets of a chunk, in order: see [`ChunkInfo::facet_ids`].
#[derive(Clone)]
pub struct ChunkFacets<'a>(FacetsIn<'a>);

#[derive(Clone)]
enum FacetsIn<'a> {
    Ids(std::slice::Iter<'a, FacetId>),
    Archive(ArchivedFacets<'a>),
}

impl<'a> Iterator for ChunkFacets<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match &mut self.0 {
            FacetsIn::Ids(ids) => ids.next().map(FacetId::as_str),
            FacetsIn::Archive(facets) => facets.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FacetsIn::Ids(ids) => ids.size_hint(),
            FacetsIn::Archive(facets) => facets.size_hint(),
        }
    }
}

impl ExactSizeIterator for ChunkFacets<'_> {}
impl FusedIterator for ChunkFacets<'_> {}

/// Of the same facets in the same order.
impl PartialEq for ChunkFacets<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(self.clone(), other.clone())
    }
}

impl<T: AsRef<str>, const N: usize> PartialEq<[T; N]> for ChunkFacets<'_> {
    fn eq(&self, other: &[T; N]) -> bool {
        Iterator::eq(self.clone(), other.iter().map(AsRef::as_ref))
    }
}

impl fmt::Debug for ChunkFacets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl Chunk {
    fn to_rendered(&self, content: &str) -> RenderedChunk {
        let rare = self.rare.as_deref().cloned().unwrap_or_default();
        rare.onto(RenderedChunk {
            content: content.to_owned(),
            tokens: self.tokens,
            facet_ids: self.facets.as_slice().map(FacetIds::from),
            chunk_type: self.chunk_type.clone(),
            role: self.role,
            part: Part::clone(&self.part),
            ..RenderedChunk::default()
        })
    }
}
