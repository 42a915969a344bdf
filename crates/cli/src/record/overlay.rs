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

/// How the names of our own files begin in the temporary folder.
pub(super) const OWN: &str = ".afterimage-";
/// The settings that the client was given, and a text that is about to take the place of a file.
const SETTINGS: &str = ".afterimage-settings";
const NEW: &str = ".afterimage-new";

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
        // Without a note the folder stays where it is, if this process is killed.
        let note = stale::note(over.path(), &folder).ok();
        let over = OverlayFolder { client, over, folder: folder.clone(), _note: note };
        let path = over.over.path();
        for made in client.made {
            fs::create_dir_all(folder.join(made)).map_err(failed)?;
        }
        links::link_all(&folder, path, client.file).map_err(failed)?;
        let settings = settings.resolve(base);
        // First how it is given back.
        settings.save(&path.join(SETTINGS)).map_err(failed)?;
        let like = client.is_kept.then(|| folder.join(client.file));
        put(settings.text.as_bytes(), like.as_deref(), &path.join(client.file), path)
            .map_err(failed)?;
        Ok(over)
    }
}

/// A folder that lies over that of a client.
#[derive(Debug)]
pub(super) struct OverlayFolder {
    client: &'static Client,
    over: tempfile::TempDir,
    folder: PathBuf,
    /// Open as long as the folder is used.
    _note: Option<fs::File>,
}

impl OverlayFolder {
    /// The variable that names it, and its path.
    pub(super) fn variable(&self) -> (&'static str, &Path) {
        (self.client.variable, self.over.path())
    }

    /// Moves what the client has written into its own folder, and removes this one. What cannot be
    /// moved stays, and it is said where.
    pub(super) fn restore(self) {
        let moved = move_back(self.client, self.over.path(), &self.folder);
        if let Err(error) = moved {
            let (name, folder) = (self.client.name, self.folder.display());
            let kept = self.over.keep();
            note(&format!(
                "cannot move what {name} has written to {folder}: {error}; it is in {}",
                kept.display()
            ));
        }
    }
}

/// Moves what a client has written into its own folder. What was moved half is moved by the next run.
pub(super) fn move_back(client: &Client, over: &Path, folder: &Path) -> io::Result<()> {
    let settings = [client.file, SETTINGS].map(|name| over.join(name));
    if settings.iter().any(|path| path.exists()) {
        keep_settings(client, over, folder)?;
    }
    links::move_back(over, folder, |name| name == client.file || name.starts_with(OWN))?;
    for pattern in client.named_in {
        rename_in(folder, pattern, over, folder)?;
    }
    // Before the rest, in this order: they are not to be given back a second time by what is left.
    let mut left = settings.iter().filter(|path| path.exists());
    left.try_for_each(fs::remove_file)
}

/// Puts settings that the client has changed into its own folder, with the user's base URLs; beside
/// the user's, where these changed too, or where a base URL is not one of the user's.
fn keep_settings(client: &Client, over: &Path, folder: &Path) -> io::Result<()> {
    let (name, path, own) = (client.name, over.join(client.file), folder.join(client.file));
    let given = Resolved::read(&over.join(SETTINGS));
    let written = fs::read(&path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(error),
    })?;
    if given.as_ref().is_some_and(|given| given.text.as_bytes() == written) {
        return Ok(());
    }
    let shown = own.display();
    if written.is_empty() {
        note(&format!("{name} has left nothing in its {}: {shown} stays as it is", client.file));
        return Ok(());
    }
    let back = |text: &[u8]| given.as_ref()?.give_back(std::str::from_utf8(text).ok()?);
    let before = given.as_ref().and_then(|given| given.give_back(&given.text));
    let (now, after) = (fs::read_to_string(&own).ok(), back(&written));
    if after.is_some() && now == after {
        return Ok(());
    }
    let text = after.as_ref().map_or(&*written, String::as_bytes);
    if client.is_kept && after.is_some() && before.is_some() && now == before {
        return put(text, Some(&path), &own, over);
    }
    let why = match (client.is_kept, &after) {
        (false, _) => "the recorder has put more into it than base URLs",
        (_, None) => "it holds a base URL of the recorder that is none of the user's",
        _ => "something else has changed it meanwhile",
    };
    let file = |number: u32| folder.join(format!("{}.recorded-{number}", client.file));
    let beside = (1..=u32::MAX).map(file).find(|path| fs::symlink_metadata(path).is_err());
    let beside = beside.unwrap_or_default();
    put(text, Some(&path), &beside, over)?;
    note(&format!(
        "{name} has changed its {}, and {shown} stays as it is, since {why}: what {name} wrote is in {}",
        client.file,
        beside.display()
    ));
    fs::remove_file(path)
}

/// Puts a text in the place of a file, with the mode of another one, or for its owner alone.
fn put(text: &[u8], like: Option<&Path>, to: &Path, over: &Path) -> io::Result<()> {
    let new = over.join(NEW);
    write_atomic(&DiskFiles, &new, text).map_err(io::Error::other)?;
    if let Some(like) = like {
        fs::set_permissions(&new, fs::metadata(like)?.permissions())?;
    }
    links::move_file(&new, to)
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
            put(text.replace(from, to).as_bytes(), Some(&path), &path, over)?;
        }
    }
    Ok(())
}
