use smallvec::SmallVec;

use crate::{
    id::{ChunkType, FacetId, Role},
    json::Object,
    text::TextRange,
};

/// The facets of a chunk; one fits without an allocation.
pub type FacetIds = SmallVec<[FacetId; 1]>;

/// Which part of a message a chunk is, so that an export finds the structure that text alone lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// Plain text.
    #[default]
    Text,
    /// A tool call. The text of a native chunk is the call's arguments.
    Call {
        /// The provider's id of the call; ids repeat in real transcripts, and some have none.
        id: Option<Box<str>>,
        /// The tool's name.
        name: Box<str>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call that it answers.
        id: Option<Box<str>>,
    },
    /// The model's reasoning.
    Reasoning,
    /// An image; the text says what it stands for.
    Image,
    /// A block that has no text: encrypted, binary, or a provider's own. The text says so.
    Opaque,
    /// A recording of sound; the text says what it stands for.
    Audio,
    /// A file that the provider reads; the text says what it stands for.
    Document,
    /// A summary that a provider made of what came before.
    Compaction,
    /// The definition of a tool.
    ToolDefinition,
}

impl Part {
    /// The name of the part on the wire.
    pub fn kind(&self) -> &'static str {
        PartRef::from(self).kind()
    }
}

/// A [`Part`] that borrows: what a chunk says of itself, wherever it lies. Cheap to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PartRef<'a> {
    /// Plain text.
    #[default]
    Text,
    /// A tool call.
    Call {
        /// The provider's id of the call.
        id: Option<&'a str>,
        /// The tool's name.
        name: &'a str,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call that it answers.
        id: Option<&'a str>,
    },
    /// The model's reasoning.
    Reasoning,
    /// An image.
    Image,
    /// A block that has no text.
    Opaque,
    /// A recording of sound.
    Audio,
    /// A file that the provider reads.
    Document,
    /// A summary that a provider made of what came before.
    Compaction,
    /// The definition of a tool.
    ToolDefinition,
}

impl PartRef<'_> {
    /// The name of the part on the wire.
    pub const fn kind(self) -> &'static str {
        match self {
            PartRef::Text => "text",
            PartRef::Call { .. } => "call",
            PartRef::Result { .. } => "result",
            PartRef::Reasoning => "reasoning",
            PartRef::Image => "image",
            PartRef::Opaque => "opaque",
            PartRef::Audio => "audio",
            PartRef::Document => "document",
            PartRef::Compaction => "compaction",
            PartRef::ToolDefinition => "toolDefinition",
        }
    }

    /// The owned form. Copies ids and names.
    pub fn to_owned(self) -> Part {
        match self {
            PartRef::Text => Part::Text,
            PartRef::Call { id, name } => Part::Call { id: id.map(Box::from), name: name.into() },
            PartRef::Result { id } => Part::Result { id: id.map(Box::from) },
            PartRef::Reasoning => Part::Reasoning,
            PartRef::Image => Part::Image,
            PartRef::Opaque => Part::Opaque,
            PartRef::Audio => Part::Audio,
            PartRef::Document => Part::Document,
            PartRef::Compaction => Part::Compaction,
            PartRef::ToolDefinition => Part::ToolDefinition,
        }
    }
}

impl<'a> From<&'a Part> for PartRef<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text => PartRef::Text,
            Part::Call { id, name } => PartRef::Call { id: id.as_deref(), name },
            Part::Result { id } => PartRef::Result { id: id.as_deref() },
            Part::Reasoning => PartRef::Reasoning,
            Part::Image => PartRef::Image,
            Part::Opaque => PartRef::Opaque,
            Part::Audio => PartRef::Audio,
            Part::Document => PartRef::Document,
            Part::Compaction => PartRef::Compaction,
            Part::ToolDefinition => PartRef::ToolDefinition,
        }
    }
}

/// Where a chunk stands in the nesting of its frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// The depth, from zero.
    pub level: u32,
    /// The index of the chunk that this one is nested in.
    pub parent: Option<usize>,
    /// The indices of the chunks that are nested directly in this one, where they are named.
    pub children: Option<Vec<usize>>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
    /// Whether the wire form spells indices as strings, as the specification's type has it.
    pub(crate) spelled: bool,
}

impl Structure {
    /// A chunk at `level` in the chunk with index `parent`.
    pub fn new(level: u32, parent: Option<usize>) -> Self {
        Self { level, parent, ..Self::default() }
    }
}

/// A contiguous piece of rendered text with what is known of it: the owned form, as on the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedChunk {
    /// The rendered text.
    pub content: String,
    /// The tokens of `content` alone.
    pub tokens: u64,
    /// The facets that the text represents. `None` where nothing is said, empty where it is said
    /// that there are none.
    pub facet_ids: Option<FacetIds>,
    /// The type of the chunk.
    pub chunk_type: Option<ChunkType>,
    /// Who speaks it.
    pub role: Option<Role>,
    /// Which part of a message it is.
    pub part: Part,
    /// Members of the part's wire form that are not known here.
    pub part_extra: Object,
    /// Where it stands in the frame's nesting.
    pub structure: Option<Structure>,
    /// Free fields of whoever made the chunk.
    pub metadata: Option<Object>,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

/// A chunk inside its snapshot: everything but the text, which the snapshot holds once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) range: TextRange,
    pub(crate) tokens: u64,
    pub(crate) facets: Facets,
    pub(crate) chunk_type: Option<ChunkType>,
    pub(crate) role: Option<Role>,
    pub(crate) part: Part,
    /// What most chunks have not.
    pub(crate) rare: Option<Box<Rare>>,
}

/// The facets of a chunk inside its snapshot: narrower than a list, since most chunks have one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Facets {
    /// Nothing is said of facets.
    #[default]
    Unsaid,
    One(FacetId),
    /// None, or several.
    List(Box<[FacetId]>),
}

impl Facets {
    pub(crate) fn as_slice(&self) -> Option<&[FacetId]> {
        match self {
            Facets::Unsaid => None,
            Facets::One(facet) => Some(std::slice::from_ref(facet)),
            Facets::List(facets) => Some(facets),
        }
    }
}

impl From<Option<FacetIds>> for Facets {
    fn from(ids: Option<FacetIds>) -> Self {
        let Some(mut ids) = ids else { return Facets::Unsaid };
        if ids.len() == 1
            && let Some(facet) = ids.pop()
        {
            return Facets::One(facet);
        }
        Facets::List(ids.into_boxed_slice())
    }
}

const _: () = assert!(size_of::<Chunk>() <= 128, "a history holds many chunks");

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rare {
    pub(crate) structure: Option<Structure>,
    pub(crate) metadata: Option<Box<Object>>,
    /// Absent where it is empty.
    pub(crate) part_extra: Option<Box<Object>>,
    /// Absent where it is empty.
    pub(crate) extra: Option<Box<Object>>,
}

const _: () = assert!(size_of::<Rare>() <= 160, "each chunk that is nested has one");

impl Rare {
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// The chunk with this in it.
    pub(crate) fn onto(self, chunk: RenderedChunk) -> RenderedChunk {
        let Self { structure, metadata, part_extra, extra } = self;
        RenderedChunk {
            part_extra: part_extra.map(|extra| *extra).unwrap_or_default(),
            structure,
            metadata: metadata.map(|metadata| *metadata),
            extra: extra.map(|extra| *extra).unwrap_or_default(),
            ..chunk
        }
    }
}
