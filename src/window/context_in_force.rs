use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::RecordedCompactions;
use crate::{
    Result,
    hud::Hud,
    id::{FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind},
    veil::History,
};

/// The context in force of one session, frame by frame: what it holds and what that comes to.
///
/// It keeps numbers of each frame, and no text but that of summaries. Whoever shows a context, or
/// adds one up, asks here which frames are in it.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     hud::Hud, id::{FacetType, Millis}, tokens::Chars4, window::{ContextInForce, ContextItem},
///     veil::{Compaction, Facet, FacetOp, Frame, History, Source},
/// };
///
/// let (hud, now) = (Hud::new(Arc::new(Chars4)), Millis::new(0));
/// let (mut history, mut context) = (History::new(), ContextInForce::default());
/// for (n, text) in ["We looked for the key.", "It was gone."].into_iter().enumerate() {
///     let facet = Facet::new(format!("said-{n}"), FacetType::EVENT, text);
///     let frame = Frame::new(n as u64, Source::User).with(FacetOp::add(facet));
///     hud.capture(&mut history, frame, now)?;
///     context.follow(&hud, &history, now)?;
/// }
/// assert_eq!(context.size().messages, 2);
/// let mut told = Frame::new(2, Source::Environment);
/// let summary = Facet::new("summary", FacetType::SUMMARY, "The key is gone.");
/// told.events.push(Compaction::event(0.into(), 1.into(), "pi", Some(&summary)));
/// hud.capture(&mut history, told, now)?;
/// context.follow(&hud, &history, now)?;
/// assert_eq!((context.size().messages, context.size().replaced), (1, 2));
/// assert!(matches!(context.items().next(), Some(ContextItem::Block(_))));
/// assert_eq!(context.left_at(1.into()).map(|left| left.at.get()), Some(2));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ContextInForce {
    compactions: RecordedCompactions,
    blocks: Arc<Vec<Substitution>>,
    /// The frames that show something, in order.
    frames: Vec<(FrameSeq, ContextSize)>,
    size: ContextSize,
    /// By the block's id: since when it stands there.
    since: BTreeMap<Arc<str>, LeftAt>,
    /// By the block's id: the frame that tells of what stands there now.
    told: BTreeMap<Arc<str>, FrameSeq>,
    /// What stood in the place of frames and does so no more, by the frames that told of it.
    former: BTreeMap<FrameSeq, Vec<FormerBlock>>,
}

/// What stood in the place of frames, until something else did.
#[derive(Clone, Debug, PartialEq)]
pub struct FormerBlock {
    /// What the context held.
    pub block: Substitution,
    /// Since when it does not.
    pub left: LeftAt,
}

/// What a context comes to. The tokens are the sums over chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSize {
    /// The frames that stand in it as they are and show something.
    pub frames: u64,
    /// The frames that show something and are in it no more. A frame that tells of a summary is
    /// none of them while the summary stands.
    pub replaced: u64,
    /// Its messages.
    pub messages: u64,
    /// The bytes of their texts.
    pub bytes: u64,
    /// The tokens of the operator's messages.
    pub system_tokens: u64,
    /// The tokens of the other messages.
    pub message_tokens: u64,
}

/// Something in a context that is a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContextItem<'c> {
    /// A frame, as it is.
    Frame(FrameSeq),
    /// What stands in the place of frames.
    Block(&'c Substitution),
}

/// Since when a frame is in the context no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftAt {
    /// The frame that tells of it.
    pub at: FrameSeq,
    /// Whether a summary took the place of the frames.
    pub has_summary: bool,
}

impl ContextSize {
    /// What a snapshot that is no frame comes to as a message; nothing where it shows nothing.
    /// O(chunks), which are counted where another tokenizer counted them.
    pub fn of(hud: &Hud, shown: &FrameSnapshot) -> Self {
        if shown.is_empty() {
            return Self::default();
        }
        let tokens = hud.tokens_of(shown);
        let role = shown.chunks().find_map(|chunk| chunk.role());
        let is_system = role == Some(Role::System);
        Self {
            frames: 0,
            replaced: 0,
            messages: 1,
            bytes: shown.text().len() as u64,
            system_tokens: if is_system { tokens } else { 0 },
            message_tokens: if is_system { 0 } else { tokens },
        }
    }

    /// All tokens.
    pub fn tokens(self) -> u64 {
        self.system_tokens.saturating_add(self.message_tokens)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            frames: self.frames.saturating_add(other.frames),
            replaced: self.replaced.saturating_add(other.replaced),
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
            system_tokens: self.system_tokens.saturating_add(other.system_tokens),
            message_tokens: self.message_tokens.saturating_add(other.message_tokens),
        }
    }
}

impl ContextInForce {
    /// Takes the last frame of `history`, which was captured, with what it tells of the context.
    /// Says whether frames left the context or came back to it. To be called after each frame.
    /// Costs the chunks of the frame; where it tells of a compaction or a branch, linear in the
    /// frames and blocks so far.
    ///
    /// # Errors
    /// Those of [`RecordedCompactions::follow`].
    pub fn follow(&mut self, hud: &Hud, history: &History, now: Millis) -> Result<bool> {
        let Some(last) = history.frames().last() else { return Ok(false) };
        if let Some(shown) = &last.rendered_snapshot {
            self.push(last.sequence, ContextSize::of(hud, shown));
        }
        self.follow_told(hud, history, now)
    }

    /// Adds a frame that comes to so much.
    pub(crate) fn push(&mut self, sequence: FrameSeq, size: ContextSize) {
        if size.messages > 0 {
            let size = ContextSize { frames: 1, ..size };
            self.frames.push((sequence, size));
            self.size = self.size.plus(size);
        }
    }

    /// Takes what the last frame of `history` tells of the context.
    pub(crate) fn follow_told(
        &mut self,
        hud: &Hud,
        history: &History,
        now: Millis,
    ) -> Result<bool> {
        self.compactions.follow(hud, history, now)?;
        if Arc::ptr_eq(self.compactions.blocks(), &self.blocks) {
            return Ok(false);
        }
        let before = std::mem::replace(&mut self.blocks, Arc::clone(self.compactions.blocks()));
        // An edit of a frame may follow another one.
        let place = |block: &Substitution| (Arc::clone(&block.block), block.from, block.to);
        let key = |block: &Substitution| (place(block), Arc::as_ptr(&block.snapshot));
        let keys = |of: &[Substitution]| of.iter().map(key).collect::<HashSet<_>>();
        let (known, stays) = (keys(&before), keys(&self.blocks));
        let new = self.blocks.iter().filter(|block| !known.contains(&key(block)));
        let has_summary = new
            .clone()
            .any(|block| block.stands == SubstitutionKind::Block && !block.snapshot.is_empty());
        let at = history.frames().last().map(|frame| frame.sequence).unwrap_or_default();
        let left = LeftAt { at, has_summary };
        let gone = before.iter().filter(|block| !stays.contains(&key(block)));
        for block in gone.filter(|block| !block.snapshot.is_empty()) {
            let Some(told) = self.teller_of(block) else { continue };
            self.former.entry(told).or_default().push(FormerBlock { block: block.clone(), left });
        }
        let stood: HashSet<_> = before.iter().map(place).collect();
        for block in new {
            self.told.insert(Arc::clone(&block.block), at);
            if !stood.contains(&place(block)) {
                self.since.insert(Arc::clone(&block.block), left);
            }
        }
        self.count_again(hud);
        Ok(true)
    }

    fn count_again(&mut self, hud: &Hud) {
        let mut size = ContextSize::default();
        let mut blocks = self.blocks.iter().peekable();
        for (frame, of_frame) in &self.frames {
            while blocks.next_if(|block| block.to < *frame).is_some() {}
            match blocks.peek().filter(|block| block.from <= *frame) {
                None => size = size.plus(*of_frame),
                Some(block) => {
                    size.replaced += u64::from(self.teller_of(block) != Some(*frame));
                }
            }
        }
        let shown = self.blocks.iter().map(|block| ContextSize::of(hud, &block.snapshot));
        self.size = shown.fold(size, ContextSize::plus);
    }

    /// What the context comes to, the tail aside.
    pub fn size(&self) -> ContextSize {
        self.size
    }

    /// What stands in the place of frames, in order. Shared until it changes.
    pub fn blocks(&self) -> &Arc<Vec<Substitution>> {
        &self.blocks
    }

    /// What stands in the place of a frame; `None` where the frame stands for itself. O(log n).
    pub fn block_of(&self, frame: FrameSeq) -> Option<&Substitution> {
        let after = self.blocks.partition_point(|block| block.from <= frame);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        (frame <= block.to).then_some(block)
    }

    /// Since when a frame is in the context no more; `None` where it is in it. O(log n).
    pub fn left_at(&self, frame: FrameSeq) -> Option<LeftAt> {
        self.since.get(&self.block_of(frame)?.block).copied()
    }

    /// The frame that tells of a block of the context. O(log n).
    pub fn teller_of(&self, block: &Substitution) -> Option<FrameSeq> {
        self.told.get(&block.block).copied()
    }

    /// The summaries in the context that a frame tells of.
    ///
    /// Cost: O(blocks).
    pub fn told_at(&self, frame: FrameSeq) -> impl Iterator<Item = &Substitution> {
        let is_told = move |block: &&Substitution| self.teller_of(block) == Some(frame);
        self.blocks.iter().filter(is_told).filter(|block| !block.snapshot.is_empty())
    }

    /// What a frame tells of that the context held and holds no more: summaries, and frames that
    /// were read otherwise than they were written. O(log n).
    pub fn former_at(&self, frame: FrameSeq) -> &[FormerBlock] {
        self.former.get(&frame).map_or(&[], Vec::as_slice)
    }

    /// The index of the message that a frame is, also where it is read otherwise than it was written;
    /// `None` where it is none. O(log n) for each block.
    pub fn message_of(&self, frame: FrameSeq) -> Option<usize> {
        let is_shown = self.frames.binary_search_by_key(&frame, |(shown, _)| *shown).is_ok();
        let block = self.block_of(frame);
        let stands = block.is_none_or(|block| block.stands == SubstitutionKind::Shortened);
        (is_shown && stands).then(|| self.messages_before(frame))
    }

    /// How many messages stand before a frame that stands for itself, or before the first frame
    /// that a block stands for. O(log n) for each block.
    pub fn messages_before(&self, frame: FrameSeq) -> usize {
        let before = |end: FrameSeq| self.frames.partition_point(|(shown, _)| *shown < end);
        let until = |end: FrameSeq| self.frames.partition_point(|(shown, _)| *shown <= end);
        let blocks = self.blocks.iter().take_while(|block| block.to < frame);
        blocks.fold(before(frame), |messages, block| {
            let replaced = until(block.to).saturating_sub(before(block.from));
            messages.saturating_sub(replaced) + usize::from(!block.snapshot.is_empty())
        })
    }

    /// The messages of the context in order, the tail aside.
    ///
    /// Cost: O(1) for each frame and block that is passed.
    pub fn items(&self) -> impl Iterator<Item = ContextItem<'_>> {
        context_items(self.frames.iter().map(|(sequence, _)| *sequence), &self.blocks)
    }
}

/// The messages of a context with these frames and blocks, in order.
pub(crate) fn context_items(
    frames: impl Iterator<Item = FrameSeq>,
    blocks: &[Substitution],
) -> impl Iterator<Item = ContextItem<'_>> {
    let mut frames = frames.peekable();
    let mut blocks = blocks.iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let next = frames.peek().copied();
            let due = |block: &&Substitution| next.is_none_or(|frame| block.from <= frame);
            let Some(block) = blocks.next_if(due) else {
                return frames.next().map(ContextItem::Frame);
            };
            while frames.next_if(|frame| *frame <= block.to).is_some() {}
            if !block.snapshot.is_empty() {
                return Some(ContextItem::Block(block));
            }
        }
    })
}
