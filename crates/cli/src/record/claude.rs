//! Claude Code takes its base URL from the environment, unless its settings name one.

use std::{fs, path::PathBuf};

use afterimage::json;

use crate::output::note;

/// The variable that names its folder.
const FOLDER: &str = "CLAUDE_CONFIG_DIR";
const BASE: &str = "ANTHROPIC_BASE_URL";

/// The settings of a user and of a project, in which a base URL outranks the environment.
fn settings() -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
    let home = || Some(std::env::home_dir()?.join(".claude"));
    let user = named.map(PathBuf::from).or_else(home).map(|folder| folder.join("settings.json"));
    let project = [".claude/settings.json", ".claude/settings.local.json"].map(PathBuf::from);
    user.into_iter().chain(project)
}

/// Says where settings send the requests past the recorder.
pub(super) fn note_settings() {
    for path in settings() {
        // What cannot be read there is for Claude Code to say.
        let read = fs::read(&path).ok().and_then(|text| json::read(&text).ok());
        let url = read.as_ref().and_then(|read| read.get("env")?.str_at(BASE));
        if url.is_some_and(|url| !url.trim().is_empty()) {
            note(&format!(
                "{} sets {BASE}, which outranks the environment: requests go there and are not \
                 recorded. Take it out and name it with `--upstream`",
                path.display()
            ));
        }
    }
}
