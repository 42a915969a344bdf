//! `stats` of a folder: its memory is that of the sessions that are read at once.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use crate::support;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const SESSION_BYTES: usize = 16_000;

fn session() -> String {
    let mut messages = Vec::new();
    while messages.iter().map(String::len).sum::<usize>() < SESSION_BYTES {
        let number = messages.len();
        let role = ["user", "assistant"][number % 2];
        let text = format!("Grind sack {number}. ").repeat(20);
        messages.push(format!(r#"{{"role":"{role}","content":"{text}"}}"#));
    }
    format!("[{}]", messages.join(","))
}

/// The most memory that `stats` of a folder takes, in KiB. An estimate of the tokens takes no cache
/// that fills up, and little time.
fn peak(folder: &Path) -> Option<u64> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
    command.args(["stats", "--tokenizer", "chars4"]).arg(folder).stdout(Stdio::null());
    support::peak_of(command.stderr(Stdio::inherit()).spawn().unwrap())
}

#[test]
fn the_memory_of_stats_does_not_grow_with_the_sessions_of_a_folder() {
    const SESSIONS: usize = 50;
    const TIMES: usize = 32;
    // What a busy machine's threads hold at once differs from run to run by some megabytes.
    const LIMIT: u64 = 8 << 10;
    // The text of the others alone is more than twice that.
    const { assert!(((TIMES - 1) * SESSIONS * SESSION_BYTES) as u64 > 2 * (LIMIT << 10)) };
    let folder = tempfile::tempdir().unwrap();
    let add = |sessions: std::ops::Range<usize>| {
        for number in sessions {
            fs::write(folder.path().join(format!("s{number}.json")), session()).unwrap();
        }
    };
    add(0..SESSIONS);
    let small = peak(folder.path());
    add(SESSIONS..TIMES * SESSIONS);
    let Some((small, large)) = small.zip(peak(folder.path())) else { return };
    assert!(large < small + LIMIT, "{small} KiB, {large} KiB");
}
