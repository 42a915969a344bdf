//! What is counted of requests as a whole.

use afterimage::{
    bill::{CalibratedCount, CountBasis, ExactnessGap, MediaCount, exact_inputs, media_counts},
    json::{Object, ObjectExt},
    request::{Exchange, Recording, RequestTokens},
    tokens::Certainty,
};

use super::args::Requests;
use crate::{json::object, lens::Lens};

/// What is counted of requests as a whole, for JSON alone.
#[derive(Default)]
pub(super) struct RequestCounts {
    /// The input of each as its provider counts it, where that is known.
    exact: Vec<Result<u64, ExactnessGap>>,
    /// The input of each, where counts are calibrated and it is known.
    calibrated: Vec<Option<CalibratedCount>>,
    /// The images and documents of each.
    media: Vec<MediaCount>,
}

impl RequestCounts {
    pub(super) fn of(
        args: &Requests,
        lens: &Lens,
        recording: &Recording,
    ) -> afterimage::Result<Self> {
        if !args.json || args.broken {
            return Ok(Self::default());
        }
        let calibrated = lens.calibrated.as_ref().map(|calibrated| calibrated.counts(recording));
        let calibrated = calibrated.transpose()?.unwrap_or_default();
        let (exact, media) = (exact_inputs(recording)?, media_counts(recording)?);
        Ok(Self { exact, calibrated, media })
    }

    /// The input of a request by the best count that there is of it, and which that is.
    pub(super) fn counted(&self, exchange: &Exchange, tokens: &RequestTokens) -> Object {
        let index = exchange.number.checked_sub(1);
        // A report that is another says that the recorder changed the texts, or a proxy the figure.
        let reported = exchange.usage.as_ref().and_then(|usage| usage.input);
        let exact = index.and_then(|index| self.exact.get(index)?.as_ref().ok().copied());
        if let Some(input) = exact.filter(|input| reported.is_none_or(|of| of == *input)) {
            return object! { "input": input, "counts": Certainty::Exact.as_str() };
        }
        let count = index.and_then(|index| self.calibrated.get(index)).copied().flatten();
        let media = index.and_then(|index| self.media.get(index)).copied().unwrap_or_default();
        let mut counted = if let Some(CalibratedCount { tokens, low, high, basis, .. }) = count {
            let mut counted = object! {
                "input": tokens,
                "counts": Certainty::Calibrated.as_str(),
                "low": low,
                "high": high,
            };
            if let CountBasis::Sessions { count } = basis {
                counted.put("otherSessions", count);
            }
            counted
        } else {
            let input = tokens.total().saturating_add(media.tokens);
            object! { "input": input, "counts": Certainty::Estimated.as_str() }
        };
        if media.parts > 0 {
            let MediaCount { parts, tokens, unknown, .. } = media;
            counted.put("media", object! { "parts": parts, "tokens": tokens, "unknown": unknown });
        }
        counted
    }
}
