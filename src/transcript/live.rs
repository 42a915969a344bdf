use std::collections::VecDeque;

/// How many messages are remembered; the oldest are forgotten first.
const MOST: usize = 1 << 16;

/// The messages that a program holds in its context, each with its first frame: its records take some
/// of them back, or replace them, by their ids or by how many they are.
#[derive(Debug)]
pub(super) struct Live<T> {
    messages: VecDeque<(u64, T)>,
    /// How many older ones were forgotten.
    forgotten: u64,
}

impl<T> Default for Live<T> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), forgotten: 0 }
    }
}

impl<T> Live<T> {
    pub(super) fn push(&mut self, frame: u64, message: T) {
        if self.messages.len() >= MOST {
            self.messages.pop_front();
            self.forgotten += 1;
        }
        self.messages.push_back((frame, message));
    }

    /// Puts a message before all others.
    pub(super) fn push_first(&mut self, frame: u64, message: T) {
        self.forgotten = 0;
        self.messages.push_front((frame, message));
    }

    /// The messages that are remembered.
    pub(super) fn messages(&self) -> &VecDeque<(u64, T)> {
        &self.messages
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Takes out the messages from the one with this index on.
    pub(super) fn split_off(&mut self, at: usize) -> VecDeque<(u64, T)> {
        self.messages.split_off(at.min(self.messages.len()))
    }

    /// Takes out all messages.
    pub(super) fn take(&mut self) -> VecDeque<(u64, T)> {
        self.forgotten = 0;
        std::mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_messages_are_forgotten_and_counted() {
        let mut live = Live::default();
        (0..MOST as u64 + 2).for_each(|at| live.push(at, ()));
        assert_eq!((live.messages().len(), live.forgotten()), (MOST, 2));
        assert_eq!(live.split_off(1).len(), MOST - 1);
        assert_eq!(live.messages().front(), Some(&(2, ())));
    }
}
