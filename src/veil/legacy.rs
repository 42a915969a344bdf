//! Frames as they were written before parts were typed, read as they are written now: calls and
//! results were in the state of a facet, what a source says of a part in its attribute `origin`, and
//! what it says of a message in an event.

use std::sync::Arc;

use super::{Facet, FacetChange, FacetPart, Frame, Imported, PartContent, PartSource};
use crate::{
    id::FacetType,
    json::{Object, Value},
};

/// The attribute that held what a source says of a part.
const ORIGIN: &str = "origin";
/// The topics of the event that held what a source says of a message or a record.
const MESSAGE: &str = "transcript:message";
const RECORD: &str = "transcript:record";

/// Whether [`convert_facet`] would change a facet.
pub(super) fn is_convertible(facet: &Facet) -> bool {
    let state = facet.state.as_ref();
    let is_call = || state.is_some_and(|state| state.str_at("toolName").is_some());
    facet.facet_type == FacetType::RESULT && state.is_some()
        || facet.facet_type == FacetType::ACTION && is_call()
}

/// Whether [`convert_frame`] would change a frame.
pub(super) fn tells_of_import(frame: &Frame) -> bool {
    frame.events.iter().any(is_of_import)
}

fn is_of_import(event: &Value) -> bool {
    matches!(event.str_at("topic"), Some(MESSAGE | RECORD))
}

/// Takes the call or the result out of a facet that was written without a part.
pub(super) fn convert_facet(facet: &mut Facet) {
    if let Some(content) = content_of_state(facet) {
        facet.part = Some(Box::new(FacetPart::new(content)));
    }
}

/// Takes what the source says of a facet out of its attributes: of one that an import made.
pub(crate) fn convert_origin(facet: &mut Facet) {
    if let Some(origin) = facet.attributes.shift_remove(ORIGIN) {
        let content = PartContent::of_block(&facet.facet_type, &origin);
        let part = facet.part.get_or_insert_with(|| Box::new(FacetPart::new(content)));
        part.source = PartSource::of_origin(origin);
    }
    facet.children.iter_mut().for_each(convert_origin);
}

/// The call or the result that the state of a facet is. What else it holds stays.
fn content_of_state(facet: &mut Facet) -> Option<PartContent> {
    let is_call = facet.facet_type == FacetType::ACTION;
    if !is_call && facet.facet_type != FacetType::RESULT {
        return None;
    }
    let Some(Value::Object(state)) = &mut facet.state else {
        // Any state made a result of it.
        let is_result = !is_call && facet.state.is_some();
        return is_result.then(|| PartContent::Result { answers: None, tool: None, failed: false });
    };
    let mut text = |key: &str| take_text(state, key);
    let content = if is_call {
        let name = text("toolName")?;
        let (id, arguments) = (text("toolCallId"), text("arguments"));
        let parameters = state.shift_remove("parameters");
        PartContent::Call { id, name, parameters, arguments }
    } else {
        let (answers, tool) = (text("toolCallId"), text("toolName"));
        let failed = state.get("isError").and_then(Value::as_bool) == Some(true);
        if failed {
            state.shift_remove("isError");
        }
        PartContent::Result { answers, tool, failed }
    };
    if state.is_empty() {
        facet.state = None;
    }
    Some(content)
}

fn take_text(object: &mut Object, key: &str) -> Option<Box<str>> {
    let text = object.get(key)?.as_str()?.into();
    object.shift_remove(key);
    Some(text)
}

/// Takes what is typed now out of a frame that was written without it.
pub(super) fn convert_frame(frame: &mut Frame) {
    // The first said what the message was; where one said that it is a message, it was one.
    let Some(at) = frame.events.iter().position(is_of_import) else { return };
    let is_message = frame.events.iter().any(|event| event.str_at("topic") == Some(MESSAGE));
    let event = frame.events.remove(at);
    let line = event.get("line").and_then(Value::as_u64).unwrap_or_default();
    let members = match event {
        Value::Object(mut event) => event.shift_remove("payload"),
        _ => None,
    };
    let members = match members {
        Some(Value::Object(members)) => members,
        _ => Object::new(),
    };
    frame.events.retain(|event| !is_of_import(event));
    for op in &mut frame.ops {
        if let FacetChange::Add(facet) = &mut op.change {
            convert_origin(Arc::make_mut(facet));
        }
    }
    frame.imported = Some(Box::new(Imported::of_members(line, is_message, members)));
}
