//! Moments as people say them.

use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};

/// A moment that the command line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// In milliseconds since the epoch.
    At(i64),
    /// So many milliseconds ago.
    Ago(i64),
}

impl When {
    /// The beginning of a day, a time, or how long ago.
    pub(crate) fn since(text: &str) -> Result<Self, String> {
        Self::of(text, midnight)
    }

    /// The end of a day, a time, or how long ago.
    pub(crate) fn until(text: &str) -> Result<Self, String> {
        Self::of(text, |day| midnight(day.checked_add(1.day()).ok()?)?.checked_sub(1))
    }

    fn of(text: &str, of_day: impl FnOnce(Date) -> Option<i64>) -> Result<Self, String> {
        let day = |text: &str| of_day(text.parse().ok()?);
        // A date with a time parses as a date too.
        let is_day = text.len() == "2026-11-01".len();
        let at = if is_day { day(text) } else { text.parse().ok().map(Timestamp::as_millisecond) };
        at.map(Self::At).or_else(|| ago(text).map(Self::Ago)).ok_or_else(|| {
            "expected a time, as in 2026-11-01, 2026-11-01T08:00:00Z (with Z, or as far as it is from \
             UTC), 12h or 3d"
                .to_owned()
        })
    }

    /// The milliseconds since the epoch.
    pub(crate) fn millis(self, now: i64) -> i64 {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.saturating_sub(ago),
        }
    }
}

fn midnight(day: Date) -> Option<i64> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// The milliseconds of a number with a unit.
fn ago(text: &str) -> Option<i64> {
    const UNITS: [(char, i64); 4] = [('m', 1), ('h', 60), ('d', 24 * 60), ('w', 7 * 24 * 60)];
    let unit = text.chars().next_back()?;
    let number = text.strip_suffix(unit)?;
    let minutes = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<i64>().ok().filter(|_| is_number)?.checked_mul(minutes * 60_000)
}

/// The moment that a source writes: RFC 3339, or seconds or milliseconds since the epoch.
pub(crate) fn written(text: &str) -> Option<i64> {
    /// As seconds they are in the year 5138, as milliseconds in 1973.
    const LARGEST_SECONDS: f64 = 1e11;
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let number = text.parse::<f64>().ok().filter(|number| (1.0..1e14).contains(number))?;
    let millis = if number < LARGEST_SECONDS { number * 1000.0 } else { number };
    // It is within 1 and 1e14.
    Some(millis as i64)
}

/// A moment as it is written in JSON.
pub(crate) fn rfc3339(millis: i64) -> Option<String> {
    Timestamp::from_millisecond(millis).ok().map(|at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_a_time_or_how_long_ago() {
        let day = 1_793_491_200_000;
        assert_eq!(When::since("2026-11-01"), Ok(When::At(day)));
        assert_eq!(When::until("2026-11-01"), Ok(When::At(day + 86_400_000 - 1)));
        assert_eq!(When::since("2026-11-01T08:00:00Z"), Ok(When::At(day + 8 * 3_600_000)));
        assert_eq!(When::since("2026-11-01T08:00:00+02:00"), Ok(When::At(day + 6 * 3_600_000)));
        assert_eq!(When::since("3d"), Ok(When::Ago(3 * 86_400_000)));
        assert_eq!(When::since("45m").map(|at| at.millis(3_000_000)), Ok(300_000));
        for text in
            ["", "d", "3", "-3d", "+3d", "3y", "2026-13-01", "yesterday", "9999999999999999w"]
        {
            assert!(When::since(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sources_write_times_in_several_ways() {
        assert_eq!(written("2026-11-01T00:00:00Z"), Some(1_793_491_200_000));
        assert_eq!(written("1793491200"), Some(1_793_491_200_000));
        assert_eq!(written("1793491200000"), Some(1_793_491_200_000));
        assert_eq!(written("1793491200.5"), Some(1_793_491_200_500));
        assert_eq!((written("noon"), written("NaN"), written("-5")), (None, None, None));
    }
}
