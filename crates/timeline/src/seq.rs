//! A sequence whose copies share what they have in common: a counted B+ tree behind `Arc`s.

use std::{borrow::Borrow, sync::Arc};

mod node;

use node::{Child, Node, WIDTH, child_of, insert, remove, search, towards};

/// A sequence of values. A clone costs one reference; after it, a change copies the nodes on the
/// way to what changed, and nothing else.
#[derive(Debug)]
pub(super) struct Seq<T: Item>(Option<Node<T>>);

/// What a sequence may hold. Clones are to be cheap.
pub(super) trait Item: Clone {
    /// What sorted items are found by; nothing where they are not sorted.
    type Key: Clone + std::fmt::Debug;

    fn key_ref(&self) -> &Self::Key;
}

impl<T: Item> Clone for Seq<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Item> Default for Seq<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Item> Seq<T> {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Node::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn get(&self, mut index: usize) -> Option<&T> {
        let mut node = self.0.as_ref()?;
        loop {
            match node {
                Node::Leaf(items) => return items.get(index),
                Node::Branch(children) => {
                    let (at, rest) = child_of(children, index)?;
                    (node, index) = (&children.get(at)?.node, rest);
                }
            }
        }
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Whether both are one: then nothing in them differs.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => a.is_same(b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// The item with a key, in a sequence that is sorted by keys.
    pub(super) fn find<K: Ord + ?Sized>(&self, key: &K) -> Option<&T>
    where
        T::Key: Borrow<K>,
    {
        let mut node = self.0.as_ref()?;
        loop {
            match node {
                Node::Leaf(items) => return items.get(search(items, key).ok()?),
                Node::Branch(children) => node = &children.get(towards(children, key))?.node,
            }
        }
    }

    /// How many items have a lesser key, in a sequence that is sorted by keys.
    pub(super) fn position<K: Ord + ?Sized>(&self, key: &K) -> usize
    where
        T::Key: Borrow<K>,
    {
        let mut before = 0;
        let mut node = self.0.as_ref();
        while let Some(at) = node {
            match at {
                Node::Leaf(items) => {
                    return before + search(items, key).unwrap_or_else(|at| at);
                }
                Node::Branch(children) => {
                    let next = towards(children, key);
                    before += children.iter().take(next).map(|child| child.len).sum::<usize>();
                    node = children.get(next).map(|child| &child.node);
                }
            }
        }
        before
    }

    pub(super) fn iter(&self) -> Iter<'_, T> {
        Iter { stack: self.0.iter().map(|root| (root, 0)).collect() }
    }

    /// The runs of items that are stored, and shared, as one; each with what tells it apart.
    pub(super) fn leaves(&self) -> Vec<(usize, &[T])> {
        fn collect<'a, T: Item>(node: &'a Node<T>, leaves: &mut Vec<(usize, &'a [T])>) {
            match node {
                Node::Leaf(items) => leaves.push((items.as_ptr() as usize, items)),
                Node::Branch(children) => {
                    children.iter().for_each(|child| collect(&child.node, leaves));
                }
            }
        }
        let mut leaves = Vec::new();
        self.0.iter().for_each(|root| collect(root, &mut leaves));
        leaves
    }

    pub(super) fn get_mut(&mut self, mut index: usize) -> Option<&mut T> {
        let mut node = self.0.as_mut()?;
        loop {
            match node {
                Node::Leaf(items) => return Arc::make_mut(items).get_mut(index),
                Node::Branch(children) => {
                    let (at, rest) = child_of(children, index)?;
                    (node, index) = (&mut Arc::make_mut(children).get_mut(at)?.node, rest);
                }
            }
        }
    }

    pub(super) fn find_mut<K: Ord + ?Sized>(&mut self, key: &K) -> Option<&mut T>
    where
        T::Key: Borrow<K>,
    {
        let mut node = self.0.as_mut()?;
        loop {
            match node {
                Node::Leaf(items) => {
                    let at = search(items, key).ok()?;
                    return Arc::make_mut(items).get_mut(at);
                }
                Node::Branch(children) => {
                    let at = towards(children, key);
                    node = &mut Arc::make_mut(children).get_mut(at)?.node;
                }
            }
        }
    }

    pub(super) fn push(&mut self, item: T) {
        self.insert(self.len(), item);
    }

    /// Puts an item before the one that has the index now; at the end where there is none.
    pub(super) fn insert(&mut self, index: usize, item: T) {
        let Some(root) = &mut self.0 else {
            self.0 = Some(Node::Leaf(Arc::new([item])));
            return;
        };
        if let Some(right) = insert(root, index, item) {
            let left = Child::of(root.clone());
            *root = Node::Branch(left.into_iter().chain([right]).collect());
        }
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let root = self.0.as_mut()?;
        let removed = remove(root, index)?;
        while let Node::Branch(children) = root
            && let [only] = &**children
        {
            *root = only.node.clone();
        }
        if root.width() == 0 {
            self.0 = None;
        }
        Some(removed)
    }

    /// The first `len` items, which are shared with this sequence.
    pub(super) fn prefix(&self, len: usize) -> Self {
        fn prefix<T: Item>(node: &Node<T>, len: usize) -> Node<T> {
            if len >= node.len() {
                return node.clone();
            }
            match node {
                Node::Leaf(items) => Node::Leaf(items.iter().take(len).cloned().collect()),
                Node::Branch(children) => {
                    let mut kept = Vec::new();
                    let mut rest = len;
                    for child in children.iter() {
                        if rest == 0 {
                            break;
                        }
                        let len = rest.min(child.len);
                        let key = child.key.clone();
                        kept.push(Child { len, key, node: prefix(&child.node, len) });
                        rest -= len;
                    }
                    Node::Branch(kept.into())
                }
            }
        }
        Self(self.0.as_ref().filter(|_| len > 0).map(|root| prefix(root, len)))
    }
}

impl<T: Item> FromIterator<T> for Seq<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut level: Vec<Child<T>> = Vec::new();
        let mut items = items.into_iter();
        loop {
            let leaf: Arc<[T]> = items.by_ref().take(WIDTH).collect();
            if leaf.is_empty() {
                break;
            }
            level.extend(Child::of(Node::Leaf(leaf)));
        }
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len() / WIDTH + 1);
            let mut below = level.into_iter();
            loop {
                let children: Arc<[Child<T>]> = below.by_ref().take(WIDTH).collect();
                if children.is_empty() {
                    break;
                }
                above.extend(Child::of(Node::Branch(children)));
            }
            level = above;
        }
        Self(level.pop().map(|root| root.node))
    }
}

/// The items in order.
#[derive(Debug)]
pub(super) struct Iter<'a, T: Item> {
    /// The way to the next item: nodes with the entry that comes next.
    stack: Vec<(&'a Node<T>, usize)>,
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            let (node, at) = self.stack.last_mut()?;
            let index = *at;
            *at += 1;
            match node {
                Node::Leaf(items) => match items.get(index) {
                    Some(item) => return Some(item),
                    None => drop(self.stack.pop()),
                },
                Node::Branch(children) => match children.get(index) {
                    Some(child) => self.stack.push((&child.node, 0)),
                    None => drop(self.stack.pop()),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Item for u32 {
        type Key = u32;

        fn key_ref(&self) -> &u32 {
            self
        }
    }

    impl<T: Item> Seq<T> {
        /// The depth of every leaf, which must be one, and the widths.
        fn check(&self) {
            fn depth<T: Item>(node: &Node<T>) -> usize {
                assert!((1..=WIDTH).contains(&node.width()));
                match node {
                    Node::Leaf(_) => 0,
                    Node::Branch(children) => {
                        let mut depths = children.iter().map(|child| {
                            assert_eq!(child.len, child.node.len());
                            depth(&child.node)
                        });
                        let first = depths.next().unwrap();
                        assert!(depths.all(|other| other == first));
                        first + 1
                    }
                }
            }
            if let Some(root) = &self.0 {
                depth(root);
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_vector_and_copies_keep_what_they_had(
            changes in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), any::<u32>()), 0..200),
        ) {
            let (mut seq, mut model) = (Seq::default(), Vec::new());
            let mut copies = Vec::new();
            for (what, at, value) in changes {
                let index = at.index(model.len() + 1);
                match what {
                    0 | 1 => {
                        seq.insert(index, value);
                        model.insert(index, value);
                    }
                    2 => {
                        let removed = (index < model.len()).then(|| model.remove(index));
                        prop_assert_eq!(seq.remove(index), removed);
                    }
                    _ => {
                        copies.push((seq.clone(), model.clone()));
                        copies.push((seq.prefix(index), model[..index].to_vec()));
                        if let Some(item) = seq.get_mut(index) {
                            *item = value;
                            model[index] = value;
                        }
                    }
                }
                seq.check();
            }
            copies.push((seq.clone(), model.clone()));
            copies.push((model.iter().copied().collect(), model));
            for (seq, model) in copies {
                seq.check();
                prop_assert_eq!(seq.len(), model.len());
                prop_assert!(seq.iter().eq(&model));
                let of_leaves = seq.leaves().into_iter().flat_map(|(_, items)| items.to_vec());
                prop_assert!(of_leaves.eq(model.iter().copied()));
                prop_assert_eq!(seq.get(model.len()), None);
                prop_assert!((0..model.len()).all(|at| seq.get(at) == Some(&model[at])));
            }
        }

        #[test]
        fn sorted_items_are_found_whatever_came_and_went(
            changes in prop::collection::vec((any::<bool>(), 0..200_u32), 0..300),
        ) {
            let (mut seq, mut model) = (Seq::default(), std::collections::BTreeSet::new());
            for (comes, key) in changes {
                let at = seq.position(&key);
                if comes && model.insert(key) {
                    seq.insert(at, key);
                } else if !comes && model.remove(&key) {
                    seq.remove(at);
                }
                seq.check();
                prop_assert!(seq.iter().eq(&model));
            }
            for key in 0..200 {
                prop_assert_eq!(seq.find(&key), model.get(&key));
            }
        }

        #[test]
        fn sorted_items_are_found(keys in prop::collection::btree_set(0..500_u32, 0..100)) {
            let seq: Seq<u32> = keys.iter().copied().collect();
            for key in 0..500 {
                prop_assert_eq!(seq.find(&key), keys.get(&key));
                prop_assert_eq!(seq.position(&key), keys.range(..key).count());
                prop_assert_eq!(seq.clone().find_mut(&key).copied(), keys.get(&key).copied());
            }
        }
    }
}
