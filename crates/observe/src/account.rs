use super::Moment;
use crate::{Error, ErrorKind, Result};

/// The longest name of an account or an agent, in characters.
pub const MAX_NAME_CHARS: usize = 1_024;

/// An account of the world, and who plays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name, which is data: any text that is not empty. Names are compared exactly: case, white
    /// space and the normalization of Unicode count. Nothing on a disk is named after it.
    pub name: String,
    /// The agent that has it. An account belongs to one agent at a time, an agent has one account.
    pub agent: Option<String>,
    /// When it was first seen.
    pub created: Moment,
    /// The response with the highest tick.
    pub latest: Option<Moment>,
}

impl Account {
    pub(super) fn new(name: impl Into<String>, created: Moment) -> Self {
        Self { name: name.into(), agent: None, created, latest: None }
    }

    /// Notes the tick of a response. One that arrives late turns no clock back.
    pub(super) fn note(&mut self, seen: Moment) {
        if seen.tick.is_some() && !self.latest.is_some_and(|latest| seen.is_before(latest)) {
            self.latest = Some(seen);
        }
    }

    /// `now`, with the latest tick that was seen where it has none.
    pub(super) fn now(&self, now: Moment) -> Moment {
        Moment { tick: now.tick.or_else(|| self.latest.and_then(|latest| latest.tick)), ..now }
    }
}

/// Checks the name of an account or an agent.
pub(super) fn check_name(name: &str, of: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::expected(format_args!("the name of {of}"), "an empty text"));
    }
    if name.chars().nth(MAX_NAME_CHARS).is_none() {
        return Ok(());
    }
    let found = name.chars().count();
    let message = format!("the name of {of} has {found} characters; the limit is {MAX_NAME_CHARS}");
    Err(Error::new(ErrorKind::Limit, message))
}
