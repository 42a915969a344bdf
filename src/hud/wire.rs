//! Owners and spans as JSON, there and back.

use std::sync::Arc;

use super::{Owner, Span};
use crate::{
    Error, Result,
    id::{FacetId, FrameSeq},
    json::{self, Fields, Object, ObjectExt, Value},
    text::TextRange,
};

crate::json::deserialize_through_json!(Owner);
crate::json::serde_through_json!(Span);

impl Owner {
    /// Every name that [`Owner::Framing`] has: what is framing of contexts, then that of exports.
    pub const FRAMING: [&str; 12] = [
        "system_prompt",
        "separator",
        "form",
        "member",
        "call_id",
        "tool_name",
        "placeholder",
        "orphan",
        "foreign_call",
        "opening",
        "label",
        Self::UNRECORDED,
    ];

    /// The name of framing for what was loaded from JSON that says nothing of owners.
    pub const UNRECORDED: &str = "unrecorded";

    /// The owner as JSON: `{"frame", "chunk", "facetIds"}`, `{"tail": {"context", "index",
    /// "facetIds"}}`, `{"block", "chunk", "facetIds"}`, `{"recorded", "frame"}`, or `{"framing"}`.
    /// O(size).
    pub fn to_json(&self) -> Value {
        json::to_value(self).unwrap_or_default()
    }

    /// The owner with this JSON. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is none.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "an owner")?;
        if let Some(facet) = fields.string("recorded")? {
            let frame = fields.u64("frame")?.map(FrameSeq::new);
            return Ok(Owner::Recorded { frame, facet: facet.into() });
        }
        if let Some(frame) = fields.u64("frame")? {
            let (chunk, facet_ids) = (index(&mut fields, "chunk")?, facet_ids(&mut fields)?);
            return Ok(Owner::Chunk { frame: FrameSeq::new(frame), chunk, facet_ids });
        }
        if let Some(block) = fields.string("block")? {
            let (chunk, facet_ids) = (index(&mut fields, "chunk")?, facet_ids(&mut fields)?);
            return Ok(Owner::Block { block: Arc::from(block), chunk, facet_ids });
        }
        if let Some(name) = fields.string("framing")? {
            let known = Self::FRAMING.into_iter().find(|known| *known == name);
            let name = known.ok_or_else(|| {
                let known = Self::FRAMING.join(", ");
                Error::expected(format_args!("one of {known}"), name).under("framing")
            })?;
            return Ok(Owner::Framing(name));
        }
        let tail = fields.nested("tail", |tail| {
            let mut fields = Fields::of(tail, "a place in the tail")?;
            let context = Fields::required(fields.string("context")?, "context", "a string")?;
            let (index, facet_ids) = (index(&mut fields, "index")?, facet_ids(&mut fields)?);
            Ok::<_, Error>(Owner::Tail { context, index, facet_ids })
        })?;
        tail.ok_or_else(|| {
            Error::expected(
                "an owner (`frame`, `tail`, `block`, `recorded` or `framing`)",
                "another object",
            )
        })
    }
}

fn index(fields: &mut Fields, key: &str) -> Result<usize> {
    let index = Fields::required(fields.u64(key)?, key, "an integer from zero")?;
    usize::try_from(index).map_err(|_| Error::expected("an index", index).under(key))
}

fn facet_ids(fields: &mut Fields) -> Result<Vec<FacetId>> {
    Ok(fields.strings("facetIds")?.unwrap_or_default().into_iter().map(FacetId::from).collect())
}

impl Span {
    /// The span as JSON: `start` and `end` in UTF-8 bytes, and `owner`. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("start", self.range.start() as u64);
        object.put("end", self.range.end() as u64);
        object.put("owner", self.owner.to_json());
        object.into()
    }

    /// The span with this JSON. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is none.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a span")?;
        let (start, end) = (index(&mut fields, "start")?, index(&mut fields, "end")?);
        let range = TextRange::new(start, end)
            .ok_or_else(|| Error::expected(format_args!("{start} at least"), end).under("end"))?;
        let owner = fields.nested("owner", Owner::from_json)?;
        Ok(Self { range, owner: Fields::required(owner, "owner", "an owner (an object)")? })
    }
}
