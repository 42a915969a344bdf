use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    id::FrameSeq,
    json::{self, Value},
};

/// What an export changed.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Calls without a result and results without a call, in the order of the export.
    pub repaired: Vec<Repair>,
    /// What was written in another way than it stood in the source, by what was done.
    pub normalised: BTreeMap<&'static str, u64>,
    /// What the form has no place for, by kind.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Members of messages and parts that the form has no place for, by name.
    pub members: BTreeMap<String, u64>,
}

/// A pair that the history holds one half of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The frame of the call or of the result; `None` in the tail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameSeq>,
    /// The id that the call or the result has in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool's name, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What was done.
    pub kind: RepairKind,
}

crate::json::name_enum! {
    /// How a pair was repaired.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RepairKind {
        /// A call was answered with the placeholder.
        Placeholder = "placeholder",
        /// A call was left out.
        CallDropped = "call_dropped",
        /// A result became text.
        ResultAsText = "result_as_text",
        /// A result was left out.
        ResultDropped = "result_dropped",
    }
}

impl ExportReport {
    pub(super) fn normalise(&mut self, what: &'static str) {
        *self.normalised.entry(what).or_default() += 1;
    }

    pub(super) fn drop(&mut self, what: &'static str) {
        *self.dropped.entry(what).or_default() += 1;
    }

    pub(super) fn leave_out(&mut self, member: &str) {
        match self.members.get_mut(member) {
            Some(count) => *count += 1,
            None => {
                self.members.insert(member.to_owned(), 1);
            }
        }
    }

    /// The report as JSON: `repaired` (a list of `frame`, `call`, `tool`, `kind`), and
    /// `normalised`, `dropped`, `members`, each an object of counts. O(size).
    pub fn to_json(&self) -> Value {
        json::to_value(self).unwrap_or_default()
    }
}

impl Repair {
    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        json::to_value(self).unwrap_or_default()
    }
}
