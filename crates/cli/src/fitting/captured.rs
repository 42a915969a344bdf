//! The sessions of a source as histories.

use std::sync::Arc;

use afterimage::{
    request::{Request, RequestOverhead, answering_model},
    tokens::TokenCounter,
    transcript::Exchange,
    veil::{Frame, History},
};
use indexmap::IndexMap;

use super::pins::Pins;
use crate::{failure::Outcome, input::Source, lens::Lens, moment::moment};

/// The frames of a session, captured.
#[derive(Default)]
pub(super) struct Captured {
    pub(super) history: History,
    pub(super) asked: AskedModel,
}

/// The model that a session asks, and what its requests add to their messages.
#[derive(Default)]
pub(crate) struct AskedModel {
    /// The model that answered last.
    pub(crate) name: Option<String>,
    /// Where requests were recorded, the most that any of them adds.
    pub(crate) overhead: RequestOverhead,
}

impl AskedModel {
    /// Takes the next frame of the session.
    pub(crate) fn see(&mut self, frame: &Frame) {
        self.name = answering_model(frame).or_else(|| self.name.take());
    }

    /// Takes an exchange of the session, and counts what its request adds.
    pub(crate) fn take(&mut self, exchange: &Exchange, counter: &dyn TokenCounter) {
        self.overhead = self.overhead.max(Request::recorded(exchange).overhead(counter));
        if let Some(model) = &exchange.model {
            self.name = Some(model.to_string());
        }
    }
}

/// The sessions of a source, captured, with what is pinned in them.
pub(super) fn sessions(
    source: &mut Source,
    lens: &Lens,
    pins: &mut Pins<'_>,
) -> Outcome<IndexMap<Arc<str>, Captured>> {
    let mut sessions: IndexMap<Arc<str>, Captured> = IndexMap::new();
    source.keep_exchanges();
    while let Some(record) = source.next() {
        let mut record = source.sealed(record?)?;
        pins.pin(&mut record.frame);
        let of = sessions.entry(record.session).or_default();
        of.asked.see(&record.frame);
        let now = moment(&record.frame);
        lens.hud
            .capture(&mut of.history, record.frame, now)
            .map_err(|error| source.refuse(error))?;
    }
    for exchange in source.take_exchanges()? {
        if let Some(of) = sessions.get_mut(&exchange.session) {
            of.asked.take(&exchange, &*lens.counter);
        }
    }
    Ok(sessions)
}

/// The histories of the sessions of a source.
pub(crate) fn histories(source: &mut Source, lens: &Lens) -> Outcome<IndexMap<Arc<str>, History>> {
    let captured = sessions(source, lens, &mut Pins::new(&[]))?.into_iter();
    Ok(captured.map(|(name, captured)| (name, captured.history)).collect())
}
