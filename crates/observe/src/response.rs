use crate::{
    Error, ErrorKind, Result,
    json::{self, Value},
    tokens::{Chars4, TokenCounter},
};

/// What a tool answered: a payload, and the envelope around it.
///
/// Read as MCP, JSON-RPC or a plain HTTP interface send it, or built from the parts. Where a
/// response is there as text and as JSON (`structuredContent`), the JSON is the payload and the
/// text is what the model is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub(super) payload: Value,
    /// What is around the payload, where the response had an envelope.
    pub(super) envelope: Value,
    pub(super) is_error: bool,
    /// What the model is shown of it, where that was measured.
    shown: Option<Size>,
    /// How many escapes of JSON were mended.
    mended: u64,
}

/// The size of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    /// The estimate of [`Chars4`].
    pub(super) tokens: u64,
}

impl Size {
    pub(super) fn of(text: &str) -> Self {
        // The estimate counts characters, and most payloads have one for each byte.
        let tokens = if text.is_ascii() { text.len().div_ceil(4) } else { Chars4.count(text) };
        Self { bytes: text.len() as u64, tokens: tokens as u64 }
    }
}

impl Response {
    /// The largest response that is read, in bytes: 64 MiB.
    pub const MAX_BYTES: usize = 64 << 20;

    /// A response that is text, or JSON as text. The text of an envelope is opened as by
    /// [`Response::json`].
    ///
    /// A text that begins with `[` or anything else and is not JSON is a text: dashboards begin so
    /// too. One that begins with `{` was meant to be JSON. A bare `null`, string, number or boolean
    /// is kept as the text that it is; whether it is empty, or of another shape than what is known,
    /// is decided by what it says as JSON. Half of a surrogate pair is read as U+FFFD, and counted
    /// by [`Response::mended`]. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Json`] and [`ErrorKind::Utf8`] where the text begins with `{` and is not JSON,
    /// [`ErrorKind::Limit`] where it is longer than 64 MiB or nested too deep.
    pub fn text(text: &str) -> Result<Self> {
        check_len(text.len())?;
        let response = match text.trim_start().bytes().next() {
            Some(b'{') => Self::json_of(json::read_mended(text.as_bytes())?),
            Some(b'[') => match json::read_mended(text.as_bytes()) {
                Ok(read) => Self::json_of(read),
                Err(_) => Self::bare(Value::from(text)),
            },
            _ => Self::bare(Value::from(text)),
        };
        Ok(Self { shown: Some(Size::of(text)), ..response })
    }

    /// A response that is JSON: the payload itself, or an envelope around it.
    ///
    /// Envelopes are a JSON-RPC answer (`jsonrpc` with `result` or `error`), the result of an MCP
    /// call (`content` with typed items, `structuredContent`, `isError`), and an HTTP answer with
    /// `structuredContent` beside the text in `result`. Copies what is inside of an envelope:
    /// O(size).
    pub fn json(value: Value) -> Self {
        match open(&value) {
            Some(opened) => Self { envelope: value, ..opened },
            None => Self::bare(value),
        }
    }

    /// As [`Response::json`], of JSON in which so many escapes were mended.
    fn json_of((value, mended): (Value, u64)) -> Self {
        let response = Self::json(value);
        Self { mended: mended.saturating_add(response.mended), ..response }
    }

    /// A response that is there as text for the model and as JSON for programs. O(text).
    pub fn both(text: &str, structured: Value) -> Self {
        Self { shown: Some(Size::of(text)), ..Self::bare(structured) }
    }

    /// The same response, as one that failed.
    pub fn failed(self) -> Self {
        Self { is_error: true, ..self }
    }

    /// What the tool had to say.
    pub fn payload(&self) -> &Value {
        &self.payload
    }

    /// Whether the envelope says that the call failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// How many escapes of its JSON were half of a surrogate pair, and were read as U+FFFD.
    pub fn mended(&self) -> u64 {
        self.mended
    }

    pub(super) fn bare(payload: Value) -> Self {
        Self { payload, envelope: Value::Null, is_error: false, shown: None, mended: 0 }
    }

    /// The size of what the model is shown: of the text where there is one, else of the JSON.
    pub(super) fn size(&self) -> Size {
        self.shown.unwrap_or_else(|| match &self.payload {
            Value::String(text) => Size::of(text),
            other => Size::of(&other.to_string()),
        })
    }

    /// About how long the payload is as JSON.
    pub(super) fn size_hint(&self) -> usize {
        self.shown.map_or(0, |shown| usize::try_from(shown.bytes).unwrap_or_default())
    }

    /// What `read` makes of the first of these places that it can read, in the payload and then in
    /// the envelope.
    pub(super) fn find<T>(
        &self,
        pointers: &[super::Pointer],
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let of = |value| pointers.iter().find_map(|at| at.of_value(value).and_then(&read));
        of(&self.payload).or_else(|| of(&self.envelope))
    }
}

/// Checks that a value could be read again from this many levels down.
pub(super) fn check_depth(value: &Value, above: usize) -> Result<()> {
    match json::MAX_DEPTH.checked_sub(above) {
        Some(levels) if is_within(value, levels) => Ok(()),
        _ => {
            let message = format!("a payload nested deeper than {} levels", json::MAX_DEPTH);
            Err(Error::new(ErrorKind::Limit, message))
        }
    }
}

fn is_within(value: &Value, levels: usize) -> bool {
    let inside = levels.checked_sub(1);
    let fits = |value: &Value| inside.is_some_and(|levels| is_within(value, levels));
    match value {
        Value::Array(elements) => inside.is_some() && elements.iter().all(fits),
        Value::Object(members) => inside.is_some() && members.values().all(fits),
        _ => true,
    }
}

fn check_len(len: usize) -> Result<()> {
    if len <= Response::MAX_BYTES {
        return Ok(());
    }
    let message =
        format!("a response of {len} bytes; the limit is {} bytes (64 MiB)", Response::MAX_BYTES);
    Err(Error::new(ErrorKind::Limit, message))
}

/// What is inside of an envelope; `None` where the value is none.
fn open(value: &Value) -> Option<Response> {
    let object = value.as_object()?;
    if object.contains_key("jsonrpc") {
        if let Some(error) = object.get("error") {
            return Some(Response::bare(error.clone()).failed());
        }
        let result = object.get("result")?;
        return Some(open(result).unwrap_or_else(|| Response::bare(result.clone())));
    }
    let is_error = object.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let structured = object.get("structuredContent").filter(|content| !content.is_null());
    let text = match (object.get("content"), object.get("result")) {
        (Some(Value::Array(items)), _) if items.iter().all(is_content) => Some(joined(items)),
        (None, Some(Value::String(text))) if structured.is_some() => Some(text.clone()),
        _ => None,
    };
    let opened = match (text, structured) {
        (Some(text), Some(structured)) => Response::both(&text, structured.clone()),
        (None, Some(structured)) => Response::bare(structured.clone()),
        // What is text in a result may be JSON, or another envelope.
        (Some(text), None) => {
            Response::text(&text).unwrap_or_else(|_| Response::bare(Value::from(text)))
        }
        (None, None) => return None,
    };
    Some(if is_error { opened.failed() } else { opened })
}

/// Whether this is an item of a result's content.
fn is_content(item: &Value) -> bool {
    item.str_at("type").is_some()
}

fn joined(items: &[Value]) -> String {
    let texts: Vec<&str> = items.iter().filter_map(|item| item.str_at("text")).collect();
    texts.join("\n")
}
