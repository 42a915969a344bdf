//! The nodes of the tree, and how entries come into them and leave them.

use std::{borrow::Borrow, sync::Arc};

use super::Item;

/// The most entries of a node. Few, since a node is copied when a shared sequence changes.
pub(super) const WIDTH: usize = if cfg!(test) { 4 } else { 16 };

/// A node, whose entries follow each other in memory. None is empty.
#[derive(Debug)]
pub(super) enum Node<T: Item> {
    Leaf(Arc<[T]>),
    Branch(Arc<[Child<T>]>),
}

#[derive(Debug)]
pub(super) struct Child<T: Item> {
    pub(super) len: usize,
    /// That of the first item.
    pub(super) key: T::Key,
    pub(super) node: Node<T>,
}

impl<T: Item> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(items) => Self::Leaf(Arc::clone(items)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

impl<T: Item> Clone for Child<T> {
    fn clone(&self) -> Self {
        Self { len: self.len, key: self.key.clone(), node: self.node.clone() }
    }
}

impl<T: Item> Node<T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    /// How many entries the node itself has.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.len(),
        }
    }

    pub(super) fn first(&self) -> Option<&T> {
        match self {
            Self::Leaf(items) => items.first(),
            Self::Branch(children) => children.first()?.node.first(),
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(a), Self::Leaf(b)) => Arc::ptr_eq(a, b),
            (Self::Branch(a), Self::Branch(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<T: Item> Child<T> {
    pub(super) fn of(node: Node<T>) -> Option<Self> {
        let key = node.first()?.key_ref().clone();
        Some(Self { len: node.len(), key, node })
    }
}

/// The child that holds the item `index`, and the item's index in it.
pub(super) fn child_of<T: Item>(children: &[Child<T>], mut index: usize) -> Option<(usize, usize)> {
    for (at, child) in children.iter().enumerate() {
        if index < child.len {
            return Some((at, index));
        }
        index -= child.len;
    }
    None
}

/// The child in which a key would be.
pub(super) fn towards<T: Item, K: Ord + ?Sized>(children: &[Child<T>], key: &K) -> usize
where
    T::Key: Borrow<K>,
{
    children.partition_point(|child| child.key.borrow() <= key).saturating_sub(1)
}

pub(super) fn search<T: Item, K: Ord + ?Sized>(items: &[T], key: &K) -> Result<usize, usize>
where
    T::Key: Borrow<K>,
{
    items.binary_search_by(|item| item.key_ref().borrow().cmp(key))
}

/// Inserts, and gives what was split off to the right where the node was full.
pub(super) fn insert<T: Item>(node: &mut Node<T>, index: usize, item: T) -> Option<Child<T>> {
    let right = match node {
        Node::Leaf(items) => Node::Leaf(put(items, index, item)?),
        Node::Branch(children) => {
            let mut rest = index;
            let mut at = 0;
            for child in children.iter().take(children.len().saturating_sub(1)) {
                if rest <= child.len {
                    break;
                }
                rest -= child.len;
                at += 1;
            }
            let child = Arc::make_mut(children).get_mut(at)?;
            let split_off = insert(&mut child.node, rest, item);
            child.len += 1;
            if rest == 0 {
                child.key = child.node.first()?.key_ref().clone();
            }
            let right = split_off?;
            child.len -= right.len;
            Node::Branch(put(children, at + 1, right)?)
        }
    };
    Child::of(right)
}

/// Puts an entry into a node; gives what has to leave it where it is full: half of it or, where it
/// grows at its end, the last entry.
fn put<E: Clone>(entries: &mut Arc<[E]>, index: usize, entry: E) -> Option<Arc<[E]>> {
    let (left, right) = entries.split_at_checked(index).unwrap_or((entries, &[]));
    let is_end = right.is_empty();
    let mut all = Vec::with_capacity(entries.len() + 1);
    all.extend_from_slice(left);
    all.push(entry);
    all.extend_from_slice(right);
    let split = if is_end { all.len() - 1 } else { all.len() / 2 };
    let split_off = (all.len() > WIDTH).then(|| all.split_off(split).into());
    *entries = all.into();
    split_off
}

/// Takes an entry out of a node.
fn take<E: Clone>(entries: &mut Arc<[E]>, index: usize) -> Option<E> {
    let taken = entries.get(index)?.clone();
    let others = entries.iter().enumerate().filter(|(at, _)| *at != index);
    *entries = others.map(|(_, entry)| entry.clone()).collect();
    Some(taken)
}

pub(super) fn remove<T: Item>(node: &mut Node<T>, index: usize) -> Option<T> {
    match node {
        Node::Leaf(items) => take(items, index),
        Node::Branch(children) => {
            let (at, rest) = child_of(children, index)?;
            let child = Arc::make_mut(children).get_mut(at)?;
            let removed = remove(&mut child.node, rest)?;
            child.len -= 1;
            if rest == 0
                && let Some(first) = child.node.first()
            {
                child.key = first.key_ref().clone();
            }
            let width = child.node.width();
            if width == 0 {
                take(children, at);
            } else if width < WIDTH / 4 + 1 {
                let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
                merge(children, left);
            }
            Some(removed)
        }
    }
}

/// Joins a child with the one to its right, where both fit into one.
fn merge<T: Item>(children: &mut Arc<[Child<T>]>, left: usize) {
    let Some([a, b]) = children.get(left..left + 2) else { return };
    if a.node.width() + b.node.width() > WIDTH {
        return;
    }
    let node = match (&a.node, &b.node) {
        (Node::Leaf(a), Node::Leaf(b)) => Node::Leaf(a.iter().chain(&**b).cloned().collect()),
        (Node::Branch(a), Node::Branch(b)) => Node::Branch(a.iter().chain(&**b).cloned().collect()),
        // All leaves of a tree are at one depth.
        _ => return,
    };
    take(children, left + 1);
    if let (Some(into), Some(joined)) = (Arc::make_mut(children).get_mut(left), Child::of(node)) {
        *into = joined;
    }
}
