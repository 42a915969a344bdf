//! The demands of the user that are in force.

use super::{
    own_words::{OwnWords, Said},
    sentence::{
        correction::{self, Age},
        is_question, rule,
    },
};
use crate::{
    id::FrameSeq,
    text::{flat, shortened},
};

/// So many are remembered; of more the oldest are forgotten.
const MOST: usize = 200;

/// The bytes that are remembered of a demand that another one replaced.
const REPLACED: usize = 120;

/// A rule or a preference of the user, or what is to be done instead of something.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Demand {
    pub(crate) frame: FrameSeq,
    pub(crate) text: String,
    /// The earlier one that it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<String>,
}

/// What the user demands, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Demands(Vec<Demand>);

impl Demands {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Demand> {
        self.0.iter()
    }

    /// Takes what a message of the user demands. A demand about the same replaces an earlier one, and
    /// so does a sentence that takes it back. Where it is not certainly the user's, both stay.
    /// `before` is the frame of the user's message before this one.
    pub(crate) fn take(
        &mut self,
        frame: FrameSeq,
        text: &str,
        words: &OwnWords<'_>,
        before: Option<FrameSeq>,
    ) {
        let mut after_no = false;
        for Said { text: said, own, is_certain } in words.sentences() {
            if is_question(said) {
                continue;
            }
            let correction = correction::correction(&own, after_no);
            after_no = correction::is_mere_no(&own);
            let is_rule = rule::is_rule(&own);
            let text = flat(&rule::with_code(text, said));
            let is_gone = |known: &Demand| {
                let age = match known.frame {
                    at if at == frame => Age::Same,
                    at if Some(at) == before => Age::Recent,
                    _ => Age::Old,
                };
                known.text == text
                    || is_rule && known.frame < frame && correction::replaces(&own, &known.text)
                    || correction.is_some_and(|correction| {
                        correction::takes_back(&own, correction, &known.text, age)
                    })
            };
            let gone = self.0.iter().rfind(|known| is_gone(known) && known.text != text);
            let replaces = gone.map(|gone| shortened(&gone.text, REPLACED));
            if replaces.is_some() || is_rule || correction::says_instead(&own) {
                self.0.retain(|known| known.text != text && (!is_certain || !is_gone(known)));
                let replaces = replaces.filter(|_| is_certain);
                self.0.push(Demand { frame, text, replaces });
            }
        }
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }
}
