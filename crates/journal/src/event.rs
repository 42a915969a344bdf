use std::{fmt, sync::Arc};

use crate::{Error, ErrorKind, Millis, Result};

/// The longest id and the longest kind of an event, in bytes.
const MAX_NAME: usize = 1024;

/// The id of an event: what tells that an event is there already.
///
/// Whoever appends chooses it, so that the same step tried again has the same id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Arc<str>);

crate::json::serde_through_text!(EventId);

impl EventId {
    fn parse(id: &str) -> Result<Self> {
        Self::new(id)
    }

    /// An id of 1 to 1,024 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for the empty text, [`ErrorKind::Limit`] for a longer one.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self> {
        let id = id.into();
        checked("the id of an event", &id)?;
        Ok(Self(id))
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// An event that is to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub(super) id: EventId,
    pub(super) kind: Arc<str>,
    pub(super) body: Arc<[u8]>,
}

impl NewEvent {
    /// An event of a kind. The journal never looks into the body.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a kind that is empty, [`ErrorKind::Limit`] for one of more than
    /// 1,024 bytes.
    pub fn new(id: EventId, kind: impl Into<Arc<str>>, body: impl Into<Arc<[u8]>>) -> Result<Self> {
        let kind = kind.into();
        checked("the kind of an event", &kind)?;
        Ok(Self { id, kind, body: body.into() })
    }
}

/// An event that a journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the session: 1 for the first, one more for each.
    pub sequence: u64,
    /// What its writer called it.
    pub id: EventId,
    /// What kind of event it is.
    pub kind: Arc<str>,
    /// When it was appended, by its writer's clock.
    pub recorded_at: Millis,
    /// What its writer put in.
    pub body: Vec<u8>,
}

/// What a writer takes for the newest event of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any: the event goes to the end, wherever that is.
    Any,
    /// The event with this sequence; 0 where the session is to have none.
    Last(u64),
}

/// Where an event is that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendReceipt {
    /// Its sequence.
    pub sequence: u64,
    /// Whether it was there before this call: an event of the session has its id.
    pub was_there: bool,
}

fn checked(what: &str, text: &str) -> Result<()> {
    match text.len() {
        0 => Err(Error::expected(what, "the empty text")),
        1..=MAX_NAME => Ok(()),
        length => {
            let message = format!("{what} of {length} bytes; the limit is {MAX_NAME}");
            Err(Error::new(ErrorKind::Limit, message))
        }
    }
}
