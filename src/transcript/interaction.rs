//! A request and its response as recorders write them down: in lists of interactions, in cassettes,
//! in HAR archives. All become one [`Interaction`].

use std::sync::Arc;

use super::{
    Api, api,
    body::{self, Payload},
    sse,
    times::moment,
};
use crate::json::{Object, ObjectExt, Value};

/// What a recorder wrote of one request and its response.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says a thing of its own")]
pub(super) struct Interaction {
    /// Where the request went.
    pub(super) uri: String,
    pub(super) request: Payload,
    pub(super) response: Payload,
    /// The status of the response; `None` where none came or none was recorded.
    pub(super) status: Option<u64>,
    /// When the request went out, as the recorder wrote it.
    pub(super) started: Option<String>,
    /// How long it took, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// Why there is no response, where the recorder says so.
    pub(super) failure: Option<String>,
    /// Where it stands in its source, from one.
    pub(super) line: u64,
    /// The usage, where the recorder keeps it beside the response.
    pub(super) usage: Option<Value>,
    /// What broke the response off, where the recorder knows: then it is not whole, whatever it says.
    pub(super) cut: Option<String>,
    /// Whether the response came to its end, and `cut` says why not all of it is stored.
    pub(super) is_cut_in_store: bool,
    /// Whether a recorder of ours took it down as it passed: then it is an exchange, whatever its
    /// bodies are, and however like the one before it.
    pub(super) is_recorded: bool,
    /// Whether it was posted: then it asked for something, also where its body is not kept.
    pub(super) is_posted: bool,
    /// Whether its bodies are JSON that a client wrote down, and not the bytes of the wire.
    pub(super) is_logged: bool,
    /// Why the messages of the request are not known, where the recorder left them out.
    pub(super) left_out: Option<&'static str>,
}

impl Interaction {
    /// Whether a value has the shape of an entry of a list of interactions.
    pub(super) fn is_one(value: &Value) -> bool {
        let request = value.get("request");
        request.is_some_and(|request| uri(value, request).is_some())
    }

    /// Whether a value has the shape of an entry of a HAR archive.
    pub(super) fn is_har_entry(value: &Value) -> bool {
        value.get("request").is_some_and(|request| request.str_at("url").is_some())
            && value.get("response").is_some()
    }

    /// An entry of a list of interactions, or of a cassette; the entry itself where it is none.
    pub(super) fn of_entry(value: Value, line: u64) -> Result<Self, Value> {
        let Some(found) = value.get("request").and_then(|request| uri(&value, request)) else {
            return Err(value);
        };
        let uri = found.to_owned();
        let Value::Object(mut entry) = value else { return Err(value) };
        let request = entry.shift_remove("request").unwrap_or_default();
        let response = entry.shift_remove("response").unwrap_or_default();
        let is_http = is_message(&request) && !is_body(&request);
        let is_posted = is_post(request.str_at("method"));
        let status = entry.get("status").or_else(|| response.get("status")).and_then(code);
        let started = entry
            .get("recorded_at")
            .or_else(|| entry.get("started"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        let (request, response) = if is_http {
            (body::of_message(request), body::of_message(response))
        } else {
            (Payload::of_value(request), Payload::of_value(response))
        };
        Ok(Self { uri, request, response, status, started, line, is_posted, ..Self::default() })
    }

    /// An entry of a HAR archive; the entry itself where it is none.
    pub(super) fn of_har(value: Value, line: u64) -> Result<Self, Value> {
        if !Self::is_har_entry(&value) {
            return Err(value);
        }
        let Value::Object(mut entry) = value else { return Err(value) };
        let mut take = |key: &str| match entry.shift_remove(key) {
            Some(Value::Object(object)) => object,
            _ => Object::new(),
        };
        let (mut request, mut response) = (take("request"), take("response"));
        let uri = request.str_at("url").unwrap_or_default().to_owned();
        let is_posted = is_post(request.str_at("method"));
        // 0 stands for a response that never came.
        let status = response.get("status").and_then(Value::as_u64).filter(|status| *status > 0);
        let failure = response.str_at("_error").filter(|text| !text.is_empty()).map(str::to_owned);
        let started = entry.str_at("startedDateTime").map(str::to_owned);
        let duration_ms = entry.get("time").and_then(|time| match time {
            Value::Number(number) => milliseconds(number.as_f64()),
            _ => None,
        });
        let (request, response) = (
            body::of_har(request.shift_remove("postData")),
            body::of_har(response.shift_remove("content")),
        );
        Ok(Self {
            uri,
            request,
            response,
            status,
            started,
            duration_ms,
            failure,
            line,
            is_posted,
            ..Self::default()
        })
    }
}

fn is_post(method: Option<&str>) -> bool {
    method.is_some_and(|method| method.eq_ignore_ascii_case("post"))
}

/// Where an entry's request went: beside the request, or in it.
fn uri<'v>(entry: &'v Value, request: &'v Value) -> Option<&'v str> {
    entry.str_at("uri").or_else(|| request.str_at("uri")).or_else(|| request.str_at("url"))
}

/// A status as a number, or as `{"code": …}`.
fn code(status: &Value) -> Option<u64> {
    status.as_u64().or_else(|| status.get("code")?.as_u64())
}

/// Whether a value is a message of HTTP, with its body in a member.
fn is_message(value: &Value) -> bool {
    ["body", "parsed_body", "headers", "method"].iter().any(|key| value.get(key).is_some())
}

/// Whether a value is the body of a request itself.
fn is_body(value: &Value) -> bool {
    value.get("messages").is_some() || value.get("input").is_some()
}

impl Interaction {
    /// Whether the request may have gone to a model: a body of JSON, to where some are, or one that
    /// was posted there and not kept.
    pub(super) fn may_be_of_a_model(&self) -> bool {
        let paths = ["/chat/completions", "/messages", "/responses"];
        match self.request {
            Payload::Absent => self.is_posted && Api::of_uri(&self.uri).is_some(),
            _ if api::is_stored_completion(&self.uri) => false,
            _ => {
                paths.iter().any(|path| self.uri.contains(path))
                    || Api::of_uri(&self.uri).is_some()
                    || api::may_be_ollamas(&self.uri)
            }
        }
    }

    /// The API of models that the request went to and that is not read.
    pub(super) fn unread_api(&self) -> Option<String> {
        let was_sent = self.is_posted || !matches!(self.request, Payload::Absent);
        was_sent.then(|| api::unread_api(&self.uri, self.request.value().as_ref())).flatten()
    }

    /// The same with the answer that a later call fetched: of two streams the second goes on.
    pub(super) fn with_fetched(self, fetched: Self) -> Self {
        let ended = fetched.started.as_deref().and_then(moment).zip(fetched.duration_ms);
        let duration_ms = ended.zip(self.started.as_deref().and_then(moment)).and_then(
            |((asked, took), began)| u64::try_from(asked - began).ok()?.checked_add(took),
        );
        let response = match (&self.response, fetched.response) {
            (Payload::Text(begun), Payload::Text(rest))
                if sse::has_data(begun) && sse::has_data(&rest) =>
            {
                Payload::Text([begun.as_str(), "\n\n", rest.as_str()].concat().into())
            }
            (_, response) => response,
        };
        let Self { status, failure, cut, .. } = fetched;
        Self { response, status, duration_ms, failure, cut, ..self }
    }

    /// The host that the request was sent to, where an address is known.
    pub(super) fn host(&self) -> Option<Arc<str>> {
        let (_, rest) = self.uri.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        // The colons of an IPv6 address stand in brackets.
        let port = host.rfind(':').filter(|at| !host.get(*at..).unwrap_or_default().contains(']'));
        let host = host.get(..port.unwrap_or(host.len())).filter(|host| !host.is_empty())?;
        Some(host.to_ascii_lowercase().into())
    }

    /// What is known of it as JSON, for reports; headers are not kept.
    pub(super) fn into_json(self) -> Value {
        let mut object = Object::new();
        object.put("uri", self.uri);
        object.put_some("request", self.request.into_value());
        object.put_some("status", self.status);
        object.put_some("response", self.response.into_value());
        object.into()
    }
}

/// A length of time of a recorder, which is negative where it is not known.
#[expect(clippy::cast_sign_loss, reason = "it is compared with zero")]
pub(super) fn milliseconds(time: f64) -> Option<u64> {
    (time >= 0.0).then(|| time.round() as u64)
}
