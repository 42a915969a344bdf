use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::{names, tables::Tables};

/// The tables of a segment that takes no more frames.
#[derive(Clone, Debug)]
pub(super) struct SealedTables {
    tables: Tables,
    /// Made when questions about facets come: of most segments nobody asks one.
    by_facet: OnceLock<ByFacet>,
}

/// The facets of a segment in the order of their prints, so that the chunks of one are found in
/// O(log n) time.
#[derive(Clone, Debug)]
struct ByFacet {
    /// The prints of the facets, rising.
    prints: Vec<u32>,
    /// The facet that each print is of.
    facets: Vec<u32>,
    /// The chunks of the facet at `n` are those in `chunks` from `starts[n]` to `starts[n + 1]`.
    starts: Vec<u32>,
    chunks: Vec<u32>,
}

impl Deref for SealedTables {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl SealedTables {
    /// The tables, without what was reserved for more.
    pub(super) fn new(mut tables: Tables) -> Self {
        Arc::make_mut(&mut tables.frames).shrink_to_fit();
        tables.chunks.shrink_to_fit();
        tables.facets.shrink_to_fit();
        tables.words.shrink_to_fit();
        tables.kinds.shrink_to_fit();
        tables.sets.shrink_to_fit();
        tables.set_ends.shrink_to_fit();
        tables.identities.shrink_to_fit();
        tables.rare.shrink_to_fit();
        Self { tables, by_facet: OnceLock::new() }
    }

    fn by_facet(&self) -> &ByFacet {
        self.by_facet.get_or_init(|| ByFacet::of(&self.tables))
    }

    /// The prints of all facets, rising, for the index.
    pub(super) fn prints(&self) -> &[u32] {
        &self.by_facet().prints
    }

    /// The chunks of a facet, rising. Runs in O(log(facets)) time, after O(chunks) for the first
    /// facet that is asked for.
    pub(super) fn chunks_of(&self, facet: &str, hash: u64) -> &[u32] {
        let ByFacet { prints, facets, starts, chunks } = self.by_facet();
        let print = names::print(hash);
        let first = prints.partition_point(|at| *at < print);
        let same = prints.iter().zip(facets).enumerate().skip(first);
        let mut same = same.take_while(|(_, (at, _))| **at == print);
        let found = same.find(|(_, (_, of))| self.tables.facets.get(**of) == facet);
        let chunks = found.and_then(|(at, _)| {
            let (start, end) = (*starts.get(at)?, *starts.get(at + 1)?);
            chunks.get(start as usize..end as usize)
        });
        chunks.unwrap_or_default()
    }
}

impl ByFacet {
    fn of(tables: &Tables) -> Self {
        // A print and a facet in one number: it sorts as the pair does, and sooner.
        let print = |facet: &str| u64::from(names::print(names::hash(facet))) << 32;
        let numbered = tables.facets.iter().zip(0_u64..);
        let mut order: Vec<u64> = numbered.map(|(facet, number)| print(facet) | number).collect();
        order.sort_unstable();
        let facets: Vec<u32> = order.iter().map(|pair| *pair as u32).collect();
        let mut places = vec![0_u32; facets.len()];
        for (place, facet) in (0..).zip(&facets) {
            if let Some(of) = places.get_mut(*facet as usize) {
                *of = place;
            }
        }
        let place = |facet: u32| places.get(facet as usize).copied().unwrap_or_default() as usize;
        // First how many chunks each has; then where they begin, and where the next one goes.
        let mut starts = vec![0_u32; facets.len() + 1];
        tables.for_each_facet(|facet, _| {
            if let Some(count) = starts.get_mut(place(facet) + 1) {
                *count += 1;
            }
        });
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut chunks = vec![0_u32; sum as usize];
        tables.for_each_facet(|facet, chunk| {
            if let Some(next) = next.get_mut(place(facet))
                && let Some(place) = chunks.get_mut(*next as usize)
            {
                *place = chunk;
                *next += 1;
            }
        });
        Self {
            prints: order.iter().map(|pair| names::print(*pair)).collect(),
            facets,
            starts,
            chunks,
        }
    }
}
