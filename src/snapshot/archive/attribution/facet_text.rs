use std::{borrow::Cow, fmt, ops::RangeInclusive, vec};

use super::{
    super::{ArchiveReader, place::ArchivedPlace, reader::dropped, state::State},
    Text,
};
use crate::{Result, id::FrameSeq, snapshot::ChunkInfo};

impl ArchiveReader {
    /// All text of a facet over time: its chunks in order, alone or with other facets, each with
    /// its text. Of an unknown facet there is none.
    ///
    /// Finding the chunks costs what [`ArchiveReader::chunks_of`] does. Text in a store is read
    /// segment by segment as the walk gets there, and only where the facet has chunks; it is copied
    /// chunk by chunk, and text in memory is borrowed.
    ///
    /// A chunk whose text was dropped is an error of kind
    /// [`ErrorKind::Dropped`](crate::ErrorKind::Dropped) in its place, which names frame and
    /// chunk; a segment that cannot be read is one error for all its chunks. The walk goes on
    /// after either.
    ///
    /// ```
    /// use afterimage::{
    ///     id::Millis,
    ///     snapshot::{ChunkOptions, FrameSnapshotBuilder, SnapshotArchive},
    ///     tokens::Chars4,
    /// };
    ///
    /// let mut archive = SnapshotArchive::new();
    /// for (sequence, hull) in [98, 71, 12].iter().enumerate() {
    ///     let mut builder = FrameSnapshotBuilder::new(&Chars4);
    ///     builder.add_content(&format!("Hull at {hull} %"), ChunkOptions::new().facet("hull"));
    ///     builder.add_content("\n", ChunkOptions::new());
    ///     archive.push(sequence as u64, &builder.build(Millis::new(0)))?;
    /// }
    /// let mut texts = archive.text_of("hull")?;
    /// let (first, text) = texts.next().unwrap()?;
    /// assert_eq!((first.tokens(), &*text), (3, "Hull at 98 %"));
    /// assert_eq!(texts.last().unwrap()?.1, "Hull at 12 %");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading the tables of a store.
    pub fn text_of(&self, facet: &str) -> Result<FacetText<'_>> {
        self.text_of_in(facet, FrameSeq::new(0)..=FrameSeq::new(u64::MAX))
    }

    /// As [`ArchiveReader::text_of`], in the frames of a range. Costs what
    /// [`ArchiveReader::chunks_of_in`] does; text is read as in [`ArchiveReader::text_of`].
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the range runs backwards, and
    /// those of reading the tables of a store.
    pub fn text_of_in(
        &self,
        facet: &str,
        range: RangeInclusive<FrameSeq>,
    ) -> Result<FacetText<'_>> {
        let chunks = self.found_of(facet, &range, |place| place)?.into_iter();
        Ok(FacetText { state: &self.state, chunks, here: None })
    }
}

/// The chunks of a facet with their text: see [`ArchiveReader::text_of`].
#[derive(Clone)]
pub struct FacetText<'a> {
    state: &'a State,
    chunks: vec::IntoIter<ArchivedPlace<'a>>,
    /// The text of the segment of the last chunk, with that chunk.
    here: Option<(ArchivedPlace<'a>, Text<'a>)>,
}

/// Whether two chunks are in one segment.
fn is_beside(chunk: ArchivedPlace<'_>, other: ArchivedPlace<'_>) -> bool {
    std::ptr::eq(chunk.tables, other.tables)
}

impl<'a> FacetText<'a> {
    /// The text of the segment that holds `chunk`.
    fn text(&mut self, chunk: ArchivedPlace<'a>) -> Result<Text<'a>> {
        match &self.here {
            Some((of, text)) if is_beside(*of, chunk) => Ok(text.clone()),
            _ => {
                self.here = None;
                let segment = self.state.cursor(self.state.find(chunk.sequence().get()))?.segment;
                let text = Text::of(self.state, segment)?;
                self.here = Some((chunk, text.clone()));
                Ok(text)
            }
        }
    }
}

impl<'a> Iterator for FacetText<'a> {
    type Item = Result<(ChunkInfo<'a>, Cow<'a, str>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.chunks.next()?;
        let text = match self.text(chunk) {
            Ok(text) => text,
            Err(error) => {
                while self.chunks.as_slice().first().is_some_and(|next| is_beside(*next, chunk)) {
                    self.chunks.next();
                }
                return Some(Err(error));
            }
        };
        let range = chunk.tables.text_of_chunk(chunk.chunk);
        let content = match &text {
            Text::Here(text) => text.get(range).map(Cow::Borrowed),
            Text::Read(text) => text.get(range).map(|text| Cow::Owned(text.to_owned())),
        };
        let gone = || dropped(chunk.sequence()).at(|place| place.chunk = Some(chunk.index()));
        Some(content.map(|content| (ChunkInfo::archived(chunk), content)).ok_or_else(gone))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A segment that cannot be read is one error for all its chunks.
        (usize::from(!self.chunks.as_slice().is_empty()), Some(self.chunks.len()))
    }
}

impl fmt::Debug for FacetText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FacetText").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}
