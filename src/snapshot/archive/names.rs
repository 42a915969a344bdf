use std::hash::BuildHasher;

use foldhash::quality::FixedState;

/// Texts one after the other in one string, each known by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
}

impl Names {
    /// Appends a text. The caller keeps the sum of the texts below 4 GiB.
    pub(super) fn push(&mut self, name: &str) -> u32 {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        self.ends.len() as u32 - 1
    }

    /// The text with this number; empty where there is none.
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let end_of = |number: usize| self.ends.get(number).map(|end| *end as usize);
        let start = number.checked_sub(1).and_then(end_of).unwrap_or(0);
        end_of(number).and_then(|end| self.text.get(start..end)).unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.ends.len()).map(|number| self.get(number as u32))
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn reserve(&mut self, names: usize, bytes: usize) {
        self.ends.reserve_exact(names);
        self.text.reserve_exact(bytes);
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// The hash of a name, the same in every archive of a process. Nothing that is written depends on
/// it.
pub(super) fn hash(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

/// What the index knows a facet by: the upper half of its hash. Two facets may share one.
pub(super) fn print(hash: u64) -> u32 {
    (hash >> 32) as u32
}
