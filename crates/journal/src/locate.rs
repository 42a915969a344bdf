use super::request::{Mark, Page, Position, Request};

/// Finds the position of the first event from a sequence on, between events whose places are known.
///
/// Positions of one session rise with its sequences and may lie apart, where a store keeps several
/// sessions in one log. The first guess is right where they lie evenly; then it takes O(log n) steps.
#[derive(Clone, Debug)]
pub(super) struct Locate {
    target: u64,
    /// Every event at or below this position comes before the target.
    below: Position,
    /// No event from this position on comes before the target.
    upper: Position,
    /// The position of the first event that is known not to come before the target.
    found: Position,
    guess: Position,
}

impl Locate {
    /// `last` comes at or after the target.
    pub(super) fn new(target: u64, last: &Mark) -> Self {
        let share =
            u128::from(last.position) * u128::from(target) / u128::from(last.sequence.max(1));
        let guess = u64::try_from(share).unwrap_or(last.position).min(last.position);
        let position = last.position;
        let mut locate =
            Self { target, below: 0, upper: position, found: position, guess: guess.max(1) };
        if last.sequence <= target {
            locate.below = position.saturating_sub(1);
        }
        locate
    }

    /// The position, once it is known.
    pub(super) fn found(&self) -> Option<Position> {
        (self.upper.saturating_sub(self.below) <= 1).then_some(self.found)
    }

    pub(super) fn request(&self) -> Request {
        Request::Events { from: self.guess, most: 1 }
    }

    pub(super) fn got(&mut self, page: &Page) {
        match page.events.first() {
            Some(event) if event.event.sequence < self.target => {
                self.below = self.below.max(event.position);
            }
            Some(event) => {
                self.upper = self.upper.min(self.guess);
                self.found = self.found.min(event.position);
                if event.event.sequence == self.target {
                    self.below = self.upper.saturating_sub(1);
                }
            }
            None => self.upper = self.upper.min(self.guess),
        }
        self.guess = self.below + (self.upper.saturating_sub(self.below)) / 2;
        self.guess = self.guess.max(self.below.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Event, EventId, Millis, request::PositionedEvent};

    proptest! {
        #[test]
        fn every_sequence_is_found_among_any_positions(
            steps in proptest::collection::vec(1_u64..50, 1..60),
            first in 1_u64..5,
            target in any::<proptest::sample::Index>(),
        ) {
            let mut position = 0;
            let events: Vec<PositionedEvent> = steps.iter().zip(first..).map(|(step, sequence)| {
                position += step;
                let id = EventId::new(format!("{sequence}")).unwrap();
                let event = Event { sequence, id, kind: "k".into(), recorded_at: Millis::new(0), body: Vec::new() };
                PositionedEvent { position, event }
            }).collect();
            let last = events.last().unwrap().mark();
            let target = 1 + target.index(usize::try_from(last.sequence).unwrap()) as u64;
            let mut locate = Locate::new(target, &last);
            let mut asked = 0;
            while locate.found().is_none() {
                let Request::Events { from, .. } = locate.request() else { unreachable!() };
                let events = events.iter().find(|event| event.position >= from).cloned();
                locate.got(&Page { events: events.into_iter().collect(), is_end: false });
                asked += 1;
                prop_assert!(asked < 20);
            }
            let expected = events.iter().find(|event| event.event.sequence >= target).unwrap();
            prop_assert_eq!(locate.found(), Some(expected.position));
        }
    }
}
