//! What a source says of a model's answers, besides what they hold.

use super::wire;
use crate::{
    Result,
    json::{Fields, Object, ObjectExt, Value},
    usage::Usage,
};

/// What a source says of an answer of a model, or of a part of one, besides its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The model that answered.
    pub model: Option<Box<str>>,
    /// The usage of the whole answer, as reported.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the source's words.
    pub stop: Option<Box<str>>,
    /// Why it is not whole: its stream broke off.
    pub cut: Option<Box<str>>,
    /// The provider's id. Wire name `response` or `part`.
    pub id: Option<AnswerId>,
    /// The provider's id of the request.
    pub request: Option<Box<str>>,
    /// How it was asked: the members of the request besides the model, the tools and what it says, by
    /// the names of its API, where the source states them.
    pub parameters: Option<Box<Object>>,
    /// That it is a copy of an answer of another session, and counts there.
    pub copied: Option<CopyOf>,
}

/// A provider's id of what it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerId {
    /// The id of the response: each part of the answer has the same.
    Response(Box<str>),
    /// The id of one part of the answer.
    Part(Box<str>),
}

/// That an answer was copied from another session: one that was forked, or resumed into another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOf {
    /// The other session, where the source names it. Wire name `from`.
    pub session: Option<Box<str>>,
}

impl ModelAnswer {
    /// What both say; where they differ, what this one says.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            model: self.model.or(other.model),
            usage: self.usage.or(other.usage),
            stop: self.stop.or(other.stop),
            cut: self.cut.or(other.cut),
            id: self.id.or(other.id),
            request: self.request.or(other.request),
            parameters: self.parameters.or(other.parameters),
            copied: self.copied.or(other.copied),
        }
    }

    /// The same of an answer that says something. Zeros stay where the request failed, and where the
    /// client answered itself, as `<synthetic>`: nothing was asked.
    pub(crate) fn beside_answer(self) -> Self {
        let is_clients = self.model.as_deref().is_some_and(|model| model.starts_with('<'));
        if is_clients || self.failure().is_some() {
            return self;
        }
        Self { usage: self.usage.and_then(Usage::beside_answer), ..self }
    }

    /// The reason to stop, where it says that the request failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.stop.as_deref().filter(|stop| matches!(*stop, "error" | "aborted"))
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put_some("model", self.model.as_deref());
        object.put_some("usage", self.usage.as_ref().map(Usage::to_json));
        object.put_some("stop", self.stop.as_deref());
        object.put_some("cut", self.cut.as_deref());
        match &self.id {
            Some(AnswerId::Response(id)) => object.put("response", &**id),
            Some(AnswerId::Part(id)) => object.put("part", &**id),
            None => {}
        }
        object.put_some("request", self.request.as_deref());
        object.put_some("parameters", self.parameters.as_deref().cloned());
        object.put_some("copied", self.copied.as_ref().map(CopyOf::to_json));
        object.into()
    }

    pub(super) fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "what an import says of an answer")?;
        let (response, part) =
            (wire::text(&mut fields, "response")?, wire::text(&mut fields, "part")?);
        Ok(Self {
            model: wire::text(&mut fields, "model")?,
            usage: fields.object("usage")?.map(|usage| Usage::from_json(&usage.into())),
            stop: wire::text(&mut fields, "stop")?,
            cut: wire::text(&mut fields, "cut")?,
            id: response.map(AnswerId::Response).or(part.map(AnswerId::Part)),
            request: wire::text(&mut fields, "request")?,
            parameters: fields.object("parameters")?.map(Box::new),
            copied: fields.nested("copied", CopyOf::from_json)?,
        })
    }
}

impl CopyOf {
    pub(super) fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put_some("from", self.session.as_deref());
        object.into()
    }

    pub(super) fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a copy of an answer")?;
        Ok(Self { session: wire::text(&mut fields, "from")? })
    }
}
