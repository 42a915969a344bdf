//! The last context of a window, as the beginning of requests for summaries.

use std::sync::Arc;

use crate::{
    compress::{CompressionJob, SentMessage, SentRequest},
    hud::{Message, RenderedContext},
};

impl From<&RenderedContext> for SentRequest {
    /// The messages of a context, byte for byte. Copies their texts.
    fn from(context: &RenderedContext) -> Self {
        let message = |message: &Message| SentMessage {
            role: message.role(),
            content: message.content().into_owned(),
            frames: message.frames(),
        };
        Self { messages: context.messages().iter().map(message).collect(), body: None }
    }
}

/// The context that a window made last, and the same as the jobs of an epoch share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastContext {
    context: Option<RenderedContext>,
    sent: Option<Arc<SentRequest>>,
}

impl LastContext {
    /// Takes note of a context that is sent now. Shares its texts.
    pub(super) fn note(&mut self, context: &RenderedContext) {
        *self = Self { context: Some(context.clone()), sent: None };
    }

    /// The job with what was sent last, where something was.
    pub(super) fn give(&mut self, job: CompressionJob) -> CompressionJob {
        let Some(context) = &self.context else { return job };
        let sent = self.sent.get_or_insert_with(|| Arc::new(SentRequest::from(context)));
        job.with_sent(Arc::clone(sent))
    }
}
