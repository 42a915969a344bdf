//! An agent of the framework [rig](https://docs.rs/rig-core) whose memory is a session.
//!
//! `cargo run` in this folder: kill it (`kill -9`), run it again, and it goes on where it was. Its
//! memory is the folder `agent` where it is started. The provider is scripted: with rig's feature
//! `reqwest`, `Anthropic::from_env()?.completion(…)` is a model of the real one.
//!
//! The memory is a transport of rig (`memory.rs`). It says to the session what is new, and sends the
//! session's body in the place of rig's, byte for byte. The session has the answer before rig reads it.
//! rig runs the tools.
//!
//! rig has two other places for a memory. Its `ConversationMemory` is told of a run after it has
//! succeeded: a crash loses the run, and rig writes the bodies itself. The encoder of a wire must be
//! pure, so it cannot keep anything.

mod memory;
mod provider;

use std::{error::Error, time::Duration};

use afterimage::{
    session::{Awaits, JournalStore, Model, Session},
    veil::Source,
};
use memory::{remember, run_at};
use provider::Scripted;
use rig_agent::{AgentBuilder, rig_tool};
use rig_core::providers::anthropic::AnthropicConfig;

/// How many questions the user has.
const QUESTIONS: usize = 12;

/// Reads the tide table, which takes a while.
#[rig_tool(description = "When high water is.", params(day = "The day"), required(day))]
async fn tide(day: u64) -> Result<String, rig_core::tool::ToolExecutionError> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(format!("High water on day {day} is at {:02}:20, 3.1 m. ", 6 + day % 12).repeat(8))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let session = Session::open(JournalStore::open("agent")?)?;
    let rig = AnthropicConfig::new("key").connect(Scripted).completion("claude-sonnet-4-6");
    let model = remember(rig, session, Model::anthropic("claude-sonnet-4-6", 4_000));
    let memory = model.transport.clone();
    let agent = AgentBuilder::new(model)
        .preamble("You are a harbour pilot. Be brief.")
        .tool(Tide)
        .default_max_turns(4)
        .build();
    loop {
        let awaits = memory.session().awaits();
        let asked = questions(&memory.session());
        let answer = match awaits {
            Awaits::User if asked == QUESTIONS => return Ok(()),
            Awaits::User => {
                agent.prompt(format!("When must I leave on day {}?", asked + 1)).await?
            }
            // Only after a crash: rig goes on with what the session knows.
            Awaits::Answer => agent.prompt("(known to the session)").await?,
            Awaits::Results(calls) => agent.resume(run_at(&calls, &agent).await?).await?,
        };
        println!("{}", answer.output());
    }
}

/// How many questions the user has asked.
fn questions(session: &Session) -> usize {
    let frames = session.history().frames();
    (0..frames.len()).filter(|at| frames.source(*at) == Some(Source::User)).count()
}
