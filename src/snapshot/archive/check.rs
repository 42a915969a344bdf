use super::{
    ArchiveReader,
    sealed_tables::SealedTables,
    tables::{ChunkRow, FIRST, Kind, SET, Tables, WIDE},
};
use crate::{Error, ErrorKind, Result};

impl ArchiveReader {
    /// Checks what the structures of the archive promise each other: for tests and fuzzing. Reads
    /// the tables of all segments. O(archive).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where they contradict each other, and those of reading a store.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let state = &self.state;
        let (mut before, mut last) = (super::Totals::default(), None);
        for segment in 0..=state.open_segment() {
            let tables = state.tables(segment)?;
            if segment == state.open_segment() && tables.frames.is_empty() {
                break;
            }
            tables.check()?;
            if state.before(segment) != before {
                return Err(contradiction("segments that begin where the one before ends"));
            }
            let frames = tables.frames.len() as u32;
            if last.is_some_and(|last| last >= tables.sequence(0)) {
                return Err(contradiction("segments in order"));
            }
            last = Some(tables.sequence(frames - 1));
            before = super::state::add(before, tables, frames);
            if let Some(text) = state.text_here(segment).filter(|text| text.is_whole())
                && text.held().len() != tables.before(frames).text_end as usize
            {
                return Err(contradiction("as much text as the chunks have"));
            }
            state.check_facets(segment)?;
        }
        if before != self.totals() || last != self.last_sequence() {
            return Err(contradiction("totals that are the sum of the segments"));
        }
        Ok(())
    }
}

impl SealedTables {
    /// Checks that the chunks of each facet are those that name it.
    pub(super) fn check_facets(&self) -> Result<()> {
        let mut found = Vec::new();
        for facet in self.facets.iter() {
            let chunks = self.chunks_of(facet, super::names::hash(facet));
            found.extend(chunks.iter().map(|chunk| (facet, *chunk)));
        }
        let mut expected = Vec::new();
        self.for_each_facet(|facet, chunk| expected.push((self.facets.get(facet), chunk)));
        found.sort_unstable();
        expected.sort_unstable();
        if found == expected && self.prints().is_sorted() {
            return Ok(());
        }
        Err(contradiction("facets with the chunks that name them"))
    }
}

impl Tables {
    /// Checks that every number is that of something, and that what must rise does.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where it is not so.
    pub(super) fn check(&self) -> Result<()> {
        let Self { frames, chunks, facets, words, kinds, sets, set_ends, identities, rare, .. } =
            self;
        let contradicts = |what: &str| Err(contradiction(what));
        let last = frames.last().copied().unwrap_or_default();
        if frames.is_empty()
            || frames.iter().zip(frames.iter().skip(1)).any(|(a, b)| a.sequence >= b.sequence)
        {
            return contradicts("sequences that rise");
        }
        if frames.first().is_some_and(|first| first.sequence != 0)
            || self.first_sequence.checked_add(last.sequence.into()).is_none()
        {
            return contradicts("sequences from the first frame's on");
        }
        let ends_of = |chunk_end: u32| {
            (chunk_end as usize)
                .checked_sub(1)
                .and_then(|at| chunks.get(at))
                .map_or(0, |chunk| chunk.text_end)
        };
        if last.chunk_end as usize != chunks.len()
            || frames.iter().any(|frame| ends_of(frame.chunk_end) != frame.text_end)
        {
            return contradicts("frames that end where their chunks do");
        }
        let is_facet = |facet: u32| (facet as usize) < facets.len();
        let knows = |code: u32| match code {
            code if code & SET != 0 => ((code & !SET) as usize) < set_ends.len(),
            code if code >= FIRST => is_facet(code - FIRST),
            _ => true,
        };
        let is_known =
            |chunk: &ChunkRow| (chunk.kind as usize) < kinds.len() && knows(chunk.facets);
        if !chunks.iter().all(is_known)
            || !sets.iter().copied().all(is_facet)
            || set_ends.last().copied().unwrap_or(0) as usize != sets.len()
        {
            return contradicts("numbers of facets and kinds that are there");
        }
        // Each list is some chunk's own, in order, so that all of them take no more room than is there.
        let mut lists = 0;
        for code in chunks.iter().map(|chunk| chunk.facets).filter(|code| code & SET != 0) {
            if code & !SET != lists {
                return contradicts("lists of facets in the order of their chunks");
            }
            lists += 1;
        }
        if lists as usize != set_ends.len() {
            return contradicts("a chunk for each list of facets");
        }
        let is_word = |word: u32| word as usize <= words.len();
        let has_words =
            |kind: &Kind| [kind.chunk_type, kind.part_id, kind.part_name].into_iter().all(is_word);
        if !kinds.iter().all(has_words) {
            return contradicts("numbers of words that are there");
        }
        if identities.first().is_none_or(|(frame, _)| *frame != 0)
            || !rises(identities, frames.len())
        {
            return contradicts("makers from the first frame on");
        }
        let wide = |count: usize, rows: &[(u32, u64)]| count == rows.len();
        let is_complete =
            wide(chunks.iter().filter(|chunk| chunk.tokens == WIDE).count(), &rare.tokens)
                && wide(frames.iter().filter(|frame| frame.exact == WIDE).count(), &rare.exact);
        if !is_complete
            || !rises(&rare.tokens, chunks.len())
            || !rises(&rare.exact, frames.len())
            || !rises(&rare.frames, frames.len())
        {
            return contradicts("rare rows in order");
        }
        let (mut tokens, mut chunk) = (0_u64, 0);
        for frame in frames.iter() {
            while chunk < frame.chunk_end {
                tokens = tokens.checked_add(self.tokens_of_chunk(chunk)).ok_or_else(too_many)?;
                chunk += 1;
            }
            if frame.tokens_end != tokens {
                return contradicts("frames whose tokens are the sum of their chunks'");
            }
        }
        Ok(())
    }
}

fn contradiction(expected: &str) -> Error {
    Error::new(ErrorKind::Damaged, format!("expected {expected}, found others"))
}

fn too_many() -> Error {
    Error::new(ErrorKind::Limit, "the tokens do not fit 64 bits")
}

fn rises<T>(rows: &[(u32, T)], limit: usize) -> bool {
    let is_next = |(a, b): (&(u32, T), &(u32, T))| a.0 < b.0;
    rows.iter().zip(rows.iter().skip(1)).all(is_next)
        && rows.last().is_none_or(|(row, _)| (*row as usize) < limit)
}
