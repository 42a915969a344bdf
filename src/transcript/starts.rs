use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;

use super::draft::FrameDraft;
use crate::{json::Object, veil::Facet};

/// How many subagents, calls and prompts are remembered, each; the oldest are forgotten first.
const REMEMBERED: usize = 4_096;

/// The call that started a subagent, and the session that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) session: String,
    pub(super) call: String,
}

/// Which calls started which subagents, as the records of Claude Code tell it.
#[derive(Debug, Default)]
pub(super) struct Starts {
    by_agent: IndexMap<String, Start>,
    /// By the hash of the prompt that a call hands on.
    by_prompt: IndexMap<u64, Start>,
    /// By the id of the record that holds the call.
    by_record: IndexMap<String, Start>,
    /// The sessions of subagents whose first frame was given.
    told: IndexMap<String, ()>,
}

impl Starts {
    /// Reads what a record says of a subagent: the result of a call, or its progress. Returns
    /// whether the record speaks of a subagent.
    pub(super) fn read_start(&mut self, record: &Object, session: &str) -> bool {
        let text = |key: &str| record.str_at(key);
        let of_progress = || {
            let agent = record.get("data").and_then(|data| data.str_at("agentId"))?;
            Some((agent, text("parentToolUseID")?))
        };
        let of_result = || {
            let agent = record.get("toolUseResult")?.str_at("agentId")?;
            let blocks = record.get("message")?.get("content")?.as_array()?;
            let mut results =
                blocks.iter().filter(|block| block.str_at("type") == Some("tool_result"));
            let id = results.find_map(|block| block.str_at("tool_use_id"));
            Some((agent, id.or_else(|| text("sourceToolUseID"))?))
        };
        let Some((agent, call)) = of_progress().or_else(of_result) else { return false };
        if !self.by_agent.contains_key(agent) {
            let start = Start { session: session.to_owned(), call: call.to_owned() };
            put(&mut self.by_agent, agent.to_owned(), start);
        }
        true
    }

    /// Takes the calls of an answer that hand a prompt on.
    pub(super) fn calls(&mut self, draft: &FrameDraft, record: Option<&str>, session: &str) {
        for call in draft.facets.iter().filter_map(Facet::call) {
            let prompt = call.parameters.and_then(|value| value.str_at("prompt"));
            let (Some(prompt), Some(id)) = (prompt, call.id) else { continue };
            let start = Start { session: session.to_owned(), call: id.to_owned() };
            put(&mut self.by_prompt, hash(prompt), start.clone());
            if let Some(record) = record {
                put(&mut self.by_record, record.to_owned(), start);
            }
        }
    }

    /// What started a subagent, for the first message of its session; `None` for later ones, and
    /// where no record tells.
    pub(super) fn of_first(
        &mut self,
        draft: &FrameDraft,
        record: &Object,
        session: &str,
    ) -> Option<Start> {
        if self.told.contains_key(session) {
            return None;
        }
        put(&mut self.told, session.to_owned(), ());
        let text = |key: &str| record.str_at(key);
        let by_agent = text("agentId").and_then(|agent| self.by_agent.get(agent));
        let by_prompt = || {
            let [facet] = draft.facets.as_slice() else { return None };
            self.by_prompt.get(&hash(&facet.content))
        };
        let by_record = || self.by_record.get(text("parentUuid")?);
        let start = by_agent.or_else(by_prompt).or_else(by_record)?;
        // An agent does not start itself.
        (start.session != session).then(|| start.clone())
    }
}

fn put<K: Hash + Eq, V>(map: &mut IndexMap<K, V>, key: K, value: V) {
    if map.len() >= REMEMBERED {
        map.shift_remove_index(0);
    }
    map.insert(key, value);
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
