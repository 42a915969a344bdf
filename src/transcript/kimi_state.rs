//! What Kimi Code says of a session in a file beside the folders of its agents.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use crate::json::{self, Value};

/// The name of a log, and of the file.
const LOG: &str = "wire.jsonl";
const STATE: &str = "state.json";
/// How much of it is read.
const MOST: u64 = 2 << 20;

/// The session of a log. Each log has one agent of it.
#[derive(Debug, Default)]
pub(super) struct KimiState {
    /// Its id, and behind it the agent, where that is another than the main one.
    pub(super) session: Option<String>,
    /// The folder that it worked in.
    pub(super) folder: Option<String>,
}

impl KimiState {
    /// That of a log, which lies up to two folders below.
    pub(super) fn beside(log: &Path) -> Option<Self> {
        if log.file_name()? != LOG {
            return None;
        }
        let state = log.ancestors().skip(1).take(3).find_map(|at| read(&at.join(STATE)))?;
        let folder = log.parent()?;
        let is_agents = folder.parent().is_some_and(|of| of.ends_with("agents"));
        let agent = folder.file_name().and_then(|name| name.to_str());
        let agent = agent.filter(|agent| is_agents && *agent != "main");
        let session =
            state.str_at("id").map(|id| agent.map_or(id.to_owned(), |of| format!("{id}/{of}")));
        Some(Self { session, folder: state.str_at("cwd").map(str::to_owned) })
    }
}

fn read(path: &Path) -> Option<Value> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut text).ok()?;
    json::read(&text).ok()
}
