use std::{borrow::Cow, sync::Arc};

use smallvec::SmallVec;

use super::Owner;
use crate::{
    id::{FrameSeq, Role},
    snapshot::{ChunkRef, SharedSnapshot, SubstitutionKind},
    text::TextRange,
};

/// One message of a context.
#[derive(Clone, Debug)]
pub struct Message {
    pub(super) role: Role,
    pub(super) frames: Option<(FrameSeq, FrameSeq)>,
    pub(super) pieces: SmallVec<[Piece; 1]>,
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
    Frame(FrameSeq, SharedSnapshot),
    /// A range of the tail's text.
    Tail(SharedSnapshot, TextRange),
    /// A block that stands for frames.
    Block(Arc<str>, SubstitutionKind, SharedSnapshot),
    Framing(&'static str, Arc<str>),
}

impl PieceSource {
    pub(super) fn text(&self) -> &str {
        match self {
            PieceSource::Frame(_, snapshot) | PieceSource::Block(_, _, snapshot) => snapshot.text(),
            PieceSource::Tail(snapshot, range) => range.of(snapshot.text()),
            PieceSource::Framing(_, text) => text,
        }
    }

    /// The snapshot that it is of; `None` for framing.
    pub(super) fn snapshot(&self) -> Option<&SharedSnapshot> {
        match self {
            PieceSource::Frame(_, snapshot)
            | PieceSource::Tail(snapshot, _)
            | PieceSource::Block(_, _, snapshot) => Some(snapshot),
            PieceSource::Framing(..) => None,
        }
    }

    /// The frame that it shows.
    pub(super) fn frame(&self) -> Option<FrameSeq> {
        match self {
            PieceSource::Frame(frame, _) => Some(*frame),
            _ => None,
        }
    }
}

impl Piece {
    /// The chunks of the piece, each with where it begins in the message.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (usize, ChunkRef<'_>)> {
        let range = match &self.from {
            PieceSource::Tail(_, range) => *range,
            from => TextRange::at(0, from.text().len()),
        };
        self.from
            .snapshot()
            .into_iter()
            .flat_map(SharedSnapshot::chunks)
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

    pub(super) fn owner(&self, chunk: ChunkRef<'_>, context: &str) -> Owner {
        let facet_ids = chunk.owned_facet_ids().into_vec();
        match &self.from {
            PieceSource::Frame(frame, _) => {
                Owner::Chunk { frame: *frame, chunk: chunk.index(), facet_ids }
            }
            PieceSource::Block(block, ..) => {
                Owner::Block { block: Arc::clone(block), chunk: chunk.index(), facet_ids }
            }
            _ => Owner::Tail { context: context.to_owned(), index: chunk.index(), facet_ids },
        }
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

    /// The text. Borrowed where the message comes from one place, as one frame; else copied: O(its
    /// length).
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
        matches!(self.pieces.first(), Some(Piece { from: PieceSource::Block(..), .. }))
    }

    /// What stands here in place of frames; `None` where they stand for themselves.
    pub fn substitution_kind(&self) -> Option<SubstitutionKind> {
        match &self.pieces.first()?.from {
            PieceSource::Block(_, stands, _) => Some(*stands),
            _ => None,
        }
    }

    /// The exact count of the whole text.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The chunks of the message's frames and tail, in order, each with its frame where it has
    /// one. Framing texts are no chunks. O(n) for all of them.
    pub fn chunks(&self) -> impl Iterator<Item = (Option<FrameSeq>, ChunkRef<'_>)> {
        self.pieces.iter().flat_map(|piece| {
            let frame = piece.from.frame();
            piece.chunks().map(move |(_, chunk)| (frame, chunk))
        })
    }
}
