//! The facets that the parts of a message become, whatever format they come from.
//!
//! What a part's source says beyond its text is kept in its [`PartSource`], so that an export can
//! give the part back as it was.

use crate::{
    id::FacetType,
    json::{self, Value},
    text::quote::DOCUMENT_TEXT,
    veil::{CallOutcome, Facet, Media, PartContent, PartSource, base64_len, data_url},
};

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
    let (parameters, arguments) = match arguments {
        Arguments::None => (None, None),
        Arguments::Json(value) => (Some(value), None),
        Arguments::Text(written) => match json::read_mended(written.as_bytes()) {
            Ok((value @ (Value::Object(_) | Value::Array(_)), _)) => {
                let is_other = value.to_string() != written;
                (Some(value), is_other.then_some(written))
            }
            _ => (None, Some(written)),
        },
    };
    text(FacetType::ACTION, "").with_part(PartContent::Call {
        id: id.map(Box::from),
        name: name.into(),
        parameters,
        arguments: arguments.map(String::into_boxed_str),
    })
}

/// The result of a tool call.
pub(super) fn result(
    call_id: Option<&str>,
    name: Option<&str>,
    content: impl Into<String>,
    outcome: CallOutcome,
) -> Facet {
    text(FacetType::RESULT, content).with_part(PartContent::Result {
        answers: call_id.map(Box::from),
        tool: name.map(Box::from),
        outcome,
    })
}

/// An image. `source` is a URL, a data URL, or base64 data.
pub(super) fn image(media_type: Option<&str>, source: Option<&str>, block: Value) -> Facet {
    let (declared, data) = match source.and_then(data_url) {
        Some((declared, data)) => (Some(declared), Some(data)),
        None => (None, source.filter(|source| !is_url(source))),
    };
    let media_type = media_type.or(declared);
    let kind = media_type.unwrap_or("image");
    let known = Media::of_block(&block);
    let media = Media { media_type: known.media_type.or(media_type.map(Box::from)), ..known };
    let label = match (data, source) {
        (Some(data), _) => format!("[{}, {} bytes]", kind_label(kind), grouped(base64_len(data))),
        (None, Some(url)) => format!("[image: {url}]"),
        (None, None) => "[image]".to_owned(),
    };
    with_origin(text(FacetType::IMAGE, label).with_part(PartContent::Image(media)), block)
}

/// A block that is kept whole; `what` names its kind. Of a document that is a text the model reads the
/// text, and so does the frame.
pub(super) fn opaque(what: &str, block: Value) -> Facet {
    let size = grouped(block.to_string().len());
    let content = PartContent::of_block(&FacetType::OPAQUE, &block);
    let mut label = format!("[{what}, {size} bytes]");
    let texts = texts_of(&block);
    if !texts.is_empty() {
        let [begin, end] = DOCUMENT_TEXT;
        label = [&[&*label, begin], &*texts, &[end]].concat().join("\n");
    }
    with_origin(text(FacetType::OPAQUE, label).with_part(content), block)
}

/// What the model reads of a block that is kept whole, where that is text: a document's title, context
/// and text, what a search found, the name of a tool that a search of tools found.
fn texts_of(block: &Value) -> Vec<&str> {
    fn of_blocks(blocks: Option<&Value>) -> Vec<&str> {
        let blocks = blocks.and_then(Value::as_array).into_iter().flatten();
        blocks.filter_map(|block| block.str_at("text")).collect()
    }
    let of = |key: &str| block.str_at(key);
    let source = block.get("source");
    match of("type") {
        Some("document") => {
            let held = source.and_then(|source| source.get("content"));
            let is_text = source.and_then(|source| source.str_at("type")) == Some("text");
            let data = source.filter(|_| is_text).and_then(|source| source.str_at("data"));
            let body: Vec<&str> =
                data.or(held.and_then(Value::as_str)).into_iter().chain(of_blocks(held)).collect();
            let about = of("title").into_iter().chain(of("context"));
            about.chain(body).collect()
        }
        Some("search_result") => {
            let found = of("source").into_iter().chain(of("title"));
            found.chain(of_blocks(block.get("content"))).collect()
        }
        Some("tool_reference") => of("tool_name").into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The types of parts that are kept whole on purpose: encrypted, binary, or a provider's own.
const KEPT_WHOLE: [&str; 41] = [
    "actionRequired",
    "audio",
    "compaction",
    "compaction_summary",
    "container_upload",
    "context_compaction",
    "conversationCompacted",
    "document",
    "encrypted_content",
    "custom",
    "file",
    "file-data",
    "file-id",
    "file-url",
    "ghost_snapshot",
    "input_audio",
    "input_file",
    "input_video",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "media",
    "other",
    "reasoning",
    "redactedThinking",
    "redacted_thinking",
    "refusal",
    "resource",
    "search_result",
    "source",
    "source-document",
    "source-url",
    "step-start",
    "systemNotification",
    "text",
    "thinking",
    "toolConfirmationRequest",
    "tool_addition",
    "tool_reference",
    "video_url",
];

/// The type of a part that was kept whole because nobody here knows it.
pub(super) fn unknown_type(facet: &Facet) -> Option<&str> {
    opaque_type(facet).filter(|kind| !KEPT_WHOLE.contains(kind))
}

/// The type of a part that was kept whole.
pub(super) fn opaque_type(facet: &Facet) -> Option<&str> {
    facet.source().filter(|_| facet.facet_type == FacetType::OPAQUE)?.block.as_deref()
}

/// Whether a facet is a summary that the API made.
pub(super) fn is_compaction(facet: &Facet) -> bool {
    let content = facet.part.as_ref().map(|part| &part.content);
    facet.facet_type == FacetType::SUMMARY && matches!(content, Some(PartContent::Compaction))
}

/// What is typed of a result, to complete it.
pub(super) fn complete_result(
    facet: &mut Facet,
    call_id: Option<&str>,
    name: Option<&str>,
    stated: CallOutcome,
) {
    if !facet.is_result() {
        return;
    }
    if let PartContent::Result { answers, tool, outcome } = &mut facet.part_mut().content {
        if answers.is_none() {
            *answers = call_id.map(Box::from);
        }
        if tool.is_none() {
            *tool = name.map(Box::from);
        }
        *outcome = stated.max(*outcome);
    }
}

/// What the model reads in the place of a result that the client cleared: Claude Code and OpenCode say the
/// same.
pub(super) const CLEARED: &str = "[Old tool result content cleared]";

/// Makes a result what the model reads in its place.
pub(super) fn replace(result: &mut Facet, text: &str) {
    text.clone_into(&mut result.content);
    result.children.clear();
}

/// Keeps what the source says of a part besides its content: its block without it, and where a
/// reader adds them `field`, `form` and `idFrom`.
pub(super) fn with_origin(mut facet: Facet, origin: Value) -> Facet {
    if origin.as_object().is_none_or(|object| !object.is_empty()) {
        facet.part_mut().source = PartSource::of_origin(origin);
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
