//! How far sessions went whose events the stream drops one day.
//!
//! The newest event of a session tells its greatest sequence, until it is dropped too. Where a stream
//! drops events, the bucket holds that sequence as well: a load would else not miss what came after
//! the newest snapshot, and an append would give the same sequences again.

use std::sync::Arc;

use async_nats::jetstream::{
    kv::{Operation, UpdateErrorKind},
    stream,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{NatsJournal, connect::unavailable};
use crate::{Error, Result, SessionName, sealed};

const KIND: &str = "afterimage journal end";
const VERSION: u64 = 1;

/// How often another writer may be ahead.
const MOST_RACES: u32 = 1_000;

/// Whether a stream drops events by itself.
pub(super) fn drops_events(config: &stream::Config) -> bool {
    let has_limit =
        config.max_bytes > 0 || config.max_messages > 0 || config.max_messages_per_subject > 0;
    !config.max_age.is_zero() || (has_limit && config.discard != stream::DiscardPolicy::New)
}

/// The end of a session's log, as the bucket holds it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    kind: String,
    version: u64,
    #[serde(with = "sealed::shared")]
    life: Arc<str>,
    sequence: u64,
}

impl End {
    fn new(life: &Arc<str>, sequence: u64) -> Self {
        Self { kind: KIND.to_owned(), version: VERSION, life: Arc::clone(life), sequence }
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        // Damage is an error of its own; anything else is not an end of this version.
        sealed::open(bytes)?;
        let end = sealed::open_as(bytes, KIND, VERSION);
        end.ok_or_else(|| Error::expected("the end of a session", "something else"))
    }
}

fn key(session: &SessionName) -> String {
    format!("{}.end", session.token())
}

impl NatsJournal {
    /// Whether ends are kept.
    pub(super) fn keeps_ends(&self) -> bool {
        drops_events(&self.connection.stream.cached_info().config)
    }

    /// The greatest sequence that was acknowledged in a session of this life; 0 where none is known.
    pub(super) async fn end(&self, session: &SessionName, life: &str) -> Result<u64> {
        let (end, _) = self.end_with_revision(session).await?;
        Ok(end.filter(|end| *end.life == *life).map_or(0, |end| end.sequence))
    }

    async fn end_with_revision(&self, session: &SessionName) -> Result<(Option<End>, u64)> {
        let entry = self.connection.snapshots.entry(key(session));
        let entry = self.of_snapshots("no end of the session", entry).await?;
        let Some(entry) = entry else { return Ok((None, 0)) };
        let end = match entry.operation {
            Operation::Put => Some(End::read(&entry.value)?),
            _ => None,
        };
        Ok((end, entry.revision))
    }

    /// Keeps how far a session went, where the bucket does not have it, or more, already.
    pub(super) async fn put_end(
        &self,
        session: &SessionName,
        life: &Arc<str>,
        sequence: u64,
    ) -> Result<()> {
        let end = End::new(life, sequence);
        for _ in 0..MOST_RACES {
            let (found, revision) = self.end_with_revision(session).await?;
            if found.is_some_and(|found| found.life == end.life && found.sequence >= sequence) {
                return Ok(());
            }
            let value = Bytes::from(sealed::seal(&end)?);
            let put = self.connection.snapshots.update(key(session), value, revision);
            let put = timeout(self.options.timeout, put).await;
            match put.map_err(|_| unavailable("the bucket did not answer in time"))? {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
                Err(error) => {
                    return Err(unavailable(format!(
                        "the end of the session is not kept: {error}"
                    )));
                }
            }
        }
        Err(unavailable(format!(
            "another writer stored its end first {MOST_RACES} times in a row; try again"
        )))
    }

    pub(super) async fn remove_end(&self, session: &SessionName) -> Result<()> {
        let purged = self.connection.snapshots.purge(key(session));
        self.of_snapshots("the end of the session not removed", purged).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_comes_back_and_damage_is_found() {
        let end = End::new(&"2026-11-21T00:00:00Z".into(), 41);
        let bytes = sealed::seal(&end).unwrap();
        assert_eq!(End::read(&bytes).unwrap(), end);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(End::read(&changed).is_err(), "{at}");
            assert!(End::read(&bytes[..at]).is_err(), "{at}");
        }
    }
}
