use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

use super::kinds::{has_kind, kind_of};
use crate::{Error, ErrorKind, Result};

/// A state that follows from events.
///
/// The default is the state before the first event. State and events are stored as JSON, through
/// serde.
///
/// ```
/// use afterimage_journal::{Result, Replay, refused};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Stock { crates: u64 }
///
/// // The names of the variants are the kinds of events.
/// #[derive(Serialize, Deserialize)]
/// enum Move { In(u64), Out(u64) }
///
/// impl Replay for Stock {
///     type Event = Move;
///     const SCHEMA: u32 = 1;
///
///     fn check(&self, event: &Move) -> Result<()> {
///         match event {
///             Move::Out(n) if *n > self.crates => Err(refused("more than there is")),
///             _ => Ok(()),
///         }
///     }
///
///     fn apply(&mut self, _sequence: u64, event: &Move) -> Result<()> {
///         match event { Move::In(n) => self.crates += n, Move::Out(n) => self.crates -= n }
///         Ok(())
///     }
/// }
/// ```
pub trait Replay: Default + Serialize + DeserializeOwned {
    /// What the state follows from.
    type Event: Serialize + DeserializeOwned;

    /// The version of the state's form, which each snapshot carries.
    const SCHEMA: u32;

    /// Whether events of kinds that [`Replay::knows`] does not know are skipped. Otherwise they
    /// are errors.
    const SKIPS_UNKNOWN: bool = false;

    /// Whether a snapshot of this version can be read: of the own one alone by default. Any other is
    /// passed over, and the events are replayed.
    fn reads(schema: u32) -> bool {
        schema == Self::SCHEMA
    }

    /// The kind of an event, which is stored with it: by default the name of its variant as serde
    /// writes it, and `event` for what is no variant.
    fn kind(event: &Self::Event) -> &str {
        kind_of(event)
    }

    /// Whether this program knows events of a kind: by default those that [`Replay::kind`] has by
    /// default. Override both or neither.
    fn knows(kind: &str) -> bool {
        has_kind::<Self::Event>(kind)
    }

    /// Says whether an event may follow, before it is appended. What is in a journal is applied
    /// without asking, so this is to refuse whatever [`Replay::apply`] would: what is refused only
    /// there is in the log already.
    ///
    /// # Errors
    /// What the state has against it: see [`refused`].
    fn check(&self, event: &Self::Event) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Applies an event.
    ///
    /// # Errors
    /// Why the event cannot be applied: see [`refused`]. The state is not used any more then. The
    /// event stays in the log, and every load fails on it.
    fn apply(&mut self, sequence: u64, event: &Self::Event) -> Result<()>;

    /// Hears that it does not get the events from `first` to `last`, where somebody
    /// [accepted](super::Journal::accept_loss) that they are lost. For a state that counts events.
    fn skip_lost(&mut self, first: u64, last: u64) {
        let _ = (first, last);
    }

    /// Whether an iteration ends with this event, so that a snapshot is due under
    /// [`SnapshotPolicy::IterationEnd`](super::SnapshotPolicy::IterationEnd).
    fn ends_iteration(event: &Self::Event) -> bool {
        let _ = event;
        false
    }
}

/// The error of a state that does not take an event, with its reason in a sentence.
pub fn refused(reason: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Refused, reason.to_string())
}

/// Reads and applies an event, or skips it; whether it was applied.
pub(super) fn apply_stored<S: Replay>(state: &mut S, event: &super::Event) -> Result<bool> {
    let Some(decoded) = read_stored::<S>(event)? else { return Ok(false) };
    state.apply(event.sequence, &decoded).map_err(|error| error.at_event(event.sequence))?;
    Ok(true)
}

/// Reads an event; `None` where it is to be skipped.
pub(super) fn read_stored<S: Replay>(event: &super::Event) -> Result<Option<S::Event>> {
    if !S::knows(&event.kind) {
        if S::SKIPS_UNKNOWN {
            return Ok(None);
        }
        let message = format!("an event of kind {:?}, which this state does not know", event.kind);
        return Err(Error::new(ErrorKind::UnknownEvent, message).at_event(event.sequence));
    }
    let decoded = serde_json::from_slice(&event.body).map_err(|error| {
        let message = format!("cannot read an event of kind {:?}: {error}", event.kind);
        Error::new(ErrorKind::Shape, message).with_source(error).at_event(event.sequence)
    })?;
    Ok(Some(decoded))
}
