//! What the files of a session directory are called.

use std::path::{Path, PathBuf};

/// How many turns a file has.
pub(super) const TURNS_PER_FILE: u64 = 50;
pub(super) const META: &str = "session.meta.json";
/// How far the session was acknowledged.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
pub(super) const TURNS: &str = "turns";
pub(super) const SNAPSHOTS: &str = "snapshots";
pub(super) const INDEXES: &str = "indexes";
pub(super) const STATE: &str = "state";
pub(super) const SCENES: &str = "scenes";
pub(super) const TURN_INDEX: &str = "indexes/turn-index.json";
pub(super) const DELTA_INDEX: &str = "indexes/delta-index.json";
pub(super) const SNAPSHOT_INDEX: &str = "indexes/snapshot-index.json";
pub(super) const CURRENT: &str = "state/current.json";
pub(super) const VERIFIED: &str = "state/verified.json";
/// The most bytes of a file of turns, unpacked or not.
pub(super) const MOST_BYTES: u64 = 1 << 32;
/// The most bytes of any other document, unpacked or not: as JSON a longer one would not be read, and
/// its seal is short.
pub(super) const MOST_DOCUMENT: u64 = crate::json::MAX_BYTES as u64 + 64;

/// A file of turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) first: u64,
    /// The last turn that belongs into it; unknown where its name says `current`.
    pub(super) last: Option<u64>,
    pub(super) is_packed: bool,
    pub(super) path: PathBuf,
}

/// The first turn of the file that a turn belongs into.
pub(super) fn first_of_file(turn: u64) -> u64 {
    (turn.max(1) - 1) / TURNS_PER_FILE * TURNS_PER_FILE + 1
}

/// The file of the turns from `first` to the end of its fifty.
pub(super) fn block_path(directory: &Path, first: u64) -> PathBuf {
    let last = first_of_file(first) + TURNS_PER_FILE - 1;
    directory.join(TURNS).join(format!("turns-{first:04}-{last:04}.jsonl"))
}

/// The file of turns with this name, if it is one.
pub(super) fn block(directory: &Path, name: &str) -> Option<Block> {
    let (stem, is_packed) = match name.strip_suffix(".zst") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let (first, last) = stem.strip_prefix("turns-")?.strip_suffix(".jsonl")?.split_once('-')?;
    // Numbers that no log comes to could not be counted on from.
    let number = |text: &str| text.parse().ok().filter(|number: &u64| *number < 1 << 62);
    let last = if last == "current" { None } else { Some(number(last)?) };
    let path = directory.join(TURNS).join(name);
    Some(Block { first: number(first)?, last, is_packed, path })
}

pub(super) fn snapshot_name(turn: u64) -> String {
    format!("snapshot-{turn:04}.json.zst")
}

/// The turn of the snapshot in a file with this name.
pub(super) fn snapshot_turn(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".zst").unwrap_or(name);
    stem.strip_prefix("snapshot-")?.strip_suffix(".json")?.parse().ok()
}

/// Whether a name has an extension.
pub(super) fn ends_in(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_there_and_back() {
        let directory = Path::new("d");
        let path = block_path(directory, 51);
        assert_eq!(path, Path::new("d/turns/turns-0051-0100.jsonl"));
        let found = block(directory, "turns-0051-0100.jsonl").unwrap();
        assert_eq!(found, Block { first: 51, last: Some(100), is_packed: false, path });
        assert!(block(directory, "turns-12001-12050.jsonl.zst").unwrap().is_packed);
        assert_eq!(block(directory, "turns-0101-current.jsonl").unwrap().last, None);
        assert_eq!(block(directory, "turns-0101.jsonl.torn-7"), None);
        // A branch begins in the middle of fifty.
        assert_eq!(block_path(directory, 73), Path::new("d/turns/turns-0073-0100.jsonl"));
        assert_eq!(snapshot_turn(&snapshot_name(50)), Some(50));
        assert_eq!(snapshot_turn("snapshot-12345.json"), Some(12345));
        assert_eq!(snapshot_turn("snapshot-0050.json.zst.tmp"), None);
        assert_eq!([1, 50, 51].map(first_of_file), [1, 1, 51]);
    }
}
