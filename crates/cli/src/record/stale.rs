//! Overlay folders that a killed recorder left behind.
//!
//! Each overlay folder holds a note with the path of the client's own folder. The recorder and the
//! client keep the note open and locked. When neither runs any more, the next recorder moves what
//! the client wrote to the client's folder, and removes the overlay.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::overlay;
use crate::output::note as tell;

/// The name of the note.
pub(super) const NOTE: &str = ".afterimage-overlay";
/// A longer file is not a note.
const MOST_NOTE: u64 = 1 << 16;

/// Leaves a note in the overlay `over` of the client's `folder`. It is locked until this process,
/// and each that it starts from now on, has ended.
pub(super) fn note(over: &Path, folder: &Path) -> io::Result<File> {
    let folder = std::path::absolute(folder)?;
    let folder = folder.to_str().filter(|folder| !folder.contains('\n'));
    let folder = folder.ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = File::create_new(over.join(NOTE))?;
    // Before there is anything to read in it: without a folder it is no note yet.
    file.lock_shared()?;
    #[cfg(unix)]
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    writeln!(file, "{folder}")?;
    Ok(file)
}

/// Restores what abandoned overlays in a folder for temporary files hold.
pub(super) fn restore_all(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_of = |of: &&&overlay::Client| name.starts_with(&of.prefix());
        let Some(client) = overlay::CLIENTS.iter().find(is_of) else { continue };
        let over = entry.path();
        let Some((folder, _claimed)) = left_behind(&over) else { continue };
        let moved =
            overlay::move_back(client, &over, &folder).and_then(|()| fs::remove_dir_all(&over));
        match moved {
            Ok(()) => tell(&format!(
                "a run that was killed left {}: what {} wrote there is in {} now",
                over.display(),
                client.name,
                folder.display()
            )),
            Err(error) => tell(&format!(
                "a run that was killed left {}, and it cannot be moved to {}: {error}",
                over.display(),
                folder.display()
            )),
        }
    }
}

/// The client's folder of an abandoned overlay, and the locked note. `None` if the overlay is in
/// use, is another user's, or has no valid note. Hold the note while you restore.
fn left_behind(over: &Path) -> Option<(PathBuf, File)> {
    let path = over.join(NOTE);
    is_sound(over, &path).then_some(())?;
    let note = File::open(&path).ok()?;
    note.try_lock().ok()?;
    // Another run may have restored it meanwhile.
    is_sound(over, &path).then_some(())?;
    let text = io::read_to_string(&note).ok()?;
    let folder = PathBuf::from(text.strip_suffix('\n')?);
    folder.is_dir().then_some((folder, note))
}

/// Whether the folder and its note are there, and ours.
fn is_sound(over: &Path, note: &Path) -> bool {
    let [Ok(about), Ok(of_note)] = [over, note].map(fs::symlink_metadata) else { return false };
    let is_note = of_note.is_file() && of_note.len() <= MOST_NOTE;
    about.is_dir() && is_note && is_ours(&about) && is_ours(&of_note)
}

/// Whether a file is of the user of this process, and nobody else can write it.
#[cfg(unix)]
fn is_ours(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    about.uid() == rustix::process::geteuid().as_raw() && about.permissions().mode() & 0o022 == 0
}

/// Elsewhere it is not known: the folders stay.
#[cfg(not(unix))]
fn is_ours(_about: &fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn of_several_runs_one_restores_a_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let over = scratch.path().join("over");
        fs::create_dir(&over).unwrap();
        fs::set_permissions(&over, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert!(left_behind(&over).is_none(), "without a note");
        let used = note(&over, scratch.path()).unwrap();
        assert!(left_behind(&over).is_none(), "the recorder runs");
        let mut client = std::process::Command::new("cat");
        let mut client = client.stdin(std::process::Stdio::piped()).spawn().unwrap();
        drop(used);
        assert!(left_behind(&over).is_none(), "its client runs");
        drop(client.stdin.take());
        client.wait().unwrap();
        let (folder, first) = left_behind(&over).unwrap();
        assert_eq!(folder, scratch.path());
        assert!(left_behind(&over).is_none(), "another run restores it");
        // Of what nobody else may have left there, nothing is opened: it could wait for ever.
        fs::remove_file(over.join(NOTE)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(over.join(NOTE)).status().unwrap();
        assert!(made.success() && left_behind(&over).is_none());
        fs::remove_dir_all(&over).unwrap();
        drop(first);
        assert!(left_behind(&over).is_none(), "it was restored meanwhile");
    }
}
