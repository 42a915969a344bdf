//! Folders over those of clients that a killed recorder left behind.
//!
//! Each holds a note: the folder that it lies over, and the processes that use it. Where none of them
//! runs any more, what the client wrote is moved to its own folder, and this one is removed.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::overlay;
use crate::output::note as tell;

/// The name of the note.
pub(super) const NOTE: &str = ".afterimage-overlay";
/// A note that is longer is none.
const MOST_NOTE: u64 = 1 << 16;

/// Adds a process to the note. The first line names the folder, each other one a process.
pub(super) fn note(over: &Path, folder: &Path, process: u32) -> io::Result<()> {
    let path = over.join(NOTE);
    let is_new = !path.exists();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    if is_new {
        let folder = std::path::absolute(folder)?;
        let folder = folder.to_str().filter(|folder| !folder.contains('\n'));
        let folder = folder.ok_or(io::ErrorKind::InvalidInput)?;
        writeln!(file, "{folder}")?;
    }
    writeln!(file, "{process}")
}

/// Restores what was left behind in a folder for temporary files.
pub(super) fn restore_all(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_of = |of: &&&overlay::Client| name.starts_with(&of.prefix());
        let Some(client) = overlay::CLIENTS.iter().find(is_of) else { continue };
        let over = entry.path();
        let Some((folder, running)) = left_behind(&over) else { continue };
        if !running.is_empty() || !claim(&over, &folder) {
            continue;
        }
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

/// Takes a folder that nobody uses. Of several runs that see it the one whose line is first has it.
fn claim(over: &Path, folder: &Path) -> bool {
    let process = std::process::id();
    note(over, folder, process).is_ok()
        && left_behind(over)
            .is_some_and(|(_, running)| running.first() == Some(&process.to_string()))
}

/// The folder that this one lay over, where it is ours, and the processes that use it.
fn left_behind(over: &Path) -> Option<(PathBuf, Vec<String>)> {
    let about = fs::symlink_metadata(over).ok()?;
    let path = over.join(NOTE);
    let of_note = fs::symlink_metadata(&path).ok()?;
    let is_sound = about.is_dir() && of_note.is_file() && of_note.len() <= MOST_NOTE;
    if !is_sound || !is_ours(&about) || !is_ours(&of_note) {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let (folder, processes) = text.split_once('\n')?;
    let folder = PathBuf::from(folder);
    let mut processes = processes.lines().peekable();
    processes.peek()?;
    // Of a number that cannot be read nobody knows.
    let is_over = |process: &str| process.parse().is_ok_and(|number| !runs(number));
    let running = processes.filter(|process| !is_over(process)).map(str::to_owned).collect();
    folder.is_dir().then_some((folder, running))
}

/// Whether a file is of the user of this process, and nobody else can write it.
#[cfg(unix)]
fn is_ours(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    about.uid() == rustix::process::geteuid().as_raw() && about.permissions().mode() & 0o022 == 0
}

#[cfg(unix)]
fn runs(process: i32) -> bool {
    use rustix::{
        io::Errno,
        process::{Pid, test_kill_process},
    };
    let Some(process) = Pid::from_raw(process) else { return true };
    // One that may not be signalled runs.
    !matches!(test_kill_process(process), Err(Errno::SRCH))
}

/// Elsewhere it is not known: the folders stay.
#[cfg(not(unix))]
fn is_ours(_about: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn runs(_process: i32) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn of_several_runs_one_restores_a_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let over = scratch.path().join("over");
        // One of another run that began before, and one that is over.
        let (other, gone, mine) =
            (std::os::unix::process::parent_id(), i32::MAX.unsigned_abs(), std::process::id());
        for (before, is_mine) in
            [(&[gone][..], true), (&[gone, other], false), (&[gone, mine, other], true)]
        {
            fs::create_dir(&over).unwrap();
            fs::set_permissions(&over, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .unwrap();
            for process in before {
                note(&over, scratch.path(), *process).unwrap();
            }
            assert_eq!(claim(&over, scratch.path()), is_mine, "{before:?}");
            fs::remove_dir_all(&over).unwrap();
        }
        assert!(!claim(&over, scratch.path()), "it was restored meanwhile");
    }
}
