use super::SnapshotReason;
use crate::{
    Error, Result,
    json::{Fields, Object, ObjectExt, Value},
};

/// How often a timeline makes snapshots, checks itself, and what it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineConfig {
    /// A snapshot after every so many turns; 0 for none but those with another reason.
    pub snapshot_interval: u64,
    /// How many turns are synced together where a session directory writes in batches.
    pub delta_batch_size: u64,
    /// The state is verified after every so many turns; 0 for never.
    pub verify_every_n_turns: u64,
    /// Snapshots that are older than so many turns are kept as differences.
    pub compress_snapshots_older_than: u64,
    /// How many compressed snapshots may stand between a snapshot and the full one that it is
    /// based on in the end.
    pub max_chain: u64,
    /// Whether pruning removes what is left over of no snapshot and no turn.
    pub prune_orphaned_deltas: bool,
    /// Whether deltas that do not fit are applied as well as that can be done.
    pub lenient: bool,
    /// Which snapshots stay.
    pub policy: SnapshotPolicy,
}

/// Which snapshots stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Those with these reasons always.
    pub always: Vec<SnapshotReason>,
    /// The last so many always.
    pub recent: u64,
    /// Of those that are older than so many turns …
    pub thin_after_turns: u64,
    /// … only those of turns that this divides; 0 keeps none of them.
    pub thin_keep_every: u64,
    /// At most so many, where those that always stay let it be.
    pub max_snapshots: u64,
    /// A larger one is reported, in bytes.
    pub max_snapshot_size: u64,
    /// At most so many bytes altogether, where those that always stay let it be.
    pub max_total_size: u64,
}

const MEGABYTE: u64 = 1 << 20;

impl Default for TimelineConfig {
    fn default() -> Self {
        Self {
            snapshot_interval: 50,
            delta_batch_size: 10,
            verify_every_n_turns: 100,
            compress_snapshots_older_than: 200,
            max_chain: 3,
            prune_orphaned_deltas: true,
            lenient: false,
            policy: SnapshotPolicy::default(),
        }
    }
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self {
            always: vec![
                SnapshotReason::Initial,
                SnapshotReason::SessionEnd,
                SnapshotReason::Milestone,
            ],
            recent: 10,
            thin_after_turns: 500,
            thin_keep_every: 100,
            max_snapshots: 50,
            max_snapshot_size: 5 * MEGABYTE,
            max_total_size: 100 * MEGABYTE,
        }
    }
}

impl TimelineConfig {
    /// The wire form: the names of the document; sizes in bytes.
    pub fn to_json(&self) -> Value {
        let policy = &self.policy;
        let mut object = Object::new();
        object.put("snapshotInterval", self.snapshot_interval);
        object.put("deltaBatchSize", self.delta_batch_size);
        object.put("verifyEveryNTurns", self.verify_every_n_turns);
        object.put("compressSnapshotsOlderThan", self.compress_snapshots_older_than);
        object.put("maxChain", self.max_chain);
        object.put("pruneOrphanedDeltas", self.prune_orphaned_deltas);
        object.put("lenient", self.lenient);
        let always = policy.always.iter().map(|reason| reason.as_str());
        object.put("always", always.collect::<Value>());
        object.put("recent", policy.recent);
        object.put("thinAfterTurns", policy.thin_after_turns);
        object.put("thinKeepEvery", policy.thin_keep_every);
        object.put("maxSnapshots", policy.max_snapshots);
        object.put("maxSnapshotSize", policy.max_snapshot_size);
        object.put("maxTotalSize", policy.max_total_size);
        Value::Object(object)
    }

    /// Reads the wire form; what is absent is as by default.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a member of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a configuration")?;
        let base = Self::default();
        let always = match fields.strings("always")? {
            None => base.policy.always,
            Some(names) => names
                .iter()
                .map(|name| {
                    SnapshotReason::from_name(name).ok_or_else(|| {
                        Error::expected("a snapshot's reason", format_args!("{name:?}"))
                            .under("always")
                    })
                })
                .collect::<Result<_>>()?,
        };
        let policy = SnapshotPolicy {
            always,
            recent: fields.u64("recent")?.unwrap_or(base.policy.recent),
            thin_after_turns: fields.u64("thinAfterTurns")?.unwrap_or(base.policy.thin_after_turns),
            thin_keep_every: fields.u64("thinKeepEvery")?.unwrap_or(base.policy.thin_keep_every),
            max_snapshots: fields.u64("maxSnapshots")?.unwrap_or(base.policy.max_snapshots),
            max_snapshot_size: fields
                .u64("maxSnapshotSize")?
                .unwrap_or(base.policy.max_snapshot_size),
            max_total_size: fields.u64("maxTotalSize")?.unwrap_or(base.policy.max_total_size),
        };
        Ok(Self {
            snapshot_interval: fields.u64("snapshotInterval")?.unwrap_or(base.snapshot_interval),
            delta_batch_size: fields.u64("deltaBatchSize")?.unwrap_or(base.delta_batch_size),
            verify_every_n_turns: fields
                .u64("verifyEveryNTurns")?
                .unwrap_or(base.verify_every_n_turns),
            compress_snapshots_older_than: fields
                .u64("compressSnapshotsOlderThan")?
                .unwrap_or(base.compress_snapshots_older_than),
            max_chain: fields.u64("maxChain")?.unwrap_or(base.max_chain),
            prune_orphaned_deltas: fields
                .bool("pruneOrphanedDeltas")?
                .unwrap_or(base.prune_orphaned_deltas),
            lenient: fields.bool("lenient")?.unwrap_or(base.lenient),
            policy,
        })
    }
}
