//! An agent's other memories: what its tools have told it, and the state of its world. The steps of its
//! session hold what they are made of.

use std::{collections::VecDeque, sync::Arc};

use super::{core::Core, step::Step};
use crate::{
    Error, ErrorKind, Result,
    checkpoint::ShrunkCheckpoint,
    id::Millis,
    json::Value,
    observe::{self, Freshness, Moment, Observations, PlannedCall, Policy, Response},
    session::{
        ToolCall,
        bridge::{
            checkpoint::{Draft, DraftOptions},
            observed::{SUMMARY_FACET as OBSERVATIONS, summary_op},
        },
    },
    timeline::{Data, PushReport, Timeline, TurnRecord},
    tokens::TokenCounter,
    veil::{CallOutcome, Facet, FacetOp, Frame, PartContent, Source},
};

/// The agent of a session, and the account of one whose tools name none.
const AGENT: &str = "agent";

/// The most tokens of a summary of observations.
const SUMMARY: usize = 500;

/// How many answers are known at once. The results of all stay in the history; what is known costs
/// each request.
const KNOWN: usize = 256;

/// The memories of a session, where it has them.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) observations: Option<Observations>,
    /// Whether tools tell which account a call is of.
    names_accounts: bool,
    /// The account and the name of each observation, the one that was stored last at the end.
    stored: VecDeque<(String, String)>,
    pub(super) world: Option<Timeline>,
}

impl Memory {
    /// Keeps what tools answer from here on, by this policy. What was known by another is forgotten.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a policy that contradicts itself.
    pub(super) fn observe(&mut self, policy: Value, counter: &Arc<dyn TokenCounter>) -> Result<()> {
        let policy = Policy::from_json(policy)?;
        self.names_accounts = !policy.usernames.is_empty() || !policy.login.is_empty();
        let observations = Observations::in_memory(policy)?;
        self.observations = Some(observations.counted_by(Arc::clone(counter)));
        self.stored.clear();
        Ok(())
    }

    /// Looks at the results in a frame; `calls` wait for theirs.
    pub(super) fn look(&mut self, frame: &Frame, calls: &[ToolCall], now: Millis) -> Result<()> {
        let Some(observations) = &self.observations else { return Ok(()) };
        for facet in frame.added() {
            let Some(PartContent::Result { answers: Some(id), outcome, .. }) = facet.typed() else {
                continue;
            };
            let Some(call) = calls.iter().find(|call| *call.id == **id) else { continue };
            // JSON that is broken is a text.
            let response = Response::text(&facet.content)
                .unwrap_or_else(|_| Response::json(Value::from(facet.content.as_str())));
            let response = match outcome {
                CallOutcome::Unstated | CallOutcome::Done => response,
                _ => response.failed(),
            };
            let answered = if self.names_accounts {
                observe::ToolCall::new(AGENT, &call.name, &response)
            } else {
                observe::ToolCall::of_account(AGENT, &call.name, &response)
            };
            let answered = answered.with_arguments(&call.arguments);
            match observations.intercept(&answered, Moment::at(now)) {
                // An answer of somebody else's world is not kept, nor one whose account has no name that
                // can be. The model reads it all the same.
                Err(error)
                    if matches!(
                        error.kind(),
                        observe::ErrorKind::Conflict
                            | observe::ErrorKind::Shape
                            | observe::ErrorKind::Limit
                    ) => {}
                kept => {
                    let kept = kept?;
                    if let Some(stored) = kept.account.zip(kept.stored) {
                        self.stored.retain(|known| *known != stored);
                        self.stored.push_back(stored);
                    }
                }
            }
        }
        while self.stored.len() > KNOWN {
            let Some((account, name)) = self.stored.pop_front() else { break };
            observations.clear(&account, Some(&name))?;
        }
        Ok(())
    }

    /// The op that shows what is known, where `shown` says something else.
    pub(super) fn summary(&self, shown: Option<&Facet>, now: Millis) -> Result<Option<FacetOp>> {
        let Some(observations) = &self.observations else { return Ok(None) };
        let now = Moment::at(now);
        let summary = if self.names_accounts {
            observations.summary_of_agent(AGENT, now, SUMMARY)?
        } else {
            observations.summary(AGENT, now, SUMMARY)?
        };
        if summary.sections().is_empty() {
            // What was shown is no longer known.
            return Ok(shown.map(|shown| FacetOp::remove(shown.id.clone())));
        }
        let is_new = shown.is_none_or(|shown| shown.content != summary.text());
        Ok(is_new.then(|| summary_op(&summary)))
    }

    /// Whether a call can be spared; `None` where nothing is observed.
    pub(super) fn freshness(
        &self,
        tool: &str,
        arguments: &Value,
        now: Millis,
    ) -> Result<Option<Freshness>> {
        let Some(observations) = &self.observations else { return Ok(None) };
        let call = if self.names_accounts {
            PlannedCall::new(AGENT, tool)
        } else {
            PlannedCall::of_account(AGENT, tool)
        };
        let call = call.with_arguments(arguments);
        Ok(Some(observations.freshness(&call, Moment::at(now))?))
    }

    /// Begins a world with this state.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where there is one, and those of the timeline.
    pub(super) fn begin_world(&mut self, state: Data, now: Millis) -> Result<()> {
        if self.world.is_some() {
            let message = "the session has a world; `Session::turn` changes it";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.world = Some(Timeline::builder(AGENT, state).at(now).build()?);
        Ok(())
    }

    /// Adds a turn to the world.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] where there is none, and those of [`Timeline::push`].
    pub(super) fn turn(&mut self, turn: TurnRecord) -> Result<PushReport> {
        let Some(world) = &mut self.world else {
            let message = "the session has no world; `Session::begin_world` makes one";
            return Err(Error::new(ErrorKind::Other, message));
        };
        Ok(world.push(turn)?)
    }

    /// The turns of the world so far.
    pub(super) fn turns(&self) -> u64 {
        self.world.as_ref().map_or(0, Timeline::last_turn)
    }

    /// Takes the world back to what it was after so many turns.
    ///
    /// # Errors
    /// Those of [`Timeline::undo`].
    pub(super) fn go_back(&mut self, turns: u64, now: Millis) -> Result<()> {
        if let Some(world) = self.world.as_mut().filter(|world| world.last_turn() > turns) {
            world.undo(turns, now)?;
        }
        Ok(())
    }
}

impl Core {
    /// Observes what tools answer; `None` where that is so already.
    pub(super) fn observe(&mut self, policy: &Policy, now: Millis) -> Result<Option<Step>> {
        let known = self.memory.observations.as_ref().map(Observations::policy);
        if known.is_some_and(|known| known == policy) {
            return Ok(None);
        }
        self.memory.observe(policy.to_json(), self.hud.counter())?;
        Ok(Some(Step { policy: Some(policy.to_json()), ..self.said(now) }))
    }

    /// Begins the world; `None` where it began like that.
    pub(super) fn begin_world(&mut self, state: Data, now: Millis) -> Result<Option<Step>> {
        if let Some(world) = &self.memory.world
            && world.state_at(0).is_ok_and(|began| began == state)
        {
            return Ok(None);
        }
        let kept = state.to_json();
        self.memory.begin_world(state, now)?;
        Ok(Some(Step { world: Some(kept), ..self.said(now) }))
    }

    /// Adds a turn to the world.
    pub(super) fn turn(&mut self, turn: TurnRecord, now: Millis) -> Result<(PushReport, Step)> {
        let is_timed = turn.timestamp != Millis::default();
        let report = self.memory.turn(if is_timed { turn } else { turn.at(now) })?;
        let world = self.memory.world.as_ref();
        let turn = world.map(|world| world.turn(world.last_turn())).transpose()?;
        let turn = turn.map(|turn| turn.to_json());
        Ok((report, Step { turn, ..self.said(now) }))
    }

    /// Shows what is known of tools' answers, where that is another thing than what is shown.
    pub(super) fn show_observations(&mut self, now: Millis) -> Result<()> {
        let shown = self.facet(OBSERVATIONS);
        if let Some(op) = self.memory.summary(shown.as_deref(), now)? {
            let sequence = self.history.next_sequence().unwrap_or_default();
            let frame = Frame::new(sequence, Source::Environment).with(op);
            self.push_said(frame.clone(), now)?;
            self.unsaved.push(frame);
        }
        Ok(())
    }

    /// A checkpoint of what is in force.
    pub(super) fn checkpoint(&self, options: &DraftOptions) -> Result<ShrunkCheckpoint> {
        let mut draft = Draft::new();
        let frames = self.history.frames();
        for frame in (0..frames.len()).filter_map(|at| frames.get(at)) {
            if !self.is_outside(frame.sequence) {
                draft.see(&frame);
            }
        }
        draft.checkpoint(options, &**self.hud.counter())
    }
}
