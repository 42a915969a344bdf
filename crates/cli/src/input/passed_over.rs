//! What is passed over in folders.

use std::path::{Path, PathBuf};

use super::source::NoTranscript;
use crate::{failure::Failure, output, text::counted};

/// What was passed over in folders, for one note.
#[derive(Default)]
pub(super) struct PassedOver {
    /// The folders, and whether something was read of each.
    folders: Vec<(PathBuf, bool)>,
    links: u64,
    files: u64,
    first: Option<(PathBuf, NoTranscript)>,
}

impl PassedOver {
    /// A folder is read in which so many links are not followed.
    pub(super) fn begin(&mut self, folder: &Path, links: u64) {
        self.folders.push((folder.to_owned(), false));
        self.links += links;
    }

    /// A file is no transcript.
    pub(super) fn add(&mut self, path: PathBuf, why: NoTranscript) {
        self.files += 1;
        self.first.get_or_insert((path, why));
    }

    /// A file is a transcript, or a folder an archive.
    pub(super) fn read(&mut self, path: &Path) {
        for (folder, is_read) in &mut self.folders {
            *is_read |= path.starts_with(folder);
        }
    }

    /// Whether a folder is read.
    pub(super) fn is_of_folder(&self) -> bool {
        !self.folders.is_empty()
    }

    /// Says what was passed over, and gives the folders in which there was nothing else.
    pub(super) fn report(self) -> Vec<Failure> {
        let mut kinds = Vec::new();
        if self.files > 0 {
            let is = if self.files == 1 { "is no transcript" } else { "are no transcripts" };
            kinds.push(format!("{} that {is}", counted(self.files, "file")));
        }
        if self.links > 0 {
            kinds.push(counted(self.links, "symbolic link"));
        }
        if !kinds.is_empty() {
            let first = self.first.map_or_else(String::new, |(path, NoTranscript(why))| {
                format!("; the first is {}: {why}", path.display())
            });
            output::note(&format!("passed over {}{first}", kinds.join(" and ")));
        }
        let empty = self.folders.into_iter().filter(|(_, is_read)| !is_read);
        let failure =
            |folder: PathBuf| Failure::new("there is no transcript in the folder").file(&folder);
        empty.map(|(folder, _)| failure(folder)).collect()
    }
}
