//! The state of a coding agent that survives its process: tasks, notes and iterations.
//!
//! `cargo run -p afterimage --features journal --example coding_agent [DIRECTORY]`: run it twice,
//! or kill it, and it goes on where it was.

use std::time::SystemTime;

use afterimage::{
    Result,
    id::Millis,
    journal::{EventId, Journal, JournalOptions, Replay, SessionName, SnapshotPolicy, refused},
    log::Holder,
};
use serde::{Deserialize, Serialize};

// From here on, 40 lines: a state, its events, and an iteration. The id of an event says which step
// it is, so that one that is tried again after a crash is there once.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Work {
    tasks: Vec<(String, bool)>,
    notes: Vec<String>,
    iteration: usize,
}
#[derive(Debug, Serialize, Deserialize)]
enum Step {
    TaskAdded(String),
    TaskDone(usize),
    Noted(String),
    IterationComplete,
}
impl Replay for Work {
    type Event = Step;
    const SCHEMA: u32 = 1;
    fn apply(&mut self, _sequence: u64, event: &Step) -> Result<()> {
        match event {
            Step::TaskAdded(text) => self.tasks.push((text.clone(), false)),
            Step::TaskDone(n) => self.tasks.get_mut(*n).ok_or_else(|| refused("no task"))?.1 = true,
            Step::Noted(text) => self.notes.push(text.clone()),
            Step::IterationComplete => self.iteration += 1,
        }
        Ok(())
    }
}
fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "coding_agent.journal".to_owned());
    let mut journal = Journal::open(directory, &Holder::new("agent"), JournalOptions::default())?;
    let session = SessionName::new("fix the parser")?;
    let (mut work, report) = journal.live::<Work>(&session, SnapshotPolicy::Events(4))?;
    println!("{} events after the snapshot: {:?}", report.events, work.state());
    let n = work.state().iteration;
    let (task, note) = (Step::TaskAdded(format!("task {n}")), Step::Noted(format!("{n} passes")));
    for (at, step) in [task, note, Step::TaskDone(n), Step::IterationComplete].iter().enumerate() {
        let id = EventId::new(format!("{n}.{at}"))?;
        journal.record(&mut work, id, step, Millis::from(SystemTime::now()))?;
    }
    Ok(())
}
