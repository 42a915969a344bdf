//! The recordings and the specifications, which lie beside the project.

use std::path::{Path, PathBuf};

/// What lies beside the project at `path`: recordings and specifications. `AFTERIMAGE_SHARED` names
/// another folder than `../shared`.
pub fn beside(path: &str) -> PathBuf {
    let folder = std::env::var_os("AFTERIMAGE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    folder.join(path)
}

/// The folder `name` of the recordings. Without it the test that needs it passes with a note,
/// unless `AFTERIMAGE_REQUIRE_DATA` is set.
pub fn recordings(name: &str) -> Option<PathBuf> {
    let folder = beside("data").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let reason = format!(
        "no recordings at {}; AFTERIMAGE_SHARED names the folder that holds `data/`",
        folder.display()
    );
    assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// A recording, or a folder of some, by its path. `None` where there are no recordings at all, as
/// [`recordings`] says; where there are some, this one must be among them.
pub fn recording(path: &str) -> Option<PathBuf> {
    let (group, rest) = path.split_once('/').unwrap_or((path, ""));
    let file = recordings(group)?.join(rest);
    assert!(file.exists(), "no recording at {}", file.display());
    Some(file)
}

/// A small input from the field, by its path below `cases`. `None` where there are no cases at all,
/// which is a failure where `AFTERIMAGE_REQUIRE_DATA` is set.
pub fn case(path: &str) -> Option<PathBuf> {
    let cases = beside("cases");
    if cases.is_dir() {
        let file = cases.join(path);
        assert!(file.exists(), "no case at {}", file.display());
        return Some(file);
    }
    let reason = format!("no cases at {}", cases.display());
    assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// The files under `folder`, however deep, in the order of their paths.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
