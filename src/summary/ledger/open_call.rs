//! Calls whose results are still to come.

use crate::{
    id::FrameSeq,
    steps::{self, Asked, Item, Touch},
};

/// A call without a result.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Waiting {
    pub(super) frame: FrameSeq,
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) key: String,
    pub(super) files: Vec<(Touch, String)>,
    /// The id of the work that it asks for, which an earlier call began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asks: Option<String>,
    /// The plan before the one that it wrote down, which holds again where it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plan_before: Option<(Vec<Item>, Option<FrameSeq>)>,
    /// The number of the step that it adds to the plan; its result may tell another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) adds_step: Option<String>,
    /// Whether nothing of it goes on once it is answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_at_once: bool,
    /// Its places in the chronicle that was written when it was read.
    #[serde(skip)]
    pub(super) places: Vec<usize>,
}

/// Work that went on when its call was answered.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Running {
    pub(super) ids: Vec<String>,
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) key: String,
    /// Its place in the chronicle that was written when it was read.
    #[serde(skip)]
    pub(super) place: Option<usize>,
}

impl Waiting {
    /// What tells how its result is to be read.
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked::new(&self.tool, &self.key, &self.files)
    }

    /// The work that goes on after the call was answered.
    pub(super) fn running(self, ids: Vec<String>) -> Running {
        let place = self.places.first().copied();
        Running { ids, tool: self.tool, subject: self.subject, key: self.key, place }
    }
}

/// What failed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Failure {
    pub(super) frame: FrameSeq,
    /// `tool(subject)`
    pub(super) call: String,
    pub(super) key: String,
    pub(super) text: String,
    /// The line of it that tells what failed.
    #[serde(default)]
    pub(super) told: String,
}

/// The bytes of the line that tells what failed.
const TOLD: usize = 400;

impl Failure {
    pub(super) fn new(frame: FrameSeq, call: &Waiting, text: &str) -> Self {
        Self {
            frame,
            call: format!("{}({})", call.tool, call.subject),
            key: call.key.clone(),
            text: steps::failure(text),
            told: steps::outcome_line(text, TOLD),
        }
    }
}
