use serde::Serialize;

use super::SnapshotReason;
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Value, from_value, to_value},
};

impl<'de> serde::Deserialize<'de> for TimelineConfig {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_json(value).map_err(serde::de::Error::custom)
    }
}

/// How often a timeline makes snapshots, checks itself, and what it keeps. The wire form has the
/// names of the document, and sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineConfig {
    /// The number of turns from one snapshot to the next; 0 for none but those with another reason.
    pub snapshot_interval: u64,
    /// How many turns a session directory syncs together, unless its `SessionOptions` say it; 0
    /// and 1: each by itself. A crash may take those since the last sync, so only 1, the default,
    /// makes each turn durable when it is pushed. In memory it does nothing.
    pub delta_batch_size: u64,
    /// The number of turns from one check of the state to the next; 0 for never.
    pub verify_every_n_turns: u64,
    /// Snapshots older than this many turns are kept as differences in a directory. In
    /// memory all share what they have in common anyway.
    pub compress_snapshots_older_than: u64,
    /// How many compressed snapshots may stand between a snapshot and the full one that it is
    /// based on in the end.
    pub max_chain: u64,
    /// Whether pruning removes what is left over of no snapshot and no turn.
    pub prune_orphaned_deltas: bool,
    /// Whether deltas that do not fit are applied as well as that can be done.
    pub lenient: bool,
    /// Which snapshots stay.
    #[serde(flatten)]
    pub policy: SnapshotPolicy,
}

/// Which snapshots stay, in memory and in a directory, whenever one is made.
///
/// The first one and the newest one stay whatever it says. Limits count more than `recent`. What
/// they cannot have is in [`RetentionPlan::over`](super::RetentionPlan::over), and a note of a
/// session directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotPolicy {
    /// Those with these reasons always.
    pub always: Vec<SnapshotReason>,
    /// This many of the newest, however old, as the limits let them be.
    pub recent: u64,
    /// Of those that are older than this many turns …
    pub thin_after_turns: u64,
    /// … only those of turns that this divides; 0 keeps none of them.
    pub thin_keep_every: u64,
    /// At most this many, where those that always stay let it be.
    pub max_snapshots: u64,
    /// A larger one is reported, in bytes. In memory, where snapshots share what they have in
    /// common, sizes are not counted.
    pub max_snapshot_size: u64,
    /// At most this many bytes altogether, where those that always stay let it be. In memory sizes
    /// are not counted.
    pub max_total_size: u64,
}

const MEGABYTE: u64 = 1 << 20;

impl Default for TimelineConfig {
    fn default() -> Self {
        Self {
            snapshot_interval: 50,
            delta_batch_size: 1,
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
    /// Reads the wire form; what is absent is as by default. The policy may also stand in the
    /// members `retention` and `limits`, as the document writes it: sizes are megabytes there.
    /// O(size).
    ///
    /// ```
    /// use afterimage_timeline::{TimelineConfig, json};
    ///
    /// let read = |text: &str| TimelineConfig::from_json(json::read(text.as_bytes())?);
    /// let config = read(r#"{"snapshotInterval": 20, "limits": {"maxSnapshots": 5, "maxTotalSize": 1}}"#)?;
    /// assert_eq!((config.snapshot_interval, config.policy.max_total_size), (20, 1 << 20));
    /// let error = read(r#"{"snapshotIntervall": 20}"#).unwrap_err();
    /// assert!(error.to_string().starts_with(r#"unknown member "snapshotIntervall": expected one of "#));
    /// # Ok::<(), afterimage_timeline::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a member of the wrong type and for one that is not known.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a configuration")?;
        let config = Self::take(&mut fields)?;
        let known = to_value(&config)?;
        let known = known.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        refuse_unknown(fields, &known.chain(["retention", "limits"]).collect::<Vec<_>>())?;
        Ok(config)
    }

    /// The members that are known.
    pub(super) fn take(fields: &mut Fields) -> Result<Self> {
        let mut config = Self { policy: SnapshotPolicy::take(fields)?, ..Self::default() };
        for (key, to) in [
            ("snapshotInterval", &mut config.snapshot_interval),
            ("deltaBatchSize", &mut config.delta_batch_size),
            ("verifyEveryNTurns", &mut config.verify_every_n_turns),
            ("compressSnapshotsOlderThan", &mut config.compress_snapshots_older_than),
            ("maxChain", &mut config.max_chain),
        ] {
            take_number(fields, key, to)?;
        }
        for (key, to) in [
            ("pruneOrphanedDeltas", &mut config.prune_orphaned_deltas),
            ("lenient", &mut config.lenient),
        ] {
            *to = fields.bool(key)?.unwrap_or(*to);
        }
        Ok(config)
    }
}

impl SnapshotPolicy {
    fn take(fields: &mut Fields) -> Result<Self> {
        let mut policy = Self::default();
        fields.nested("retention", |value| policy.retention(value))?;
        fields.nested("limits", |value| policy.limits(value))?;
        policy.take_always(fields)?;
        for (key, to) in [
            ("recent", &mut policy.recent),
            ("thinAfterTurns", &mut policy.thin_after_turns),
            ("thinKeepEvery", &mut policy.thin_keep_every),
            ("maxSnapshots", &mut policy.max_snapshots),
            ("maxSnapshotSize", &mut policy.max_snapshot_size),
            ("maxTotalSize", &mut policy.max_total_size),
        ] {
            take_number(fields, key, to)?;
        }
        Ok(policy)
    }

    fn take_always(&mut self, fields: &mut Fields) -> Result<()> {
        if let Some(reasons) = fields.nested("always", from_value)? {
            self.always = reasons;
        }
        Ok(())
    }

    /// The document's `retention`.
    fn retention(&mut self, value: Value) -> Result<()> {
        let mut fields = Fields::of(value, "a retention")?;
        self.take_always(&mut fields)?;
        fields.nested("recent", |value| {
            let mut fields = Fields::of(value, "the recent ones")?;
            take_number(&mut fields, "maxAge", &mut self.recent)?;
            refuse_unknown(fields, &["maxAge"])
        })?;
        fields.nested("thin", |value| {
            let mut fields = Fields::of(value, "what is thinned")?;
            take_number(&mut fields, "afterTurns", &mut self.thin_after_turns)?;
            take_number(&mut fields, "keepEvery", &mut self.thin_keep_every)?;
            refuse_unknown(fields, &["afterTurns", "keepEvery"])
        })?;
        refuse_unknown(fields, &["always", "recent", "thin"])
    }

    /// The document's `limits`, in megabytes.
    fn limits(&mut self, value: Value) -> Result<()> {
        let mut fields = Fields::of(value, "the limits")?;
        take_number(&mut fields, "maxSnapshots", &mut self.max_snapshots)?;
        let sizes = [
            ("maxSnapshotSize", &mut self.max_snapshot_size),
            ("maxTotalSize", &mut self.max_total_size),
        ];
        for (key, to) in sizes {
            *to = fields.u64(key)?.map_or(*to, |size| size.saturating_mul(MEGABYTE));
        }
        refuse_unknown(fields, &["maxSnapshots", "maxSnapshotSize", "maxTotalSize"])
    }
}

fn take_number(fields: &mut Fields, key: &str, to: &mut u64) -> Result<()> {
    *to = fields.u64(key)?.unwrap_or(*to);
    Ok(())
}

/// # Errors
/// `Shape` for the first member that nobody took.
fn refuse_unknown(fields: Fields, known: &[&str]) -> Result<()> {
    let rest = fields.rest();
    let Some(key) = rest.keys().next() else { return Ok(()) };
    let message = format!("unknown member {key:?}: expected one of {}", known.join(", "));
    Err(Error::new(ErrorKind::Shape, message))
}
