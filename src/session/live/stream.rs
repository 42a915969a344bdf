use super::{Session, SessionAnswer};
use crate::Result;

/// An answer that streams in: the bytes of its events, as they come.
///
/// What came is an answer only once [`AnswerStream::end`], or [`AnswerStream::cut`], has returned. One
/// that is let go before leaves its request waiting.
#[derive(Debug)]
pub struct AnswerStream<'s> {
    session: &'s mut Session,
    bytes: Vec<u8>,
}

impl<'s> AnswerStream<'s> {
    pub(super) fn new(session: &'s mut Session) -> Self {
        Self { session, bytes: Vec::new() }
    }

    /// Takes what came: of any length, cut anywhere.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(bytes.as_ref());
    }

    /// The stream has come to its end. Where its last event did not come, what came is an answer that
    /// is [cut](SessionAnswer::cut).
    ///
    /// # Errors
    /// Those of [`Session::answer`].
    pub fn end(self) -> Result<SessionAnswer> {
        self.session.answer(&self.bytes)
    }

    /// The stream broke off, for this reason: what came of it is kept.
    ///
    /// # Errors
    /// Those of [`Session::answer`]: also where nothing came that could be kept.
    pub fn cut(self, reason: impl Into<String>) -> Result<SessionAnswer> {
        // The last character may be cut too.
        let text = self.bytes.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
        self.session.take_answer(text, Some(reason.into()))
    }
}
