//! Many sessions, and a long one: the memory of the first pass, its progress, and what the index saves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// A session of so many answers, with reported usage.
fn session(name: &str, answers: u64) -> String {
    let at = "2026-11-03T08:00:00.000Z";
    let mut text = format!(
        r#"{{"type":"session","version":3,"id":"{name}","timestamp":"{at}","cwd":"/w/{name}"}}"#
    );
    for answer in 0..answers {
        let asked = format!(r#"{{"role":"user","content":"Grind sack {answer} of {name}."}}"#);
        let said = format!(
            r#"{{"role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{}"}}],"usage":{{"input":40,"cacheRead":{answer},"cacheWrite":9,"output":20}}}}"#,
            "It is ground. ".repeat(40)
        );
        for message in [asked, said] {
            let _ = write!(
                text,
                "\n{}",
                format_args!(r#"{{"type":"message","timestamp":"{at}","message":{message}}}"#)
            );
        }
    }
    text + "\n"
}

fn folder(sessions: u64, answers: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..sessions {
        let name = format!("s{number}");
        fs::write(folder.path().join(format!("{name}.jsonl")), session(&name, answers)).unwrap();
    }
    folder
}

/// Lists the sessions of a folder. How many there are, and the most memory that it took, in KiB;
/// `None` where the system does not tell.
fn listed(folder: &Path, cache: &Path) -> (usize, Option<u64>) {
    let lines = cache.join("listed");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
    command.args(["sessions", "--json"]).arg(folder).env("AFTERIMAGE_CACHE", cache);
    command.stdout(fs::File::create(&lines).unwrap()).stderr(Stdio::inherit());
    let most = support::peak_of(command.spawn().unwrap());
    let listed = fs::read_to_string(&lines).unwrap().lines().count();
    (listed, most)
}

#[test]
fn the_memory_of_the_first_pass_does_not_grow_with_the_sessions_or_their_length() {
    let peak_of = |sessions: u64, answers: u64| {
        let (folder, cache) = (folder(sessions, answers), tempfile::tempdir().unwrap());
        let (count, cold) = listed(folder.path(), cache.path());
        assert_eq!(count as u64, sessions);
        // From the index there are as many.
        assert_eq!(listed(folder.path(), cache.path()).0, count);
        cold
    };
    let few_and_many = [100, 1_000].map(|sessions| peak_of(sessions, 3));
    let short_and_long = [500, 5_000].map(|answers| peak_of(1, answers));
    for [small, large] in [few_and_many, short_and_long] {
        let Some((small, large)) = small.zip(large) else { return };
        // Ten times as much; what is kept of a session is a line of the list.
        assert!(large * 2 < small * 3, "{small} KiB, {large} KiB");
    }
}

#[test]
fn what_is_in_the_index_is_read_no_more() {
    let (folder, cache) = (folder(30, 2), tempfile::tempdir().unwrap());
    assert_eq!(listed(folder.path(), cache.path()).0, 30);
    // Who reads a file again finds no session in it: it has its size and its time, and no text.
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        fs::write(&path, " ".repeat(usize::try_from(metadata.len()).unwrap())).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(metadata.modified().unwrap()).unwrap();
    }
    assert_eq!(listed(folder.path(), cache.path()).0, 30);
}

#[cfg(unix)]
#[test]
fn the_first_pass_shows_its_progress_on_a_terminal() {
    let folder = folder(12, 600);
    let args = ["sessions", "--no-index", folder.path().to_str().unwrap()];
    let Some(shown) = support::terminal::on_terminal(&args, false) else { return };
    assert!(shown.contains("of sessions"), "{shown:?}");
    assert!(shown.contains("Grind sack 0 of s7."), "{shown:?}");
}
