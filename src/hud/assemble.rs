use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use super::{
    Guard, Hud, Message, ProviderFraming, RenderedContext,
    assembly::Assembly,
    message::{Piece, PieceSource},
};
use crate::{
    Error, ErrorKind, Result,
    id::{ChunkType, FacetType, FrameSeq, Millis, Role},
    snapshot::{
        Chunk, FrameSnapshot, SharedSnapshot, SnapshotIdentity, Substitution, SubstitutionKind,
        check_range,
    },
    tokens::CountedText,
    veil::{Facet, Frames, History, Veil},
};

/// How frames become messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// Each frame that shows something is a message.
    #[default]
    PerFrame,
    /// Adjacent frames of one role are one message.
    AdjacentRoles,
}

/// What a context is to hold besides the history.
#[derive(Clone, Debug, Default)]
pub struct RenderRequest {
    /// Names the context in the owners of its tail.
    pub context_id: String,
    /// The first message, unless it is empty. A system facet in the history does the same and is captured with it.
    pub system_prompt: Option<String>,
    /// The frames to render; all by default. The tail is what the model sees after the last of
    /// them.
    pub frames: Option<RangeInclusive<FrameSeq>>,
    /// How frames become messages.
    pub merge: Merge,
    /// The sources of activations that wait for the agent.
    pub pending_activations: Vec<String>,
    /// The beginning of the agent's answer.
    pub prefill: Option<String>,
    /// What the provider adds.
    pub framing: ProviderFraming,
    /// The blocks that stand for frames, in order and apart. One takes effect where all of its
    /// frames are asked for.
    pub substitutions: Vec<Substitution>,
}

impl RenderRequest {
    /// Those of `all` blocks all of whose frames are asked for.
    fn blocks<'s>(&self, all: &'s [Substitution]) -> Result<Vec<&'s Substitution>> {
        // A ledger stands behind the block that ends with its frame.
        let is_behind = |a: &Substitution, b: &Substitution| {
            b.stands == SubstitutionKind::Ledger && a.to == b.from && b.from == b.to
        };
        let follows = |(a, b): (&Substitution, &Substitution)| a.to < b.from || is_behind(a, b);
        if !all.iter().zip(all.iter().skip(1)).all(follows) || all.iter().any(|of| of.from > of.to)
        {
            let message = "expected blocks that stand for frames apart, in order, found others";
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        let is_asked = |block: &&Substitution| {
            let contains = |range: &RangeInclusive<FrameSeq>| {
                range.contains(&block.from) && range.contains(&block.to)
            };
            self.frames.as_ref().is_none_or(contains)
        };
        Ok(all.iter().filter(is_asked).collect())
    }
}

impl Hud {
    /// Puts a history together into messages. `now` is the moment of the tail and of frames that
    /// have no snapshot and are rendered again.
    ///
    /// Frames with a snapshot are neither rendered nor, where this HUD's counter made it, counted
    /// again; merged messages count the text around the joints. Frames without one are rendered
    /// from the veil as it was at that frame. The veil is followed where such a frame, or the tail
    /// of a range that ends before the history, asks for it: from the beginning, or from as far as
    /// [`Hud::capture_missing`] came.
    ///
    /// Costs time in the frames that no context shows which was rendered like this before and is
    /// still there: what the history has packed of it is shared with that one. So keep a context
    /// until the next is rendered. Besides, O(n / 4,096) in the frames of the context, and O(log n)
    /// for each block: frames that blocks stand for are not looked at.
    ///
    /// A frame is spoken in the role of its snapshot's chunks where they agree, so that a snapshot
    /// that was made with other roles keeps its own; else in the role of its source.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range runs backwards or substitutions overlap, and those
    /// of the format.
    pub fn render(
        &self,
        history: &History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<RenderedContext> {
        self.render_with(history, request, (&request.substitutions, None), now)
    }

    /// As [`Hud::render`], with `substitutions` in the place of the request's own, and with a guard
    /// by which no frame reads like one of them.
    ///
    /// # Errors
    /// Those of [`Hud::render`].
    pub(crate) fn render_with(
        &self,
        history: &History,
        request: &RenderRequest,
        with: (&[Substitution], Option<Guard>),
        now: Millis,
    ) -> Result<RenderedContext> {
        self.assemble(history, request, with, (now, true))
    }

    /// As [`Hud::render_with`]; without a tail, where the model sees nothing after the last frame, the
    /// veil is not followed.
    ///
    /// # Errors
    /// Those of [`Hud::render`].
    pub(crate) fn assemble(
        &self,
        history: &History,
        request: &RenderRequest,
        (substitutions, guard): (&[Substitution], Option<Guard>),
        (now, has_tail): (Millis, bool),
    ) -> Result<RenderedContext> {
        let all = history.frames();
        let mut assembly = Assembly::new(self, history, (request.merge, guard), now);
        if let Some(prompt) = request.system_prompt.as_ref().filter(|prompt| !prompt.is_empty()) {
            assembly.add_prompt(prompt);
        }
        request.frames.as_ref().map_or(Ok(()), check_range)?;
        let blocks = request.blocks(substitutions)?;
        let asked = asked(&all, request.frames.as_ref());
        let mut next = asked.start;
        for block in blocks {
            let from = all.first_from(block.from);
            if next < from.min(asked.end) {
                assembly.add_frames(next..from.min(asked.end))?;
            }
            next = next.max(all.first_after(block.to));
            assembly.add_block(block);
        }
        if next < asked.end {
            assembly.add_frames(next..asked.end)?;
        }
        let mut tail = None;
        if has_tail {
            let veil = assembly.veil_at(asked.end)?;
            tail = self.render_tail(&veil, request, now)?.map(Arc::new);
        }
        let (messages, mut tokens) = assembly.finish(tail.as_ref());
        let ProviderFraming { per_message, per_reply } = request.framing;
        tokens.framing =
            per_message.saturating_mul(messages.len() as u64).saturating_add(per_reply);
        tokens.total = tokens.exact.saturating_add(tokens.framing);
        Ok(RenderedContext { id: request.context_id.clone(), messages, tail, tokens })
    }

    /// What the model sees after the last frame: the ambient facets of `veil`, the pending
    /// activations and the prefill of `request`. `None` where that is nothing. O(text of the tail).
    ///
    /// # Errors
    /// Those of the format.
    pub fn render_tail(
        &self,
        veil: &Veil,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<Option<FrameSnapshot>> {
        let pending = (!request.pending_activations.is_empty()).then(|| {
            let (count, sources) =
                (request.pending_activations.len(), request.pending_activations.join(", "));
            let plural = if count == 1 { "" } else { "s" };
            let content = format!(
                "There {} {count} pending activation{plural} from: {sources}",
                if count == 1 { "is" } else { "are" }
            );
            Facet::new("pending-activations", FacetType::AMBIENT, content)
                .named("pending_activations")
        });
        let ambient: Vec<Arc<Facet>> = veil.ambient().collect();
        let facets = ambient.iter().map(AsRef::as_ref).chain(&pending);
        let facets: Vec<&Facet> = facets.collect();
        let mut tiling =
            self.draw(facets.iter().copied(), Role::User, veil.tags(), None, pending.as_ref())?;
        if let Some(prefill) = request.prefill.as_ref().filter(|prefill| !prefill.is_empty()) {
            tiling.out().push_str(prefill);
            tiling.end_chunk(&**self.counter(), None, |range, tokens| Chunk {
                range,
                tokens,
                chunk_type: Some(ChunkType::from("prefill")),
                role: Some(Role::Assistant),
                ..Chunk::default()
            });
        }
        Ok((tiling.len() > 0).then(|| self.sealed(tiling, now)))
    }

    /// The exact count of a message, from what was counted before where it can be.
    pub(super) fn exact_tokens(&self, message: &Message) -> u64 {
        let counter = self.counter();
        let counted = |piece: &Piece| match &piece.from {
            PieceSource::Frame(_, snapshot) | PieceSource::Block(_, _, snapshot) => {
                self.exact_tokens_of(snapshot)
            }
            PieceSource::Tail(snapshot, range) => {
                let is_all = range.len() == snapshot.text().len();
                let exact = snapshot.exact_tokens().filter(|_| is_all);
                exact.unwrap_or_else(|| counter.count(range.of(snapshot.text())) as u64)
            }
            PieceSource::Framing(_, text) => counter.count(text) as u64,
        };
        if let [piece] = message.pieces.as_slice() {
            return counted(piece);
        }
        let part = |piece| {
            let tokens = counted(piece) as usize;
            CountedText { text: piece.from.text(), tokens }
        };
        let parts: Vec<CountedText<'_>> = message.pieces.iter().map(part).collect();
        counter.count_joined(&parts) as u64
    }

    /// The exact count of the whole text of a snapshot.
    fn exact_tokens_of(&self, snapshot: &SharedSnapshot) -> u64 {
        let exact = snapshot.exact_tokens().filter(|_| self.made(snapshot.identity()));
        exact.unwrap_or_else(|| self.counter().count(snapshot.text()) as u64)
    }

    /// The sum of the counts of the chunks of a snapshot.
    pub(super) fn chunk_tokens_of(&self, snapshot: &SharedSnapshot) -> u64 {
        if self.made(snapshot.identity()) {
            return snapshot.total_tokens();
        }
        // Counts of another tokenizer, or declared ones, are not mixed with this one's.
        snapshot.chunks().map(|chunk| self.counter().count(chunk.content()) as u64).sum()
    }

    /// The sum of the counts of a snapshot's chunks.
    pub(crate) fn tokens_of(&self, snapshot: &FrameSnapshot) -> u64 {
        if self.counted(snapshot) {
            return snapshot.total_tokens();
        }
        // Counts of another tokenizer, or declared ones, are not mixed with this one's.
        snapshot.chunks().map(|chunk| self.counter().count(chunk.content()) as u64).sum()
    }

    /// The counts of a snapshot's chunks.
    pub(crate) fn tokens_of_chunks<'a>(
        &'a self,
        snapshot: &'a FrameSnapshot,
    ) -> impl Iterator<Item = u64> + 'a {
        let is_counted = self.counted(snapshot);
        snapshot.chunks().map(move |chunk| {
            if is_counted { chunk.tokens() } else { self.counter().count(chunk.content()) as u64 }
        })
    }

    /// Whether the counts of a snapshot are this HUD's counter's.
    fn counted(&self, snapshot: &FrameSnapshot) -> bool {
        self.made(snapshot.identity())
    }

    /// Whether this HUD's counter counted a snapshot that has this identity.
    fn made(&self, identity: Option<&Arc<SnapshotIdentity>>) -> bool {
        identity.is_some_and(|made_by| {
            Arc::ptr_eq(made_by, self.identity()) || made_by.tokenizer == self.identity().tokenizer
        })
    }
}

/// The indices of the frames that are asked for.
fn asked(frames: &Frames<'_>, range: Option<&RangeInclusive<FrameSeq>>) -> Range<usize> {
    let Some(range) = range else { return 0..frames.len() };
    let start = frames.first_from(*range.start());
    start..frames.first_after(*range.end()).max(start)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{
        snapshot::FrameSnapshotBuilder,
        tokens::Chars4,
        veil::{FacetOp, Frame, Source},
    };

    thread_local! {
        static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts frames that are looked at.
    pub(in crate::hud) fn look(frames: usize) {
        LOOKED.set(LOOKED.get() + frames);
    }

    /// How many were.
    pub(in crate::hud) fn looked() -> usize {
        LOOKED.get()
    }

    #[test]
    fn frames_that_blocks_stand_for_are_not_looked_at() {
        let hud = Hud::new(Arc::new(Chars4));
        let now = Millis::new(0);
        for frames in [100, 1_000, 10_000_u64] {
            let mut history = History::new();
            for sequence in 0..frames {
                let said = Facet::new(format!("said-{sequence}"), FacetType::EVENT, "a");
                let frame = Frame::new(sequence, Source::User).with(FacetOp::add(said));
                hud.capture(&mut history, frame, now).unwrap();
            }
            let block = |from: u64, to: u64| Substitution {
                block: "b".into(),
                stands: SubstitutionKind::Block,
                from: from.into(),
                to: to.into(),
                snapshot: Arc::new(FrameSnapshotBuilder::new(&Chars4).build(now)),
            };
            let substitutions = vec![block(2, frames / 2), block(frames / 2 + 2, frames - 6)];
            let request = RenderRequest { substitutions, ..RenderRequest::default() };
            LOOKED.set(0);
            let context = hud.render(&history, &request, now).unwrap();
            assert_eq!((context.messages().len(), LOOKED.get()), (8, 8));
        }
    }
}
