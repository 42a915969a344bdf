use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, ErrorKind, Result, id::Millis};

/// Where a session keeps its steps: an ordered list of bytes, which only grows.
///
/// [`MemoryStore`] is for tests and for what need not last. With the feature `storage` a
/// `JournalStore` keeps them in a directory.
pub trait SessionStore: Send {
    /// Appends the step with this number, from one, and makes it durable: once this has returned, it is
    /// there, whatever happens to the process. A step with this number that is there already, and has
    /// other bytes, is a conflict.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where another writer has appended a step with this number, and those of
    /// the store.
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()>;

    /// At most `most` steps from the one with number `first` on; none past the end.
    ///
    /// # Errors
    /// Those of the store.
    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>>;
}

/// Steps in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Vec<Vec<u8>>>>);

impl SessionStore for MemoryStore {
    fn append(&mut self, number: u64, step: &[u8], _now: Millis) -> Result<()> {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = steps.len() as u64 + 1;
        if number != next {
            let message = format!("expected the session to go on with step {number}, found {next}");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        steps.push(step.to_vec());
        Ok(())
    }

    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(steps.iter().skip(skipped).take(most).cloned().collect())
    }
}

#[cfg(feature = "storage")]
pub use journal::JournalStore;

#[cfg(feature = "storage")]
mod journal {
    use std::path::Path;

    use super::SessionStore;
    use crate::{
        Result,
        id::Millis,
        journal::{EventId, Expected, Journal, JournalOptions, NewEvent, SessionName},
        log::Holder,
    };

    /// What a step is called in a journal.
    const KIND: &str = "step";
    /// The session of a directory that holds one.
    const ONLY: &str = "session";

    /// Steps as the events of a journal.
    #[derive(Debug)]
    pub struct JournalStore {
        journal: Journal,
        session: SessionName,
    }

    impl JournalStore {
        /// The steps of one session in a directory, which is created where it is not there.
        ///
        /// # Errors
        /// Those of [`Journal::open`].
        pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
            let holder = Holder::new("afterimage session");
            let journal = Journal::open(directory, &holder, JournalOptions::default())?;
            Ok(Self::of(journal, SessionName::new(ONLY)?))
        }

        /// The steps of one session of a journal that holds others too.
        pub fn of(journal: Journal, session: SessionName) -> Self {
            Self { journal, session }
        }
    }

    impl SessionStore for JournalStore {
        fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
            let event = NewEvent::new(EventId::new(number.to_string())?, KIND, step)?;
            let expected = Expected::Last(number.saturating_sub(1));
            self.journal.append(&self.session, expected, event, now)?;
            Ok(())
        }

        fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
            let events = self.journal.read(&self.session, first, most)?;
            Ok(events.into_iter().map(|event| event.body).collect())
        }
    }
}
