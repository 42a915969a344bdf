use std::{borrow::Cow, collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use super::{
    ContextTokens, Hud, Message, ProviderFraming, RenderedContext,
    context::{From, Piece},
};
use crate::{
    Error, ErrorKind, Result,
    id::{ChunkType, FacetType, FrameSeq, Millis, Role},
    snapshot::{Chunk, ChunkRef, FrameSnapshot, Substitution, check_range},
    text::TextRange,
    tokens::CountedText,
    veil::{Facet, Frame, History, Veil},
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
    /// The blocks all of whose frames are asked for.
    fn blocks(&self) -> Result<Vec<&Substitution>> {
        let all = &self.substitutions;
        let follows = |(a, b): (&Substitution, &Substitution)| a.to < b.from;
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
        let mut assembly =
            Assembly { hud: self, messages: Vec::new(), tokens: ContextTokens::default() };
        if let Some(prompt) = request.system_prompt.as_ref().filter(|prompt| !prompt.is_empty()) {
            let from = From::Framing("system_prompt", prompt.as_str().into());
            add(&mut assembly.tokens.chunks, self.counter().count(prompt) as u64);
            assembly.open(Role::System, None, from);
        }
        request.frames.as_ref().map_or(Ok(()), check_range)?;
        let blocks = request.blocks()?;
        let (rendered, veil) = self.rendered_frames(history, request, &blocks, now)?;
        let mut blocks = blocks.into_iter().peekable();
        for (frame, snapshot) in rendered {
            while let Some(block) = blocks.next_if(|block| block.from <= frame.sequence) {
                assembly.add_block(block);
            }
            assembly.add_frame(frame, snapshot, request.merge);
        }
        blocks.for_each(|block| assembly.add_block(block));
        let mut frame_to_message = BTreeMap::new();
        for (index, message) in assembly.messages.iter().enumerate() {
            frame_to_message.extend(message.pieces.iter().filter_map(|piece| match piece.from {
                From::Frame(frame, _) => Some((frame, index)),
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
    /// after them. Only where a snapshot is
    /// missing, or where the history goes on after the range, is the veil followed.
    fn rendered_frames<'h>(
        &self,
        history: &'h History,
        request: &RenderRequest,
        blocks: &[&Substitution],
        now: Millis,
    ) -> Result<(Vec<Rendered<'h>>, Cow<'h, Veil>)> {
        let range = request.frames.as_ref();
        let wanted = |frame: &Frame| {
            let sequence = frame.sequence;
            let after = blocks.partition_point(|block| block.from <= sequence);
            let block = after.checked_sub(1).and_then(|before| blocks.get(before));
            range.is_none_or(|range| range.contains(&sequence))
                && block.is_none_or(|block| block.to < sequence)
        };
        let all = history.frames();
        let until = |end: FrameSeq| all.partition_point(|frame| frame.sequence <= end);
        let until = range.map_or(all.len(), |range| until(*range.end()));
        let frames = all.get(..until).unwrap_or(all);
        let ends_early = until < all.len();
        let missing = |frame: &Arc<Frame>| wanted(frame) && frame.rendered_snapshot.is_none();
        let end = if ends_early {
            until
        } else {
            frames.iter().rposition(missing).map_or(0, |last| last + 1)
        };
        let first = frames.iter().position(missing).unwrap_or(end);
        let (start, veil) = history.veil_before(first);
        let mut veil = if start < end || ends_early { veil.clone() } else { Veil::default() };
        let mut rendered = Vec::with_capacity(frames.len());
        for (index, frame) in frames.iter().enumerate() {
            let shown = if (start..end).contains(&index) { Some(veil.apply(frame)?) } else { None };
            if !wanted(frame) {
                continue;
            }
            let snapshot = match (&frame.rendered_snapshot, shown) {
                (Some(snapshot), _) => Arc::clone(snapshot),
                (None, Some(shown)) => Arc::new(self.render_frame(frame, &shown, now)?),
                // Every frame without a snapshot is followed.
                (None, None) => continue,
            };
            rendered.push((&**frame, snapshot));
        }
        let veil = if ends_early { Cow::Owned(veil) } else { Cow::Borrowed(history.veil()) };
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
        let facets = veil.ambient().map(AsRef::as_ref).chain(&pending);
        let facets: Vec<&Facet> = facets.collect();
        let mut tiling = self.draw(facets.iter().copied(), Role::User, veil.tags(), None)?;
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
                From::Frame(_, snapshot) => self.counted_text(snapshot),
                From::Tail(snapshot, range) => {
                    let exact =
                        snapshot.exact_tokens().filter(|_| range.len() == snapshot.text().len());
                    let text = range.of(snapshot.text());
                    let exact = exact.map_or_else(|| counter.count(text), |exact| exact as usize);
                    CountedText { text, tokens: exact }
                }
                From::Block(block) => self.counted_text(&block.snapshot),
                From::Framing(_, text) => CountedText { text, tokens: counter.count(text) },
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
    fn tokens_of(&self, snapshot: &FrameSnapshot) -> u64 {
        if self.counted(snapshot) {
            return snapshot.total_tokens();
        }
        // Counts of another tokenizer, or declared ones, are not mixed with this one's.
        snapshot.chunks().map(|chunk| self.counter().count(chunk.content()) as u64).sum()
    }

    /// Whether the counts of a snapshot are this HUD's counter's.
    fn counted(&self, snapshot: &FrameSnapshot) -> bool {
        snapshot.identity().is_some_and(|made_by| made_by.tokenizer == self.identity().tokenizer)
    }
}

/// A frame with what it rendered to.
type Rendered<'h> = (&'h Frame, Arc<FrameSnapshot>);

/// A context in the making.
struct Assembly<'h> {
    hud: &'h Hud,
    messages: Vec<Message>,
    tokens: ContextTokens,
}

impl Assembly<'_> {
    fn open(&mut self, role: Role, frames: Option<(FrameSeq, FrameSeq)>, from: From) {
        self.messages.push(Message {
            role,
            frames,
            pieces: vec![Piece { start: 0, from }],
            tokens: 0,
        });
    }

    fn add_frame(&mut self, frame: &Frame, snapshot: Arc<FrameSnapshot>, merge: Merge) {
        if snapshot.is_empty() {
            return;
        }
        let tokens = self.hud.tokens_of(&snapshot);
        add(&mut self.tokens.chunks, tokens);
        let sequence = frame.sequence;
        let role = self.hud.role_of(&frame.source);
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
                let from = From::Framing("separator", Arc::clone(separator));
                message.pieces.push(Piece { start: message.len(), from });
            }
            message
                .pieces
                .push(Piece { start: message.len(), from: From::Frame(sequence, snapshot) });
        } else {
            self.open(role, Some((sequence, sequence)), From::Frame(sequence, snapshot));
        }
    }

    fn add_block(&mut self, block: &Substitution) {
        if !block.snapshot.is_empty() {
            add(&mut self.tokens.chunks, self.hud.tokens_of(&block.snapshot));
            let role = role_of_chunks(&block.snapshot, Role::User).unwrap_or(Role::User);
            self.open(role, Some((block.from, block.to)), From::Block(block.clone()));
        }
    }

    fn add_tail(&mut self, tail: &Arc<FrameSnapshot>) {
        add(&mut self.tokens.chunks, tail.total_tokens());
        let prefill = tail.chunks().find(|chunk| chunk.role() == Some(Role::Assistant));
        let split = prefill.map_or(tail.text().len(), |chunk| chunk.range().start());
        let parts = [(Role::User, 0, split), (Role::Assistant, split, tail.text().len())];
        for (role, start, end) in parts {
            if start < end {
                let from = From::Tail(Arc::clone(tail), TextRange::at(start, end - start));
                self.open(role, None, from);
            }
        }
    }
}

/// The role in which the chunks agree; those that have none follow the others. Does not look
/// further where the first agrees with `usual`.
fn role_of_chunks(snapshot: &FrameSnapshot, usual: Role) -> Option<Role> {
    let mut roles = snapshot.chunks().filter_map(ChunkRef::role);
    roles.next().filter(|first| *first == usual || roles.all(|role| role == *first))
}

/// Adds and saturates: the counts of a loaded snapshot are what its file declares.
fn add(sum: &mut u64, tokens: u64) {
    *sum = sum.saturating_add(tokens);
}
