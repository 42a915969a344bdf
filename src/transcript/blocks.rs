//! The blocks of the Messages API: text, thinking, calls, results, images, and what is opaque.

use super::parts;
use crate::{id::FacetType, json::{Object, Value}, veil::Facet};

/// A content block as a facet; `text_type` is the type of the message's text.
pub(super) fn block(block: Object, text_type: &FacetType) -> Facet {
    let _ = text_type;
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block").to_owned();
    parts::opaque(&kind, block.into())
}
