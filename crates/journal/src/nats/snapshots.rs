//! Snapshots in the bucket, whose entries name the objects of those that are too large for it.

use std::sync::Arc;

use async_nats::{
    Request as Outgoing, RequestErrorKind,
    jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind, Stream},
};
use bytes::Bytes;
use tokio::time::timeout;
use tracing::Instrument;

use super::{
    NatsJournal,
    connect::unavailable,
    entry::{Entry, Pointer, entry_headers, first_line, header_bytes, purge_headers},
    objects::unreadable,
    wire::{self, Ack},
};
use crate::{
    Error, ErrorKind, Result, SessionName, SnapshotInfo,
    json::{self, Value},
    request::{Mark, StoredSnapshot},
    snapshot,
};

/// How often a snapshot is looked for whose object was dropped, since a newer one was there.
const MOST_LOOKS: usize = 8;

/// What a server answers that has looked for a stream and found none.
const STREAM_NOT_FOUND: u64 = 10_059;

/// How often a snapshot is put after those that came in between.
const MOST_PUTS: usize = 16;

/// For how many entries beyond the one whose writer drops it the name of an object is handed on, so
/// that what one writer could not drop another one can.
const HANDED_ON: u64 = 2;

/// What the newest snapshot is to one that is to be written.
enum SnapshotWrite {
    Older,
    /// The very same, whole.
    Same,
    Newer(SnapshotInfo),
}

impl NatsJournal {
    /// The snapshot that is `age` snapshots older than the newest.
    ///
    /// The object of one that was replaced is dropped some time later, so where an object is not there
    /// its entry is looked at again.
    pub(super) async fn snapshot_bytes(
        &self,
        session: &SessionName,
        age: usize,
    ) -> Result<Option<StoredSnapshot>> {
        let entry = match age {
            0 => self.newest(session).await.map(Some),
            age => self.entry_of_age(session, age).await,
        };
        let mut entry = match entry {
            Err(_) if self.is_gone(&self.connection.snapshots.stream).await => {
                // Said once, for the newest.
                let reason = format!("the bucket {:?} is not there", self.options.bucket);
                return Ok((age == 0).then(|| unreadable(reason)));
            }
            entry => entry?,
        };
        for _ in 0..MOST_LOOKS {
            let Some(Entry { revision, value: Some(value), .. }) = entry else { return Ok(None) };
            let Some(pointer) = Pointer::read(&value) else {
                return Ok(Some(StoredSnapshot::Bytes(value.to_vec())));
            };
            let reason = match self.object(&pointer).await? {
                StoredSnapshot::Unreadable(reason) => reason,
                kept @ StoredSnapshot::Bytes(_) => return Ok(Some(kept)),
            };
            entry = self.entry_of_age(session, age).await?;
            if entry.as_ref().is_some_and(|entry| entry.revision == revision) {
                return Ok(Some(StoredSnapshot::Unreadable(reason)));
            }
        }
        Err(unavailable("snapshots are replaced faster than they can be read"))
    }

    /// Whether a server knows for sure that a stream is not there.
    pub(super) async fn is_gone(&self, stream: &Stream) -> bool {
        let subject = format!("$JS.API.STREAM.INFO.{}", stream.cached_info().config.name);
        let asked = self.connection.client.request(subject, Bytes::new());
        let Ok(Ok(answer)) = timeout(self.options.timeout, asked).await else { return false };
        let answer = json::read(&answer.payload).ok();
        let error = answer.as_ref().and_then(|answer| answer.get("error"));
        let code = error.and_then(|error| error.get("err_code")).and_then(Value::as_u64);
        code == Some(STREAM_NOT_FOUND)
    }

    fn key(&self, session: &SessionName) -> String {
        format!("{}{}", self.connection.snapshots.prefix, session.token())
    }

    /// The newest entry of a session, by whichever replica is asked.
    async fn newest(&self, session: &SessionName) -> Result<Entry> {
        let stream = &self.connection.snapshots.stream;
        if !stream.cached_info().config.allow_direct {
            return self.newest_of_leader(session).await;
        }
        let asked = stream.direct_get_last_for_subject(self.key(session));
        match timeout(self.options.timeout, asked).await.map_err(|_| late())? {
            Ok(message) => Ok(Entry::of(message)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(Entry::default()),
            Err(error) => Err(unavailable(format!("no snapshot: {error}"))),
        }
    }

    /// The newest entry of a session, by the leader: other replicas may lag behind.
    async fn newest_of_leader(&self, session: &SessionName) -> Result<Entry> {
        let key = self.key(session);
        let asked = self.connection.snapshots.stream.get_last_raw_message_by_subject(&key);
        match timeout(self.options.timeout, asked).await.map_err(|_| late())? {
            Ok(message) => Ok(Entry::of(message)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                Ok(Entry::default())
            }
            Err(error) => Err(unavailable(format!("no snapshot: {error}"))),
        }
    }

    async fn entry_of_age(&self, session: &SessionName, age: usize) -> Result<Option<Entry>> {
        match age {
            0 => self.newest_of_leader(session).await.map(Some),
            age => Ok(self.kept(session).await?.into_iter().nth(age)),
        }
    }

    /// The snapshots of a session, the newest first, by the leader.
    async fn kept(&self, session: &SessionName) -> Result<Vec<Entry>> {
        let (key, stream) = (self.key(session), &self.connection.snapshots.stream);
        let mut entries = Vec::new();
        let mut from = 1;
        loop {
            let asked = stream.get_first_raw_message_by_subject(&key, from);
            match timeout(self.options.timeout, asked).await.map_err(|_| late())? {
                Ok(message) => {
                    from = message.sequence.saturating_add(1);
                    let entry = Entry::of(message);
                    if entry.value.is_none() {
                        entries.clear();
                    } else {
                        entries.push(entry);
                    }
                }
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => break,
                Err(error) => return Err(unavailable(format!("no older snapshots: {error}"))),
            }
        }
        entries.reverse();
        Ok(entries)
    }

    /// Puts a snapshot after the newest one. Where that one is newer, it stays and is the answer.
    ///
    /// Once begun it comes to its end, whether somebody waits for it or not: the parts of an object
    /// that was written by half would stay for ever.
    pub(super) async fn put_snapshot(
        &self,
        session: &SessionName,
        bytes: Arc<[u8]>,
        keep: usize,
    ) -> Result<Option<SnapshotInfo>> {
        let (journal, session) = (self.clone(), session.clone());
        let work = async move { journal.put_or_clear(&session, &bytes, keep).await };
        tokio::spawn(work.in_current_span())
            .await
            .unwrap_or_else(|error| Err(unavailable(format!("the snapshot was not put: {error}"))))
    }

    /// Whatever fails after the snapshot was put is no failure: what is to be cleared away is handed
    /// on to the next writer.
    async fn put_or_clear(
        &self,
        session: &SessionName,
        bytes: &[u8],
        keep: usize,
    ) -> Result<Option<SnapshotInfo>> {
        let mut unnamed = None;
        let result = self.put_after_newest(session, bytes, keep, &mut unnamed).await;
        if let Some(object) = unnamed {
            self.clear_away(&[object]).await;
        }
        result
    }

    /// Leaves in `unnamed` the object that was written and that no entry names.
    async fn put_after_newest(
        &self,
        session: &SessionName,
        bytes: &[u8],
        keep: usize,
        unnamed: &mut Option<String>,
    ) -> Result<Option<SnapshotInfo>> {
        let keep = keep as u64;
        let mut newest = match self.newest(session).await {
            Err(_) if self.is_gone(&self.connection.snapshots.stream).await => {
                let message = format!(
                    "the bucket {:?} does not exist; reconnect to create it",
                    self.options.bucket
                );
                return Err(Error::new(ErrorKind::Io, message));
            }
            newest => newest?,
        };
        for _ in 0..MOST_PUTS {
            match self.standing(&newest, bytes).await? {
                SnapshotWrite::Older => {}
                SnapshotWrite::Same => return Ok(None),
                SnapshotWrite::Newer(info) => return Ok(Some(info)),
            }
            let mut objects = newest.handed_on();
            // One snapshot more than are kept has its object still: somebody may be reading it.
            let needed = if newest.value.is_some() { keep } else { 0 };
            let unneeded = objects.beyond(needed, session);
            objects.forget(needed.saturating_add(HANDED_ON));
            let headers = entry_headers(newest.revision, &objects)?;
            let value = if bytes.len().saturating_add(header_bytes(&headers)) <= self.room() {
                Bytes::copy_from_slice(bytes)
            } else {
                if unnamed.is_none() {
                    *unnamed = Some(self.put_object(session, bytes).await?);
                }
                let object = unnamed.clone().unwrap_or_default();
                Bytes::from(Pointer::to(object, bytes).to_bytes()?)
            };
            // While it is unknown whether the entry is there, its object may be needed.
            let object = unnamed.take();
            if self.put_entry(session, headers, value).await? {
                self.clear_away(&unneeded).await;
                return Ok(None);
            }
            *unnamed = object;
            newest = self.newest_of_leader(session).await?;
        }
        Err(unavailable("other writers kept coming first"))
    }

    /// How many bytes an entry of the bucket can have, headers included.
    fn room(&self) -> usize {
        let limit = self.connection.snapshots.stream.cached_info().config.max_message_size;
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        self.connection.client.max_payload().min(limit.unwrap_or(usize::MAX))
    }

    async fn standing(&self, newest: &Entry, bytes: &[u8]) -> Result<SnapshotWrite> {
        let Some(value) = &newest.value else { return Ok(SnapshotWrite::Older) };
        let pointer = Pointer::read(value);
        let line = pointer.as_ref().map_or(first_line(value), |found| &found.first_line);
        if line == first_line(bytes) {
            let is_whole = match &pointer {
                Some(found) => self.is_whole(found).await?,
                None => **value == *bytes,
            };
            return Ok(if is_whole { SnapshotWrite::Same } else { SnapshotWrite::Older });
        }
        let (Ok(theirs), Ok(ours)) = (snapshot::header(line), snapshot::header(bytes)) else {
            return Ok(SnapshotWrite::Older);
        };
        if !theirs.is_newer_than(&ours) || !self.has_event(&theirs.mark).await? {
            return Ok(SnapshotWrite::Older);
        }
        if let Some(found) = &pointer
            && !self.is_whole(found).await?
        {
            return Ok(SnapshotWrite::Older);
        }
        Ok(SnapshotWrite::Newer(SnapshotInfo {
            after_sequence: theirs.mark.sequence,
            created_at: theirs.created_at,
            schema: theirs.schema,
            stored_bytes: pointer.map_or(value.len() as u64, |found| found.bytes),
        }))
    }

    async fn is_whole(&self, pointer: &Pointer) -> Result<bool> {
        Ok(self.object_bytes(&pointer.object).await? == Some(pointer.bytes))
    }

    /// Whether the log has an event. One that lost its end has not those that it had before.
    async fn has_event(&self, mark: &Mark) -> Result<bool> {
        let message = wire::message_of(mark.position);
        let asked = self.connection.stream.get_raw_message(message);
        match timeout(self.options.timeout, asked).await.map_err(|_| late())? {
            Ok(found) => Ok(wire::placed(message, &found.payload)
                .is_ok_and(|events| events.iter().any(|placed| placed.mark() == *mark))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(unavailable(format!("no event of the snapshot: {error}"))),
        }
    }

    /// Puts an entry where its headers say; whether it is there now. An error leaves that open.
    async fn put_entry(
        &self,
        session: &SessionName,
        headers: async_nats::HeaderMap,
        value: Bytes,
    ) -> Result<bool> {
        let bucket = &self.connection.snapshots;
        let prefix = bucket.put_prefix.as_ref().unwrap_or(&bucket.prefix);
        let timeout = Some(self.options.timeout);
        let request = Outgoing::new().headers(headers).payload(value).timeout(timeout);
        let subject = format!("{prefix}{}", session.token());
        let failed = |kind, error: &dyn std::fmt::Display| {
            Error::new(kind, format!("the bucket was not written: {error}"))
        };
        let sent = async {
            let answer = self.connection.client.send_request(subject, request).await;
            answer.map_err(|error| match error.kind() {
                RequestErrorKind::MaxPayloadExceeded => failed(ErrorKind::Limit, &error),
                _ => failed(ErrorKind::Unavailable, &error),
            })
        };
        let answer = self.answered(sent).await?;
        match wire::ack(&answer.payload) {
            Ack::Stored(_) => Ok(true),
            Ack::Refused => Ok(false),
            Ack::Unsure(error) => Err(failed(ErrorKind::Unavailable, &error)),
            Ack::Rejected(error) => Err(failed(error.kind(), &error)),
        }
    }

    /// Removes the snapshots of a session. What they leave is a mark, which names their objects until
    /// there is another snapshot.
    pub(super) async fn remove_snapshots(&self, session: &SessionName) -> Result<()> {
        for _ in 0..MOST_PUTS {
            let newest = self.newest_of_leader(session).await?;
            let mut objects = newest.handed_on();
            if newest.value.is_some() {
                // Entries that no journal wrote name no objects.
                for entry in self.kept(session).await? {
                    objects = objects.and(entry.handed_on());
                }
                let headers = purge_headers(newest.revision, &objects)?;
                if !self.put_entry(session, headers, Bytes::new()).await? {
                    continue;
                }
            }
            return self.drop_objects(&objects.beyond(0, session)).await;
        }
        Err(unavailable("other writers kept coming first"))
    }
}

fn late() -> Error {
    unavailable("the bucket did not answer in time")
}
