use std::sync::Arc;

use super::{NetOps, Passage, saved::to_json};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetId, FrameSeq, Millis, Role},
    json::Value,
    snapshot::{ArchiveReader, FrameSnapshot, Substitution, SubstitutionKind},
    veil::Facet,
};

/// A compressed range that stands in for frames; the originals stay reachable.
#[non_exhaustive]
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompressionBlock {
    /// The id, unique in its history.
    pub id: Arc<str>,
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// One for a block of frames, more for a block of blocks.
    pub level: u32,
    /// The tokens of the original frames, the sum over their chunks.
    pub original_tokens: u64,
    /// The tokens of the summary, as it is rendered.
    pub tokens: u64,
    /// The facets whose text it stands for.
    pub source_facets: Vec<FacetId>,
    /// The BLAKE3 hash of the original texts, each with its length before it, in hexadecimal.
    pub content_hash: String,
    /// What wrote the summary.
    pub engine: String,
    /// When it was written.
    pub created_at: Millis,
    /// The summary as a facet, which renders to `snapshot`.
    #[serde(skip)]
    pub facet: Arc<Facet>,
    /// What stands for the frames.
    #[serde(skip)]
    pub snapshot: Arc<FrameSnapshot>,
    /// What the ops of the frames come to.
    #[serde(skip)]
    pub net_ops: NetOps,
    #[serde(skip)]
    pub(super) originals: Originals,
    /// The blocks that were in effect for its frames before.
    #[serde(skip)]
    pub(super) inner: Vec<Arc<CompressionBlock>>,
}

/// What a block stands for.
#[derive(Clone, Debug)]
pub(super) enum Originals {
    Held(Vec<Passage>),
    /// The inner blocks hold them.
    Inner,
    /// An archive holds them.
    Spilled,
    Forgotten,
}

impl CompressionBlock {
    /// The frames that the block stands for, as they were captured; a block of blocks expands to
    /// the frames of all of them. Shares the snapshots; copies no text.
    ///
    /// Cost: O(frames of the block).
    ///
    /// # Errors
    /// [`ErrorKind::Stored`] where they are in an archive: see [`CompressionBlock::expand_from`];
    /// [`ErrorKind::Dropped`] after they were forgotten.
    pub fn expand(&self) -> Result<Vec<Passage>> {
        match &self.originals {
            Originals::Held(passages) => Ok(passages.clone()),
            Originals::Inner => {
                let all: Result<Vec<_>> = self.inner.iter().map(|block| block.expand()).collect();
                Ok(all?.concat())
            }
            Originals::Spilled => {
                let message = format!("the originals of {} are in an archive", self.id);
                Err(Error::new(ErrorKind::Stored, message))
            }
            Originals::Forgotten => {
                let message = format!("the originals of {} were forgotten", self.id);
                Err(Error::new(ErrorKind::Dropped, message))
            }
        }
    }

    /// As [`CompressionBlock::expand`], from the archive of the history that the block belongs to.
    /// Copies the text. O(frames of the block).
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the archive's text is not that which the block stands for,
    /// [`ErrorKind::Dropped`] after the originals were forgotten, and those of
    /// [`ArchiveReader::range`].
    pub fn expand_from(&self, archive: &ArchiveReader) -> Result<Vec<Passage>> {
        match &self.originals {
            Originals::Forgotten => self.expand(),
            Originals::Inner => {
                let inner = self.inner.iter().map(|block| block.expand_from(archive));
                Ok(inner.collect::<Result<Vec<_>>>()?.concat())
            }
            Originals::Held(_) | Originals::Spilled => {
                let range = archive.range(self.from..=self.to)?;
                let passage = |(sequence, snapshot): (FrameSeq, FrameSnapshot)| {
                    let role =
                        snapshot.chunks().find_map(|chunk| chunk.role()).unwrap_or(Role::User);
                    Passage::new(sequence, sequence, role, Arc::new(snapshot))
                };
                let shown = range.snapshots().filter(|(_, snapshot)| !snapshot.is_empty());
                let passages: Vec<Passage> = shown.map(passage).collect();
                if content_hash(&passages) != self.content_hash {
                    let message =
                        format!("the archive holds other text than {} stands for", self.id);
                    return Err(Error::new(ErrorKind::Conflict, message).at_frame(self.from.get()));
                }
                Ok(passages)
            }
        }
    }

    /// Whether it has this id, or a block in it.
    pub(crate) fn holds(&self, id: &str) -> bool {
        *self.id == *id || self.inner.iter().any(|inner| inner.holds(id))
    }

    pub(super) fn let_go(&mut self, originals: Originals) {
        for block in &mut self.inner {
            Arc::make_mut(block).let_go(originals.clone());
        }
        self.net_ops.let_go();
        if !matches!(self.originals, Originals::Inner) {
            self.originals = originals;
        }
    }

    /// The blocks that were in effect for its frames before: those that a block of blocks stands
    /// for, or those whose frames were replaced again in an imported compaction.
    pub fn blocks(&self) -> &[Arc<CompressionBlock>] {
        &self.inner
    }

    /// What a renderer puts in place of the frames.
    pub fn substitution(&self) -> Substitution {
        Substitution {
            block: Arc::clone(&self.id),
            stands: SubstitutionKind::Block,
            from: self.from,
            to: self.to,
            snapshot: Arc::clone(&self.snapshot),
        }
    }

    /// The block without its texts, for people and logs. O(size).
    pub fn to_json(&self) -> Value {
        to_json(self)
    }
}

/// The hash of passages: each text with its length before it, so that no two lists share one.
pub(super) fn content_hash(passages: &[Passage]) -> String {
    let mut hasher = blake3::Hasher::new();
    for passage in passages {
        let text = passage.snapshot.text();
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
