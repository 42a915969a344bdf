use std::{
    ffi::OsString,
    fmt, io,
    ops::Deref,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{Files, OpenFile, OpenMode};

/// Files of which those below `root` are reached through no symbolic link.
///
/// `root` itself may be one, and so may the directories above it: people link whole directories to
/// other disks. What lies below belongs to the store, which links nothing; there a link leads to
/// somebody else's files. Paths that are not below `root` are left to `files`.
///
/// Each operation costs one look at each directory between `root` and the file.
pub fn within(files: Arc<dyn Files>, root: impl AsRef<Path>) -> Arc<dyn Files> {
    Arc::new(Within { files, root: root.as_ref().to_owned() })
}

/// As [`within`], for files that are borrowed.
pub fn borrowed_within<'f>(files: &'f dyn Files, root: &Path) -> impl Files + 'f {
    Within { files, root: root.to_owned() }
}

/// The error of a link that is not followed.
pub(super) fn followed(path: &Path) -> io::Error {
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    io::Error::other(format!(
        "{name} is a symbolic link, and none is followed in a store: put there what it leads to"
    ))
}

#[derive(Debug)]
struct Within<F> {
    files: F,
    root: PathBuf,
}

impl<F: Deref<Target: Files>> Within<F> {
    /// Refuses a directory below the root that is a link, or lies behind one.
    fn check(&self, directory: &Path) -> io::Result<()> {
        let Ok(below) = directory.strip_prefix(&self.root) else { return Ok(()) };
        if !below.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(());
        }
        let mut at = self.root.clone();
        for part in below.components() {
            at.push(part);
            if self.files.is_link(&at)? {
                return Err(followed(&at));
            }
        }
        Ok(())
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |directory| self.check(directory))
    }
}

impl<F> Files for Within<F>
where
    F: Deref<Target: Files> + fmt::Debug + Send + Sync,
{
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        self.check_parent(path)?;
        self.files.open(path, mode)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.check_parent(path)?;
        self.files.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_parent(from)?;
        self.check_parent(to)?;
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check_parent(path)?;
        self.files.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.check(directory)?;
        self.files.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check_parent(path)?;
        self.files.create_dir(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.check(directory)?;
        self.files.sync_dir(directory)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        self.files.is_link(path)
    }
}
