//! Windows of rate limits, as clients write down what providers say of them.

use super::times;
use crate::json::Value;

/// How far apart, in seconds, two records may say that the same window ends.
const SAME: u64 = 120;
/// The windows of Claude, by the beginning of their names, in minutes.
const OF_CLAUDE: [(&str, u64); 2] = [("five_hour", 300), ("seven_day", 7 * 24 * 60)];
/// The status of HTTP where a limit is reached.
const REACHED: u64 = 429;

/// A window of a rate limit: what a subscription may use until it ends.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LimitWindow {
    /// How long it is, in minutes.
    pub minutes: u64,
    /// When it ends, in milliseconds since 1970.
    pub resets: i64,
    /// The most that is said to be used of it, in percent.
    pub used: Option<u64>,
}

impl LimitWindow {
    /// Merges a record of the same window; returns false for another window.
    pub fn join(&mut self, other: &Self) -> bool {
        let is_same =
            self.minutes == other.minutes && self.resets.abs_diff(other.resets) <= SAME * 1000;
        if is_same {
            self.used = self.used.max(other.used);
        }
        is_same
    }

    /// When it begins, in milliseconds since 1970.
    pub fn begins(&self) -> i64 {
        let length = i64::try_from(self.minutes.saturating_mul(60_000)).unwrap_or(i64::MAX);
        self.resets.saturating_sub(length)
    }

    /// Those of a rollout of Codex, in a record of this time: each says its length and when it ends,
    /// older ones in how many seconds.
    pub(super) fn of_codex(limits: &Value, time: Option<&str>) -> impl Iterator<Item = Self> {
        ["primary", "secondary"].into_iter().filter_map(move |name| {
            let window = limits.get(name)?;
            let number = |member: &str| window.get(member).and_then(Value::as_u64);
            let millis = |seconds: u64| i64::try_from(seconds.checked_mul(1000)?).ok();
            let minutes = number("window_minutes").filter(|minutes| *minutes > 0)?;
            let resets = match number("resets_at") {
                Some(resets) => millis(resets)?,
                None => times::moment(time?)?.checked_add(millis(number("resets_in_seconds")?)?)?,
            };
            Some(Self { minutes, resets, used: percent(window.get("used_percent")) })
        })
    }

    /// The one that an error of Claude Code names.
    pub(super) fn of_claude(error: &Value) -> Option<Self> {
        let limits = error.get("rateLimits")?;
        let kind = limits.str_at("rateLimitType")?;
        let (_, minutes) = OF_CLAUDE.iter().find(|(name, _)| kind.starts_with(name))?;
        let resets = i64::try_from(limits.get("resetsAt")?.as_u64()?.checked_mul(1000)?).ok()?;
        let is_reached = error.get("status").and_then(Value::as_u64) == Some(REACHED);
        Some(Self { minutes: *minutes, resets, used: is_reached.then_some(100) })
    }
}

/// A share in percent, without what follows the point.
fn percent(share: Option<&Value>) -> Option<u64> {
    let Some(Value::Number(share)) = share else { return None };
    let share = Some(share.as_f64()).filter(|share| (0.0..1e6).contains(share))?;
    // It is far below what could not be held.
    u64::try_from(share as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn window(minutes: u64, resets: i64, used: Option<u64>) -> LimitWindow {
        LimitWindow { minutes, resets: resets * 1000, used }
    }

    #[test]
    fn a_rollout_says_when_its_windows_end_or_in_how_many_seconds() {
        let of = |text: &str| {
            let limits = json::read(text.as_bytes()).unwrap();
            LimitWindow::of_codex(&limits, Some("1970-01-01T00:01:40Z")).collect::<Vec<_>>()
        };
        let both = r#"{"primary":{"used_percent":12.7,"window_minutes":300,"resets_at":9000},
            "secondary":{"used_percent":5,"window_minutes":10080,"resets_in_seconds":60}}"#;
        assert_eq!(of(both), [window(300, 9000, Some(12)), window(10_080, 160, Some(5))]);
        let none =
            r#"{"primary":{"used_percent":0,"window_minutes":0,"resets_at":1},"secondary":null}"#;
        assert_eq!(of(none), []);
    }

    #[test]
    fn an_error_says_which_window_is_used_up() {
        let of = |status: u64, kind: &str| {
            let error = format!(
                r#"{{"status":{status},"rateLimits":{{"rateLimitType":"{kind}","resetsAt":7200}}}}"#
            );
            LimitWindow::of_claude(&json::read(error.as_bytes()).unwrap())
        };
        assert_eq!(of(429, "five_hour"), Some(window(300, 7200, Some(100))));
        assert_eq!(of(529, "seven_day_opus"), Some(window(10_080, 7200, None)));
        assert_eq!(of(429, "overage"), None);
    }

    #[test]
    fn records_that_round_the_end_of_a_window_differently_mean_one() {
        let mut first = window(300, 9000, Some(10));
        assert!(first.join(&window(300, 9001, Some(12))) && first.join(&window(300, 8999, None)));
        assert_eq!(first, window(300, 9000, Some(12)));
        assert!(
            !first.join(&window(300, 27_000, None)) && !first.join(&window(10_080, 9000, None))
        );
        assert_eq!(first.begins(), -9_000_000);
    }
}
