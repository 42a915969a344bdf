//! The state of a coding agent that survives its process: tasks, notes and iterations.
//!
//! `cargo run -p afterimage --features journal --example coding_agent`: run it again, or kill it, and
//! it goes on where it was. Its journal is the folder `journal` where it is started.

use std::{collections::BTreeMap, time::SystemTime};

use afterimage::{
    id::Millis,
    journal::{EventId, Journal, JournalOptions, Replay, Result, SessionName, SnapshotPolicy},
    log::Holder,
};
use serde::{Deserialize, Serialize};

// From here on, 40 lines: a state, its events, and an iteration. The id of an event says which step
// it is, so that one that is tried again after a crash is there once. What `apply` refuses would be
// in the journal nevertheless: where an event may be wrong, `Replay::check` refuses it before.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Work {
    tasks: BTreeMap<String, bool>,
    notes: Vec<String>,
    iteration: usize,
}
#[derive(Debug, Serialize, Deserialize)]
enum Step {
    Task(String, bool),
    Note(String),
    IterationEnd,
}
impl Replay for Work {
    type Event = Step;
    const SCHEMA: u32 = 1;
    fn apply(&mut self, _sequence: u64, event: &Step) -> Result<()> {
        match event {
            Step::Task(task, is_done) => drop(self.tasks.insert(task.clone(), *is_done)),
            Step::Note(text) => self.notes.push(text.clone()),
            Step::IterationEnd => self.iteration += 1,
        }
        Ok(())
    }
    fn ends_iteration(event: &Step) -> bool {
        matches!(event, Step::IterationEnd)
    }
}
fn main() -> Result<()> {
    let mut journal = Journal::open("journal", &Holder::new("agent"), JournalOptions::default())?;
    let session = SessionName::new("fix the parser")?;
    let (mut work, report) = journal.live::<Work>(&session, SnapshotPolicy::IterationEnd)?;
    println!("{} events after the snapshot: {:?}", report.events, work.state());
    let (n, now) = (work.state().iteration, Millis::from(SystemTime::now()));
    let [open, done] = [false, true].map(|is_done| Step::Task(format!("task {n}"), is_done));
    for (at, step) in (0..).zip([open, Step::Note(format!("on {n}")), done, Step::IterationEnd]) {
        let recorded = journal.record(&mut work, EventId::new(format!("{n}.{at}"))?, &step, now)?;
        recorded.snapshot.and_then(Result::err).iter().for_each(|e| eprintln!("no snapshot: {e}"));
    }
    Ok(())
}
