use std::time::Duration;

use super::Retries;

/// How a journal works.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct JournalOptions {
    /// How many snapshots of a session are kept: the newest one by default. At least one.
    pub kept_snapshots: usize,
    /// Among how many of a session's newest events an id is looked for, before an event is
    /// appended: among all by default (`usize::MAX`), which takes some 50 bytes of memory for each
    /// event of a session that is appended to.
    ///
    /// With a smaller number an event is there once only if it is tried again within this many
    /// events: a writer that was killed and makes more of its steps again doubles the older ones.
    pub known_ids: usize,
    /// How often and how long what failed is tried again.
    pub retries: Retries,
    /// The same for a snapshot that is due when an event is recorded: the event is there, and its
    /// caller is not to wait long for what loses nothing. Three attempts within two seconds by
    /// default.
    pub snapshot_retries: Retries,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            kept_snapshots: 1,
            known_ids: usize::MAX,
            retries: Retries::default(),
            snapshot_retries: Retries {
                attempts: 3,
                within: Duration::from_secs(2),
                ..Retries::default()
            },
        }
    }
}

impl JournalOptions {
    /// Keeps this many snapshots of each session.
    pub fn keeping(self, snapshots: usize) -> Self {
        Self { kept_snapshots: snapshots.max(1), ..self }
    }

    /// Looks for an id among this many of the newest events: see [`JournalOptions::known_ids`].
    pub fn with_known_ids(self, ids: usize) -> Self {
        Self { known_ids: ids, ..self }
    }

    /// Tries again as this says.
    pub fn retrying(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }
}
