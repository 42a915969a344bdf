//! The recordings that lie beside the project.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};

/// The folder `name` of the recordings. Without it the test that needs it passes with a note,
/// unless `AFTERIMAGE_REQUIRE_DATA` is set.
pub(crate) fn recordings(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let reason = format!("no recordings at {}", folder.display());
    assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// The files under `folder`, however deep, in the order of their paths.
pub(crate) fn files_under(folder: &Path) -> Vec<PathBuf> {
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
