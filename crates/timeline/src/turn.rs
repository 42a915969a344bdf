use std::fmt::Write;

use super::{Data, Delta, Event, apply::shown};
use crate::{
    DeltaTarget, Millis, Result,
    json::{Fields, Number, Object, ObjectExt, Value, serde_through_json},
};

/// The most changes that a summary names.
const MOST_CHANGES: usize = 3;

/// One record of a timeline: who acted, what happened, and how the state changed.
///
/// What is left empty is filled in when the turn is pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnRecord {
    /// From 1, rising by one. 0 until the turn is pushed.
    pub turn_id: u64,
    /// The session in which it was pushed; a branch shares turns of the session before it.
    pub session_id: String,
    /// The scene; empty where there is none.
    pub scene_id: String,
    /// Who acted.
    pub actor: String,
    /// When.
    pub timestamp: Millis,
    /// The time of the game; `null` where nobody says.
    pub game_time: Data,
    /// What was tried: not interpreted.
    pub actions: Vec<Value>,
    /// What happened.
    pub events: Vec<Event>,
    /// How the state changed.
    pub deltas: Vec<Delta>,
    /// What a model was asked and said.
    pub llm_context: Option<LlmContext>,
    /// What there is in the turn, for a quick look.
    pub summary: Summary,
    /// Whether deltas were applied that did not fit; see [`Applier::lenient`](super::Applier::lenient).
    pub lenient: bool,
    /// The turns that this one takes back or brings back.
    pub(super) rewind: Option<Rewind>,
    /// Members that are not known here.
    pub extra: Object,
    /// Whether the deltas are those that were given, and not those of the events.
    pub(super) given: bool,
}

/// What an undo or a redo did: the state after it is that after another turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewind {
    pub(super) is_undo: bool,
    pub(super) to: u64,
    /// Members that are not known here.
    pub(super) extra: Object,
}

/// What a model was asked in a turn, and said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LlmContext {
    /// The text that it read.
    pub prompt: String,
    /// The text that it wrote.
    pub response: String,
    /// The seed, where there was one: any number, with its digits.
    pub seed: Option<Number>,
    /// The model.
    pub model: String,
    /// Members that are not known here.
    pub extra: Object,
}

/// A turn at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many deltas there are.
    pub delta_count: u64,
    /// What they change, each target once, in their order.
    pub targets_modified: Vec<DeltaTarget>,
    /// The first changes, for people.
    pub significant_changes: Vec<String>,
    /// Members that are not known here.
    pub extra: Object,
}

impl TurnRecord {
    /// A turn of an actor, with nothing in it yet.
    pub fn new(actor: impl Into<String>) -> Self {
        Self { actor: actor.into(), ..Self::default() }
    }

    /// The turn at a moment.
    pub fn at(self, timestamp: Millis) -> Self {
        Self { timestamp, ..self }
    }

    /// The turn with another event, from which its deltas are made.
    pub fn with_event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// The turn with these deltas. Its events then only say what they come from. O(deltas).
    pub fn with_deltas(self, deltas: impl IntoIterator<Item = Delta>) -> Self {
        Self { deltas: deltas.into_iter().collect(), given: true, ..self }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("turnId", self.turn_id);
        object.put("sessionId", self.session_id.as_str());
        object.put("sceneId", self.scene_id.as_str());
        object.put("actor", self.actor.as_str());
        object.put("timestamp", self.timestamp.get());
        object.put("gameTime", &self.game_time);
        object.put("actions", self.actions.clone());
        object.put("events", self.events.iter().map(Event::to_json).collect::<Value>());
        object.put("deltas", self.deltas.iter().map(Delta::to_json).collect::<Value>());
        object.put_some("llmContext", self.llm_context.as_ref().map(LlmContext::to_json));
        object.put("summary", self.summary.to_json());
        object.put_some("lenient", self.lenient.then_some(true));
        object.put_some("rewind", self.rewind.as_ref().map(Rewind::to_json));
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Reads the wire form. What is absent is empty, and filled in when the turn is pushed; without
    /// `deltas` these are made from the events. Deltas without `turnId`, `sequence` or `timestamp`
    /// take them from the turn. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a member of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a turn")?;
        let turn_id = fields.u64("turnId")?.unwrap_or_default();
        let deltas = listed(&mut fields, "deltas", Delta::from_json)?;
        let rewind = fields.nested("rewind", Rewind::from_json)?;
        let mut turn = Self {
            turn_id,
            session_id: fields.string("sessionId")?.unwrap_or_default(),
            scene_id: fields.string("sceneId")?.unwrap_or_default(),
            actor: fields.string("actor")?.unwrap_or_default(),
            timestamp: Millis::new(fields.i64("timestamp")?.unwrap_or_default()),
            game_time: fields.take("gameTime").map(Data::from).unwrap_or_default(),
            actions: fields.array("actions")?.unwrap_or_default(),
            events: listed(&mut fields, "events", Event::from_json)?.unwrap_or_default(),
            given: deltas.is_some(),
            deltas: deltas.unwrap_or_default(),
            llm_context: fields.nested("llmContext", LlmContext::from_json)?,
            summary: fields.nested("summary", Summary::from_json)?.unwrap_or_default(),
            lenient: fields.bool("lenient")?.unwrap_or_default(),
            rewind,
            extra: fields.rest(),
        };
        for (sequence, delta) in (1..).zip(&mut turn.deltas) {
            if delta.turn_id == 0 {
                delta.turn_id = turn_id;
            }
            if delta.sequence == 0 {
                delta.sequence = sequence;
            }
            if delta.timestamp == Millis::default() {
                delta.timestamp = turn.timestamp;
            }
        }
        Ok(turn)
    }
}

serde_through_json!(TurnRecord);

fn listed<T>(
    fields: &mut Fields,
    key: &str,
    read: impl Fn(Value) -> Result<T>,
) -> Result<Option<Vec<T>>> {
    let Some(values) = fields.array(key)? else { return Ok(None) };
    let read = |(index, value)| read(value).map_err(|error| error.under(index).under(key));
    values.into_iter().enumerate().map(read).collect::<Result<_>>().map(Some)
}

impl Rewind {
    fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("kind", if self.is_undo { "undo" } else { "redo" });
        object.put("to", self.to);
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a rewind")?;
        let kind = Fields::required(fields.string("kind")?, "kind", "undo or redo")?;
        let to = Fields::required(fields.u64("to")?, "to", "a turn")?;
        Ok(Self { is_undo: kind == "undo", to, extra: fields.rest() })
    }
}

impl LlmContext {
    fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("prompt", self.prompt.as_str());
        object.put("response", self.response.as_str());
        object.put_some("seed", self.seed.clone().map(Value::Number));
        object.put("model", self.model.as_str());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "an LLM context")?;
        Ok(Self {
            prompt: fields.string("prompt")?.unwrap_or_default(),
            response: fields.string("response")?.unwrap_or_default(),
            seed: fields.number("seed")?,
            model: fields.string("model")?.unwrap_or_default(),
            extra: fields.rest(),
        })
    }
}

impl Summary {
    /// The summary of some deltas. O(deltas), times the targets that they name.
    pub fn of(deltas: &[Delta]) -> Self {
        let mut targets_modified: Vec<DeltaTarget> = Vec::new();
        for delta in deltas {
            if !targets_modified.contains(&delta.target) {
                targets_modified.push(delta.target.clone());
            }
        }
        Self {
            delta_count: deltas.len() as u64,
            targets_modified,
            significant_changes: deltas.iter().take(MOST_CHANGES).map(said).collect(),
            extra: Object::new(),
        }
    }

    fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("deltaCount", self.delta_count);
        let targets = self.targets_modified.iter().map(DeltaTarget::as_str);
        object.put("targetsModified", targets.collect::<Value>());
        let changes = self.significant_changes.iter().map(String::as_str);
        object.put("significantChanges", changes.collect::<Value>());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a summary")?;
        let targets = fields.strings("targetsModified")?.unwrap_or_default();
        Ok(Self {
            delta_count: fields.u64("deltaCount")?.unwrap_or_default(),
            targets_modified: targets.into_iter().map(DeltaTarget::from).collect(),
            significant_changes: fields.strings("significantChanges")?.unwrap_or_default(),
            extra: fields.rest(),
        })
    }
}

/// A change in words: `npc /bo/mood: "calm" → "angry"`.
fn said(delta: &Delta) -> String {
    let mut text = format!("{} {}", delta.target, delta.path);
    let brief = |value: Option<&Data>| match shown(value) {
        text if text.chars().count() > 24 => text.chars().take(23).chain(['…']).collect(),
        text => text,
    };
    let (previous, new) = (brief(delta.previous_value.as_ref()), brief(delta.new_value.as_ref()));
    // Writing to a string cannot fail.
    let _ = match (&delta.previous_value, &delta.new_value) {
        (Some(_), Some(_)) => write!(text, ": {previous} → {new}"),
        _ => write!(
            text,
            ": {} {}",
            delta.operation.as_str(),
            if delta.new_value.is_some() { new } else { previous }
        ),
    };
    text
}
