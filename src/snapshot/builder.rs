use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    FrameSnapshot, SnapshotIdentity,
    chunk::{Chunk, FacetIds, Part, Rare, RenderedChunk, Structure},
    split::split,
};
use crate::{
    id::{ChunkType, FacetId, Millis, Role},
    json::Object,
    text::TextRange,
    tokens::{CountedText, TokenCounter},
};

/// Limits of a snapshot; set when the builder is made.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// Sets the facets that the text represents.
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
    options: SnapshotOptions,
    text: String,
    chunks: Vec<Chunk>,
    total_tokens: u64,
    /// The chunks that are open for nesting, from the outside in.
    nesting: Vec<usize>,
}

impl std::fmt::Debug for FrameSnapshotBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameSnapshotBuilder")
            .field("counter", &self.counter.id())
            .field("options", &self.options)
            .field("text", &self.text)
            .field("chunks", &self.chunks.len())
            .field("total_tokens", &self.total_tokens)
            .finish_non_exhaustive()
    }
}

/// In which chunk a chunk is nested, and how deep that makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nesting {
    pub(crate) level: u32,
    pub(crate) parent: usize,
}

impl<'c> FrameSnapshotBuilder<'c> {
    /// A builder without limits that counts with `counter`.
    pub fn new(counter: &'c dyn TokenCounter) -> Self {
        Self::with_options(counter, SnapshotOptions::default())
    }

    /// A builder with these limits.
    pub fn with_options(counter: &'c dyn TokenCounter, options: SnapshotOptions) -> Self {
        let (text, chunks, nesting) = Default::default();
        Self { counter, options, text, chunks, total_tokens: 0, nesting }
    }

    /// Makes room for `bytes` more of text in `chunks` more chunks, so that a known size costs one
    /// allocation each.
    pub fn reserve(&mut self, chunks: usize, bytes: usize) {
        self.chunks.reserve_exact(chunks);
        self.text.reserve(bytes);
    }

    /// Adds `text`. Counts it, splitting it first where it is longer than a chunk may be; an empty
    /// text adds nothing.
    pub fn add_content(&mut self, text: &str, options: ChunkOptions) {
        if !text.is_empty() {
            let ChunkOptions { facet_ids, chunk_type, role, part, metadata } = options;
            let rare = Rare { metadata, ..Rare::default() }.boxed();
            let chunk = Chunk { facet_ids, chunk_type, role, part, rare, ..Chunk::default() };
            self.add(chunk, self.innermost(), |out| out.push_str(text));
        }
    }

    /// Adds a chunk that was counted before, as it is; of its structure nothing stays, since
    /// positions belong to the snapshot that it came from.
    pub fn add_chunk(&mut self, chunk: RenderedChunk) {
        let range = TextRange::at(self.text.len(), chunk.content.len());
        self.text.push_str(&chunk.content);
        let chunk = RenderedChunk { structure: None, ..chunk }.into_stored(range);
        self.register(chunk, self.innermost());
    }

    /// Adds what `write` appends as one chunk, or as several where it is too long; as an empty
    /// chunk where it appends nothing. [`FrameSnapshotBuilder::nest`] does not count here.
    pub(crate) fn push_written(
        &mut self,
        nesting: Option<Nesting>,
        facet_ids: Option<FacetIds>,
        chunk_type: ChunkType,
        role: Role,
        part: Part,
        write: impl FnOnce(&mut String),
    ) {
        let (range, tokens, rare) = Default::default();
        let (chunk_type, role) = (Some(chunk_type), Some(role));
        let chunk = Chunk { range, tokens, facet_ids, chunk_type, role, part, rare };
        self.add(chunk, nesting, write);
    }

    /// The number of chunks so far.
    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Where what is added now is nested.
    fn innermost(&self) -> Option<Nesting> {
        let parent = *self.nesting.last()?;
        Some(Nesting { level: self.nesting.len() as u32, parent })
    }

    fn add(&mut self, chunk: Chunk, nesting: Option<Nesting>, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        let range = TextRange::at(start, self.text.len() - start);
        match self.options.max_chunk_bytes {
            Some(max) if range.len() > max => {
                let lengths: Vec<usize> = split(range.of(&self.text), max).map(str::len).collect();
                let mut at = start;
                for length in lengths {
                    let range = TextRange::at(at, length);
                    let tokens = self.count(range);
                    self.register(Chunk { range, tokens, ..chunk.clone() }, nesting);
                    at = range.end();
                }
            }
            _ => self.register(Chunk { tokens: self.count(range), range, ..chunk }, nesting),
        }
    }

    fn count(&self, range: TextRange) -> u64 {
        if range.is_empty() { 0 } else { self.counter.count(range.of(&self.text)) as u64 }
    }

    /// Takes a chunk whose text has been appended.
    fn register(&mut self, mut chunk: Chunk, nesting: Option<Nesting>) {
        let index = self.chunks.len();
        if !self.options.attribution {
            chunk.facet_ids = None;
        }
        if !self.options.metadata {
            chunk.rare = chunk.rare.and_then(|rare| Rare { metadata: None, ..*rare }.boxed());
        } else if let Some(Nesting { level, parent }) = nesting {
            let structure = Structure::new(level, Some(parent));
            chunk.rare.get_or_insert_default().structure = Some(structure);
            if let Some(parent) = self.chunks.get_mut(parent) {
                let structure =
                    parent.rare.get_or_insert_default().structure.get_or_insert_default();
                structure.children.get_or_insert_default().push(index);
            }
        }
        self.total_tokens = self.total_tokens.saturating_add(chunk.tokens);
        self.chunks.push(chunk);
    }

    /// Nests what follows in the chunk that was added last, until [`FrameSnapshotBuilder::unnest`].
    /// Without a chunk it does nothing.
    pub fn nest(&mut self) {
        self.nesting.extend(self.chunks.len().checked_sub(1));
    }

    /// Ends the innermost nesting. Does nothing where none is open.
    pub fn unnest(&mut self) {
        self.nesting.pop();
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The snapshot, taken at `now`.
    pub fn build(mut self, now: Millis) -> FrameSnapshot {
        // Slack is given back where it is worth the call.
        if self.text.capacity() > self.text.len() + self.text.len() / 8 + 64 {
            self.text.shrink_to_fit();
        }
        if self.chunks.capacity() > self.chunks.len() + self.chunks.len() / 2 {
            self.chunks.shrink_to_fit();
        }
        FrameSnapshot {
            text: self.text,
            chunks: self.chunks,
            total_tokens: self.total_tokens,
            exact_tokens: None,
            captured_at: now,
            identity: None,
            extra: None,
        }
    }

    /// The snapshot with what made it, and with the exact count of its whole text.
    pub(crate) fn seal(self, now: Millis, identity: Arc<SnapshotIdentity>) -> FrameSnapshot {
        let exact = match self.chunks.as_slice() {
            [] => 0,
            [chunk] => chunk.tokens,
            chunks => {
                let counted = |chunk: &Chunk| CountedText {
                    text: chunk.range.of(&self.text),
                    tokens: chunk.tokens as usize,
                };
                let parts: SmallVec<[CountedText<'_>; 16]> = chunks.iter().map(counted).collect();
                self.counter.count_joined(&parts) as u64
            }
        };
        FrameSnapshot { exact_tokens: Some(exact), identity: Some(identity), ..self.build(now) }
    }
}
