use super::sealed_tables::SealedTables;

/// How many entries a page holds on average before it is split.
const PAGE: usize = 32;
/// A page grows by this many entries, so that little is reserved for nothing.
const STEP: usize = 8;
/// Pages and lists are kept in blocks, so that many of them never move at once.
const BLOCK: usize = 1_024;
/// Pages are far apart in memory. So many are read ahead, where no read waits for another.
const AHEAD: usize = 32;
/// Marks a place that is a list.
const LIST: u32 = 1 << 31;

/// From facets to the segments that hold chunks of them.
///
/// Facets are known by a print of 32 bits, so a segment that is named may turn out to hold none.
/// The prints are spread over small pages by their trailing bits (linear hashing): with every
/// [`PAGE`] entries the next page in turn is split in two. So the pages grow with the archive, and
/// no insertion moves more than a page and a block's list of pages.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// How many segments are in it.
    pub(super) segments: u32,
    entries: usize,
    /// The entries of a page are in order of their prints.
    pages: Blocks<Vec<Entry>>,
    lists: Blocks<Vec<u32>>,
    /// The segments whose facets could not be read.
    unknown: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    print: u32,
    /// The segment, or [`LIST`] and the number of the list.
    place: u32,
}

impl Index {
    /// Adds the next segment.
    pub(super) fn add_segment(&mut self, segment: u32, tables: &SealedTables) {
        for prints in tables.prints().chunks(AHEAD) {
            let pages = prints.iter().filter_map(|print| self.pages.get(self.page_of(*print)));
            std::hint::black_box(
                pages.filter_map(|page| Some(page.get(page.len() / 2)?.place)).max(),
            );
            prints.iter().for_each(|print| self.add(*print, segment));
        }
        self.segments = segment + 1;
    }

    /// Adds the next segment, which cannot be read.
    pub(super) fn add_unknown(&mut self, segment: u32) {
        self.unknown.push(segment);
        self.segments = segment + 1;
    }

    /// The segments whose facets are not known, rising.
    pub(super) fn unknown(&self) -> &[u32] {
        &self.unknown
    }

    /// Adds that `segment` holds chunks of the facet with this print. Segments come in order.
    /// Runs in O(1) time, but for prints that end alike on purpose.
    fn add(&mut self, print: u32, segment: u32) {
        if self.entries >= self.pages.len * PAGE {
            self.split();
        }
        let at = self.page_of(print);
        let Some(page) = self.pages.get_mut(at) else { return };
        let at = page.partition_point(|entry| entry.print < print);
        let Some(entry) = page.get_mut(at).filter(|entry| entry.print == print) else {
            if page.len() == page.capacity() {
                page.reserve_exact(STEP.max(page.len() / 8));
            }
            page.insert(at, Entry { print, place: segment });
            self.entries += 1;
            return;
        };
        if entry.place & LIST == 0 {
            if entry.place != segment {
                let list = vec![entry.place, segment];
                entry.place = LIST | self.lists.len as u32;
                self.lists.push(list);
            }
        } else if let Some(list) = self.lists.get_mut((entry.place & !LIST) as usize)
            && list.last() != Some(&segment)
        {
            list.push(segment);
        }
    }

    /// The segments that may hold chunks of the facet with this print, rising.
    pub(super) fn segments(&self, print: u32) -> Segments<'_> {
        let page = self.pages.get(self.page_of(print)).map(Vec::as_slice).unwrap_or_default();
        let at = page.partition_point(|entry| entry.print < print);
        match page.get(at).filter(|entry| entry.print == print) {
            None => Segments::Many(&[]),
            Some(Entry { place, .. }) if place & LIST == 0 => Segments::One(*place),
            Some(Entry { place, .. }) => {
                let list = self.lists.get((place & !LIST) as usize);
                Segments::Many(list.map_or(&[], Vec::as_slice))
            }
        }
    }

    /// The page of a print: as many of its trailing bits as there are pages for.
    fn page_of(&self, print: u32) -> usize {
        let all = self.pages.len.next_power_of_two();
        let page = print as usize & (all - 1);
        if page < self.pages.len { page } else { page & (all / 2).saturating_sub(1) }
    }

    /// Adds a page, which takes its entries from the page that it was one with.
    fn split(&mut self) {
        let new = self.pages.len;
        self.pages.push(Vec::new());
        let half = new.checked_ilog2().map_or(0, |bits| 1 << bits);
        if new == 0 {
            return;
        }
        let old = self.pages.get_mut(new - half).map(std::mem::take).unwrap_or_default();
        for (at, is_new) in [(new - half, false), (new, true)] {
            let belongs = |entry: &&Entry| (entry.print as usize & half != 0) == is_new;
            let count = old.iter().filter(belongs).count();
            if let Some(page) = self.pages.get_mut(at) {
                page.reserve_exact(count + STEP / 2);
                page.extend(old.iter().filter(belongs));
            }
        }
    }
}

/// A list that never moves more than a block when it grows.
#[derive(Debug)]
struct Blocks<T> {
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }
}

impl<T> Blocks<T> {
    fn push(&mut self, item: T) {
        if self.len.is_multiple_of(BLOCK) {
            self.blocks.push(Vec::new());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(item);
            self.len += 1;
        }
    }

    fn get(&self, number: usize) -> Option<&T> {
        self.blocks.get(number / BLOCK)?.get(number % BLOCK)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.blocks.get_mut(number / BLOCK)?.get_mut(number % BLOCK)
    }
}

/// The segments of a facet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Segments<'i> {
    One(u32),
    Many(&'i [u32]),
}

impl Segments<'_> {
    pub(super) fn as_slice(&self) -> &[u32] {
        match self {
            Segments::One(segment) => std::slice::from_ref(segment),
            Segments::Many(segments) => segments,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_facet_is_found_in_its_segments_however_often_pages_split() {
        let mut index = Index::default();
        let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for n in 0..200_000_u32 {
            // Some prints come again in later segments, and some twice in one.
            let print = (n % 150_000).wrapping_mul(0x85EB_CA6B);
            let segment = n / 700;
            index.add(print, segment);
            index.add(print, segment);
            let list = expected.entry(print).or_default();
            if list.last() != Some(&segment) {
                list.push(segment);
            }
        }
        assert_eq!(index.pages.len, 150_000_usize.div_ceil(PAGE));
        for (print, segments) in &expected {
            assert_eq!(index.segments(*print).as_slice(), segments);
        }
        assert!(index.segments(1).as_slice().is_empty());
    }

    #[test]
    fn no_insertion_moves_more_than_a_page() {
        let mut index = Index::default();
        for n in 0..400_000_u32 {
            let (pages, print) = (index.pages.len, n.wrapping_mul(0x85EB_CA6B));
            index.add(print, 0);
            assert!(index.pages.len <= pages + 1);
        }
        let pages = || index.pages.blocks.iter().flatten();
        assert_eq!(pages().map(Vec::len).sum::<usize>(), 400_000);
        let longest = pages().map(Vec::len).max();
        assert!(longest < Some(4 * PAGE), "{longest:?}");
        let held: usize = pages().map(Vec::capacity).sum();
        assert!(held < 480_000, "{held} places for 400,000 entries");
    }

    #[test]
    fn prints_that_end_alike_are_found() {
        let mut index = Index::default();
        for n in 0..2_000_u32 {
            index.add(n << 20, n);
        }
        assert_eq!(index.segments(7 << 20).as_slice(), [7]);
    }
}
