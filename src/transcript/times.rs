//! Times as RFC 3339 writes them.

use crate::json::Object;

/// When a record was written, by its `timestamp`: milliseconds since 1970.
pub(super) fn of_record(record: &Object) -> Option<i64> {
    moment(record.str_at("timestamp")?)
}

/// The milliseconds since 1970 of a time as RFC 3339 writes it.
pub(super) fn moment(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let behind = rest.strip_prefix('.').unwrap_or(rest);
    let zone = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    let fraction = format!("{:0<3}", behind.strip_suffix(zone)?);
    let offset = match zone.get(..1) {
        Some(sign @ ("+" | "-")) => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let offset = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -offset } else { offset }
        }
        _ => 0,
    };
    // As in `rfc3339`.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1000 + fraction.get(..3)?.parse::<i64>().ok()?)
}

/// A time in nanoseconds since 1970 as RFC 3339 writes it, in UTC.
pub(super) fn rfc3339(nanoseconds: u64) -> String {
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Years that begin in March, in eras of 400 of them, from the year 0 on (Howard Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms").
    let days = day + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let fraction = format!("{fraction:09}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!(
        "{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}{point}{fraction}Z"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment("2000-02-29T00:00:00.5Z"), Some(951_782_400_500));
        assert_eq!(moment("2026-11-23T06:34:38.44291668+01:00"), Some(1_795_412_078_442));
        for text in ["", "t", "2026-11-23", "2026-11-23T06:34:38.4+x", "äöüäöüäöüäöü"] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_as_everyone_reads_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400_000_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_412_078_442_916_680), "2026-11-23T05:34:38.44291668Z");
        assert_eq!(rfc3339(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }
}
