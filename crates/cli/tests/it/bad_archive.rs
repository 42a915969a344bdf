//! What archives get that cannot be written, were not finished, or are damaged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    fmt::Write as _,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use support::{Run, out, run};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const TRAFFIC: &str = "crates/cli/tests/data/traffic.json";
const QUESTIONS: [&[&str]; 7] = [
    &["frames"],
    &["render", "--json"],
    &["render", "--as", "snapshots"],
    &["stats", "--json"],
    &["trace", "--text", "o", "--json"],
    &["trace", "--facet", "wood", "--json"],
    &["requests", "--json"],
];

fn archive(directory: &Path) -> PathBuf {
    let path = directory.join("made");
    let run = run(&["archive", SESSIONS, CHAT, TRAFFIC, "-o", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    path
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// Asserts that each question gets its full answer, or an error: never a part, never a panic.
/// Gives the runs.
#[track_caller]
fn whole_or_refused(path: &Path, answers: &[String]) -> Vec<Run> {
    let runs = QUESTIONS.iter().zip(answers).map(|(question, answer)| {
        let run = run(&[*question, &[path.to_str().unwrap()]].concat());
        match run.code {
            Some(0) => assert_eq!(&run.out, answer, "{question:?}"),
            code => {
                assert_eq!(code, Some(2), "{question:?}");
                assert!(run.err.contains("error: "), "{question:?}: {}", run.err);
            }
        }
        run
    });
    runs.collect()
}

fn answers(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    QUESTIONS.iter().map(|question| run(&[*question, &[path]].concat()).out).collect()
}

#[test]
fn a_flipped_byte_anywhere_is_found_or_does_not_matter() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let answers = answers(&path);
    let mut refused = 0;
    for file in files(&path) {
        let whole = fs::read(&file).unwrap();
        let step = (whole.len() / 5).max(1);
        for at in (3..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&file, bytes).unwrap();
            let runs = whole_or_refused(&path, &answers);
            refused += runs.iter().filter(|run| run.code == Some(2)).count();
        }
        fs::write(&file, whole).unwrap();
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_file_that_is_missing_or_cut_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let answers = answers(&path);
    for file in files(&path) {
        if file.ends_with("lock") || file.ends_with("archive.json") {
            continue;
        }
        let whole = fs::read(&file).unwrap();
        let name = file.to_str().unwrap();
        fs::remove_file(&file).unwrap();
        let runs = whole_or_refused(&path, &answers);
        assert!(runs.iter().any(|run| run.err.contains(name)), "{name}");
        for end in [0, 20, whole.len() - 1] {
            fs::write(&file, &whole[..end]).unwrap();
            let runs = whole_or_refused(&path, &answers);
            assert!(runs.iter().any(|run| run.code == Some(2)), "{name} at {end}");
        }
        fs::write(&file, whole).unwrap();
    }
}

#[test]
fn damage_in_one_file_does_not_stand_in_the_way_of_the_others() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    fs::remove_file(path.join("0001/frames.rec")).unwrap();
    let run = run(&["render", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.out, self::run(&["render", CHAT, TRAFFIC]).out);
    assert!(run.err.starts_with("error: cannot open: "), "{}", run.err);
}

#[test]
fn a_question_is_answered_from_what_it_is_about_and_reads_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let name = path.to_str().unwrap();
    let answers = answers(&path);
    // The first frames are damaged, and their snapshots are not.
    let file = path.join("0001/frames.rec");
    let mut bytes = fs::read(&file).unwrap();
    bytes[32 + 36 + 5] ^= 1;
    fs::write(&file, bytes).unwrap();
    let runs = whole_or_refused(&path, &answers);
    let codes: Vec<_> = runs.iter().map(|run| run.code.unwrap()).collect();
    assert_eq!(codes, [2, 2, 0, 2, 2, 2, 2]);
    // What follows the last frame is in none.
    for args in [&["render"][..], &["trace", "--at", "3:2"]] {
        let found = run(&[args, &[name]].concat());
        assert_eq!(found.out, run(&[args, &[SESSIONS, CHAT, TRAFFIC]].concat()).out);
    }
    // Where a facet stands in its source is known of its frame.
    let refused = run(&["trace", "--at", "0:3", name]);
    let others = run(&["trace", "--at", "0:3", CHAT, TRAFFIC]).out;
    assert_eq!((refused.code, refused.out), (Some(2), others));
    assert!(refused.err.contains("0001/frames.rec\n  record  0\n"), "{}", refused.err);
    // What the model saw in the midst of a session is only known by following its frames.
    let run = run(&["render", "--to", "6", name]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("0001/frames.rec\n  record  0\n  offset  32\n"), "{}", run.err);
}

#[test]
fn damage_is_reported_with_its_place_and_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let file = path.join("0001/0001/segments.rec");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let run = run(&["trace", "--facet", "wood", path.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    let (note, error) = run.err.split_once("error: ").unwrap();
    assert!(note.starts_with("note: damage in the archive: torn tail of "), "{note}");
    let directory = path.join("0001/0001");
    let expected = format!(
        "the archive is damaged: expected 3 frames, found 0
  file    {}
  hint    what is not damaged is still read; `afterimage archive` makes it anew
",
        directory.display()
    );
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_list_of_another_version_or_kind_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let list = path.join("archive.json");
    let said = |text: &str| {
        fs::write(&list, afterimage::log::line::seal(text).unwrap() + "\n").unwrap();
        let run = run(&["stats", path.to_str().unwrap()]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
        run.err.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        said(r#"{"kind":"afterimage archive","version":2,"files":[]}"#),
        "error: the archive is of version 2, and this program reads version 1"
    );
    assert_eq!(
        said(r#"{"kind":"soup","version":1,"files":[]}"#),
        "error: the manifest of the archive is wrong: expected \"afterimage archive\", found another kind (at /kind); make the archive again"
    );
    assert_eq!(
        said(r#"{"kind":"afterimage archive","version":1,"files":[{}]}"#),
        "error: the manifest of the archive is wrong: expected a value, found nothing (at /files/0/file); make the archive again"
    );
}

#[test]
fn a_directory_that_is_not_empty_is_not_written_to() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |path: &Path, sentence: &str, hint: &str| {
        let path = path.to_str().unwrap();
        let run = run(&["archive", CHAT, "-o", path]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
        assert_eq!(run.err, format!("error: {sentence}\n  file    {path}\n{hint}"));
    };
    let made = archive(scratch.path());
    let before = files(&made);
    refused(
        &made,
        "there is an archive already, and an archive is not added to",
        "  hint    name it as an input, too: `afterimage archive DIR FILE -o OTHER`\n",
    );
    assert_eq!(files(&made), before);

    let other = scratch.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "Dear").unwrap();
    refused(
        &other,
        "the directory is not empty",
        "  hint    name one that is empty, or not there yet\n",
    );
    assert_eq!(files(&other), [other.join("letter.txt")]);
    refused(&other.join("letter.txt"), "expected a directory to write to, found a file", "");

    let below = other.join("letter.txt/archive");
    let run = run(&["archive", CHAT, "-o", below.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("error: "), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_link_in_the_place_of_a_lock_or_a_mark_is_neither_waited_for_nor_followed() {
    use std::{os::unix::fs::symlink, time::Duration};
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("chat.json");
    fs::write(&input, r#"[{"role":"user","content":"hello"}]"#).unwrap();
    let refused = |name: &str, fill: &dyn Fn(&Path)| {
        let path = scratch.path().join(name);
        fs::create_dir(&path).unwrap();
        fill(&path);
        let before = fs::read_dir(&path).unwrap().count();
        let args = ["archive", input.to_str().unwrap(), "-o", path.to_str().unwrap()];
        let mut command = support::afterimage(&args);
        let output = command.timeout(Duration::from_secs(20)).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {err}");
        assert!(err.contains("the directory is not empty"), "{name}: {err}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), before, "{name}");
    };
    refused("pipe", &|path| {
        let made = Command::new("mkfifo").arg(path.join("lock")).status().unwrap();
        assert!(made.success());
    });
    refused("endless", &|path| symlink("/dev/zero", path.join("lock")).unwrap());
    // The link leads to what would count as a lock, or a mark, of an archive.
    let lock = scratch.path().join("lock");
    fs::write(&lock, "afterimage archive, process 1\n").unwrap();
    refused("lock_link", &|path| symlink(&lock, path.join("lock")).unwrap());
    refused("mark_link", &|path| {
        symlink(&lock, path.join("unfinished")).unwrap();
        fs::write(path.join("letter.txt"), "Dear").unwrap();
    });
    assert_eq!(fs::read_to_string(&lock).unwrap(), "afterimage archive, process 1\n");
}

#[test]
fn archives_are_read_and_written_through_what_follows_no_link() {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/session/archive");
    for file in files(&store) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for call in ["fs::read(", "fs::write(", "fs::read_to_string("] {
            assert!(!code.contains(call), "{} calls {call}", file.display());
        }
    }
}

#[test]
fn a_file_that_is_refused_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, empty) = (scratch.path().join("made"), scratch.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    let bad = scratch.path().join("bad.json");
    fs::write(&bad, r#"{"session":"a","sequence":3,"source":"user","events":[],"deltas":[{"type":"removeFacet","id":"ghost"}]}"#).unwrap();
    let (bad, missing) = (bad.to_str().unwrap(), scratch.path().join("missing.json"));
    for (name, sentence) in [
        (bad, "the facet does not exist"),
        (missing.to_str().unwrap(), "cannot open the file: no such file or directory"),
    ] {
        for directory in [&path, &empty] {
            let run = run(&["archive", CHAT, name, SESSIONS, "-o", directory.to_str().unwrap()]);
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
            assert!(
                run.err.starts_with(&format!("error: {sentence}\n  file    {name}\n")),
                "{}",
                run.err
            );
        }
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    }
}

/// Waits until a file is there.
fn wait_for(file: &Path) {
    for _ in 0..6_000 {
        if file.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} did not come", file.display());
}

#[test]
fn what_a_killed_program_leaves_is_recognised() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("killed");
    let name = path.to_str().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_afterimage"))
        .current_dir(support::root())
        .args(["archive", CHAT, "-", "-o", name])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    input.write_all(b"{\"role\":\"user\",\"content\":\"one\"}\n").unwrap();
    wait_for(&path.join("0001/0001/segments.rec"));
    // While it is being made it is not there yet, and nobody else writes to it.
    for args in [&["stats", name][..], &["archive", CHAT, "-o", name]] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
        let busy = "error: the archive is still being made: already in use by afterimage archive";
        assert!(run.err.starts_with(busy), "{}", run.err);
        assert!(run.err.ends_with("hint    wait until it is done\n"), "{}", run.err);
    }
    program.kill().unwrap();
    program.wait().unwrap();
    let frames = run(&["frames", name]);
    assert_eq!((frames.code, frames.out.as_str()), (Some(2), ""));
    assert_eq!(
        frames.err,
        format!(
            "error: the archive was not finished
  file    {name}
  hint    `afterimage archive FILE… -o DIR` makes it anew, in the same directory
"
        )
    );
}

/// Starts archiving two files, of which the second is never written to its end, and sends a signal
/// once the first is on disk.
fn interrupted(path: &Path, signal: &str) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_afterimage"))
        .current_dir(support::root())
        .args(["archive", CHAT, "-", "-o", path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    input.write_all(b"{\"role\":\"user\",\"content\":\"one\"}\n").unwrap();
    wait_for(&path.join("0001/0001/segments.rec"));
    let id = program.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    assert!(!program.wait().unwrap().success());
}

#[test]
#[cfg(unix)]
fn what_an_interrupt_leaves_the_next_run_takes_up() {
    let scratch = tempfile::tempdir().unwrap();
    let expected = archive(scratch.path());
    for signal in ["-INT", "-TERM", "-KILL"] {
        let path = scratch.path().join(format!("interrupted{signal}"));
        let name = path.to_str().unwrap();
        interrupted(&path, signal);
        interrupted(&path, signal);
        let again = run(&["archive", CHAT, SESSIONS, "-o", name]);
        assert_eq!(again.code, Some(0), "{}", again.err);
        let said = format!("note: {name}: replacing an unfinished archive\n");
        assert_eq!(again.err, said);
        let relative = |of: &Path| -> Vec<PathBuf> {
            let inside = |file: PathBuf| file.strip_prefix(of).unwrap().to_owned();
            files(of).into_iter().map(inside).collect()
        };
        let other = scratch.path().join(format!("other{signal}"));
        let made = run(&["archive", CHAT, SESSIONS, "-o", other.to_str().unwrap()]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        assert_eq!(relative(&path), relative(&other));
        assert_eq!(run(&["frames", name]).out, run(&["frames", CHAT, SESSIONS]).out);
    }
    assert!(!files(&expected).is_empty());
}

#[test]
fn what_is_left_of_a_run_that_was_killed_while_it_cleared_up_is_removed_too() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("gaps");
    for folder in ["0002/0001", "0900", "12345", "making/0007"] {
        fs::create_dir_all(path.join(folder)).unwrap();
    }
    fs::write(path.join("0002/0001/texts.rec"), "half").unwrap();
    // A folder of somebody else's has a number too.
    fs::create_dir_all(path.join("2025/0101")).unwrap();
    fs::write(path.join("2025/0101/photo"), "mine").unwrap();
    fs::write(path.join("unfinished"), "").unwrap();
    let name = path.to_str().unwrap();
    let again = run(&["archive", CHAT, SESSIONS, "-o", name]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let mut left: Vec<String> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["0001", "0002", "2025", "archive.json", "lock"]);
    assert_eq!(fs::read_to_string(path.join("2025/0101/photo")).unwrap(), "mine");
}

#[test]
fn without_the_lock_nothing_is_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("locked");
    fs::create_dir_all(path.join("lock")).unwrap();
    fs::create_dir_all(path.join("making/0001")).unwrap();
    fs::create_dir_all(path.join("0001")).unwrap();
    fs::write(path.join("unfinished"), "").unwrap();
    let refused = run(&["archive", CHAT, "-o", path.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    for there in ["unfinished", "making/0001", "0001", "lock"] {
        assert!(path.join(there).exists(), "{there}");
    }
}

#[test]
fn what_is_not_known_to_be_unfinished_is_not_removed() {
    let scratch = tempfile::tempdir().unwrap();
    // A whole archive that lost its list, and a directory of somebody else.
    let lost = archive(scratch.path());
    fs::remove_file(lost.join("archive.json")).unwrap();
    let other = scratch.path().join("other");
    fs::create_dir_all(other.join("0001")).unwrap();
    fs::write(other.join("lock"), "mine").unwrap();
    fs::write(other.join("0001/photo"), "mine").unwrap();
    for path in [lost, other] {
        let before = files(&path);
        let refused = run(&["archive", CHAT, "-o", path.to_str().unwrap()]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("remove the directory"), "{}", refused.err);
        assert_eq!(files(&path), before);
    }
}

#[test]
fn a_directory_without_a_transcript_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let name = scratch.path().to_str().unwrap();
    let run = run(&["archive", name, "-o", scratch.path().join("made").to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.err,
        format!(
            "error: there is no transcript in the folder
  file    {name}
"
        )
    );
}

#[test]
fn a_frame_that_could_not_be_read_back_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("made");
    for depth in [120, 121, 122, 123, 124, 125, 126] {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        let input = format!(r#"[{{"role":"user","content":"deep","extra":{nested}}}]"#);
        let file = scratch.path().join("deep.json");
        fs::write(&file, input).unwrap();
        let (file, name) = (file.to_str().unwrap(), path.to_str().unwrap());
        let run = run(&["archive", file, "-o", name]);
        if run.code == Some(0) {
            assert_eq!(out(&["frames", name]), out(&["frames", file]));
            fs::remove_dir_all(&path).unwrap();
        } else {
            assert!(run.err.starts_with("error: nesting deeper than 128 levels\n"), "{}", run.err);
            assert!(!path.exists());
        }
    }
}

#[test]
fn counts_that_do_not_add_up_in_64_bits_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, file) = (scratch.path().join("made"), scratch.path().join("declared.jsonl"));
    let frame = |sequence: u64| {
        let most = u64::MAX;
        format!(
            r#"{{"sequence":{sequence},"deltas":[],"renderedSnapshot":{{"chunks":[{{"content":"x","tokens":{most}}}],"totalContent":"x","totalTokens":{most},"capturedAt":0,"madeBy":{{"viewer":"agent","format":"xml","renderer":1,"tokenizer":"o200k_base"}}}}}}"#
        )
    };
    fs::write(&file, [frame(0), frame(1)].join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let run = run(&["archive", file, "-o", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.err,
        format!(
            "error: the tokens of all frames do not fit 64 bits
  file    {file}
  frame   1
"
        )
    );
    assert!(!path.exists());
}

/// Runs a shell with the program as `$0`, and `$1` as a directory.
#[cfg(unix)]
fn shell(script: &str, directory: &Path) -> std::process::Output {
    let mut command = Command::new("sh");
    command.current_dir(support::root()).args(["-c", script, env!("CARGO_BIN_EXE_afterimage")]);
    command.arg(directory).output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let large = scratch.path().join("large.jsonl");
    let mut lines = String::new();
    let mut noise = 1_u64;
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..200 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write!(text, "{noise:x} ").unwrap();
        }
        writeln!(lines, "{{\"role\":\"user\",\"content\":\"{text}\"}}").unwrap();
    }
    fs::write(&large, lines).unwrap();
    // No file may grow beyond some blocks of 512 bytes.
    let limited = |blocks: u32| {
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" archive --tokenizer chars4 \"$1/large.jsonl\" -o \"$1/made\""
        );
        shell(&script, scratch.path())
    };
    for blocks in [0, 1, 10, 100, 1_000] {
        let output = limited(blocks);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{blocks}: {error}");
        assert!(error.starts_with("error: cannot "), "{error}");
        assert!(error.contains("\n  file    "), "{error}");
        assert!(!scratch.path().join("made").exists(), "{blocks}");
    }
    assert!(limited(1_000_000).status.success());
    fs::remove_dir_all(scratch.path().join("made")).unwrap();

    // A file system of its own, where that is permitted.
    let tiny = scratch.path().join("tiny");
    fs::create_dir(&tiny).unwrap();
    let output = shell(
        "exec unshare -rm sh -c 'mount -t tmpfs -o size=400k tmpfs \"$1/tiny\" || exit 77
         \"$0\" archive --tokenizer chars4 \"$1/large.jsonl\" -o \"$1/tiny/made\"
         echo \"exit $?\"; ls \"$1/tiny\"' \"$0\" \"$1\"",
        scratch.path(),
    );
    let (said, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if said.starts_with("exit") {
        assert_eq!(said, "exit 2\n", "{error}");
        assert!(error.contains("No space left on device"), "{error}");
    } else {
        eprintln!("skipped: no file system of one's own is permitted: {error}");
    }
}

#[test]
fn a_copy_is_as_good_as_the_archive() {
    let scratch = tempfile::tempdir().unwrap();
    let path = archive(scratch.path());
    let moved = scratch.path().join("moved");
    copy(&path, &moved);
    let answers = answers(&path);
    fs::remove_dir_all(&path).unwrap();
    assert!(whole_or_refused(&moved, &answers).iter().all(|run| run.code == Some(0)));
}

#[cfg(unix)]
#[test]
fn an_archive_may_be_linked_as_a_whole_and_nothing_in_it() {
    use std::os::unix::fs::symlink;

    let scratch = tempfile::tempdir().unwrap();
    let made = archive(scratch.path());
    let linked = scratch.path().join("linked");
    symlink(&made, &linked).unwrap();
    let ask = || run(&["stats", "--json", linked.to_str().unwrap()]);
    assert_eq!(ask().code, Some(0), "{}", ask().err);
    for name in ["archive.json", "0001/frames.rec", "0001", "0001/0001"] {
        let (here, elsewhere) = (made.join(name), scratch.path().join("elsewhere"));
        fs::rename(&here, &elsewhere).unwrap();
        symlink(&elsewhere, &here).unwrap();
        let render = run(&["render", linked.to_str().unwrap()]);
        assert_eq!(render.code, Some(2), "{name}");
        assert!(render.err.contains("is a symbolic link"), "{name}: {}", render.err);
        fs::remove_file(&here).unwrap();
        fs::rename(&elsewhere, &here).unwrap();
    }
    assert_eq!(ask().code, Some(0), "{}", ask().err);
}
