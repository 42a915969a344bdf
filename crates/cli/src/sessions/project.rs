//! The folder that a session worked in, and its id, where the file itself does not say them.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use afterimage::json::{self, Value};

/// How much of a file is looked at.
const HEAD: u64 = 2 << 20;
/// The file in which Gemini says which folder a project is.
const PROJECT_ROOT: &str = ".project_root";
/// The file in which Kimi says that of a session, beside the folder of its agents.
const STATE: &str = "state.json";
/// The end of the name of Cline's messages.
const CLINE: &str = ".messages.json";

/// The folder that a session worked in, where its client says it in a file beside.
pub(super) fn project(file: &Path) -> Option<String> {
    of_gemini(file).or_else(|| of_kimi(file)).or_else(|| of_cline(file))
}

/// Cline writes what is known of a session into a file beside that of its messages.
fn of_cline(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(CLINE)?;
    let text = text_of(&file.with_file_name(format!("{name}.json")), HEAD)?;
    Some(json::read(text.as_bytes()).ok()?.str_at("cwd")?.to_owned())
}

/// Gemini names it in a file beside the folder of the chats.
fn of_gemini(file: &Path) -> Option<String> {
    let text = text_of(&file.parent()?.parent()?.join(PROJECT_ROOT), 4096)?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Kimi says it of a session.
fn of_kimi(file: &Path) -> Option<String> {
    Some(state_of_kimi(file)?.str_at("cwd")?.to_owned())
}

/// Kimi writes the log of an agent into a folder of its own, two below that of the session.
fn state_of_kimi(file: &Path) -> Option<Value> {
    let folders = file.ancestors().skip(1).take(3);
    let text = folders.into_iter().find_map(|folder| text_of(&folder.join(STATE), HEAD))?;
    json::read(text.as_bytes()).ok()
}

/// The id of Kimi's session, and behind it the agent, where that is another than the main one.
pub(super) fn session(file: &Path) -> Option<String> {
    let is_log = file.file_name().is_some_and(|name| name == "wire.jsonl");
    let state = is_log.then(|| state_of_kimi(file))??;
    let (id, folder) = (state.str_at("id")?, file.parent()?);
    let agent = folder.file_name()?.to_str().filter(|agent| *agent != "main");
    let agent = agent.filter(|_| folder.parent().is_some_and(|of| of.ends_with("agents")));
    Some(agent.map_or_else(|| id.to_owned(), |agent| format!("{id}/{agent}")))
}

/// The text of a file of at most so many bytes.
fn text_of(file: &Path, most: u64) -> Option<String> {
    let mut text = String::new();
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    File::open(file).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}
