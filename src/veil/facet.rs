use super::{CallOutcome, FacetPart, Media, PartContent, PartSource};
use crate::{
    Error, Result,
    id::{FacetId, FacetType},
    json::{Fields, Number, Object, ObjectExt, Value, serde_through_json},
    snapshot::Part,
};

serde_through_json!(Facet, Saliency);

/// One thing that an agent can perceive or has done.
///
/// ```
/// use afterimage::{id::FacetType, veil::Facet};
///
/// let alert = Facet::new("event-7", FacetType::EVENT, "Energy signature in sector 7-G")
///     .named("sensor_alert");
/// assert_eq!(alert.display_name.as_deref(), Some("sensor_alert"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Facet {
    /// The id, unique among the facets that hold at one time.
    pub id: FacetId,
    /// What kind of thing it is.
    pub facet_type: FacetType,
    /// What it says. A facet without content and children renders nothing.
    pub content: String,
    /// What it is for a provider beyond its text: a call, a result, a signature. Without one it is
    /// what its type says.
    pub part: Option<Box<FacetPart>>,
    /// What it knows, for programs.
    pub state: Option<Value>,
    /// The name under which it is shown; formats with tags make a tag of it.
    pub display_name: Option<String>,
    /// Facets inside of it. They live and go with it and cannot be named by ops of their own.
    pub children: Vec<Facet>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Free attributes.
    pub attributes: Object,
    /// The scopes in which it is shown.
    pub scopes: Vec<String>,
    /// The stream that it belongs to.
    pub stream_id: Option<String>,
    /// The type of that stream.
    pub stream_type: Option<String>,
    /// The agent that it belongs to.
    pub agent_id: Option<String>,
    /// That agent's name.
    pub agent_name: Option<String>,
    /// Whether it is gone after the frame that shows it.
    pub ephemeral: bool,
    /// How much it matters, for whoever must choose.
    pub saliency: Option<Saliency>,
    /// The facets that it is about.
    pub target_facet_ids: Vec<FacetId>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

/// A tool call as the [`FacetPart`] of a facet holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call<'a> {
    /// The provider's id of the call, where it has one.
    pub id: Option<&'a str>,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments, parsed; `None` where they were text that is not JSON.
    pub parameters: Option<&'a Value>,
    /// The arguments as the model wrote them, where `parameters` does not write back the same.
    pub arguments: Option<&'a str>,
}

/// Hints on how much a facet matters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saliency {
    /// Never dropped and never compressed.
    pub pinned: bool,
    /// Reference material, kept longer than talk.
    pub reference: bool,
    /// How fast it loses worth: from 0 (never) to 1 (at once).
    pub transient: Option<Number>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

impl Facet {
    /// A facet with an id, a type and a content.
    pub fn new(
        id: impl Into<FacetId>,
        facet_type: impl Into<FacetType>,
        content: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            facet_type: facet_type.into(),
            content: content.into(),
            part: None,
            state: None,
            display_name: None,
            children: Vec::new(),
            tags: Vec::new(),
            attributes: Object::new(),
            scopes: Vec::new(),
            stream_id: None,
            stream_type: None,
            agent_id: None,
            agent_name: None,
            ephemeral: false,
            saliency: None,
            target_facet_ids: Vec::new(),
            extra: Object::new(),
        }
    }

    /// A tool call: a facet of type [`FacetType::ACTION`]. `parameters` are the arguments by name.
    pub fn tool_call(
        id: impl Into<FacetId>,
        call_id: Option<&str>,
        tool_name: &str,
        parameters: Value,
    ) -> Self {
        let content = PartContent::Call {
            id: call_id.map(Box::from),
            name: tool_name.into(),
            parameters: Some(parameters),
            arguments: None,
        };
        Self::new(id, FacetType::ACTION, "").with_part(content)
    }

    /// The result of a tool call: a facet of type [`FacetType::RESULT`].
    pub fn tool_result(
        id: impl Into<FacetId>,
        call_id: Option<&str>,
        tool_name: Option<&str>,
        content: impl Into<String>,
    ) -> Self {
        let part = PartContent::Result {
            answers: call_id.map(Box::from),
            tool: tool_name.map(Box::from),
            outcome: CallOutcome::Unstated,
        };
        Self::new(id, FacetType::RESULT, content).with_part(part)
    }

    /// Sets what the facet is for a provider.
    pub fn with_part(mut self, content: PartContent) -> Self {
        self.part_mut().content = content;
        self
    }

    /// Sets the name under which the facet is shown.
    pub fn named(mut self, display_name: impl Into<String>) -> Self {
        self.display_name = Some(display_name.into());
        self
    }

    /// Adds a facet inside of this one.
    pub fn with_child(mut self, child: Facet) -> Self {
        self.children.push(child);
        self
    }

    /// Makes the facet go at the end of its frame.
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// The part, which is made where there is none.
    pub(crate) fn part_mut(&mut self) -> &mut FacetPart {
        let facet_type = &self.facet_type;
        self.part.get_or_insert_with(|| Box::new(FacetPart::new(PartContent::of_type(facet_type))))
    }

    /// What the source of the facet says of it, where it says something.
    pub fn source(&self) -> Option<&PartSource> {
        self.part.as_deref().map(|part| &part.source)
    }

    pub(crate) fn typed(&self) -> Option<&PartContent> {
        self.part.as_deref().map(|part| &part.content)
    }

    /// The tool call, where the facet is one.
    pub fn call(&self) -> Option<Call<'_>> {
        let Some(PartContent::Call { id, name, parameters, arguments }) = self.typed() else {
            return None;
        };
        let (id, arguments) = (id.as_deref(), arguments.as_deref());
        Some(Call { id, name, parameters: parameters.as_ref(), arguments })
    }

    /// The name of the tool of a call or a result.
    pub fn tool_name(&self) -> Option<&str> {
        match self.typed()? {
            PartContent::Call { name, .. } => Some(name),
            PartContent::Result { tool, .. } => tool.as_deref(),
            _ => None,
        }
    }

    /// Whether the facet is the result of a tool call. A facet of type [`FacetType::RESULT`] that is
    /// none is a text inside of one.
    pub fn is_result(&self) -> bool {
        matches!(self.typed(), Some(PartContent::Result { .. }))
    }

    /// What became of the call of a result, as far as the source states it.
    pub fn outcome(&self) -> CallOutcome {
        match self.typed() {
            Some(PartContent::Result { outcome, .. }) => *outcome,
            _ => CallOutcome::Unstated,
        }
    }

    /// The id of the call of a call or a result, where the provider gave one.
    pub fn call_id(&self) -> Option<&str> {
        match self.typed()? {
            PartContent::Call { id, .. } => id.as_deref(),
            PartContent::Result { answers, .. } => answers.as_deref(),
            _ => None,
        }
    }

    /// What is known of an image, a sound or a document.
    pub fn media(&self) -> Option<&Media> {
        match self.typed()? {
            PartContent::Image(media)
            | PartContent::Audio(media)
            | PartContent::Document(media) => Some(media),
            _ => None,
        }
    }

    /// Whether it is the facet with this id, or has it inside.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.id.as_str() == id || self.children.iter().any(|child| child.holds(id))
    }

    /// The children that are shown with the facet: ambient ones are in an ambient facet.
    pub(crate) fn shown_children(&self) -> impl Iterator<Item = &Facet> {
        let ambient = self.facet_type == FacetType::AMBIENT;
        let is_shown = move |child: &&Facet| {
            child.is_shown_in_frames() || ambient && child.facet_type == FacetType::AMBIENT
        };
        self.children.iter().filter(is_shown)
    }

    /// Whether the built-in formats write anything of the facet: a call, a result, a content, or a
    /// child that does. Labels and tags alone say nothing.
    pub(crate) fn says_something(&self) -> bool {
        !self.content.is_empty()
            || self.is_result()
            || self.call().is_some()
            || self.shown_children().any(Facet::says_something)
    }

    /// Which part of a message the chunks of the facet are. Copies the ids and the name of a call
    /// or a result.
    pub fn chunk_part(&self) -> Part {
        let of_type;
        let content = match self.typed() {
            None | Some(PartContent::Text) => {
                of_type = PartContent::of_type(&self.facet_type);
                &of_type
            }
            Some(content) => content,
        };
        match content {
            PartContent::Text => Part::Text,
            PartContent::Call { id, name, .. } => Part::Call { id: id.clone(), name: name.clone() },
            PartContent::Result { answers, .. } => Part::Result { id: answers.clone() },
            PartContent::Reasoning => Part::Reasoning,
            PartContent::Image(_) => Part::Image,
            PartContent::Audio(_) => Part::Audio,
            PartContent::Document(_) => Part::Document,
            // One that its provider alone can read has no text.
            PartContent::Compaction if self.facet_type == FacetType::OPAQUE => Part::Opaque,
            PartContent::Compaction => Part::Compaction,
            PartContent::ToolDefinition { .. } => Part::ToolDefinition,
            PartContent::Opaque => Part::Opaque,
        }
    }

    /// Whether a frame that adds the facet shows it. Ambient facets float after the last frame
    /// instead; what was not understood is kept, but the model is not known to have seen it.
    pub fn is_shown_in_frames(&self) -> bool {
        self.facet_type != FacetType::AMBIENT && self.facet_type != FacetType::UNKNOWN
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("id", self.id.as_str());
        object.put("type", self.facet_type.as_str());
        object.put_some("displayName", self.display_name.as_deref());
        if !self.content.is_empty() {
            object.put("content", self.content.as_str());
        }
        object.put_some("part", self.part.as_ref().map(|part| part.to_json()));
        object.put_some("state", self.state.clone());
        put_list(&mut object, "children", &self.children, Facet::to_json);
        put_list(&mut object, "tags", &self.tags, |tag| tag.as_str().into());
        if !self.attributes.is_empty() {
            object.put("attributes", self.attributes.clone());
        }
        put_list(&mut object, "scopes", &self.scopes, |scope| scope.as_str().into());
        object.put_some("streamId", self.stream_id.as_deref());
        object.put_some("streamType", self.stream_type.as_deref());
        object.put_some("agentId", self.agent_id.as_deref());
        object.put_some("agentName", self.agent_name.as_deref());
        if self.ephemeral {
            object.put("ephemeral", true);
        }
        object.put_some("saliency", self.saliency.as_ref().map(Saliency::to_json));
        put_list(&mut object, "targetFacetIds", &self.target_facet_ids, |id| id.as_str().into());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. Absent members take their empty value; `scope` may be spelled so.
    /// O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where `id` or `type` is missing, or a member
    /// is of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a facet")?;
        let id = Fields::required(fields.string("id")?, "id", "a string")?;
        let of_facet = |error: Error| error.at(|place| place.facet = Some(id.clone()));
        let facet = Self::from_fields(&mut fields, FacetId::from(&id)).map_err(of_facet)?;
        Ok(Self { extra: fields.rest(), ..facet })
    }

    fn from_fields(fields: &mut Fields, id: FacetId) -> Result<Self> {
        let facet_type = Fields::required(fields.string("type")?, "type", "a string")?;
        let children = fields.array("children")?.unwrap_or_default();
        let child = |(index, value)| {
            Facet::from_json(value).map_err(|error: Error| error.under(index).under("children"))
        };
        let scopes = match fields.strings("scopes")? {
            Some(scopes) => scopes,
            None => fields.strings("scope")?.unwrap_or_default(),
        };
        let targets = fields.strings("targetFacetIds")?.unwrap_or_default();
        Ok(Self {
            display_name: fields.string("displayName")?,
            part: fields.nested("part", FacetPart::from_json)?.map(Box::new),
            state: fields.take("state"),
            children: children.into_iter().enumerate().map(child).collect::<Result<_>>()?,
            tags: fields.strings("tags")?.unwrap_or_default(),
            attributes: fields.object("attributes")?.unwrap_or_default(),
            scopes,
            stream_id: fields.string("streamId")?,
            stream_type: fields.string("streamType")?,
            agent_id: fields.string("agentId")?,
            agent_name: fields.string("agentName")?,
            ephemeral: fields.bool("ephemeral")?.unwrap_or_default(),
            saliency: fields.nested("saliency", Saliency::from_json)?,
            target_facet_ids: targets.into_iter().map(FacetId::from).collect(),
            ..Self::new(id, facet_type, fields.string("content")?.unwrap_or_default())
        })
    }
}

fn put_list<T>(object: &mut Object, key: &str, list: &[T], to_json: impl Fn(&T) -> Value) {
    if !list.is_empty() {
        object.put(key, list.iter().map(to_json).collect::<Value>());
    }
}

impl Saliency {
    /// Never dropped and never compressed.
    pub fn pinned() -> Self {
        Self { pinned: true, ..Self::default() }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        for (key, flag) in [("pinned", self.pinned), ("reference", self.reference)] {
            if flag {
                object.put(key, true);
            }
        }
        object.put_some("transient", self.transient.clone().map(Value::Number));
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where a member is of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "saliency")?;
        Ok(Self {
            pinned: fields.bool("pinned")?.unwrap_or_default(),
            reference: fields.bool("reference")?.unwrap_or_default(),
            transient: fields.number("transient")?,
            extra: fields.rest(),
        })
    }
}
