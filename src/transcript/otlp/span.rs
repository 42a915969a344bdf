//! Spans and log records, as far as they tell of calls of models.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::any_value::{attributes, nanoseconds, plain};
use crate::json::{Object, ObjectExt, Value};

/// What a file says of one span: the span itself, and the log records that name it.
#[derive(Debug, Default)]
pub(super) struct SpanRecord {
    /// Where it stands in the file: a line, or a place in the document.
    pub(super) line: u64,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    /// Those of the span; from [`Self::settle`] on those of the log records too.
    pub(super) attributes: Object,
    /// Those of the span, in order; from [`Self::settle`] on the log records too.
    pub(super) events: Vec<Event>,
    /// The log records that name the span.
    pub(super) logs: Logs,
    /// What is wrong, where the status says so.
    pub(super) failure: Option<String>,
    /// Whether the span was read, and not only records that name it.
    pub(super) has_span: bool,
    /// How many attributes were dropped before the file was written.
    pub(super) dropped: u64,
    /// The time by which it is put in order.
    pub(super) order: u64,
    /// Whether afterimage wrote it.
    pub(super) is_own: bool,
}

/// What log records say of a span. It is kept apart until all is read, since a span that comes again
/// is compared with the span alone.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// The time of the first one.
    start: Option<u64>,
    attributes: Object,
    pub(super) events: Vec<Event>,
    /// What the records say that have a time: an exporter that tries again writes a record twice.
    seen: HashSet<u64>,
}

/// An event of a span, or a log record.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) attributes: Object,
    pub(super) body: Value,
}

/// The ids of a trace and of a span.
pub(super) type SpanKey = (Box<str>, Box<str>);

/// Whether a name is one of the conventions, or of those that came before them.
fn tells_of_models(key: &str) -> bool {
    ["gen_ai.", "llm.", "openinference.", "ai.operationId"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// The event, or log record, whose attributes are those of the call.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

fn key_of(object: &Object) -> Option<SpanKey> {
    let id = |key: &str| {
        let id = object.str_at(key)?;
        let is_known = id.bytes().any(|byte| byte != b'0');
        is_known.then(|| id.to_ascii_lowercase().into_boxed_str())
    };
    Some((id("traceId")?, id("spanId")?))
}

/// The ids of a span, and that of the one around it.
pub(super) fn parent_of(span: &Object) -> Option<(SpanKey, Box<str>)> {
    let parent = span.str_at("parentSpanId")?;
    let is_known = parent.bytes().any(|byte| byte != b'0');
    is_known.then(|| Some((key_of(span)?, parent.to_ascii_lowercase().into_boxed_str())))?
}

impl SpanRecord {
    /// A span with its ids; `None` where it tells of no model.
    pub(super) fn of_span(mut span: Object, line: u64) -> Option<(Option<SpanKey>, Self)> {
        let key = key_of(&span);
        let mut events: Vec<Event> = match span.shift_remove("events") {
            Some(Value::Array(events)) => events.into_iter().filter_map(Event::of).collect(),
            _ => Vec::new(),
        };
        let mut attributes = attributes(span.shift_remove("attributes"));
        for details in events.extract_if(.., |event| event.name == DETAILS) {
            attributes.put_unknown(&details.attributes);
        }
        let is_of_model = attributes.keys().any(|key| tells_of_models(key))
            || events.iter().any(|event: &Event| tells_of_models(&event.name));
        if !is_of_model {
            return None;
        }
        let status = span.get("status");
        let is_error = status.and_then(|status| status.get("code")).is_some_and(|code| {
            code.as_u64() == Some(2) || code.as_str() == Some("STATUS_CODE_ERROR")
        });
        let message = status.and_then(|status| status.str_at("message"));
        let failure = is_error.then(|| message.unwrap_or("an error").to_owned());
        let record = Self {
            line,
            start: nanoseconds(span.get("startTimeUnixNano")),
            end: nanoseconds(span.get("endTimeUnixNano")),
            attributes,
            events,
            logs: Logs::default(),
            failure,
            has_span: true,
            dropped: span.get("droppedAttributesCount").and_then(Value::as_u64).unwrap_or(0),
            order: 0,
            is_own: false,
        };
        Some((key, record))
    }

    /// A log record with the ids of its span; `None` where it tells of no model.
    pub(super) fn of_log(mut log: Object, line: u64) -> Option<(Option<SpanKey>, Self)> {
        let key = key_of(&log);
        let attributes = attributes(log.shift_remove("attributes"));
        let name = log.get("eventName").or_else(|| attributes.get("event.name"));
        let name = name.and_then(Value::as_str).filter(|name| tells_of_models(name))?.to_owned();
        let time = nanoseconds(log.get("timeUnixNano"))
            .or_else(|| nanoseconds(log.get("observedTimeUnixNano")));
        let body = log.shift_remove("body").map_or(Value::Null, plain);
        let mut logs = Logs { start: time, ..Logs::default() };
        if name == DETAILS {
            logs.attributes = attributes;
        } else {
            if let Some(system) = attributes.get("gen_ai.system") {
                logs.attributes.put("gen_ai.system", system.clone());
            }
            if let Some(time) = time {
                let mut print = DefaultHasher::new();
                let said = (attributes_text(&attributes), body.to_string());
                (time, &name, said).hash(&mut print);
                logs.seen.insert(print.finish());
            }
            logs.events.push(Event { name, attributes, body });
        }
        Some((key, Self { line, logs, ..Self::default() }))
    }

    /// Adds what another record says of the same span. Says whether both are the span itself, and
    /// differ.
    pub(super) fn merge(&mut self, mut other: Self) -> bool {
        let logs = std::mem::take(&mut other.logs);
        self.logs.add(logs);
        if !other.has_span {
            return false;
        }
        let is_again = self.has_span;
        if is_again && self.is_same_span(&other) {
            return false;
        }
        // An exporter that tries again writes a span twice; of others the last one holds.
        let logs = std::mem::take(&mut self.logs);
        *self = Self { logs, ..other };
        is_again
    }

    /// Whether another span says the same. Where it stands is no part of that, nor are log records.
    fn is_same_span(&self, other: &Self) -> bool {
        self.attributes == other.attributes
            && self.events == other.events
            && self.failure == other.failure
            && (self.start, self.end) == (other.start, other.end)
            && (self.dropped, self.is_own) == (other.dropped, other.is_own)
    }

    /// Joins the span with its log records. What the span says itself holds.
    pub(super) fn settle(&mut self) {
        let Logs { start, attributes, events, .. } = std::mem::take(&mut self.logs);
        self.start = self.start.or(start);
        self.attributes.put_unknown(&attributes);
        self.events.extend(events);
    }
}

fn attributes_text(attributes: &Object) -> String {
    Value::Object(attributes.clone()).to_string()
}

impl Logs {
    /// Adds a later record. One that says at the same time what another said is the same one.
    fn add(&mut self, other: Self) {
        self.start = self.start.or(other.start);
        self.attributes.put_unknown(&other.attributes);
        let known = self.seen.len();
        let is_timed = !other.seen.is_empty();
        self.seen.extend(other.seen);
        if !is_timed || self.seen.len() > known {
            self.events.extend(other.events);
        }
    }
}

impl Event {
    fn of(event: Value) -> Option<Self> {
        let Value::Object(mut event) = event else { return None };
        let attributes = attributes(event.shift_remove("attributes"));
        let name = event.str_at("name")?.to_owned();
        Some(Self { name, attributes, body: Value::Null })
    }
}
