use std::sync::Arc;

use serde::Serialize;

use super::{Message, Messages, message::PieceSource};

use crate::{
    id::{FacetId, FrameSeq},
    json::{Object, ObjectExt, Value},
    snapshot::{ChunkRef, FrameSnapshot, SnapshotIdentity},
    text::{TextRange, common_prefix},
    tokens::TokenCounter,
};

crate::json::serialize_through_json!(RenderedContext);

/// The messages for a model, with an owner for every byte.
///
/// Messages of frames that a history has packed are shared with the contexts that were rendered
/// before and are still there. So a clone costs little, and so does the next context.
#[derive(Clone, Debug)]
pub struct RenderedContext {
    pub(super) id: String,
    pub(super) messages: Messages,
    pub(super) tail: Option<Arc<FrameSnapshot>>,
    pub(super) tokens: ContextTokens,
}

/// Who a run of bytes in a message belongs to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Owner {
    /// A chunk of the context's tail.
    Tail {
        /// The context.
        context: String,
        /// The chunk's index in the tail.
        index: usize,
        /// The facets that wrote it.
        facet_ids: Vec<FacetId>,
    },
    /// What belongs to no frame, by name: `system_prompt`, `separator`.
    Framing(&'static str),
    /// A chunk of a frame.
    #[serde(untagged)]
    Chunk {
        /// The frame.
        frame: FrameSeq,
        /// The chunk's index in the frame's snapshot.
        chunk: usize,
        /// The facets that wrote it; empty for separators and turn markers.
        facet_ids: Vec<FacetId>,
    },
    /// A chunk of a block that stands for frames.
    #[serde(untagged)]
    Block {
        /// The id of the block.
        block: Arc<str>,
        /// The chunk's index in what the block rendered to.
        chunk: usize,
        /// The facets that wrote it: the block's own.
        facet_ids: Vec<FacetId>,
    },
    /// A part of a request that was recorded whole.
    #[serde(untagged)]
    Recorded {
        /// The facet: `tool:NAME` for a tool definition, `parameter:NAME`, `system`, and
        /// `message:INDEX` for a message.
        #[serde(rename = "recorded")]
        facet: FacetId,
        /// The frame of the message; `None` for what is in no frame, as a tool definition.
        #[serde(skip_serializing_if = "Option::is_none")]
        frame: Option<FrameSeq>,
    },
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

impl RenderedContext {
    /// The id that the caller gave.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The messages in order.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// What the model sees besides frames: ambient facets, pending activations, the prefill.
    pub fn tail(&self) -> Option<&Arc<FrameSnapshot>> {
        self.tail.as_ref()
    }

    /// The message that holds a frame, in O(log n); `None` where the context does not show it.
    pub fn message_of(&self, frame: FrameSeq) -> Option<usize> {
        self.messages.of_frame(frame)
    }

    /// The frames that show something, rising, each with its message. O(frames) for all of them.
    pub fn frame_to_message(&self) -> impl Iterator<Item = (FrameSeq, usize)> {
        self.messages.iter().enumerate().flat_map(|(index, message)| {
            message.pieces.iter().filter_map(move |piece| Some((piece.from.frame()?, index)))
        })
    }

    /// What the context costs.
    pub fn tokens(&self) -> ContextTokens {
        self.tokens
    }

    /// How many tokens of this context are an unchanged prefix of `previous`, the request before:
    /// those of the messages that are the same from the first on, each with its framing, and of the
    /// part of the next one that begins alike. O(length of that prefix), but for messages that both
    /// share.
    pub fn unchanged_prefix(
        &self,
        previous: &Self,
        framing: ProviderFraming,
        counter: &dyn TokenCounter,
    ) -> u64 {
        let (shared, mut tokens) = self.messages.shared_prefix(&previous.messages);
        tokens += framing.per_message * shared as u64;
        for (message, before) in self.messages.from(shared).zip(previous.messages.from(shared)) {
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
    /// O(chunks of the message).
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
    /// framing texts between them. Nothing is copied but the owners. O(chunks) for all of them.
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
    /// say nothing of it are passed over. O(frames) for all of them.
    pub fn identities(&self) -> impl Iterator<Item = &Arc<SnapshotIdentity>> {
        let pieces = self.messages.iter().flat_map(|message| &message.pieces);
        pieces.filter_map(|piece| piece.from.snapshot()?.identity())
    }

    /// Who the byte at `offset` of the message with index `message` belongs to; `None` outside.
    /// Runs in O(log n) time over messages and over the message's frames and chunks.
    pub fn owner_of(&self, message: usize, offset: usize) -> Option<Owner> {
        let message = self.messages.get(message)?;
        let after = message.pieces.partition_point(|piece| piece.start <= offset);
        let piece = message.pieces.get(after.checked_sub(1)?)?;
        let inside = offset - piece.start;
        let chunk = match &piece.from {
            PieceSource::Framing(name, text) => {
                return (inside < text.len()).then_some(Owner::Framing(name));
            }
            PieceSource::Frame(_, snapshot) | PieceSource::Block(_, _, snapshot) => {
                snapshot.chunk_at(inside)?
            }
            PieceSource::Tail(snapshot, range) if inside < range.len() => {
                snapshot.chunk_at(range.start() + inside)?
            }
            PieceSource::Tail(..) => return None,
        };
        Some(piece.owner(chunk, &self.id))
    }

    /// The context as JSON. Offsets are in UTF-8 bytes of the message's `content`. Copies all
    /// texts. O(size).
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
        let index = self.frame_to_message();
        let index: Object =
            index.map(|(frame, at)| (frame.to_string(), Value::from(at as u64))).collect();
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
