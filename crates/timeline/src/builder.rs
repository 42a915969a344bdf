use std::sync::{Arc, OnceLock};

use super::{
    Data, DeltaRange, Mappers, SnapshotReason, Targets, Timeline, TimelineConfig,
    apply::MAX_STATE_DEPTH, seq::Seq, timeline::check_id,
};
use crate::{Error, ErrorKind, Millis, Result};

/// Puts a [`Timeline`] together.
#[derive(Debug)]
pub struct TimelineBuilder {
    pub(super) session_id: String,
    pub(super) state: Data,
    pub(super) config: TimelineConfig,
    pub(super) targets: Targets,
    pub(super) mappers: Mappers,
    pub(super) now: Millis,
}

impl TimelineBuilder {
    /// With this configuration.
    pub fn config(self, config: TimelineConfig) -> Self {
        Self { config, ..self }
    }

    /// With this table of targets.
    pub fn targets(self, targets: Targets) -> Self {
        Self { targets, ..self }
    }

    /// With these mappers.
    pub fn mappers(self, mappers: Mappers) -> Self {
        Self { mappers, ..self }
    }

    /// Begun at this moment.
    pub fn at(self, now: Millis) -> Self {
        Self { now, ..self }
    }

    /// The timeline, with its initial snapshot. O(size of the state), whose depth is measured.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a session id that is empty or longer than [`MAX_ID`](super::MAX_ID) characters,
    /// [`ErrorKind::Limit`] for a state that is nested too deep.
    pub fn build(self) -> Result<Timeline> {
        check_id(&self.session_id)?;
        let depth = self.state.depth();
        if depth > MAX_STATE_DEPTH {
            let message =
                format!("the state is nested {depth} levels deep; the limit is {MAX_STATE_DEPTH}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut timeline = Timeline {
            session_id: self.session_id.into(),
            config: Arc::new(self.config),
            targets: Arc::new(self.targets),
            mappers: self.mappers,
            turns: Seq::default(),
            snapshots: Seq::default(),
            source: None,
            head: self.state,
            range: DeltaRange { from_snapshot: "initial".to_owned(), ..DeltaRange::default() },
            ids: OnceLock::new(),
        };
        timeline.snapshot(SnapshotReason::Initial, self.now);
        Ok(timeline)
    }
}
