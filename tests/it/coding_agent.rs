//! The example of an agent that is killed and goes on.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use afterimage::journal::{Journal, JournalOptions, SessionName};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

/// Each step of the example is there once and in its place, wherever it was killed. Cargo builds the
/// example with the tests, but not with this file alone.
#[test]
fn the_example_goes_on_where_it_was_killed() {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    program.push(format!("coding_agent{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        eprintln!("skipped: the example is not built");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(&program);
        command.current_dir(scratch.path()).stdout(Stdio::null()).spawn().unwrap()
    };
    for round in 0..40 {
        let mut child = run();
        std::thread::sleep(Duration::from_micros(500 * round));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(run().wait().unwrap().success());
    let options = JournalOptions::default();
    let mut journal = Journal::open_read_only(scratch.path().join("journal"), options).unwrap();
    let events = journal.read(&name("fix the parser"), 1, usize::MAX).unwrap();
    let found: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let expected: Vec<String> = (0..found.len()).map(|n| format!("{}.{}", n / 4, n % 4)).collect();
    assert_eq!(found, expected);
    assert!(!found.is_empty() && found.len().is_multiple_of(4), "{found:?}");
    assert!(journal.status(&name("fix the parser")).unwrap().snapshot.is_some());
}
