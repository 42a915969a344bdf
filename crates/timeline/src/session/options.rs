//! How a session directory is created or opened.

use crate::{Mappers, Millis, Targets, TimelineConfig, log::Holder};

/// When turns become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Durability {
    /// Each turn is synced before [`SessionDir::push`](super::SessionDir::push) returns.
    #[default]
    EachTurn,
    /// So many turns are synced together: the ones since the last sync, fewer than that, are what a
    /// crash may take. [`SessionDir::durable_turn`](super::SessionDir::durable_turn) says which are safe, [`SessionDir::sync`](super::SessionDir::sync) makes
    /// all so.
    Batch(u64),
    /// The caller syncs. [`SharedSession`](super::SharedSession) does that for many writers at a
    /// time.
    Deferred,
}

/// How a session directory is created or opened.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    pub(super) session_id: Option<String>,
    pub(super) config: Option<TimelineConfig>,
    pub(super) targets: Option<Targets>,
    pub(super) mappers: Mappers,
    pub(super) durability: Option<Durability>,
    pub(super) holder: Option<Holder>,
    pub(super) now: Millis,
    pub(super) lenient: bool,
}

impl SessionOptions {
    /// For the session with this id. A directory of another session is refused.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self { session_id: Some(session_id.into()), ..Self::default() }
    }

    /// For the session with this id.
    pub fn named(self, session_id: impl Into<String>) -> Self {
        Self { session_id: Some(session_id.into()), ..self }
    }

    /// With this configuration; else with that of the directory, or the default one. It is not
    /// written to a directory that is there.
    pub fn config(self, config: TimelineConfig) -> Self {
        Self { config: Some(config), ..self }
    }

    /// With this table of targets, for a new directory.
    pub fn targets(self, targets: Targets) -> Self {
        Self { targets: Some(targets), ..self }
    }

    /// With these mappers.
    pub fn mappers(self, mappers: Mappers) -> Self {
        Self { mappers, ..self }
    }

    /// With turns that become durable so; else as [`TimelineConfig::delta_batch_size`] says.
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability: Some(durability), ..self }
    }

    /// When turns become durable, with this configuration.
    pub(super) fn durability_by(&self, config: &TimelineConfig) -> Durability {
        self.durability.unwrap_or(match config.delta_batch_size {
            0 | 1 => Durability::EachTurn,
            size => Durability::Batch(size),
        })
    }

    /// With a name for whoever finds the directory locked.
    pub fn holder(self, holder: Holder) -> Self {
        Self { holder: Some(holder), ..self }
    }

    /// At this moment.
    pub fn at(self, now: Millis) -> Self {
        Self { now, ..self }
    }

    /// With deltas that do not fit applied as well as that can be done.
    pub fn lenient(self, lenient: bool) -> Self {
        Self { lenient, ..self }
    }
}
