use super::Retries;

/// How a journal works.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// How many snapshots of a session are kept: the newest one by default. At least one.
    pub kept_snapshots: usize,
    /// Among how many of a session's newest events an id is looked for, before an event is
    /// appended: 256 by default.
    pub known_ids: usize,
    /// How often and how long what failed is tried again.
    pub retries: Retries,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { kept_snapshots: 1, known_ids: 256, retries: Retries::default() }
    }
}

impl JournalOptions {
    /// Keeps so many snapshots of each session.
    pub fn keeping(self, snapshots: usize) -> Self {
        Self { kept_snapshots: snapshots.max(1), ..self }
    }

    /// Looks for an id among so many of the newest events.
    pub fn knowing(self, ids: usize) -> Self {
        Self { known_ids: ids, ..self }
    }

    /// Tries again as this says.
    pub fn retrying(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }
}
