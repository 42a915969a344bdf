//! What is counted of requests as a whole.

use afterimage::{
    bill::{CalibratedCount, CountBasis, ExactnessGap, MediaCount, exact_inputs, media_counts},
    request::{Exchange, Recording, RequestTokens},
    tokens::Certainty,
};

use super::args::Requests;
use crate::{answer::answer, lens::Lens};

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
    pub(super) fn counted(&self, exchange: &Exchange, tokens: &RequestTokens) -> Counted {
        let index = exchange.number.checked_sub(1);
        // A report that is another says that the recorder changed the texts, or a proxy the figure.
        let reported = exchange.usage.as_ref().and_then(|usage| usage.input);
        let exact = index.and_then(|index| self.exact.get(index)?.as_ref().ok().copied());
        if let Some(input) = exact.filter(|input| reported.is_none_or(|of| of == *input)) {
            return Counted::of(input, Certainty::Exact);
        }
        let count = index.and_then(|index| self.calibrated.get(index)).copied().flatten();
        let media = index.and_then(|index| self.media.get(index)).copied().unwrap_or_default();
        let counted = if let Some(CalibratedCount { tokens, low, high, basis, .. }) = count {
            let other_sessions = match basis {
                CountBasis::Sessions { count } => Some(count),
                CountBasis::Report { .. } => None,
            };
            let counted = Counted::of(tokens, Certainty::Calibrated);
            Counted { low: Some(low), high: Some(high), other_sessions, ..counted }
        } else {
            Counted::of(tokens.total().saturating_add(media.tokens), Certainty::Estimated)
        };
        Counted { media: (media.parts > 0).then_some(media), ..counted }
    }
}

answer! {
    /// The input of a request by the best count that there is of it.
    pub(crate) struct Counted {
        /// its tokens
        input: u64,
        /// `exact`, `calibrated` or `estimated` ([counts.md](counts.md))
        counts: &'static str,
        /// of calibrated counts: the lower end of the interval that holds it nine times in ten
        low?: u64,
        /// its upper end
        high?: u64,
        /// of calibrated counts of the first request of a session: how many other sessions' reports
        /// they follow from
        other_sessions?: u64,
        /// where there are some: images, sounds and documents in it, by their providers' rules
        media?: MediaCount,
    }
}

impl Counted {
    fn of(input: u64, counts: Certainty) -> Self {
        let counts = counts.as_str();
        Self { input, counts, low: None, high: None, other_sessions: None, media: None }
    }
}
