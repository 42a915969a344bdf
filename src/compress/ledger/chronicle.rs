//! What happened in a range, a line for each act, with repeats counted.

use std::collections::HashMap;

use super::{
    outcome::{brief, shortened},
    sentence,
    speaker::Speaker,
};
use crate::id::FrameSeq;

/// The bytes of what came of a call.
const OUTCOME: usize = 100;

/// The bytes of what was decided.
const DECISION: usize = 240;

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    pub(super) calls: Vec<Act>,
    called: usize,
    /// Whether the user spoke before in this message.
    is_same_message: bool,
    /// The calls by what they say, so that repeats are counted.
    by_text: HashMap<String, usize>,
    /// What the user said, with the frames.
    pub(super) words: Vec<(FrameSeq, String)>,
    pub(super) decisions: Vec<(FrameSeq, String)>,
    pub(super) speeches: Vec<(FrameSeq, String)>,
}

/// A call with what came of it.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) frame: FrameSeq,
    pub(super) text: String,
    pub(super) outcome: Option<String>,
    pub(super) count: u32,
    /// The order in which it was done last.
    pub(super) order: usize,
}

impl Chronicle {
    /// Begins the next message.
    pub(super) fn next_message(&mut self) {
        self.is_same_message = false;
    }

    pub(super) fn says(&mut self, frame: FrameSeq, speaker: Speaker, text: &str) {
        match speaker {
            Speaker::User if self.is_same_message => {
                if let Some((_, said)) = self.words.last_mut() {
                    said.push_str("\n\n");
                    said.push_str(text.trim());
                }
            }
            Speaker::User => {
                self.words.push((frame, text.trim().to_owned()));
                self.is_same_message = true;
            }
            Speaker::Agent => {
                self.speeches.push((frame, text.trim().to_owned()));
                let new = sentence::decisions(text).map(|said| (frame, shortened(said, DECISION)));
                self.decisions.extend(new);
            }
            Speaker::Program | Speaker::Operator => {}
        }
    }

    /// Notes a call; says its place.
    pub(super) fn call(&mut self, frame: FrameSeq, tool: &str, subject: &str) -> usize {
        let text = format!("{tool}({subject})");
        self.called += 1;
        let order = self.called;
        let next = self.calls.len();
        let at = *self.by_text.entry(text.clone()).or_insert(next);
        match self.calls.get_mut(at) {
            Some(act) => {
                (act.frame, act.order, act.outcome) = (frame, order, None);
                act.count += 1;
            }
            None => self.calls.push(Act { frame, text, outcome: None, count: 1, order }),
        }
        at
    }

    pub(super) fn result(&mut self, place: usize, text: &str, is_failed: bool) {
        if let Some(act) = self.calls.get_mut(place) {
            act.outcome = Some(brief(text, is_failed, OUTCOME));
        }
    }
}

impl Act {
    pub(super) fn line(&self) -> String {
        let count = if self.count > 1 { format!(" ×{}", self.count) } else { String::new() };
        match &self.outcome {
            Some(outcome) => format!("{}{count} → {outcome}", self.text),
            None => format!("{}{count}", self.text),
        }
    }
}
