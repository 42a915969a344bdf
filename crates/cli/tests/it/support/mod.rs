//! Starting the program in tests.
#![allow(dead_code, reason = "each test file uses what it needs")]

#[cfg(unix)]
pub(crate) mod terminal;

use std::{
    path::{Path, PathBuf},
    process::Child,
};

use assert_cmd::Command;
use serde_json::Value;

/// The root of the workspace: what the program is started in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program with these arguments, in an environment that does not depend on who runs the tests.
pub(crate) fn afterimage(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
    command.current_dir(root()).args(args);
    for variable in ["CARGO", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// Waits for a program to end well. The most memory that it had at once, in KiB; `None` where the
/// system does not tell.
pub(crate) fn peak_of(mut child: Child) -> Option<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut most = None;
    while child.try_wait().unwrap().is_none() {
        most = most.max(std::fs::read_to_string(&status).ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse().ok()
        }));
        std::thread::yield_now();
    }
    assert!(child.wait().unwrap().success());
    most
}

/// What came of a run: exit code, standard output, standard error.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run(args: &[&str]) -> Run {
    run_with(args, "")
}

/// As [`run`], with this on standard input.
pub(crate) fn run_with(args: &[&str], input: impl Into<Vec<u8>>) -> Run {
    let output = afterimage(args).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    Run { code: output.status.code(), out, err }
}

/// What the program says where it shows a context of a transcript, in which tools are missing.
const RECONSTRUCTED: &str = "note: the context ";

impl Run {
    /// Standard error, but for the one line that says that a context was reconstructed.
    pub(crate) fn said(&self) -> String {
        let lines: Vec<&str> = self.err.lines().collect();
        let notes = lines.iter().filter(|line| line.starts_with(RECONSTRUCTED)).count();
        assert!(notes <= 1, "{}", self.err);
        let others = lines.into_iter().filter(|line| !line.starts_with(RECONSTRUCTED));
        others.map(|line| format!("{line}\n")).collect()
    }
}

/// Standard output of a run that must succeed and say nothing else.
pub(crate) fn out(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!((run.code, run.said().as_str()), (Some(0), ""), "{args:?}");
    run.out
}

/// The lines of standard output as JSON.
pub(crate) fn json_lines(args: &[&str]) -> Vec<Value> {
    out(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&out(args)).unwrap()
}

/// The recorded transcripts. Without them a test says so and is skipped, unless they are required.
pub(crate) fn recordings() -> Vec<PathBuf> {
    files_of(&["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"])
}

/// The files of some groups of the recordings.
pub(crate) fn files_of(groups: &[&str]) -> Vec<PathBuf> {
    let data = root().join("../shared/data");
    if !data.is_dir() {
        let required = std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_some();
        assert!(!required, "the recordings are not at ../shared/data");
        eprintln!("skipped: the recordings are not at ../shared/data");
        return Vec::new();
    }
    let mut files = Vec::new();
    for group in groups {
        collect(&data.join(group), &mut files);
    }
    assert!(files.len() > 10);
    files.sort();
    files
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
