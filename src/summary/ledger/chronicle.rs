//! What happened in a range, a line for each act, with repeats counted.

use std::collections::HashSet;

use super::{
    act::{self, Act, CallSubject},
    decisions::Decisions,
    replies::Replies,
    section::SectionLine,
};
use crate::{
    id::FrameSeq,
    steps::{Class, Speaker, Touch},
};

/// What happened, as it came: for who keeps something else of it than lines.
#[derive(Debug)]
pub(crate) enum Happened {
    /// The user spoke.
    Asked(String),
    /// The agent spoke.
    Replied(String),
    /// A call was made, which has a number.
    Called { call: usize, tool: String, files: Vec<(Touch, String)> },
    /// What became of the call with this number. Of one that goes on several answers come.
    Answered { call: usize, class: Class },
}

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    calls: Vec<Act>,
    /// The number of the next call with what happened, where somebody wants that instead of lines.
    as_it_came: Option<(usize, Vec<Happened>)>,
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
    /// What a ledger sees while it reads: with the number of the next call.
    pub(crate) fn events(next: usize, read: impl FnOnce(&mut Self)) -> (usize, Vec<Happened>) {
        let mut chronicle = Self { as_it_came: Some((next, Vec::new())), ..Self::default() };
        read(&mut chronicle);
        chronicle.as_it_came.unwrap_or_default()
    }

    /// Begins the next message.
    pub(super) fn next_message(&mut self) {
        self.is_same_message = false;
    }

    /// Notes a text: what is shown of it, and what of it is certainly the speaker's own.
    pub(super) fn says(&mut self, frame: FrameSeq, speaker: Speaker, (text, own): (&str, &str)) {
        if let Some((_, happened)) = &mut self.as_it_came {
            match speaker {
                Speaker::User => happened.push(Happened::Asked(text.trim().to_owned())),
                Speaker::Agent => happened.push(Happened::Replied(text.trim().to_owned())),
                Speaker::Program | Speaker::Operator => {}
            }
            return;
        }
        match speaker {
            Speaker::User if self.is_same_message => {
                if let Some((_, said)) = self.words.last_mut() {
                    said.push_str("\n\n");
                    said.push_str(text.trim());
                }
            }
            Speaker::User => {
                self.decisions.user_speaks(own);
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
        if let Some((next, happened)) = &mut self.as_it_came {
            let (call, tool, files) = (*next, tool.to_owned(), of.files.to_vec());
            happened.push(Happened::Called { call, tool, files });
            *next += 1;
            return call;
        }
        self.replies.agent_calls();
        self.calls.push(Act::new(frame, tool, of));
        self.calls.len() - 1
    }

    /// Notes what came of a call.
    pub(super) fn result(&mut self, place: usize, text: &str, class: Class, ids: &[String]) {
        if let Some((_, happened)) = &mut self.as_it_came {
            return happened.push(Happened::Answered { call: place, class });
        }
        if let Some(act) = self.calls.get_mut(place) {
            act.take_outcome(text, class, ids);
        }
        self.decisions.result_comes(class.is_failure());
    }

    /// Notes the names that the newest messages use: calls about them are told before others.
    pub(crate) fn expect<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.used.extend(names.map(str::to_owned));
    }

    /// What was done, a line for each act, the last that is of use first.
    pub(super) fn acts(&self) -> Vec<SectionLine> {
        act::lines(&self.calls, &self.used)
    }
}
