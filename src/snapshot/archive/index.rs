use hashbrown::HashTable;

use super::tables::Tables;

/// A table is split in two before it holds more, so that no insertion moves more entries.
const MOST_ENTRIES: usize = 12_000;
/// Lists are kept in blocks, so that a growing list of lists never moves more than a block.
const LISTS_A_BLOCK: usize = 1_024;
/// No more leading bits than this choose a table: 131,072 tables hold more facets than fit in
/// memory, unless someone looks for ids whose prints begin alike.
const MOST_BITS: u32 = 17;
/// Marks a place that is a list.
const LIST: u32 = 1 << 31;

/// From facets to the segments that hold chunks of them.
///
/// Facets are known by a print of 32 bits, so a segment that is named may turn out to hold none.
/// The prints are spread over small tables by their leading bits (extendible hashing): where a
/// table is full it is split, and no insertion moves more than [`MOST_ENTRIES`].
#[derive(Debug)]
pub(super) struct Index {
    /// How many segments are in it.
    pub(super) segments: u32,
    /// How many leading bits of a print choose its table.
    depth: u32,
    /// The number of the table for each value of those bits.
    tables: Vec<u32>,
    shards: Vec<Shard>,
    lists: Vec<Vec<Vec<u32>>>,
    /// The segments whose facets could not be read.
    unknown: Vec<u32>,
}

#[derive(Debug)]
struct Shard {
    /// How many leading bits all prints in it share.
    depth: u32,
    entries: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    print: u32,
    /// The segment, or [`LIST`] and the number of the list.
    place: u32,
}

impl Default for Index {
    fn default() -> Self {
        let shard = Shard { depth: 0, entries: HashTable::new() };
        Self {
            segments: 0,
            depth: 0,
            tables: vec![0],
            shards: vec![shard],
            lists: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl Index {
    /// Adds the next segment.
    pub(super) fn add_segment(&mut self, segment: u32, tables: &Tables) {
        tables.prints().for_each(|print| self.add(print, segment));
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
    /// Runs in amortised O(1) time, and moves at most [`MOST_ENTRIES`] entries.
    fn add(&mut self, print: u32, segment: u32) {
        while self
            .shard(print)
            .is_some_and(|shard| shard.entries.len() >= MOST_ENTRIES && shard.depth < MOST_BITS)
        {
            self.split(print);
        }
        let at = self.shard_number(print);
        let Self { shards, lists, .. } = self;
        let Some(shard) = shards.get_mut(at) else { return };
        let found = shard.entries.find_mut(spread(print), |entry| entry.print == print);
        let Some(entry) = found else {
            let entry = Entry { print, place: segment };
            shard.entries.insert_unique(spread(print), entry, |entry| spread(entry.print));
            return;
        };
        if entry.place & LIST == 0 {
            if entry.place != segment {
                entry.place = LIST | push_list(lists, vec![entry.place, segment]);
            }
        } else if let Some(list) = list_mut(lists, entry.place & !LIST)
            && list.last() != Some(&segment)
        {
            list.push(segment);
        }
    }

    /// The segments that may hold chunks of the facet with this print, rising.
    pub(super) fn segments(&self, print: u32) -> Segments<'_> {
        let entry = self.shard(print).and_then(|shard| {
            shard.entries.find(spread(print), |entry| entry.print == print).copied()
        });
        match entry {
            None => Segments::Many(&[]),
            Some(Entry { place, .. }) if place & LIST == 0 => Segments::One(place),
            Some(Entry { place, .. }) => {
                let number = (place & !LIST) as usize;
                let block = self.lists.get(number / LISTS_A_BLOCK);
                let list = block.and_then(|block| block.get(number % LISTS_A_BLOCK));
                Segments::Many(list.map_or(&[], Vec::as_slice))
            }
        }
    }

    fn shard_number(&self, print: u32) -> usize {
        let bits = print.checked_shr(u32::BITS - self.depth).unwrap_or(0);
        self.tables.get(bits as usize).map_or(0, |number| *number as usize)
    }

    fn shard(&self, print: u32) -> Option<&Shard> {
        self.shards.get(self.shard_number(print))
    }

    /// Splits the table of this print by one more bit.
    fn split(&mut self, print: u32) {
        let at = self.shard_number(print);
        let Some(shard) = self.shards.get_mut(at) else { return };
        if shard.depth == self.depth {
            self.tables = self.tables.iter().flat_map(|number| [*number; 2]).collect();
            self.depth += 1;
        }
        shard.depth += 1;
        let depth = shard.depth;
        let is_upper = |print: u32| print >> (u32::BITS - depth) & 1 == 1;
        let half = shard.entries.len() / 2;
        let mut halves = [HashTable::with_capacity(half), HashTable::with_capacity(half)];
        for entry in std::mem::take(&mut shard.entries) {
            let [lower, upper] = &mut halves;
            let half = if is_upper(entry.print) { upper } else { lower };
            half.insert_unique(spread(entry.print), entry, |entry| spread(entry.print));
        }
        let [lower, upper] = halves;
        shard.entries = lower;
        let new = self.shards.len() as u32;
        self.shards.push(Shard { depth, entries: upper });
        let own = self.depth - depth;
        for (bits, number) in self.tables.iter_mut().enumerate() {
            if *number as usize == at && bits >> own & 1 == 1 {
                *number = new;
            }
        }
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

fn push_list(lists: &mut Vec<Vec<Vec<u32>>>, list: Vec<u32>) -> u32 {
    if lists.last().is_none_or(|block| block.len() == LISTS_A_BLOCK) {
        lists.push(Vec::new());
    }
    let full = (lists.len() - 1) * LISTS_A_BLOCK;
    let Some(block) = lists.last_mut() else { return 0 };
    block.push(list);
    (full + block.len() - 1) as u32
}

fn list_mut(lists: &mut [Vec<Vec<u32>>], number: u32) -> Option<&mut Vec<u32>> {
    let number = number as usize;
    lists.get_mut(number / LISTS_A_BLOCK)?.get_mut(number % LISTS_A_BLOCK)
}

/// A hash with all its bits in use, of a print whose leading bits its table's neighbours share.
fn spread(print: u32) -> u64 {
    u64::from(print).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_facet_is_found_in_its_segments_however_often_tables_split() {
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
        assert!(index.shards.len() > 8);
        assert!(index.shards.iter().all(|shard| shard.entries.len() <= MOST_ENTRIES));
        for (print, segments) in &expected {
            assert_eq!(index.segments(*print).as_slice(), segments);
        }
        assert!(index.segments(1).as_slice().is_empty());
    }

    #[test]
    fn no_insertion_moves_more_than_a_table() {
        let mut index = Index::default();
        let (mut largest, mut before) = (0, Vec::new());
        for n in 0..400_000_u32 {
            let of = |shard: &Shard| (shard.entries.capacity(), shard.entries.len());
            before.clear();
            before.extend(index.shards.iter().map(of));
            index.add(n.wrapping_mul(0x85EB_CA6B), 0);
            let changed = before.iter().zip(index.shards.iter().map(of));
            let moved = changed.filter(|(before, after)| before.0 != after.0);
            largest = largest.max(moved.map(|(before, _)| before.1).sum());
        }
        assert!(largest <= 16_384, "{largest}");
    }

    #[test]
    fn prints_that_begin_alike_do_not_split_for_ever() {
        let mut index = Index::default();
        for n in 0..MOST_ENTRIES as u32 + 10 {
            index.add(n, n);
        }
        assert_eq!(index.segments(7).as_slice(), [7]);
    }
}
