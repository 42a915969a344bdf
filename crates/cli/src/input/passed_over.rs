//! What is passed over in folders.

use std::path::{Path, PathBuf};

use super::source::NoTranscript;
use crate::{
    failure::Failure,
    output,
    text::{counted, printable},
};

/// What was passed over in folders, for one note.
#[derive(Default)]
pub(super) struct PassedOver {
    folder: Option<PathBuf>,
    links: u64,
    files: u64,
    first: Option<(PathBuf, NoTranscript)>,
    /// Whether anything was read.
    pub(super) is_read: bool,
}

impl PassedOver {
    /// A folder is read in which so many links are not followed.
    pub(super) fn begin(&mut self, folder: &Path, links: u64) {
        self.folder.get_or_insert_with(|| folder.to_owned());
        self.links += links;
    }

    /// A file is no transcript.
    pub(super) fn add(&mut self, path: PathBuf, why: NoTranscript) {
        self.files += 1;
        self.first.get_or_insert((path, why));
    }

    /// Whether a folder is read.
    pub(super) fn is_of_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Says what was passed over. A failure where nothing but that was there.
    pub(super) fn report(self) -> Option<Failure> {
        let folder = self.folder?;
        let mut kinds = Vec::new();
        if self.files > 0 {
            let is = if self.files == 1 { "is no transcript" } else { "are no transcripts" };
            kinds.push(format!("{} that {is}", counted(self.files, "file")));
        }
        if self.links > 0 {
            kinds.push(counted(self.links, "symbolic link"));
        }
        if !self.is_read {
            let failure = Failure::new("there is no transcript in the folder").file(&folder);
            return Some(match kinds.is_empty() {
                true => failure,
                false => failure.hint(format!("passed over {}", kinds.join(" and "))),
            });
        }
        if !kinds.is_empty() {
            let first = self.first.map_or_else(String::new, |(path, NoTranscript(why))| {
                format!("; the first is {}: {why}", path.display())
            });
            output::note(&printable(&format!("passed over {}{first}", kinds.join(" and "))));
        }
        None
    }
}
