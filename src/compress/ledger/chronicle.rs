//! What happened in a range, a line for each act, with repeats counted.

use std::collections::HashMap;

use super::{
    answer::Answers,
    decision,
    outcome::{Class, brief, shortened},
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
    calls: Vec<Act>,
    /// Whether the user spoke before in this message.
    is_same_message: bool,
    /// What the user said, with the frames.
    pub(super) words: Vec<(FrameSeq, String)>,
    pub(super) decisions: Vec<(FrameSeq, String)>,
    pub(super) answers: Answers,
    /// So many decisions were made before the user spoke last, and before the last result.
    answered: usize,
    settled: usize,
}

/// A call with what came of it.
#[derive(Clone, Debug)]
struct Act {
    frame: FrameSeq,
    text: String,
    outcome: Option<(Class, String)>,
}

/// Calls that say the same and came to the same.
#[derive(Debug)]
pub(super) struct Acts {
    pub(super) frame: FrameSeq,
    text: String,
    outcome: Option<(Class, String)>,
    count: u32,
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
                // What the user rejects was not decided.
                if decision::rejects(text) {
                    self.decisions.truncate(self.answered);
                }
                (self.answered, self.settled) = (self.decisions.len(), self.decisions.len());
                self.answers.user_speaks();
                self.words.push((frame, text.trim().to_owned()));
                self.is_same_message = true;
            }
            Speaker::Agent => {
                self.answers.agent_speaks(frame, text);
                if decision::retracts(text) {
                    self.decisions.truncate(self.answered);
                    self.settled = self.settled.min(self.answered);
                }
                let new = decision::decisions(text).map(|said| (frame, shortened(said, DECISION)));
                self.decisions.extend(new);
            }
            Speaker::Program | Speaker::Operator => {}
        }
    }

    /// Notes a call; says its place.
    pub(super) fn call(&mut self, frame: FrameSeq, tool: &str, subject: &str) -> usize {
        self.answers.agent_calls();
        self.calls.push(Act { frame, text: format!("{tool}({subject})"), outcome: None });
        self.calls.len() - 1
    }

    /// Notes what came of a call.
    pub(super) fn result(&mut self, place: usize, text: &str, class: Class, ids: &[String]) {
        let outcome = match class {
            Class::Running => format!("running: {}", ids.join(" ")),
            class => brief(text, class == Class::Failed, OUTCOME),
        };
        if let Some(act) = self.calls.get_mut(place) {
            act.outcome = Some((class, outcome));
        }
        // What was decided for a call that failed was not right.
        if class == Class::Failed {
            self.decisions.truncate(self.settled);
        }
        self.settled = self.decisions.len();
    }

    /// What was done, the last first: calls that say the same and came to the same are one.
    pub(super) fn acts(&self) -> Vec<Acts> {
        let mut acts: Vec<Acts> = Vec::new();
        let mut by_text: HashMap<(&str, Option<Class>), usize> = HashMap::new();
        for act in self.calls.iter().rev() {
            let class = act.outcome.as_ref().map(|(class, _)| *class);
            let next = acts.len();
            let at = *by_text.entry((&act.text, class)).or_insert(next);
            match acts.get_mut(at) {
                Some(acts) => acts.count += 1,
                None => acts.push(Acts {
                    frame: act.frame,
                    text: act.text.clone(),
                    outcome: act.outcome.clone(),
                    count: 1,
                }),
            }
        }
        acts
    }
}

impl Acts {
    pub(super) fn line(&self) -> String {
        let count = if self.count > 1 { format!(" ×{}", self.count) } else { String::new() };
        match &self.outcome {
            Some((_, outcome)) => format!("{}{count} → {outcome}", self.text),
            None => format!("{}{count}", self.text),
        }
    }
}
