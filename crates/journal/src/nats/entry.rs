//! The entries of the bucket of snapshots; `docs/FORMAT.md` describes them.

use std::{collections::BTreeMap, str::FromStr};

use async_nats::{HeaderMap, header::HeaderValue, jetstream::message::StreamMessage};
use base64::{Engine, engine::general_purpose::URL_SAFE};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, SessionName, json, sealed};

/// What a session has in the bucket: a snapshot, a pointer to one, or the mark of those that were
/// removed.
#[derive(Default)]
pub(super) struct Entry {
    /// Of the bucket; 0 where nothing ever was.
    pub(super) revision: u64,
    pub(super) value: Option<Bytes>,
    /// The objects of entries before this one.
    pub(super) objects: Objects,
}

impl Entry {
    pub(super) fn of(message: StreamMessage) -> Self {
        let objects = Objects::read(&message.headers);
        let value = is_value(&message.headers).then_some(message.payload);
        Self { revision: message.sequence, value, objects }
    }

    pub(super) fn pointer(&self) -> Option<Pointer> {
        self.value.as_deref().and_then(Pointer::read)
    }

    /// The objects of this entry and of those before it, as the next one is to hand them on.
    pub(super) fn handed_on(&self) -> Objects {
        self.objects.older(self.pointer().map(|pointer| pointer.object))
    }
}

/// The line of a [`Pointer`].
#[derive(Serialize, Deserialize)]
struct Line {
    kind: String,
    version: u64,
    object: String,
    bytes: u64,
}

/// What names the large object of a snapshot in its place in the bucket.
pub(super) struct Pointer {
    pub(super) object: String,
    pub(super) bytes: u64,
    /// What the snapshot says of itself: its first line, with the line feed. Empty where the pointer
    /// has none.
    pub(super) first_line: Vec<u8>,
}

const VERSION: u64 = 1;
const POINTER: &str = "afterimage journal pointer";

/// No pointer is longer, in bytes, without the line that follows it.
const MOST_POINTER: usize = 1_024;

impl Pointer {
    /// The pointer to an object that holds a snapshot.
    pub(super) fn to(object: String, snapshot: &[u8]) -> Self {
        let first_line = first_line(snapshot).to_vec();
        Self { object, bytes: snapshot.len() as u64, first_line }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let (object, bytes) = (self.object.clone(), self.bytes);
        let line = Line { kind: POINTER.to_owned(), version: VERSION, object, bytes };
        let mut bytes = sealed::seal(&line)?;
        bytes.push(b'\n');
        bytes.extend(&self.first_line);
        Ok(bytes)
    }

    /// The pointer that the bytes are; `None` where they are a snapshot, whole or damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let line = first_line(bytes);
        let rest = bytes.get(line.len()..).unwrap_or_default();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = Some(line).filter(|line| line.len() <= MOST_POINTER)?;
        let Line { object, bytes, .. } = sealed::open_as(line, POINTER, VERSION)?;
        Some(Self { object, bytes, first_line: rest.to_vec() })
    }
}

/// The first line, with its line feed; all bytes where they have none.
pub(super) fn first_line(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
    bytes.get(..end).unwrap_or(bytes)
}

/// The name of a new object, which no other object ever had. So whoever drops an object drops none
/// that somebody else has just written, not even where its bytes are the same.
///
/// `inbox` is one that the client has not given to anybody else.
pub(super) fn object_name(session: &SessionName, inbox: &str) -> String {
    let unique = inbox.rsplit('.').next().unwrap_or(inbox);
    format!("{}{unique}", object_prefix(session))
}

/// How the names of a session's objects begin.
fn object_prefix(session: &SessionName) -> String {
    format!("{}.", session.token())
}

/// The subject of what an object store says of an object.
pub(super) fn object_subject(bucket: &str, object: &str) -> String {
    format!("{}{}", object_subjects(bucket), URL_SAFE.encode(object))
}

/// How the subjects of what an object store says begin.
pub(super) fn object_subjects(bucket: &str) -> String {
    format!("$O.{bucket}.M.")
}

/// The object of a session whose name the end of a subject has; `None` for that of another session.
pub(super) fn object_in(subject_end: &str, session: &SessionName) -> Option<String> {
    let name = String::from_utf8(URL_SAFE.decode(subject_end).ok()?).ok()?;
    name.starts_with(&object_prefix(session)).then_some(name)
}

/// The large objects of a session that older entries of the bucket named and that may still be there:
/// how many entries ago, by name. Each entry says it in a header, so that whoever writes the next one
/// knows which objects nobody needs any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Objects(BTreeMap<String, u64>);

const OBJECTS: &str = "Afterimage-Objects";
const KV_OPERATION: &str = "KV-Operation";
const ROLLUP: &str = "Nats-Rollup";
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

impl Objects {
    fn read(headers: &HeaderMap) -> Self {
        let value = headers.get(OBJECTS).and_then(|text| json::read(text.as_str().as_bytes()).ok());
        let ages = value.as_ref().and_then(json::Value::as_object).into_iter().flatten();
        // An age that is no number hides none of the others.
        Self(ages.filter_map(|(name, age)| Some((name.clone(), age.as_u64()?))).collect())
    }

    /// What the next entry is to say, after one that named this object.
    fn older(&self, named: Option<String>) -> Self {
        let aged = self.0.iter().map(|(name, age)| (name.clone(), age.saturating_add(1)));
        Self(aged.chain(named.map(|name| (name, 1))).collect())
    }

    /// These and others.
    pub(super) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Forgets those of more than so many entries ago.
    pub(super) fn forget(&mut self, after: u64) {
        self.0.retain(|_, age| *age <= after);
    }

    /// Those of more than so many entries ago, none of which is another session's.
    pub(super) fn beyond(&self, age: u64, session: &SessionName) -> Vec<String> {
        let prefix = object_prefix(session);
        let beyond =
            self.0.iter().filter(|(name, found)| **found > age && name.starts_with(&prefix));
        beyond.map(|(name, _)| name.clone()).collect()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn header(&self) -> Result<HeaderValue> {
        let text = json::to_value(&self.0)?.to_string();
        HeaderValue::from_str(&text).map_err(|error| Error::expected("the text of a header", error))
    }
}

/// The headers of an entry that comes after the one with this revision.
pub(super) fn entry_headers(revision: u64, objects: &Objects) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED, revision.to_string());
    if !objects.is_empty() {
        headers.insert(OBJECTS, objects.header()?);
    }
    Ok(headers)
}

/// The headers of an entry that takes away those before it.
pub(super) fn purge_headers(revision: u64, objects: &Objects) -> Result<HeaderMap> {
    let mut headers = entry_headers(revision, objects)?;
    headers.insert(KV_OPERATION, "PURGE");
    headers.insert(ROLLUP, "sub");
    Ok(headers)
}

/// Whether an entry is a value, and not the mark of one that was taken away.
fn is_value(headers: &HeaderMap) -> bool {
    // A server that drops a value by itself leaves a mark with its reason.
    headers.get(KV_OPERATION).is_none_or(|operation| operation.as_str() == "PUT")
        && headers.get("Nats-Marker-Reason").is_none()
}

/// How many bytes headers take in a message.
pub(super) fn header_bytes(headers: &HeaderMap) -> usize {
    let lines = headers.iter().flat_map(|(name, values)| {
        let name: &str = name.as_ref();
        values.iter().map(move |value| name.len() + value.as_str().len() + ": \r\n".len())
    });
    "NATS/1.0\r\n\r\n".len() + lines.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_read_with_and_without_the_line_of_its_snapshot() {
        let pointer = Pointer::to("a.1".to_owned(), b"{\"of\":\"the snapshot\"}\nand its state");
        let bytes = pointer.to_bytes().unwrap();
        let read = Pointer::read(&bytes).unwrap();
        assert_eq!((read.object.as_str(), read.bytes), ("a.1", 35));
        assert_eq!(read.first_line, b"{\"of\":\"the snapshot\"}\n");
        let bare = first_line(&bytes).strip_suffix(b"\n").unwrap();
        let read = Pointer::read(bare).unwrap();
        assert_eq!((read.object.as_str(), &*read.first_line), ("a.1", &b""[..]));
        for end in 0..bare.len() {
            assert!(Pointer::read(&bare[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn headers_take_the_bytes_that_are_counted_for_them() {
        let objects = Objects::default().older(Some("a.1".to_owned()));
        let headers = entry_headers(12, &objects).unwrap();
        assert_eq!(Objects::read(&headers), objects);
        let text = "NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 12\r\nAfterimage-Objects: {\"a.1\":1}\r\n\r\n";
        assert_eq!(header_bytes(&headers), text.len());
    }

    #[test]
    fn objects_are_needed_for_so_many_entries_and_then_forgotten() {
        let mut objects =
            Objects::default().older(Some("s.a".to_owned())).older(Some("s.b".to_owned()));
        objects = objects.older(None);
        let session = SessionName::new("s").unwrap();
        assert_eq!(objects.beyond(0, &session), ["s.a", "s.b"]);
        assert_eq!(objects.beyond(2, &session), ["s.a"]);
        assert!(objects.beyond(0, &SessionName::new("t").unwrap()).is_empty());
        objects.forget(2);
        assert_eq!(objects.beyond(0, &session), ["s.b"]);
    }
}
