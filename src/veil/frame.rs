use std::sync::Arc;

use super::{Facet, FacetChange, FacetOp, Imported};
use crate::{
    Error, Result,
    id::FrameSeq,
    json::{Fields, Object, ObjectExt, Value, serde_through_json},
    snapshot::FrameSnapshot,
};

serde_through_json!(Frame);

/// Where a frame comes from. It decides the role in which the frame is spoken.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A person.
    User,
    /// The agent itself.
    Agent,
    /// The world: tool results, sensors, other systems.
    #[default]
    Environment,
    /// The operator.
    System,
    /// Any other source, by name.
    Other(Arc<str>),
}

impl Source {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Source::User => "user",
            Source::Agent => "agent",
            Source::Environment => "environment",
            Source::System => "system",
            Source::Other(name) => name,
        }
    }
}

impl From<&str> for Source {
    fn from(name: &str) -> Self {
        match name {
            "user" => Source::User,
            "agent" => Source::Agent,
            "environment" => Source::Environment,
            "system" => Source::System,
            other => Source::Other(other.into()),
        }
    }
}

/// One step of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The position in the history; rises from frame to frame.
    pub sequence: FrameSeq,
    /// When it happened, as the source wrote it; not interpreted.
    pub timestamp: Option<String>,
    /// An id of the source, not interpreted.
    pub uuid: Option<String>,
    /// Where the frame comes from.
    pub source: Source,
    /// The stream that was active, not interpreted.
    pub active_stream: Option<Value>,
    /// What happened, not interpreted.
    pub events: Vec<Value>,
    /// What the source of an imported frame says of it.
    pub imported: Option<Box<Imported>>,
    /// The changes to the facets. Wire name `deltas`.
    pub ops: Vec<FacetOp>,
    /// What the frame rendered to, once it was captured.
    pub rendered_snapshot: Option<Arc<FrameSnapshot>>,
    /// What the model saw besides frames when it answered with this one: the tail of the context.
    pub rendered_tail: Option<Arc<FrameSnapshot>>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

impl Frame {
    /// A frame without ops.
    pub fn new(sequence: impl Into<FrameSeq>, source: Source) -> Self {
        Self { sequence: sequence.into(), source, ..Self::default() }
    }

    /// Adds an op.
    pub fn with(mut self, op: FacetOp) -> Self {
        self.ops.push(op);
        self
    }

    /// The facets that it adds, in order. O(ops).
    pub fn added(&self) -> impl Iterator<Item = &Facet> {
        self.ops.iter().filter_map(|op| match &op.change {
            FacetChange::Add(facet) => Some(&**facet),
            _ => None,
        })
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("sequence", self.sequence.get());
        object.put_some("timestamp", self.timestamp.as_deref());
        object.put_some("uuid", self.uuid.as_deref());
        object.put("source", self.source.as_str());
        object.put_some("activeStream", self.active_stream.clone());
        object.put("events", self.events.iter().cloned().collect::<Value>());
        object.put_some("imported", self.imported.as_ref().map(|imported| imported.to_json()));
        object.put("deltas", self.ops.iter().map(FacetOp::to_json).collect::<Value>());
        object.put_some("renderedSnapshot", self.rendered_snapshot.as_ref().map(|s| s.to_json()));
        object.put_some("renderedTail", self.rendered_tail.as_ref().map(|s| s.to_json()));
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. Without `source` the events tell it (see `docs/transcripts.md`).
    /// O(size).
    ///
    /// # Errors
    /// As [`FacetOp::from_json`] and [`FrameSnapshot::from_json`], with the frame's sequence.
    pub fn from_json(value: Value) -> Result<Self> {
        Self::read(value, None)
    }

    /// As [`Frame::from_json`], and notes what is wrong and does no harm, as
    /// [`FrameSnapshot::from_json_with_notes`] does, with the frame's sequence. A snapshot that does
    /// not load is noted too, and the frame has none. O(size).
    ///
    /// # Errors
    /// Those of [`Frame::from_json`], but for its snapshots.
    pub fn from_json_with_notes(value: Value, notes: &mut Vec<Error>) -> Result<Self> {
        Self::read(value, Some(notes))
    }

    fn read(value: Value, notes: Option<&mut Vec<Error>>) -> Result<Self> {
        let mut fields = Fields::of(value, "a frame")?;
        let sequence = Fields::required(fields.u64("sequence")?, "sequence", "a sequence number")?;
        let mut own = notes.is_some().then(Vec::new);
        let frame = Self::from_fields(&mut fields, sequence.into(), own.as_mut())
            .map_err(|error| error.at_frame(sequence))?;
        if let (Some(notes), Some(own)) = (notes, own) {
            notes.extend(own.into_iter().map(|note| note.at_frame(sequence)));
        }
        Ok(Self { extra: fields.rest(), ..frame })
    }

    fn from_fields(
        fields: &mut Fields,
        sequence: FrameSeq,
        mut notes: Option<&mut Vec<Error>>,
    ) -> Result<Self> {
        let deltas = fields.array("deltas")?.unwrap_or_default();
        let op = |(index, value)| {
            FacetOp::from_json(value)
                .map_err(|error: Error| error.at(|place| place.op = Some(index)))
        };
        let events = fields.array("events")?.unwrap_or_default();
        let source = match fields.string("source")? {
            Some(name) => Source::from(name.as_str()),
            None => source_of_events(&events),
        };
        let mut snapshot = |key: &str| {
            let mut own = Vec::new();
            let read = fields.nested(key, |value| {
                FrameSnapshot::from_json_with_notes(value, &mut own).map(Arc::new)
            });
            let Some(notes) = notes.as_deref_mut() else { return read };
            notes.extend(own.into_iter().map(|note| note.under(key)));
            // The ops say what happened, whether or not their rendering is understood.
            read.or_else(|error| {
                let message = format!("the snapshot is left out: {}", error.message());
                let place = error.place().clone();
                notes.push(Error::new(error.kind(), message).at(|at| *at = place));
                Ok(None)
            })
        };
        Ok(Self {
            sequence,
            rendered_snapshot: snapshot("renderedSnapshot")?,
            rendered_tail: snapshot("renderedTail")?,
            timestamp: fields.string("timestamp")?,
            uuid: fields.string("uuid")?,
            source,
            active_stream: fields.take("activeStream"),
            events,
            imported: fields.nested("imported", Imported::from_json)?.map(Box::new),
            ops: deltas.into_iter().enumerate().map(op).collect::<Result<_>>()?,
            extra: Object::new(),
        })
    }
}

/// The source of a frame that does not name it, from the topics of its events: `agent:…` and
/// operations of an agent element come from the agent, `…:input`, `…:message` and `…:chat` from a
/// user, everything else from the environment.
fn source_of_events(events: &[Value]) -> Source {
    let topics = || events.iter().filter_map(|event| event.str_at("topic"));
    let of_agent_element = |event: &Value| {
        event.pointer("/source/elementType").and_then(Value::as_str) == Some("AgentElement")
    };
    if topics().any(|topic| topic.starts_with("agent:")) || events.iter().any(of_agent_element) {
        return Source::Agent;
    }
    let of_user =
        |topic: &str| [":input", ":message", ":chat"].iter().any(|end| topic.ends_with(end));
    if topics().any(of_user) { Source::User } else { Source::Environment }
}
