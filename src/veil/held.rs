use std::{hash::BuildHasher, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table::Entry};

use super::{
    Facet,
    packed::{LastRead, PackedFacet},
};

/// A facet that holds.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Live(Arc<Facet>),
    /// In a frame that a history has packed.
    Packed(PackedFacet),
}

impl Held {
    pub(super) fn read(&self) -> Option<Arc<Facet>> {
        self.read_after(&mut LastRead::default())
    }

    pub(super) fn read_after(&self, last: &mut LastRead) -> Option<Arc<Facet>> {
        match self {
            Self::Live(facet) => Some(Arc::clone(facet)),
            Self::Packed(facet) => facet.read(last),
        }
    }

    fn has_id(&self, id: &str, last: &mut LastRead) -> bool {
        match self {
            Self::Live(facet) => facet.id.as_str() == id,
            Self::Packed(facet) => facet.has_id(id, last),
        }
    }
}

/// The facets that hold, found by their ids.
///
/// The table has no ids: a facet that is live has its own, and a packed one has it in its frame. So
/// a packed facet takes 32 bytes here, and keeps nothing alive of what its frame was made of.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldFacets {
    table: HashTable<HeldFacet>,
    hashes: RandomState,
}

#[derive(Clone, Debug)]
pub(super) struct HeldFacet {
    hash: u64,
    /// The moment of its addition, which orders the facets.
    pub(super) added: u64,
    pub(super) held: Held,
}

const _: () = assert!(size_of::<HeldFacet>() == 32, "a history has one for each facet");

impl HeldFacets {
    pub(super) fn get(&self, id: &str) -> Option<&Held> {
        self.get_after(id, &mut LastRead::default())
    }

    /// A frame that was read `last` is not read again for its id.
    pub(super) fn get_after(&self, id: &str, last: &mut LastRead) -> Option<&Held> {
        let hash = self.hash(id);
        self.table.find(hash, |of| of.is(hash, id, last)).map(|of| &of.held)
    }

    /// The facet with this id where it is live. Reads no frame.
    pub(super) fn live(&self, id: &str) -> Option<&Arc<Facet>> {
        let hash = self.hash(id);
        let live = |of: &HeldFacet| match &of.held {
            Held::Live(facet) => of.hash == hash && facet.id.as_str() == id,
            Held::Packed(_) => false,
        };
        self.table.find(hash, live).and_then(|of| match &of.held {
            Held::Live(facet) => Some(facet),
            Held::Packed(_) => None,
        })
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Held> {
        let (hash, mut last) = (self.hash(id), LastRead::default());
        self.table.find_mut(hash, |of| of.is(hash, id, &mut last)).map(|of| &mut of.held)
    }

    /// Takes a facet in place of the one with its id. Gives what is there now, with what was there.
    /// A frame that was read `last` is not read again for its id.
    pub(super) fn insert(
        &mut self,
        facet: Arc<Facet>,
        last: &mut LastRead,
    ) -> (&mut HeldFacet, Option<HeldFacet>) {
        let hash = self.hash(&facet.id);
        let same = |of: &HeldFacet| of.is(hash, &facet.id, last);
        match self.table.entry(hash, same, |of| of.hash) {
            Entry::Occupied(entry) => {
                let there = entry.into_mut();
                let now = HeldFacet { hash, added: there.added, held: Held::Live(facet) };
                let before = std::mem::replace(there, now);
                (there, Some(before))
            }
            Entry::Vacant(entry) => {
                let now = HeldFacet { hash, added: 0, held: Held::Live(facet) };
                (entry.insert(now).into_mut(), None)
            }
        }
    }

    /// A frame that was read `last` is not read again for its id.
    pub(super) fn remove(&mut self, id: &str, last: &mut LastRead) -> Option<HeldFacet> {
        let hash = self.hash(id);
        let entry = self.table.find_entry(hash, |of| of.is(hash, id, last)).ok()?;
        Some(entry.remove().0)
    }

    pub(super) fn retain(&mut self, is_kept: impl FnMut(&mut HeldFacet) -> bool) {
        self.table.retain(is_kept);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldFacet> {
        self.table.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.table.shrink_to_fit(|of| of.hash);
    }

    fn hash(&self, id: &str) -> u64 {
        self.hashes.hash_one(id)
    }
}

impl HeldFacet {
    /// Compares ids only where all of the hash agrees: the id of a packed facet is read in its frame.
    fn is(&self, hash: u64, id: &str, last: &mut LastRead) -> bool {
        self.hash == hash && self.held.has_id(id, last)
    }
}
