//! The ids of events in the bucket, so that a writer that opens a session need not read all events
//! for them. They are derived, so that whatever fails here only costs time.

use std::fmt::Display;

use bytes::Bytes;

use super::NatsJournal;
use crate::{Result, SessionName, id_parts::Part};

fn key(session: &SessionName, part: u64) -> String {
    format!("{}.ids.{part}", session.token())
}

impl NatsJournal {
    /// A part of the ids; `None` where it is not there, or cannot be had.
    pub(super) async fn ids(&self, session: &SessionName, part: u64) -> Option<Vec<u8>> {
        let found = self.connection.snapshots.get(key(session, part));
        match self.of_ids(session, "no ids of events", found).await {
            Ok(found) => found.map(Vec::from),
            Err(error) => {
                tracing::warn!(%session, %error, "all events are read for their ids");
                None
            }
        }
    }

    pub(super) async fn put_ids(&self, session: &SessionName, part: &Part) {
        let value = Bytes::copy_from_slice(&part.bytes);
        let put = self.connection.snapshots.put(key(session, part.number), value);
        if let Err(error) = self.of_ids(session, "ids not stored", put).await {
            tracing::warn!(%session, %error, "the ids of events are not kept");
        }
    }

    async fn of_ids<T, E: Display>(
        &self,
        session: &SessionName,
        failed: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T> {
        let work = self.of_snapshots(failed, work);
        self.allowed(&self.needs_of_ids(session), work).await
    }

    pub(super) async fn remove_ids(&self, session: &SessionName) -> Result<()> {
        let bucket = &self.connection.snapshots;
        let keys = format!("{}{}.ids.*", bucket.prefix, session.token());
        let purged = self.of_snapshots("ids not removed", bucket.stream.purge().filter(keys));
        purged.await.map(drop)
    }
}
