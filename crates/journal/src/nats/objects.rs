//! Large snapshots: objects beside the bucket.

use std::{io::Cursor, time::Duration};

use async_nats::jetstream::{
    object_store::{DeleteErrorKind, GetErrorKind, ObjectMetadata},
    stream::{LastRawMessageErrorKind, PurgeResponse},
};
use tokio::{io::AsyncReadExt, time::timeout};
use tracing::Instrument;

use super::{
    NatsJournal,
    connect::unavailable,
    entry::{Pointer, object_in, object_name, object_subject, object_subjects},
};
use crate::{
    Error, ErrorKind, Result, SessionName,
    json::{self, Value},
    request::StoredSnapshot,
};

/// The largest object that is fetched: what a snapshot can have at most, and more.
const MOST_BYTES: u64 = 2 << 30;

/// How much room is made before the bytes of an object are seen.
const MOST_ROOM: u64 = 32 << 20;

/// How much is read at a time, at least, and written at a time, at most.
const CHUNK: usize = 128 << 10;

/// After how long without a byte to look whether the object is still there: the parts of one that was
/// dropped never come.
const SILENCE: Duration = Duration::from_millis(500);

/// What is said of a snapshot that is there, and whose bytes are not.
pub(super) fn unreadable(reason: String) -> StoredSnapshot {
    StoredSnapshot::Unreadable(Error::new(ErrorKind::Damaged, reason))
}

impl NatsJournal {
    /// The object of a snapshot.
    pub(super) async fn object(&self, pointer: &Pointer) -> Result<StoredSnapshot> {
        timeout(self.patience(pointer.bytes), self.read_object(pointer))
            .await
            .unwrap_or_else(|_| Err(unavailable("the object store did not answer in time")))
    }

    async fn read_object(&self, pointer: &Pointer) -> Result<StoredSnapshot> {
        let name = &pointer.object;
        let object = match self.connection.objects.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => {
                return if self.has_object(name).await? {
                    Err(unavailable(format!("a replica does not have the object {name:?} yet")))
                } else {
                    Ok(unreadable(format!("its object {name:?} is not there")))
                };
            }
            Err(_) if self.is_gone(&self.connection.object_stream).await => {
                let reason = format!("the object store {:?} is not there", self.options.bucket);
                return Ok(unreadable(reason));
            }
            Err(error) => return Err(unavailable(format!("no object: {error}"))),
        };
        let mut bytes = Vec::with_capacity(pointer.bytes.min(MOST_ROOM) as usize);
        let mut limited = object.take(MOST_BYTES);
        loop {
            if bytes.capacity() - bytes.len() < CHUNK {
                bytes.reserve(CHUNK.max(bytes.len()));
            }
            match timeout(SILENCE, limited.read_buf(&mut bytes)).await {
                Ok(Ok(0)) => return Ok(StoredSnapshot::Bytes(bytes)),
                Ok(Ok(_)) => {}
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                    return Ok(unreadable(error.to_string()));
                }
                Ok(Err(error)) => {
                    return Err(unavailable(format!("the object was not read: {error}")));
                }
                Err(_) if self.has_object(name).await? => {}
                Err(_) => {
                    let reason = format!("its object {name:?} went away while it was read");
                    return Ok(unreadable(reason));
                }
            }
        }
    }

    /// Keeps bytes that are too large for an event, in the object store, under a name that no others ever
    /// have: an event that is appended then can name them. They stay until they are dropped, or until their
    /// session is removed. Costs a request for each 128 KiB.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], and [`ErrorKind::Denied`] where this user has not the rights.
    pub async fn put_bytes(&self, session: &SessionName, bytes: &[u8]) -> Result<String> {
        let (journal, session, bytes) = (self.clone(), session.clone(), bytes.to_vec());
        // Once begun it comes to its end: the parts of an object that is half written stay for ever.
        let work = async move {
            let put = journal.put_object(&session, &bytes);
            journal.allowed(&journal.needs_of_put(), put).await
        };
        let failed = |error| unavailable(format!("the bytes were not kept: {error}"));
        tokio::spawn(work.in_current_span()).await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// The bytes that [`NatsJournal::put_bytes`] kept under this name, so many.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where they are not there, or are others in number;
    /// [`ErrorKind::Unavailable`].
    pub async fn bytes(&self, name: &str, count: u64) -> Result<Vec<u8>> {
        let pointer = Pointer { object: name.to_owned(), bytes: count, first_line: Vec::new() };
        let needs = self.needs_of_snapshot();
        match Box::pin(self.allowed(&needs, self.object(&pointer))).await? {
            StoredSnapshot::Bytes(bytes) if bytes.len() as u64 == count => Ok(bytes),
            StoredSnapshot::Bytes(bytes) => {
                let message = format!("expected an object of {count} bytes, found {}", bytes.len());
                Err(Error::new(ErrorKind::Damaged, message))
            }
            StoredSnapshot::Unreadable(error) => Err(error),
        }
    }

    /// Drops what [`NatsJournal::put_bytes`] kept, where no event names it. Where that fails it stays, and
    /// a warning says so.
    pub async fn drop_bytes(&self, name: &str) {
        self.clear_away(&[name.to_owned()]).await;
    }

    /// Whether an object is there, by the leader of its stream: other replicas may lag behind.
    async fn has_object(&self, name: &str) -> Result<bool> {
        Ok(self.object_bytes(name).await?.is_some())
    }

    /// How many bytes an object has; `None` where it is not there.
    pub(super) async fn object_bytes(&self, name: &str) -> Result<Option<u64>> {
        let subject = object_subject(&self.options.bucket, name);
        let asked = self.connection.object_stream.get_last_raw_message_by_subject(&subject);
        let asked = timeout(self.options.timeout, asked).await;
        match asked.map_err(|_| unavailable("the object store did not answer in time"))? {
            Ok(message) => {
                let info = json::read(&message.payload).ok();
                let is_deleted = |info: &Value| {
                    info.get("deleted").and_then(Value::as_bool).is_some_and(|deleted| deleted)
                };
                let info = info.filter(|info| !is_deleted(info));
                Ok(info.and_then(|info| info.get("size").and_then(Value::as_u64)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(format!("no object: {error}"))),
        }
    }

    /// How long so many bytes may take.
    fn patience(&self, bytes: u64) -> Duration {
        let more = Duration::from_millis(bytes / 1_000);
        self.options.timeout.saturating_add(more)
    }

    /// Stores a snapshot under a new name.
    pub(super) async fn put_object(&self, session: &SessionName, bytes: &[u8]) -> Result<String> {
        let name = object_name(session, &self.connection.client.new_inbox());
        let mut reader = Cursor::new(bytes);
        let chunk = CHUNK.min(self.connection.client.max_payload() / 2);
        let meta = ObjectMetadata {
            name: name.clone(),
            chunk_size: Some(chunk.max(1)),
            ..ObjectMetadata::default()
        };
        let put = self.connection.objects.put(meta, &mut reader);
        let put = timeout(self.patience(bytes.len() as u64), put).await;
        put.map_err(|_| unavailable("the object store did not answer in time"))?
            .map_err(|error| unavailable(format!("the object was not stored: {error}")))?;
        Ok(name)
    }

    /// The names of all objects of a session. Reads the names of all objects of the store.
    pub(super) async fn objects_of(&self, session: &SessionName) -> Result<Vec<String>> {
        let (stream, prefix) =
            (&self.connection.object_stream, object_subjects(&self.options.bucket));
        match self.subjects(stream, format!("{prefix}*")).await {
            Err(_) if self.is_gone(stream).await => Ok(Vec::new()),
            subjects => {
                let ends = subjects?;
                let ends = ends.iter().filter_map(|subject| subject.strip_prefix(&prefix));
                Ok(ends.filter_map(|end| object_in(end, session)).collect())
            }
        }
    }

    /// Drops objects, and what the store says of them. Those that are not there are no error.
    pub(super) async fn drop_objects(&self, names: &[String]) -> Result<()> {
        for name in names {
            let dropped = async {
                let late = || unavailable("the object store did not answer in time");
                let dropped = timeout(self.options.timeout, self.drop_object(name)).await;
                dropped.unwrap_or_else(|_| Err(late()))
            };
            self.allowed(&self.needs_of_cleaning(), dropped).await?;
        }
        Ok(())
    }

    async fn drop_object(&self, name: &str) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| {
            unavailable(format!("the object {name:?} was not removed: {error}"))
        };
        match self.connection.objects.delete(name).await {
            Ok(()) => {}
            Err(error) if error.kind() == DeleteErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&error)),
        }
        // What is left says for ever that there was an object of that name.
        let subject = object_subject(&self.options.bucket, name);
        let purge = self.connection.object_stream.purge().filter(subject).await;
        let purged: PurgeResponse = purge.map_err(|error| failed(&error))?;
        tracing::debug!(name, messages = purged.purged, "removed an object");
        Ok(())
    }

    /// The same, where what matters is done already.
    pub(super) async fn clear_away(&self, names: &[String]) {
        if let Err(error) = self.drop_objects(names).await {
            tracing::warn!(%error, ?names, "objects that nobody needs are still there");
        }
    }
}
