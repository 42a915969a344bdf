//! What an import says of what it read, besides the frames.

use std::collections::BTreeMap;

use super::LimitWindow;

/// What an import saw besides the frames that it gave.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Records that are known and that no frame holds, by kind: the first 200 kinds, and `other`.
    /// [`ImportReport::is_unsent`] says which of them the model never saw.
    pub skipped: BTreeMap<String, u64>,
    /// How many records were not understood; all are kept as facets of type `unknown`: the first
    /// thousand one by one, later ones that follow each other together.
    pub unknown_records: u64,
    /// The first thousand of them.
    pub unknown: Vec<UnknownRecord>,
    /// Requests of a recording that went to no model that is known, by method and path: `GET /models`.
    /// The first 200 of them, and `other`.
    pub unlisted: BTreeMap<String, u64>,
    /// Requests to models that are not read, by the API or why: `Gemini`, `Amazon Bedrock`. They are
    /// unknown records too. The first 200 of them, and `other`.
    pub unread_requests: BTreeMap<String, u64>,
    /// Where the first exchange of a recording stands that still runs: those after it may get other
    /// numbers when it ends.
    pub running: Option<u64>,
    /// The windows of rate limits that the source reports, at most a thousand.
    pub limits: Vec<LimitWindow>,
    /// The folder that the session worked in, where one of its records says it.
    pub folder: Option<String>,
    /// How many sessions were seen.
    pub sessions: u64,
    /// How many frames of our own had a sequence that was not greater than the last of their
    /// session, and got the next.
    pub renumbered: u64,
    /// How many things were wrong in records that were read all the same, and did no harm.
    pub noted: u64,
    /// The first thousand of them.
    pub notes: Vec<RecordNote>,
    /// How many escapes in the input were half of a surrogate pair, and became U+FFFD.
    pub mended_surrogates: u64,
}

/// The kinds of skipped records that the program is known to send to no model.
const UNSENT: [&str; 31] = [
    "agent-name",
    "ai-title",
    "attachment/command_permissions",
    "attachment/dynamic_skill",
    "attachment/hook_cancelled",
    "attachment/hook_error_during_execution",
    "attachment/hook_non_blocking_error",
    "attachment/hook_permission_decision",
    "attachment/hook_success",
    "attachment/hook_system_message",
    "attachment/structured_output",
    "bridge-session",
    "custom-title",
    "file-history-snapshot",
    "frame-link",
    "label",
    "mode",
    "model_change",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "session",
    "session_info",
    "started",
    "system/stop_hook_summary",
    "system/turn_duration",
    "tag",
    "thinking_level_change",
    "worktree-state",
];

impl ImportReport {
    /// Whether it is known of skipped records of this kind that the model never saw them. Of the
    /// others it is not: a transcript may hold them in another form, or not all of what was sent.
    pub fn is_unsent(kind: &str) -> bool {
        UNSENT.contains(&kind)
    }
}

/// Something that is wrong in a record and does no harm: the record was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordNote {
    /// The line in the file, from one.
    pub line: u64,
    /// What it is.
    pub text: String,
}

/// A record that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRecord {
    /// The line in the file, from one.
    pub line: u64,
    /// Why.
    pub reason: String,
}
