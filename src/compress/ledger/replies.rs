//! What the agent answered to a request of the user: the body of its last text before the user
//! speaks again.

use super::{
    outcome::shortened,
    sentence::{holds, lower, sentences},
};
use crate::id::FrameSeq;

/// The bytes of an answer that are kept.
const LONGEST: usize = 600;

/// Words of a sentence that only closes an answer.
const CLOSINGS: [&str; 19] = [
    "let me know",
    "feel free",
    "happy to help",
    "glad to help",
    "any questions",
    "anything else",
    "any other questions",
    "further assistance",
    "have a great day",
    "have a nice day",
    "safe travels",
    "you're welcome",
    "how can i help",
    "how can i assist",
    "how may i assist",
    "would you like me to",
    "shall i",
    "thank you for",
    "i apologize",
];

/// An exclamation of at most so many words says nothing: `Perfect!`.
const EXCLAMATION: usize = 4;

/// What the agent answered, request by request.
#[derive(Debug, Default)]
pub(super) struct Replies {
    of: Vec<(FrameSeq, String)>,
    /// The last text of the agent since the user spoke, with no call behind it.
    last: Option<(FrameSeq, String)>,
    /// Whether the user spoke.
    is_asked: bool,
}

impl Replies {
    pub(super) fn user_speaks(&mut self) {
        self.settle();
        self.is_asked = true;
    }

    pub(super) fn agent_speaks(&mut self, frame: FrameSeq, text: &str) {
        self.last = Some((frame, text.to_owned()));
    }

    /// The text before a call told what comes, and answered nothing.
    pub(super) fn agent_calls(&mut self) {
        self.last = None;
    }

    fn settle(&mut self) {
        let body = self.last.take().and_then(|(frame, text)| Some((frame, body(&text)?)));
        self.of.extend(body);
    }

    /// The answers that the user went on from, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &(FrameSeq, String)> {
        self.of.iter().rev()
    }

    /// The last one, to which the user said nothing yet.
    pub(super) fn open(&self) -> Option<(FrameSeq, String)> {
        let (frame, text) = self.last.as_ref().filter(|_| self.is_asked)?;
        Some((*frame, body(text)?))
    }
}

/// The first sentences of an answer that say something: neither an exclamation at its beginning
/// nor what only closes it.
fn body(text: &str) -> Option<String> {
    let mut body = String::new();
    for said in sentences(text) {
        let words = said.split_whitespace().count();
        let is_exclaimed = body.is_empty() && said.ends_with('!') && words <= EXCLAMATION;
        if is_exclaimed || holds(&lower(said), &CLOSINGS) {
            continue;
        }
        if !body.is_empty() {
            body.push(' ');
        }
        body.push_str(said);
        if body.len() >= LONGEST {
            break;
        }
    }
    let body = shortened(&body, LONGEST);
    body.contains(' ').then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_body() {
        let text = "Perfect!\nThe lock leaks at its lower gate. The upper one holds.\n\
            ```\nlock --all\n```\nWould you like me to shut it? Let me know if this works for you.";
        assert_eq!(body(text).unwrap(), "The lock leaks at its lower gate. The upper one holds.");
        assert_eq!(body("Great! Let me know if I can do more."), None);
    }

    #[test]
    fn what_is_said_before_a_call_is_no_answer() {
        let at = FrameSeq::new;
        let mut answers = Replies::default();
        answers.user_speaks();
        answers.agent_speaks(at(1), "I look at the lock.");
        answers.agent_calls();
        answers.agent_speaks(at(3), "The lock leaks.");
        assert_eq!(answers.open(), Some((at(3), "The lock leaks.".to_owned())));
        answers.user_speaks();
        assert_eq!(answers.open(), None);
        assert_eq!(
            answers.newest_first().collect::<Vec<_>>(),
            [&(at(3), "The lock leaks.".to_owned())]
        );
    }
}
