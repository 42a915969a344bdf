use std::{ops::Range, sync::Arc};

use super::{
    super::{
        FrameSnapshot, RenderedChunk, SnapshotIdentity,
        chunk::{Chunk, Chunks, Rare},
        wire::check_structure,
    },
    wire::OWN_MEMBERS,
};
use crate::{
    Error, ErrorKind, Result,
    id::{FrameSeq, Millis},
    json::Object,
    text::TextRange,
};

/// A snapshot without the chunks that it shares with the one that it is based on.
///
/// The full snapshot begins with the chunks of the base, or with the first
/// [`IncrementalSnapshot::kept_chunks`] of them, and goes on with those of
/// [`IncrementalSnapshot::delta`].
///
/// ```
/// use afterimage::{
///     id::Millis,
///     snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Are we safe?", ChunkOptions::new().facet("ask-1"));
/// let base = builder.build(Millis::new(0));
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Are we safe?", ChunkOptions::new().facet("ask-1"));
/// builder.add_content("For now.", ChunkOptions::new().facet("speech-1"));
/// let full = builder.build(Millis::new(1_000));
///
/// let incremental = full.since(7, &base)?;
/// assert_eq!(incremental.delta().text(), "For now.");
/// assert_eq!(incremental.cumulative_tokens(), full.total_tokens());
/// assert_eq!(incremental.expand(Some(&base))?, full);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IncrementalSnapshot {
    pub(super) based_on: Option<FrameSeq>,
    /// How many chunks of the base are kept; `None` for all. Never there without a base.
    pub(super) kept: Option<usize>,
    /// What is new, with moment and maker of the full snapshot.
    pub(super) delta: FrameSnapshot,
    pub(super) cumulative_tokens: u64,
    pub(super) exact_tokens: Option<u64>,
    pub(super) has_content: Option<bool>,
    /// Members of the wire form that are not known here.
    pub(super) extra: Option<Box<Object>>,
}

impl FrameSnapshot {
    /// What is new against `base`, the snapshot of the frame `base_sequence`: everything after the
    /// chunks with which both begin. Where `base` has other chunks after these, their number is
    /// recorded, so that any snapshot can be based on any other.
    ///
    /// Chunks are the same where their text and everything that is known of them is, down to the
    /// order of members. Compares the common text and copies the rest.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where an unknown member has the name of one of the incremental form,
    /// [`ErrorKind::Sum`] where the new chunks' tokens exceed 64 bits.
    pub fn since(
        &self,
        base_sequence: impl Into<FrameSeq>,
        base: &FrameSnapshot,
    ) -> Result<IncrementalSnapshot> {
        let both = self.chunks.iter().zip(&base.chunks);
        let kept = both.take_while(|(own, of_base)| is_same(self, own, base, of_base)).count();
        let incremental = self.delta_from(kept)?;
        let kept = (kept < base.chunks.len()).then_some(kept);
        Ok(IncrementalSnapshot { based_on: Some(base_sequence.into()), kept, ..incremental })
    }

    /// The incremental form of a snapshot that is based on no other. Copies its text.
    ///
    /// # Errors
    /// Those of [`FrameSnapshot::since`].
    pub fn to_incremental(&self) -> Result<IncrementalSnapshot> {
        self.delta_from(0)
    }

    /// The chunks from `first` on, based on nothing.
    fn delta_from(&self, first: usize) -> Result<IncrementalSnapshot> {
        let taken = |key: &&&str| self.extra.as_ref().is_some_and(|extra| extra.contains_key(key));
        if let Some(key) = OWN_MEMBERS.iter().find(taken) {
            let expected = "no member that an incremental snapshot has of its own";
            return Err(Error::expected(expected, format_args!("{key:?}")).under(key));
        }
        let mut delta = Growing::default();
        delta.append(self, first..self.chunks.len());
        let total_tokens = delta.tokens()?;
        Ok(IncrementalSnapshot {
            based_on: None,
            kept: None,
            delta: FrameSnapshot {
                text: delta.text,
                chunks: delta.chunks,
                total_tokens,
                exact_tokens: None,
                captured_at: self.captured_at,
                identity: self.identity.clone(),
                extra: None,
            },
            cumulative_tokens: self.total_tokens,
            exact_tokens: self.exact_tokens,
            has_content: Some(self.has_content()),
            extra: self.extra.clone(),
        })
    }
}

impl IncrementalSnapshot {
    /// The frame whose snapshot it is based on; `None` where it is the whole.
    pub fn based_on(&self) -> Option<FrameSeq> {
        self.based_on
    }

    /// How many chunks of the base it begins with, from the first on; `None` for all of them.
    pub fn kept_chunks(&self) -> Option<usize> {
        self.kept
    }

    /// What is new, as a snapshot: its text and chunks, with the sum of their tokens and no exact
    /// count. Positions begin at zero; the indices in the chunks' structure are those in the full
    /// snapshot.
    pub fn delta(&self) -> &FrameSnapshot {
        &self.delta
    }

    /// The running total: the sum of the tokens of all chunks of the full snapshot.
    pub fn cumulative_tokens(&self) -> u64 {
        self.cumulative_tokens
    }

    /// The tokenizer's own count of the whole text of the full snapshot, where it was taken.
    pub fn exact_tokens(&self) -> Option<u64> {
        self.exact_tokens
    }

    /// When the full snapshot was captured.
    pub fn captured_at(&self) -> Millis {
        self.delta.captured_at
    }

    /// What made the full snapshot.
    pub fn identity(&self) -> Option<&Arc<SnapshotIdentity>> {
        self.delta.identity()
    }

    /// The full snapshot, equal to the one that it was taken of. `base` is the full snapshot of
    /// the frame that it is based on, `None` where it is the whole. Copies the text of both.
    ///
    /// That `base` is the right one shows only in the number of its chunks and the sum of their
    /// tokens: another base of the same size is not noticed.
    ///
    /// # Errors
    /// [`ErrorKind::Base`] where a base is missing or is not asked for, or has fewer chunks than
    /// are kept of it; [`ErrorKind::Sum`] where the tokens do not come to the running total;
    /// [`ErrorKind::Shape`] where the chunks' structure does not fit together.
    pub fn expand(&self, base: Option<&FrameSnapshot>) -> Result<FrameSnapshot> {
        let mut whole = Growing::default();
        match (self.based_on, base) {
            (Some(sequence), Some(base)) => {
                let kept = self.kept.unwrap_or(base.chunks.len());
                check_kept(kept, sequence, base.chunks.len())?;
                whole.append(base, 0..kept);
            }
            (Some(sequence), None) => {
                let message =
                    format!("expected the snapshot of frame {sequence} as the base, found none");
                return Err(Error::new(ErrorKind::Base, message));
            }
            (None, Some(_)) => {
                let message = "expected no base, since the snapshot is the whole; found one";
                return Err(Error::new(ErrorKind::Base, message));
            }
            (None, None) => {}
        }
        whole.append(&self.delta, 0..self.delta.chunks.len());
        self.expanded(whole)
    }

    /// The full snapshot of all its chunks.
    pub(super) fn expanded(&self, whole: Growing) -> Result<FrameSnapshot> {
        let total_tokens = whole.tokens()?;
        self.check_total(total_tokens)?;
        check_structure(&whole.chunks)?;
        Ok(FrameSnapshot {
            text: whole.text,
            chunks: whole.chunks,
            total_tokens,
            exact_tokens: self.exact_tokens,
            captured_at: self.delta.captured_at,
            identity: self.delta.identity.clone(),
            extra: self.extra.clone(),
        })
    }

    /// Checks the running total against the sum of all tokens.
    pub(super) fn check_total(&self, sum: u64) -> Result<()> {
        if sum == self.cumulative_tokens {
            return Ok(());
        }
        let message = format!(
            "the running total is not the sum of all chunks' tokens: expected {sum}, found {}",
            self.cumulative_tokens
        );
        Err(Error::new(ErrorKind::Sum, message).under("cumulativeTokens"))
    }
}

/// Checks that a base has as many chunks as are kept of it.
pub(super) fn check_kept(kept: usize, base: FrameSeq, chunks: usize) -> Result<()> {
    if kept <= chunks {
        return Ok(());
    }
    let message =
        format!("expected at most the {chunks} chunks of frame {base} to be kept, found {kept}");
    Err(Error::new(ErrorKind::Base, message).under("keptChunks"))
}

/// A text with its chunks in the making.
#[derive(Debug, Default)]
pub(super) struct Growing {
    text: String,
    chunks: Chunks,
}

impl Growing {
    /// Makes room.
    pub(super) fn reserve(&mut self, chunks: usize, bytes: usize) {
        self.chunks.reserve_exact(chunks);
        self.text.reserve_exact(bytes);
    }

    /// Appends chunks of a snapshot with their text.
    pub(super) fn append(&mut self, from: &FrameSnapshot, chunks: Range<usize>) {
        let chunks = from.chunks.get(chunks).unwrap_or_default();
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { return };
        let (start, at) = (first.range.start(), self.text.len());
        // Chunks tile the text, so theirs is one piece.
        self.text.push_str(TextRange::at(start, last.range.end() - start).of(&from.text));
        self.chunks.extend(chunks.iter().map(|chunk| {
            let range = TextRange::at(at + (chunk.range.start() - start), chunk.range.len());
            Chunk { range, ..chunk.clone() }
        }));
    }

    fn tokens(&self) -> Result<u64> {
        sum_of(&self.chunks)
    }
}

/// The sum of the chunks' tokens.
pub(super) fn sum_of(chunks: &[Chunk]) -> Result<u64> {
    let sum = chunks.iter().try_fold(0_u64, |sum, chunk| sum.checked_add(chunk.tokens));
    sum.ok_or_else(|| Error::new(ErrorKind::Sum, "the chunks' tokens exceed 64 bits"))
}

/// Whether two chunks at the same index are written alike.
fn is_same(own: &FrameSnapshot, a: &Chunk, base: &FrameSnapshot, b: &Chunk) -> bool {
    a == b
        && a.range.of(&own.text) == b.range.of(&base.text)
        && match (&a.rare, &b.rare) {
            // Objects are equal in any order of their members.
            (Some(a), Some(b)) => written(a) == written(b),
            _ => true,
        }
}

fn written(rare: &Rare) -> String {
    rare.clone().onto(RenderedChunk::default()).to_json().to_string()
}
