//! How many files the recorder may open: a call needs two connections.

use crate::{output::note, text::grouped};

/// More are of no use.
const WANTED: u64 = 1 << 16;
/// What every macOS allows.
const MODEST: u64 = 10_240;
/// With fewer it is said how many calls there may be.
const ENOUGH: u64 = 4_096;
/// What is open besides connections of calls.
const OTHERS: u64 = 32;

/// Raises the limit of this process as far as the system lets it, and says where that is not far.
///
/// A command that was started before keeps the limit that it was given: some programs cannot bear a
/// high one.
#[cfg(unix)]
pub(super) fn raise() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    for wanted in [WANTED, MODEST] {
        let wanted = wanted.min(most);
        let is_enough = limit.current.is_none_or(|current| current >= wanted);
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        if is_enough || setrlimit(Resource::Nofile, raised).is_ok() {
            break;
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if current < ENOUGH {
        note(&format!(
            "the system lets the recorder open {} files: more than {} calls at a time fail",
            grouped(current),
            grouped(current.saturating_sub(OTHERS) / 2)
        ));
    }
}

#[cfg(not(unix))]
pub(super) fn raise() {}
