//! Bedrock's Converse: messages of blocks, each under the name of its kind, and answers that come as
//! a stream of events.

use std::collections::BTreeMap;

use super::{
    chat,
    draft::FrameDraft,
    parts::{self, Arguments, with_origin},
    sink::Sink,
    sse::{self, StreamedResponse},
    take,
};
use crate::{
    id::FacetType,
    json::{self, Object, ObjectExt, Value, object},
    veil::{CacheMark, CallOutcome, Facet, ModelAnswer, Source},
};

/// Blocks that are kept whole on purpose.
const KEPT_WHOLE: [&str; 6] =
    ["document", "video", "audio", "guardContent", "searchResult", "citationsContent"];
/// The block that says where a cache may keep what stands before it.
const MARK: &str = "cachePoint";

/// Gives a message to the sink.
pub(super) fn push(message: Value, line: u64, sink: &mut Sink) {
    let mut message = match message {
        Value::Object(message) => message,
        other => return sink.unknown(line, format!("{} is no message", other.kind()), other),
    };
    let (source, text_type) = chat::source_of_role(message.str_at("role").unwrap_or("user"));
    let mut draft = FrameDraft::message(source, line);
    content(message.shift_remove("content"), &text_type, &mut draft, sink);
    let stop = message.str_at("stopReason").map(Box::from);
    draft.add_answer(ModelAnswer { stop, ..ModelAnswer::default() });
    draft.payload.extend(message);
    sink.push(draft);
}

/// Gives a system prompt to the sink.
pub(super) fn push_system(system: Value, line: u64, sink: &mut Sink) {
    let mut draft = FrameDraft::record(Source::System, line);
    content(Some(system), &FacetType::SYSTEM, &mut draft, sink);
    if !draft.facets.is_empty() || !draft.payload.is_empty() {
        sink.push(draft);
    }
}

fn content(body: Option<Value>, text_type: &FacetType, draft: &mut FrameDraft, sink: &mut Sink) {
    let Some(Value::Array(blocks)) = body else {
        return chat::content(body.unwrap_or_default(), text_type, draft);
    };
    draft.payload.put("form", "parts");
    for value in blocks {
        let mark = value.get(MARK).and_then(CacheMark::of);
        if let (Some(mark), Some(last)) = (mark, draft.facets.last_mut())
            && value.as_object().is_some_and(|block| block.len() == 1)
            && last.source().is_none_or(|source| source.cache.is_none())
        {
            last.part_mut().source.cache = Some(mark);
            continue;
        }
        if let Some(kind) = unknown_kind(&value) {
            let note = format!("a part of type {kind:?} is not understood, and kept as it is");
            sink.note(draft.line, &note);
        }
        draft.facets.push(block(value, text_type));
    }
}

fn unknown_kind(block: &Value) -> Option<&str> {
    let known = ["text", "image", "toolUse", "toolResult", "reasoningContent", MARK];
    let is_known = |key: &String| known.iter().chain(&KEPT_WHOLE).any(|known| known == key);
    let block = block.as_object()?;
    let first = block.keys().next()?;
    (!block.keys().any(is_known)).then_some(first)
}

/// A block: one member says what it is.
fn block(value: Value, text_type: &FacetType) -> Facet {
    let Value::Object(mut block) = value else { return chat::content_part(value, text_type) };
    if let Some(text) = take::text(&mut block, "text") {
        return with_origin(parts::text(text_type.clone(), text), block.into());
    }
    if let Some(text) = guarded(&mut block) {
        return with_origin(parts::text(text_type.clone(), text), block.into());
    }
    if let Some(mut call) = take::object(&mut block, "toolUse") {
        let (id, name) = (take::text(&mut call, "toolUseId"), take::text(&mut call, "name"));
        let input = Arguments::from(call.shift_remove("input"));
        put_rest(&mut block, "toolUse", call);
        let call = parts::call(id.as_deref(), name.as_deref().unwrap_or_default(), input);
        return with_origin(call, block.into());
    }
    if let Some(mut result) = take::object(&mut block, "toolResult") {
        let id = take::text(&mut result, "toolUseId");
        let stated = CallOutcome::of_status(result.str_at("status"));
        let mut facet = parts::result(id.as_deref(), None, "", stated);
        match result.shift_remove("content") {
            Some(Value::Array(inside)) => {
                block.put("form", "parts");
                let inside = inside.into_iter().map(|of| self::block(of, &FacetType::RESULT));
                facet.children = inside.collect();
            }
            Some(other) => facet.content = other.to_string(),
            None => block.put("form", "absent"),
        }
        put_rest(&mut block, "toolResult", result);
        return with_origin(facet, block.into());
    }
    if let Some(mut thought) = take::object(&mut block, "reasoningContent") {
        let Some(mut said) = take::object(&mut thought, "reasoningText") else {
            block.put("reasoningContent", thought);
            return parts::opaque("redacted thinking", block.into());
        };
        let text = take::text(&mut said, "text").unwrap_or_default();
        put_rest(&mut block, "reasoningContent", thought);
        put_rest(&mut block, "reasoningText", said);
        return with_origin(parts::thought(text), block.into());
    }
    // A result may be JSON.
    if let Some(shown) = block.get("json").filter(|_| *text_type == FacetType::RESULT) {
        let shown = shown.to_string();
        block.shift_remove("json");
        block.put("form", "json");
        return with_origin(parts::text(text_type.clone(), shown), block.into());
    }
    if let Some(image) = block.get("image") {
        let format = image.str_at("format").map(|format| format!("image/{format}"));
        let source = image.get("source");
        let data = source.and_then(|source| source.str_at("bytes")).map(str::to_owned);
        return parts::image(format.as_deref(), data.as_deref(), block.into());
    }
    let kind = block.keys().next().cloned().unwrap_or_else(|| "block".to_owned());
    parts::opaque(&kind, block.into())
}

/// The text of a block that a guardrail looks at; the rest stays where it is.
fn guarded(block: &mut Object) -> Option<String> {
    let Some(Value::Object(guard)) = block.get_mut("guardContent") else { return None };
    let Some(Value::Object(said)) = guard.get_mut("text") else { return None };
    take::text(said, "text")
}

/// Puts what is left of a member beside the block's own; in its place where they have the same names.
fn put_rest(block: &mut Object, member: &str, rest: Object) {
    if rest.keys().any(|key| block.contains_key(key)) {
        block.put(member, rest);
    } else {
        block.extend(rest);
    }
}

/// The response of a stream of events, each under its name.
pub(super) fn of_stream(stream: &str) -> Option<StreamedResponse> {
    let mut message: Option<Object> = None;
    let mut blocks = BTreeMap::<u64, StreamedBlock>::new();
    let mut response = Object::new();
    let mut is_whole = false;
    for event in sse::events(stream) {
        let Value::Object(event) = event else { continue };
        let Some((kind, Value::Object(mut event))) = event.into_iter().next() else { continue };
        let index = event.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or_default();
        match kind.as_str() {
            "messageStart" => message = Some(event),
            "contentBlockStart" => {
                let start = take::object(&mut event, "start").unwrap_or_default();
                sse::join(&mut blocks.entry(index).or_default().whole, start);
            }
            "contentBlockDelta" => {
                let delta = take::object(&mut event, "delta").unwrap_or_default();
                blocks.entry(index).or_default().add(delta);
            }
            "messageStop" => {
                is_whole = true;
                response.extend(event);
            }
            "metadata" => response.extend(event),
            _ => {}
        }
    }
    let mut message = message?;
    message.put("content", blocks.into_values().map(StreamedBlock::end).collect::<Value>());
    response.put("output", object! { "message": message });
    Some(StreamedResponse { response: response.into(), is_whole, is_ended: false })
}

#[derive(Default)]
struct StreamedBlock {
    whole: Object,
    /// The JSON text of the input of a call, as far as it has come.
    input: String,
}

impl StreamedBlock {
    fn add(&mut self, mut delta: Object) {
        if let Some(Value::Object(call)) = delta.get_mut("toolUse") {
            self.input.push_str(&take::text(call, "input").unwrap_or_default());
        }
        // Reasoning comes without the member that a whole block has around it.
        if let Some(mut said) = take::object(&mut delta, "reasoningContent") {
            let redacted = said.shift_remove("redactedContent");
            let mut thought = Object::new();
            if !said.is_empty() {
                thought.put("reasoningText", said);
            }
            thought.put_some("redactedContent", redacted);
            delta.put("reasoningContent", thought);
        }
        sse::join(&mut self.whole, delta);
    }

    fn end(mut self) -> Value {
        if let Some(Value::Object(call)) = self.whole.get_mut("toolUse") {
            // An input that broke off stays text.
            let input = json::read_mended(self.input.as_bytes());
            let text = || {
                let is_none = self.input.is_empty();
                if is_none { Object::new().into() } else { Value::from(&*self.input) }
            };
            let input = input.map_or_else(|_| text(), |(input, _)| input);
            sse::join(call, object! { "input": input });
        }
        self.whole.into()
    }
}

/// The message of a response.
pub(super) fn message_of(mut response: Object) -> Option<Object> {
    let mut message = take::object(&mut take::object(&mut response, "output")?, "message")?;
    take::default_role(&mut message, "assistant");
    message.put_some("stopReason", response.shift_remove("stopReason"));
    Some(message)
}

#[cfg(test)]
#[path = "converse_tests.rs"]
mod tests;
