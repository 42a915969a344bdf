//! Several files, which are read at once, give what each gives alone.

use std::{
    collections::BTreeMap,
    fs,
    iter::repeat_n,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use afterimage_testkit::data;

use crate::support::{root, run};

/// Larger recordings say no more of this, and take long without optimisation.
const SMALL: u64 = 300_000;

/// Some recordings, the largest first: the others are read before it is.
fn some() -> Option<Vec<String>> {
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |of| of.len());
    let files = data::files_under(&data::recordings("")?).into_iter();
    let mut files: Vec<_> = files.filter(|path| size(path) < SMALL).step_by(4).collect();
    let largest = (0..files.len()).max_by_key(|at| size(&files[*at]))?;
    files.swap(0, largest);
    assert!(files.len() > 10, "{}", files.len());
    Some(files.iter().map(|path| path.display().to_string()).collect())
}

#[test]
fn stats_of_several_files_are_those_of_each_in_their_order() {
    let Some(files) = some() else { return };
    let all: Vec<&str> =
        ["stats", "--json"].into_iter().chain(files.iter().map(|file| &**file)).collect();
    let together = run(&all);
    let (mut out, mut failures, mut notes) = (String::new(), 0, 0);
    let mut rest = together.err.as_str();
    for file in &files {
        let alone = run(&["stats", "--json", file]);
        out += &alone.out;
        failures += alone.err.matches("error: ").count();
        notes += alone.err.matches("note: ").count();
        for said in alone.err.lines() {
            let said = said.strip_prefix("note: ").unwrap_or(said);
            let found = rest.split_once(said);
            rest = found.unwrap_or_else(|| panic!("{said} of {file} in {rest}")).1;
        }
    }
    assert_eq!(together.out, out);
    assert_eq!(together.err.matches("error: ").count(), failures, "{}", together.err);
    assert_eq!(together.err.matches("note: ").count(), notes, "{}", together.err);
    assert!(failures + notes > 4, "{}", together.err);
    assert_eq!(together.code == Some(0), failures == 0, "{}", together.err);
}

/// The files in a folder with their bytes, by their paths inside. A lock names a process.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let inside = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path.strip_prefix(folder).unwrap().to_owned(), bytes)
    };
    let files = data::files_under(folder).into_iter();
    files.filter(|path| !path.ends_with("lock")).map(inside).collect()
}

#[test]
fn an_archive_of_several_files_has_the_bytes_of_the_archive_of_each() {
    let Some(files) = some() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let archive = |name: String, files: &[&str]| {
        let path = scratch.path().join(name);
        let made = run(&[&["archive", "-o", path.to_str().unwrap()], files].concat());
        (made.code == Some(0)).then_some(path)
    };
    let alone = files.iter().enumerate();
    let alone: Vec<_> =
        alone.filter_map(|(at, file)| Some((&**file, archive(at.to_string(), &[file])?))).collect();
    let named: Vec<&str> = alone.iter().map(|(file, _)| *file).collect();
    assert!(named.len() > 10, "{}", named.len());
    let together = archive("together".to_owned(), &named).unwrap();
    for (at, (file, alone)) in alone.iter().enumerate() {
        let folder = together.join(format!("{:04}", at + 1));
        assert!(contents(&folder) == contents(&alone.join("0001")), "{file}");
    }
    let folders = fs::read_dir(&together).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    });
    assert_eq!(folders.count(), named.len());
    // All of what was named, or nothing.
    let gone = scratch.path().join("gone.jsonl").display().to_string();
    let path = scratch.path().join("refused");
    let with_one_gone = [&named[..], &[&gone], &named[..]].concat();
    let refused = run(&[&["archive", "-o", path.to_str().unwrap()], &with_one_gone[..]].concat());
    assert_eq!(refused.code, Some(2));
    assert!(!path.exists());
}

#[test]
#[cfg(target_os = "linux")]
fn files_that_wait_to_be_shown_are_closed() {
    let slow = tempfile::NamedTempFile::new().unwrap();
    let line = "{\"role\":\"user\",\"content\":\"high water at six, low water at noon\"}\n";
    fs::write(slow.path(), line.repeat(20_000)).unwrap();
    let threads = thread::available_parallelism().unwrap().get();
    let few = format!("ulimit -n {}; exec \"$@\" > /dev/null", 16 + 4 * threads);
    let ended = Command::new("sh")
        .args(["-c", &few, "sh", env!("CARGO_BIN_EXE_afterimage"), "stats", "--json"])
        .arg(slow.path())
        .args(repeat_n("crates/cli/tests/data/chat.json", 30 * threads))
        .current_dir(root())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
