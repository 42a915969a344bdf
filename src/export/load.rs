//! Contexts that were written down, read back: what they say and, where that is known, who wrote it.

use super::{
    ExportedRequest, Form,
    owned::{OwnedJson, OwnedText},
    report::ExportReport,
};
use crate::{
    Error, ErrorKind, Result,
    hud::{Owner, RenderedContext, Span},
    json::{Fields, Object, Value},
};

const UNRECORDED: Owner = Owner::Framing(Owner::UNRECORDED);

impl ExportedRequest {
    /// A request that was recorded whole, as `root` has it.
    pub(crate) fn recorded(form: Form, root: OwnedJson) -> Self {
        Self { form, root, report: ExportReport::default() }
    }

    /// A context in the [`Form::Messages`], so that it can be compared like a request.
    ///
    /// Cost: O(the text), which is copied.
    pub fn of_context(context: &RenderedContext) -> Self {
        let message = |message| {
            let mut text = OwnedText::default();
            for run in context.runs(message) {
                text.push(run.text, &run.owner);
            }
            let role = OwnedJson::form(message.role().as_str());
            OwnedJson::map([("role", role), ("content", OwnedJson::Text(text))])
        };
        let messages = context.messages().iter().map(message).collect();
        let (form, root) = (Form::Messages, OwnedJson::List(messages));
        Self { form, root, report: ExportReport::default() }
    }

    /// The context that was written as this JSON: that of
    /// [`RenderedContext::to_json`](crate::hud::RenderedContext::to_json), or one of the forms of
    /// providers. `owners` is what [`ExportedRequest::owners`] gave for it; messages of a rendered context
    /// have theirs in them. Where nobody says who wrote a string, it is framing by the name of
    /// [`Owner::UNRECORDED`].
    ///
    /// The form is what [`Form::of`] recognises. The report is empty.
    ///
    /// Cost: O(the JSON), whose strings are taken over.
    ///
    /// # Errors
    /// Those of [`Form::of`]; [`ErrorKind::Shape`] where a part is not of the shape that its place
    /// asks for, [`ErrorKind::Tiling`] where the spans of a string do not tile it.
    pub fn from_json(value: Value, owners: Option<Value>) -> Result<Self> {
        let form = Form::of(&value)?;
        let mut root = match form {
            Form::Messages => rendered(value)?,
            _ => written(messages_of(value, form), Place::Form, &UNRECORDED),
        };
        if let Some(owners) = owners {
            attribute(&mut root, owners).map_err(|error| error.under("owners"))?;
        }
        Ok(Self { form, root, report: ExportReport::default() })
    }
}

/// A list of chat messages, which may stand in an object of its own.
fn messages_of(mut value: Value, form: Form) -> Value {
    match &mut value {
        Value::Object(object) if form == Form::OpenaiChat => {
            object.shift_remove("messages").unwrap_or_default()
        }
        _ => value,
    }
}

/// The messages of a rendered context.
fn rendered(value: Value) -> Result<OwnedJson> {
    let mut fields = Fields::of(value, "a context")?;
    let messages = fields.array("messages")?.unwrap_or_default();
    let message = |(index, message)| {
        let load = || {
            let mut fields = Fields::of(message, "a message")?;
            let role = Fields::required(fields.string("role")?, "role", "a string")?;
            let content = Fields::required(fields.string("content")?, "content", "a string")?;
            let spans = fields.array("spans")?.unwrap_or_default();
            let text = tiled(&content, spans).map_err(|error| error.under("spans"))?;
            Ok(OwnedJson::map([
                ("role", OwnedJson::form(&role)),
                ("content", OwnedJson::Text(text)),
            ]))
        };
        load().map_err(|error: Error| error.under(index).under("messages"))
    };
    let messages: Result<Vec<OwnedJson>> = messages.into_iter().enumerate().map(message).collect();
    Ok(OwnedJson::List(messages?))
}

/// A text with its spans, which must tile it.
fn tiled(text: &str, spans: Vec<Value>) -> Result<OwnedText> {
    let mut owned = OwnedText::default();
    for (index, span) in spans.into_iter().enumerate() {
        let Span { range, owner } = Span::from_json(span).map_err(|error| error.under(index))?;
        let end = owned.as_str().len();
        let part = text.get(range.start()..range.end());
        let Some(part) = part.filter(|_| range.start() == end) else {
            let (from, to) = (range.start(), range.end());
            let message = format!("expected a span from byte {end} on, found {from} to {to}");
            return Err(Error::new(ErrorKind::Tiling, message).under(index));
        };
        owned.push(part, &owner);
    }
    if owned.as_str().len() != text.len() {
        let (covered, all) = (owned.as_str().len(), text.len());
        let message = format!("expected spans of {all} bytes, found {covered}");
        return Err(Error::new(ErrorKind::Tiling, message));
    }
    Ok(owned)
}

/// What a value is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Form,
    /// Within what the agent or a tool wrote, where `type` and `role` are words like any other.
    Inside,
}

/// The value as one owner wrote it, but for the words of the form.
fn written(value: Value, place: Place, owner: &Owner) -> OwnedJson {
    match value {
        Value::Null => OwnedJson::Null,
        Value::Bool(flag) => OwnedJson::Bool(flag),
        Value::Number(number) => OwnedJson::Number(number),
        Value::String(text) => OwnedJson::of_text(&text, owner),
        Value::Array(list) => {
            OwnedJson::List(list.into_iter().map(|value| written(value, place, owner)).collect())
        }
        Value::Object(object) => written_members(object, place, owner),
    }
}

fn written_members(object: Object, place: Place, owner: &Owner) -> OwnedJson {
    let member = |(key, value): (String, Value)| {
        let value = match value {
            Value::String(text)
                if place == Place::Form && matches!(key.as_str(), "role" | "type") =>
            {
                OwnedJson::form(&text)
            }
            value if matches!(key.as_str(), "input" | "args" | "response") => {
                written(value, Place::Inside, owner)
            }
            value => written(value, place, owner),
        };
        (key, value)
    };
    OwnedJson::Map(object.into_iter().map(member).collect())
}

impl OwnedJson {
    /// A message, or an item, that one owner wrote, but for the words of the form.
    pub(crate) fn of_message(message: &Value, owner: &Owner) -> Self {
        written(message.clone(), Place::Form, owner)
    }
}

/// Gives strings the owners of a list of `path` and `spans`.
fn attribute(root: &mut OwnedJson, owners: Value) -> Result<()> {
    let Value::Array(owners) = owners else {
        return Err(Error::expected("a list of owners", owners.kind()));
    };
    for (index, entry) in owners.into_iter().enumerate() {
        let give = || {
            let mut fields = Fields::of(entry, "the owners of a string")?;
            let path = Fields::required(fields.string("path")?, "path", "a string")?;
            let spans = fields.array("spans")?.unwrap_or_default();
            let text = root.pointer_mut(&path).and_then(OwnedJson::as_text_mut);
            let text = text.ok_or_else(|| Error::expected("the path of a string", path))?;
            *text = tiled(text.as_str(), spans)?;
            Ok(())
        };
        give().map_err(|error: Error| error.under(index))?;
    }
    Ok(())
}
