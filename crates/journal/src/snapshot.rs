//! The bytes of a snapshot: one sealed line that describes it, and the packed state.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Replay, SessionName, SkipReason, SnapshotInfo,
    request::{Mark, Position},
    sealed,
};
use crate::{
    Error, ErrorKind, Millis, Result,
    json::{Value, from_value},
    log,
};

const KIND: &str = "afterimage journal snapshot";
const VERSION: u64 = 1;

/// The largest state that is stored, as JSON: 1 GiB.
const MAX_STATE: u64 = 1 << 30;
/// The most bytes of a snapshot: a state that is not packed, and the line before it.
pub(super) const MOST_BYTES: u64 = MAX_STATE + (1 << 20);

/// A state, and the event that it was taken after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<S> {
    /// The state.
    pub state: S,
    /// The newest event that is in it.
    pub after_sequence: u64,
    /// When it was taken, by its writer's clock.
    pub created_at: Millis,
}

/// What the first line of a snapshot says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    #[serde(with = "sealed::shared")]
    pub(super) session: Arc<str>,
    pub(super) schema: u32,
    /// The event that the state was taken after.
    #[serde(flatten)]
    pub(super) mark: Mark,
    /// The log that the event is in.
    #[serde(with = "sealed::shared")]
    pub(super) life: Arc<str>,
    pub(super) created_at: Millis,
}

/// The first line of a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    kind: Cow<'static, str>,
    version: u64,
    #[serde(flatten)]
    header: Header,
    state_bytes: u64,
    state_crc: String,
}

/// The bytes of a snapshot.
///
/// # Errors
/// [`ErrorKind::Limit`] for a state over 1 GiB.
pub(super) fn seal(header: Header, state: &[u8]) -> Result<Vec<u8>> {
    if state.len() as u64 > MAX_STATE {
        let message = format!("a state of {} bytes; the limit is {MAX_STATE} (1 GiB)", state.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let packed = log::pack(state);
    let mut bytes = sealed::seal(&Line {
        kind: KIND.into(),
        version: VERSION,
        header,
        state_bytes: state.len() as u64,
        state_crc: format!("{:08x}", crc32fast::hash(&packed)),
    })?;
    bytes.push(b'\n');
    bytes.extend(packed);
    Ok(bytes)
}

/// The first line, checked.
pub(super) fn header(bytes: &[u8]) -> Result<Header, SkipReason> {
    Ok(parts(bytes)?.header)
}

/// What a snapshot says of itself, and what is wrong with the bytes of its state.
#[allow(clippy::type_complexity, reason = "three answers to one look")]
pub(super) fn look(
    bytes: &[u8],
) -> Result<(Header, SnapshotInfo, Result<(), SkipReason>), SkipReason> {
    let parts = parts(bytes)?;
    let (info, state) = (parts.info(bytes), parts.check_state());
    Ok((parts.header, info, state))
}

impl Header {
    /// Whether a snapshot is newer than another one of the same log and form, which is then not to
    /// take its place.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        self.life == other.life
            && self.schema == other.schema
            && self.mark.position > other.mark.position
    }
}

/// What the snapshot that stands says of itself, where one that is to be written is older. `last` is
/// the position of the log's newest event: a log that lost its end has not what came after it.
pub(super) fn standing(stands: &[u8], new: &[u8], last: Position) -> Option<SnapshotInfo> {
    let (theirs, ours) = (parts(stands).ok()?, parts(new).ok()?);
    let is_newer = theirs.header.is_newer_than(&ours.header);
    let is_sound = theirs.header.mark.position <= last && theirs.check_state().is_ok();
    (is_newer && is_sound).then(|| theirs.info(stands))
}

/// A snapshot taken apart. Its first line is checked, its state is not.
struct Parts<'b> {
    header: Header,
    packed: &'b [u8],
    state_bytes: u64,
    crc: String,
}

impl Parts<'_> {
    fn check_state(&self) -> Result<(), SkipReason> {
        let (expected, found) = (&self.crc, format!("{:08x}", crc32fast::hash(self.packed)));
        if found == *expected {
            return Ok(());
        }
        let reason = format!("its state fails its check: expected {expected}, found {found}");
        Err(SkipReason::Damaged(reason))
    }

    fn info(&self, bytes: &[u8]) -> SnapshotInfo {
        SnapshotInfo {
            after_sequence: self.header.mark.sequence,
            created_at: self.header.created_at,
            schema: self.header.schema,
            stored_bytes: bytes.len() as u64,
        }
    }
}

fn parts(bytes: &[u8]) -> Result<Parts<'_>, SkipReason> {
    let damaged = |reason: &str| SkipReason::Damaged(reason.to_owned());
    let end = memchr::memchr(b'\n', bytes).ok_or_else(|| damaged("its first line is cut"))?;
    let (line, rest) = bytes.split_at(end);
    let packed = rest.get(1..).unwrap_or_default();
    let value = sealed::open(line).map_err(|error| damaged(error.message()))?;
    if value.str_at("kind") != Some(KIND) {
        return Err(damaged("it is no snapshot of a journal"));
    }
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => return Err(SkipReason::Format(version)),
        None => return Err(damaged("it names no version")),
    }
    let line: Line = from_value(value).map_err(|error| damaged(error.message()))?;
    let Line { header, state_bytes, state_crc: crc, .. } = line;
    Ok(Parts { header, packed, state_bytes, crc })
}

/// What a snapshot says of itself, and what is against it where something is.
pub(super) struct Opened<S> {
    pub(super) header: Header,
    pub(super) info: SnapshotInfo,
    pub(super) state: Result<S, SkipReason>,
}

/// Reads a snapshot. `keep` looks at the header first: what it has against it spares the reading of
/// the state.
pub(super) fn open<S: Replay>(
    bytes: &[u8],
    session: &SessionName,
    keep: impl FnOnce(&Header) -> Result<(), SkipReason>,
) -> Result<Opened<S>, SkipReason> {
    let parts = parts(bytes)?;
    let info = parts.info(bytes);
    let state =
        check::<S>(&parts, session).and_then(|()| keep(&parts.header)).and_then(|()| state(&parts));
    Ok(Opened { header: parts.header, info, state })
}

fn check<S: Replay>(parts: &Parts<'_>, session: &SessionName) -> Result<(), SkipReason> {
    let header = &parts.header;
    if *header.session != *session.as_str() {
        let reason = format!("it belongs to the session {:?}", header.session);
        return Err(SkipReason::Damaged(reason));
    }
    if !S::reads(header.schema) {
        return Err(SkipReason::Schema { expected: S::SCHEMA, found: header.schema });
    }
    Ok(())
}

fn state<S: Replay>(parts: &Parts<'_>) -> Result<S, SkipReason> {
    parts.check_state()?;
    let state = log::unpack(parts.packed, parts.state_bytes.min(MAX_STATE))
        .map_err(|error| SkipReason::Damaged(error.message().to_owned()))?;
    serde_json::from_slice(&state).map_err(|error| SkipReason::State(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventId;

    fn sealed() -> Vec<u8> {
        let mark = Mark { sequence: 7, position: 70, id: EventId::new("id \"7\"").unwrap() };
        let header = Header {
            session: "süd".into(),
            schema: 3,
            mark,
            life: "l".into(),
            created_at: Millis::new(-5),
        };
        let bytes = seal(header.clone(), b"{\"tasks\":[1,2,3,1,2,3,1,2,3,1,2,3,1,2,3]}").unwrap();
        assert_eq!(super::header(&bytes).unwrap(), header);
        bytes
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let bytes = sealed();
        let whole = parts(&bytes).map(|parts| crc32fast::hash(parts.packed)).unwrap();
        let is_sound = |bytes: &[u8]| {
            parts(bytes).is_ok_and(|parts| {
                format!("{:08x}", crc32fast::hash(parts.packed)) == parts.crc
                    && crc32fast::hash(parts.packed) == whole
            })
        };
        assert!(is_sound(&bytes));
        for end in 0..bytes.len() {
            assert!(!is_sound(&bytes[..end]), "{end}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(!is_sound(&changed), "byte {at}, bit {bit}");
            }
        }
    }
}
