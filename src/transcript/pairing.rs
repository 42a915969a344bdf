use std::sync::Arc;

use indexmap::IndexMap;

use super::draft::FrameDraft;
use crate::veil::{OpenCalls, PartContent, Source};

/// How many calls of a session may wait for their result; the oldest are given up first.
const OPEN_CALLS: usize = 1_024;
/// Of how many sessions the open calls are remembered.
const SESSIONS: usize = 1_024;

/// Finds the tool of each result, session by session, in bounded memory: as a history pairs them
/// (see [`Pairs`](crate::veil::Pairs)).
#[derive(Debug, Default)]
pub(super) struct Pairing {
    sessions: IndexMap<Arc<str>, OpenCalls<()>>,
}

impl Pairing {
    /// Takes the calls and results of the next frame, and gives the results the names of their
    /// tools where they lack them.
    pub(super) fn pair(&mut self, session: &Arc<str>, draft: &mut FrameDraft) {
        if draft.facets.is_empty() {
            return;
        }
        let open = self.session(session);
        open.next_frame(draft.source == Source::Agent);
        for facet in &mut draft.facets {
            if let Some(call) = facet.call() {
                open.call(call.id, call.name, ());
            } else if facet.is_result() {
                let name = facet.tool_name().filter(|name| !name.is_empty());
                let is_named = name.is_some();
                let answered = open.answer(facet.call_id(), name);
                if let Some(answered) = answered.filter(|_| !is_named)
                    && let PartContent::Result { tool, .. } = &mut facet.part_mut().content
                {
                    *tool = Some(answered.name);
                }
            }
        }
    }

    fn session(&mut self, session: &Arc<str>) -> &mut OpenCalls<()> {
        if !self.sessions.contains_key(session) && self.sessions.len() >= SESSIONS {
            self.sessions.shift_remove_index(0);
        }
        self.sessions.entry(session.clone()).or_insert_with(|| OpenCalls::new(OPEN_CALLS))
    }
}
