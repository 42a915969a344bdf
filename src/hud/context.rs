use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use crate::{
    id::{FacetId, FrameSeq, Role},
    json::{Object, ObjectExt, Value},
    snapshot::{ChunkRef, FrameSnapshot, SnapshotIdentity, Substitution, SubstitutionKind},
    text::{TextRange, common_prefix},
    tokens::TokenCounter,
};

crate::json::serialize_through_json!(RenderedContext);

/// The messages for a model, with an owner for every byte.
#[derive(Clone, Debug)]
pub struct RenderedContext {
    pub(super) id: String,
    pub(super) messages: Vec<Message>,
    pub(super) tail: Option<Arc<FrameSnapshot>>,
    pub(super) frame_to_message: BTreeMap<FrameSeq, usize>,
    pub(super) tokens: ContextTokens,
}

/// One message of a context.
#[derive(Clone, Debug)]
pub struct Message {
    pub(super) role: Role,
    pub(super) frames: Option<(FrameSeq, FrameSeq)>,
    pub(super) pieces: Vec<Piece>,
    pub(super) tokens: u64,
}

/// A run of bytes of a message that comes from one place.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Where the run begins in the message.
    pub(super) start: usize,
    pub(super) from: PieceSource,
}

#[derive(Clone, Debug)]
pub(super) enum PieceSource {
    Frame(FrameSeq, Arc<FrameSnapshot>),
    /// A range of the tail's text.
    Tail(Arc<FrameSnapshot>, TextRange),
    /// A block that stands for frames.
    Block(Substitution),
    Framing(&'static str, Arc<str>),
}

impl PieceSource {
    fn text(&self) -> &str {
        match self {
            PieceSource::Frame(_, snapshot) => snapshot.text(),
            PieceSource::Tail(snapshot, range) => range.of(snapshot.text()),
            PieceSource::Block(block) => block.snapshot.text(),
            PieceSource::Framing(_, text) => text,
        }
    }
}

impl Piece {
    /// The chunks of the piece, each with where it begins in the message.
    fn chunks(&self) -> impl Iterator<Item = (usize, ChunkRef<'_>)> {
        let (snapshot, range) = match &self.from {
            PieceSource::Frame(_, snapshot) | PieceSource::Block(Substitution { snapshot, .. }) => {
                (Some(snapshot), TextRange::at(0, snapshot.text().len()))
            }
            PieceSource::Tail(snapshot, range) => (Some(snapshot), *range),
            PieceSource::Framing(..) => (None, TextRange::default()),
        };
        snapshot
            .into_iter()
            .flat_map(|snapshot| snapshot.chunks())
            .filter(move |chunk| {
                range.start() <= chunk.range().start() && chunk.range().end() <= range.end()
            })
            // A chunk without text where the tail is cut belongs to what it follows.
            .filter(move |chunk| {
                range.start() == 0
                    || chunk.range().start() > range.start()
                    || !chunk.range().is_empty()
            })
            .map(move |chunk| (self.start + chunk.range().start() - range.start(), chunk))
    }

    fn owner(&self, chunk: ChunkRef<'_>, context: &str) -> Owner {
        let facet_ids = chunk.owned_facet_ids().into_vec();
        match &self.from {
            PieceSource::Frame(frame, _) => {
                Owner::Chunk { frame: *frame, chunk: chunk.index(), facet_ids }
            }
            PieceSource::Block(block) => {
                Owner::Block { block: Arc::clone(&block.block), chunk: chunk.index(), facet_ids }
            }
            _ => Owner::Tail { context: context.to_owned(), index: chunk.index(), facet_ids },
        }
    }
}

/// Who a run of bytes in a message belongs to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A chunk of a frame.
    Chunk {
        /// The frame.
        frame: FrameSeq,
        /// The chunk's index in the frame's snapshot.
        chunk: usize,
        /// The facets that wrote it; empty for separators and turn markers.
        facet_ids: Vec<FacetId>,
    },
    /// A chunk of the context's tail.
    Tail {
        /// The context.
        context: String,
        /// The chunk's index in the tail.
        index: usize,
        /// The facets that wrote it.
        facet_ids: Vec<FacetId>,
    },
    /// A chunk of a block that stands for frames.
    Block {
        /// The id of the block.
        block: Arc<str>,
        /// The chunk's index in what the block rendered to.
        chunk: usize,
        /// The facets that wrote it: the block's own.
        facet_ids: Vec<FacetId>,
    },
    /// A part of a request that was recorded whole.
    Recorded {
        /// The frame of the message; `None` for what is in no frame, as a tool definition.
        frame: Option<FrameSeq>,
        /// The facet: `tool:NAME` for a tool definition, `parameter:NAME`, `system`, and
        /// `message:INDEX` for a message.
        facet: FacetId,
    },
    /// What belongs to no frame, by name: `system_prompt`, `separator`.
    Framing(&'static str),
}

/// A run of bytes of a message with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where the run stands in the message.
    pub range: TextRange,
    /// Who it belongs to.
    pub owner: Owner,
}

/// A run of bytes of a message as it was captured.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The text; empty where a chunk has none.
    pub text: &'a str,
    /// Who it belongs to.
    pub owner: Owner,
    /// The chunk; `None` for framing.
    pub chunk: Option<ChunkRef<'a>>,
}

/// What a context costs: figures that must not be mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextTokens {
    /// The sum of the counts of all chunks and framing texts.
    pub chunks: u64,
    /// The sum of the exact counts of each message's whole text.
    pub exact: u64,
    /// What the provider adds around the messages.
    pub framing: u64,
    /// `exact` and `framing`: what the request costs.
    pub total: u64,
}

/// The tokens that a provider adds around messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ProviderFraming {
    /// For each message.
    pub per_message: u64,
    /// Once, to prime the reply.
    pub per_reply: u64,
}

impl ProviderFraming {
    /// Four for each message (three marks and its role) and three for the reply, as OpenAI
    /// documents for its chat models.
    pub const CHAT: Self = Self { per_message: 4, per_reply: 3 };
}

impl Default for ProviderFraming {
    /// [`ProviderFraming::CHAT`]
    fn default() -> Self {
        Self::CHAT
    }
}

impl Message {
    /// Who speaks it.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The first and the last frame in it; `None` for the system prompt and the tail.
    pub fn frames(&self) -> Option<(FrameSeq, FrameSeq)> {
        self.frames
    }

    /// The text. Borrowed where the message comes from one place, as one frame.
    pub fn content(&self) -> Cow<'_, str> {
        match self.pieces.as_slice() {
            [piece] => piece.from.text().into(),
            pieces => pieces.iter().map(|piece| piece.from.text()).collect::<String>().into(),
        }
    }

    /// The length of the text in bytes.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.start + piece.from.text().len())
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a block stands here for its frames, or what was shortened.
    pub fn is_block(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece { from: PieceSource::Block(_), .. }))
    }

    /// What stands here in place of frames; `None` where they stand for themselves.
    pub fn substitution_kind(&self) -> Option<SubstitutionKind> {
        match &self.pieces.first()?.from {
            PieceSource::Block(block) => Some(block.stands),
            _ => None,
        }
    }

    /// The exact count of the whole text.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The chunks of the message's frames and tail, in order, each with its frame where it has
    /// one. Framing texts are no chunks.
    pub fn chunks(&self) -> impl Iterator<Item = (Option<FrameSeq>, ChunkRef<'_>)> {
        self.pieces.iter().flat_map(|piece| {
            let frame = match piece.from {
                PieceSource::Frame(frame, _) => Some(frame),
                _ => None,
            };
            piece.chunks().map(move |(_, chunk)| (frame, chunk))
        })
    }
}

impl RenderedContext {
    /// The id that the caller gave.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The messages in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What the model sees besides frames: ambient facets, pending activations, the prefill.
    pub fn tail(&self) -> Option<&Arc<FrameSnapshot>> {
        self.tail.as_ref()
    }

    /// The message that holds a frame; `None` where the frame shows nothing.
    pub fn message_of(&self, frame: FrameSeq) -> Option<usize> {
        self.frame_to_message.get(&frame).copied()
    }

    /// The frames that show something, each with its message.
    pub fn frame_to_message(&self) -> &BTreeMap<FrameSeq, usize> {
        &self.frame_to_message
    }

    /// What the context costs.
    pub fn tokens(&self) -> ContextTokens {
        self.tokens
    }

    /// How many tokens of this context are an unchanged prefix of `previous`, the request before:
    /// those of the messages that are the same from the first on, each with its framing, and of the
    /// part of the next one that begins alike.
    pub fn unchanged_prefix(
        &self,
        previous: &Self,
        framing: ProviderFraming,
        counter: &dyn TokenCounter,
    ) -> u64 {
        let mut tokens = 0;
        for (message, before) in self.messages.iter().zip(&previous.messages) {
            let (now, before_text) = (message.content(), before.content());
            if message.role != before.role {
                break;
            }
            if now != before_text {
                let same = common_prefix(&now, &before_text);
                tokens += counter.count(now.get(..same).unwrap_or_default()) as u64;
                break;
            }
            tokens += message.tokens + framing.per_message;
        }
        tokens
    }

    /// The spans of a message: in order, without gap or overlap. Chunks without text have none.
    pub fn spans(&self, message: &Message) -> Vec<Span> {
        let mut spans = Vec::new();
        for piece in &message.pieces {
            if let PieceSource::Framing(name, text) = &piece.from {
                let range = TextRange::at(piece.start, text.len());
                spans.push(Span { range, owner: Owner::Framing(name) });
            }
            let chunks = piece.chunks().filter(|(_, chunk)| !chunk.range().is_empty());
            spans.extend(chunks.map(|(start, chunk)| Span {
                range: TextRange::at(start, chunk.range().len()),
                owner: piece.owner(chunk, &self.id),
            }));
        }
        spans
    }

    /// A message from front to back: every chunk with its text, the empty ones too, and the
    /// framing texts between them. Nothing is copied but the owners.
    pub fn runs<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = Run<'a>> {
        message.pieces.iter().flat_map(move |piece| {
            let framing = match &piece.from {
                PieceSource::Framing(name, text) => {
                    Some(Run { text, owner: Owner::Framing(name), chunk: None })
                }
                _ => None,
            };
            let chunks = piece.chunks().map(move |(_, chunk)| Run {
                text: chunk.content(),
                owner: piece.owner(chunk, &self.id),
                chunk: Some(chunk),
            });
            framing.into_iter().chain(chunks)
        })
    }

    /// What made the snapshots of the context, message by message and the tail's last; those that
    /// say nothing of it are passed over.
    pub fn identities(&self) -> impl Iterator<Item = &Arc<SnapshotIdentity>> {
        self.messages.iter().flat_map(|message| &message.pieces).filter_map(|piece| {
            match &piece.from {
                PieceSource::Frame(_, snapshot)
                | PieceSource::Tail(snapshot, _)
                | PieceSource::Block(Substitution { snapshot, .. }) => snapshot.identity(),
                PieceSource::Framing(..) => None,
            }
        })
    }

    /// Who the byte at `offset` of the message with index `message` belongs to; `None` outside.
    /// Runs in O(log n) time over the message's frames and chunks.
    pub fn owner_of(&self, message: usize, offset: usize) -> Option<Owner> {
        let message = self.messages.get(message)?;
        let after = message.pieces.partition_point(|piece| piece.start <= offset);
        let piece = message.pieces.get(after.checked_sub(1)?)?;
        let inside = offset - piece.start;
        let chunk = match &piece.from {
            PieceSource::Framing(name, text) => {
                return (inside < text.len()).then_some(Owner::Framing(name));
            }
            PieceSource::Frame(_, snapshot) | PieceSource::Block(Substitution { snapshot, .. }) => {
                snapshot.chunk_at(inside)?
            }
            PieceSource::Tail(snapshot, range) if inside < range.len() => {
                snapshot.chunk_at(range.start() + inside)?
            }
            PieceSource::Tail(..) => return None,
        };
        Some(piece.owner(chunk, &self.id))
    }

    /// The context as JSON. Offsets are in UTF-8 bytes of the message's `content`.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put(
            "messages",
            self.messages.iter().map(|message| self.message_json(message)).collect::<Value>(),
        );
        let ContextTokens { chunks, exact, framing, total } = self.tokens;
        let mut tokens = Object::new();
        for (key, count) in
            [("chunks", chunks), ("exact", exact), ("framing", framing), ("total", total)]
        {
            tokens.put(key, count);
        }
        object.put("tokens", tokens);
        let index = self.frame_to_message.iter();
        let index: Object =
            index.map(|(frame, at)| (frame.to_string(), Value::from(*at as u64))).collect();
        object.put("frameToMessage", index);
        object.into()
    }

    fn message_json(&self, message: &Message) -> Value {
        let mut object = Object::new();
        object.put("role", message.role.as_str());
        object.put("content", message.content().as_ref());
        if let Some((from, to)) = message.frames {
            let mut frames = Object::new();
            frames.put("from", from.get());
            frames.put("to", to.get());
            object.put("frames", frames);
        }
        object.put("spans", self.spans(message).iter().map(Span::to_json).collect::<Value>());
        object.put("tokens", message.tokens);
        object.into()
    }
}
