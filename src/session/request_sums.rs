//! The sums of requests: one place adds them up, whether they were recorded or worked out.

use std::{collections::HashMap, sync::Arc};

use crate::{
    request::{CountedParts, PartKind, Request},
    tokens::TokenCounter,
    window::ContextSize,
};

/// The sums of the requests of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSums {
    /// How many there are.
    pub requests: u64,
    /// The tokens of their contexts together.
    pub tokens: u64,
    /// What the contexts of the last request of each session come to.
    pub last: ContextSize,
    /// The tokens of the tools of these last requests, where they were recorded.
    pub last_tools: u64,
}

impl RequestSums {
    /// The tokens of the last request of each session.
    pub fn last_tokens(&self) -> u64 {
        self.last.tokens().saturating_add(self.last_tools)
    }
}

/// What a request holds: its context, and the tokens of its tools.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestSize {
    pub(super) context: ContextSize,
    pub(super) tools: u64,
}

/// Requests that are added up as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestTally(Vec<TalliedRequest>);

#[derive(Clone, Debug)]
struct TalliedRequest {
    session: Arc<str>,
    place: u64,
    size: RequestSize,
}

impl RequestTally {
    /// Adds a request that stands at this place of the source.
    pub(super) fn add(&mut self, session: &Arc<str>, place: u64, size: RequestSize) {
        self.0.push(TalliedRequest { session: Arc::clone(session), place, size });
    }

    /// Puts another size in the place of that which the request at this place had. O(requests since).
    pub(super) fn replace(&mut self, place: u64, size: RequestSize) {
        if let Some(of) = self.0.iter_mut().rev().find(|of| of.place == place) {
            of.size = size;
        }
    }

    /// The sums so far. O(requests).
    pub(super) fn sums(&self) -> RequestSums {
        let mut sums = RequestSums { requests: self.0.len() as u64, ..Default::default() };
        let mut last: HashMap<&str, &TalliedRequest> = HashMap::new();
        for of in &self.0 {
            let tokens = of.size.tools.saturating_add(of.size.context.tokens());
            sums.tokens = sums.tokens.saturating_add(tokens);
            let last = last.entry(&of.session).or_insert(of);
            if of.place >= last.place {
                *last = of;
            }
        }
        last.values().fold(sums, |sums, of| RequestSums {
            last: sums.last.plus(of.size.context),
            last_tools: sums.last_tools.saturating_add(of.size.tools),
            ..sums
        })
    }
}

impl RequestSize {
    /// That of a recorded request. Counts the tokens of what no earlier one had. O(the body).
    pub(super) fn of(
        request: &Request,
        counted: &mut CountedParts,
        counter: &dyn TokenCounter,
    ) -> Self {
        let tokens = request.tokens_by(|part| counted.of(request, part, counter));
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
