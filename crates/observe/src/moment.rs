use serde::{Deserialize, Serialize};

use crate::{Millis, json::Value};

/// When something was seen, or is asked for: by the wall clock, and by the world's own tick where
/// it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Moment {
    /// The time.
    pub at: Millis,
    /// The world's tick. Greater than `i64::MAX` counts as not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<u64>,
}

/// How long ago something was. What lies in the future is now: a clock or a tick ran backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Not a tick, or not a second.
    JustNow,
    /// So many ticks.
    Ticks(u64),
    /// So many seconds, rounded down.
    Seconds(u64),
}

/// How far back a tick may lie and still be late, in ticks.
const ABSURD_JUMP: u64 = 1_000_000_000;

/// The tick that a response names: a whole number from 0 to `i64::MAX`, or the digits of one as a
/// text. Anything else is no tick.
pub(super) fn tick_of(value: &Value) -> Option<u64> {
    let tick = match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| {
            let text = number.to_string();
            let (whole, fraction) = text.split_once('.')?;
            fraction.bytes().all(|byte| byte == b'0').then(|| whole.parse().ok())?
        }),
        _ => None,
    };
    tick.filter(|tick| i64::try_from(*tick).is_ok())
}

impl Moment {
    /// This time, on no known tick.
    pub const fn at(at: Millis) -> Self {
        Self { at, tick: None }
    }

    /// The same time on this tick.
    pub const fn on(self, tick: u64) -> Self {
        Self { at: self.at, tick: if tick <= i64::MAX as u64 { Some(tick) } else { None } }
    }

    /// How long before `now` this was: by ticks where both are known, else by the wall clock.
    pub fn age(self, now: Moment) -> Age {
        match (self.tick, now.tick) {
            (Some(seen), Some(now)) if now > seen => Age::Ticks(now - seen),
            (Some(_), Some(_)) => Age::JustNow,
            _ => match now.at.get().saturating_sub(self.at.get()) / 1_000 {
                seconds @ 1.. => Age::Seconds(seconds.unsigned_abs()),
                _ => Age::JustNow,
            },
        }
    }

    /// Whether this came before `known`: by ticks where both are known, else by the wall clock.
    ///
    /// A tick that lies more than a billion below the known one, at a later time, is not before:
    /// no answer is that late. Either the known tick was wrong, or the world began anew.
    ///
    /// ```
    /// use afterimage_observe::{Millis, Moment};
    ///
    /// let at = |millis| Moment::at(Millis::new(millis));
    /// assert!(at(2_000).on(90).is_before(at(1_000).on(100)));
    /// assert!(!at(2_000).on(90).is_before(at(1_000).on(9_000_000_000_000)));
    /// ```
    pub fn is_before(self, known: Moment) -> bool {
        match (self.tick, known.tick) {
            (Some(tick), Some(known_tick)) => {
                let is_absurd = known_tick.saturating_sub(tick) > ABSURD_JUMP;
                tick < known_tick && !(is_absurd && self.at > known.at)
            }
            _ => self.at < known.at,
        }
    }

    /// The later of two moments: by the clock, then by the tick.
    pub(super) fn latest(self, other: Moment) -> Moment {
        if (other.at, other.tick) > (self.at, self.tick) { other } else { self }
    }

    /// As [`Moment::latest`], the earlier.
    pub(super) fn earliest(self, other: Moment) -> Moment {
        if (other.at, other.tick) < (self.at, self.tick) { other } else { self }
    }
}

impl Age {
    /// The age in words: "2 ticks ago", "30 seconds ago", "just now".
    ///
    /// ```
    /// use afterimage_observe::Age;
    ///
    /// assert_eq!(Age::Ticks(1).short(), "1 tick ago");
    /// assert_eq!(Age::Seconds(359).short(), "5 minutes ago");
    /// ```
    pub fn short(self) -> String {
        match self {
            Age::JustNow => "just now".to_owned(),
            Age::Ticks(ticks) => format!("{} ago", counted(ticks, "tick")),
            Age::Seconds(seconds) => format!("{} ago", duration(seconds)),
        }
    }

    /// As [`Age::short`], with the seconds that the ticks take: "2 ticks ago (20 seconds)".
    ///
    /// ```
    /// use afterimage_observe::Age;
    ///
    /// assert_eq!(Age::Ticks(2).long(Some(10_000)), "2 ticks ago (20 seconds)");
    /// assert_eq!(Age::Ticks(2).long(None), "2 ticks ago");
    /// ```
    pub fn long(self, millis_per_tick: Option<u64>) -> String {
        match (self, millis_per_tick) {
            (Age::Ticks(ticks), Some(millis)) => {
                let seconds = ticks.saturating_mul(millis) / 1_000;
                format!("{} ({})", self.short(), counted(seconds, "second"))
            }
            _ => self.short(),
        }
    }

    /// The age without "ago", for a sentence: "50 ticks".
    pub(super) fn bare(self) -> String {
        match self {
            Age::JustNow => "0 seconds".to_owned(),
            Age::Ticks(ticks) => counted(ticks, "tick"),
            Age::Seconds(seconds) => duration(seconds),
        }
    }

    /// How many ticks it is, where that is known or can be worked out.
    pub(super) fn ticks(self, millis_per_tick: Option<u64>) -> Option<u64> {
        match (self, millis_per_tick) {
            (Age::JustNow, _) => Some(0),
            (Age::Ticks(ticks), _) => Some(ticks),
            (Age::Seconds(seconds), Some(millis @ 1..)) => {
                Some(seconds.saturating_mul(1_000) / millis)
            }
            (Age::Seconds(_), _) => None,
        }
    }
}

/// The largest unit of which there is one, and how many of it there are whole.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3_600 => counted(seconds / 60, "minute"),
        3_600..86_400 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
