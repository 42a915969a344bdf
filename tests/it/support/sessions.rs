//! The recorded sessions as frames.

#![allow(dead_code, reason = "each user takes what it needs")]

use std::path::{Path, PathBuf};

use afterimage::{transcript::Transcript, veil::Frame};

/// The groups of recordings that hold sessions.
pub(crate) const GROUPS: [&str; 4] =
    ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

/// A session of a recording.
pub(crate) struct Session {
    /// The index of its group.
    pub(crate) group: usize,
    /// The file and the session's name in it.
    pub(crate) name: String,
    pub(crate) frames: Vec<Frame>,
}

/// The sessions of every `every`th file in `root` with at least `fewest` frames.
pub(crate) fn sessions(root: &Path, fewest: usize, every: usize) -> Vec<Session> {
    let mut sessions = Vec::new();
    for (group, name) in GROUPS.into_iter().enumerate() {
        for path in files_under(&root.join(name)).into_iter().step_by(every) {
            sessions.extend(sessions_of(group, &path));
        }
    }
    sessions.retain(|session| session.frames.len() >= fewest);
    sessions
}

fn sessions_of(group: usize, path: &Path) -> Vec<Session> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sessions: Vec<Session> = Vec::new();
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        let name = format!("{file} {}", record.session);
        match sessions.iter_mut().find(|session| session.name == name) {
            Some(session) => session.frames.push(record.frame),
            None => sessions.push(Session { group, name, frames: vec![record.frame] }),
        }
    }
    sessions
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_under(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}
