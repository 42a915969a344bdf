use std::{fmt, hash::BuildHasher, iter, ops::Index, slice, vec};

use hashbrown::HashTable;

use super::Value;

/// Up to so many members are searched one by one: for fewer, that is faster than a hash, and takes
/// a third of the memory. Most objects have fewer.
const FEW: usize = 16;

/// A member of an object.
type Member = (String, Value);

/// The members of a JSON object in insertion order. A key is found in O(1).
///
/// Removing with `shift_remove` keeps the order. Equality does not depend on it.
///
/// ```
/// use afterimage_json::{Object, Value};
///
/// let mut object = Object::from_iter([("b", Value::from(1_u64)), ("a", Value::Null)]);
/// object.insert("c".to_owned(), true.into());
/// object.shift_remove("b");
/// assert_eq!(Value::from(object).to_string(), r#"{"a":null,"c":true}"#);
/// ```
#[derive(Clone)]
pub struct Object(Members);

#[derive(Clone)]
enum Members {
    Few(Vec<Member>),
    Many(Box<Indexed>),
}

/// Members with their places by key.
#[derive(Clone, Default)]
struct Indexed {
    members: Vec<Member>,
    places: HashTable<usize>,
    /// Seeded for each process; decides nothing that can be seen.
    hasher: foldhash::fast::RandomState,
}

const _: () = assert!(size_of::<Object>() <= 24, "a history holds many objects");
const _: () = assert!(size_of::<Value>() <= 32, "a history holds many values");

/// The members of an object, in order.
type Iter<'a> = iter::Map<slice::Iter<'a, Member>, fn(&'a Member) -> (&'a String, &'a Value)>;

impl Object {
    /// An object without members. Allocates nothing.
    pub const fn new() -> Self {
        Self(Members::Few(Vec::new()))
    }

    fn members(&self) -> &[Member] {
        match &self.0 {
            Members::Few(members) => members,
            Members::Many(indexed) => &indexed.members,
        }
    }

    fn members_mut(&mut self) -> &mut [Member] {
        match &mut self.0 {
            Members::Few(members) => members,
            Members::Many(indexed) => &mut indexed.members,
        }
    }

    /// The index of a member, in O(1).
    fn place(&self, key: &str) -> Option<usize> {
        match &self.0 {
            Members::Few(members) => members.iter().position(|(name, _)| name == key),
            Members::Many(indexed) => indexed.place(key),
        }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// The member `key`, in O(1).
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.get_full(key).map(|(_, _, value)| value)
    }

    /// The string member `key`, in O(1).
    pub fn str_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The member `key` with its index and its key, in O(1).
    pub fn get_full(&self, key: &str) -> Option<(usize, &String, &Value)> {
        let place = self.place(key)?;
        self.get_index(place).map(|(key, value)| (place, key, value))
    }

    /// The member at an index, in O(1).
    pub fn get_index(&self, index: usize) -> Option<(&String, &Value)> {
        self.members().get(index).map(|(key, value)| (key, value))
    }

    /// The member `key`, to be changed, in O(1).
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let place = self.place(key)?;
        self.members_mut().get_mut(place).map(|(_, value)| value)
    }

    /// Whether there is a member `key`, in O(1).
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// Sets the member `key`: in its place where it has one, else at the end. Gives back the value
    /// before. Runs in O(1) time, amortised.
    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        if let Some(old) = self.get_mut(&key) {
            return Some(std::mem::replace(old, value));
        }
        match &mut self.0 {
            Members::Few(members) if members.len() < FEW => {
                // Most objects are small and stay as they are: room for twice as many, no more.
                if members.len() == members.capacity() {
                    members.reserve_exact(members.len().max(1));
                }
                members.push((key, value));
            }
            Members::Few(members) => {
                let mut indexed = Indexed::of(std::mem::take(members));
                indexed.push(key, value);
                self.0 = Members::Many(Box::new(indexed));
            }
            Members::Many(indexed) => indexed.push(key, value),
        }
        None
    }

    /// Inserts the member at `index` and moves later members back; an index past the end appends.
    /// O(n).
    pub fn shift_insert(&mut self, index: usize, key: String, value: Value) -> Option<Value> {
        let old = self.shift_remove(&key);
        let mut members: Vec<Member> = std::mem::take(self).into_iter().collect();
        members.insert(index.min(members.len()), (key, value));
        *self = Self::of(members);
        old
    }

    /// Takes the member `key` out; those after it move up. Runs in O(n) time.
    pub fn shift_remove(&mut self, key: &str) -> Option<Value> {
        let place = self.place(key)?;
        let (_, value) = match &mut self.0 {
            Members::Few(members) => members.remove(place),
            Members::Many(indexed) => indexed.remove(place),
        };
        Some(value)
    }

    /// Keeps the members for which `keeps` says so, in order. O(n).
    pub fn retain(&mut self, mut keeps: impl FnMut(&String, &mut Value) -> bool) {
        let mut members = match std::mem::take(self).0 {
            Members::Few(members) => members,
            Members::Many(indexed) => indexed.members,
        };
        members.retain_mut(|(key, value)| keeps(key, value));
        *self = Self::of(members);
    }

    /// Takes all members out. O(n).
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The members in order. O(n) for all of them.
    pub fn iter(&self) -> Iter<'_> {
        self.members().iter().map(|(key, value)| (key, value))
    }

    /// The keys in order. O(n) for all of them.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> + DoubleEndedIterator + Clone {
        self.members().iter().map(|(key, _)| key)
    }

    /// The values in order. O(n) for all of them.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> + DoubleEndedIterator + Clone {
        self.members().iter().map(|(_, value)| value)
    }

    /// The values in order, to be changed. O(n) for all of them.
    pub fn values_mut(
        &mut self,
    ) -> impl ExactSizeIterator<Item = &mut Value> + DoubleEndedIterator {
        self.members_mut().iter_mut().map(|(_, value)| value)
    }

    /// The members in order, with values that may be changed. O(n) for all of them.
    pub fn iter_mut(
        &mut self,
    ) -> impl ExactSizeIterator<Item = (&String, &mut Value)> + DoubleEndedIterator {
        self.members_mut().iter_mut().map(|(key, value)| (&*key, value))
    }

    /// The first member.
    pub fn first(&self) -> Option<(&String, &Value)> {
        self.get_index(0)
    }

    /// The last member.
    pub fn last(&self) -> Option<(&String, &Value)> {
        self.get_index(self.len().checked_sub(1)?)
    }

    /// The object of members with different keys.
    fn of(members: Vec<Member>) -> Self {
        if members.len() <= FEW {
            return Self(Members::Few(members));
        }
        Self(Members::Many(Box::new(Indexed::of(members))))
    }

    /// Gives back the room for further members. O(n).
    pub fn shrink_to_fit(&mut self) {
        match &mut self.0 {
            Members::Few(members) => members.shrink_to_fit(),
            Members::Many(indexed) => indexed.members.shrink_to_fit(),
        }
    }
}

impl Indexed {
    fn of(members: Vec<Member>) -> Self {
        let mut indexed = Self::default();
        members.into_iter().for_each(|(key, value)| indexed.push(key, value));
        indexed
    }

    fn place(&self, key: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let is_it = |place: &usize| self.members.get(*place).is_some_and(|(name, _)| name == key);
        self.places.find(hash, is_it).copied()
    }

    /// Appends a member whose key is not there.
    fn push(&mut self, key: String, value: Value) {
        let Self { members, places, hasher } = self;
        let hash_of =
            |place: &usize| members.get(*place).map_or(0, |(key, _)| hasher.hash_one(key.as_str()));
        places.insert_unique(hasher.hash_one(key.as_str()), members.len(), hash_of);
        members.push((key, value));
    }

    fn remove(&mut self, place: usize) -> Member {
        let member = self.members.remove(place);
        let hash = self.hasher.hash_one(member.0.as_str());
        if let Ok(entry) = self.places.find_entry(hash, |at| *at == place) {
            entry.remove();
        }
        self.places.iter_mut().filter(|at| **at > place).for_each(|at| *at -= 1);
        member
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let is_there = |(key, value): (&String, &Value)| other.get(key) == Some(value);
        self.len() == other.len() && self.iter().all(is_there)
    }
}

impl Eq for Object {}

/// The member with this key; `null` where there is none.
impl Index<&str> for Object {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        let mut object = Self::new();
        object.extend(members.into_iter().map(|(key, value)| (key.into(), value)));
        object
    }
}

impl Extend<(String, Value)> for Object {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

impl IntoIterator for Object {
    type Item = Member;
    type IntoIter = vec::IntoIter<Member>;

    fn into_iter(self) -> Self::IntoIter {
        match self.0 {
            Members::Few(members) => members.into_iter(),
            Members::Many(indexed) => indexed.members.into_iter(),
        }
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a String, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An [`Object`] with these members, in this order.
///
/// ```
/// use afterimage_json::{Value, object};
///
/// let object = object! { "name": "Ada", "ticks": 3_u64, "base": Value::Null };
/// assert_eq!(Value::from(object).to_string(), r#"{"name":"Ada","ticks":3,"base":null}"#);
/// ```
#[macro_export]
macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => {{
        let mut object = $crate::Object::new();
        $(object.insert($key.to_owned(), $crate::Value::from($value));)*
        object
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the same to an object and to a list of members, and compares them.
    fn check(count: usize) {
        let (mut object, mut expected) = (Object::new(), Vec::new());
        for number in 0..count {
            let key = format!("k{}", number * 7 % 41);
            let value = Value::from(number as u64);
            let place = expected.iter().position(|(name, _): &Member| *name == key);
            match place {
                Some(place) => expected[place].1 = value.clone(),
                None => expected.push((key.clone(), value.clone())),
            }
            assert_eq!(object.insert(key, value).is_some(), place.is_some());
            if number % 5 == 4 {
                let (key, value) = expected.remove(number % expected.len());
                assert_eq!(object.shift_remove(&key), Some(value));
                assert_eq!(object.shift_remove(&key), None);
            }
            assert_eq!(object.clone().into_iter().collect::<Vec<_>>(), expected);
            for (at, (key, value)) in expected.iter().enumerate() {
                assert_eq!(object.get_full(key), Some((at, key, value)));
            }
        }
        let turned: Object = expected.iter().rev().cloned().collect();
        assert_eq!(object, turned);
        object.retain(|key, _| key.len() == 2);
        expected.retain(|(key, _)| key.len() == 2);
        assert_eq!(object, expected.into_iter().collect::<Object>());
        assert_eq!(object == turned, object.len() == turned.len());
    }

    #[test]
    fn small_and_large_objects_are_the_same_map() {
        [0, 1, 15, 16, 17, 18, 30, 100].into_iter().for_each(check);
    }
}
