//! What happened in a range, a line for each act, with repeats counted.

use std::collections::HashSet;

use super::{
    act::{self, Act, CallSubject},
    decisions::Decisions,
    outcome::Class,
    replies::Replies,
    section::SectionLine,
    speaker::Speaker,
};
use crate::id::FrameSeq;

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    calls: Vec<Act>,
    /// The names that the newest messages use.
    used: HashSet<String>,
    /// Whether the user spoke before in this message.
    is_same_message: bool,
    /// What the user said, with the frames.
    pub(super) words: Vec<(FrameSeq, String)>,
    pub(super) decisions: Decisions,
    pub(super) replies: Replies,
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
                self.decisions.user_speaks(text);
                self.replies.user_speaks();
                self.words.push((frame, text.trim().to_owned()));
                self.is_same_message = true;
            }
            Speaker::Agent => {
                self.replies.agent_speaks(frame, text);
                self.decisions.agent_speaks(frame, text);
            }
            Speaker::Program | Speaker::Operator => {}
        }
    }

    /// Notes a call; says its place.
    pub(super) fn call(&mut self, frame: FrameSeq, tool: &str, of: CallSubject<'_>) -> usize {
        self.replies.agent_calls();
        self.calls.push(Act::new(frame, tool, of));
        self.calls.len() - 1
    }

    /// Notes what came of a call.
    pub(super) fn result(&mut self, place: usize, text: &str, class: Class, ids: &[String]) {
        if let Some(act) = self.calls.get_mut(place) {
            act.take_outcome(text, class, ids);
        }
        self.decisions.result_comes(class == Class::Failed);
    }

    /// Notes the names that the newest messages use: calls about them are told before others.
    pub(in crate::compress) fn expect<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.used.extend(names.map(str::to_owned));
    }

    /// What was done, a line for each act, the last that is of use first.
    pub(super) fn acts(&self) -> Vec<SectionLine> {
        act::lines(&self.calls, &self.used)
    }
}
