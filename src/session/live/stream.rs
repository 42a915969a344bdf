use std::borrow::Cow;

#[cfg(feature = "nats")]
use super::NatsSession;
use super::{Session, SessionAnswer};
use crate::{Result, transcript::said_in};

/// An answer that streams in: the bytes of its events, as they come.
///
/// What came is an answer only once [`AnswerStream::end`], or [`AnswerStream::cut`], has returned. One
/// that is let go before leaves its request waiting.
#[derive(Debug)]
pub struct AnswerStream<'s, S = Session> {
    session: &'s mut S,
    bytes: Vec<u8>,
    /// How many of them are of events that were read, and how many cannot be the end of another.
    read: usize,
    seen: usize,
}

/// What a piece of a stream says, to be shown at once.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamedText {
    /// The words of the answer.
    pub text: String,
    /// The reasoning before them, where the provider tells it.
    pub reasoning: String,
}

impl<'s, S> AnswerStream<'s, S> {
    pub(super) fn new(session: &'s mut S) -> Self {
        Self { session, bytes: Vec::new(), read: 0, seen: 0 }
    }

    /// Takes what came: of any length, cut anywhere. Returns the text of the events that it completes, each
    /// once; the last event is complete once its blank line came. O(what came).
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) -> StreamedText {
        self.bytes.extend_from_slice(bytes.as_ref());
        let new = self.bytes.get(self.seen..).unwrap_or_default();
        // A blank line ends an event.
        let ends = |line: &[u8]| memchr::memmem::rfind(new, line).map(|at| at + line.len());
        let end = ends(b"\n\n").max(ends(b"\r\n\r\n")).map(|end| self.seen + end);
        self.seen = self.bytes.len().saturating_sub(3).max(end.unwrap_or(self.seen));
        let Some(end) = end else { return StreamedText::default() };
        let whole = self.bytes.get(self.read..end).unwrap_or_default();
        self.read = end;
        let (text, reasoning) = said_in(&String::from_utf8_lossy(whole));
        StreamedText { text, reasoning }
    }

    /// Gives what came as a text, and the reason where bytes of an event are no text. The first `read` bytes
    /// are whole events: bytes behind them that are no text belong to no answer.
    fn text(bytes: &[u8], read: usize) -> (Cow<'_, str>, Option<String>) {
        match str::from_utf8(bytes) {
            Ok(text) => (text.into(), None),
            Err(error) if (1..=error.valid_up_to()).contains(&read) => {
                (Self::valid(bytes).into(), None)
            }
            Err(error) => {
                let reason = format!("the stream is not all text in UTF-8; {error}");
                (String::from_utf8_lossy(bytes), Some(reason))
            }
        }
    }

    /// What came, without a last character that is cut.
    fn valid(bytes: &[u8]) -> &str {
        bytes.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default()
    }
}

impl AnswerStream<'_> {
    /// The stream has come to its end. Where its last event did not come, or not all of it is text in
    /// UTF-8, what came is an answer that is [cut](SessionAnswer::cut).
    ///
    /// # Errors
    /// Those of [`Session::answer`].
    pub fn end(self) -> Result<SessionAnswer> {
        let (body, cut) = Self::text(&self.bytes, self.read);
        self.session.take_answer(&body, cut)
    }

    /// The stream broke off, for this reason: what came of it is kept.
    ///
    /// # Errors
    /// Those of [`Session::answer`]: also where nothing came that could be kept.
    pub fn cut(self, reason: impl Into<String>) -> Result<SessionAnswer> {
        self.session.take_answer(Self::valid(&self.bytes), Some(reason.into()))
    }
}

#[cfg(feature = "nats")]
impl AnswerStream<'_, NatsSession> {
    /// As [`AnswerStream::<Session>::end`].
    ///
    /// # Errors
    /// Those of [`NatsSession::answer`].
    pub async fn end(self) -> Result<SessionAnswer> {
        let (body, cut) = Self::text(&self.bytes, self.read);
        self.session.take_answer(&body, cut).await
    }

    /// As [`AnswerStream::<Session>::cut`].
    ///
    /// # Errors
    /// Those of [`NatsSession::answer`]: also where nothing came that could be kept.
    pub async fn cut(self, reason: impl Into<String>) -> Result<SessionAnswer> {
        self.session.take_answer(Self::valid(&self.bytes), Some(reason.into())).await
    }
}
