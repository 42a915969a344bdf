//! Ids and open names: cheap to clone, compared by their text.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

/// Declares an open string type over a shared or static text.
macro_rules! name_type {
    ($(#[$meta:meta])* $name:ident { $($(#[$cmeta:meta])* $constant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name(Text);

        impl $name {
            $($(#[$cmeta])* pub const $constant: Self = Self(Text::Static(&$text));)*

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $(if text == $text { return Self::$constant; })*
                Self(Text::Shared(Arc::from(text)))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                self.as_str()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.same(&other.0) || self.as_str() == other.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl Eq for $name {}

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

#[derive(Clone)]
enum Text {
    /// A thin reference, so that a name is no wider than a shared text.
    Static(&'static &'static str),
    Shared(Arc<str>),
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }

    fn same(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_str(), other.as_str())
    }
}

name_type! {
    /// The id of a facet. Any text; unique among the facets that hold at one time.
    FacetId {}
}

name_type! {
    /// The type of a facet: an open vocabulary with the common types built in.
    FacetType {
        /// Something that happened or was said to the agent.
        EVENT = "event",
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

#[cfg(feature = "timeline")]
name_type! {
    /// What a delta changes: an open vocabulary. Which place of the state a target stands for is
    /// said by a table, [`Targets`](crate::timeline::Targets).
    DeltaTarget {
        /// The player's character.
        PLAYER = "player",
        /// The characters of the game.
        NPC = "npc",
        /// The locations of the world.
        LOCATION = "location",
        /// The current scene.
        SCENE = "scene",
        /// The world.
        WORLD = "world",
        /// The quests.
        QUEST = "quest",
        /// Relationships, which are kept with the characters.
        RELATIONSHIP = "relationship",
        /// What is known. Roots at the whole state, so that a path names who knows it.
        KNOWLEDGE = "knowledge",
        /// The player's things.
        INVENTORY = "inventory",
        /// The time of the game.
        TIME = "time",
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

/// A moment in milliseconds since the Unix epoch. The library has no clock: the caller passes it.
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
pub struct Millis(i64);

impl Millis {
    /// The moment this many milliseconds after the epoch.
    pub const fn new(millis: i64) -> Self {
        Self(millis)
    }

    /// The milliseconds since the epoch.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<std::time::SystemTime> for Millis {
    /// Saturates at the ends of `i64`.
    fn from(time: std::time::SystemTime) -> Self {
        let millis = |duration: std::time::Duration| i64::try_from(duration.as_millis());
        Self(match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => millis(after).unwrap_or(i64::MAX),
            Err(before) => millis(before.duration()).map_or(i64::MIN, i64::wrapping_neg),
        })
    }
}
