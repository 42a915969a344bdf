//! Clients that take base URLs from a file in a folder of theirs, which a variable names.
//!
//! A temporary folder holds links to what is in the client's own, and the file with other base URLs.
//! What the client writes there is moved to its own folder when it ends.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use afterimage::log::{DiskFiles, write_atomic};

use super::{
    links,
    settings_text::{Resolved, SettingsText},
    stale,
};
use crate::{
    failure::{Failure, Outcome},
    output::note,
};

/// A client whose folder can be laid over.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: &'static str,
    /// The variable that names its folder.
    pub(super) variable: &'static str,
    /// The file in it that names base URLs.
    pub(super) file: &'static str,
    /// Whether the file is the user's own but for its base URLs, so that changes of it are kept.
    pub(super) is_kept: bool,
    /// The folders that are made in its own one: what it begins there stays.
    pub(super) made: &'static [&'static str],
    /// The files into which it writes the path of its folder.
    pub(super) named_in: &'static [&'static str],
}

/// Whose folders may have been left behind.
pub(super) const CLIENTS: [&Client; 3] =
    [&super::pi::CLIENT, &super::kimi::CLIENT, &super::llm::CLIENT];

impl Client {
    /// How the names of its temporary folders begin.
    pub(super) fn prefix(&self) -> String {
        format!("afterimage-{}-", self.name)
    }

    /// The folder that its variable names, or else this one of the user's.
    pub(super) fn folder(&self, own: impl FnOnce() -> Option<PathBuf>) -> PathBuf {
        let named = std::env::var_os(self.variable).filter(|folder| !folder.is_empty());
        let folder = named.map(PathBuf::from).or_else(own).unwrap_or_default();
        std::path::absolute(&folder).unwrap_or(folder)
    }
}

/// What is laid over the folder of a client.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) client: &'static Client,
    pub(super) folder: PathBuf,
    pub(super) settings: SettingsText,
}

impl Overlay {
    /// Makes the temporary folder, with the base URLs of the routes.
    pub(super) fn create(self, base: impl Fn(&str) -> Option<String>) -> Outcome<OverlayFolder> {
        stale::restore_all(&std::env::temp_dir());
        let Self { client, folder, settings } = self;
        let failed = |error: io::Error| {
            let name = client.name;
            Failure::new(format!("cannot lay a folder over that of {name}: {error}")).file(&folder)
        };
        // Of its owner alone, as settings may hold keys.
        let (prefix, mut builder) = (client.prefix(), tempfile::Builder::new());
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let over = builder.tempdir().map_err(failed)?;
        for made in client.made {
            fs::create_dir_all(folder.join(made)).map_err(failed)?;
        }
        links::link_all(&folder, over.path(), client.file).map_err(failed)?;
        let settings = settings.resolve(base);
        write_atomic(&DiskFiles, over.path().join(client.file), settings.text.as_bytes())?;
        let over = OverlayFolder { client, over, folder, settings };
        over.note_user(std::process::id());
        Ok(over)
    }
}

/// A folder that lies over that of a client.
#[derive(Debug)]
pub(super) struct OverlayFolder {
    client: &'static Client,
    over: tempfile::TempDir,
    folder: PathBuf,
    settings: Resolved,
}

impl OverlayFolder {
    /// The variable that names it, and its path.
    pub(super) fn variable(&self) -> (&'static str, &Path) {
        (self.client.variable, self.over.path())
    }

    /// Writes down that this process uses the folder, so that a later run can tell whether it is left
    /// behind.
    pub(super) fn note_user(&self, process: u32) {
        // Without it the folder stays where it is.
        let _ = stale::note(self.over.path(), &self.folder, process);
    }

    /// Moves what the client has written into its own folder, and removes this one. What cannot be
    /// moved stays, and it is said where.
    pub(super) fn restore(self) {
        let moved = self
            .keep_settings()
            .and_then(|()| move_back(self.client, self.over.path(), &self.folder));
        if let Err(error) = moved {
            let (name, folder) = (self.client.name, self.folder.display());
            let kept = self.over.keep();
            note(&format!(
                "cannot move what {name} has written to {folder}: {error}; it is in {}",
                kept.display()
            ));
        }
    }

    /// Puts settings that the client has changed into its own folder, with the user's base URLs.
    fn keep_settings(&self) -> io::Result<()> {
        let path = self.over.path().join(self.client.file);
        let written = fs::read_to_string(&path).unwrap_or_default();
        if !self.client.is_kept || written.is_empty() || written == self.settings.text {
            return Ok(());
        }
        fs::write(&path, self.settings.give_back(&written))?;
        links::move_file(&path, &self.folder.join(self.client.file))
    }
}

/// Moves what a client has written into its own folder.
pub(super) fn move_back(client: &Client, over: &Path, folder: &Path) -> io::Result<()> {
    // The file may hold keys, and its base URLs are of no use any more.
    for name in [client.file, stale::NOTE] {
        match fs::remove_file(over.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    links::move_back(over, folder)?;
    for pattern in client.named_in {
        rename_in(folder, pattern, over, folder)?;
    }
    Ok(())
}

/// Writes the path of the client's own folder where files of this pattern have that of the one over
/// it. A part of the pattern is a name, or `*`.
fn rename_in(at: &Path, pattern: &str, over: &Path, folder: &Path) -> io::Result<()> {
    let (first, rest) = pattern.split_once('/').unwrap_or((pattern, ""));
    let paths: Vec<PathBuf> = match first {
        "*" => fs::read_dir(at).into_iter().flatten().flatten().map(|of| of.path()).collect(),
        name => vec![at.join(name)],
    };
    for path in paths {
        if !rest.is_empty() {
            rename_in(&path, rest, over, folder)?;
            continue;
        }
        let (Some(from), Some(to)) = (over.to_str(), folder.to_str()) else { continue };
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if text.contains(from) {
            let failed = |error| io::Error::other(format!("{error}"));
            write_atomic(&DiskFiles, &path, text.replace(from, to).as_bytes()).map_err(failed)?;
        }
    }
    Ok(())
}
