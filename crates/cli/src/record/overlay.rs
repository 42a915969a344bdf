//! A folder of links that lies over another one.

use std::{fs, io, path::Path};

/// Links to what is in a folder, `but` one name. Sessions that pi begins lie in the folder itself.
pub(super) fn link_all(folder: &Path, over: &Path, but: &str) -> io::Result<()> {
    fs::create_dir_all(folder.join("sessions"))?;
    // A link of the user's may lead nowhere, and does so from here too.
    let folder = std::path::absolute(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != *but {
            link(&entry.path(), &over.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(to: &Path, from: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, from)
}

#[cfg(windows)]
fn link(to: &Path, from: &Path) -> io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    if to.is_dir() { symlink_dir(to, from) } else { symlink_file(to, from) }
}

/// Moves what is no link into the folder that lies below. A file takes the place of the one that it
/// was written in place of.
pub(super) fn move_back(over: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(over)? {
        let entry = entry?;
        if !entry.file_type()?.is_symlink() {
            let to = folder.join(entry.file_name());
            // The place may be a link to where the user keeps the file.
            move_to(&entry.path(), &fs::canonicalize(&to).unwrap_or(to))?;
        }
    }
    Ok(())
}

fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            move_to(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    // Folders for temporary files often are on another disk.
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".afterimage-{}", std::process::id()));
    let copied = fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to));
    if copied.is_err() {
        let _ = fs::remove_file(&beside);
    }
    copied
}
