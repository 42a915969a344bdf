//! What frames say as messages of the conventions.

use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value, object},
    veil::{Facet, Frame, PartContent, PartSource, Source},
};

/// The parts of a frame, in order.
pub(super) fn parts_of(frame: &Frame) -> Vec<Value> {
    let mut parts = Vec::new();
    frame.added().for_each(|facet| add(facet, &mut parts));
    parts
}

/// A frame as a message, which has no parts where it says nothing.
pub(super) fn message(frame: &Frame) -> Value {
    let parts = parts_of(frame);
    let is_response = |part: &Value| part.str_at("type") == Some("tool_call_response");
    let own = frame.imported.as_ref().and_then(|imported| imported.role.as_deref());
    let role = match (&frame.source, own) {
        _ if !parts.is_empty() && parts.iter().all(is_response) && !is_agents(frame) => "tool",
        (Source::System, Some(own @ "developer")) => own,
        (Source::System, _) => "system",
        (Source::Agent, _) => "assistant",
        (Source::User | Source::Environment, _) => "user",
        (other, _) => other.as_str(),
    };
    let mut message = object! { "role": role, "parts": parts };
    let name = frame.imported.as_ref().and_then(|imported| imported.get("name"));
    message
        .put_some("name", name.filter(|name| role != "tool" && name.as_str().is_some()).cloned());
    message.into()
}

fn is_agents(frame: &Frame) -> bool {
    frame.source == Source::Agent
}

fn add(facet: &Facet, parts: &mut Vec<Value>) {
    let part = if let Some(call) = facet.call() {
        let mut part = object! { "type": "tool_call" };
        part.put_some("id", call.id);
        part.put("name", call.name);
        let arguments = match (call.arguments, call.parameters) {
            (Some(written), _) => Value::from(written),
            (None, Some(parameters)) => parameters.clone(),
            (None, None) => Value::Null,
        };
        part.put("arguments", arguments);
        part
    } else if facet.is_result() {
        let mut part = object! { "type": "tool_call_response" };
        part.put_some("id", facet.call_id());
        part.put("response", response(facet));
        part.put_some("is_error", facet.outcome().is_failure().then_some(true));
        part
    } else {
        match said(facet) {
            Some(part) => part,
            None => return,
        }
    };
    parts.push(part.into());
    if !facet.is_result() {
        facet.children.iter().for_each(|child| add(child, parts));
    }
}

/// What a result says: a text, or parts where it holds more.
fn response(facet: &Facet) -> Value {
    if facet.children.is_empty() {
        return facet.content.as_str().into();
    }
    let mut parts = Vec::new();
    if !facet.content.is_empty() {
        parts.push(text("text", &facet.content).into());
    }
    for child in &facet.children {
        parts.extend(said(child).map(Value::from));
        child.children.iter().for_each(|child| parts.extend(said(child).map(Value::from)));
    }
    parts.into()
}

fn text(kind: &str, content: &str) -> Object {
    object! { "type": kind, "content": content }
}

/// Text, reasoning, an image, or a block that is written as it is.
fn said(facet: &Facet) -> Option<Object> {
    let block = || facet.source().and_then(PartSource::to_block);
    if facet.facet_type == FacetType::THOUGHT {
        return Some(text("reasoning", &facet.content));
    }
    if facet.facet_type == FacetType::UNKNOWN {
        let state = facet.state.as_ref().and_then(Value::as_str).unwrap_or_default();
        return Some(text("unknown", state));
    }
    let content = facet.part.as_ref().map(|part| &part.content);
    match content {
        Some(PartContent::Compaction) if !facet.content.is_empty() => {
            Some(text("compaction", &facet.content))
        }
        Some(PartContent::Image(_)) => Some(image(block()?).unwrap_or_else(|block| block)),
        Some(
            PartContent::Audio(_)
            | PartContent::Document(_)
            | PartContent::Compaction
            | PartContent::Opaque,
        ) => match block()? {
            Value::Object(block) if block.contains_key("type") => Some(block),
            other => Some(object! { "type": "opaque", "content": other }),
        },
        _ if facet.content.is_empty() => None,
        _ => Some(text("text", &facet.content)),
    }
}

/// The image of a provider's block; the block where it is not known how it holds one.
fn image(block: Value) -> Result<Object, Object> {
    let at = |places: &[&str]| {
        places.iter().find_map(|place| block.pointer(place)?.as_str().map(str::to_owned))
    };
    let of_bedrock = || at(&["/image/format"]).map(|format| format!("image/{format}"));
    let declared = at(&[
        "/source/media_type",
        "/mimeType",
        "/media_type",
        "/inlineData/mimeType",
        "/fileData/mimeType",
    ]);
    let declared = declared.or_else(of_bedrock);
    let place = at(&[
        "/image_url/url",
        "/image_url",
        "/image",
        "/source/url",
        "/url",
        "/fileData/fileUri",
        "/image/source/s3Location/uri",
    ]);
    let data_url = place.as_deref().and_then(|url| url.strip_prefix("data:")?.split_once(','));
    let (media_type, data) = match data_url {
        Some((head, data)) => (head.split(';').next().map(str::to_owned), Some(data.to_owned())),
        None => (
            declared,
            at(&["/source/data", "/data", "/result", "/inlineData/data", "/image/source/bytes"]),
        ),
    };
    let file = at(&["/source/file_id", "/file_id"]);
    let (kind, key, value) = match (data, place, file) {
        (Some(data), _, _) => ("blob", "content", data),
        (None, Some(uri), _) => ("uri", "uri", uri),
        (None, None, Some(file)) => ("file", "file_id", file),
        (None, None, None) => {
            return Err(match block {
                Value::Object(block) if block.contains_key("type") => block,
                other => object! { "type": "image", "content": other },
            });
        }
    };
    let mut part = object! { "type": kind, "modality": "image" };
    part.put_some("mime_type", media_type);
    part.put(key, value);
    Ok(part)
}

/// A definition of a tool in the form of the conventions; one of a provider's own tools stays.
pub(super) fn tool(tool: Value) -> Value {
    let Value::Object(mut tool) = tool else { return tool };
    let mut definition = object! { "type": "function" };
    let is_other = tool.get("type").is_some_and(|kind| kind.as_str() != Some("function"));
    let inner = ["function", "toolSpec"].into_iter().find(|key| tool.contains_key(key));
    // The provider's own tools of Gemini have neither type nor name.
    if is_other || inner.is_none() && !tool.contains_key("name") && !tool.contains_key("type") {
        return tool.into();
    }
    let mut inner = match inner.and_then(|key| tool.shift_remove(key)) {
        Some(Value::Object(function)) => function,
        _ => tool,
    };
    inner.shift_remove("type");
    let schema = match inner.shift_remove("inputSchema") {
        Some(Value::Object(mut schema)) => schema.shift_remove("json").or(Some(schema.into())),
        other => other,
    };
    let mut own = ["input_schema", "parametersJsonSchema"].into_iter();
    let schema = schema.or_else(|| own.find_map(|key| inner.shift_remove(key)));
    inner.put_some("parameters", schema);
    definition.extend(inner);
    definition.into()
}
