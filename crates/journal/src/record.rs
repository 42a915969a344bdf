//! An event as bytes: a line of JSON, a line feed, and the body. `docs/FORMAT.md` describes it.

use std::io::Write;

use super::{Event, EventId, NewEvent};
use crate::{
    Error, Millis, Result,
    json::{self, Fields, Value},
};

/// Writes an event behind what is there.
pub(super) fn put(out: &mut Vec<u8>, sequence: u64, event: &NewEvent, recorded_at: Millis) {
    let (id, kind) = (Value::from(event.id.as_str()), Value::from(&*event.kind));
    let (at, bytes) = (recorded_at.get(), event.body.len());
    // Writing to bytes in memory cannot fail.
    let _ = writeln!(
        out,
        r#"{{"sequence":{sequence},"id":{id},"kind":{kind},"recordedAt":{at},"bytes":{bytes}}}"#
    );
    out.extend_from_slice(&event.body);
}

/// How many bytes an event takes at most.
#[cfg(feature = "nats")]
pub(super) fn most_bytes(event: &NewEvent) -> usize {
    // A character takes six bytes of JSON at most.
    160 + 6 * (event.id.as_str().len() + event.kind.len()) + event.body.len()
}

/// Reads an event, and gives what comes after it.
pub(super) fn take(bytes: &[u8]) -> Result<(Event, &[u8])> {
    let end = memchr::memchr(b'\n', bytes)
        .ok_or_else(|| Error::expected("an event", "bytes without a line"))?;
    let (line, rest) = bytes.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let mut fields = Fields::of(json::read(line)?, "an event")?;
    let sequence = Fields::required(fields.u64("sequence")?, "sequence", "an integer")?;
    let id = Fields::required(fields.string("id")?, "id", "a string")?;
    let kind = Fields::required(fields.string("kind")?, "kind", "a string")?;
    let recorded_at = fields.i64("recordedAt")?;
    let recorded_at = Fields::required(recorded_at, "recordedAt", "an integer")?;
    let length = Fields::required(fields.u64("bytes")?, "bytes", "an integer")?;
    let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let (body, rest) = split.ok_or_else(|| {
        let (expected, found) = (format!("{length} bytes"), format!("{} bytes", rest.len()));
        Error::expected(expected, found)
    })?;
    let event = Event {
        sequence,
        id: EventId::new(id)?,
        kind: kind.into(),
        recorded_at: Millis::new(recorded_at),
        body: body.to_vec(),
    };
    Ok((event, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_one_after_the_other_are_read_as_they_were_written(
            events in proptest::collection::vec(("\\PC{1,20}", "\\PC{1,9}", any::<Vec<u8>>(), any::<i64>()), 1..6),
        ) {
            let mut bytes = Vec::new();
            for (sequence, (id, kind, body, at)) in (1..).zip(&events) {
                let new = NewEvent::new(EventId::new(id.as_str()).unwrap(), kind.as_str(), body.clone());
                put(&mut bytes, sequence, &new.unwrap(), Millis::new(*at));
            }
            let mut rest = bytes.as_slice();
            for (sequence, (id, kind, body, at)) in (1..).zip(&events) {
                let (event, after) = take(rest).unwrap();
                prop_assert_eq!(event.sequence, sequence);
                prop_assert_eq!((event.id.as_str(), &*event.kind), (id.as_str(), kind.as_str()));
                prop_assert_eq!((&event.body, event.recorded_at.get()), (body, *at));
                rest = after;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn what_is_cut_is_refused(cut in 0_usize..80) {
            let mut bytes = Vec::new();
            let new = NewEvent::new(EventId::new("id").unwrap(), "kind", *b"body").unwrap();
            put(&mut bytes, 1, &new, Millis::new(0));
            prop_assume!(cut < bytes.len());
            prop_assert!(take(&bytes[..cut]).is_err());
        }
    }
}
