use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

#[cfg(feature = "storage")]
pub(super) use super::store::Places;
use super::{
    directory::{Directory, Entry, TablesOf, TextOf, Totals},
    frame_rows::{self, FrameRow},
    index::Index,
    open_tables::OpenTables,
    sealed_tables::SealedTables,
    tables::Tables,
    text::SegmentText,
};
use crate::{Error, ErrorKind, Result, id::FrameSeq, snapshot::FrameSnapshot};

/// From so many bytes of text on, room for a whole segment is reserved at once.
const RESERVE_FROM: u64 = 12 << 20;

/// So many questions about facets share the indexing of all segments in memory: none of them takes
/// much longer than a search.
const QUESTIONS: u32 = 16;

/// What an archive holds at one moment. Cloning shares everything.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) sealed: Directory,
    /// The segment that takes frames.
    pub(super) open: Arc<Segment>,
    /// What is sealed.
    pub(super) sealed_totals: Totals,
    pub(super) last_sequence: Option<FrameSeq>,
    /// Where the chunks of a facet are. It only grows: segments that came later are passed over.
    pub(super) index: Arc<RwLock<Index>>,
    pub(super) counted_by: CountedBy,
    pub(super) store: Option<Arc<dyn Store>>,
    /// Whether some text was dropped, so that it must be looked for.
    pub(super) has_gaps: bool,
}

/// What counted the tokens of all chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// There is no chunk.
    #[default]
    Nothing,
    /// Whoever wrote them declared them.
    Declared,
    Tokenizer(Arc<str>),
}

impl CountedBy {
    pub(super) fn of(snapshot: &FrameSnapshot) -> Self {
        match snapshot.identity() {
            _ if snapshot.is_empty() => Self::Nothing,
            None => Self::Declared,
            Some(identity) => Self::Tokenizer(identity.tokenizer.as_str().into()),
        }
    }

    /// Whether `snapshot` may be added.
    pub(super) fn takes(&self, snapshot: &FrameSnapshot) -> bool {
        match (self, snapshot.identity()) {
            _ if snapshot.is_empty() => true,
            (Self::Nothing, _) | (Self::Declared, None) => true,
            (Self::Tokenizer(name), Some(identity)) => **name == *identity.tokenizer,
            (Self::Declared, Some(_)) | (Self::Tokenizer(_), None) => false,
        }
    }
}

impl fmt::Display for CountedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no counts"),
            Self::Declared => f.write_str("declared counts"),
            Self::Tokenizer(name) => write!(f, "counts of {name}"),
        }
    }
}

/// The frames that still gain neighbours.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub(super) tables: OpenTables,
    pub(super) text: SegmentText,
}

/// Without storage no segment is in a store.
#[cfg(not(feature = "storage"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {}

/// Where segments are read from that are not in memory.
pub(super) trait Store: fmt::Debug + Send + Sync {
    /// The tables of a segment that holds so much.
    fn tables(&self, places: Places, own: Totals) -> Result<Arc<SealedTables>>;
    fn text(&self, places: Places, tables: &Tables) -> Result<Arc<SegmentText>>;
}

/// A place between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) segment: u32,
    /// The frame in the segment before which it is.
    pub(super) frame: u32,
    /// What is before it.
    pub(super) before: Totals,
}

/// Where a frame is, as far as is known without tables.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrameLookup {
    At(Cursor),
    /// In this segment or right after it: the first frame from this sequence on.
    In(u32, u64),
}

impl State {
    /// The number of the segment that takes frames.
    pub(super) fn open_segment(&self) -> u32 {
        self.sealed.len() as u32
    }

    pub(super) fn totals(&self) -> Totals {
        add(self.sealed_totals, &self.open.tables, self.open.tables.frames.len() as u32)
    }

    /// The tables of a segment, read from the store where they are not here.
    pub(super) fn tables(&self, segment: u32) -> Result<&Tables> {
        match self.sealed.get(segment) {
            Some(entry) => self.sealed_tables(segment, entry).map(|tables| &**tables),
            None => Ok(&self.open.tables),
        }
    }

    /// The tables of a segment that is sealed, which `entry` is of.
    fn sealed_tables<'s>(&self, segment: u32, entry: &'s Entry) -> Result<&'s SealedTables> {
        match &entry.tables {
            TablesOf::Memory(tables) => Ok(tables),
            TablesOf::Store(cell) => {
                if cell.get().is_none() {
                    let tables = self.read_tables(segment)?;
                    // Where another thread was faster, its tables are the same.
                    let _ = cell.set(tables);
                }
                cell.get().map(|tables| &**tables).ok_or_else(missing)
            }
        }
    }

    /// Checks how a facet's chunks are found in a segment that is sealed.
    pub(super) fn check_facets(&self, segment: u32) -> Result<()> {
        match self.sealed.get(segment) {
            Some(entry) => self.sealed_tables(segment, entry)?.check_facets(),
            None => Ok(()),
        }
    }

    /// The chunks of a facet in a segment, rising.
    pub(super) fn chunks_of(&self, segment: u32, facet: &str, hash: u64) -> Result<Cow<'_, [u32]>> {
        match self.sealed.get(segment) {
            Some(entry) => {
                let tables = self.sealed_tables(segment, entry)?;
                Ok(Cow::Borrowed(tables.chunks_of(facet, hash)))
            }
            None => Ok(Cow::Owned(self.open.tables.chunks_of(facet, hash))),
        }
    }

    /// The tables of a segment from the store, which agree with what is known of it.
    fn read_tables(&self, segment: u32) -> Result<Arc<SealedTables>> {
        let before = self.before(segment);
        let own = self.before(segment + 1).since(before);
        let tables = self.store()?.tables(self.places(segment)?, own)?;
        let frames = tables.frames.len() as u32;
        let last = tables.sequence(frames.saturating_sub(1)).get();
        let next = self.sealed.get(segment + 1).map(|next| next.first_sequence);
        let is_within = match next {
            Some(next) => last < next,
            None => self.last_sequence.is_some_and(|end| last <= end.get()),
        };
        let first = self.sealed.get(segment).map(|entry| entry.first_sequence);
        let is_known = add(before, &tables, frames) == self.before(segment + 1)
            && first == Some(tables.first_sequence)
            && is_within;
        if !is_known {
            let message = format!("the tables of segment {segment} are not those that it had");
            let error = Error::new(ErrorKind::Damaged, message);
            return Err(error.at_frame(first.unwrap_or_default()));
        }
        Ok(tables)
    }

    /// The tables of a segment that were asked for before.
    pub(super) fn loaded(&self, segment: u32) -> &Tables {
        match self.sealed.get(segment).map(|entry| &entry.tables) {
            Some(TablesOf::Memory(tables)) => tables,
            Some(TablesOf::Store(cell)) => cell.get().map_or(&self.open.tables, |tables| tables),
            None => &self.open.tables,
        }
    }

    /// The text of a segment that is in memory.
    pub(super) fn text_here(&self, segment: u32) -> Option<&SegmentText> {
        match self.sealed.get(segment).map(|entry| &entry.text) {
            Some(TextOf::Memory(text)) => Some(text),
            Some(TextOf::Store) => None,
            None => Some(&self.open.text),
        }
    }

    /// The text of a segment from the store.
    pub(super) fn text_from_store(&self, segment: u32) -> Result<Arc<SegmentText>> {
        self.store()?.text(self.places(segment)?, self.tables(segment)?)
    }

    fn store(&self) -> Result<&Arc<dyn Store>> {
        self.store.as_ref().ok_or_else(missing)
    }

    /// Where a segment is in the store.
    fn places(&self, segment: u32) -> Result<Places> {
        let entry = self.sealed.get(segment);
        entry.and_then(|entry| entry.places).ok_or_else(|| {
            let first = entry.map_or(0, |entry| entry.first_sequence);
            let message = format!("what was known of segment {segment} is damaged");
            Error::new(ErrorKind::Damaged, message).at_frame(first)
        })
    }

    /// What all segments before this one hold.
    pub(super) fn before(&self, segment: u32) -> Totals {
        self.sealed.get(segment).map_or(self.sealed_totals, |entry| entry.before)
    }

    /// Where the first frame is whose sequence is not below `sequence`, as far as is known without
    /// the tables. Runs in O(log n) time over the segments.
    pub(super) fn find(&self, sequence: u64) -> FrameLookup {
        let open = &self.open.tables;
        let mut sealed = self.sealed.beginning_by(sequence) as u32;
        let begins_by = |segment: u32| {
            self.sealed.get(segment).is_some_and(|entry| entry.first_sequence == sequence)
        };
        if sealed == self.open_segment()
            && !open.frames.is_empty()
            && open.first_sequence <= sequence
        {
            return FrameLookup::In(sealed, sequence);
        }
        let Some(last) = sealed.checked_sub(1) else { return FrameLookup::In(0, sequence) };
        if !begins_by(last) {
            return FrameLookup::In(last, sequence);
        }
        // Of segments that are lost, several may begin with the same.
        sealed = last;
        while sealed > 0 && begins_by(sealed - 1) {
            sealed -= 1;
        }
        FrameLookup::At(Cursor { segment: sealed, frame: 0, before: self.before(sealed) })
    }

    /// The place before the frame that was found.
    pub(super) fn cursor(&self, found: FrameLookup) -> Result<Cursor> {
        let (segment, sequence) = match found {
            FrameLookup::At(cursor) => return Ok(cursor),
            FrameLookup::In(segment, sequence) => (segment, sequence),
        };
        let entry = self.sealed.get(segment);
        // Most often the rows of the frames are all that is read.
        let shared =
            entry.and_then(|entry| Some((entry.first_sequence, entry.frames.as_ref()?.as_slice())));
        let (first, rows) = if let Some(shared) = shared {
            shared
        } else {
            let tables = self.tables(segment)?;
            (tables.first_sequence, tables.frames.as_slice())
        };
        let frame = sequence.checked_sub(first).map_or(0, |at| frame_rows::frame_from(rows, at));
        let before = plus(self.before(segment), frame, frame_rows::before(rows, frame));
        if (frame as usize) < rows.len() || segment == self.open_segment() {
            Ok(Cursor { segment, frame, before })
        } else {
            Ok(Cursor { segment: segment + 1, frame: 0, before })
        }
    }

    pub(super) fn end(&self) -> Cursor {
        let frame = self.open.tables.frames.len() as u32;
        Cursor { segment: self.open_segment(), frame, before: self.totals() }
    }

    /// Adds segments to the index that it lacks: all that are in a store, and a part of those in
    /// memory, which are soon searched. Nobody waits for a lock while one is read.
    fn fill_index(&self) {
        let mut left = self.open_segment().div_ceil(QUESTIONS);
        loop {
            let read = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let segment = read.segments;
            drop(read);
            if segment >= self.open_segment() {
                return;
            }
            // What is not in memory is only passed through, and need not stay.
            let tables = match self.sealed.get(segment).map(|entry| &entry.tables) {
                Some(TablesOf::Memory(_)) if left == 0 => return,
                Some(TablesOf::Memory(tables)) => {
                    left -= 1;
                    Ok(Arc::clone(tables))
                }
                Some(TablesOf::Store(cell)) => match cell.get() {
                    Some(tables) => Ok(Arc::clone(tables)),
                    None => self.read_tables(segment),
                },
                None => return,
            };
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            if index.segments != segment {
                // Another reader was faster.
                continue;
            }
            match tables {
                Ok(tables) => index.add_segment(segment, &tables),
                Err(_) => index.add_unknown(segment),
            }
        }
    }

    /// Seals the segment that takes frames and begins a new one.
    pub(super) fn seal(&mut self) {
        if self.open.tables.frames.is_empty() {
            return;
        }
        let Segment { tables, mut text } = Arc::unwrap_or_clone(std::mem::take(&mut self.open));
        let tables = tables.seal();
        text.shrink_to_fit();
        let number = self.open_segment();
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        // Else it is filled when a facet is first asked for.
        if index.segments == number {
            index.add_segment(number, &tables);
        }
        drop(index);
        // In a small archive what is reserved would be a good part of what it takes.
        if self.sealed_totals.bytes >= RESERVE_FROM {
            Arc::make_mut(&mut self.open).tables.reserve_like(&tables);
        }
        self.push_sealed(Arc::new(tables), Arc::new(text));
    }

    /// Adds a segment that is sealed, after all others.
    pub(super) fn push_sealed(&mut self, tables: Arc<SealedTables>, text: Arc<SegmentText>) {
        let totals = add(self.sealed_totals, &tables, tables.frames.len() as u32);
        self.sealed.push(Entry::in_memory(self.sealed_totals, tables, text));
        self.sealed_totals = totals;
    }

    /// The segments from `first` to `last` that may hold chunks of the facet with this print,
    /// rising.
    pub(super) fn segments_of(&self, facet: &str, print: u32, first: u32, last: u32) -> Vec<u32> {
        let open = self.open_segment();
        self.fill_index();
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let known = index.segments(print);
        let within = |segments: &[u32]| {
            let from = segments.partition_point(|segment| *segment < first);
            let end = segments.partition_point(|segment| *segment < open && *segment <= last);
            segments.get(from..end).unwrap_or_default().to_vec()
        };
        let mut found = within(known.as_slice());
        let unknown = within(index.unknown());
        if !unknown.is_empty() {
            // Reading them says what is wrong with them.
            found.extend(unknown);
            found.sort_unstable();
        }
        let lacking = index.segments.max(first)..open.min(last.saturating_add(1));
        drop(index);
        found.extend(lacking.filter(|segment| self.may_hold(*segment, facet)));
        found.extend((open == last).then_some(open));
        found
    }

    /// Whether a segment holds the facet, as far as that is known without reading it.
    fn may_hold(&self, segment: u32, facet: &str) -> bool {
        let tables = match self.sealed.get(segment).map(|entry| &entry.tables) {
            Some(TablesOf::Memory(tables)) => Some(tables),
            Some(TablesOf::Store(cell)) => cell.get(),
            None => None,
        };
        tables.is_none_or(|tables| tables.facets.iter().any(|of| of == facet))
    }
}

/// `before` and the first `frames` frames of `tables`.
pub(super) fn add(before: Totals, tables: &Tables, frames: u32) -> Totals {
    plus(before, frames, tables.before(frames))
}

/// `before` and `frames` frames more. `row` is the row of the last one.
fn plus(before: Totals, frames: u32, row: FrameRow) -> Totals {
    Totals {
        frames: before.frames.saturating_add(frames.into()),
        chunks: before.chunks.saturating_add(row.chunk_end.into()),
        bytes: before.bytes.saturating_add(row.text_end.into()),
        tokens: before.tokens.saturating_add(row.tokens_end),
    }
}

fn missing() -> Error {
    Error::new(ErrorKind::Dropped, "the segment is neither in memory nor in a store")
}

impl Entry {
    fn in_memory(before: Totals, tables: Arc<SealedTables>, text: Arc<SegmentText>) -> Self {
        Self {
            first_sequence: tables.first_sequence,
            before,
            frames: Some(Arc::clone(&tables.frames)),
            tables: TablesOf::Memory(tables),
            text: TextOf::Memory(text),
            places: None,
        }
    }
}
