//! Snapshots in the bucket, and in the object store where they are too large for it.

use std::{collections::HashSet, io::Cursor, time::Duration};

use async_nats::jetstream::{
    kv::{Entry, Operation},
    object_store::GetErrorKind,
};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{io::AsyncReadExt, time::timeout};

use super::{
    NatsJournal,
    connect::unavailable,
    wire::{Pointer, object_name, object_prefix},
};
use crate::{
    Result,
    journal::{SessionName, request::Kept},
};

/// The largest object that is fetched: what a snapshot can have at most, and more.
const MOST_BYTES: u64 = 2 << 30;

impl NatsJournal {
    /// The snapshot that is `age` snapshots older than the newest.
    pub(super) async fn snapshot_bytes(
        &self,
        session: &SessionName,
        age: usize,
    ) -> Result<Option<Kept>> {
        let value = match age {
            0 => {
                let entry = self.connection.snapshots.entry(session.token());
                let entry = timeout(self.options.timeout, entry).await;
                let entry = entry.map_err(|_| unavailable("the bucket did not answer in time"))?;
                let entry = entry.map_err(|error| unavailable(format!("no snapshot: {error}")))?;
                entry.filter(|entry| entry.operation == Operation::Put).map(|entry| entry.value)
            }
            age => self.kept(session).await?.into_iter().nth(age).map(|entry| entry.value),
        };
        let Some(value) = value else { return Ok(None) };
        match Pointer::read(&value) {
            None => Ok(Some(Kept::Bytes(value.to_vec()))),
            Some(pointer) => self.object(&pointer).await.map(Some),
        }
    }

    /// The entries of a session, the newest first.
    async fn kept(&self, session: &SessionName) -> Result<Vec<Entry>> {
        let failed =
            |error: &dyn std::fmt::Display| unavailable(format!("no older snapshots: {error}"));
        let read = async {
            let history = self.connection.snapshots.history(session.token()).await;
            let mut history = history.map_err(|error| failed(&error))?;
            let mut entries = Vec::new();
            while let Some(entry) = history.next().await {
                let entry = entry.map_err(|error| failed(&error))?;
                if entry.operation == Operation::Put {
                    entries.push(entry);
                } else {
                    entries.clear();
                }
            }
            entries.reverse();
            Ok(entries)
        };
        timeout(self.options.timeout, read)
            .await
            .unwrap_or_else(|_| Err(unavailable("the bucket did not answer in time")))
    }

    async fn object(&self, pointer: &Pointer) -> Result<Kept> {
        let read = async {
            let mut object = match self.connection.objects.get(&pointer.object).await {
                Ok(object) => object,
                Err(error) if error.kind() == GetErrorKind::NotFound => {
                    let reason = format!("its object {:?} is not there", pointer.object);
                    return Ok(Kept::Unreadable(reason));
                }
                Err(error) => return Err(unavailable(format!("no object: {error}"))),
            };
            let mut bytes = Vec::new();
            let mut limited = (&mut object).take(MOST_BYTES);
            if let Err(error) = limited.read_to_end(&mut bytes).await {
                return match error.kind() {
                    std::io::ErrorKind::InvalidData => Ok(Kept::Unreadable(error.to_string())),
                    _ => Err(unavailable(format!("the object was not read: {error}"))),
                };
            }
            Ok(Kept::Bytes(bytes))
        };
        timeout(self.patience(pointer.bytes), read)
            .await
            .unwrap_or_else(|_| Err(unavailable("the object store did not answer in time")))
    }

    /// How long so many bytes may take.
    fn patience(&self, bytes: u64) -> Duration {
        let more = Duration::from_millis(bytes / 1_000);
        self.options.timeout.saturating_add(more)
    }

    pub(super) async fn put_snapshot(
        &self,
        session: &SessionName,
        bytes: &[u8],
        keep: usize,
    ) -> Result<()> {
        let before = self.connection.snapshots.entry(session.token());
        let before = timeout(self.options.timeout, before).await;
        let had_object =
            matches!(before, Ok(Ok(Some(entry))) if Pointer::read(&entry.value).is_some());
        let is_large = bytes.len() > self.connection.client.max_payload();
        let value = if is_large {
            let object = object_name(session, bytes);
            let put = async {
                let mut reader = Cursor::new(bytes);
                self.connection.objects.put(object.as_str(), &mut reader).await
            };
            let put = timeout(self.patience(bytes.len() as u64), put).await;
            put.map_err(|_| unavailable("the object store did not answer in time"))?
                .map_err(|error| unavailable(format!("the object was not stored: {error}")))?;
            Bytes::from(Pointer { object, bytes: bytes.len() as u64 }.to_bytes()?)
        } else {
            Bytes::copy_from_slice(bytes)
        };
        let put = self.connection.snapshots.put(session.token(), value);
        let put = timeout(self.options.timeout, put).await;
        put.map_err(|_| unavailable("the bucket did not answer in time"))?
            .map_err(|error| unavailable(format!("the snapshot was not stored: {error}")))?;
        if is_large || had_object {
            self.drop_objects(session, keep).await?;
        }
        Ok(())
    }

    /// Removes the objects of a session that none of its newest `keep` snapshots needs.
    async fn drop_objects(&self, session: &SessionName, keep: usize) -> Result<()> {
        let needed: HashSet<String> = match keep {
            0 => HashSet::new(),
            keep => {
                let kept = self.kept(session).await?;
                let pointers = kept.iter().take(keep);
                pointers.filter_map(|entry| Some(Pointer::read(&entry.value)?.object)).collect()
            }
        };
        let failed = |error: &dyn std::fmt::Display| {
            unavailable(format!("old objects not removed: {error}"))
        };
        let prefix = object_prefix(session);
        let remove = async {
            let objects = &self.connection.objects;
            let mut listed = objects.list().await.map_err(|error| failed(&error))?;
            while let Some(object) = listed.next().await {
                let object = object.map_err(|error| failed(&error))?;
                if object.name.starts_with(&prefix) && !needed.contains(&object.name) {
                    objects.delete(&object.name).await.map_err(|error| failed(&error))?;
                }
            }
            Ok(())
        };
        timeout(self.options.timeout, remove)
            .await
            .unwrap_or_else(|_| Err(unavailable("the object store did not answer in time")))
    }

    pub(super) async fn remove_snapshots(&self, session: &SessionName) -> Result<()> {
        let purge = timeout(self.options.timeout, self.connection.snapshots.purge(session.token()));
        purge
            .await
            .map_err(|_| unavailable("the bucket did not answer in time"))?
            .map_err(|error| unavailable(format!("snapshots not removed: {error}")))?;
        self.drop_objects(session, 0).await
    }
}
