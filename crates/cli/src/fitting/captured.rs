//! The sessions of a source as histories.

use std::sync::Arc;

use afterimage::{
    request::{Request, RequestOverhead, answering_model},
    tokens::TokenCounter,
    transcript::Exchange,
    veil::History,
};
use indexmap::IndexMap;

use super::pins::Pins;
use crate::{failure::Outcome, input::Source, lens::Lens, moment::moment};

/// The frames of a session, captured.
#[derive(Default)]
pub(super) struct Captured {
    pub(super) history: History,
    /// The model that answered last.
    pub(super) model: Option<String>,
    /// What its requests add to their messages, where they were recorded: the most of any.
    pub(super) overhead: RequestOverhead,
}

/// What a recorded request adds to its messages.
pub(crate) fn overhead_of(exchange: &Exchange, counter: &dyn TokenCounter) -> RequestOverhead {
    Request::recorded(exchange).overhead(counter)
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
        of.model = answering_model(&record.frame).or_else(|| of.model.take());
        let now = moment(&record.frame);
        lens.hud
            .capture(&mut of.history, record.frame, now)
            .map_err(|error| source.refuse(error))?;
    }
    for exchange in source.take_exchanges()? {
        let Some(of) = sessions.get_mut(&exchange.session) else { continue };
        of.overhead = of.overhead.max(overhead_of(&exchange, &*lens.counter));
        if let Some(model) = exchange.model {
            of.model = Some(model.to_string());
        }
    }
    Ok(sessions)
}

/// The histories of the sessions of a source.
pub(crate) fn histories(source: &mut Source, lens: &Lens) -> Outcome<IndexMap<Arc<str>, History>> {
    let captured = sessions(source, lens, &mut Pins::new(&[]))?.into_iter();
    Ok(captured.map(|(name, captured)| (name, captured.history)).collect())
}
