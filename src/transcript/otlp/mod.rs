//! Spans of OpenTelemetry, as JSON, whose attributes tell of calls of models.
//!
//! A file is one document, or one on each line, as the collector's file exporter writes them. The
//! reader collects the spans of calls and the log records that name them, puts them in order of
//! time, and hands each as an exchange to the reader of recorded traffic: a conversation is a
//! session there too.
//!
//! | file | knows |
//! |---|---|
//! | `call` | what a span is |
//! | `messages`, `older`, `vercel` | where messages stand: in the conventions, before them, in that SDK |
//! | `message` | messages as instrumentations write them |
//! | `bodies` | the request and the response that an API would have had |
//! | `reported` | the usage |
//! | `delta` | spans of afterimage's own that hold only what is new |
//! | `twice` | calls that two spans tell |

mod any_value;
mod bodies;
mod call;
mod delta;
mod message;
mod messages;
mod older;
mod reported;
mod span;
mod twice;
mod vercel;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use self::{
    call::Call,
    span::{SpanKey, SpanRecord},
};
use super::{Exchange, interaction::Interaction, sink::Sink, wire::WireReader};
use crate::json::{Object, Value};

/// The session of requests that name no conversation, where a conversation is called by a number.
const UNNAMED: &str = "unnamed";

/// Reads `{"resourceSpans": […]}` and `{"resourceLogs": […]}`, as one document or by line.
#[derive(Default)]
pub(super) struct OtlpReader {
    spans: IndexMap<SpanKey, SpanRecord>,
    /// The spans around spans.
    parents: HashMap<SpanKey, Box<str>>,
    /// Those without ids: nothing else can name them.
    nameless: Vec<SpanRecord>,
    /// How many spans, or records, were read.
    read: u64,
}

impl OtlpReader {
    /// A document, or a line, with spans or log records.
    pub(super) fn is_one(value: &Value) -> bool {
        let has = |key: &str| value.get(key).and_then(Value::as_array).is_some();
        has("resourceSpans") || has("resourceLogs")
    }

    fn add(&mut self, key: Option<SpanKey>, record: SpanRecord, sink: &mut Sink) {
        let Some(key) = key else { return self.nameless.push(record) };
        match self.spans.get_mut(&key) {
            None => drop(self.spans.insert(key, record)),
            Some(known) => {
                let line = record.line;
                let is_again = known.has_span && record.has_span;
                if known.merge(record) {
                    let text =
                        format!("the span {} came twice, and not the same; the last holds", key.1);
                    sink.note(line, &text);
                } else if is_again {
                    sink.skip("repeated span");
                }
            }
        }
    }

    fn spans(&mut self, list: Vec<Value>, line: u64, is_own: bool, sink: &mut Sink) {
        for span in list {
            self.read += 1;
            let Value::Object(span) = span else {
                sink.unknown(line, "a span that is no object", span);
                continue;
            };
            self.parents.extend(span::parent_of(&span));
            match SpanRecord::of_span(span, line) {
                Some((key, record)) => self.add(key, SpanRecord { is_own, ..record }, sink),
                None => sink.skip("span of no model"),
            }
        }
    }

    fn logs(&mut self, list: Vec<Value>, line: u64, sink: &mut Sink) {
        for log in list {
            self.read += 1;
            let Value::Object(log) = log else {
                sink.unknown(line, "a log record that is no object", log);
                continue;
            };
            match SpanRecord::of_log(log, line) {
                // Nothing says which messages belong together.
                Some((None, record)) if !record.logs.events.is_empty() => {
                    sink.skip("log record without a span");
                }
                Some((key, record)) => self.add(key, record, sink),
                None => sink.skip("log record of no model"),
            }
        }
    }

    /// Gives out what the spans tell, in order of time.
    fn give(&mut self, sink: &mut Sink) {
        self.spans.values_mut().for_each(SpanRecord::settle);
        for _ in 0..twice::merge(&mut self.spans, &self.parents) {
            sink.skip("call told by two spans");
        }
        let mut records: Vec<SpanRecord> =
            std::mem::take(&mut self.spans).into_values().chain(self.nameless.drain(..)).collect();
        // One without a time stands where the file has it.
        let mut last = 0;
        for record in &mut records {
            record.settle();
            last = record.start.unwrap_or(last);
            record.order = last;
        }
        records.sort_by_key(|record| record.order);
        let is_number = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit());
        let ids = records.iter().filter_map(SpanRecord::conversation);
        let mut ids: HashSet<String> = ids.map(str::to_owned).collect();
        let unnamed = ids.iter().any(|id| is_number(id)).then(|| {
            let mut name = UNNAMED.to_owned();
            let mut numbers = 2_u64..;
            while ids.contains(&name)
                && let Some(number) = numbers.next()
            {
                name = format!("{UNNAMED}/{number}");
            }
            name
        });
        ids.extend(unnamed.clone());
        let unnamed = unnamed.as_deref();
        let mut conversations: IndexMap<Option<String>, WireReader> = IndexMap::new();
        let mut unlisted: Vec<(Option<String>, u64, Box<Exchange>)> = Vec::new();
        let mut others: HashMap<String, u64> = HashMap::new();
        let (mut number, mut dropped) = (0, 0);
        // What is known of the last request of each conversation.
        let mut requests: HashMap<Option<String>, Object> = HashMap::new();
        for mut record in records {
            let (line, id) = (record.line, record.conversation().map(str::to_owned));
            dropped += u64::from(record.dropped > 0);
            let mut notes = Vec::new();
            if record.is_own {
                record.complete(requests.entry(id.clone()).or_default(), &mut notes);
            }
            let call = record.into_call(&mut notes);
            notes.iter().for_each(|note| sink.note(line, note));
            match call {
                Call::Other(kind) => *others.entry(kind).or_default() += 1,
                Call::UsageOnly(call) => {
                    sink.skip("call without messages");
                    number += 1;
                    unlisted.push((id, number, call));
                }
                Call::WithMessages(interaction) => {
                    number += 1;
                    let name = id.as_deref().or(unnamed);
                    let reader = conversations
                        .entry(id.clone())
                        .or_insert_with(|| WireReader::of_conversation(name));
                    reader.take(Interaction { line: number, ..*interaction }, sink);
                }
            }
        }
        for (kind, count) in others {
            (0..count).for_each(|_| sink.skip(&kind));
        }
        if dropped > 0 {
            let text = format!("{dropped} spans lost attributes before they were written");
            sink.note(1, &text);
        }
        for reader in conversations.into_values() {
            reader.give_beside(|name| ids.contains(name), sink);
        }
        for (id, line, call) in unlisted {
            sink.session(id.as_deref().or(unnamed).unwrap_or("1"));
            sink.exchange(Exchange { line: Some(line), ..*call });
        }
    }
}

impl super::Decoder for OtlpReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Value::Object(mut document) = value else {
            return sink.unknown(line, "no object with `resourceSpans` or `resourceLogs`", value);
        };
        let mut is_known = false;
        for (resources, scopes, items) in
            [("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")]
        {
            let Some(Value::Array(list)) = document.shift_remove(resources) else { continue };
            is_known = true;
            for (scope, list) in each_scope(list, scopes, items) {
                if items == "spans" {
                    let is_own = scope.as_deref() == Some("afterimage");
                    self.spans(list, line, is_own, sink);
                } else {
                    self.logs(list, line, sink);
                }
            }
        }
        if is_known {
            return;
        }
        let others = ["resourceMetrics", "resourceProfiles"];
        if let Some(kind) = others.into_iter().find(|key| document.contains_key(key)) {
            sink.skip(kind);
        } else {
            let reason = "no object with `resourceSpans` or `resourceLogs`";
            sink.unknown(line, reason, document.into());
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.give(sink);
    }
}

/// The spans, or records, of each scope, with its name.
fn each_scope(
    resources: Vec<Value>,
    scopes: &'static str,
    items: &'static str,
) -> impl Iterator<Item = (Option<String>, Vec<Value>)> {
    let take = |value: Value, key: &str| match value {
        Value::Object(mut object) => match object.shift_remove(key) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let of_scope = move |scope: Value| {
        let name = scope.get("scope").and_then(|scope| scope.str_at("name")).map(str::to_owned);
        (name, take(scope, items))
    };
    resources.into_iter().flat_map(move |resource| take(resource, scopes)).map(of_scope)
}

#[cfg(test)]
mod tests;
