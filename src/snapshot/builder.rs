use std::sync::Arc;

use super::{
    FrameSnapshot, SnapshotIdentity,
    chunk::{Chunk, FacetIds, Part, Rare, RenderedChunk},
    tiling::{Nesting, Tiling},
};
use crate::{
    id::{ChunkType, FacetId, Millis, Role},
    json::Object,
    text::TextRange,
    tokens::TokenCounter,
};

/// Limits of a snapshot; set when the builder is made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SnapshotOptions {
    /// The longest chunk in bytes; a longer text becomes several. None by default.
    pub max_chunk_bytes: Option<usize>,
    /// Whether chunks keep their facets. On by default.
    pub attribution: bool,
    /// Whether chunks keep structure and metadata. On by default.
    pub metadata: bool,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { max_chunk_bytes: None, attribution: true, metadata: true }
    }
}

/// What is known of a text that is added to a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkOptions {
    facet_ids: Option<FacetIds>,
    chunk_type: Option<ChunkType>,
    role: Option<Role>,
    part: Part,
    metadata: Option<Object>,
}

impl ChunkOptions {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a facet that the text represents; call it again for several.
    pub fn facet(mut self, id: impl Into<FacetId>) -> Self {
        self.facet_ids.get_or_insert_default().push(id.into());
        self
    }

    /// Sets the facets that the text represents. O(ids).
    pub fn facets(mut self, ids: impl IntoIterator<Item = FacetId>) -> Self {
        self.facet_ids = Some(ids.into_iter().collect());
        self
    }

    /// The type of the chunk.
    pub fn chunk_type(mut self, chunk_type: impl Into<ChunkType>) -> Self {
        self.chunk_type = Some(chunk_type.into());
        self
    }

    /// Who speaks it.
    pub fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Which part of a message it is.
    pub fn part(mut self, part: Part) -> Self {
        self.part = part;
        self
    }

    /// Free fields to keep with the chunk.
    pub fn metadata(mut self, metadata: Object) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// Builds a [`FrameSnapshot`] from pieces of text in the order in which the model reads them.
///
/// ```
/// use afterimage::{
///     id::{Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// let options = ChunkOptions::new().facet("event-1").chunk_type("event").role(Role::User);
/// builder.add_content("User input", options);
/// let snapshot = builder.build(Millis::new(1_763_683_200_000));
///
/// assert_eq!(snapshot.text(), "User input");
/// assert_eq!(snapshot.chunk(0).unwrap().facet_ids(), ["event-1"]);
/// ```
pub struct FrameSnapshotBuilder<'c> {
    counter: &'c dyn TokenCounter,
    tiling: Tiling,
    /// The chunks that are open for nesting, from the outside in.
    nesting: Vec<usize>,
    max_chunk_bytes: Option<usize>,
    /// Whether `counter` counted all chunks.
    is_counted: bool,
}

impl std::fmt::Debug for FrameSnapshotBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameSnapshotBuilder")
            .field("counter", &self.counter.id())
            .field("tiling", &self.tiling)
            .finish_non_exhaustive()
    }
}

impl<'c> FrameSnapshotBuilder<'c> {
    /// A builder without limits that counts with `counter`.
    pub fn new(counter: &'c dyn TokenCounter) -> Self {
        Self::with_options(counter, SnapshotOptions::default())
    }

    /// A builder with these limits.
    pub fn with_options(counter: &'c dyn TokenCounter, options: SnapshotOptions) -> Self {
        Self {
            counter,
            max_chunk_bytes: options.max_chunk_bytes,
            tiling: Tiling::with_capacity(options, 0, 0),
            nesting: Vec::new(),
            is_counted: true,
        }
    }

    /// Makes room for `bytes` more of text in `chunks` more chunks, so that a known size costs one
    /// allocation each.
    pub fn reserve(&mut self, chunks: usize, bytes: usize) {
        self.tiling.reserve(chunks, bytes);
    }

    /// Adds `text`. Counts it, splitting it first where it is longer than a chunk may be; an empty
    /// text adds nothing. O(text).
    pub fn add_content(&mut self, text: &str, options: ChunkOptions) {
        if !text.is_empty() {
            let ChunkOptions { facet_ids, chunk_type, role, part, metadata } = options;
            let rare = Rare { metadata: metadata.map(Box::new), ..Rare::default() }.boxed();
            let facets = facet_ids.into();
            let nesting = self.innermost();
            self.tiling.out().push_str(text);
            self.tiling.end_chunk(self.counter, nesting, |range, tokens| Chunk {
                range,
                tokens,
                facets,
                chunk_type,
                role,
                part,
                rare,
            });
        }
    }

    /// Adds a chunk that was counted before, as it is; of its structure nothing stays, since
    /// positions belong to the snapshot that it came from. The counts of the snapshot are then
    /// declared: nobody knows which tokenizer counted all of them. Copies the text: O(text).
    pub fn add_chunk(&mut self, mut chunk: RenderedChunk) {
        let (text, nesting) = (std::mem::take(&mut chunk.content), self.innermost());
        chunk.structure = None;
        self.is_counted = false;
        self.tiling.add_counted(&text, chunk.into_stored(TextRange::default()), nesting);
    }

    /// Where what is added now is nested.
    fn innermost(&self) -> Option<Nesting> {
        let parent = *self.nesting.last()?;
        Some(Nesting { level: self.nesting.len() as u32, parent })
    }

    /// Nests what follows in the chunk that was added last, until [`FrameSnapshotBuilder::unnest`].
    /// Without a chunk it does nothing.
    pub fn nest(&mut self) {
        self.nesting.extend(self.tiling.len().checked_sub(1));
    }

    /// Ends the innermost nesting. Does nothing where none is open.
    pub fn unnest(&mut self) {
        self.nesting.pop();
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.tiling.len() == 0
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        self.tiling.text()
    }

    /// The snapshot, taken at `now`. Its identity names the tokenizer that counted its chunks.
    /// O(chunks).
    pub fn build(self, now: Millis) -> FrameSnapshot {
        let identity = self.is_counted.then(|| {
            Arc::new(SnapshotIdentity {
                rendering: None,
                tokenizer: self.counter.id().to_owned(),
                max_chunk_bytes: self.max_chunk_bytes,
                extra: Object::new(),
            })
        });
        self.tiling.build(now, None, identity)
    }
}
