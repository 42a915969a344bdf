//! Many sessions, and a long one: the memory of the first pass, its progress, and what the index saves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// A session of so many answers, with reported usage, each of so many sentences.
fn session(name: &str, answers: u64, sentences: usize) -> String {
    let at = "2026-11-03T08:00:00.000Z";
    let mut text = format!(
        r#"{{"type":"session","version":3,"id":"{name}","timestamp":"{at}","cwd":"/w/{name}"}}"#
    );
    for answer in 0..answers {
        let asked = format!(r#"{{"role":"user","content":"Grind sack {answer} of {name}."}}"#);
        let said = format!(
            r#"{{"role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{}"}}],"usage":{{"input":40,"cacheRead":{answer},"cacheWrite":9,"output":20}}}}"#,
            "It is ground. ".repeat(sentences)
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

/// So many sessions, and the KiB of their files.
fn folder(sessions: u64, answers: u64, sentences: usize) -> (tempfile::TempDir, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut size = 0;
    for number in 0..sessions {
        let name = format!("s{number}");
        let text = session(&name, answers, sentences);
        size += text.len() as u64;
        fs::write(folder.path().join(format!("{name}.jsonl")), text).unwrap();
    }
    (folder, size / 1024)
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
fn the_first_pass_keeps_no_text() {
    let read = |sessions: u64, answers: u64| {
        let (folder, size) = folder(sessions, answers, 600);
        let cache = tempfile::tempdir().unwrap();
        let (count, cold) = listed(folder.path(), cache.path());
        assert_eq!(count as u64, sessions);
        // From the index there are as many.
        assert_eq!(listed(folder.path(), cache.path()).0, count);
        cold.map(|most| (most, size))
    };
    let few_and_many = [100, 1_000].map(|sessions| read(sessions, 3));
    let short_and_long = [200, 2_000].map(|answers| read(1, answers));
    for [small, large] in [few_and_many, short_and_long] {
        let Some(((small, of), (large, of_ten))) = small.zip(large) else { return };
        // What is kept of a session is a line of the list, and of an answer its figures.
        let (more, more_text) = (large.saturating_sub(small), of_ten - of);
        assert!(more * 2 < more_text, "{more} KiB more for {more_text} KiB more");
    }
}

#[test]
fn what_is_in_the_index_is_read_no_more() {
    let ((folder, _), cache) = (folder(30, 2, 40), tempfile::tempdir().unwrap());
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
    let (folder, _) = folder(12, 600, 40);
    let args = ["sessions", "--no-index", folder.path().to_str().unwrap()];
    let Some(shown) = support::terminal::on_terminal(&args, false) else { return };
    assert!(shown.contains("of sessions"), "{shown:?}");
    assert!(shown.contains("Grind sack 0 of s7."), "{shown:?}");
}
