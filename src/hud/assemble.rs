use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use super::{
    ContextTokens, Hud, Message, ProviderFraming, RenderedContext,
    context::{Piece, PieceSource},
};
use crate::{
    Error, ErrorKind, Result,
    id::{ChunkType, FacetType, FrameSeq, Millis, Role},
    snapshot::{Chunk, FrameSnapshot, Substitution, SubstitutionKind, check_range},
    text::TextRange,
    tokens::CountedText,
    veil::{Facet, Frames, History, Source, Veil},
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
    /// Costs time in the frames of the context, and O(log n) for each block: frames that blocks
    /// stand for are not looked at.
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
        self.render_with(history, request, &request.substitutions, now)
    }

    /// As [`Hud::render`], with `substitutions` in the place of the request's own.
    ///
    /// # Errors
    /// Those of [`Hud::render`].
    pub(crate) fn render_with(
        &self,
        history: &History,
        request: &RenderRequest,
        substitutions: &[Substitution],
        now: Millis,
    ) -> Result<RenderedContext> {
        let mut assembly =
            Assembly { hud: self, messages: Vec::new(), tokens: ContextTokens::default() };
        if let Some(prompt) = request.system_prompt.as_ref().filter(|prompt| !prompt.is_empty()) {
            let from = PieceSource::Framing("system_prompt", prompt.as_str().into());
            add(&mut assembly.tokens.chunks, self.counter().count(prompt) as u64);
            assembly.open(Role::System, None, from);
        }
        request.frames.as_ref().map_or(Ok(()), check_range)?;
        let blocks = request.blocks(substitutions)?;
        let (rendered, veil) = self.rendered_frames(history, request, &blocks, now)?;
        let mut blocks = blocks.into_iter().peekable();
        for frame in rendered {
            while let Some(block) = blocks.next_if(|block| block.from <= frame.sequence) {
                assembly.add_block(block);
            }
            assembly.add_frame(frame, request.merge);
        }
        blocks.for_each(|block| assembly.add_block(block));
        let mut frame_to_message = BTreeMap::new();
        for (index, message) in assembly.messages.iter().enumerate() {
            frame_to_message.extend(message.pieces.iter().filter_map(|piece| match piece.from {
                PieceSource::Frame(frame, _) => Some((frame, index)),
                _ => None,
            }));
        }
        let tail = self.render_tail(&veil, request, now)?.map(Arc::new);
        if let Some(tail) = &tail {
            assembly.add_tail(tail);
        }
        let Assembly { mut messages, mut tokens, .. } = assembly;
        for message in &mut messages {
            message.tokens = self.exact_tokens(message);
            add(&mut tokens.exact, message.tokens);
        }
        let ProviderFraming { per_message, per_reply } = request.framing;
        tokens.framing =
            per_message.saturating_mul(messages.len() as u64).saturating_add(per_reply);
        tokens.total = tokens.exact.saturating_add(tokens.framing);
        let id = request.context_id.clone();
        Ok(RenderedContext { id, messages, tail, frame_to_message, tokens })
    }

    /// The snapshots of the frames that are asked for and that no block stands for, and the veil
    /// after them. Only where a snapshot is missing, or where the history goes on after the range,
    /// is the veil followed. Frames that a block stands for are not looked at.
    fn rendered_frames<'h>(
        &self,
        history: &'h History,
        request: &RenderRequest,
        blocks: &[&Substitution],
        now: Millis,
    ) -> Result<(Vec<RenderedFrame>, Cow<'h, Veil>)> {
        let all = history.frames();
        let asked = asked(&all, request.frames.as_ref());
        let runs = runs(&all, asked.clone(), blocks);
        let indices = || runs.iter().cloned().flatten();
        let mut snapshots: Vec<_> = indices().map(|index| (index, all.snapshot(index))).collect();
        if let Some((index, _)) =
            snapshots.iter().find(|(index, found)| found.is_none() && all.is_forgotten(*index))
        {
            let sequence = all.sequence(*index).unwrap_or_default();
            let message = "the frame was forgotten, and no block stands for it";
            return Err(Error::new(ErrorKind::Dropped, message).at_frame(sequence.get()));
        }
        let missing = snapshots.iter().find(|(_, found)| found.is_none());
        let ends_early = asked.end < all.len();
        let first = missing.map(|(index, _)| *index).or(ends_early.then_some(asked.end));
        let (mut led, veil) = history.veil_before(first.unwrap_or_default());
        let mut veil = first.map(|_| veil.clone());
        let mut rendered = Vec::with_capacity(snapshots.len());
        for (index, snapshot) in snapshots.drain(..) {
            #[cfg(test)]
            tests::look(1);
            let (Some(sequence), Some(source)) = (all.sequence(index), all.source(index)) else {
                continue;
            };
            let snapshot = match (snapshot, &mut veil) {
                (Some(snapshot), _) => snapshot,
                (None, Some(veil)) => {
                    history.expect_known(led..index)?;
                    lead(veil, all.slice(led..index))?;
                    led = index + 1;
                    let Some(frame) = all.get(index) else { continue };
                    Arc::new(self.render_frame(&frame, &veil.apply(&frame)?, now)?)
                }
                // The veil is led wherever a snapshot is missing.
                (None, None) => continue,
            };
            rendered.push(RenderedFrame { sequence, source, snapshot });
        }
        let veil = match veil {
            Some(mut veil) if ends_early => {
                history.expect_known(led..asked.end)?;
                lead(&mut veil, all.slice(led..asked.end))?;
                Cow::Owned(veil)
            }
            _ => Cow::Borrowed(history.veil()),
        };
        Ok((rendered, veil))
    }

    /// What the model sees after the last frame: the ambient facets of `veil`, the pending
    /// activations and the prefill of `request`. `None` where that is nothing.
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
    fn exact_tokens(&self, message: &Message) -> u64 {
        let counter = self.counter();
        let parts: Vec<CountedText<'_>> = message
            .pieces
            .iter()
            .map(|piece| match &piece.from {
                PieceSource::Frame(_, snapshot) => self.counted_text(snapshot),
                PieceSource::Tail(snapshot, range) => {
                    let exact =
                        snapshot.exact_tokens().filter(|_| range.len() == snapshot.text().len());
                    let text = range.of(snapshot.text());
                    let exact = exact.map_or_else(|| counter.count(text), |exact| exact as usize);
                    CountedText { text, tokens: exact }
                }
                PieceSource::Block(block) => self.counted_text(&block.snapshot),
                PieceSource::Framing(_, text) => CountedText { text, tokens: counter.count(text) },
            })
            .collect();
        counter.count_joined(&parts) as u64
    }

    /// The whole text of a snapshot with its exact count.
    fn counted_text<'s>(&self, snapshot: &'s FrameSnapshot) -> CountedText<'s> {
        let text = snapshot.text();
        let exact = snapshot.exact_tokens().filter(|_| self.counted(snapshot));
        let tokens = exact.map_or_else(|| self.counter().count(text), |exact| exact as usize);
        CountedText { text, tokens }
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
        snapshot.identity().is_some_and(|made_by| made_by.tokenizer == self.identity().tokenizer)
    }
}

/// The indices of the frames that are asked for.
fn asked(frames: &Frames<'_>, range: Option<&RangeInclusive<FrameSeq>>) -> Range<usize> {
    let Some(range) = range else { return 0..frames.len() };
    let start = frames.first_from(*range.start());
    start..frames.first_after(*range.end()).max(start)
}

/// The indices in `asked` of the frames that no block stands for, run by run. Runs in time
/// proportional to the blocks, however many frames they stand for.
fn runs(frames: &Frames<'_>, asked: Range<usize>, blocks: &[&Substitution]) -> Vec<Range<usize>> {
    let mut runs = Vec::with_capacity(blocks.len() + 1);
    let mut start = asked.start;
    for block in blocks {
        let end = frames.first_from(block.from);
        runs.push(start..end.min(asked.end));
        start = start.max(frames.first_after(block.to));
    }
    runs.push(start..asked.end);
    runs.retain(|run| !run.is_empty());
    runs
}

/// Leads the veil through frames.
fn lead(veil: &mut Veil, mut frames: Frames<'_>) -> Result<()> {
    #[cfg(test)]
    tests::look(frames.len());
    frames.try_for_each(|frame| veil.apply(&frame).map(drop))
}

/// What a frame rendered to.
struct RenderedFrame {
    sequence: FrameSeq,
    source: Source,
    snapshot: Arc<FrameSnapshot>,
}

/// A context in the making.
struct Assembly<'h> {
    hud: &'h Hud,
    messages: Vec<Message>,
    tokens: ContextTokens,
}

impl Assembly<'_> {
    fn open(&mut self, role: Role, frames: Option<(FrameSeq, FrameSeq)>, from: PieceSource) {
        self.messages.push(Message {
            role,
            frames,
            pieces: vec![Piece { start: 0, from }],
            tokens: 0,
        });
    }

    fn add_frame(&mut self, frame: RenderedFrame, merge: Merge) {
        let RenderedFrame { sequence, source, snapshot } = frame;
        if snapshot.is_empty() {
            return;
        }
        let tokens = self.hud.tokens_of(&snapshot);
        add(&mut self.tokens.chunks, tokens);
        let role = self.hud.role_of(&source);
        let role = role_of_chunks(&snapshot, role).unwrap_or(role);
        if merge == Merge::AdjacentRoles
            && let Some(message) = self.messages.last_mut()
            && !message.is_block()
            && let Some((_, last)) = &mut message.frames
            && message.role == role
        {
            *last = sequence;
            let separator = self.hud.frame_separator();
            if !separator.is_empty() {
                add(&mut self.tokens.chunks, self.hud.counter().count(separator) as u64);
                let from = PieceSource::Framing("separator", Arc::clone(separator));
                message.pieces.push(Piece { start: message.len(), from });
            }
            message
                .pieces
                .push(Piece { start: message.len(), from: PieceSource::Frame(sequence, snapshot) });
        } else {
            self.open(role, Some((sequence, sequence)), PieceSource::Frame(sequence, snapshot));
        }
    }

    fn add_block(&mut self, block: &Substitution) {
        if !block.snapshot.is_empty() {
            add(&mut self.tokens.chunks, self.hud.tokens_of(&block.snapshot));
            let role = role_of_chunks(&block.snapshot, Role::User).unwrap_or(Role::User);
            self.open(role, Some((block.from, block.to)), PieceSource::Block(block.clone()));
        }
    }

    fn add_tail(&mut self, tail: &Arc<FrameSnapshot>) {
        add(&mut self.tokens.chunks, tail.total_tokens());
        let prefill = tail.chunks().find(|chunk| chunk.role() == Some(Role::Assistant));
        let split = prefill.map_or(tail.text().len(), |chunk| chunk.range().start());
        let parts = [(Role::User, 0, split), (Role::Assistant, split, tail.text().len())];
        for (role, start, end) in parts {
            if start < end {
                let from = PieceSource::Tail(Arc::clone(tail), TextRange::at(start, end - start));
                self.open(role, None, from);
            }
        }
    }
}

/// The role in which the chunks agree; those that have none follow the others. Does not look
/// further where the first agrees with `usual`.
fn role_of_chunks(snapshot: &FrameSnapshot, usual: Role) -> Option<Role> {
    let mut roles = snapshot.chunks().filter_map(|chunk| chunk.role());
    roles.next().filter(|first| *first == usual || roles.all(|role| role == *first))
}

/// Adds and saturates: the counts of a loaded snapshot are what its file declares.
fn add(sum: &mut u64, tokens: u64) {
    *sum = sum.saturating_add(tokens);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{
        snapshot::FrameSnapshotBuilder,
        tokens::Chars4,
        veil::{FacetOp, Frame},
    };

    thread_local! {
        static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts frames that are looked at.
    pub(super) fn look(frames: usize) {
        LOOKED.set(LOOKED.get() + frames);
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
