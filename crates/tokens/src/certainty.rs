//! What a count is worth.

use std::fmt;

/// What a count is: exact, calibrated or estimated.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// The tokenizer itself counted.
    Exact,
    /// Another tokenizer counted, and a factor that was fitted to reported usage was applied.
    Calibrated,
    /// A rule of thumb, or another tokenizer.
    Estimated,
}

impl Certainty {
    /// The name on the wire: `exact`, `calibrated`, `estimated`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Calibrated => "calibrated",
            Self::Estimated => "estimated",
        }
    }
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
