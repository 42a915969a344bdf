//! Links to what is in a folder, and moves from the folder of links to that one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Links to what is in a folder, `but` one name.
pub(super) fn link_all(folder: &Path, over: &Path, but: &str) -> io::Result<()> {
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

/// Moves what is no link into the folder that lies below, but names that stay. A file takes the place of
/// the one that it was written in place of.
pub(super) fn move_back(
    over: &Path,
    folder: &Path,
    stays: impl Fn(&str) -> bool,
) -> io::Result<()> {
    for entry in fs::read_dir(over)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(&stays) && !entry.file_type()?.is_symlink() {
            move_file(&entry.path(), &folder.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Moves a file or a folder to a place, which may be a link to where the user keeps it.
pub(super) fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    move_to(from, &fs::canonicalize(to).unwrap_or_else(|_| to.to_owned()))
}

/// A link is moved as a link: what it leads to is not the client's.
fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return move_link(from, to);
    }
    if kind.is_dir() {
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
    copy_to(from, to)
}

/// Puts a copy in the place of a file, with the mode of what is copied. A loss of power leaves one of
/// the two whole.
fn copy_to(from: &Path, to: &Path) -> io::Result<()> {
    let beside = beside(to);
    let mode = fs::metadata(from)?.permissions();
    let copied = fs::copy(from, &beside)
        .and_then(|_| fs::OpenOptions::new().write(true).open(&beside)?.sync_all())
        .and_then(|()| fs::set_permissions(&beside, mode))
        .and_then(|()| fs::rename(&beside, to));
    match copied {
        Ok(()) => sync_folder(to),
        Err(error) => {
            let _ = fs::remove_file(&beside);
            Err(error)
        }
    }
}

/// Makes the name of a file durable.
#[cfg(unix)]
fn sync_folder(of: &Path) -> io::Result<()> {
    let Some(folder) = of.parent() else { return Ok(()) };
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_of: &Path) -> io::Result<()> {
    Ok(())
}

fn move_link(from: &Path, to: &Path) -> io::Result<()> {
    let beside = beside(to);
    link(&fs::read_link(from)?, &beside)?;
    let moved = fs::rename(&beside, to);
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}

fn beside(to: &Path) -> PathBuf {
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".afterimage-{}", std::process::id()));
    beside.into()
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn a_copy_keeps_the_mode_of_what_was_written() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| scratch.path().join(name));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for (of_from, of_to) in [(0o600, 0o644), (0o640, 0o600)] {
            fs::write(&from, "new").unwrap();
            fs::write(&to, "old").unwrap();
            fs::set_permissions(&from, fs::Permissions::from_mode(of_from)).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(of_to)).unwrap();
            copy_to(&from, &to).unwrap();
            assert_eq!((fs::read_to_string(&to).unwrap().as_str(), mode(&to)), ("new", of_from));
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
        assert!(copy_to(&scratch.path().join("none"), &to).is_err());
        assert_eq!(fs::read_to_string(&to).unwrap(), "new");
    }

    #[test]
    fn what_a_link_leads_to_stays_where_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let [over, folder, project] = ["over", "folder", "project"].map(|name| {
            let path = scratch.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        fs::write(project.join("index.js"), "1").unwrap();
        let modules = over.join("npm/node_modules");
        fs::create_dir_all(&modules).unwrap();
        fs::write(modules.join("own.js"), "2").unwrap();
        link(&project, &modules.join("linked")).unwrap();
        link(&modules, &modules.join("round")).unwrap();
        move_back(&over, &folder, |_| false).unwrap();
        let moved = folder.join("npm/node_modules");
        assert_eq!(fs::read_to_string(moved.join("own.js")).unwrap(), "2");
        assert_eq!(fs::read_link(moved.join("linked")).unwrap(), project);
        assert_eq!(fs::read_to_string(project.join("index.js")).unwrap(), "1");
    }
}
