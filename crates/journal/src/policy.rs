/// When a [`LiveState`](super::LiveState) state writes a snapshot by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum SnapshotPolicy {
    /// After each event that [ends an iteration](super::Replay::ends_iteration).
    #[default]
    IterationEnd,
    /// Once this many events came since the last snapshot; at least one.
    Events(u64),
    /// Once the events since the last snapshot have this many bytes.
    Bytes(u64),
    /// Never: the caller asks for each.
    OnRequest,
}

/// What came since the last snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SinceSnapshot {
    pub(super) events: u64,
    pub(super) bytes: u64,
}

impl SnapshotPolicy {
    pub(super) fn is_due(self, since: SinceSnapshot, ends_iteration: bool) -> bool {
        match self {
            Self::IterationEnd => ends_iteration,
            Self::Events(events) => since.events >= events.max(1),
            Self::Bytes(bytes) => since.bytes >= bytes && since.events > 0,
            Self::OnRequest => false,
        }
    }
}
