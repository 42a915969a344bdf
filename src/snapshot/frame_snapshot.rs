use std::{borrow::Cow, fmt, sync::Arc};

use super::{ChunkRef, archive::ArchivedFrame, chunk::Chunk};
use crate::{
    Error, ErrorKind, Result,
    id::Millis,
    json::{Object, Value},
    text::TextRange,
};

/// What a frame rendered to at its moment.
///
/// The chunks tile the text: in order, without gap or overlap. A snapshot never changes.
#[derive(Clone)]
pub struct FrameSnapshot {
    pub(super) body: Body,
    pub(super) total_tokens: u64,
    pub(super) exact_tokens: Option<u64>,
    pub(super) captured_at: Millis,
    pub(super) identity: Option<Arc<SnapshotIdentity>>,
    /// Members of the wire form that are not known here; most snapshots have none.
    pub(super) extra: Option<Box<Object>>,
}

/// Where the text and the chunks of a snapshot are.
#[derive(Clone)]
pub(super) enum Body {
    /// The snapshot owns them.
    Own(OwnBody),
    /// They are in a segment of an archive, which they keep alive.
    Archived(ArchivedFrame),
}

/// A text and the chunks that tile it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnBody {
    pub(super) text: String,
    pub(super) chunks: Vec<Chunk>,
}

/// Wherever the texts and chunks are.
impl PartialEq for FrameSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.total_tokens == other.total_tokens
            && self.exact_tokens == other.exact_tokens
            && self.captured_at == other.captured_at
            && self.identity == other.identity
            && self.extra == other.extra
            && self.text() == other.text()
            && self.own() == other.own()
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "the body is its text and its chunks")]
impl fmt::Debug for FrameSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own();
        f.debug_struct("FrameSnapshot")
            .field("text", &own.text)
            .field("chunks", &own.chunks)
            .field("total_tokens", &self.total_tokens)
            .field("exact_tokens", &self.exact_tokens)
            .field("captured_at", &self.captured_at)
            .field("identity", &self.identity)
            .field("extra", &self.extra)
            .finish()
    }
}

/// What made a snapshot. Two snapshots with the same identity compare byte by byte and token by
/// token; without one, counts are declared by whoever wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotIdentity {
    /// What rendered the text; `None` where a builder was handed it.
    pub rendering: Option<Rendering>,
    /// The token counter's id.
    pub tokenizer: String,
    /// The longest chunk in bytes, where one was set.
    pub max_chunk_bytes: Option<usize>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

/// What rendered the text of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// For whom the frame was rendered.
    pub viewer: String,
    /// The format's id, for example `xml`.
    pub format: String,
    /// The version of the renderer and its formats.
    pub renderer: u32,
}

impl FrameSnapshot {
    /// The whole rendered text.
    pub fn text(&self) -> &str {
        match &self.body {
            Body::Own(own) => &own.text,
            Body::Archived(frame) => frame.text(),
        }
    }

    /// The text and the chunks, copied where an archive has them.
    pub(super) fn own(&self) -> Cow<'_, OwnBody> {
        match &self.body {
            Body::Own(own) => Cow::Borrowed(own),
            Body::Archived(frame) => Cow::Owned(frame.to_own()),
        }
    }

    /// A member of the wire form that is not known here.
    pub(crate) fn unknown_member(&self, name: &str) -> Option<&Value> {
        self.extra.as_deref()?.get(name)
    }

    /// The number of chunks.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Own(own) => own.chunks.len(),
            Body::Archived(frame) => frame.len(),
        }
    }

    /// Whether there is no chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunks in order.
    pub fn chunks(&self) -> Chunks<'_> {
        self.into_iter()
    }

    /// The chunk at `index`, in O(1).
    pub fn chunk(&self, index: usize) -> Option<ChunkRef<'_>> {
        match &self.body {
            Body::Own(own) => {
                own.chunks.get(index).map(|chunk| ChunkRef::of_snapshot(&own.text, chunk, index))
            }
            Body::Archived(frame) => frame.chunk(index),
        }
    }

    /// The chunk that holds the byte at `offset` of the text, in O(log n).
    pub fn chunk_at(&self, offset: usize) -> Option<ChunkRef<'_>> {
        let index = match &self.body {
            Body::Own(own) => own.chunks.partition_point(|chunk| chunk.range.end() <= offset),
            Body::Archived(frame) => frame.index_at(offset),
        };
        self.chunk(index).filter(|chunk| chunk.range().contains(offset))
    }

    /// The sum of the chunks' tokens. A token may cross the border of two chunks, so this is not
    /// the count of the whole text: see [`FrameSnapshot::exact_tokens`].
    pub fn total_tokens(&self) -> u64 {
        self.total_tokens
    }

    /// The tokenizer's own count of the whole text, where it was taken at the capture.
    pub fn exact_tokens(&self) -> Option<u64> {
        self.exact_tokens
    }

    /// When the frame was captured.
    pub fn captured_at(&self) -> Millis {
        self.captured_at
    }

    /// What made the snapshot; `None` where it came from elsewhere and its counts are declared.
    pub fn identity(&self) -> Option<&Arc<SnapshotIdentity>> {
        self.identity.as_ref()
    }

    /// Whether the frame shows something: its text is not blank, whoever wrote it. Reads the text
    /// up to the first character that is not white space.
    pub fn has_content(&self) -> bool {
        !self.text().trim().is_empty()
    }

    /// The same chunks with their counts, without a text.
    pub(crate) fn without_text(&self) -> Self {
        let no_text = |chunk: &Chunk| Chunk { range: TextRange::default(), ..chunk.clone() };
        let chunks = self.own().chunks.iter().map(no_text).collect();
        Self {
            body: Body::Own(OwnBody { text: String::new(), chunks }),
            total_tokens: self.total_tokens,
            exact_tokens: self.exact_tokens,
            captured_at: self.captured_at,
            identity: self.identity.clone(),
            extra: None,
        }
    }

    /// Checks what a snapshot promises.
    ///
    /// # Errors
    /// [`ErrorKind::Tiling`] where the chunks do not tile the text, [`ErrorKind::Sum`] where the
    /// total is not the sum.
    pub(crate) fn check(&self) -> Result<()> {
        let own = self.own();
        let OwnBody { text, chunks } = &*own;
        let mut end = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            let error = |expected: &dyn std::fmt::Display, found: usize| {
                Error::new(
                    ErrorKind::Tiling,
                    format!("chunks do not tile the text: expected {expected}, found byte {found}"),
                )
                .at(|place| place.chunk = Some(index))
            };
            if chunk.range.start() != end {
                return Err(error(&format_args!("a start at byte {end}"), chunk.range.start()));
            }
            if text.get(chunk.range.start()..chunk.range.end()).is_none() {
                return Err(error(&"an end on a character border in the text", chunk.range.end()));
            }
            end = chunk.range.end();
        }
        if end != text.len() {
            let message = format!(
                "chunks do not tile the text: expected the last to end at byte {}, found byte {end}",
                text.len()
            );
            return Err(Error::new(ErrorKind::Tiling, message));
        }
        let sum: u64 = chunks.iter().map(|chunk| chunk.tokens).sum();
        if sum != self.total_tokens {
            let message = format!(
                "the total is not the sum of the chunks' tokens: expected {sum}, found {}",
                self.total_tokens
            );
            return Err(Error::new(ErrorKind::Sum, message));
        }
        Ok(())
    }
}

/// The chunks of a snapshot, in order.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    snapshot: &'a FrameSnapshot,
    range: std::ops::Range<usize>,
}

#[expect(clippy::into_iter_without_iter, reason = "the method is called `chunks`")]
impl<'a> IntoIterator for &'a FrameSnapshot {
    type Item = ChunkRef<'a>;
    type IntoIter = Chunks<'a>;

    fn into_iter(self) -> Chunks<'a> {
        Chunks { snapshot: self, range: 0..self.len() }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = ChunkRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<ChunkRef<'a>> {
        self.snapshot.chunk(self.range.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl DoubleEndedIterator for Chunks<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.snapshot.chunk(self.range.next_back()?)
    }
}

impl ExactSizeIterator for Chunks<'_> {}
impl std::iter::FusedIterator for Chunks<'_> {}
