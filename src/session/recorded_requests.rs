use std::{collections::HashMap, sync::Arc};

use super::RequestSums;
use crate::{
    request::{PartKind, Provenance, ReportedExchange, Request},
    tokens::TokenCounter,
    transcript::RecordedExchange,
    window::ContextSize,
};

/// The sums of requests that were recorded, as they come. No body of them is kept.
#[derive(Clone, Debug, Default)]
pub struct RecordedRequests {
    requests: u64,
    tokens: u64,
    /// Whether some of them are not what was sent.
    is_logged: bool,
    /// The last request of each session: where it stands, and what it holds.
    last: HashMap<Arc<str>, (u64, RequestSize)>,
    reported: Vec<ReportedExchange>,
}

/// What a recorded request holds.
#[derive(Clone, Copy, Debug, Default)]
struct RequestSize {
    context: ContextSize,
    tools: u64,
}

impl RecordedRequests {
    /// Adds the request of an exchange. Counts its tokens. O(the body).
    pub fn push(&mut self, exchange: &RecordedExchange, counter: &dyn TokenCounter) {
        self.reported.push(exchange.into());
        self.is_logged |= !exchange.is_as_sent;
        if !exchange.is_listed {
            return;
        }
        let size = RequestSize::of(&Request::recorded(exchange), counter);
        self.requests += 1;
        self.tokens = self.tokens.saturating_add(size.tools).saturating_add(size.context.tokens());
        let next = (exchange.line, size);
        let last = self.last.entry(Arc::clone(&exchange.session)).or_insert(next);
        if exchange.line >= last.0 {
            *last = next;
        }
    }

    /// Where they come from: [`Provenance::Logged`] where some were not kept as they were sent;
    /// `None` where there is none.
    pub fn provenance(&self) -> Option<Provenance> {
        let provenance = if self.is_logged { Provenance::Logged } else { Provenance::Sent };
        (!self.reported.is_empty()).then_some(provenance)
    }

    /// What is reported of the exchanges so far.
    pub fn reported(&self) -> &[ReportedExchange] {
        &self.reported
    }

    /// The sums so far. O(sessions).
    pub fn requests(&self) -> RequestSums {
        let sums =
            RequestSums { requests: self.requests, tokens: self.tokens, ..Default::default() };
        self.last.values().fold(sums, |sums, (_, size)| RequestSums {
            last: sums.last.plus(size.context),
            last_tools: sums.last_tools.saturating_add(size.tools),
            ..sums
        })
    }
}

impl RequestSize {
    fn of(request: &Request, counter: &dyn TokenCounter) -> Self {
        let tokens = request.tokens(counter);
        let mut context = ContextSize {
            bytes: request.body().len() as u64,
            system_tokens: tokens.system,
            message_tokens: tokens.messages,
            ..ContextSize::default()
        };
        for part in request.parts() {
            let (PartKind::System { frame } | PartKind::Message { frame, .. }) = part.kind else {
                continue;
            };
            context.messages += 1;
            context.frames += u64::from(frame.is_some());
        }
        Self { context, tools: tokens.tools }
    }
}
