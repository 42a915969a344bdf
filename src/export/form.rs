use std::fmt;

use crate::{
    Error, Result,
    json::{Object, Value},
};

/// The roles of messages that a provider takes.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// What a context is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The messages of a [`RenderedContext`](crate::hud::RenderedContext), as its JSON has them.
    Messages,
    /// `messages` of OpenAI's Chat Completions.
    #[serde(rename = "openai")]
    OpenaiChat,
    /// `input` items of OpenAI's Responses.
    Responses,
    /// `system` and `messages` of Anthropic's Messages.
    Anthropic,
    /// `systemInstruction` and `contents` of Gemini.
    Gemini,
    /// One text.
    #[serde(rename = "text")]
    Plain,
}

impl Form {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Form::Messages => "messages",
            Form::OpenaiChat => "openai",
            Form::Responses => "responses",
            Form::Anthropic => "anthropic",
            Form::Gemini => "gemini",
            Form::Plain => "text",
        }
    }

    /// The form of a context that was written as this JSON: a string is plain text; an object with
    /// `messages` is a rendered context where these have `spans`, else chat messages where one has
    /// a role or calls that only these have, else Anthropic's, with nothing but `system` beside
    /// them; an object with `contents` is Gemini's; a list is of Responses items where one has a type of these, else of chat messages.
    /// O(messages, or items).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is no context.
    pub fn of(value: &Value) -> Result<Self> {
        match value {
            Value::String(_) => Ok(Form::Plain),
            Value::Array(list) => of_list(list),
            Value::Object(object) => of_object(object),
            other => Err(Error::expected("a context", other.kind())),
        }
    }
}

fn of_list(list: &[Value]) -> Result<Form> {
    let mut places = list.iter().enumerate();
    if let Some((at, value)) = places.find(|(_, value)| !is_message(value) && !is_item(value)) {
        let expected = "a message with a `role`, or an item with a `type`";
        return Err(Error::expected(expected, value.kind()).under(at));
    }
    Ok(if list.iter().any(is_item) { Form::Responses } else { Form::OpenaiChat })
}

fn of_object(object: &Object) -> Result<Form> {
    if let Some(Value::Array(contents)) = object.get("contents") {
        return of_contents(object, contents);
    }
    let Some(Value::Array(messages)) = object.get("messages") else {
        return Err(Error::expected("a context", "an object without `messages`"));
    };
    let has_spans = |message: &Value| message.get("spans").is_some();
    if object.contains_key("frameToMessage") || messages.iter().any(has_spans) {
        return Ok(Form::Messages);
    }
    let is_other = |key: &&String| !matches!(key.as_str(), "system" | "messages");
    if let Some(other) = object.keys().find(is_other) {
        let expected = "a context: `messages`, and nothing but `system` beside them";
        return Err(Error::expected(expected, format_args!("`{other}`")));
    }
    let mut places = messages.iter().enumerate();
    if let Some((at, value)) = places.find(|(_, message)| !is_message(message)) {
        let error = Error::expected("a message with a `role`", value.kind());
        return Err(error.under(at).under("messages"));
    }
    let is_chat = !object.contains_key("system") && messages.iter().any(is_of_chat);
    Ok(if is_chat { Form::OpenaiChat } else { Form::Anthropic })
}

/// Of a context of Gemini.
fn of_contents(object: &Object, contents: &[Value]) -> Result<Form> {
    let is_other = |key: &&String| !matches!(key.as_str(), "systemInstruction" | "contents");
    if let Some(other) = object.keys().find(is_other) {
        let expected = "a context: `contents`, and nothing but `systemInstruction` beside them";
        return Err(Error::expected(expected, format_args!("`{other}`")));
    }
    let mut places = contents.iter().enumerate();
    match places.find(|(_, content)| content.get("parts").is_none()) {
        Some((at, value)) => {
            let error = Error::expected("a content with `parts`", value.kind());
            Err(error.under(at).under("contents"))
        }
        None => Ok(Form::Gemini),
    }
}

fn is_message(value: &Value) -> bool {
    value.str_at("role").is_some_and(|role| ROLES.contains(&role))
}

/// Whether a message is one that only Chat Completions have.
fn is_of_chat(message: &Value) -> bool {
    match message.str_at("role") {
        Some("user") => false,
        Some("assistant") => message.get("tool_calls").is_some(),
        // Anthropic's own have changes of tools in blocks.
        Some("system") => message.str_at("content").is_some(),
        _ => true,
    }
}

/// Whether a value is an item of Responses.
fn is_item(value: &Value) -> bool {
    value.str_at("type").is_some_and(|name| {
        matches!(name, "message" | "reasoning" | "compaction" | "mcp_list_tools")
            || name.ends_with("_call")
            || name.ends_with("_output")
    })
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
