use std::{ops::Deref, sync::Arc};

use super::{
    names::{self, Names},
    tables::{FIRST, SET, Tables},
};

/// The tables of a segment that takes no more frames: facets in the order of their prints, so that
/// the chunks of one are found in O(log n) time.
#[derive(Clone, Debug)]
pub(super) struct SealedTables {
    tables: Tables,
    /// The prints of the facets, rising.
    prints: Vec<u32>,
    /// The chunks of facet `n` are those in `chunks` from `starts[n]` to `starts[n + 1]`.
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
    pub(super) fn new(tables: Tables) -> Self {
        let prints = tables.facets.iter().map(|facet| names::print(names::hash(facet))).collect();
        Self::sorted(tables, prints)
    }

    /// The tables with these prints of their facets.
    pub(super) fn sorted(mut tables: Tables, prints: Vec<u32>) -> Self {
        // A print and a facet in one number: it sorts as the pair does, and sooner.
        let pair = |(print, facet): (u32, u32)| u64::from(print) << 32 | u64::from(facet);
        let mut order: Vec<u64> = prints.into_iter().zip(0..).map(pair).collect();
        order.sort_unstable();
        let mut places = vec![0_u32; order.len()];
        let mut facets = Names::default();
        facets.reserve(order.len(), tables.facets.bytes());
        for (place, facet) in order.iter().map(|pair| *pair as u32).enumerate() {
            facets.push(tables.facets.get(facet));
            if let Some(of) = places.get_mut(facet as usize) {
                *of = place as u32;
            }
        }
        let place = |facet: u32| places.get(facet as usize).copied().unwrap_or_default();
        tables.sets.iter_mut().for_each(|facet| *facet = place(*facet));
        for chunk in &mut tables.chunks {
            if (FIRST..SET).contains(&chunk.facets) {
                chunk.facets = FIRST + place(chunk.facets - FIRST);
            }
        }
        tables.facets = facets;
        Arc::make_mut(&mut tables.frames).shrink_to_fit();
        tables.chunks.shrink_to_fit();
        tables.words.shrink_to_fit();
        tables.kinds.shrink_to_fit();
        tables.sets.shrink_to_fit();
        tables.set_ends.shrink_to_fit();
        tables.identities.shrink_to_fit();
        tables.rare.shrink_to_fit();
        Self::with_chunks(tables, order.iter().map(|pair| names::print(*pair)).collect())
    }

    /// The chunks of each facet.
    fn with_chunks(tables: Tables, prints: Vec<u32>) -> Self {
        // First how many chunks each has; then where they begin, and where the next one goes.
        let mut starts = vec![0_u32; tables.facets.len() + 1];
        tables.for_each_facet(|facet, _| {
            if let Some(count) = starts.get_mut(facet as usize + 1) {
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
            if let Some(next) = next.get_mut(facet as usize)
                && let Some(place) = chunks.get_mut(*next as usize)
            {
                *place = chunk;
                *next += 1;
            }
        });
        Self { tables, prints, starts, chunks }
    }

    /// The prints of all facets, rising, for the index.
    pub(super) fn prints(&self) -> &[u32] {
        &self.prints
    }

    /// The chunks of a facet, rising. Runs in O(log(facets)) time.
    pub(super) fn chunks_of(&self, facet: &str, hash: u64) -> &[u32] {
        let print = names::print(hash);
        let first = self.prints.partition_point(|at| *at < print);
        let same = self.prints.iter().enumerate().skip(first);
        let mut same = same.take_while(|(_, at)| **at == print);
        let found = same.find(|(at, _)| self.facets.get(*at as u32) == facet);
        let chunks = found.and_then(|(at, _)| {
            let (start, end) = (*self.starts.get(at)?, *self.starts.get(at + 1)?);
            self.chunks.get(start as usize..end as usize)
        });
        chunks.unwrap_or_default()
    }
}
