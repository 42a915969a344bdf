use std::hash::{DefaultHasher, Hash, Hasher};

use crate::json::Value;

/// Lists of messages that share their beginnings: each thread goes on from an earlier one, whose
/// messages are not kept twice.
#[derive(Default)]
pub(super) struct Threads(Vec<Thread>);

/// Names a thread within [`Threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadId(usize);

/// What tells one list of messages from another, whatever their cache markers.
///
/// With 128 bits of hash no two lists are taken for the same by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Print {
    length: usize,
    hash: [u64; 2],
}

impl Print {
    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// How many messages it is of.
    pub(super) fn len(self) -> usize {
        self.length
    }

    /// The print of the same messages and one more.
    fn and(self, message: &Value) -> (Self, usize) {
        let mut hasher = WideThread::default();
        self.hash(&mut hasher);
        feed(message, &mut hasher);
        (Self { length: self.length + 1, hash: hasher.hash() }, hasher.bytes)
    }
}

/// The prints of the beginnings of a list, from its first message on.
pub(super) fn running(messages: &[Value]) -> Vec<Print> {
    let next = |print: &mut Print, message| {
        *print = print.and(message).0;
        Some(*print)
    };
    messages.iter().scan(Print::default(), next).collect()
}

struct Thread {
    /// Always an earlier one.
    before: Option<ThreadId>,
    messages: Vec<Value>,
    /// Of all messages from the start, not only of its own.
    print: Print,
    /// The size of all messages from the start, in bytes, roughly.
    bytes: usize,
    /// How many of the lists that are still to be given hold these messages.
    uses: usize,
    given: bool,
}

/// What a file may have repeated: a small one must not become an endless one.
pub(super) struct Budget {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

impl Budget {
    /// Takes this much, if there is as much left.
    pub(super) fn take(&mut self, messages: usize, bytes: usize) -> bool {
        match (self.messages.checked_sub(messages), self.bytes.checked_sub(bytes)) {
            (Some(messages), Some(bytes)) => {
                *self = Self { messages, bytes };
                true
            }
            _ => false,
        }
    }
}

impl Threads {
    /// Adds messages that follow those of `before`. Gives the prints of its beginnings too, from
    /// the first message of its own on.
    pub(super) fn add(
        &mut self,
        before: Option<ThreadId>,
        messages: Vec<Value>,
    ) -> (ThreadId, Vec<Print>) {
        let earlier = before.and_then(|before| self.get(before));
        let (mut print, mut bytes) =
            earlier.map(|thread| (thread.print, thread.bytes)).unwrap_or_default();
        let mut prints = Vec::with_capacity(messages.len());
        for message in &messages {
            let (next, size) = print.and(message);
            print = next;
            bytes += size;
            prints.push(print);
        }
        let id = ThreadId(self.0.len());
        self.0.push(Thread { before, messages, print, bytes, uses: 0, given: false });
        (id, prints)
    }

    /// The prints of a thread and of those that it goes on from, the nearest first.
    pub(super) fn prints(&self, id: ThreadId) -> impl Iterator<Item = Print> {
        std::iter::successors(self.get(id), |thread| self.get(thread.before?))
            .map(|thread| thread.print)
    }

    /// Prepares [`Threads::give`] for these threads, one call for each.
    pub(super) fn count_uses(&mut self, ids: impl Iterator<Item = ThreadId>) {
        for id in ids {
            if let Some(thread) = self.0.get_mut(id.0) {
                thread.uses += 1;
            }
        }
        for index in (0..self.0.len()).rev() {
            let found = self.0.get(index).map(|thread| (thread.before, thread.uses));
            if let Some((Some(before), uses)) = found
                && let Some(earlier) = self.0.get_mut(before.0)
            {
                earlier.uses += uses;
            }
        }
    }

    /// All messages of a thread from the start, and how many were left out: those that were given
    /// before are given again only within the budget.
    pub(super) fn give(&mut self, id: ThreadId, budget: &mut Budget) -> (Vec<Value>, usize) {
        let (mut path, mut left_out, mut is_repeated) = (Vec::new(), 0, false);
        let mut next = Some(id);
        while let Some(id) = next
            && let Some(thread) = self.get(id)
        {
            // What is before a thread that was given was given too.
            if thread.given && !is_repeated {
                is_repeated = budget.take(thread.print.length, thread.bytes);
                if !is_repeated {
                    left_out = thread.print.length;
                    break;
                }
            }
            path.push(id);
            next = thread.before;
        }
        let mut messages = Vec::new();
        for id in path.into_iter().rev() {
            let Some(thread) = self.0.get_mut(id.0) else { continue };
            thread.given = true;
            thread.uses = thread.uses.saturating_sub(1);
            if thread.uses == 0 {
                messages.append(&mut thread.messages);
            } else {
                messages.extend_from_slice(&thread.messages);
            }
        }
        (messages, left_out)
    }

    fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.0.get(id.0)
    }
}

/// A hasher of 128 bits that counts what it is fed.
struct WideThread {
    halves: [DefaultHasher; 2],
    bytes: usize,
}

impl Default for WideThread {
    fn default() -> Self {
        let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
        for (half, hasher) in halves.iter_mut().enumerate() {
            hasher.write_usize(half);
        }
        Self { halves, bytes: 0 }
    }
}

impl WideThread {
    fn hash(&self) -> [u64; 2] {
        self.halves.each_ref().map(Hasher::finish)
    }
}

impl Hasher for WideThread {
    fn finish(&self) -> u64 {
        let [first, _] = self.hash();
        first
    }

    fn write(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.halves.iter_mut().for_each(|half| half.write(bytes));
    }
}

/// Hashes a value; the order of members does not count, nor do cache markers, which move from turn
/// to turn.
fn feed(value: &Value, hasher: &mut WideThread) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(bool) => (1_u8, bool).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(array) => {
            (4_u8, array.len()).hash(hasher);
            array.iter().for_each(|value| feed(value, hasher));
        }
        Value::Object(object) => {
            let mut members: Vec<_> =
                object.iter().filter(|(key, _)| *key != "cache_control").collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            (5_u8, members.len()).hash(hasher);
            for (key, value) in members {
                key.hash(hasher);
                feed(value, hasher);
            }
        }
    }
}
