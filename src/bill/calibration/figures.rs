//! What the figures of a calibration may be: those that no fit gives, or that contradict each other,
//! are refused.

use super::{
    DistantInterval, ModelCalibration, TextKind,
    model::{LEAST_HELD, NEEDED},
};
use crate::{Error, Result};

/// The most that a provider is believed to add to a message, in tokens.
const PER_MESSAGE: i64 = 10_000;
const MILLION: i64 = 1_000_000;

impl TextKind {
    /// The slopes that a kind of text may have, in millionths: those of a text are near to its
    /// tokenizer's. A provider that drops reasoning, or counts what is encrypted, is far from it.
    const fn slopes(self) -> (i64, i64) {
        match self {
            Self::Prose | Self::Calls | Self::Results => (MILLION / 10, 5 * MILLION),
            Self::Reasoning => (-5 * MILLION, 20 * MILLION),
        }
    }

    /// The nearest slope that this kind may have.
    pub(super) fn nearest_slope(self, millionths: i64) -> i64 {
        let (least, most) = self.slopes();
        millionths.clamp(least, most)
    }
}

/// The nearest that a message may cost, in millionths.
pub(super) fn nearest_per_message(millionths: i64) -> i64 {
    millionths.clamp(-PER_MESSAGE * MILLION, PER_MESSAGE * MILLION)
}

/// Refuses figures that no fit gives.
///
/// # Errors
/// `Shape`, with the member, what is expected and what was found.
pub(super) fn check(of: &ModelCalibration) -> Result<()> {
    for (kind, slope) in TextKind::ALL.into_iter().zip(of.kinds) {
        let (least, most) = kind.slopes();
        let error = || within((least, most), slope).map_err(|error| error.under(kind.as_str()));
        error().map_err(|error| error.under("kinds"))?;
    }
    let most = PER_MESSAGE * MILLION;
    for (name, value) in
        [("perMessage", of.per_message), ("kindsPerMessage", of.per_message_of_kinds)]
    {
        within((-most, most), value).map_err(|error| error.under(name))?;
    }
    if of.exchanges < NEEDED {
        let error = Error::expected(format_args!("at least {NEEDED} exchanges"), of.exchanges);
        return Err(error.under("exchanges"));
    }
    held((of.checked, of.held), of.exchanges)?;
    if of.held.saturating_mul(100) < of.checked.saturating_mul(LEAST_HELD) {
        let expected = format!("at least {LEAST_HELD} % of {} checked", of.checked);
        return Err(Error::expected(expected, of.held).under("held"));
    }
    if of.median_error > MILLION.unsigned_abs() {
        let expected = "at most 1000000 millionths";
        return Err(Error::expected(expected, of.median_error).under("medianError"));
    }
    if of.usual_step == 0 {
        return Err(Error::expected("at least one token", 0).under("usualStep"));
    }
    let (mut near, mut least) = (1, of.interval);
    for (index, distant) in of.distant.iter().enumerate() {
        farther(distant, (near, least), of.exchanges)
            .map_err(|error| error.under(index).under("distant"))?;
        (near, least) = (distant.exchanges, distant.interval);
    }
    Ok(())
}

/// Those that are farther come later, and have no narrower interval.
fn farther(of: &DistantInterval, (near, least): (u64, u64), all: u64) -> Result<()> {
    if of.exchanges <= near || of.exchanges > all {
        let expected = format!("more than {near} exchanges, and at most {all}");
        return Err(Error::expected(expected, of.exchanges).under("exchanges"));
    }
    if of.interval < least {
        let expected = format!("at least {least}, the interval of a nearer one");
        return Err(Error::expected(expected, of.interval).under("interval"));
    }
    held((of.checked, of.held), all)
}

fn held((checked, held): (u64, u64), exchanges: u64) -> Result<()> {
    if checked == 0 || checked > exchanges {
        let expected = format!("from 1 to {exchanges}, the exchanges");
        return Err(Error::expected(expected, checked).under("checked"));
    }
    if held > checked {
        let expected = format!("at most {checked}, those that were checked");
        return Err(Error::expected(expected, held).under("held"));
    }
    Ok(())
}

fn within((least, most): (i64, i64), found: i64) -> Result<()> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Error::expected(format_args!("millionths from {least} to {most}"), found))
}
