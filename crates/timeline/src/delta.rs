use super::Data;
use crate::{
    DeltaTarget, Millis, Result,
    json::{Fields, Object, ObjectExt, Path, Value, from_value, serde_through_json},
};

/// One change to the state, with the value before and after it.
///
/// A value that is `None` is absent, which is not `null`. The nine operations and what their values
/// hold are said in [`DeltaOperation`].
///
/// ```
/// use afterimage_timeline::{json::Path, Applier, Data, Delta, DeltaOperation, Targets};
///
/// let before = Data::from_iter([("player", Data::from_iter([("hp", Data::from(10_u64))]))]);
/// let hurt = Delta::new("player", DeltaOperation::Decrement, Path::of_keys(["hp"]))
///     .replacing(Data::from(10_u64), Data::from(7_u64));
///
/// let targets = Targets::default();
/// let applier = Applier::strict(&targets);
/// let mut state = before.clone();
/// applier.apply(&mut state, &hurt)?;
/// assert_eq!(state.to_string(), r#"{"player":{"hp":7}}"#);
/// applier.apply(&mut state, &hurt.reversed()?)?;
/// assert_eq!(state, before);
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Unique in its log: `{sessionId}-{turnId}-{sequence}`, or whatever a mapper or another
    /// program gave. Empty until the turn is pushed.
    pub delta_id: String,
    /// The turn that it belongs to.
    pub turn_id: u64,
    /// Its place in the turn, from 1.
    pub sequence: u64,
    /// When it was made.
    pub timestamp: Millis,
    /// What it changes: where [`path`](Self::path) begins.
    pub target: DeltaTarget,
    /// How.
    pub operation: DeltaOperation,
    /// Where, below the target's place in the state.
    pub path: Path,
    /// The value before.
    pub previous_value: Option<Data>,
    /// The value after.
    pub new_value: Option<Data>,
    /// The number of elements that the array had before: there where the values of an array's
    /// change hold the elements that come or go, and not the whole array.
    pub previous_length: Option<u64>,
    /// The type of the event that caused it.
    pub cause: String,
    /// The event that caused it; empty where none is named. It need not be in the log.
    pub event_id: String,
    /// Members that are not known here.
    pub extra: Object,
}

/// What a delta does at its path.
///
/// `previous` and `new` are `previousValue` and `newValue`. An array's change comes in two forms:
/// with `previousLength` the values hold the elements alone; without it they hold the whole array
/// before and after.
///
/// Other programs write `insert` without either: `new` alone, as below, and nothing that tells how
/// long the array was. Such an insert always inserts, so that one beside an equal element is not
/// lost; applied twice it inserts twice. A log applies each delta id once. Beside the whole array
/// before as `previous` it is exact again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeltaOperation {
    /// `previous` becomes `new`. Either may be absent in an object.
    Set,
    /// A number becomes another, exactly `new`.
    Increment,
    /// As increment.
    Decrement,
    /// Elements come to the end of an array: `new` holds them.
    Append,
    /// Elements leave an array: `previous` is `{index, items}`, or `{index, item}` for one.
    Remove,
    /// Elements come into an array: `new` is `{index, item}`, or `{index, items}` for several.
    Insert,
    /// A member leaves an object, or an element an array (with `previousLength`).
    Delete,
    /// An entity comes into being, where nothing was before.
    Create,
    /// An entity goes, as by delete.
    Destroy,
}

impl DeltaOperation {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Increment => "increment",
            Self::Decrement => "decrement",
            Self::Append => "append",
            Self::Remove => "remove",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Destroy => "destroy",
        }
    }
}

impl Delta {
    /// A delta that has a place and says what it does, and nothing else yet.
    pub fn new(target: impl Into<DeltaTarget>, operation: DeltaOperation, path: Path) -> Self {
        Self {
            delta_id: String::new(),
            turn_id: 0,
            sequence: 0,
            timestamp: Millis::default(),
            target: target.into(),
            operation,
            path,
            previous_value: None,
            new_value: None,
            previous_length: None,
            cause: String::new(),
            event_id: String::new(),
            extra: Object::new(),
        }
    }

    /// The delta with these values; `None` is absent.
    pub fn replacing(
        self,
        previous: impl Into<Option<Data>>,
        new: impl Into<Option<Data>>,
    ) -> Self {
        Self { previous_value: previous.into(), new_value: new.into(), ..self }
    }

    /// The delta as the change of an array that had `previous_length` elements before.
    pub fn of_length(self, previous_length: usize) -> Self {
        Self { previous_length: Some(previous_length as u64), ..self }
    }

    /// The delta with its cause.
    pub fn caused_by(self, cause: impl Into<String>, event_id: impl Into<String>) -> Self {
        Self { cause: cause.into(), event_id: event_id.into(), ..self }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("deltaId", self.delta_id.as_str());
        object.put("turnId", self.turn_id);
        object.put("sequence", self.sequence);
        object.put("timestamp", self.timestamp.get());
        object.put("target", self.target.as_str());
        object.put("operation", self.operation.as_str());
        object.put("path", self.path.to_json());
        object.put_some("previousValue", self.previous_value.as_ref());
        object.put_some("newValue", self.new_value.as_ref());
        object.put_some("previousLength", self.previous_length);
        object.put("cause", self.cause.as_str());
        object.put("eventId", self.event_id.as_str());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Reads the wire form. Only `target`, `operation` and `path` must be there. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a member of the wrong type, and for an
    /// operation that is none.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a delta")?;
        let operation = fields.nested("operation", from_value)?;
        let operation = Fields::required(operation, "operation", "an operation")?;
        let target = Fields::required(fields.string("target")?, "target", "a target")?;
        let path = fields.nested("path", from_value)?;
        let path = Fields::required(path, "path", "a path (an array)")?;
        Ok(Self {
            delta_id: fields.string("deltaId")?.unwrap_or_default(),
            turn_id: fields.u64("turnId")?.unwrap_or_default(),
            sequence: fields.u64("sequence")?.unwrap_or_default(),
            timestamp: Millis::new(fields.i64("timestamp")?.unwrap_or_default()),
            target: target.into(),
            operation,
            path,
            previous_value: fields.take("previousValue").map(Data::from),
            new_value: fields.take("newValue").map(Data::from),
            previous_length: fields.u64("previousLength")?,
            cause: fields.string("cause")?.unwrap_or_default(),
            event_id: fields.string("eventId")?.unwrap_or_default(),
            extra: fields.rest(),
        })
    }
}

serde_through_json!(Delta);
