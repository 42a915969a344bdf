//! The wire form of snapshots and chunks. Loading checks what can be checked and names what is off.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    FrameSnapshot, Rendering, SnapshotIdentity,
    chunk::{Chunk, Part, Rare, RenderedChunk, Structure},
    frame_snapshot::{Body, OwnBody},
};
use crate::{
    Error, ErrorKind, Result,
    id::{ChunkType, FacetId, Millis, Role},
    json::{Fields, Object, ObjectExt, Value, serde_through_json},
    text::TextRange,
};

serde_through_json!(RenderedChunk, FrameSnapshot);

impl FrameSnapshot {
    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put(
            "chunks",
            self.chunks().map(|chunk| chunk.to_owned().to_json()).collect::<Value>(),
        );
        object.put("totalContent", self.text());
        object.put("totalTokens", self.total_tokens);
        object.put("capturedAt", self.captured_at.get());
        object.put("hasContent", self.has_content());
        object.put_some("exactTokens", self.exact_tokens);
        object.put_some("madeBy", self.identity.as_ref().map(|identity| identity.to_json()));
        if let Some(extra) = &self.extra {
            object.put_unknown(extra);
        }
        Value::Object(object)
    }

    /// Loads the wire form. `type` may also be spelled `chunkType`. What `hasContent` says is
    /// passed over: the text tells it. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Tiling`] where the chunks' contents do not tile `totalContent`,
    /// [`ErrorKind::Sum`] where `totalTokens` is not the chunks' sum, [`ErrorKind::Shape`] where a
    /// member is missing, of the wrong type, or contradicts the others.
    pub fn from_json(value: Value) -> Result<Self> {
        Self::from_json_with_notes(value, &mut Vec::new())
    }

    /// As [`FrameSnapshot::from_json`], and notes what is wrong and does no harm: a `hasContent`
    /// that is not what the text says. O(size).
    ///
    /// ```
    /// use afterimage::{json, snapshot::FrameSnapshot};
    ///
    /// let text = br#"{"chunks":[],"totalContent":"","totalTokens":0,"capturedAt":0,"hasContent":true}"#;
    /// let mut notes = Vec::new();
    /// let snapshot = FrameSnapshot::from_json_with_notes(json::read(text)?, &mut notes)?;
    /// assert!(!snapshot.has_content());
    /// assert_eq!(notes[0].to_string(), "expected false, found true (at /hasContent)");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`FrameSnapshot::from_json`].
    pub fn from_json_with_notes(value: Value, notes: &mut Vec<Error>) -> Result<Self> {
        let mut fields = Fields::of(value, "a frame snapshot")?;
        let array = Fields::required(fields.array("chunks")?, "chunks", "an array")?;
        let text = Fields::required(fields.string("totalContent")?, "totalContent", "a string")?;
        let mut chunks = Vec::with_capacity(array.len());
        let (mut end, mut sum) = (0_usize, 0_u64);
        for (index, value) in array.into_iter().enumerate() {
            let chunk = RenderedChunk::from_json(value)
                .map_err(|error| error.under(index).under("chunks"))?;
            let range = TextRange::at(end, chunk.content.len());
            if text.get(range.start()..range.end()) != Some(chunk.content.as_str()) {
                return Err(gap(&text, end, &chunk.content).at(|place| place.chunk = Some(index)));
            }
            end = range.end();
            sum = sum
                .checked_add(chunk.tokens)
                .ok_or_else(|| Error::new(ErrorKind::Sum, "the chunks' tokens exceed 64 bits"))?;
            chunks.push(chunk.into_stored(range));
        }
        if end < text.len() {
            return Err(gap(&text, end, ""));
        }
        check_structure(&chunks)?;
        let total = Fields::required(fields.u64("totalTokens")?, "totalTokens", "a token count")?;
        let captured_at = Fields::required(
            fields.i64("capturedAt")?,
            "capturedAt",
            "milliseconds since the epoch",
        )?;
        let has_content = fields.take("hasContent");
        let exact_tokens = fields.u64("exactTokens")?;
        let identity = fields.nested("madeBy", SnapshotIdentity::from_json)?.map(Arc::new);
        let snapshot = Self {
            body: Body::Own(OwnBody { text, chunks }),
            total_tokens: total,
            exact_tokens,
            captured_at: Millis::new(captured_at),
            identity,
            extra: Some(fields.rest()).filter(|extra| !extra.is_empty()).map(Box::new),
        };
        snapshot.check()?;
        notes.extend(content_note(has_content.as_ref(), snapshot.has_content()));
        Ok(snapshot)
    }
}

/// What is wrong with a member `hasContent`, if it is there and anything is.
pub(super) fn content_note(found: Option<&Value>, expected: bool) -> Option<Error> {
    let found = found.filter(|found| !found.is_null() && found.as_bool() != Some(expected))?;
    let found = found.as_bool().map_or_else(|| found.kind().to_owned(), |found| found.to_string());
    Some(Error::expected(expected, found).under("hasContent"))
}

/// Says where the chunks leave the text: the byte, what stands there, and what the chunk has.
fn gap(text: &str, at: usize, content: &str) -> Error {
    let rest = text.get(at..).unwrap_or_default();
    let agree: usize = rest
        .chars()
        .zip(content.chars())
        .take_while(|(a, b)| a == b)
        .map(|(c, _)| c.len_utf8())
        .sum();
    let quote = |text: &str| {
        let tail = text.get(agree..).unwrap_or_default();
        if tail.is_empty() {
            "the end".to_owned()
        } else {
            format!("{:?}", tail.chars().take(24).collect::<String>())
        }
    };
    let message = format!(
        "chunks do not tile totalContent: at byte {} expected {}, found {}",
        at + agree,
        quote(rest),
        quote(content)
    );
    Error::new(ErrorKind::Tiling, message)
}

/// Checks that parents stand before their children, so that no chunk is nested in itself, and that
/// no chunk is named as a child twice.
pub(super) fn check_structure(chunks: &[Chunk]) -> Result<()> {
    let mut named = BTreeSet::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let Some(structure) = chunk.rare.as_ref().and_then(|rare| rare.structure.as_ref()) else {
            continue;
        };
        let error = |error: Error| error.under("structure").at(|place| place.chunk = Some(index));
        if let Some(parent) = structure.parent.filter(|parent| *parent >= index) {
            let expected = format_args!("the index of a chunk before chunk {index}");
            return Err(error(Error::expected(expected, parent).under("parent")));
        }
        for (at, child) in structure.children.iter().flatten().copied().enumerate() {
            let wrong = |error_of: Error| error(error_of.under(at).under("children"));
            if child <= index || child >= chunks.len() {
                let expected = format_args!(
                    "the index of a chunk after chunk {index} of the {} chunks",
                    chunks.len()
                );
                return Err(wrong(Error::expected(expected, child)));
            }
            if !named.insert(child) {
                let found = format_args!("chunk {child} again");
                return Err(wrong(Error::expected("a chunk that is named as a child once", found)));
            }
        }
    }
    Ok(())
}

impl RenderedChunk {
    pub(crate) fn into_stored(self, range: TextRange) -> Chunk {
        let Self { content: _, tokens, facet_ids, chunk_type, role, part, .. } = self;
        let Self { part_extra, structure, metadata, extra, .. } = self;
        let unless_empty = |extra: Object| (!extra.is_empty()).then(|| Box::new(extra));
        let rare = Rare {
            structure,
            metadata: metadata.map(Box::new),
            part_extra: unless_empty(part_extra),
            extra: unless_empty(extra),
        };
        let (facets, rare) = (facet_ids.into(), rare.boxed());
        Chunk { range, tokens, facets, chunk_type, role, part, rare }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("content", self.content.as_str());
        object.put("tokens", self.tokens);
        let ids = self.facet_ids.as_ref();
        object.put_some(
            "facetIds",
            ids.map(|ids| ids.iter().map(FacetId::as_str).collect::<Value>()),
        );
        object.put_some("type", self.chunk_type.as_deref());
        object.put_some("role", self.role.map(Role::as_str));
        object.put_some("part", self.part.to_json(&self.part_extra));
        object.put_some("structure", self.structure.as_ref().map(Structure::to_json));
        object.put_some("metadata", self.metadata.clone());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where a member is missing or of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a chunk")?;
        let content = Fields::required(fields.string("content")?, "content", "a string")?;
        let tokens = Fields::required(fields.u64("tokens")?, "tokens", "a token count")?;
        let facet_ids =
            fields.strings("facetIds")?.map(|ids| ids.into_iter().map(FacetId::from).collect());
        let chunk_type = match fields.string("type")? {
            Some(name) => Some(name),
            None => fields.string("chunkType")?,
        };
        let role = fields.string("role")?.map(|name| {
            Role::from_name(&name).ok_or_else(|| {
                Error::expected("user, assistant or system", format_args!("{name:?}")).under("role")
            })
        });
        let (part, part_extra) = fields.nested("part", Part::from_json)?.unwrap_or_default();
        let structure = fields.nested("structure", Structure::from_json)?;
        let metadata = fields.object("metadata")?;
        Ok(Self {
            content,
            tokens,
            facet_ids,
            chunk_type: chunk_type.map(ChunkType::from),
            role: role.transpose()?,
            part,
            part_extra,
            structure,
            metadata,
            extra: fields.rest(),
        })
    }
}

impl Part {
    /// The wire form with the members that are not known here; plain text without any has none.
    fn to_json(&self, extra: &Object) -> Option<Value> {
        let mut object = Object::new();
        object.put("kind", self.kind());
        match self {
            Part::Text if extra.is_empty() => return None,
            Part::Call { id, name } => {
                object.put_some("id", id.as_deref());
                object.put("name", &**name);
            }
            Part::Result { id } => object.put_some("id", id.as_deref()),
            _ => {}
        }
        object.put_unknown(extra);
        Some(Value::Object(object))
    }

    /// The part and the members that are not known here.
    fn from_json(value: Value) -> Result<(Self, Object)> {
        let mut fields = Fields::of(value, "a part")?;
        let kind = Fields::required(fields.string("kind")?, "kind", "a string")?;
        let id =
            |fields: &mut Fields| Ok::<_, Error>(fields.string("id")?.map(String::into_boxed_str));
        let part = match kind.as_str() {
            "text" => Part::Text,
            "call" => {
                let name = Fields::required(fields.string("name")?, "name", "a string")?;
                Part::Call { id: id(&mut fields)?, name: name.into() }
            }
            "result" => Part::Result { id: id(&mut fields)? },
            "reasoning" => Part::Reasoning,
            "image" => Part::Image,
            "opaque" => Part::Opaque,
            "audio" => Part::Audio,
            "document" => Part::Document,
            "compaction" => Part::Compaction,
            "toolDefinition" => Part::ToolDefinition,
            other => {
                let expected = "a kind of part, for example `call`";
                return Err(Error::expected(expected, format_args!("{other:?}")).under("kind"));
            }
        };
        Ok((part, fields.rest()))
    }
}

impl Structure {
    fn to_json(&self) -> Value {
        let index = |index: &usize| {
            if self.spelled { Value::from(index.to_string()) } else { Value::from(*index as u64) }
        };
        let mut object = Object::new();
        object.put("level", u64::from(self.level));
        object.put_some("parent", self.parent.as_ref().map(index));
        let children = self.children.as_ref();
        object.put_some("children", children.map(|all| all.iter().map(index).collect::<Value>()));
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut spelled = false;
        let mut index = |value: &Value| {
            let number = match value {
                Value::String(text) => {
                    spelled = true;
                    // Other spellings of a number would not be written back the same.
                    text.parse::<usize>().ok().filter(|number| number.to_string() == *text)
                }
                other => other.as_u64().and_then(|number| usize::try_from(number).ok()),
            };
            number.ok_or_else(|| Error::expected("a chunk's index", value))
        };
        let mut fields = Fields::of(value, "a structure")?;
        let level = Fields::required(fields.u64("level")?, "level", "a depth")?;
        let level =
            u32::try_from(level).map_err(|_| Error::expected("a depth", level).under("level"))?;
        let parent = fields.nested("parent", |value| index(&value))?;
        let of_list = |(at, value): (usize, &Value)| {
            index(value).map_err(|error| error.under(at).under("children"))
        };
        let children = fields.array("children")?;
        let children =
            children.map(|all| all.iter().enumerate().map(of_list).collect()).transpose()?;
        Ok(Self { level, parent, children, spelled, extra: fields.rest() })
    }
}

impl SnapshotIdentity {
    pub(super) fn to_json(&self) -> Value {
        let mut object = Object::new();
        if let Some(Rendering { viewer, format, renderer }) = &self.rendering {
            object.put("viewer", viewer.as_str());
            object.put("format", format.as_str());
            object.put("renderer", u64::from(*renderer));
        }
        object.put("tokenizer", self.tokenizer.as_str());
        object.put_some("maxChunkBytes", self.max_chunk_bytes.map(|bytes| bytes as u64));
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    pub(super) fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "the maker of a snapshot")?;
        let tokenizer = Fields::required(fields.string("tokenizer")?, "tokenizer", "a string")?;
        let rendering =
            match (fields.string("viewer")?, fields.string("format")?, fields.u64("renderer")?) {
                (None, None, None) => None,
                (viewer, format, renderer) => {
                    let renderer = Fields::required(renderer, "renderer", "a version")?;
                    let renderer = u32::try_from(renderer).map_err(|_| {
                        Error::expected("a version of 32 bits", renderer).under("renderer")
                    })?;
                    let viewer = Fields::required(viewer, "viewer", "a string")?;
                    let format = Fields::required(format, "format", "a string")?;
                    Some(Rendering { viewer, format, renderer })
                }
            };
        let of_bytes = |bytes: u64| {
            usize::try_from(bytes)
                .map_err(|_| Error::expected("a size in memory", bytes).under("maxChunkBytes"))
        };
        let max_chunk_bytes = fields.u64("maxChunkBytes")?.map(of_bytes).transpose()?;
        let extra = fields.rest();
        Ok(Self { rendering, tokenizer, max_chunk_bytes, extra })
    }
}
