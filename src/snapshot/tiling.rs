use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    FrameSnapshot, SnapshotIdentity, SnapshotOptions,
    chunk::{Chunk, Facets, Rare, Structure},
    frame_snapshot::{Body, OwnBody},
    split::split,
};
use crate::{
    id::Millis,
    text::TextRange,
    tokens::{CountedText, TokenCounter},
};

/// A text that is being written, and the chunks that tile it so far.
///
/// Whoever writes brings the counter: a canvas and a builder hold it for different lifetimes.
#[derive(Debug)]
pub(crate) struct Tiling {
    options: SnapshotOptions,
    text: String,
    chunks: Vec<Chunk>,
    total_tokens: u64,
}

/// In which chunk a chunk is nested, and how deep that makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nesting {
    pub(crate) level: u32,
    pub(crate) parent: usize,
}

impl Tiling {
    /// A tiling with room for so many chunks and bytes of text.
    pub(crate) fn with_capacity(options: SnapshotOptions, chunks: usize, bytes: usize) -> Self {
        let (text, chunks) = (String::with_capacity(bytes), Vec::with_capacity(chunks));
        Self { options, text, chunks, total_tokens: 0 }
    }

    /// The number of chunks so far.
    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn reserve(&mut self, chunks: usize, bytes: usize) {
        self.chunks.reserve_exact(chunks);
        self.text.reserve(bytes);
    }

    /// Where text is appended that [`Tiling::end_chunk`] then makes a chunk of.
    pub(crate) fn out(&mut self) -> &mut String {
        &mut self.text
    }

    /// Makes one chunk of what was appended since the last one, or several where it is too long;
    /// an empty one where nothing was. `chunk` is handed its range and its tokens.
    #[inline]
    pub(crate) fn end_chunk(
        &mut self,
        counter: &dyn TokenCounter,
        nesting: Option<Nesting>,
        chunk: impl FnOnce(TextRange, u64) -> Chunk,
    ) {
        let start = self.chunks.last().map_or(0, |last| last.range.end());
        let range = TextRange::at(start, self.text.len() - start);
        if self.options.max_chunk_bytes.is_some_and(|max| range.len() > max) {
            return self.add_split(counter, &chunk(range, 0), nesting);
        }
        let tokens = self.count(counter, range);
        if nesting.is_some() || !self.options.attribution || !self.options.metadata {
            return self.register_fitted(chunk(range, tokens), nesting);
        }
        self.total_tokens = self.total_tokens.saturating_add(tokens);
        self.chunks.push(chunk(range, tokens));
    }

    fn add_split(&mut self, counter: &dyn TokenCounter, chunk: &Chunk, nesting: Option<Nesting>) {
        let (max, range) = (self.options.max_chunk_bytes.unwrap_or(usize::MAX), chunk.range);
        let lengths: Vec<usize> = split(range.of(&self.text), max).map(str::len).collect();
        let mut at = range.start();
        for length in lengths {
            let range = TextRange::at(at, length);
            let tokens = self.count(counter, range);
            self.register_fitted(Chunk { range, tokens, ..chunk.clone() }, nesting);
            at = range.end();
        }
    }

    /// Adds a chunk that was counted before; its range is set here.
    pub(super) fn add_counted(&mut self, text: &str, chunk: Chunk, nesting: Option<Nesting>) {
        let range = TextRange::at(self.text.len(), text.len());
        self.text.push_str(text);
        self.register_fitted(Chunk { range, ..chunk }, nesting);
    }

    fn count(&self, counter: &dyn TokenCounter, range: TextRange) -> u64 {
        if range.is_empty() { 0 } else { counter.count(range.of(&self.text)) as u64 }
    }

    /// Takes a chunk whose text has been appended, without what the options leave out.
    fn register_fitted(&mut self, mut chunk: Chunk, nesting: Option<Nesting>) {
        if !self.options.attribution {
            chunk.facets = Facets::Unsaid;
        }
        if !self.options.metadata {
            chunk.rare = chunk.rare.and_then(|rare| Rare { metadata: None, ..*rare }.boxed());
        } else if let Some(nesting) = nesting {
            self.nest(&mut chunk, nesting);
        }
        self.total_tokens = self.total_tokens.saturating_add(chunk.tokens);
        self.chunks.push(chunk);
    }

    /// Writes into the next chunk and into the one that it is nested in that they are.
    fn nest(&mut self, chunk: &mut Chunk, Nesting { level, parent }: Nesting) {
        let index = self.chunks.len();
        let structure = Structure::new(level, Some(parent));
        chunk.rare.get_or_insert_default().structure = Some(structure);
        if let Some(parent) = self.chunks.get_mut(parent) {
            let structure = parent.rare.get_or_insert_default().structure.get_or_insert_default();
            structure.children.get_or_insert_default().push(index);
        }
    }

    /// The snapshot with what made it, and with the exact count of its whole text.
    pub(crate) fn seal(
        self,
        counter: &dyn TokenCounter,
        now: Millis,
        identity: &Arc<SnapshotIdentity>,
    ) -> FrameSnapshot {
        let exact = self.exact_tokens(counter);
        self.build(now, Some(exact), Some(Arc::clone(identity)))
    }

    /// The snapshot, taken at `now`.
    #[inline]
    pub(super) fn build(
        mut self,
        now: Millis,
        exact_tokens: Option<u64>,
        identity: Option<Arc<SnapshotIdentity>>,
    ) -> FrameSnapshot {
        // Slack is given back where it is worth the call.
        if self.text.capacity() > self.text.len() + self.text.len() / 8 + 64 {
            self.text.shrink_to_fit();
        }
        if self.chunks.capacity() > self.chunks.len() + self.chunks.len() / 2 {
            self.chunks.shrink_to_fit();
        }
        FrameSnapshot {
            body: Body::Own(OwnBody { text: self.text, chunks: self.chunks }),
            total_tokens: self.total_tokens,
            exact_tokens,
            captured_at: now,
            identity,
            extra: None,
        }
    }

    /// The exact count of the whole text, from what its chunks count.
    pub(super) fn exact_tokens(&self, counter: &dyn TokenCounter) -> u64 {
        match self.chunks.as_slice() {
            [] => 0,
            [chunk] => chunk.tokens,
            chunks => self.joined_tokens(counter, chunks),
        }
    }

    fn joined_tokens(&self, counter: &dyn TokenCounter, chunks: &[Chunk]) -> u64 {
        let counted = |chunk: &Chunk| CountedText {
            text: chunk.range.of(&self.text),
            tokens: chunk.tokens as usize,
        };
        let parts: SmallVec<[CountedText<'_>; 16]> = chunks.iter().map(counted).collect();
        counter.count_joined(&parts) as u64
    }
}
