use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Of how many frames the line is remembered.
const FRAMES: usize = 1 << 16;

/// Where the frames of each session come from: the sequence of its first frame, and the lines of
/// the last 65,536 frames of all.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The line and the sequence.
    first: HashMap<Arc<str>, (u64, u64)>,
    recent: VecDeque<Place>,
}

#[derive(Debug)]
struct Place {
    session: Arc<str>,
    line: u64,
    sequence: u64,
}

impl Places {
    pub(super) fn push(&mut self, session: &Arc<str>, line: u64, sequence: u64) {
        if !self.first.contains_key(session) {
            self.first.insert(Arc::clone(session), (line, sequence));
        }
        if self.recent.len() >= FRAMES {
            self.recent.pop_front();
        }
        self.recent.push_back(Place { session: Arc::clone(session), line, sequence });
    }

    /// The first frame of a session.
    pub(super) fn first(&self, session: &Arc<str>) -> Option<u64> {
        self.first_place(session).map(|(_, sequence)| sequence)
    }

    /// The line and the sequence of the first frame of a session.
    pub(super) fn first_place(&self, session: &Arc<str>) -> Option<(u64, u64)> {
        self.first.get(session).copied()
    }

    /// The last frame of a session that comes from this line.
    pub(super) fn last_at(&self, session: &Arc<str>, line: u64) -> Option<u64> {
        let own = self.recent.iter().rev().filter(|place| place.session == *session);
        own.into_iter().find(|place| place.line == line).map(|place| place.sequence)
    }

    /// The last frame of a session after which all frames come from `line` or later ones.
    pub(super) fn last_before(&self, session: &Arc<str>, line: u64) -> Option<u64> {
        let own = self.recent.iter().rev().filter(|place| place.session == *session);
        own.into_iter().find(|place| place.line < line).map(|place| place.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_by_line_within_their_session() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut places = Places::default();
        for (session, line, sequence) in
            [(&a, 1, 0), (&b, 2, 1), (&a, 5, 2), (&b, 6, 3), (&a, 7, 4)]
        {
            places.push(session, line, sequence);
        }
        assert_eq!((places.first(&a), places.first(&b)), (Some(0), Some(1)));
        let last = [1, 5, 6, 7, 9].map(|line| places.last_before(&a, line));
        assert_eq!(last, [None, Some(0), Some(2), Some(2), Some(4)]);
        assert_eq!(places.last_before(&b, 6), Some(1));
        assert_eq!((places.last_at(&a, 5), places.last_at(&b, 5)), (Some(2), None));
    }

    #[test]
    fn no_more_lines_are_remembered_than_the_limit() {
        let session: Arc<str> = "s".into();
        let mut places = Places::default();
        for at in 0..=FRAMES as u64 {
            places.push(&session, at, at);
        }
        assert_eq!((places.recent.len(), places.first(&session)), (FRAMES, Some(0)));
        assert_eq!(places.last_before(&session, 1), None);
    }
}
