#[cfg(feature = "storage")]
use std::path::Path;
use std::sync::Arc;

use super::{TurnRecord, seq::Item};
use crate::Result;
#[cfg(feature = "storage")]
use crate::{Error, json};

/// A turn in a timeline: at hand, or as the line of a log that is read when it is asked for.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Record(Arc<TurnRecord>),
    #[cfg(feature = "storage")]
    Line(Arc<Line>),
}

/// A line that passed its check, and where it stands.
#[cfg(feature = "storage")]
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) file: Arc<Path>,
    pub(super) number: u64,
}

impl Item for Slot {
    type Key = ();

    fn key_ref(&self) -> &() {
        &()
    }
}

impl Slot {
    /// # Errors
    /// What reading the line gives, with file and line.
    #[cfg_attr(
        not(feature = "storage"),
        allow(clippy::unnecessary_wraps, reason = "reading a line may fail")
    )]
    pub(super) fn record(&self) -> Result<Arc<TurnRecord>> {
        match self {
            Self::Record(record) => Ok(Arc::clone(record)),
            #[cfg(feature = "storage")]
            Self::Line(line) => line.record().map(Arc::new),
        }
    }
}

#[cfg(feature = "storage")]
impl Line {
    fn record(&self) -> Result<TurnRecord> {
        let read =
            json::read(self.text.as_bytes()).map_err(Error::from).and_then(TurnRecord::from_json);
        read.map_err(|error| self.named(error))
    }

    pub(super) fn named(&self, error: Error) -> Error {
        error.in_file(&*self.file).on_line(self.number)
    }
}
