use std::collections::VecDeque;

/// How many messages are remembered; the oldest are forgotten first.
const MOST: usize = 1 << 16;

/// The messages that a program holds in its context, each with its first frame: its records take some
/// of them back, or replace them, by their ids or by how many they are.
#[derive(Debug)]
pub(super) struct LiveMessages<T> {
    messages: VecDeque<(u64, T)>,
    /// How many older ones were forgotten.
    forgotten: u64,
}

impl<T> Default for LiveMessages<T> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), forgotten: 0 }
    }
}

impl<T> LiveMessages<T> {
    pub(super) fn push(&mut self, frame: u64, message: T) {
        self.make_room();
        self.messages.push_back((frame, message));
    }

    /// Puts a message in the place of those before this index, and of those that were forgotten.
    /// Gives those that it replaced.
    pub(super) fn replace_before(
        &mut self,
        at: usize,
        frame: u64,
        message: T,
    ) -> VecDeque<(u64, T)> {
        let rest = self.split_off(at);
        let replaced = std::mem::replace(&mut self.messages, rest);
        self.forgotten = 0;
        self.make_room();
        self.messages.push_front((frame, message));
        replaced
    }

    fn make_room(&mut self) {
        if self.messages.len() >= MOST {
            self.messages.pop_front();
            self.forgotten += 1;
        }
    }

    /// The first frame that leaves where the messages from this index on leave, and the frames after
    /// it that stay: a summary stands before messages that are older.
    pub(super) fn cut(&self, at: usize) -> (u64, Vec<u64>) {
        let frame = |(frame, _): &(u64, T)| *frame;
        // With the first of all, what it replaced stays away.
        let is_first = at == 0 && self.forgotten == 0;
        let leaving = self.messages.iter().skip(at).map(frame).min();
        let cut = if is_first { 0 } else { leaving.unwrap_or(u64::MAX) };
        let kept = self.messages.iter().take(at).map(frame).filter(|kept| *kept >= cut);
        (cut, kept.collect())
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
        let mut live = LiveMessages::default();
        (0..MOST as u64 + 2).for_each(|at| live.push(at, ()));
        assert_eq!((live.messages().len(), live.forgotten()), (MOST, 2));
        assert_eq!(live.split_off(1).len(), MOST - 1);
        assert_eq!(live.messages().front(), Some(&(2, ())));
    }

    #[test]
    fn a_message_that_replaces_others_stands_before_the_rest_and_has_room() {
        let mut live = LiveMessages::default();
        (0..4).for_each(|at| live.push(at, ()));
        assert_eq!(live.replace_before(2, 9, ()), [(0, ()), (1, ())]);
        assert_eq!(*live.messages(), [(9, ()), (2, ()), (3, ())]);
        assert_eq!((live.cut(0), live.cut(1)), ((0, vec![]), (2, vec![9])));
        (0..MOST as u64).for_each(|at| live.push(10 + at, ()));
        live.replace_before(0, 7, ());
        assert_eq!((live.messages().len(), live.forgotten()), (MOST, 1));
    }
}
