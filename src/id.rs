//! Ids and open names: cheap to clone, compared by their text.

use std::fmt;

use afterimage_json::name_type;

pub use afterimage_json::Millis;
pub use afterimage_timeline::DeltaTarget;

name_type! {
    /// The id of a facet. Any text; unique among the facets that hold at one time.
    FacetId {}
}

name_type! {
    /// The type of a facet: an open vocabulary with the common types built in.
    FacetType {
        /// Something that happened or was said to the agent.
        EVENT = "event",
        /// What a program says in the user's place.
        NOTICE = "notice",
        /// What the agent said.
        SPEECH = "speech",
        /// What the agent thought.
        THOUGHT = "thought",
        /// A tool call of the agent: see [`crate::veil::Call`].
        ACTION = "action",
        /// The result of a tool call.
        RESULT = "result",
        /// A state that holds until it changes; rendered when it changes.
        STATE = "state",
        /// What holds now and floats at the end of a context; never rendered in a frame.
        AMBIENT = "ambient",
        /// Instructions of the operator.
        SYSTEM = "system",
        /// A summary that stands in for older history.
        SUMMARY = "summary",
        /// The definition of a tool, which a request offers to the model.
        TOOL = "tool",
        /// An image.
        IMAGE = "image",
        /// A block whose text the model cannot be quoted for: encrypted, binary, or a provider's own.
        OPAQUE = "opaque",
        /// A record of the source that was not understood. Kept, never rendered.
        UNKNOWN = "unknown",
    }
}

name_type! {
    /// The type of a chunk: the type of its facet, or [`ChunkType::FORMATTING`].
    ChunkType {
        /// Separators, tags and turn markers.
        FORMATTING = "formatting",
        /// Text of an event.
        EVENT = "event",
        /// Text of a notice.
        NOTICE = "notice",
        /// Text of a speech.
        SPEECH = "speech",
        /// Text of a thought.
        THOUGHT = "thought",
        /// Text of an action.
        ACTION = "action",
        /// Text of a result.
        RESULT = "result",
        /// Text of a state.
        STATE = "state",
        /// Text of an ambient facet.
        AMBIENT = "ambient",
        /// Text of the operator.
        SYSTEM = "system",
        /// Text of a summary.
        SUMMARY = "summary",
        /// What stands for an image.
        IMAGE = "image",
        /// What stands for an opaque block.
        OPAQUE = "opaque",
    }
}

impl From<&FacetType> for ChunkType {
    fn from(facet_type: &FacetType) -> Self {
        Self(facet_type.0.clone())
    }
}

/// The position of a frame in its history. Sequences rise; in a history that was cut out of a file
/// of several sessions they leave gaps.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct FrameSeq(u64);

impl FrameSeq {
    /// The sequence with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sequence after this one; `None` past `u64::MAX`.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl From<u64> for FrameSeq {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for FrameSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who speaks a chunk or a message to the model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and everything that the environment reports.
    User,
    /// The agent itself.
    Assistant,
    /// The operator.
    System,
}

impl Role {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }

    /// The role with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "system" => Some(Role::System),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
