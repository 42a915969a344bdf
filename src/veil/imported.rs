use super::{ContentForm, CopyOf, ModelAnswer, wire};
use crate::{
    Result,
    json::{Fields, Object, ObjectExt, Value, serde_through_json},
};

serde_through_json!(Imported);

/// What the source of an imported frame says of it besides what it holds. The wire member `imported`
/// of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The line in the file, or the number of the element, from one.
    pub line: u64,
    /// The name of that file, where it is another than that of the session: a subagent's.
    pub file: Option<Box<str>>,
    /// Whether the source counts the frame as a message.
    pub is_message: bool,
    /// The role of the message, as the source names it.
    pub role: Option<Box<str>>,
    /// The type of the record or item. Wire name `type`.
    pub kind: Option<Box<str>>,
    /// How the content of the message was written, where that is not the usual form.
    pub form: Option<ContentForm>,
    /// What it says of the model's answer that the frame is, or is a part of.
    pub answer: Option<Box<ModelAnswer>>,
    /// The usage of answers that no frame shows: the sums of a session, where a source states
    /// nothing else.
    pub session_usage: Vec<ModelAnswer>,
    /// That all answers of the session before the frame are copies.
    pub copied_before: Option<CopyOf>,
    /// What the source says of the message, by its own names, besides its role, type and form.
    pub members: Object,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

impl Imported {
    /// What a source says of a message, by its own names: what has a typed place here goes there.
    /// O(members).
    pub fn of_members(line: u64, is_message: bool, mut members: Object) -> Self {
        let mut take = |key: &str| match members.get(key) {
            Some(Value::String(text)) => {
                let text: Box<str> = text.as_str().into();
                members.shift_remove(key);
                Some(text)
            }
            _ => None,
        };
        let (role, kind) = (take("role"), take("type"));
        let form = members.str_at("form").and_then(ContentForm::from_name);
        if form.is_some() {
            members.shift_remove("form");
        }
        Self { line, is_message, role, kind, form, members, ..Self::default() }
    }

    /// A member that has no typed place.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    /// The tools of the requests from the frame on, where the source tells of such.
    pub fn tools(&self) -> Option<&[Value]> {
        self.get("tools")?.as_array()
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("line", self.line);
        object.put_some("file", self.file.as_deref());
        object.put("message", self.is_message);
        object.put_some("role", self.role.as_deref());
        object.put_some("type", self.kind.as_deref());
        object.put_some("form", self.form.map(ContentForm::as_str));
        object.extend(self.answers());
        if !self.members.is_empty() {
            object.put("members", self.members.clone());
        }
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where a member is of the wrong type, or the form
    /// is not known.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "what an import says of a frame")?;
        Self {
            line: fields.u64("line")?.unwrap_or_default(),
            file: wire::text(&mut fields, "file")?,
            is_message: fields.bool("message")?.unwrap_or_default(),
            role: wire::text(&mut fields, "role")?,
            kind: wire::text(&mut fields, "type")?,
            form: wire::form(&mut fields, "form")?,
            members: fields.object("members")?.unwrap_or_default(),
            ..Self::default()
        }
        .with_answers(fields)
    }

    /// The members of the wire form that speak of answers.
    pub(super) fn answers(&self) -> Object {
        let mut object = Object::new();
        object.put_some("answer", self.answer.as_ref().map(|answer| answer.to_json()));
        if !self.session_usage.is_empty() {
            let usage = self.session_usage.iter().map(ModelAnswer::to_json);
            object.put("sessionUsage", usage.collect::<Value>());
        }
        object.put_some("copiedBefore", self.copied_before.as_ref().map(CopyOf::to_json));
        object
    }

    /// The same with these of its members; the others are unknown.
    pub(super) fn with_answers(mut self, mut fields: Fields) -> Result<Self> {
        self.answer = fields.nested("answer", ModelAnswer::from_json)?.map(Box::new);
        let usage = fields.array("sessionUsage")?.unwrap_or_default().into_iter();
        self.session_usage = usage.map(ModelAnswer::from_json).collect::<Result<_>>()?;
        self.copied_before = fields.nested("copiedBefore", CopyOf::from_json)?;
        self.extra = fields.rest();
        Ok(self)
    }
}
