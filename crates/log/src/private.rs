use std::{
    ffi::OsString,
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

use super::{DiskFiles, Files, OpenFile, OpenMode, disk::open_in};

/// The files of the operating system, as [`DiskFiles`]; what is created, its owner alone can read.
///
/// On Unix a new file has the mode 0600 and a new folder 0700, less what the umask takes. What is
/// there already keeps its mode. Elsewhere both have what their folder gives them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrivateFiles;

impl Files for PrivateFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        open_in(path, mode, private_options)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        DiskFiles.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        DiskFiles.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        DiskFiles.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        DiskFiles.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(false).create(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        DiskFiles.sync_dir(directory)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        DiskFiles.is_link(path)
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{create_dirs, write_atomic};

    #[test]
    fn what_is_created_its_owner_alone_can_read() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        create_dirs(&PrivateFiles, &folder).unwrap();
        write_atomic(&PrivateFiles, folder.join("c"), b"secret").unwrap();
        drop(PrivateFiles.open(&folder.join("d"), OpenMode::Append).unwrap());
        let mode = |path: &str| {
            fs::metadata(scratch.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(["a", "a/b"].map(mode), [0o700; 2]);
        assert_eq!(["a/b/c", "a/b/d"].map(mode), [0o600; 2]);
    }
}
