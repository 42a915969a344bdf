use std::{borrow::Cow, ops::Range, sync::Arc};

use smallvec::smallvec;

#[cfg(test)]
use super::assemble::tests;
use super::{
    ContextTokens, Hud, Merge, Message, Messages,
    message::{Piece, PieceSource},
    messages::{Body, MessageBatch},
    shared::{BATCH, BATCHES, SharedBatches},
};
use crate::{
    Error, ErrorKind, Result,
    id::{FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, SharedSnapshot, Substitution},
    text::TextRange,
    veil::{Frames, History, Veil},
};

/// What writes the texts of frames so that they read like nothing that stands for frames.
pub(crate) type Guard = fn(&str) -> Cow<'_, str>;

/// A context in the making.
pub(super) struct Assembly<'h> {
    hud: &'h Hud,
    history: &'h History,
    all: Frames<'h>,
    merge: Merge,
    guard: Option<Guard>,
    now: Millis,
    /// What is finished.
    messages: Messages,
    /// The messages that come after it, and the sum of the counts of their chunks.
    open: Vec<Message>,
    open_tokens: u64,
    shared: SharedBatches,
    /// How many of the last batches are shared and follow each other.
    in_row: usize,
    /// The veil before the frame at this index, where one was asked for.
    followed: Option<(usize, Veil)>,
}

/// What a frame rendered to.
struct RenderedFrame {
    sequence: FrameSeq,
    role: Role,
    snapshot: SharedSnapshot,
}

impl<'h> Assembly<'h> {
    pub(super) fn new(
        hud: &'h Hud,
        history: &'h History,
        (merge, guard): (Merge, Option<Guard>),
        now: Millis,
    ) -> Self {
        Self {
            hud,
            history,
            all: history.frames(),
            merge,
            guard,
            now,
            messages: Messages::default(),
            open: Vec::new(),
            open_tokens: 0,
            shared: SharedBatches::take(history, hud, (merge, guard.is_some())),
            in_row: 0,
            followed: None,
        }
    }

    pub(super) fn add_prompt(&mut self, prompt: &str) {
        add(&mut self.open_tokens, self.hud.counter().count(prompt) as u64);
        self.begin(Role::System, None, PieceSource::Framing("system_prompt", prompt.into()));
    }

    pub(super) fn add_block(&mut self, block: &Substitution) {
        if block.snapshot.is_empty() {
            return;
        }
        let snapshot = SharedSnapshot::Whole(Arc::clone(&block.snapshot));
        add(&mut self.open_tokens, self.hud.chunk_tokens_of(&snapshot));
        let role = role_of_chunks(&snapshot, Role::User).unwrap_or(Role::User);
        let from = PieceSource::Block(Arc::clone(&block.block), block.stands, snapshot);
        self.begin(role, Some((block.from, block.to)), from);
    }

    /// Adds the frames with these indices. What is packed of them is shared, where that is worth it.
    pub(super) fn add_frames(&mut self, frames: Range<usize>) -> Result<()> {
        let packed = self.history.packed_frames().min(frames.end);
        let mut next = frames.start;
        // A batch begins with a message, so one that goes on is finished first.
        while next + BATCH <= packed && self.merge == Merge::AdjacentRoles {
            let frame = self.frame(next)?;
            if frame.as_ref().is_some_and(|frame| self.begins_message(frame.role)) {
                break;
            }
            self.add(frame);
            next += 1;
        }
        while next + BATCH <= packed {
            if let Some(batch) = self.shared.find(next, packed) {
                self.close();
                next = batch.frames.end;
                self.push(batch);
            } else {
                next = self.make_batch(next, packed)?;
            }
        }
        for index in next..frames.end {
            let frame = self.frame(index)?;
            self.add(frame);
        }
        Ok(())
    }

    /// Makes a batch of the frames from `start` on, with which a message begins. Answers with the
    /// frame behind them. Where that is `packed`, the last message may go on, and no batch is made.
    fn make_batch(&mut self, start: usize, packed: usize) -> Result<usize> {
        self.close();
        self.open.reserve_exact(BATCH);
        let border = (start / BATCH + 1) * BATCH;
        let mut end = packed;
        for index in start..packed {
            let frame = self.frame(index)?;
            let begins = frame.as_ref().is_some_and(|frame| self.begins_message(frame.role));
            if begins && index >= border {
                end = index;
                break;
            }
            self.add(frame);
        }
        if end < packed || self.merge == Merge::PerFrame && end == border {
            let batch = self.batch(start..end);
            self.shared.keep(&batch);
            self.push(batch);
        }
        Ok(end)
    }

    /// What a frame rendered to; `None` where it shows nothing.
    fn frame(&mut self, index: usize) -> Result<Option<RenderedFrame>> {
        #[cfg(test)]
        tests::look(1);
        let Some((sequence, source, snapshot)) = self.all.shown(index) else { return Ok(None) };
        let snapshot = match snapshot {
            Some(snapshot) => snapshot,
            None if self.all.is_forgotten(index) => {
                let message = "the frame was forgotten, and no block stands for it";
                return Err(Error::new(ErrorKind::Dropped, message).at_frame(sequence.get()));
            }
            None => SharedSnapshot::Whole(Arc::new(self.render_anew(index)?)),
        };
        if snapshot.is_empty() {
            return Ok(None);
        }
        let guard = self.guard.filter(|guard| matches!(guard(snapshot.text()), Cow::Owned(_)));
        let rewritten = guard.and_then(|guard| {
            let counter = &**self.hud.counter();
            self.all.snapshot(index)?.rewritten(counter, |text, _| guard(text))
        });
        let snapshot = rewritten.map_or(snapshot, |of| SharedSnapshot::Whole(Arc::new(of)));
        let role = self.hud.role_of(&source);
        let role = role_of_chunks(&snapshot, role).unwrap_or(role);
        Ok(Some(RenderedFrame { sequence, role, snapshot }))
    }

    /// Renders a frame that has no snapshot, from the veil of its moment.
    fn render_anew(&mut self, index: usize) -> Result<FrameSnapshot> {
        let (hud, now) = (self.hud, self.now);
        let Some(frame) = self.all.get(index) else {
            return Err(Error::new(ErrorKind::OutOfRange, "the history has no such frame"));
        };
        let (led, veil) = self.follow(index)?;
        *led += 1;
        hud.render_frame(&frame, &veil.apply(&frame)?, now)
    }

    /// The veil before the frame at `index`, with that index. Indices rise.
    fn follow(&mut self, index: usize) -> Result<&mut (usize, Veil)> {
        let history = self.history;
        let followed = self.followed.get_or_insert_with(|| {
            let (at, veil) = history.veil_before(index);
            (at, veil.clone())
        });
        let (led, veil) = &mut *followed;
        history.expect_known(*led..index)?;
        #[cfg(test)]
        tests::look(index - *led);
        for frame in self.all.slice(*led..index) {
            veil.apply(&frame)?;
        }
        *led = index;
        Ok(followed)
    }

    /// The veil before the frame at `index`, which is not before any that was added.
    pub(super) fn veil_at(&mut self, index: usize) -> Result<Cow<'h, Veil>> {
        if index >= self.all.len() {
            return Ok(Cow::Borrowed(self.history.veil()));
        }
        self.follow(index)?;
        Ok(self
            .followed
            .take()
            .map_or(Cow::Borrowed(self.history.veil()), |(_, veil)| Cow::Owned(veil)))
    }

    /// Whether a frame of this role would begin a message.
    fn begins_message(&self, role: Role) -> bool {
        let last = self.open.last().or_else(|| self.messages.last());
        let goes_on =
            |last: &Message| !last.is_block() && last.frames.is_some() && last.role == role;
        self.merge == Merge::PerFrame || !last.is_some_and(goes_on)
    }

    fn add(&mut self, frame: Option<RenderedFrame>) {
        let Some(RenderedFrame { sequence, role, snapshot }) = frame else { return };
        let begins = self.begins_message(role);
        if !begins && self.open.is_empty() {
            self.open_again();
        }
        add(&mut self.open_tokens, self.hud.chunk_tokens_of(&snapshot));
        let from = PieceSource::Frame(sequence, snapshot);
        let Some(message) = self.open.last_mut().filter(|_| !begins) else {
            return self.begin(role, Some((sequence, sequence)), from);
        };
        message.frames = message.frames.map(|(first, _)| (first, sequence));
        let separator = self.hud.frame_separator();
        if !separator.is_empty() {
            add(&mut self.open_tokens, self.hud.counter().count(separator) as u64);
            let from = PieceSource::Framing("separator", Arc::clone(separator));
            message.pieces.push(Piece { start: message.len(), from });
        }
        message.pieces.push(Piece { start: message.len(), from });
    }

    fn begin(&mut self, role: Role, frames: Option<(FrameSeq, FrameSeq)>, from: PieceSource) {
        let pieces = smallvec![Piece { start: 0, from }];
        self.open.push(Message { role, frames, pieces, tokens: 0 });
    }

    /// Takes the last messages out of their batch, since the last of them goes on.
    fn open_again(&mut self) {
        let Some(batch) = self.messages.pop() else { return };
        self.in_row = 0;
        if let Body::Messages(messages) = &batch.body {
            self.open.clone_from(messages);
            self.open_tokens = batch.chunk_tokens;
        }
    }

    /// The messages that are open, which show all of these frames, as a batch.
    fn batch(&mut self, frames: Range<usize>) -> Arc<MessageBatch> {
        let mut messages = std::mem::take(&mut self.open);
        messages.shrink_to_fit();
        let mut exact_tokens = 0;
        for message in &mut messages {
            message.tokens = self.hud.exact_tokens(message);
            add(&mut exact_tokens, message.tokens);
        }
        let chunk_tokens = std::mem::take(&mut self.open_tokens);
        let body = Body::Messages(messages);
        Arc::new(MessageBatch { frames, chunk_tokens, exact_tokens, body })
    }

    /// Finishes the messages that are open.
    fn close(&mut self) {
        if !self.open.is_empty() {
            let batch = self.batch(0..0);
            self.messages.push(batch);
            self.in_row = 0;
        }
    }

    /// Appends a shared batch, and batches it with those before it where they are enough.
    fn push(&mut self, batch: Arc<MessageBatch>) {
        let last_end = self.messages.batches().next_back().map(|last| last.frames.end);
        let follows = last_end == Some(batch.frames.start);
        self.in_row = match batch.is_batched() {
            true => 0,
            false if follows => self.in_row + 1,
            false => 1,
        };
        self.messages.push(batch);
        if self.in_row == BATCHES {
            self.in_row = 0;
            let batched = Arc::new(MessageBatch::of(self.messages.split_off(BATCHES)));
            self.shared.keep(&batched);
            self.messages.push(batched);
        }
    }

    /// The messages of the context, with its tail, and the sums of their tokens.
    pub(super) fn finish(mut self, tail: Option<&Arc<FrameSnapshot>>) -> (Messages, ContextTokens) {
        if let Some(tail) = tail {
            self.add_tail(tail);
        }
        self.close();
        let mut tokens = ContextTokens::default();
        for batch in self.messages.batches() {
            add(&mut tokens.chunks, batch.chunk_tokens);
            add(&mut tokens.exact, batch.exact_tokens);
        }
        self.shared.give_back(self.history);
        (self.messages, tokens)
    }

    fn add_tail(&mut self, tail: &Arc<FrameSnapshot>) {
        add(&mut self.open_tokens, tail.total_tokens());
        let prefill = tail.chunks().find(|chunk| chunk.role() == Some(Role::Assistant));
        let split = prefill.map_or(tail.text().len(), |chunk| chunk.range().start());
        let parts = [(Role::User, 0, split), (Role::Assistant, split, tail.text().len())];
        for (role, start, end) in parts {
            if start < end {
                let snapshot = SharedSnapshot::Whole(Arc::clone(tail));
                let from = PieceSource::Tail(snapshot, TextRange::at(start, end - start));
                self.begin(role, None, from);
            }
        }
    }
}

/// The role in which the chunks agree; those that have none follow the others. Does not look
/// further where the first agrees with `usual`.
fn role_of_chunks(snapshot: &SharedSnapshot, usual: Role) -> Option<Role> {
    let mut roles = snapshot.roles();
    roles.next().filter(|first| *first == usual || roles.all(|role| role == *first))
}

/// Adds and saturates: the counts of a loaded snapshot are what its file declares.
pub(super) fn add(sum: &mut u64, tokens: u64) {
    *sum = sum.saturating_add(tokens);
}
