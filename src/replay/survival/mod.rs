//! What a text still says of a session: finders of what matters, which share no code with the engines
//! that they measure.
//!
//! | what | is |
//! |---|---|
//! | first message, later words | runs of five words of the user |
//! | rules | sentences of the user with words such as never, must, only, don't |
//! | last error | the line of the last result that tells of one, whole; in a log without calls, of what answers a fenced block of the agent |
//! | open items | those of the last plan that a call wrote down |
//! | files changed | by calls that name a file and say what is new, or by a patch |

pub(crate) mod words;
pub(crate) mod work;

use std::ops::AddAssign;

// Tests and benches take the files of the finders in too, so these name what they use by `super`.
use crate::{
    id::{ChunkType, Role},
    json,
    snapshot::PartRef,
};
use crate::{
    json::{Number, Object, ObjectExt, Value},
    steps::Passage,
};

crate::json::serialize_through_json!(Survival);

/// How much of something a text still says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivingShare {
    /// How many of them stand in the text.
    pub found: u64,
    /// How many there are.
    pub wanted: u64,
}

/// What a text still says of messages. Figures of several texts add up.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// How many texts were looked at.
    pub texts: u64,
    /// Of the user's first message.
    pub first_message: SurvivingShare,
    /// Of what the user said later.
    pub later_words: SurvivingShare,
    /// Of the user's rules.
    pub rules: SurvivingShare,
    /// Whether the last error is there.
    pub last_error: SurvivingShare,
    /// Of the open items of the plan.
    pub open_items: SurvivingShare,
    /// Of the files that were changed.
    pub files_changed: SurvivingShare,
}

impl Survival {
    /// What `text` says of `messages`. `spoken` are those of them that the user speaks: what programs
    /// answered as the user is none of it.
    ///
    /// Costs time in the messages and in the text.
    pub fn of(messages: &[Passage], spoken: &[Passage], text: &str) -> Self {
        let said = words::words(spoken, false);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stands =
            |wanted: &str| flat.contains(&wanted.split_whitespace().collect::<Vec<_>>().join(" "));
        let there = words::Runs::of(text);
        let grams = |texts: &[String]| {
            let mut share = SurvivingShare::default();
            for said in texts {
                let (found, wanted) = there.found(said);
                share += SurvivingShare { found: found as u64, wanted: wanted as u64 };
            }
            share
        };
        let each = |wanted: &mut dyn Iterator<Item = String>| {
            let mut share = SurvivingShare::default();
            for one in wanted {
                share += SurvivingShare { found: u64::from(stands(&one)), wanted: 1 };
            }
            share
        };
        let (first, later) = said.split_at(said.len().min(1));
        let is_text_only = work::has_commands_in_text(messages);
        Self {
            texts: 1,
            first_message: grams(first),
            later_words: grams(later),
            rules: each(&mut words::rules(&said).into_iter()),
            last_error: each(&mut work::last_error(messages, is_text_only).into_iter()),
            open_items: each(&mut work::open_items(messages).into_iter()),
            files_changed: each(&mut work::files_changed(messages).into_iter()),
        }
    }

    /// The shares under their wire names.
    pub fn shares(&self) -> [(&'static str, SurvivingShare); 6] {
        [
            ("firstMessage", self.first_message),
            ("laterWords", self.later_words),
            ("rules", self.rules),
            ("lastError", self.last_error),
            ("openItems", self.open_items),
            ("filesChanged", self.files_changed),
        ]
    }

    /// The wire form: `texts`, and of each share its ratio where there is something to be said.
    /// O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("texts", self.texts);
        for (name, share) in self.shares() {
            let ratio = share.ratio().and_then(Number::from_f64);
            object.put_some(name, ratio.map(Value::Number));
        }
        object.into()
    }
}

impl SurvivingShare {
    /// The share; `None` where there is nothing to be said.
    pub fn ratio(&self) -> Option<f64> {
        (self.wanted > 0).then(|| self.found as f64 / self.wanted as f64)
    }
}

impl AddAssign for SurvivingShare {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.wanted += other.wanted;
    }
}

impl AddAssign for Survival {
    fn add_assign(&mut self, other: Self) {
        self.texts += other.texts;
        self.first_message += other.first_message;
        self.later_words += other.later_words;
        self.rules += other.rules;
        self.last_error += other.last_error;
        self.open_items += other.open_items;
        self.files_changed += other.files_changed;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        work::{has_commands_in_text, last_error},
        *,
    };
    use crate::{
        id::{FrameSeq, Millis},
        snapshot::{ChunkOptions, FrameSnapshotBuilder, Part},
        tokens::Chars4,
    };

    fn passage(at: usize, role: Role, text: &str, part: Part) -> Passage {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content(text, ChunkOptions::new().role(role).part(part));
        let (from, snapshot) = (FrameSeq::new(at as u64), builder.build(Millis::new(0)));
        Passage::new(from, from, role, Arc::new(snapshot))
    }

    fn log(said: &[&str]) -> Vec<Passage> {
        let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let passage = |(at, text): (usize, &&str)| passage(at, role(at), text, Part::Text);
        said.iter().enumerate().map(passage).collect()
    }

    const RUN: &str = "I run it.\n```bash\npython tide.py\n```";
    const BROKEN: &str = "<returncode>1</returncode>\nTraceback (most recent call last):\n\
        ValueError: the tide is 7";

    #[test]
    fn a_log_without_calls_has_the_last_error_of_what_answers_a_block() {
        let messages = log(&["Error: fix it", RUN, BROKEN, RUN, "done", "Good.", "Error: no"]);
        assert!(has_commands_in_text(&messages));
        let error = last_error(&messages, true);
        assert_eq!(error.as_deref(), Some("ValueError: the tide is 7"));
        assert_eq!(last_error(&messages, false), None);
    }

    #[test]
    fn in_a_chat_and_in_a_log_with_calls_nothing_the_user_says_is_a_result() {
        let chat = log(&["How?", RUN, "And?", "So.", "And?", "So.", "Error: it breaks"]);
        assert!(!has_commands_in_text(&chat));
        let mut calls = log(&["Fix it", RUN, BROKEN]);
        calls.push(passage(3, Role::User, "ok", Part::Result { id: None }));
        assert!(!has_commands_in_text(&calls));
        assert!(!has_commands_in_text(&[]));
    }
}
