//! The state of a coding agent for tests of journals: tasks, notes, iterations.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::Path;

use afterimage_journal::{EventId, NewEvent, Replay, Result, SessionName, refused};
use afterimage_log::{Files, HighWater, LogMark};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) tasks: Vec<(String, bool)>,
    pub(crate) notes: Vec<String>,
    pub(crate) iterations: u64,
    /// Which events it is made of, so that one too many or too few shows.
    pub(crate) applied: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Step {
    Task(String),
    Done(usize),
    Note(String),
    IterationEnd,
}

impl Replay for Work {
    type Event = Step;
    const SCHEMA: u32 = 1;

    fn kind(event: &Step) -> &str {
        match event {
            Step::Task(_) => "task",
            Step::Done(_) => "done",
            Step::Note(_) => "note",
            Step::IterationEnd => "iteration_end",
        }
    }

    fn knows(kind: &str) -> bool {
        matches!(kind, "task" | "done" | "note" | "iteration_end")
    }

    fn check(&self, event: &Step) -> Result<()> {
        match event {
            Step::Done(task) if *task >= self.tasks.len() => Err(refused("no such task")),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, sequence: u64, event: &Step) -> Result<()> {
        match event {
            Step::Task(text) => self.tasks.push((text.clone(), false)),
            Step::Done(task) => {
                self.tasks.get_mut(*task).ok_or_else(|| refused("no such task"))?.1 = true;
            }
            Step::Note(text) => self.notes.push(text.clone()),
            Step::IterationEnd => self.iterations += 1,
        }
        self.applied.push(sequence);
        Ok(())
    }

    fn ends_iteration(event: &Step) -> bool {
        matches!(event, Step::IterationEnd)
    }
}

/// The same with another schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewWork(pub(crate) Work);

impl Replay for NewWork {
    type Event = Step;
    const SCHEMA: u32 = 2;

    fn kind(event: &Step) -> &str {
        Work::kind(event)
    }

    fn knows(kind: &str) -> bool {
        Work::knows(kind)
    }

    fn apply(&mut self, sequence: u64, event: &Step) -> Result<()> {
        self.0.apply(sequence, event)
    }
}

/// What knows notes alone, and skips everything else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Replay for Notes {
    type Event = Step;
    const SCHEMA: u32 = 1;
    const SKIPS_UNKNOWN: bool = true;

    fn kind(event: &Step) -> &str {
        Work::kind(event)
    }

    fn knows(kind: &str) -> bool {
        kind == "note"
    }

    fn apply(&mut self, _: u64, event: &Step) -> Result<()> {
        if let Step::Note(text) = event {
            self.0.push(text.clone());
        }
        Ok(())
    }
}

/// What the events lead to, applied one after the other.
pub(crate) fn state_of(steps: &[Step]) -> Work {
    let mut work = Work::default();
    for (sequence, step) in (1..).zip(steps) {
        work.apply(sequence, step).unwrap();
    }
    work
}

pub(crate) fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

pub(crate) fn id(text: impl std::fmt::Display) -> EventId {
    EventId::new(text.to_string()).unwrap()
}

pub(crate) fn note(text: &str) -> Step {
    Step::Note(text.to_owned())
}

/// An event with its id.
pub(crate) fn event(event_id: impl std::fmt::Display, step: &Step) -> NewEvent {
    NewEvent::new(id(event_id), Work::kind(step), serde_json::to_vec(step).unwrap()).unwrap()
}

/// What may happen to a session.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Step(Step),
    /// Of the state after so many of the events, in thousandths.
    Snapshot(usize),
    Restart,
    /// The session is removed, and begins anew.
    Remove,
    /// The last event is appended again, with its id.
    Again,
}

pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let step = prop_oneof![
        "[a-z]{0,8}".prop_map(Step::Task),
        "\\PC{0,12}".prop_map(Step::Note),
        Just(Step::IterationEnd),
    ];
    let one = prop_oneof![
        8 => step.prop_map(Move::Step),
        1 => Just(Move::Snapshot(1_000)),
        1 => (1..=1_000_usize).prop_map(Move::Snapshot),
        1 => Just(Move::Restart),
        1 => Just(Move::Remove),
        1 => Just(Move::Again),
    ];
    proptest::collection::vec(one, 0..60)
}

/// As if nothing of a log had been acknowledged: it may be cut without a loss.
pub(crate) fn forget(files: &dyn Files, log: impl AsRef<Path>) {
    let mark = log.as_ref().with_extension("").with_extension("acknowledged");
    HighWater::create(files, mark, LogMark::default()).unwrap();
}
