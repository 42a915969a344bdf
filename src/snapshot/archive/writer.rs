use std::{
    ops::{Deref, RangeInclusive},
    sync::Arc,
};

#[cfg(feature = "storage")]
use super::store::{StoreFiles, Writers};
use super::{
    ArchiveReader, SealedSegment, Totals,
    directory::TextOf,
    state::{CountedBy, Cursor, Segment},
};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    snapshot::{FrameSnapshot, Part},
};

/// The longest text of a frame.
const MOST_BYTES: usize = u32::MAX as usize;
/// The most bytes of ids, types and names in a frame.
const MOST_NAME_BYTES: usize = 1 << 30;
/// A segment is sealed when it holds more than this, so that sealing moves little.
const MANY_NAME_BYTES: usize = 128 << 10;
const MANY_NAMES: usize = 4_096;
const MANY_CHUNKS: usize = 8_192;
/// While readers hold the open segment, it is copied where it is smaller than this, else sealed.
const COPIED_BYTES: usize = 64 << 10;
const COPIED_FRAMES: usize = 64;

/// How an archive is laid out; fixed once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ArchiveOptions {
    /// A segment takes no frame beyond this many bytes of text; a larger frame is a segment of its
    /// own. 256 KiB by default, 1 GiB at most.
    pub segment_bytes: usize,
    /// A segment takes no more frames than this. 256 by default, 65,536 at most.
    pub segment_frames: usize,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self { segment_bytes: 256 << 10, segment_frames: 256 }
    }
}

/// All frame snapshots of a history, in one arena: the text in large segments that never change,
/// chunks as ranges of it, ids once each, running sums of tokens and bytes, and for each facet the
/// places of its chunks.
///
/// It dereferences to an [`ArchiveReader`], which answers the questions. A reader that is
/// [taken](ArchiveReader::clone) sees the frames that were there at that moment, on any thread and
/// for as long as it likes, while the archive takes more.
///
/// ```
/// use afterimage::{
///     id::{Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder, SnapshotArchive},
///     tokens::Chars4,
/// };
///
/// let mut archive = SnapshotArchive::new();
/// for sequence in 0..100_u64 {
///     let mut builder = FrameSnapshotBuilder::new(&Chars4);
///     let options = ChunkOptions::new().facet("hull").chunk_type("state").role(Role::User);
///     builder.add_content(&format!("Hull at {sequence} %\n"), options);
///     archive.push(sequence, &builder.build(Millis::new(0)))?;
/// }
/// let range = archive.range(40.into()..=41.into())?;
/// assert_eq!(range.text().join(), "Hull at 40 %\nHull at 41 %\n");
/// assert_eq!(range.chunks().next().unwrap().content(), "Hull at 40 %\n");
/// assert_eq!(archive.chunks_of("hull")?.len(), 100);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SnapshotArchive {
    pub(super) reader: ArchiveReader,
    pub(super) options: ArchiveOptions,
    /// Where it is stored.
    #[cfg(feature = "storage")]
    pub(super) home: Option<Home>,
}

/// The directory that an archive belongs to.
#[cfg(feature = "storage")]
#[derive(Debug)]
pub(super) struct Home {
    pub(super) store: Arc<StoreFiles>,
    /// How many segments and commits are in it.
    pub(super) segments: u32,
    pub(super) records: u64,
    /// What wrote last, so that the next append need not look for the ends of the files.
    pub(super) writers: Option<Writers>,
}

impl Deref for SnapshotArchive {
    type Target = ArchiveReader;

    fn deref(&self) -> &ArchiveReader {
        &self.reader
    }
}

impl SnapshotArchive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty archive that is laid out like this; what is beyond a limit counts as the limit.
    pub fn with_options(options: ArchiveOptions) -> Self {
        let options = ArchiveOptions {
            segment_bytes: options.segment_bytes.min(1 << 30),
            segment_frames: options.segment_frames.min(1 << 16),
        };
        Self { options, ..Self::default() }
    }

    /// A reader of what is there now. Cheap to clone, and may be sent to other threads.
    ///
    /// While readers of the last state are alive, the next push copies up to 64 KiB of text and
    /// the tables that belong to it, once.
    pub fn reader(&self) -> ArchiveReader {
        self.reader.clone()
    }

    /// Adds the snapshot of a frame. Copies its text once.
    ///
    /// Runs in O(text + chunks) time, whatever the archive holds: no push moves more than 1 MiB
    /// besides.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the sequence is not greater than the last,
    /// [`ErrorKind::Tokenizer`] where the tokens were counted by another tokenizer than those that
    /// are there, [`ErrorKind::Limit`] where the text is longer than 4 GiB, its ids longer than
    /// 1 GiB, or the tokens of all frames no longer fit 64 bits. The archive is then as it was.
    pub fn push(&mut self, sequence: impl Into<FrameSeq>, snapshot: &FrameSnapshot) -> Result<()> {
        let sequence = sequence.into();
        self.check(sequence, snapshot).map_err(|e| e.at_frame(sequence.get()))?;
        let state = Arc::make_mut(&mut self.reader.state);
        let Segment { tables, text } = &*state.open;
        let (bytes, frames) = (text.held().len(), tables.frames.len());
        let is_full_of_text = bytes + snapshot.text().len() > self.options.segment_bytes;
        let is_full = is_full_of_text
            || frames >= self.options.segment_frames
            || tables.chunks.len() > MANY_CHUNKS
            || tables.names() > MANY_NAMES
            || tables.name_bytes() > MANY_NAME_BYTES
            || sequence.get() - tables.first_sequence > u64::from(u32::MAX);
        let is_read = || Arc::strong_count(&state.open) > 1;
        let is_large = bytes >= COPIED_BYTES || frames >= COPIED_FRAMES;
        if frames > 0 && (is_full || is_large && is_read()) {
            state.seal();
            if is_full_of_text {
                // So will the next one be.
                let room = self.options.segment_bytes.max(snapshot.text().len());
                Arc::make_mut(&mut state.open).text.reserve(room);
            }
        }
        if state.counted_by == CountedBy::Nothing {
            state.counted_by = CountedBy::of(snapshot);
        }
        let Segment { tables, text } = Arc::make_mut(&mut state.open);
        tables.push(sequence, snapshot);
        text.push(snapshot.text(), self.options.segment_bytes);
        state.last_sequence = Some(sequence);
        Ok(())
    }

    /// Checks that a snapshot may be pushed.
    fn check(&self, sequence: FrameSeq, snapshot: &FrameSnapshot) -> Result<()> {
        let state = &self.reader.state;
        if let Some(last) = state.last_sequence.filter(|last| sequence <= *last) {
            let message =
                format!("sequences rise: expected one greater than {last}, found {sequence}");
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        let limit = |what: &str| Err(Error::new(ErrorKind::Limit, what));
        if snapshot.text().len() > MOST_BYTES {
            return limit("the text of a frame is at most 4 GiB long");
        }
        let names: usize = snapshot.own().chunks.iter().map(names_of).sum();
        if names > MOST_NAME_BYTES {
            return limit("the ids and names in a frame are at most 1 GiB long");
        }
        if state.totals().tokens.checked_add(snapshot.total_tokens()).is_none() {
            return limit("the tokens of all frames do not fit 64 bits");
        }
        if !state.counted_by.takes(snapshot) {
            return Err(mixed(&state.counted_by, &CountedBy::of(snapshot)));
        }
        Ok(())
    }

    /// Gives back what is reserved for frames to come, some hundred kilobytes: for histories that
    /// are finished. Ends the segment that takes frames; more frames begin a new one. O(text and
    /// chunks of that segment).
    pub fn shrink_to_fit(&mut self) {
        let state = Arc::make_mut(&mut self.reader.state);
        state.seal();
        state.open = Arc::default();
    }

    /// An archive of these segments, whose frames follow each other. Shares their texts.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] where several tokenizers counted the tokens.
    pub(crate) fn of_segments(segments: impl Iterator<Item = SealedSegment>) -> Result<Self> {
        let mut archive = Self::new();
        let state = Arc::make_mut(&mut archive.reader.state);
        for SealedSegment { tables, text } in segments {
            let counted = tables.identities.iter().map(|(_, identity)| match identity {
                None => CountedBy::Declared,
                Some(identity) => CountedBy::Tokenizer(identity.tokenizer.as_str().into()),
            });
            for counted in counted {
                if state.counted_by == CountedBy::Nothing {
                    state.counted_by = counted;
                } else if state.counted_by != counted {
                    return Err(mixed(&state.counted_by, &counted).at_frame(tables.first_sequence));
                }
            }
            state.has_gaps |= !text.is_whole();
            state.last_sequence = Some(tables.sequence(tables.frames.len() as u32 - 1));
            state.push_sealed(tables, text);
        }
        Ok(archive)
    }

    /// Drops the text of the frames from `range.start()` to `range.end()`, both included, and
    /// gives its memory back; what is known of their chunks stays. Returns what was dropped, of
    /// frames that had text. O(frames in the range, and the text that stays at its ends).
    ///
    /// Readers that were taken before still hold the text, and so the memory. Copies the text that
    /// stays in the segments at both ends of the range. What a directory holds already stays there,
    /// and is there again when the archive is opened.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range runs backwards. Text in a store is not dropped:
    /// [`ErrorKind::Stored`].
    pub fn drop_text(&mut self, range: RangeInclusive<FrameSeq>) -> Result<Totals> {
        let (from, to) = self.reader.cursors(&range)?;
        if from.before == to.before {
            return Ok(Totals::default());
        }
        let state = Arc::make_mut(&mut self.reader.state);
        let open = state.open_segment();
        if to.segment >= open && to.frame > 0 {
            state.seal();
        }
        let is_stored = |segment: &u32| state.text_here(*segment).is_none();
        if let Some(segment) = segments(from, to).find(is_stored) {
            let sequence = state.tables(segment)?.sequence(0);
            let message = "the text is in a store, and takes no memory";
            return Err(Error::new(ErrorKind::Stored, message).at_frame(sequence.get()));
        }
        let mut dropped = Totals::default();
        for segment in segments(from, to) {
            let tables = state.loaded(segment);
            let frames = tables.frames.len() as u32;
            let first = if segment == from.segment { from.frame } else { 0 };
            let end = if segment == to.segment { to.frame } else { frames };
            let Some(text) = state.text_here(segment) else { continue };
            for frame in first..end {
                let (before, row) = (tables.before(frame), tables.before(frame + 1));
                let len = row.text_end - before.text_end;
                if len > 0 && text.get(before.text_end..row.text_end).is_some() {
                    dropped.frames += 1;
                    dropped.chunks += u64::from(row.chunk_end - before.chunk_end);
                    dropped.bytes += u64::from(len);
                    dropped.tokens += row.tokens_end - before.tokens_end;
                }
            }
            let gone = tables.before(first).text_end..tables.before(end).text_end;
            let left = text.without(tables.before(frames).text_end, &gone);
            if let Some(entry) = state.sealed.get_mut(segment) {
                entry.text = TextOf::Memory(Arc::new(left));
            }
        }
        state.has_gaps = true;
        Ok(dropped)
    }
}

fn mixed(expected: &CountedBy, found: &CountedBy) -> Error {
    let message =
        format!("an archive holds the counts of one tokenizer: expected {expected}, found {found}");
    Error::new(ErrorKind::Tokenizer, message)
}

/// The segments between two places.
pub(super) fn segments(from: Cursor, to: Cursor) -> std::ops::Range<u32> {
    from.segment..to.segment + u32::from(to.frame > 0)
}

/// The bytes of ids, types and names of a chunk.
fn names_of(chunk: &crate::snapshot::chunk::Chunk) -> usize {
    let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let part = match &chunk.part {
        Part::Call { id, name } => text(id) + name.len(),
        Part::Result { id } => text(id),
        _ => 0,
    };
    let facets: usize = chunk.facets.as_slice().unwrap_or_default().iter().map(|id| id.len()).sum();
    facets + part + chunk.chunk_type.as_ref().map_or(0, |name| name.len())
}
