use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

/// A map that remembers at least its last `limit` keys, and at most twice as many.
///
/// Keys are kept as 64-bit hashes: it is for ids, which are long and many.
#[derive(Debug)]
pub(super) struct Recent<V> {
    limit: usize,
    new: HashMap<u64, V>,
    old: HashMap<u64, V>,
}

impl<V> Default for Recent<V> {
    /// Remembers at least 65,536 keys.
    fn default() -> Self {
        Self { limit: 1 << 16, new: HashMap::new(), old: HashMap::new() }
    }
}

impl<V: Copy> Recent<V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, new: HashMap::new(), old: HashMap::new() }
    }

    pub(super) fn get(&self, key: &str) -> Option<V> {
        let key = hash(key);
        self.new.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    pub(super) fn insert(&mut self, key: &str, value: V) {
        if self.new.len() >= self.limit {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(hash(key), value);
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_remembered_and_the_first_forgotten() {
        let mut recent = Recent::new(2);
        for (value, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            recent.insert(key, value);
        }
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|key| recent.get(key)),
            [None, None, Some(2), Some(3), Some(4)]
        );
    }
}
