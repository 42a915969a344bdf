//! The records of a recording, as bytes and back.

use std::time::{SystemTime, UNIX_EPOCH};

use afterimage_json as json;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Error, ErrorKind, Result};

/// The bytes before the content of each record: its kind, and its exchange.
const HEAD: usize = 9;
/// A head of an exchange that is longer is none.
const MOST_HEAD: usize = 1 << 20;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Start = 1,
    Request = 2,
    Response = 3,
    Part = 4,
    End = 5,
    Run = 6,
    RequestPart = 7,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Start,
            Self::Request,
            Self::Response,
            Self::Part,
            Self::End,
            Self::Run,
            Self::RequestPart,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// How an exchange begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When the request came, in milliseconds since 1970.
    #[serde(rename = "time")]
    pub time_ms: u64,
    /// The method of HTTP.
    pub method: String,
    /// The path without what may be secret: see [`allowed_path`](crate::allowed_path).
    pub path: String,
    /// The provider, by the name that the recorder has for it.
    pub provider: String,
    /// The headers of the allow-list: see [`allowed_headers`](crate::allowed_headers).
    pub headers: Vec<(String, String)>,
    /// Whether it is a message of a WebSocket and its answer, and not a request of HTTP. Path and
    /// headers are those of the request that opened the WebSocket.
    #[serde(rename = "websocket", default, skip_serializing_if = "is_false")]
    pub is_websocket: bool,
    /// Whether its bodies were written without their secrets: unpacked, and with placeholders.
    #[serde(rename = "redacted", default, skip_serializing_if = "is_false")]
    pub is_redacted: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Start {
    /// A start at this moment, without path and headers.
    pub fn now(method: &str, provider: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            method: method.to_owned(),
            provider: provider.to_owned(),
            ..Self::default()
        }
    }

    /// Whether a model is asked: by a body that is posted, or by a message of a WebSocket. Others ask
    /// for lists of models and the like.
    pub fn is_for_model(&self) -> bool {
        self.method == "POST" || self.is_websocket
    }

    /// How the body of the request was packed to be sent: its `content-encoding`.
    pub fn content_encoding(&self) -> Option<String> {
        content_encoding(&self.headers)
    }
}

/// The body of a request, as far as it is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestBody<'b> {
    /// Its first bytes, or all of them.
    pub bytes: &'b [u8],
    /// How many bytes it had.
    pub total: u64,
    /// Whether it came to its end.
    pub ended: bool,
}

impl<'b> RequestBody<'b> {
    /// A body that came to its end and is stored in full.
    pub const fn whole(bytes: &'b [u8]) -> Self {
        Self { bytes, total: bytes.len() as u64, ended: true }
    }
}

/// What comes before the body of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseHead {
    /// The status of HTTP.
    pub status: u16,
    /// How many milliseconds after the start it came.
    #[serde(rename = "ms")]
    pub after_ms: u64,
    /// The headers of the allow-list.
    pub headers: Vec<(String, String)>,
}

impl ResponseHead {
    /// How the body of the response was packed to be sent: its `content-encoding`.
    pub fn content_encoding(&self) -> Option<String> {
        content_encoding(&self.headers)
    }
}

/// How an exchange ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How many milliseconds after the start.
    #[serde(rename = "ms")]
    pub after_ms: u64,
    /// How many bytes the body of the response had.
    pub bytes: u64,
    /// How many of them are stored.
    pub stored: u64,
    /// What broke the exchange off; `None` where the response came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// Several headers of one name are one list.
fn content_encoding(headers: &[(String, String)]) -> Option<String> {
    let of = headers.iter().filter(|(name, _)| name == "content-encoding");
    let codings: Vec<&str> = of.map(|(_, value)| value.as_str()).collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// The payload of a record.
pub(crate) fn to_bytes(kind: Kind, exchange: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.push(kind as u8);
    bytes.extend(exchange.to_le_bytes());
    bytes.extend(content);
    bytes
}

/// The payload of a record that holds JSON.
pub(crate) fn json_bytes<T: Serialize>(kind: Kind, exchange: u64, content: &T) -> Result<Vec<u8>> {
    Ok(to_bytes(kind, exchange, json::to_value(content)?.to_string().as_bytes()))
}

/// What a record that holds JSON says.
fn of_json<T: DeserializeOwned>(content: &[u8]) -> Option<T> {
    let content = Some(content).filter(|content| content.len() <= MOST_HEAD)?;
    json::from_value(json::read(content).ok()?).ok()
}

/// A record that was read, its bodies still packed.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry<'b> {
    Start(Start),
    Request(&'b [u8]),
    RequestPart(&'b [u8]),
    Response(ResponseHead),
    Part(&'b [u8]),
    End(End),
    /// A recorder begins to write: what had no end before has none.
    Run,
}

/// The exchange that a record is of, and what it holds.
///
/// # Errors
/// [`ErrorKind::Damaged`] where it is no such record.
pub(crate) fn of_bytes(bytes: &[u8]) -> Result<(u64, Entry<'_>)> {
    let damaged = |what: &str| Error::new(ErrorKind::Damaged, format!("expected {what}"));
    let head = bytes.split_first().and_then(|(kind, rest)| {
        let (exchange, content) = rest.split_first_chunk::<8>()?;
        Some((*kind, u64::from_le_bytes(*exchange), content))
    });
    let (kind, exchange, content) =
        head.ok_or_else(|| damaged("the kind and the exchange of a record"))?;
    let kind = Kind::of(kind)
        .ok_or_else(|| damaged(&format!("a record of a known kind, found {kind}")))?;
    let entry = match kind {
        Kind::Request => Some(Entry::Request(content)),
        Kind::RequestPart => Some(Entry::RequestPart(content)),
        Kind::Part => Some(Entry::Part(content)),
        Kind::Run => Some(Entry::Run),
        Kind::Start => of_json(content).map(Entry::Start),
        Kind::Response => of_json(content).map(Entry::Response),
        Kind::End => of_json(content).map(Entry::End),
    };
    let entry = entry.ok_or_else(|| damaged(&format!("the members of a record {kind:?}")))?;
    Ok((exchange, entry))
}
