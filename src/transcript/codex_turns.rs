//! Where the turns of a rollout begin: a later record may take the last of them back.

use super::{draft::FrameDraft, live_messages::LiveMessages};
use crate::veil::{Facet, Source};

/// What the harness puts before the prompt of a turn begins with one of these, in the name of the
/// user. It goes with the turn, and is none.
const CONTEXT_OF_USER: [&str; 9] = [
    "# agents.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<hook_prompt",
    "<codex_internal_context",
];

/// The same in the name of the operator.
const CONTEXT_OF_OPERATOR: [&str; 8] = [
    "<permissions instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<personality_spec>",
    "<token_budget>",
];

/// The turns of the context.
#[derive(Debug, Default)]
pub(super) struct CodexTurns {
    begun: LiveMessages<()>,
    /// The first frame of what the harness put before the next turn.
    lead: Option<u64>,
}

impl CodexTurns {
    /// Whether a turn may begin with an item, or with what stands before one.
    pub(super) fn may_begin(draft: &FrameDraft) -> bool {
        let is_agents =
            draft.payload.get("type").is_some_and(|kind| kind == &"agent_message".into());
        is_agents || draft.is_message && matches!(draft.source, Source::User | Source::System)
    }

    /// Takes an item with which a turn [may begin](Self::may_begin). Of what the harness alone says in
    /// the name of the user it notes that the user does not.
    pub(super) fn push(&mut self, draft: &mut FrameDraft, frame: u64) {
        let begins = |facet: &Facet, prefixes: &[&str]| {
            let text = facet.content.trim_start();
            let is_there = |prefix: &&str| {
                text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            };
            prefixes.iter().any(is_there)
        };
        let is_any = |prefixes: &[&str]| draft.facets.iter().any(|facet| begins(facet, prefixes));
        let is_context = match draft.source {
            Source::User => is_any(&CONTEXT_OF_USER),
            Source::System => {
                if !is_any(&CONTEXT_OF_OPERATOR) {
                    return self.go_on();
                }
                true
            }
            _ => false,
        };
        if is_context {
            self.lead.get_or_insert(frame);
            let is_whole = draft.facets.iter().all(|facet| begins(facet, &CONTEXT_OF_USER));
            if draft.source == Source::User && is_whole {
                draft.source = Source::Environment;
            }
            return;
        }
        // What stands before the first turn of all stays.
        let is_first = self.begun.messages().is_empty();
        let lead = self.lead.take().filter(|_| !is_first);
        self.begun.push(lead.unwrap_or(frame), ());
    }

    /// Takes another item.
    pub(super) fn go_on(&mut self) {
        self.lead = None;
    }

    /// The index of the first of the last `count` turns, and the first frame that leaves with it;
    /// and what is wrong.
    pub(super) fn undone(
        &self,
        count: Option<u64>,
    ) -> (Option<(usize, u64)>, Option<&'static str>) {
        let Some(count) = count else {
            return (None, Some("takes turns back and does not say how many"));
        };
        let turns = self.begun.messages();
        let wrong = (count > turns.len() as u64).then_some("takes back more turns than there are");
        let at = turns.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        (turns.get(at).map(|(frame, ())| (at, *frame)), wrong)
    }

    /// Lets the turns from this index on leave.
    pub(super) fn leave(&mut self, at: usize) {
        self.begun.split_off(at);
        self.lead = None;
    }
}
