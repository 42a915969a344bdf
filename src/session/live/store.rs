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
    /// [`ErrorKind::Conflict`] where another writer has appended a step with this number;
    /// [`ErrorKind::Io`], or another error of the store.
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()>;

    /// At most `most` steps, from step `first` on (the first step has the number 1). Empty past the
    /// end.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`], or another error of the store.
    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>>;

    /// The name of the session, where it has one: `gen_ai.conversation.id` of its spans.
    fn name(&self) -> Option<&str> {
        None
    }
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
#[cfg(feature = "nats")]
pub(super) use journal::NatsSteps;

#[cfg(feature = "storage")]
mod journal {
    use std::path::Path;

    #[cfg(feature = "nats")]
    use serde::{Deserialize, Serialize};

    use super::SessionStore;
    #[cfg(feature = "nats")]
    use crate::{
        Error, ErrorKind,
        journal::{ErrorKind as JournalErrorKind, NatsJournal},
        json,
    };
    use crate::{
        Result,
        id::Millis,
        journal::{EventId, Expected, Journal, JournalOptions, NewEvent, SessionName},
        log::Holder,
    };

    /// The kind of an event that holds a step.
    const KIND: &str = "step";
    /// The kind of an event that names an object with the step's bytes.
    #[cfg(feature = "nats")]
    const LARGE: &str = "large-step";
    /// The name of the session in a directory that holds one session.
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
        /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) where another writer has the directory,
        /// [`ErrorKind::Io`](crate::ErrorKind::Io).
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

    /// A step as an event that follows step `number` - 1. Its id has the hash of the bytes, so
    /// other bytes with the same number are another event.
    fn event(number: u64, step: &[u8]) -> Result<(Expected, NewEvent)> {
        let event = NewEvent::new(id(number, step)?, KIND, step)?;
        Ok((Expected::Last(number.saturating_sub(1)), event))
    }

    fn id(number: u64, step: &[u8]) -> Result<EventId> {
        Ok(EventId::new(format!("{number}-{}", blake3::hash(step).to_hex()))?)
    }

    /// The body of an event for a step that is larger than a message of the server may be.
    #[cfg(feature = "nats")]
    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LargeStep {
        object: String,
        bytes: u64,
        hash: String,
    }

    /// A page of steps ends with the step that reaches so many bytes.
    #[cfg(feature = "nats")]
    const PAGE_BYTES: usize = 32 << 20;

    #[cfg(feature = "nats")]
    /// Steps as the events of a journal on a server.
    pub(in super::super) struct NatsSteps {
        journal: NatsJournal,
        session: SessionName,
    }

    #[cfg(feature = "nats")]
    impl NatsSteps {
        pub(in super::super) fn of(journal: NatsJournal, session: SessionName) -> Self {
            Self { journal, session }
        }

        async fn large(&self, body: &[u8]) -> Result<Vec<u8>> {
            let LargeStep { object, bytes, hash } = json::from_value(json::read(body)?)?;
            let step = self.journal.bytes(&object, bytes).await?;
            if blake3::hash(&step).to_hex().as_str() != hash {
                let message = format!(
                    "the object {object:?} is damaged: its bytes do not have the hash that the \
                     journal states"
                );
                return Err(Error::new(ErrorKind::Damaged, message));
            }
            Ok(step)
        }
    }

    #[cfg(feature = "nats")]
    impl super::super::owner::Steps for NatsSteps {
        async fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
            let (expected, event) = event(number, step)?;
            match self.journal.append(&self.session, expected, event, now).await {
                Err(error) if error.kind() == JournalErrorKind::Limit => {}
                appended => return Ok(appended.map(drop)?),
            }
            // An event that is there has its bytes.
            let object = self.journal.put_bytes(&self.session, step).await?;
            let hash = blake3::hash(step).to_hex().to_string();
            let large = LargeStep { object: object.clone(), bytes: step.len() as u64, hash };
            let large = json::to_value(&large)?.to_string().into_bytes();
            let event = NewEvent::new(id(number, step)?, LARGE, large)?;
            let appended = self.journal.append(&self.session, expected, event, now).await;
            if appended.as_ref().is_err_and(|error| error.kind() == JournalErrorKind::Conflict) {
                self.journal.drop_bytes(&object).await;
            }
            Ok(appended.map(drop)?)
        }

        async fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
            let events = self.journal.read(&self.session, first, most).await?;
            let mut steps = Vec::with_capacity(events.len());
            let mut bytes = 0;
            for event in events {
                let step = match &*event.kind {
                    LARGE => self.large(&event.body).await?,
                    _ => event.body,
                };
                bytes += step.len();
                steps.push(step);
                // The rest comes with the next page.
                if bytes >= PAGE_BYTES {
                    break;
                }
            }
            Ok(steps)
        }

        fn name(&self) -> Option<&str> {
            Some(self.session.as_str())
        }
    }

    impl SessionStore for JournalStore {
        fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
            let (expected, event) = event(number, step)?;
            let appended = self.journal.append(&self.session, expected, event, now);
            // The session reads what is there now before it goes on.
            Ok(appended.map(drop).inspect_err(|_| self.journal.reopen(&self.session))?)
        }

        fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
            let events = self.journal.read(&self.session, first, most)?;
            Ok(events.into_iter().map(|event| event.body).collect())
        }

        fn name(&self) -> Option<&str> {
            Some(self.session.as_str()).filter(|name| *name != ONLY)
        }
    }
}
