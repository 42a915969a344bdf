//! Messages as instrumentations write them down, and as a request holds them.

use crate::{
    json::{Object, ObjectExt, Value, object},
    transcript::{
        Api,
        take::{list, object, text},
    },
};

/// A message that a span, or an event, tells of.
#[derive(Debug, PartialEq)]
pub(super) struct SpanMessage {
    role: String,
    name: Option<String>,
    parts: Vec<Part>,
    /// The members that the conventions do not know.
    more: Object,
}

/// A part, with the members that the conventions do not know.
#[derive(Debug, PartialEq)]
struct Part {
    kind: PartKind,
    more: Object,
}

#[derive(Debug, PartialEq)]
enum PartKind {
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

impl SpanMessage {
    /// A message of the conventions: a role and parts. `None` where it is none.
    pub(super) fn of_message(message: Value) -> Option<Self> {
        let Value::Object(mut message) = message else { return None };
        // Messages in the form of a provider stand there too, in files of other writers.
        if !message.contains_key("parts") {
            return Self::of_chat(message);
        }
        let (role, name) = (text(&mut message, "role")?, text(&mut message, "name"));
        let parts = match message.shift_remove("parts") {
            Some(Value::Array(parts)) => parts.into_iter().map(Part::of).collect(),
            Some(text @ Value::String(_)) => vec![Part::of(text)],
            _ => return None,
        };
        message.retain(|key, value| key != "finish_reason" && !value.is_null());
        Some(Self { role, name, parts, more: message })
    }

    /// Something that is no message.
    pub(super) fn of_other(value: Value) -> Self {
        let part = Part { kind: PartKind::Whole(value), more: Object::new() };
        Self { role: "unknown".to_owned(), name: None, parts: vec![part], more: Object::new() }
    }

    /// The system instructions of the conventions: a list of parts, or a text.
    pub(super) fn of_instructions(instructions: Value) -> Self {
        let parts = match instructions {
            Value::Array(parts) => parts.into_iter().map(Part::of).collect(),
            other => vec![Part::of(other)],
        };
        Self { role: "system".to_owned(), name: None, parts, more: Object::new() }
    }

    /// A message in the form of Chat Completions, as older conventions have them.
    pub(super) fn of_chat(mut message: Object) -> Option<Self> {
        let (role, name) = (text(&mut message, "role")?, text(&mut message, "name"));
        let mut parts = Vec::new();
        let plain = |kind: PartKind| Part { kind, more: Object::new() };
        for key in ["reasoning_content", "reasoning"] {
            parts.extend(text(&mut message, key).map(|text| plain(PartKind::Reasoning(text))));
        }
        let content = message.shift_remove("content");
        if matches!(role.as_str(), "tool" | "function") {
            let id = text(&mut message, "tool_call_id").or_else(|| text(&mut message, "id"));
            let response = content.unwrap_or_default();
            let (is_error, is_providers) = (false, false);
            parts.push(plain(PartKind::Response { id, response, is_error, is_providers }));
        } else {
            match content {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() => {}
                Some(Value::Array(list)) => parts.extend(list.into_iter().map(Part::of)),
                Some(other) => parts.push(Part::of(other)),
            }
        }
        if let Some(calls) = list(&mut message, "tool_calls") {
            parts.extend(calls.into_iter().map(Part::of_chat_call));
        }
        message.retain(|key, value| key != "finish_reason" && !value.is_null());
        Some(Self { role, name, parts, more: message })
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
        self.parts.iter().any(|part| match &part.kind {
            PartKind::Text(text) | PartKind::Reasoning(text) => !text.is_empty(),
            PartKind::Call { arguments: value, .. }
            | PartKind::Response { response: value, .. } => !value.is_null(),
            PartKind::Media { .. } | PartKind::Whole(_) => true,
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
            _ => self.into_chat(),
        }
    }

    fn into_blocks(self) -> Value {
        let role = match self.role.as_str() {
            "tool" | "function" | "human" => "user",
            "model" | "ai" => "assistant",
            other => other,
        };
        let mut message =
            object! { "role": role, "content": content_of(self.parts, Api::Messages) };
        message.extend(self.more);
        message.into()
    }

    fn into_chat(self) -> Vec<Value> {
        let Self { role, name, parts, more } = self;
        let is_agents = matches!(role.as_str(), "assistant" | "model" | "ai");
        if is_agents {
            return vec![agents(&role, name.as_deref(), parts, more)];
        }
        let mut messages: Vec<Object> = Vec::new();
        let mut rest = Vec::new();
        let flush = |rest: &mut Vec<Part>, messages: &mut Vec<Object>| {
            if !rest.is_empty() {
                let role = if role == "tool" { "user" } else { &role };
                let mut message = object! { "role": role };
                message.put_some("name", name.as_deref());
                message.put("content", content_of(std::mem::take(rest), Api::Chat));
                messages.push(message);
            }
        };
        for part in parts {
            match part.kind {
                PartKind::Response { id, response, is_providers: false, .. } => {
                    flush(&mut rest, &mut messages);
                    let mut message = object! { "role": "tool" };
                    message.put_some("tool_call_id", id);
                    message.put("content", content_of_response(response, Api::Chat));
                    message.extend(part.more);
                    let is_usual = matches!(role.as_str(), "tool" | "function" | "user");
                    message.put_some("statedRole", (!is_usual).then_some(role.as_str()));
                    messages.push(message);
                }
                kind => rest.push(Part { kind, more: part.more }),
            }
        }
        flush(&mut rest, &mut messages);
        if messages.is_empty() {
            messages.push(object! { "role": role, "content": "" });
        }
        messages.iter_mut().take(1).for_each(|first| first.extend(more.clone()));
        messages.into_iter().map(Value::from).collect()
    }
}

/// A message of the agent in the form of Chat Completions: reasoning and calls have members of their
/// own where their order allows it; else all parts are blocks, in their order.
fn agents(role: &str, name: Option<&str>, parts: Vec<Part>, more: Object) -> Value {
    let rank = |part: &Part| match part.kind {
        PartKind::Reasoning(_) => 0,
        PartKind::Call { is_providers: false, .. } => 2,
        _ => 1,
    };
    let is_ordered = parts.is_sorted_by_key(rank);
    let thoughts = || parts.iter().filter(|part| rank(part) == 0);
    let has_plain_one = thoughts().count() <= 1 && thoughts().all(|part| part.more.is_empty());
    let mut message = object! { "role": role };
    message.put_some("name", name);
    message.extend(more);
    if !is_ordered || !has_plain_one {
        message.put("content", content_of(parts, Api::Chat));
        return message.into();
    }
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    let mut reasoning = None;
    for Part { kind, more } in parts {
        match kind {
            PartKind::Reasoning(text) => reasoning = Some(text),
            PartKind::Call { id, name, arguments, is_providers: false } => {
                let arguments = match arguments {
                    Value::String(text) => text.into(),
                    Value::Null => Value::Null,
                    other => other.to_string().into(),
                };
                let mut call = Object::new();
                call.put_some("id", id);
                call.put("type", "function");
                call.put("function", object! { "name": name, "arguments": arguments });
                call.extend(more);
                calls.push(Value::Object(call));
            }
            kind => content.push(Part { kind, more }),
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
    if let [Part { kind: PartKind::Text(text), more }] = parts.as_mut_slice()
        && more.is_empty()
    {
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
        let mut more = match value {
            Value::Object(object) => object,
            Value::String(text) => {
                return Self { kind: PartKind::Text(text), more: Object::new() };
            }
            other => return Self { kind: PartKind::Whole(other), more: Object::new() },
        };
        let kind = more.str_at("type").unwrap_or_default().to_owned();
        let found = PartKind::taken_from(&kind, &mut more);
        let Some(found) = found else {
            return Self { kind: PartKind::Whole(more.into()), more: Object::new() };
        };
        more.retain(|key, value| key != "type" && !value.is_null());
        Self { kind: found, more }
    }

    /// An entry of `tool_calls`.
    fn of_chat_call(call: Value) -> Self {
        let Value::Object(mut more) = call else { return Self::of(call) };
        let id = text(&mut more, "id");
        if more.get("type") == Some(&"function".into()) {
            more.shift_remove("type");
        }
        let mut function = object(&mut more, "function");
        let of = function.as_mut().unwrap_or(&mut more);
        let name = text(of, "name").unwrap_or_default();
        let arguments = of.shift_remove("arguments").unwrap_or_default();
        more.extend(function.unwrap_or_default());
        more.retain(|_, value| !value.is_null());
        Self { kind: PartKind::Call { id, name, arguments, is_providers: false }, more }
    }

    /// The part as a block of a content.
    fn into_block(self, api: Api) -> Value {
        let mut block = self.kind.into_block(api);
        if let Value::Object(block) = &mut block {
            block.extend(self.more);
        }
        block
    }
}

impl PartKind {
    /// What a part of this kind says, taken out of it; `None` where the kind is not known or the part
    /// lacks what it says.
    fn taken_from(kind: &str, part: &mut Object) -> Option<Self> {
        let first =
            |part: &mut Object, keys: [&str; 2]| keys.into_iter().find_map(|key| text(part, key));
        Some(match kind {
            "text" | "input_text" | "output_text" => Self::Text(first(part, ["content", "text"])?),
            "reasoning" | "thinking" => Self::Reasoning(first(part, ["content", "thinking"])?),
            "tool_call" | "server_tool_call" => {
                let is_providers = kind == "server_tool_call";
                let key = if is_providers { "server_tool_call" } else { "arguments" };
                let arguments = part.shift_remove(key).unwrap_or_default();
                let name = text(part, "name").unwrap_or_default();
                Self::Call { id: text(part, "id"), name, arguments, is_providers }
            }
            "tool_call_response" | "server_tool_call_response" => {
                let is_providers = kind == "server_tool_call_response";
                // `result` is the name of older versions.
                let keys = ["server_tool_call_response", "response", "result"];
                let response = keys.into_iter().find_map(|key| part.shift_remove(key));
                let stated = part.get("is_error").and_then(Value::as_bool);
                let is_error = stated == Some(true);
                part.retain(|key, _| stated.is_none() || key != "is_error");
                let (id, response) = (text(part, "id"), response.unwrap_or_default());
                Self::Response { id, response, is_error, is_providers }
            }
            "blob" | "uri" | "file" if part.get("modality") == Some(&"image".into()) => {
                let place = match kind {
                    "blob" => Place::Data(text(part, "content")?),
                    "uri" => Place::Uri(text(part, "uri")?),
                    _ => Place::File(text(part, "file_id")?),
                };
                part.shift_remove("modality");
                Self::Media { media_type: text(part, "mime_type"), place }
            }
            // What we write of a block that has no type.
            "opaque" => Self::Whole(part.shift_remove("content")?),
            _ => return None,
        })
    }

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
