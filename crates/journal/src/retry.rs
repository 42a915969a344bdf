use std::time::Duration;

use super::request::Failure;
use crate::{Error, ErrorKind};

/// How often and how long what failed is tried again.
///
/// A store in memory or in a directory either works or is broken; this is for stores that are
/// reached over a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Retries {
    /// How often a request is made before the operation is given up.
    pub attempts: u32,
    /// How long to wait before the second attempt. Each later wait is twice the one before.
    #[serde(rename = "firstWaitMs", with = "afterimage_json::duration")]
    pub first_wait: Duration,
    /// The longest wait.
    #[serde(rename = "longestWaitMs", with = "afterimage_json::duration")]
    pub longest_wait: Duration,
    /// How much time failed attempts and waits may take in one operation.
    #[serde(rename = "withinMs", with = "afterimage_json::duration")]
    pub within: Duration,
}

impl Default for Retries {
    /// Twenty attempts within thirty seconds, with waits from 50 ms to 2 s: longer than servers take
    /// to choose a new leader.
    fn default() -> Self {
        Self {
            attempts: 20,
            first_wait: Duration::from_millis(50),
            longest_wait: Duration::from_secs(2),
            within: Duration::from_secs(30),
        }
    }
}

/// What is said of an attempt of which nobody knows what became.
pub(super) const MAY_BE_DONE: &str = "may have taken effect, so try again with the same id";

/// What an operation has used up.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    retries: Retries,
    doing: &'static str,
    /// Failures since the last success.
    failed: u32,
    pub(super) total: u32,
    spent: Duration,
    /// Whether an attempt may have taken effect nevertheless.
    is_open: bool,
}

impl Budget {
    pub(super) fn new(retries: Retries, doing: &'static str) -> Self {
        Self { retries, doing, failed: 0, total: 0, spent: Duration::ZERO, is_open: false }
    }

    /// That something came of an attempt, and nothing is left open: what was tried is known to be
    /// there, or known never to come.
    pub(super) fn worked(&mut self) {
        self.failed = 0;
        self.is_open = false;
    }

    /// How long to wait before the next attempt.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is to be none, saying what was tried and for how long.
    pub(super) fn next(&mut self, failure: Failure) -> Result<Duration, Error> {
        let (error, took, is_open) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Transient { error, took } => (error, took, false),
            Failure::Ambiguous { error, took } => (error, took, true),
        };
        self.is_open |= is_open;
        self.failed = self.failed.saturating_add(1);
        self.total = self.total.saturating_add(1);
        self.spent = self.spent.saturating_add(took);
        let doublings = self.failed.saturating_sub(1).min(20);
        let wait = self.retries.first_wait.saturating_mul(1 << doublings);
        let wait = wait.min(self.retries.longest_wait);
        let is_over = self.spent.saturating_add(wait) > self.retries.within;
        if is_over || self.failed >= self.retries.attempts.max(1) {
            let message = format!(
                "cannot {}: gave up after {} in {:.1} s; at last {}",
                self.doing,
                if self.total == 1 {
                    "1 failed attempt".to_owned()
                } else {
                    format!("{} failed attempts", self.total)
                },
                self.spent.as_secs_f64(),
                error.message(),
            );
            let message =
                if self.is_open { format!("{message}; it {MAY_BE_DONE}") } else { message };
            return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
        }
        self.spent = self.spent.saturating_add(wait);
        Ok(wait)
    }
}
