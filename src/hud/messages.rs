use std::{
    cmp::Ordering,
    fmt,
    ops::{Index, Range},
    slice,
    sync::Arc,
};

use super::{Message, message::PieceSource};
use crate::id::FrameSeq;

/// The messages of a context, in order. Reads like a slice.
///
/// They lie in batches that contexts share, so a clone costs O(n / 4,096).
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     hud::{Hud, RenderRequest}, id::{FacetType, Millis}, tokens::Chars4,
///     veil::{Facet, FacetOp, Frame, History, Source},
/// };
///
/// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
/// for n in 0..3_u64 {
///     let event = Facet::new(format!("event-{n}"), FacetType::EVENT, format!("Tick {n}."));
///     hud.capture(&mut history, Frame::new(n, Source::User).with(FacetOp::add(event)), now)?;
/// }
/// let context = hud.render(&history, &RenderRequest::default(), now)?;
/// let messages = context.messages();
/// assert_eq!((messages.len(), &*messages[2].content()), (3, "Tick 2."));
/// assert!(messages.iter().rev().map(|message| message.content()).eq(["Tick 2.", "Tick 1.", "Tick 0."]));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Messages {
    /// Each with the index of its first message. None is empty.
    parts: Vec<(usize, Arc<MessageBatch>)>,
    len: usize,
}

/// Messages that follow each other and never change.
#[derive(Debug)]
pub(super) struct MessageBatch {
    /// The indices in the history of the frames that they show, where they show all of those.
    pub(super) frames: Range<usize>,
    /// The sums of their tokens, as in [`ContextTokens`](super::ContextTokens).
    pub(super) chunk_tokens: u64,
    pub(super) exact_tokens: u64,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Messages(Vec<Message>),
    /// Batches of messages. They hold no further batches.
    Batches(Messages),
}

impl MessageBatch {
    /// A batch of batches whose frames follow each other.
    pub(super) fn of(batches: Messages) -> Self {
        let (mut first, mut end, mut chunk_tokens, mut exact_tokens) = (None, 0, 0_u64, 0_u64);
        for (_, batch) in &batches.parts {
            first.get_or_insert(batch.frames.start);
            end = batch.frames.end;
            chunk_tokens = chunk_tokens.saturating_add(batch.chunk_tokens);
            exact_tokens = exact_tokens.saturating_add(batch.exact_tokens);
        }
        let frames = first.unwrap_or(end)..end;
        Self { frames, chunk_tokens, exact_tokens, body: Body::Batches(batches) }
    }

    fn len(&self) -> usize {
        match &self.body {
            Body::Messages(messages) => messages.len(),
            Body::Batches(batches) => batches.len,
        }
    }

    pub(super) fn is_batched(&self) -> bool {
        matches!(self.body, Body::Batches(_))
    }

    fn last(&self) -> Option<&Message> {
        match &self.body {
            Body::Messages(messages) => messages.last(),
            Body::Batches(batches) => batches.last(),
        }
    }

    /// The messages from `index` on that lie next to each other.
    fn from(&self, index: usize) -> &[Message] {
        match &self.body {
            Body::Messages(messages) => messages.get(index..).unwrap_or_default(),
            Body::Batches(batches) => batches.slice_from(index),
        }
    }

    fn partition_point(&self, is_before: &mut impl FnMut(&Message) -> bool) -> usize {
        match &self.body {
            Body::Messages(messages) => messages.partition_point(is_before),
            Body::Batches(batches) => batches.partition_point(is_before),
        }
    }
}

impl Messages {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The message at `index`, in O(log n).
    pub fn get(&self, index: usize) -> Option<&Message> {
        self.slice_from(index).first()
    }

    /// The last message.
    pub fn last(&self) -> Option<&Message> {
        self.parts.last().and_then(|(_, batch)| batch.last())
    }

    /// The messages in order.
    pub fn iter(&self) -> MessagesIter<'_> {
        self.from(0)
    }

    /// The messages from `start` on.
    pub(super) fn from(&self, start: usize) -> MessagesIter<'_> {
        self.between(start, self.len)
    }

    fn between(&self, start: usize, end: usize) -> MessagesIter<'_> {
        MessagesIter { all: self, range: start.min(end)..end, near: [].iter() }
    }

    /// The messages from `index` on that lie next to each other.
    fn slice_from(&self, index: usize) -> &[Message] {
        let after = self.parts.partition_point(|(start, _)| *start <= index);
        let part = after.checked_sub(1).and_then(|at| self.parts.get(at));
        part.map_or(&[], |(start, batch)| batch.from(index - start))
    }

    /// The number of the messages that come before the first for which `is_before` is false.
    fn partition_point(&self, is_before: &mut impl FnMut(&Message) -> bool) -> usize {
        let at = self.parts.partition_point(|(_, batch)| batch.last().is_some_and(&mut *is_before));
        self.parts
            .get(at)
            .map_or(self.len, |(start, batch)| start + batch.partition_point(is_before))
    }

    /// The message that shows a frame. O(log n).
    pub(super) fn of_frame(&self, frame: FrameSeq) -> Option<usize> {
        let at = self.partition_point(&mut |message| match message.frames {
            Some((_, last)) => last < frame,
            // The system prompt comes before all frames, the tail after them.
            None => matches!(
                message.pieces.first().map(|piece| &piece.from),
                Some(PieceSource::Framing(..))
            ),
        });
        let pieces = &self.get(at)?.pieces;
        // Between frames stand separators, or nothing.
        let is_apart = pieces.get(1).is_some_and(|piece| piece.from.frame().is_none());
        let step = if is_apart { 2 } else { 1 };
        let (mut start, mut end) = (0, pieces.len().div_ceil(step));
        while start < end {
            let middle = start + (end - start) / 2;
            match pieces.get(middle * step)?.from.frame()?.cmp(&frame) {
                Ordering::Equal => return Some(at),
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// How many messages at the beginning are the very same as those of `other`, and their tokens.
    /// Looks at no message.
    pub(super) fn shared_prefix(&self, other: &Self) -> (usize, u64) {
        let pairs = self.parts.iter().zip(&other.parts);
        let same = pairs.take_while(|((_, one), (_, other))| Arc::ptr_eq(one, other));
        same.fold((0, 0), |(_, tokens), ((start, batch), _)| {
            (start + batch.len(), batch.exact_tokens.saturating_add(tokens))
        })
    }

    /// Appends a batch; one without messages is left out.
    pub(super) fn push(&mut self, batch: Arc<MessageBatch>) {
        let len = batch.len();
        if len > 0 {
            self.parts.push((self.len, batch));
            self.len += len;
        }
    }

    /// Takes the last batch off, one of messages.
    pub(super) fn pop(&mut self) -> Option<Arc<MessageBatch>> {
        let (start, batch) = self.parts.pop()?;
        self.len = start;
        let Body::Batches(inner) = &batch.body else { return Some(batch) };
        inner.parts.iter().for_each(|(_, batch)| self.push(Arc::clone(batch)));
        self.pop()
    }

    /// Takes out the last `count` batches, so that one batch can take their place.
    pub(super) fn split_off(&mut self, count: usize) -> Self {
        let at = self.parts.len().saturating_sub(count);
        let mut last = Self::default();
        for (start, batch) in self.parts.split_off(at) {
            self.len = self.len.min(start);
            last.push(batch);
        }
        last
    }

    pub(super) fn batches(&self) -> impl DoubleEndedIterator<Item = &Arc<MessageBatch>> {
        self.parts.iter().map(|(_, batch)| batch)
    }
}

/// As slices do: panics where the index is past the end.
impl Index<usize> for Messages {
    type Output = Message;

    #[expect(clippy::indexing_slicing, reason = "this is indexing")]
    fn index(&self, index: usize) -> &Message {
        assert!(index < self.len, "expected an index below {}, found {index}", self.len);
        &self.slice_from(index)[0]
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = MessagesIter<'a>;

    fn into_iter(self) -> MessagesIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Goes through [`Messages`].
#[derive(Clone, Debug)]
pub struct MessagesIter<'a> {
    all: &'a Messages,
    range: Range<usize>,
    /// The messages from the next one on that lie next to each other.
    near: slice::Iter<'a, Message>,
}

impl<'a> Iterator for MessagesIter<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        let index = self.range.next()?;
        self.near.next().or_else(|| {
            self.near = self.all.slice_from(index).iter();
            self.near.next()
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<&'a Message> {
        *self = self.all.between(self.range.start.saturating_add(n), self.range.end);
        self.next()
    }
}

impl DoubleEndedIterator for MessagesIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.all.get(self.range.next_back()?)
    }
}

impl ExactSizeIterator for MessagesIter<'_> {}
impl std::iter::FusedIterator for MessagesIter<'_> {}
