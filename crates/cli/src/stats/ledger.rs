//! Adding up what frames cost.

use std::{collections::HashSet, hash::BuildHasher, hash::RandomState, sync::Arc};

use afterimage::{
    id::{FacetId, FrameSeq, Role},
    snapshot::ChunkRef,
    tokens::{Chars4, TokenCounter},
    transcript::{SourceContent, TranscriptFormat},
};
use indexmap::IndexMap;

use crate::{
    answer::{ByName, answer},
    failure::Outcome,
    labels::{FrameLabels, Label, PlacedCall},
};

/// How many facets are named.
const LARGEST: usize = 10;
/// From how many facets on those are let go that cannot become one of the largest.
const MANY: usize = 10_000;

answer! {
    /// Sums over chunks. A sum that outgrows 64 bits stays at their largest number: a frame may
    /// declare any count for what it brings along.
    #[derive(Clone, Copy, Default)]
    pub(crate) struct Sums {
        /// how many chunks there are
        chunks: u64,
        /// the bytes of their contents
        bytes: u64,
        /// their tokens
        tokens: u64,
    }

    /// The sums of frames, or of a request.
    pub(crate) struct SumsAnswer<'l> {
        /// chunks of all frames; of a recorded request its parts
        chunks: u64,
        /// bytes of their contents
        bytes: u64,
        /// the sum of their tokens; see `totalTokens` of a snapshot
        tokens: u64,
        /// the same by the estimate `chars4`
        estimated_tokens: u64,
        /// `chunks`, `bytes` and `tokens` by role, in the order in which the roles first appear;
        /// `none` without one. Their sums are those above
        by_role: ByName<'l, Sums>,
        /// the same by type of chunk, in the order in which the types first appear; `none` without
        /// one
        by_type: ByName<'l, Sums>,
        /// the ten facets with the most tokens, then bytes; the largest first
        by_facet: Vec<FacetAnswer<'l>>,
        /// tokens of chunks that no facet wrote
        unattributed_tokens: u64,
        /// tokens of chunks whose content an earlier chunk of the file has too
        repeated_text_tokens: u64,
    }

    /// A facet that holds many tokens.
    pub(crate) struct FacetAnswer<'l> {
        /// its id
        facet: &'l str,
        /// the type of its chunks; `formatting` where it has nothing but tags, `none` without one
        r#type: &'l str,
        /// its session
        session: &'l str,
        /// the frame in which it first appeared; null for a part of a recorded request that is in no
        /// frame
        sequence: Option<FrameSeq>,
        /// the tokens of its chunks in all frames; a chunk of several facets counts for each
        tokens: u64,
        /// the bytes of the same
        bytes: u64,
        ..label: PlacedCall,
    }
}

impl Sums {
    fn add(&mut self, bytes: u64, tokens: u64) {
        self.chunks += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.tokens = self.tokens.saturating_add(tokens);
    }
}

/// What a facet wrote, wherever it appeared.
pub(super) struct FacetSums {
    /// The type of its chunks; that of its tags only where it has no others.
    pub(super) chunk_type: Option<Arc<str>>,
    /// The frame in which it first appeared; `None` for what is in no frame.
    pub(super) sequence: Option<FrameSeq>,
    pub(super) sums: Sums,
    /// Where it first appeared in the file, and its tool call.
    pub(super) label: Label,
    /// The number of the chunk that was added last, so that one that names a facet twice counts
    /// once.
    last_chunk: u64,
}

type FacetKey = (Arc<str>, FacetId);

/// Sums over the chunks of a file.
pub(super) struct Ledger {
    pub(super) all: Sums,
    pub(super) estimated_tokens: u64,
    pub(super) unattributed: Sums,
    pub(super) repeated: Sums,
    pub(super) by_role: IndexMap<Arc<str>, Sums>,
    pub(super) by_type: IndexMap<Arc<str>, Sums>,
    by_facet: IndexMap<FacetKey, FacetSums>,
    /// Whether a facet may appear again in a later frame.
    facets_return: bool,
    texts: Texts,
}

impl Ledger {
    pub(super) fn new(format: TranscriptFormat) -> Self {
        Self {
            all: Sums::default(),
            estimated_tokens: 0,
            unattributed: Sums::default(),
            repeated: Sums::default(),
            by_role: IndexMap::new(),
            by_type: IndexMap::new(),
            by_facet: IndexMap::new(),
            facets_return: format.holds() == SourceContent::Frames,
            texts: Texts::default(),
        }
    }

    /// Adds a chunk of a frame. Without labels its facets get theirs from [`Ledger::label`].
    pub(super) fn add(
        &mut self,
        session: &Arc<str>,
        (sequence, labels): (FrameSeq, Option<&FrameLabels>),
        chunk: ChunkRef<'_>,
        tokens: u64,
    ) {
        let bytes = chunk.content().len() as u64;
        self.all.add(bytes, tokens);
        let estimate = Chars4.count(chunk.content()) as u64;
        self.estimated_tokens = self.estimated_tokens.saturating_add(estimate);
        add_to(&mut self.by_role, chunk.role().map_or("none", Role::as_str), bytes, tokens);
        add_to(&mut self.by_type, chunk.chunk_type().unwrap_or("none"), bytes, tokens);
        if !chunk.is_attributed() {
            self.unattributed.add(bytes, tokens);
        }
        if self.texts.is_known(chunk.content()) {
            self.repeated.add(bytes, tokens);
        }
        for id in chunk.facet_ids() {
            let number = self.all.chunks;
            let facet = self.facet(session, id, Some(sequence), labels);
            if std::mem::replace(&mut facet.last_chunk, number) == number {
                continue;
            }
            facet.sums.add(bytes, tokens);
            let is_formatting = |kind: &str| kind == "formatting";
            if facet.chunk_type.as_deref().is_none_or(is_formatting) {
                facet.chunk_type = chunk.chunk_type().map(Arc::from);
            }
        }
    }

    /// Adds a part of a request that was recorded, with its role and type, its bytes, its tokens, and
    /// the estimate of these.
    pub(super) fn add_part(
        &mut self,
        session: &Arc<str>,
        facet: &FacetId,
        frame: Option<FrameSeq>,
        (role, kind): (&str, &str),
        (bytes, tokens, estimate): (u64, u64, u64),
    ) {
        self.all.add(bytes, tokens);
        self.estimated_tokens = self.estimated_tokens.saturating_add(estimate);
        add_to(&mut self.by_role, role, bytes, tokens);
        add_to(&mut self.by_type, kind, bytes, tokens);
        let facet = self.facet(session, facet.as_str(), frame, None);
        facet.sums.add(bytes, tokens);
        facet.chunk_type = Some(kind.into());
    }

    /// Lets go of facets that cannot become one of the largest; called after each frame.
    pub(super) fn let_go(&mut self) {
        if !self.facets_return && self.by_facet.len() > MANY {
            self.by_facet.sort_by(|_, a, _, b| largest_first(a, b));
            self.by_facet.truncate(LARGEST);
        }
    }

    fn facet(
        &mut self,
        session: &Arc<str>,
        id: &str,
        sequence: Option<FrameSeq>,
        labels: Option<&FrameLabels>,
    ) -> &mut FacetSums {
        let new = || FacetSums {
            chunk_type: None,
            sequence,
            sums: Sums::default(),
            label: labels.map_or_else(Label::default, |labels| labels.of(id).clone()),
            // Chunks are numbered from 1.
            last_chunk: 0,
        };
        self.by_facet.entry((Arc::clone(session), FacetId::from(id))).or_insert_with(new)
    }

    /// Whether there is nothing but texts of messages.
    pub(super) fn is_plain(&self) -> bool {
        const PLAIN: [&str; 4] = ["system", "event", "speech", "formatting"];
        self.by_type.keys().all(|kind| PLAIN.contains(&&**kind))
    }

    /// Gives the largest facets their labels.
    pub(super) fn label(
        &mut self,
        mut of: impl FnMut(&str, FrameSeq, &FacetId) -> Outcome<Label>,
    ) -> Outcome {
        self.by_facet.sort_by(|_, a, _, b| largest_first(a, b));
        for ((session, facet), sums) in self.by_facet.iter_mut().take(LARGEST) {
            if let Some(frame) = sums.sequence {
                sums.label = of(session, frame, facet)?;
            }
        }
        Ok(())
    }

    /// The largest facets, largest first.
    pub(super) fn largest(&self) -> Vec<(&FacetKey, &FacetSums)> {
        let mut facets: Vec<_> = self.by_facet.iter().collect();
        facets.sort_by(|(_, a), (_, b)| largest_first(a, b));
        facets.truncate(LARGEST);
        facets
    }

    /// The sums over chunks.
    pub(super) fn answer(&self) -> SumsAnswer<'_> {
        let facets = self.largest().into_iter().map(|((session, facet), sums)| FacetAnswer {
            facet: facet.as_str(),
            r#type: sums.chunk_type.as_deref().unwrap_or("none"),
            session,
            sequence: sums.sequence,
            tokens: sums.sums.tokens,
            bytes: sums.sums.bytes,
            label: sums.label.placed_call(),
        });
        let Sums { chunks, bytes, tokens } = self.all;
        SumsAnswer {
            chunks,
            bytes,
            tokens,
            estimated_tokens: self.estimated_tokens,
            by_role: by_name(&self.by_role),
            by_type: by_name(&self.by_type),
            by_facet: facets.collect(),
            unattributed_tokens: self.unattributed.tokens,
            repeated_text_tokens: self.repeated.tokens,
        }
    }
}

/// By tokens, then by bytes; what is equal stays in the order of its appearance.
fn largest_first(a: &FacetSums, b: &FacetSums) -> std::cmp::Ordering {
    (b.sums.tokens, b.sums.bytes).cmp(&(a.sums.tokens, a.sums.bytes))
}

fn add_to(sums: &mut IndexMap<Arc<str>, Sums>, name: &str, bytes: u64, tokens: u64) {
    if let Some(sums) = sums.get_mut(name) {
        sums.add(bytes, tokens);
    } else {
        sums.entry(name.into()).or_default().add(bytes, tokens);
    }
}

fn by_name(sums: &IndexMap<Arc<str>, Sums>) -> ByName<'_, Sums> {
    ByName(sums.iter().map(|(name, sums)| (&**name, *sums)).collect())
}

/// The texts so far, by 128 bits of hash, so that the texts themselves need not be kept.
#[derive(Default)]
struct Texts {
    known: HashSet<(u64, u64)>,
    hashers: (RandomState, RandomState),
}

impl Texts {
    /// Whether the text was there before; from now on it is.
    fn is_known(&mut self, text: &str) -> bool {
        let (one, other) = &self.hashers;
        !self.known.insert((one.hash_one(text), other.hash_one(text)))
    }
}
