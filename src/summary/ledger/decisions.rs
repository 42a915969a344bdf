//! What the agent decided or found, as long as nobody takes it back.

use super::{decision, state::Noted};
use crate::{id::FrameSeq, text::shortened};

/// The bytes of a decision.
const LONGEST: usize = 240;

/// What was decided, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decisions {
    made: Vec<Noted>,
    /// The number made before the user last spoke.
    answered: usize,
    /// The number made before the last result.
    settled: usize,
}

impl Decisions {
    pub(super) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// The decisions in force, the newest first, each once.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Noted> {
        let mut told = std::collections::HashSet::new();
        self.made.iter().rev().filter(move |decision| told.insert(decision.text.as_str()))
    }

    /// What the user rejects was not decided.
    pub(super) fn user_speaks(&mut self, text: &str) {
        if decision::rejects(text) {
            self.made.truncate(self.answered);
        }
        (self.answered, self.settled) = (self.made.len(), self.made.len());
    }

    pub(super) fn agent_speaks(&mut self, frame: FrameSeq, text: &str) {
        if decision::retracts(text) {
            self.made.truncate(self.answered);
            self.settled = self.settled.min(self.answered);
        }
        let new = decision::decisions(text);
        self.made.extend(new.map(|said| Noted::new(frame, shortened(said, LONGEST))));
    }

    /// What was decided for a call that failed was not right.
    pub(super) fn result_comes(&mut self, is_failed: bool) {
        if is_failed {
            self.made.truncate(self.settled);
        }
        self.settled = self.made.len();
    }

    /// Keeps the newest `most` decisions.
    pub(super) fn keep_newest(&mut self, most: usize) {
        let over = self.made.len().saturating_sub(most);
        self.made.drain(..over);
        self.answered = self.answered.saturating_sub(over);
        self.settled = self.settled.saturating_sub(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(decisions: &Decisions) -> Vec<&str> {
        decisions.newest_first().map(|decision| decision.text.as_str()).collect()
    }

    #[test]
    fn what_is_rejected_or_fails_is_taken_back_also_after_the_oldest_were_forgotten() {
        let at = FrameSeq::new;
        let mut decisions = Decisions::default();
        for number in 0..5 {
            decisions.agent_speaks(at(number), &format!("I'll use quay number {number}."));
            decisions.result_comes(false);
        }
        decisions.user_speaks("Yes, go on.");
        decisions.keep_newest(2);
        let kept = ["I'll use quay number 4.", "I'll use quay number 3."];
        assert_eq!(texts(&decisions), kept);
        decisions.agent_speaks(at(6), "I'll use hemp ropes there.");
        decisions.result_comes(true);
        assert_eq!(texts(&decisions), kept);
        decisions.agent_speaks(at(7), "I'll use steel ropes there.");
        decisions.result_comes(false);
        assert_eq!(texts(&decisions).len(), 3);
        decisions.user_speaks("No, hemp.");
        assert_eq!(texts(&decisions), kept);
    }
}
