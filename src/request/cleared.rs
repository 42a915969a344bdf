//! What a provider took out of a request before the model read it.

use super::Recording;
use crate::{
    Result,
    id::{FacetId, FrameSeq},
    json::{Path, PathElement, Value},
    transcript::ClearedPart,
};

/// A block of a message that was sent, and that the model did not read: its provider cleared it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearedBlock {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in the message.
    pub block: usize,
    /// The frame of the message, where the session has one.
    pub frame: Option<FrameSeq>,
    /// The facet that the block is in this frame.
    pub facet: Option<FacetId>,
}

impl ClearedBlock {
    /// Whether the value at this path of the request is in the block, and no word of its form.
    pub fn holds(&self, path: &Path) -> bool {
        let index =
            |at: usize, index: usize| path.elements().get(at) == Some(&PathElement::Index(index));
        let is_word = matches!(path.elements().last(), Some(PathElement::Key(key)) if matches!(key.as_str(), "type" | "tool_use_id" | "id" | "name"));
        index(1, self.message) && index(3, self.block) && !is_word
    }
}

impl Recording {
    /// What the provider cleared of the request with this number, by what its answer says: of tool
    /// uses and of reasoning the oldest, as the provider documents it, but for tools that the request
    /// excludes. Empty where it cleared nothing; else it costs what [`Recording::request`] does, and
    /// parses the body.
    ///
    /// # Errors
    /// As [`Recording::request`] and [`Request::value`](crate::request::Request::value).
    pub fn cleared(&self, number: usize) -> Result<Vec<ClearedBlock>> {
        let exchange = self.exchange(number);
        let Some(exchange) = exchange.filter(|of| !of.edits.is_empty()) else {
            return Ok(Vec::new());
        };
        let request = self.request(number)?;
        let body = request.value()?;
        let messages = body.get("messages").and_then(Value::as_array).unwrap_or_default();
        let history = self.history(&exchange.session);
        let block = |part: ClearedPart| {
            let frame = request.frame_of(part.message);
            let of = frame.and_then(|frame| history?.get(frame));
            let facet = of.and_then(|of| {
                let at = part.facet_in(of.added())?;
                of.added().nth(at).map(|facet| facet.id.clone())
            });
            ClearedBlock { message: part.message, block: part.block, frame, facet }
        };
        let cleared = ClearedPart::of(&exchange.edits, body.get("context_management"), messages);
        Ok(cleared.into_iter().map(block).collect())
    }
}
