//! Who wrote what, where, and what it cost: the questions that a debugger asks of an archive.
//!
//! `facet_text` walks through all text of a facet, `costs` adds up what facets cost, `repeats`
//! finds text that was rendered again and again, `find` searches for a phrase. What needs no text
//! reads none; what needs some reads it segment by segment.

mod costs;
mod facet_text;
mod find;
mod repeats;

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

pub use costs::FacetCost;
pub use facet_text::FacetText;
pub use find::{PhraseMatch, PhraseMatches};
pub use repeats::RepeatedText;

use super::{
    state::{Cursor, State},
    tables::Tables,
    text::SegmentText,
    writer::segments,
};
use crate::Result;

/// The text of a segment, wherever it is.
#[derive(Clone, Debug)]
enum Text<'a> {
    Here(&'a SegmentText),
    Read(Arc<SegmentText>),
}

impl<'a> Text<'a> {
    /// Reads it where it is in a store.
    fn of(state: &'a State, segment: u32) -> Result<Self> {
        match state.text_here(segment) {
            Some(text) => Ok(Self::Here(text)),
            None => state.text_from_store(segment).map(Self::Read),
        }
    }
}

impl Deref for Text<'_> {
    type Target = SegmentText;

    fn deref(&self) -> &SegmentText {
        match self {
            Self::Here(text) => text,
            Self::Read(text) => text,
        }
    }
}

/// The segments between two places, which may be one and the same.
fn segments_between(from: Cursor, to: Cursor) -> Range<u32> {
    if from.before.frames >= to.before.frames { 0..0 } else { segments(from, to) }
}

/// The frames of a segment that are between two places.
fn frames_between(from: Cursor, to: Cursor, segment: u32, tables: &Tables) -> Range<u32> {
    let first = if segment == from.segment { from.frame } else { 0 };
    let end = if segment == to.segment { to.frame } else { tables.frames.len() as u32 };
    first..end
}

#[cfg(all(test, feature = "storage"))]
mod tests {
    use std::sync::Mutex;

    use super::{
        super::{
            SnapshotArchive,
            directory::{TextOf, Totals},
            sealed_tables::SealedTables,
            state::{Places, Segment, Store},
        },
        *,
    };
    use crate::{
        Error, ErrorKind,
        id::Millis,
        log::Position,
        snapshot::{ArchiveOptions, ChunkOptions, FrameSnapshotBuilder},
        tokens::Chars4,
    };

    /// Notes what is read. The segments that it lacks cannot be.
    #[derive(Debug, Default)]
    struct Shelf {
        texts: Vec<Option<Arc<SegmentText>>>,
        read: Mutex<Vec<u32>>,
    }

    impl Store for Shelf {
        fn tables(&self, places: Places, _own: Totals) -> Result<Arc<SealedTables>> {
            panic!("the tables of {places:?} are in memory")
        }

        fn text(&self, places: Places, _tables: &Tables) -> Result<Arc<SegmentText>> {
            let segment = places.text.offset() as u32;
            self.read.lock().unwrap().push(segment);
            let text = self.texts[segment as usize].clone();
            text.ok_or_else(|| Error::new(ErrorKind::Io, "unreadable"))
        }
    }

    /// An archive of four segments, the third of which cannot be read, and an open one.
    fn shelved() -> (SnapshotArchive, Arc<Shelf>) {
        let options = ArchiveOptions { segment_frames: 2, ..ArchiveOptions::default() };
        let mut archive = SnapshotArchive::with_options(options);
        for sequence in 0..10_u64 {
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            let facet = if (2..4).contains(&sequence) { "other" } else { "all" };
            builder.add_content(&format!("frame {sequence}"), ChunkOptions::new().facet(facet));
            archive.push(sequence, &builder.build(Millis::new(0))).unwrap();
        }
        let mut shelf = Shelf::default();
        let state = Arc::make_mut(&mut archive.reader.state);
        for segment in 0..state.open_segment() {
            let entry = state.sealed.get_mut(segment).unwrap();
            let at = Position::new(segment.into());
            entry.places = Some(Places { text: at, tables: at });
            let TextOf::Memory(text) = std::mem::replace(&mut entry.text, TextOf::Store) else {
                panic!()
            };
            shelf.texts.push((segment != 2).then_some(text));
        }
        let Segment { tables, .. } = &*state.open;
        assert_eq!((state.open_segment(), tables.frames.len()), (4, 2));
        let shelf = Arc::new(shelf);
        state.store = Some(Arc::clone(&shelf) as Arc<dyn Store>);
        (archive, shelf)
    }

    #[test]
    fn only_segments_with_hits_are_read_and_one_that_cannot_be_is_one_error() {
        let (archive, shelf) = shelved();
        let texts: Vec<_> = archive.text_of("all").unwrap().collect();
        assert_eq!(*shelf.read.lock().unwrap(), [0, 2, 3]);
        let texts: Vec<_> = texts
            .iter()
            .map(|text| text.as_ref().map(|(_, text)| &**text).map_err(Error::kind))
            .collect();
        let expected = [
            Ok("frame 0"),
            Ok("frame 1"),
            Err(ErrorKind::Io),
            Ok("frame 6"),
            Ok("frame 7"),
            Ok("frame 8"),
            Ok("frame 9"),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn the_first_match_costs_the_scan_up_to_it() {
        let (archive, shelf) = shelved();
        let mut matches = archive.find("frame 3");
        assert_eq!(matches.next().unwrap().unwrap().sequence().get(), 3);
        assert_eq!(*shelf.read.lock().unwrap(), [0, 1]);
        assert_eq!(matches.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
        assert!(matches.next().is_none());
        assert!(archive.find("").next().is_none());
        assert_eq!(*shelf.read.lock().unwrap(), [0, 1, 2, 3]);
    }
}
