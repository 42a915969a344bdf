//! Events as messages; `docs/FORMAT.md` describes subjects and headers.

use async_nats::{HeaderMap, header::HeaderValue};
use std::{str::FromStr, sync::Arc};

use crate::{
    Error, ErrorKind, Event, Result, SessionName,
    json::{self, Value},
    name::token,
    record,
    request::{Append, Mark, Position, PositionedEvent},
};

/// The position of the newest event, and the subjects among which it is looked for.
const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_WHERE: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
const SESSION: &str = "Afterimage-Session";

/// The subject of the events of one kind in a session.
pub(super) fn subject(stream: &str, session: &SessionName, kind: &str) -> String {
    format!("{stream}.{}.{}", session.token(), token(kind))
}

/// All events of a session.
pub(super) fn filter(stream: &str, session: &SessionName) -> String {
    format!("{stream}.{}.*", session.token())
}

/// The token of the session in a subject of the stream.
pub(super) fn session_token<'s>(stream: &str, subject: &'s str) -> Option<&'s str> {
    let rest = subject.strip_prefix(stream)?.strip_prefix('.')?;
    rest.split_once('.').map(|(token, _)| token)
}

/// How many positions a message has: the most events that it can hold.
const PLACES: u64 = 1 << 10;

/// The message of a position; 0 for none.
pub(super) fn message_of(position: Position) -> u64 {
    position / PLACES
}

/// The first position of a message.
pub(super) fn first_position(message: u64) -> Position {
    message.saturating_mul(PLACES)
}

/// The position of the last event in a message: the last that it has, so that the next one is in the
/// next message.
pub(super) fn last_position(message: u64) -> Position {
    first_position(message).saturating_add(PLACES - 1)
}

/// The headers of a message, with the condition that it comes after the newest one.
pub(super) fn headers(append: &Append, session: &SessionName, filter: &str) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_LAST, message_of(append.after).to_string());
    headers.insert(EXPECTED_WHERE, filter);
    if session.is_hashed() {
        headers.insert(SESSION, quoted(session.as_str())?);
    }
    Ok(headers)
}

/// The events of a message, one after the other.
pub(super) fn payload(append: &Append) -> Vec<u8> {
    let sizes = append.events.iter().map(|writing| record::most_bytes(&writing.event));
    let mut bytes = Vec::with_capacity(sizes.sum());
    for (sequence, writing) in append.numbered() {
        record::put(&mut bytes, sequence, &writing.event, writing.recorded_at);
    }
    bytes
}

/// Any text as a header: JSON, which has neither line ends nor blanks at its ends.
fn quoted(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(&Value::from(text).to_string())
        .map_err(|error| Error::expected("the text of a header", error))
}

fn unquoted(text: &str) -> Result<String> {
    match json::read(text.as_bytes())? {
        Value::String(text) => Ok(text),
        other => Err(Error::expected("a string", other.kind())),
    }
}

fn required<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str> {
    let value = headers.get(name);
    value.map(HeaderValue::as_str).ok_or_else(|| Error::expected(name, "a message without it"))
}

/// The events of a message, with their positions.
pub(super) fn placed(message: u64, payload: &[u8]) -> Result<Vec<PositionedEvent>> {
    let events = events(payload).map_err(|error| foreign(message, &error))?;
    let first = last_position(message).saturating_sub(events.len() as u64 - 1);
    Ok((first..).zip(events).map(|(position, event)| PositionedEvent { position, event }).collect())
}

/// At least one event, with sequences that rise by one.
fn events(payload: &[u8]) -> Result<Vec<Event>> {
    let (first, mut rest) = record::take(payload)?;
    let mut next = first.sequence;
    let mut events = vec![first];
    while !rest.is_empty() {
        let (event, after) = record::take(rest)?;
        next = next.saturating_add(1);
        if event.sequence != next || events.len() as u64 >= PLACES {
            let (expected, found) = (format!("event {next}"), format!("event {}", event.sequence));
            return Err(Error::expected(expected, found));
        }
        events.push(event);
        rest = after;
    }
    Ok(events)
}

/// The last event's place in a message.
pub(super) fn mark(message: u64, payload: &[u8]) -> Result<Option<Mark>> {
    Ok(placed(message, payload)?.last().map(PositionedEvent::mark))
}

/// The error of a message that no journal wrote.
fn foreign(position: u64, error: &Error) -> Error {
    let message = format!("message {position} of the stream is no event: {}", error.message());
    Error::new(ErrorKind::Damaged, message)
}

/// The session of a message whose subject does not spell it out.
pub(super) fn session(position: u64, headers: &HeaderMap) -> Result<SessionName> {
    let name = required(headers, SESSION).and_then(unquoted);
    name.and_then(SessionName::new).map_err(|error| foreign(position, &error))
}

/// What a server answers to a message that is to be stored.
pub(super) enum Ack {
    Stored(u64),
    /// The newest event is another one.
    Refused,
    /// The server could not, or cannot say.
    Unsure(Error),
    Rejected(Error),
}

/// The error codes of a wrong expectation: with the actual sequence, and without it where another
/// event is just being stored.
const WRONG_LAST_SEQUENCE: [u64; 2] = [10_071, 10_164];

/// The error code of a store that failed; where a limit of the stream is reached it stored nothing,
/// and says so in these words.
const STORE_FAILED: u64 = 10_077;
const IS_FULL: &str = "maximum ";

pub(super) fn ack(payload: &[u8]) -> Ack {
    let value = match json::read(payload) {
        Ok(value) => value,
        Err(error) => return Ack::Unsure(error.into()),
    };
    if let Some(error) = value.get("error") {
        let code = error.get("code").and_then(Value::as_u64).unwrap_or(0);
        let err_code = error.get("err_code").and_then(Value::as_u64).unwrap_or(0);
        let description = error.str_at("description").unwrap_or("no reason");
        let message = format!("the server refused the event: {description} ({err_code})");
        return match code {
            _ if WRONG_LAST_SEQUENCE.contains(&err_code) => Ack::Refused,
            _ if err_code == STORE_FAILED && description.starts_with(IS_FULL) => {
                Ack::Rejected(Error::new(ErrorKind::Io, message))
            }
            500.. => Ack::Unsure(Error::new(ErrorKind::Io, message)),
            _ => Ack::Rejected(Error::new(ErrorKind::Io, message)),
        };
    }
    match value.get("seq").and_then(Value::as_u64) {
        Some(position) => Ack::Stored(position),
        None => Ack::Unsure(Error::expected("a sequence", "an answer without one")),
    }
}

/// The life of a stream.
pub(super) fn life(created: impl std::fmt::Display) -> Arc<str> {
    created.to_string().into()
}
