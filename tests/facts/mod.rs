//! The facts of every recording, as each room of the library answers.
//!
//! The modules of the library are asked here that its users do not see, so this is a module of its
//! unit tests. `choices.txt` says which answer is right where rooms differ, and why.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

mod ledgers;
mod rooms;

use std::path::{Path, PathBuf};

use afterimage_testkit::facts::{Choices, Recording, check, files};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts")
}

/// Holds the recordings below some folders to the golden file with this name.
#[track_caller]
fn hold(golden: &str, folders: &[&str]) {
    let recordings: Vec<Recording> = files(folders)
        .into_iter()
        .filter_map(|(name, path)| rooms::recording(name, &path))
        .collect();
    if !recordings.is_empty() {
        let choices = Choices::read(&folder().join("choices.txt"));
        check(&folder().join(golden).with_extension("txt"), &choices, &recordings);
    }
}

#[test]
fn facts_of_chats() {
    hold("chats", &["data/A-openai-chat"]);
}

#[test]
fn facts_of_claude_code() {
    hold("claude-code", &["data/B-anthropic/claude-code"]);
}

#[test]
fn facts_of_pi_and_of_the_messages_api() {
    hold("pi-and-messages", &["data/B-anthropic/pi", "data/B-anthropic/wire-anthropic"]);
}

#[test]
fn facts_of_codex_and_of_other_agents() {
    hold("codex", &["data/C-codex-responses"]);
}

#[test]
fn facts_of_logs_of_plain_text() {
    hold("swe-agents", &["data/D-swe-agent"]);
}

#[test]
fn facts_of_worlds() {
    hold("worlds", &["data/E-state", "data/I-spacemolt"]);
}

#[test]
fn facts_of_cases() {
    hold("cases", &["cases"]);
}

#[test]
fn facts_of_formats() {
    let golden = folder().join("formats.txt");
    check(&golden, &Choices::read(&folder().join("choices.txt")), &[rooms::formats()]);
}
