//! What exchanges cost: their usage as it was reported, added up, and its price.
//!
//! [`UsageSums`] adds up what [`request::Exchange`](crate::request::Exchange)s
//! report. A figure that a source does not report is missing, and not zero.
//! With the feature `rules`, `Bill` says what exchanges cost by a table of `Prices`: figures are
//! data, and costs are whole numbers of 10^-12 of the currency. [`broken_caches`] finds the requests
//! that paid again for what a cache had held. [`Residency`] says which facets stood in the requests
//! that were paid for, and what that cost. [`Calibration`] says what reported tokens are to counted
//! ones.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     bill::UsageSums, id::Millis, request::Recording, tokens::Chars4, transcript::Transcript,
//! };
//!
//! let session = br#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}
//! {"type":"message","timestamp":"t","message":{"role":"user","content":"go"}}
//! {"type":"message","timestamp":"t","message":{"role":"assistant","model":"m","content":"gone","usage":{"input":3,"output":5,"cacheRead":40,"cacheWrite":0,"cost":{"total":0.25}}}}"#;
//! let transcript = Transcript::new(&session[..])?;
//! let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
//! let sums: UsageSums = recording.reported().collect();
//! assert_eq!(sums.total.tokens.input, Some(43));
//! assert_eq!(sums.total.cost().next().unwrap().to_string(), "0.25 USD");
//! # Ok::<(), afterimage::Error>(())
//! ```

mod broken;
mod calibration;
#[cfg(feature = "rules")]
pub(crate) mod dated_table;
mod exact;
mod media;
#[cfg(feature = "rules")]
mod price;
#[cfg(feature = "rules")]
mod prices;
mod residency;
mod sums;
#[cfg(feature = "rules")]
mod total;

#[cfg(feature = "rules")]
pub(crate) use broken::EXPIRED;
pub use broken::{BreakCause, BrokenCache, broken_caches, lost_tokens};
pub use calibration::{
    CalibratedCount, Calibration, CalibrationBuilder, CountBasis, DistantInterval, KindCounts,
    ModelCalibration, RefusalReason, ReportedRequest, SessionReport, TextKind, UncalibratedModel,
    UsualLack,
};
pub(crate) use exact::usual_slope;
pub use exact::{ExactnessGap, certainty_for, exact_input, exact_inputs};
pub use media::{
    ImageDetail, MediaCount, MediaGap, MediaItem, MediaKind, MediaRule, document_tokens,
    image_size, image_tokens, image_tokens_at, media_counts, pdf_pages,
};
#[cfg(feature = "rules")]
pub use price::Price;
#[cfg(feature = "rules")]
pub use prices::{Prices, Unpriced};
pub use residency::{Remainder, Residency, ResidencyLine, Share};
pub use sums::{UsageSum, UsageSums};
#[cfg(feature = "rules")]
pub use total::Bill;
