//! Why counts of a model stay estimated.

use std::{fmt, sync::Arc};

use crate::tokens::Slope;

/// A model whose counts stay estimated.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncalibratedModel {
    /// The model.
    pub model: Arc<str>,
    /// How many of its exchanges report an input.
    pub exchanges: u64,
    /// Why.
    pub reason: RefusalReason,
}

/// Why counts stay estimated.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Too few exchanges report an input.
    TooFew {
        /// How many are needed.
        needed: u64,
    },
    /// No tokenizer is so far from another: the usage is not of these texts.
    Slope {
        /// What was fitted, in millionths.
        millionths: i64,
    },
    /// Reported input does not follow what requests hold.
    Scattered {
        /// The half-width of the interval, in tokens.
        interval: u64,
        /// The median of what was reported.
        reported: u64,
    },
    /// The interval held too few of the exchanges that were held out.
    Uncovered {
        /// How many it held.
        held: u64,
        /// How many there were.
        checked: u64,
    },
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { needed } => write!(f, "at least {needed} are needed"),
            Self::Slope { millionths } => {
                let (least, most) = (Slope::LEAST, Slope::MOST);
                let slope = *millionths as f64 / 1e6;
                write!(
                    f,
                    "{slope:.2} reported tokens for one that is counted is not between {least} and {most}"
                )
            }
            Self::Scattered { interval, reported } => write!(
                f,
                "the reported input does not follow the requests: off by {interval} of {reported} tokens"
            ),
            Self::Uncovered { held, checked } => {
                write!(
                    f,
                    "the interval held {held} of {checked} held-out exchanges, fewer than 85 %"
                )
            }
        }
    }
}
