//! What a facet is for a provider, beyond its text.

use super::{CallOutcome, Media, wire};
use crate::{
    Error, Result,
    id::FacetType,
    json::{Fields, Object, ObjectExt, Value, serde_through_json},
};

serde_through_json!(FacetPart);

/// What a facet is for a provider, beyond its text: the typed content, and what the provider needs
/// back. The wire member `part` of a facet; a facet without one is what its type says.
///
/// ```
/// use afterimage::{id::FacetType, veil::{Facet, FacetPart, PartContent, PartSource}};
///
/// let mut thought = Facet::new("thought-1", FacetType::THOUGHT, "The door is open.");
/// let source = PartSource { signature: Some("EuYB".into()), ..PartSource::default() };
/// thought.part = Some(Box::new(FacetPart { source, ..FacetPart::new(PartContent::Reasoning) }));
/// assert_eq!(
///     thought.to_json().to_string(),
///     r#"{"id":"thought-1","type":"thought","content":"The door is open.","part":{"kind":"reasoning","signature":"EuYB"}}"#
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FacetPart {
    /// What it is.
    pub content: PartContent,
    /// What its source says of it, and what the provider needs back.
    pub source: PartSource,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

/// The typed content of a facet. Its text is the facet's content.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PartContent {
    /// Text.
    #[default]
    Text,
    /// A tool call.
    Call {
        /// The provider's id of the call; ids repeat in real transcripts, and some have none.
        id: Option<Box<str>>,
        /// The tool's name.
        name: Box<str>,
        /// The arguments, parsed; `None` where they are text that is not JSON, or there are none.
        parameters: Option<Value>,
        /// The arguments as the model wrote them, where `parameters` does not write back the same.
        arguments: Option<Box<str>>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call that it answers, as its source has it.
        answers: Option<Box<str>>,
        /// The name of the tool.
        tool: Option<Box<str>>,
        /// What became of the call, as far as the source states it.
        outcome: CallOutcome,
    },
    /// The model's reasoning. Its signature, or its encrypted form, is in the [`PartSource`].
    Reasoning,
    /// An image.
    Image(Media),
    /// A recording of sound.
    Audio(Media),
    /// A file that the provider reads: a PDF, a text.
    Document(Media),
    /// A summary that a provider made of what came before.
    Compaction,
    /// The definition of a tool.
    ToolDefinition {
        /// The tool's name.
        name: Box<str>,
    },
    /// A block that has no text: encrypted, binary, or a provider's own.
    Opaque,
}

/// What the source of a part says of it besides its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartSource {
    /// The type of the block or item, as the provider names it, where the kind does not say it.
    pub block: Option<Box<str>>,
    /// The member of the message that held it, where that is not `content`.
    pub field: Option<Box<str>>,
    /// How the content was written, where that is not the usual form.
    pub form: Option<ContentForm>,
    /// The member that named the call, where that is not the usual one.
    pub id_from: Option<Box<str>>,
    /// The provider's id of the block or item.
    pub item: Option<Box<str>>,
    /// The provider's signature, with which it takes the part back.
    pub signature: Option<Box<str>>,
    /// What the provider alone can read, and takes back.
    pub encrypted: Option<Box<str>>,
    /// The mark up to which the provider caches the request.
    pub cache: Option<CacheMark>,
    /// What else the source says, by its own names: the members of an object, or another value.
    pub native: Option<Value>,
}

/// A mark up to which a provider caches a request.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheMark {
    /// The kind, `ephemeral`. Wire name `type`.
    pub kind: Box<str>,
    /// How long the cache lives, for example `5m`.
    pub ttl: Option<Box<str>>,
    /// What else the provider says of it, by its own names.
    pub extra: Object,
}

/// How a source wrote a content that is no plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentForm {
    /// A list of blocks.
    Parts,
    /// A single block.
    Part,
    /// A JSON value; the text is that value, written.
    Json,
    /// `null`.
    Null,
    /// The member is not there.
    Absent,
    /// The empty text.
    Empty,
    /// A bare string in a list of blocks.
    String,
    /// An object whose member `content` is the text.
    Content,
}

impl ContentForm {
    const ALL: [Self; 8] = [
        Self::Parts,
        Self::Part,
        Self::Json,
        Self::Null,
        Self::Absent,
        Self::Empty,
        Self::String,
        Self::Content,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parts => "parts",
            Self::Part => "part",
            Self::Json => "json",
            Self::Null => "null",
            Self::Absent => "absent",
            Self::Empty => "empty",
            Self::String => "string",
            Self::Content => "content",
        }
    }

    /// The form with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == name)
    }
}

impl FacetPart {
    /// A part with this content alone: the source says nothing else.
    pub fn new(content: PartContent) -> Self {
        Self { content, ..Self::default() }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("kind", self.content.kind());
        self.content.write(&mut object);
        self.source.write(&mut object);
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. Without `kind` it is text. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for an unknown kind or form, a missing name, or
    /// a member of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a part")?;
        let content = PartContent::read(&mut fields)?;
        let source = PartSource::read(&mut fields)?;
        Ok(Self { content, source, extra: fields.rest() })
    }
}

impl PartContent {
    /// What a facet of this type is where nothing else is said.
    pub(crate) fn of_type(facet_type: &FacetType) -> Self {
        match facet_type {
            of if *of == FacetType::THOUGHT => Self::Reasoning,
            of if *of == FacetType::IMAGE => Self::Image(Media::default()),
            of if *of == FacetType::OPAQUE => Self::Opaque,
            _ => Self::Text,
        }
    }

    /// The name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Call { .. } => "call",
            Self::Result { .. } => "result",
            Self::Reasoning => "reasoning",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::Document(_) => "document",
            Self::Compaction => "compaction",
            Self::ToolDefinition { .. } => "toolDefinition",
            Self::Opaque => "opaque",
        }
    }

    fn write(&self, object: &mut Object) {
        match self {
            Self::Call { id, name, parameters, arguments } => {
                object.put_some("id", id.as_deref());
                object.put("name", &**name);
                object.put_some("parameters", parameters.clone());
                object.put_some("arguments", arguments.as_deref());
            }
            Self::Result { answers, tool, outcome } => {
                object.put_some("answers", answers.as_deref());
                object.put_some("tool", tool.as_deref());
                object.put_some("outcome", outcome.stated());
            }
            Self::Image(media) | Self::Audio(media) | Self::Document(media) => {
                object.put_some("mediaType", media.media_type.as_deref());
                object.put_some("bytes", media.bytes);
                object.put_some("tokens", media.tokens);
            }
            Self::ToolDefinition { name } => object.put("name", &**name),
            Self::Text | Self::Reasoning | Self::Compaction | Self::Opaque => {}
        }
    }

    fn read(fields: &mut Fields) -> Result<Self> {
        let kind = fields.string("kind")?;
        let content = match kind.as_deref().unwrap_or("text") {
            "text" => Self::Text,
            "call" => Self::Call {
                id: wire::text(fields, "id")?,
                name: Fields::required(wire::text(fields, "name")?, "name", "a string")?,
                parameters: fields.take("parameters"),
                arguments: wire::text(fields, "arguments")?,
            },
            "result" => Self::Result {
                answers: wire::text(fields, "answers")?,
                tool: wire::text(fields, "tool")?,
                outcome: wire::outcome(fields, "outcome")?,
            },
            "reasoning" => Self::Reasoning,
            "image" => Self::Image(Media::read(fields)?),
            "audio" => Self::Audio(Media::read(fields)?),
            "document" => Self::Document(Media::read(fields)?),
            "compaction" => Self::Compaction,
            "toolDefinition" => Self::ToolDefinition {
                name: Fields::required(wire::text(fields, "name")?, "name", "a string")?,
            },
            "opaque" => Self::Opaque,
            other => {
                let expected = "a kind of part, for example `call`";
                return Err(Error::expected(expected, format_args!("{other:?}")).under("kind"));
            }
        };
        Ok(content)
    }
}

impl Media {
    fn read(fields: &mut Fields) -> Result<Self> {
        Ok(Self {
            media_type: wire::text(fields, "mediaType")?,
            bytes: fields.u64("bytes")?,
            tokens: fields.u64("tokens")?,
        })
    }
}

impl CacheMark {
    /// The mark that a provider's `cache_control` is.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let kind = value.str_at("type")?.into();
        let ttl = value.str_at("ttl").map(Box::from);
        let mut extra = value.as_object()?.clone();
        extra.shift_remove("type");
        ttl.iter().for_each(|_| drop(extra.shift_remove("ttl")));
        Some(Self { kind, ttl, extra })
    }

    /// The mark as the provider writes it. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("type", &*self.kind);
        object.put_some("ttl", self.ttl.as_deref());
        object.put_unknown(&self.extra);
        object.into()
    }
}

/// The names that a provider gives what has a typed place here.
const BLOCK: &str = "type";
const ITEM: &str = "id";
const SIGNATURE: &str = "signature";
const ENCRYPTED: &str = "encrypted_content";
const CACHE: &str = "cache_control";

/// Whether a member only says where a cache may keep what stands before it: `cache_control` of
/// Anthropic, `prompt_cache_breakpoint` of OpenAI.
pub(crate) fn is_cache_mark(name: &str) -> bool {
    matches!(name, CACHE | "prompt_cache_breakpoint")
}

impl PartSource {
    /// What a provider's block says: what has a typed place goes there, the rest is `native`.
    /// O(members).
    pub fn of_block(block: Value) -> Self {
        let mut source = Self::default();
        let Value::Object(mut block) = block else {
            return Self { native: Some(block), ..source };
        };
        let mut take = |key: &str| match block.get(key) {
            Some(Value::String(text)) => {
                let text = text.as_str().into();
                block.shift_remove(key);
                Some(text)
            }
            _ => None,
        };
        source.block = take(BLOCK);
        source.item = take(ITEM);
        source.signature = take(SIGNATURE);
        source.encrypted = take(ENCRYPTED);
        source.cache = block.get(CACHE).and_then(CacheMark::of);
        if source.cache.is_some() {
            block.shift_remove(CACHE);
        }
        source.native = (!block.is_empty()).then_some(block.into());
        source
    }

    /// As [`PartSource::of_block`], for a block to which a reader added the members `field`, `form`
    /// and `idFrom`.
    pub(crate) fn of_origin(origin: Value) -> Self {
        let Value::Object(mut origin) = origin else { return Self::of_block(origin) };
        let mut take = |key: &str| {
            let text: Box<str> = origin.get(key)?.as_str()?.into();
            origin.shift_remove(key);
            Some(text)
        };
        let (field, id_from) = (take("field"), take("idFrom"));
        let form = origin.str_at("form").and_then(ContentForm::from_name);
        if form.is_some() {
            origin.shift_remove("form");
        }
        Self { field, form, id_from, ..Self::of_block(origin.into()) }
    }

    /// The block with its members by the provider's names; `None` where there is nothing of it.
    /// The reverse of [`PartSource::of_block`], but for the order of members. O(size).
    pub fn to_block(&self) -> Option<Value> {
        let rest = match &self.native {
            Some(Value::Object(rest)) => Some(rest),
            None => None,
            Some(other) => return Some(other.clone()),
        };
        let mut block = Object::new();
        block.put_some(BLOCK, self.block.as_deref());
        block.put_some(ITEM, self.item.as_deref());
        block.extend(rest.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        block.put_some(SIGNATURE, self.signature.as_deref());
        block.put_some(ENCRYPTED, self.encrypted.as_deref());
        block.put_some(CACHE, self.cache.as_ref().map(CacheMark::to_json));
        (!block.is_empty()).then_some(block.into())
    }

    /// A member of the block that has no typed place.
    pub fn native(&self, key: &str) -> Option<&Value> {
        self.native.as_ref()?.get(key)
    }

    /// Whether the source says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn write(&self, object: &mut Object) {
        object.put_some("block", self.block.as_deref());
        object.put_some("field", self.field.as_deref());
        object.put_some("form", self.form.map(ContentForm::as_str));
        object.put_some("idFrom", self.id_from.as_deref());
        object.put_some("item", self.item.as_deref());
        object.put_some("signature", self.signature.as_deref());
        object.put_some("encrypted", self.encrypted.as_deref());
        object.put_some("cache", self.cache.as_ref().map(CacheMark::to_json));
        object.put_some("native", self.native.clone());
    }

    fn read(fields: &mut Fields) -> Result<Self> {
        let cache = fields.nested("cache", |value| {
            let found = value.kind();
            CacheMark::of(&value).ok_or_else(|| Error::expected("a cache mark with a type", found))
        })?;
        Ok(Self {
            block: wire::text(fields, "block")?,
            field: wire::text(fields, "field")?,
            form: wire::form(fields, "form")?,
            id_from: wire::text(fields, "idFrom")?,
            item: wire::text(fields, "item")?,
            signature: wire::text(fields, "signature")?,
            encrypted: wire::text(fields, "encrypted")?,
            cache,
            native: fields.take("native"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn value(text: &str) -> Value {
        json::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            r#"{"kind":"text"}"#,
            r#"{"kind":"call","id":"c","name":"look","parameters":{"door":7},"arguments":"{ }"}"#,
            r#"{"kind":"result","answers":"c","tool":"look","outcome":"denied","form":"null"}"#,
            r#"{"kind":"reasoning","item":"rs_1","signature":"Eu==","encrypted":"gA"}"#,
            r#"{"kind":"image","mediaType":"image/png","bytes":3,"tokens":85,"native":{"a":1}}"#,
            r#"{"kind":"audio"}"#,
            r#"{"kind":"document","cache":{"type":"ephemeral","ttl":"1h"}}"#,
            r#"{"kind":"compaction","block":"compaction"}"#,
            r#"{"kind":"toolDefinition","name":"look"}"#,
            r#"{"kind":"opaque","field":"f","idFrom":"id","native":7,"new":null}"#,
        ] {
            assert_eq!(FacetPart::from_json(value(text)).unwrap().to_json().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_part_is_an_error_that_names_the_member() {
        for (text, pointer) in [
            (r#"{"kind":"novel"}"#, "/kind"),
            (r#"{"kind":"call"}"#, "/name"),
            (r#"{"form":"novel"}"#, "/form"),
            (r#"{"kind":"result","outcome":"novel"}"#, "/outcome"),
            (r#"{"cache":{"ttl":"1h"}}"#, "/cache"),
            (r#"{"signature":7}"#, "/signature"),
        ] {
            let error = FacetPart::from_json(value(text)).unwrap_err();
            assert!(error.to_string().contains(pointer.trim_start_matches('/')), "{error}");
        }
    }

    #[test]
    fn a_block_is_taken_apart_and_put_together() {
        for text in [
            r#"{"type":"text","citations":[1],"cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"reasoning","id":"rs","status":null,"encrypted_content":"gA"}"#,
            r#"{"id":7,"signature":"s"}"#,
            r#"{"type":null,"cache_control":{"type":"ephemeral","new":1}}"#,
            "3",
            r#""text""#,
        ] {
            assert_eq!(
                PartSource::of_block(value(text)).to_block().unwrap(),
                value(text),
                "{text}"
            );
        }
        assert!(PartSource::of_block(value("{}")).is_empty());
    }
}
