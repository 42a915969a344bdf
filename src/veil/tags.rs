use std::{collections::BTreeSet, sync::Arc};

/// A set of tags that only grows. A clone costs O(log n) and shares what both have, so that every
/// frame can keep the set as it was at that frame.
#[derive(Clone, Debug, Default)]
pub struct TagSet {
    /// Each at least twice as large as the next, so that a tag is copied O(log n) times.
    layers: Vec<Arc<BTreeSet<String>>>,
    longest: usize,
}

impl TagSet {
    /// Whether `tag` is in the set. Runs in O(log² n) time.
    pub fn contains(&self, tag: &str) -> bool {
        self.layers.iter().any(|layer| layer.contains(tag))
    }

    /// Whether the set holds no tag.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The length of the longest tag in bytes, in O(1).
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The tags, each once, in no order that means anything. O(n) for all of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().flat_map(|layer| layer.iter().map(String::as_str))
    }

    /// Adds a tag. Runs in O(log² n) time, amortised.
    pub(crate) fn insert(&mut self, tag: String) {
        if self.contains(&tag) {
            return;
        }
        self.longest = self.longest.max(tag.len());
        let mut layer = BTreeSet::from([tag]);
        while let Some(last) = self.layers.pop_if(|last| last.len() < layer.len() * 2) {
            let mut last = Arc::unwrap_or_clone(last);
            layer.append(&mut last);
        }
        self.layers.push(Arc::new(layer));
    }
}

impl<T: Into<String>> FromIterator<T> for TagSet {
    fn from_iter<I: IntoIterator<Item = T>>(tags: I) -> Self {
        let mut set = Self::default();
        tags.into_iter().for_each(|tag| set.insert(tag.into()));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_was_there_while_the_set_grows() {
        let mut set = TagSet::default();
        let mut clones = Vec::new();
        for number in 0..200 {
            clones.push(set.clone());
            set.insert(format!("tag {number}"));
            set.insert("tag 0".to_owned());
            assert!(set.layers.windows(2).all(|pair| pair[0].len() >= pair[1].len() * 2));
        }
        for (number, clone) in clones.iter().enumerate() {
            assert_eq!(clone.iter().count(), number);
            assert!(number == 0 || clone.contains(&format!("tag {}", number - 1)));
            assert!(!clone.contains(&format!("tag {number}")));
        }
        assert_eq!((set.longest(), set.is_empty()), ("tag 199".len(), false));
    }
}
