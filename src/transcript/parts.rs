//! The facets that the parts of a message become, whatever format they come from.
//!
//! What a part's source says beyond its text is kept as the attribute [`ORIGIN`], so that an
//! export can give the part back as it was.

use crate::{
    id::FacetType,
    json::{self, Object, ObjectExt, Value},
    veil::Facet,
};

/// The attribute that keeps what a source says of a part beyond its text.
pub const ORIGIN: &str = "origin";

/// The arguments of a tool call as a source has them.
pub(super) enum Arguments {
    /// Text, usually JSON.
    Text(String),
    /// A value.
    Json(Value),
    /// None were written.
    None,
}

impl From<Option<Value>> for Arguments {
    fn from(value: Option<Value>) -> Self {
        match value {
            None | Some(Value::Null) => Arguments::None,
            Some(Value::String(text)) => Arguments::Text(text),
            Some(value) => Arguments::Json(value),
        }
    }
}

pub(super) fn text(facet_type: FacetType, content: impl Into<String>) -> Facet {
    Facet::new("", facet_type, content)
}

pub(super) fn thought(content: impl Into<String>) -> Facet {
    text(FacetType::THOUGHT, content)
}

/// A tool call. Text that parses to an object or a list is kept in parsed form, and as written
/// only where it would not be written back the same.
pub(super) fn call(id: Option<&str>, name: &str, arguments: Arguments) -> Facet {
    let mut state = Object::new();
    state.put("toolName", name);
    state.put_some("toolCallId", id);
    match arguments {
        Arguments::None => {}
        Arguments::Json(value) => state.put("parameters", value),
        Arguments::Text(written) => match json::read_mended(written.as_bytes()) {
            Ok((value @ (Value::Object(_) | Value::Array(_)), _)) => {
                if value.to_string() != written {
                    state.put("arguments", written);
                }
                state.put("parameters", value);
            }
            _ => state.put("arguments", written),
        },
    }
    Facet { state: Some(state.into()), ..text(FacetType::ACTION, "") }
}

/// The result of a tool call. A failed one says so in its state (`isError`).
pub(super) fn result(
    call_id: Option<&str>,
    name: Option<&str>,
    content: impl Into<String>,
    is_error: bool,
) -> Facet {
    let mut facet = Facet::tool_result("", call_id, name, content);
    if let (true, Some(Value::Object(state))) = (is_error, &mut facet.state) {
        state.put("isError", true);
    }
    facet
}

/// An image. `source` is a URL, a data URL, or base64 data.
pub(super) fn image(media_type: Option<&str>, source: Option<&str>, block: Value) -> Facet {
    let (declared, data) = match source.and_then(data_url) {
        Some((declared, data)) => (Some(declared), Some(data)),
        None => (None, source.filter(|source| !is_url(source))),
    };
    let kind = media_type.or(declared).unwrap_or("image");
    let label = match (data, source) {
        (Some(data), _) => format!("[{}, {} bytes]", kind_label(kind), grouped(base64_len(data))),
        (None, Some(url)) => format!("[image: {url}]"),
        (None, None) => "[image]".to_owned(),
    };
    with_origin(text(FacetType::IMAGE, label), block)
}

/// A block that is kept whole and not interpreted; `what` names its kind.
pub(super) fn opaque(what: &str, block: Value) -> Facet {
    let size = grouped(block.to_string().len());
    with_origin(text(FacetType::OPAQUE, format!("[{what}, {size} bytes]")), block)
}

/// Takes the member `key` where it is a string; anything else stays.
pub(super) fn take_text(object: &mut Object, key: &str) -> Option<String> {
    match object.get_mut(key) {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            object.shift_remove(key);
            Some(text)
        }
        _ => None,
    }
}

/// Keeps `origin` with the facet; an empty object is not worth keeping.
pub(super) fn with_origin(mut facet: Facet, origin: Value) -> Facet {
    if origin.as_object().is_none_or(|object| !object.is_empty()) {
        facet.attributes.put(ORIGIN, origin);
    }
    facet
}

fn kind_label(kind: &str) -> String {
    if kind.starts_with("image") { kind.to_owned() } else { format!("image: {kind}") }
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.len() <= 16 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// The media type and the data of `data:TYPE;base64,DATA`.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((head.split(';').next().unwrap_or_default(), data))
}

/// The number of bytes that this much base64 stands for.
fn base64_len(data: &str) -> usize {
    let data = data.trim_end_matches('=');
    data.len() / 4 * 3 + [0, 0, 1, 2].get(data.len() % 4).copied().unwrap_or(0)
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
