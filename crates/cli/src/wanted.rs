//! The range of frames that is asked for.

use afterimage::id::FrameSeq;

use crate::{
    failure::{Failure, Outcome},
    input::Source,
};

/// The frames that are wanted, and those that there were.
#[derive(Default)]
pub(crate) struct FrameFilter {
    pub(crate) from: Option<u64>,
    pub(crate) to: Option<u64>,
    /// The first and the last sequence, and whether one of them was wanted.
    seen: Option<(u64, u64, bool)>,
}

/// Where a frame stands to the range that is wanted.
#[derive(PartialEq, Eq)]
pub(crate) enum Place {
    Before,
    Inside,
    /// Sequences rise over the whole file: nothing that follows is wanted.
    After,
}

impl FrameFilter {
    /// A range; `None` is without an end.
    ///
    /// # Errors
    /// Where it runs backwards.
    pub(crate) fn new(from: Option<u64>, to: Option<u64>) -> Outcome<Self> {
        match (from, to) {
            (Some(from), Some(to)) if from > to => {
                Err(Failure::new(format!("the range runs from frame {from} back to {to}")).into())
            }
            _ => Ok(Self { from, to, seen: None }),
        }
    }

    /// Begins with another file.
    pub(crate) fn begin(&mut self) {
        self.seen = None;
    }

    pub(crate) fn place(&mut self, sequence: FrameSeq) -> Place {
        let sequence = sequence.get();
        let place = if self.from.is_some_and(|from| sequence < from) {
            Place::Before
        } else if self.to.is_some_and(|to| sequence > to) {
            Place::After
        } else {
            Place::Inside
        };
        let (first, _, any) = self.seen.unwrap_or((sequence, sequence, false));
        self.seen = Some((first, sequence, any || place == Place::Inside));
        place
    }

    /// Refuses a range in which there is no frame.
    pub(crate) fn check(&self, source: &Source) -> Outcome {
        let range = match (self.from, self.to) {
            (None, None) => return Ok(()),
            (Some(from), Some(to)) => format!("from {from} to {to}"),
            (Some(from), None) => format!("from {from}"),
            (None, Some(to)) => format!("to {to}"),
        };
        let found = match self.seen {
            None => "there is no frame at all".to_owned(),
            Some((_, last, true)) => {
                if let Some(to) = self.to.filter(|to| *to > last) {
                    source.note(&format!("the last frame is {last}, before {to}"));
                }
                return Ok(());
            }
            Some((first, _, false)) if self.to.is_some_and(|to| to < first) => {
                format!("the frames begin at {first}")
            }
            Some((first, last, false)) => format!("the frames are {first} to {last}"),
        };
        Err(source.fail(format!("no frame is in the range {range}: {found}")).into())
    }
}
