//! Messages as instrumentations write them down, and as a request holds them.

use crate::{
    json::{Object, ObjectExt, Value, object},
    transcript::Api,
};

/// A message that a span, or an event, tells of.
#[derive(Debug, PartialEq)]
pub(super) struct SpanMessage {
    role: String,
    name: Option<String>,
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Reasoning(String),
    Call {
        id: Option<String>,
        name: String,
        arguments: Value,
        is_providers: bool,
    },
    Response {
        id: Option<String>,
        response: Value,
        is_error: bool,
        is_providers: bool,
    },
    Media {
        media_type: Option<String>,
        place: Place,
    },
    /// A part of another kind.
    Whole(Value),
}

/// Where an image is.
#[derive(Debug, PartialEq)]
enum Place {
    Data(String),
    Uri(String),
    File(String),
}

fn text_at(object: &Object, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

impl SpanMessage {
    /// A message of the conventions: a role and parts. `None` where it is none.
    pub(super) fn of_message(message: Value) -> Option<Self> {
        let Value::Object(mut message) = message else { return None };
        // Messages in the form of a provider stand there too, in files of other writers.
        if !message.contains_key("parts") {
            return Self::of_chat(message);
        }
        let role = text_at(&message, "role")?;
        let name = text_at(&message, "name");
        let parts = match message.shift_remove("parts") {
            Some(Value::Array(parts)) => parts.into_iter().map(Part::of).collect(),
            Some(Value::String(text)) => vec![Part::Text(text)],
            _ => return None,
        };
        Some(Self { role, name, parts })
    }

    /// The system instructions of the conventions: a list of parts, or a text.
    pub(super) fn of_instructions(instructions: Value) -> Self {
        let parts = match instructions {
            Value::Array(parts) => parts.into_iter().map(Part::of).collect(),
            other => vec![Part::of(other)],
        };
        Self { role: "system".to_owned(), name: None, parts }
    }

    /// A message in the form of Chat Completions, as older conventions have them.
    pub(super) fn of_chat(mut message: Object) -> Option<Self> {
        let role = text_at(&message, "role")?;
        let name = text_at(&message, "name");
        let mut parts = Vec::new();
        for key in ["reasoning_content", "reasoning"] {
            parts.extend(text_at(&message, key).map(Part::Reasoning));
        }
        let content = message.shift_remove("content");
        if matches!(role.as_str(), "tool" | "function") {
            let id = text_at(&message, "tool_call_id").or_else(|| text_at(&message, "id"));
            let response = content.unwrap_or_default();
            parts.push(Part::Response { id, response, is_error: false, is_providers: false });
        } else {
            match content {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() => {}
                Some(Value::String(text)) => parts.push(Part::Text(text)),
                Some(Value::Array(list)) => parts.extend(list.into_iter().map(Part::of)),
                Some(other) => parts.push(Part::of(other)),
            }
        }
        if let Some(Value::Array(calls)) = message.shift_remove("tool_calls") {
            parts.extend(calls.into_iter().map(Part::of_chat_call));
        }
        Some(Self { role, name, parts })
    }

    /// Whether it is an instruction of the operator.
    pub(super) fn is_system(&self) -> bool {
        matches!(self.role.as_str(), "system" | "developer")
    }

    /// The content of a system prompt that stands apart.
    pub(super) fn into_system(self) -> Value {
        let Self { parts, .. } = self;
        content_of(parts, Api::Messages)
    }

    /// Whether it holds any words: without them its content was not captured.
    pub(super) fn says_something(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text(text) | Part::Reasoning(text) => !text.is_empty(),
            Part::Call { arguments: value, .. } | Part::Response { response: value, .. } => {
                !value.is_null()
            }
            Part::Media { .. } | Part::Whole(_) => true,
        })
    }

    /// Adds the parts of another message.
    pub(super) fn append(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// The message as the API writes it. One that holds several results is several messages of Chat
    /// Completions.
    pub(super) fn into_api(self, api: Api) -> Vec<Value> {
        match api {
            Api::Messages => vec![self.into_blocks()],
            Api::Chat | Api::Responses => self.into_chat(),
        }
    }

    fn into_blocks(self) -> Value {
        let role = match self.role.as_str() {
            "tool" | "function" | "human" => "user",
            "model" | "ai" => "assistant",
            other => other,
        };
        object! { "role": role, "content": content_of(self.parts, Api::Messages) }.into()
    }

    fn into_chat(self) -> Vec<Value> {
        let Self { role, name, parts } = self;
        let is_agents = matches!(role.as_str(), "assistant" | "model" | "ai");
        if is_agents {
            return vec![agents(&role, name.as_deref(), parts)];
        }
        let mut messages = Vec::new();
        let mut rest = Vec::new();
        let flush = |rest: &mut Vec<Part>, messages: &mut Vec<Value>| {
            if !rest.is_empty() {
                let role = if role == "tool" { "user" } else { &role };
                let mut message = object! { "role": role };
                message.put_some("name", name.as_deref());
                message.put("content", content_of(std::mem::take(rest), Api::Chat));
                messages.push(message.into());
            }
        };
        for part in parts {
            match part {
                Part::Response { id, response, is_providers: false, .. } => {
                    flush(&mut rest, &mut messages);
                    let mut message = object! { "role": "tool" };
                    message.put_some("tool_call_id", id);
                    message.put("content", content_of_response(response, Api::Chat));
                    messages.push(message.into());
                }
                other => rest.push(other),
            }
        }
        if messages.is_empty() && rest.is_empty() {
            return vec![object! { "role": role, "content": "" }.into()];
        }
        flush(&mut rest, &mut messages);
        messages
    }
}

/// A message of the agent in the form of Chat Completions: reasoning and calls have members of their
/// own where their order allows it; else all parts are blocks, in their order.
fn agents(role: &str, name: Option<&str>, parts: Vec<Part>) -> Value {
    let rank = |part: &Part| match part {
        Part::Reasoning(_) => 0,
        Part::Call { is_providers: false, .. } => 2,
        _ => 1,
    };
    let is_ordered = parts.is_sorted_by_key(rank);
    let has_one = parts.iter().filter(|part| rank(part) == 0).count() <= 1;
    let mut message = object! { "role": role };
    message.put_some("name", name);
    if !is_ordered || !has_one {
        message.put("content", content_of(parts, Api::Chat));
        return message.into();
    }
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    let mut reasoning = None;
    for part in parts {
        match part {
            Part::Reasoning(text) => reasoning = Some(text),
            Part::Call { id, name, arguments, is_providers: false } => {
                let arguments = match arguments {
                    Value::String(text) => text.into(),
                    Value::Null => Value::Null,
                    other => other.to_string().into(),
                };
                let mut call = Object::new();
                call.put_some("id", id);
                call.put("type", "function");
                call.put("function", object! { "name": name, "arguments": arguments });
                calls.push(Value::Object(call));
            }
            other => content.push(other),
        }
    }
    let content = if content.is_empty() { Value::Null } else { content_of(content, Api::Chat) };
    message.put("content", content);
    message.put_some("reasoning_content", reasoning);
    if !calls.is_empty() {
        message.put("tool_calls", calls);
    }
    message.into()
}

/// The content of a message: a text where it is one, else a list of blocks.
fn content_of(mut parts: Vec<Part>, api: Api) -> Value {
    if let [Part::Text(text)] = parts.as_mut_slice() {
        return std::mem::take(text).into();
    }
    parts.into_iter().map(|part| part.into_block(api)).collect()
}

/// What a tool gave back: a text, blocks where these are what it is, else its JSON as text.
fn content_of_response(response: Value, api: Api) -> Value {
    match response {
        Value::String(_) | Value::Null => response,
        Value::Array(list)
            if !list.is_empty() && list.iter().all(|part| part.str_at("type").is_some()) =>
        {
            list.into_iter().map(|part| Part::of(part).into_block(api)).collect()
        }
        other => other.to_string().into(),
    }
}

impl Part {
    /// A part of the conventions, or a block of a provider.
    fn of(value: Value) -> Self {
        let mut object = match value {
            Value::String(text) => return Self::Text(text),
            Value::Object(object) => object,
            other => return Self::Whole(other),
        };
        let kind = text_at(&object, "type").unwrap_or_default();
        let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| text_at(&object, key));
        match kind.as_str() {
            "text" | "input_text" | "output_text" => match first(["content", "text"]) {
                Some(text) => Self::Text(text),
                None => Self::Whole(object.into()),
            },
            "reasoning" | "thinking" => match first(["content", "thinking"]) {
                Some(text) => Self::Reasoning(text),
                None => Self::Whole(object.into()),
            },
            "tool_call" | "server_tool_call" => {
                let is_providers = kind == "server_tool_call";
                let key = if is_providers { "server_tool_call" } else { "arguments" };
                let arguments = object.shift_remove(key).unwrap_or_default();
                let name = text_at(&object, "name").unwrap_or_default();
                Self::Call { id: text_at(&object, "id"), name, arguments, is_providers }
            }
            "tool_call_response" | "server_tool_call_response" => {
                let is_providers = kind == "server_tool_call_response";
                // `result` is the name of older versions.
                let keys = ["server_tool_call_response", "response", "result"];
                let response = keys.into_iter().find_map(|key| object.shift_remove(key));
                let is_error = object.get("is_error").and_then(Value::as_bool) == Some(true);
                let id = text_at(&object, "id");
                let response = response.unwrap_or_default();
                Self::Response { id, response, is_error, is_providers }
            }
            "blob" | "uri" | "file" => {
                let is_image = text_at(&object, "modality").as_deref() == Some("image");
                let place = match kind.as_str() {
                    "blob" => text_at(&object, "content").map(Place::Data),
                    "uri" => text_at(&object, "uri").map(Place::Uri),
                    _ => text_at(&object, "file_id").map(Place::File),
                };
                match place.filter(|_| is_image) {
                    Some(place) => Self::Media { media_type: text_at(&object, "mime_type"), place },
                    None => Self::Whole(object.into()),
                }
            }
            _ => Self::Whole(object.into()),
        }
    }

    /// An entry of `tool_calls`.
    fn of_chat_call(call: Value) -> Self {
        let Value::Object(mut call) = call else { return Self::Whole(call) };
        let id = text_at(&call, "id");
        let mut function = match call.shift_remove("function") {
            Some(Value::Object(function)) => function,
            _ => call,
        };
        let name = text_at(&function, "name").unwrap_or_default();
        let arguments = function.shift_remove("arguments").unwrap_or_default();
        Self::Call { id, name, arguments, is_providers: false }
    }

    /// The part as a block of a content.
    fn into_block(self, api: Api) -> Value {
        match self {
            Self::Text(text) => object! { "type": "text", "text": text }.into(),
            Self::Reasoning(text) => object! { "type": "thinking", "thinking": text }.into(),
            Self::Call { id, name, arguments, is_providers } => {
                let kind = if is_providers { "server_tool_use" } else { "tool_use" };
                let mut block = object! { "type": kind };
                block.put_some("id", id);
                block.put("name", name);
                block.put("input", arguments);
                block.into()
            }
            Self::Response { id, response, is_error, is_providers } => {
                let kind = if is_providers { "server_tool_result" } else { "tool_result" };
                let mut block = object! { "type": kind };
                block.put_some("tool_use_id", id);
                let content =
                    if is_providers { response } else { content_of_response(response, api) };
                block.put("content", content);
                block.put_some("is_error", is_error.then_some(true));
                block.into()
            }
            Self::Media { media_type, place } => image(media_type, place, api),
            Self::Whole(value) => value,
        }
    }
}

fn image(media_type: Option<String>, place: Place, api: Api) -> Value {
    let source = match (place, api) {
        (Place::Data(data), Api::Messages) => {
            let mut source = object! { "type": "base64" };
            source.put_some("media_type", media_type);
            source.put("data", data);
            source
        }
        (Place::Uri(uri), Api::Messages) => object! { "type": "url", "url": uri },
        (Place::File(id), _) => object! { "type": "file", "file_id": id },
        (Place::Data(data), _) => {
            let media_type = media_type.as_deref().unwrap_or("image/png");
            let url = object! { "url": format!("data:{media_type};base64,{data}") };
            return object! { "type": "image_url", "image_url": url }.into();
        }
        (Place::Uri(uri), _) => {
            return object! { "type": "image_url", "image_url": object! { "url": uri } }.into();
        }
    };
    object! { "type": "image", "source": source }.into()
}
