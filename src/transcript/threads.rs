use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::{json::Value, veil::is_cache_mark};

/// Lists of messages that share their beginnings: each thread goes on from an earlier one, whose
/// messages are not kept twice.
#[derive(Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    /// The lists that were hashed last.
    recent: VecDeque<HashedMessages>,
    /// How many messages were hashed, for tests.
    #[cfg(test)]
    hashed: usize,
}

/// How many lists are remembered: sessions that run beside each other take turns.
const RECENT: usize = 4;

/// A list of messages with their hashes.
struct HashedMessages {
    messages: Vec<Arc<Value>>,
    hashes: Vec<MessageHash>,
}

/// Names a thread within [`Threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadId(usize);

/// What tells one message from another, in whatever form a client writes it: 128 bits of hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageHash {
    hash: [u64; 2],
    /// The size of the message in bytes, roughly.
    bytes: usize,
}

impl MessageHash {
    pub(super) fn of(message: &Value) -> Self {
        let mut hasher = MessageHasher::default();
        feed(message, &mut hasher);
        Self { hash: hasher.hash(), bytes: hasher.bytes }
    }
}

/// What tells one list of messages from another.
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
    fn and(self, message: MessageHash) -> Self {
        let half = |number: usize| {
            let mut hasher = DefaultHasher::new();
            (number, self, message.hash).hash(&mut hasher);
            hasher.finish()
        };
        Self { length: self.length + 1, hash: [half(0), half(1)] }
    }

    /// The prints of the beginnings of a list that follows one with this print, from the first
    /// message of its own on.
    pub(super) fn running(self, hashes: &[MessageHash]) -> impl Iterator<Item = Self> {
        hashes.iter().scan(self, |print, hash| {
            *print = print.and(*hash);
            Some(*print)
        })
    }
}

/// The hashes of messages.
pub(super) fn hashes(messages: &[Value]) -> Vec<MessageHash> {
    messages.iter().map(MessageHash::of).collect()
}

struct Thread {
    /// Always an earlier one.
    before: Option<ThreadId>,
    messages: Vec<Arc<Value>>,
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
    /// The hashes of messages. Messages that a list before it begins with are not hashed again.
    pub(super) fn hashes(&mut self, messages: &[Arc<Value>]) -> Vec<MessageHash> {
        let known = self.recent.iter().enumerate();
        let known = known.map(|(at, known)| (known.shared(messages), at)).max();
        let mut hashes = Vec::with_capacity(messages.len());
        if let Some((shared, at)) = known
            && let Some(known) = self.recent.get(at)
        {
            hashes.extend(known.hashes.iter().take(shared));
            // Another session may begin alike.
            if shared * 2 > known.hashes.len() {
                self.recent.remove(at);
            }
        }
        #[cfg(test)]
        {
            self.hashed += messages.len() - hashes.len();
        }
        hashes.extend(messages.iter().skip(hashes.len()).map(|message| MessageHash::of(message)));
        if !messages.is_empty() {
            self.recent.truncate(RECENT - 1);
            self.recent
                .push_front(HashedMessages { messages: messages.to_vec(), hashes: hashes.clone() });
        }
        hashes
    }

    /// Adds messages with these hashes, which follow those of `before`: `print` is that of all.
    pub(super) fn add(
        &mut self,
        before: Option<ThreadId>,
        messages: Vec<Arc<Value>>,
        hashes: &[MessageHash],
        print: Print,
    ) -> ThreadId {
        let earlier = before.and_then(|before| self.get(before));
        let own: usize = hashes.iter().map(|hash| hash.bytes).sum();
        let bytes = earlier.map_or(0, |thread| thread.bytes) + own;
        let id = ThreadId(self.all.len());
        self.all.push(Thread { before, messages, print, bytes, uses: 0, given: false });
        id
    }

    /// The prints of a thread and of those that it goes on from, the nearest first.
    pub(super) fn prints(&self, id: ThreadId) -> impl Iterator<Item = Print> {
        std::iter::successors(self.get(id), |thread| self.get(thread.before?))
            .map(|thread| thread.print)
    }

    /// Prepares [`Threads::give`] for these threads, one call for each.
    pub(super) fn count_uses(&mut self, ids: impl Iterator<Item = ThreadId>) {
        for id in ids {
            if let Some(thread) = self.all.get_mut(id.0) {
                thread.uses += 1;
            }
        }
        for index in (0..self.all.len()).rev() {
            let found = self.all.get(index).map(|thread| (thread.before, thread.uses));
            if let Some((Some(before), uses)) = found
                && let Some(earlier) = self.all.get_mut(before.0)
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
        // What is given out shares nothing with what is remembered.
        self.recent.clear();
        let mut messages = Vec::new();
        for id in path.into_iter().rev() {
            let Some(thread) = self.all.get_mut(id.0) else { continue };
            thread.given = true;
            thread.uses = thread.uses.saturating_sub(1);
            if thread.uses == 0 {
                let own = std::mem::take(&mut thread.messages).into_iter();
                messages.extend(own.map(Arc::unwrap_or_clone));
            } else {
                messages.extend(thread.messages.iter().map(|message| Value::clone(message)));
            }
        }
        (messages, left_out)
    }

    fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.all.get(id.0)
    }
}

impl HashedMessages {
    /// How many messages, the first ones, are the same values as those of another list.
    fn shared(&self, messages: &[Arc<Value>]) -> usize {
        let both = self.messages.iter().zip(messages);
        both.take_while(|(own, other)| Arc::ptr_eq(own, other)).count()
    }
}

/// A hasher of 128 bits that counts what it is fed.
#[derive(Default)]
struct MessageHasher {
    hasher: blake3::Hasher,
    bytes: usize,
}

impl MessageHasher {
    fn hash(&self) -> [u64; 2] {
        let mut bytes = [[0; 8]; 2];
        self.hasher.finalize_xof().fill(bytes.as_flattened_mut());
        bytes.map(u64::from_le_bytes)
    }
}

impl Hasher for MessageHasher {
    fn finish(&self) -> u64 {
        let [first, _] = self.hash();
        first
    }

    fn write(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.hasher.update(bytes);
    }
}

/// Hashes a value; the order of members does not count, nor do cache marks, which move from turn
/// to turn.
fn feed(value: &Value, hasher: &mut MessageHasher) {
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
            let is_content = |key: &str| matches!(key, "content" | "output");
            let counts = |(key, value): &(&String, &Value)| {
                // An item of the Responses API is a message with or without its type.
                let is_form = *key == "type" && value.as_str() == Some("message");
                !(is_cache_mark(key) || is_form || is_content(key) && says_nothing(value))
            };
            let mut members: Vec<_> = object.iter().filter(counts).collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            (5_u8, members.len()).hash(hasher);
            for (key, value) in members {
                key.hash(hasher);
                if is_content(key) { feed_content(value, hasher) } else { feed(value, hasher) }
            }
        }
    }
}

/// Hashes what a message or a result says. A client that moves its cache mark writes one text now as
/// a string, and now as blocks: texts that follow each other are one, line ends and empty blocks aside.
fn feed_content(content: &Value, hasher: &mut MessageHasher) {
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        content => std::slice::from_ref(content),
    };
    for block in blocks {
        if let Some(text) = text_of(block) {
            let lines = text.split('\n').map(str::trim_end);
            lines.for_each(|line| hasher.write(line.as_bytes()));
        } else {
            hasher.write_u8(0xFF);
            feed(block, hasher);
        }
    }
    // No text holds this byte.
    hasher.write_u8(0xFF);
}

/// The text of a block that says nothing else.
fn text_of(block: &Value) -> Option<&str> {
    let Value::Object(members) = block else { return block.as_str() };
    let is_text = |kind| matches!(kind, "text" | "input_text" | "output_text");
    block.str_at("type").filter(|kind| is_text(*kind))?;
    // A provider may list what a text has none of: annotations, citations, probabilities.
    let is_form = |(key, value): (&String, &Value)| {
        matches!(key.as_str(), "type" | "text") || is_cache_mark(key) || says_nothing(value)
    };
    block.str_at("text").filter(|_| members.iter().all(is_form))
}

/// Whether a value is there and says nothing.
pub(super) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim_end().is_empty(),
        Value::Array(blocks) => {
            blocks.iter().all(|block| text_of(block).is_some_and(|text| text.trim_end().is_empty()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_beside_each_other_that_begin_alike_are_hashed_once_each() {
        let mut threads = Threads::default();
        let message = |text: String| Arc::new(Value::String(text));
        let system = message("system".to_owned());
        let mut sessions = vec![vec![system]; RECENT];
        for turn in 0..20 {
            for (number, session) in sessions.iter_mut().enumerate() {
                session.push(message(format!("{number} {turn}")));
                threads.hashes(session);
            }
        }
        // The first message of each may be hashed with it, no other again.
        let own = 20 * RECENT;
        assert!((own..=own + RECENT).contains(&threads.hashed), "{}", threads.hashed);
    }
}
