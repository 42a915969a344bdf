use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::Path,
};

use super::{Files, OpenFile, OpenMode};

/// The files of the operating system.
///
/// What is created holds what agents said, so its owner alone can read it: on Unix a new file has the
/// mode 0600 and a new folder 0700, less what the umask takes. What is there already keeps its mode,
/// also where another file takes its place. Elsewhere both have what their folder gives them.
///
/// A symbolic link is not followed, and what is no regular file (a pipe, a socket, a device) is
/// refused without waiting for it: an archive or a session may come from anybody. The directories
/// above are the system's business; [`within`](super::within) looks at those of a store.
///
/// Directories are synced where the system has that (Unix); elsewhere renames are as durable as the
/// file system makes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        open_in(path, mode)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let file = open_regular(path, OpenOptions::new().write(true))?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        #[cfg(unix)]
        if let Ok(there) = fs::symlink_metadata(to)
            && there.is_file()
            && fs::symlink_metadata(from)?.permissions() != there.permissions()
        {
            fs::set_permissions(from, there.permissions())?;
        }
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_dir(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.is_symlink()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Options with which what is created can be read by its owner alone.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn open_in(path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
    let mut options = private_options();
    options.read(true);
    match mode {
        OpenMode::Read => {}
        OpenMode::Write => {
            options.write(true);
        }
        OpenMode::Append => {
            options.append(true).create(true);
        }
        OpenMode::Create => {
            // What is new needs no emptying, and is no link and no pipe.
            let mut fresh = private_options();
            match open_regular(path, fresh.read(true).append(true).create_new(true)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok(Box::new(DiskFile(opened?))),
            }
            // It is emptied only once it is known for a regular file. Not every system lets a
            // file that was opened for appending be cut.
            let mut empty = OpenOptions::new();
            open_regular(path, empty.write(true))?.set_len(0)?;
            options.append(true);
        }
    }
    Ok(Box::new(DiskFile(open_regular(path, &mut options)?)))
}

/// Opens a regular file. Nothing else is read, written or waited for.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Without the second a pipe waits for whoever opens its other end.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    refuse_kind(path)?;
    let file = match options.open(path) {
        Ok(file) => file,
        // The system has many words for it, few of which say what it is.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            refuse_kind(path)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(no_regular_file()),
    }
}

/// Refuses a link and what is no regular file, by what the name leads to now.
fn refuse_kind(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path).map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_symlink() => Err(super::within::followed(path)),
        Ok(kind) if !kind.is_file() && !kind.is_dir() => Err(no_regular_file()),
        _ => Ok(()),
    }
}

fn no_regular_file() -> io::Error {
    io::Error::other("it is a pipe, a socket or a device, and only regular files are opened")
}

#[derive(Debug)]
struct DiskFile(File);

impl OpenFile for DiskFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buffer, offset)
    }

    // It moves the file's cursor, which nothing here uses: writes go to the end.
    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset)
    }

    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    // Elsewhere the standard library does not tell one file from another.
    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let there = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let own = self.0.metadata()?;
        Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
    }

    // It moves the cursor too, which nothing uses.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple",
        target_os = "freebsd"
    ))]
    fn next_data(&self, from: u64) -> io::Result<Option<u64>> {
        use rustix::{
            fs::{SeekFrom, seek},
            io::Errno,
        };
        match seek(&self.0, SeekFrom::Data(from)) {
            Ok(at) => Ok(Some(at)),
            Err(Errno::NXIO) => Ok(None),
            // A file system that knows no holes.
            Err(_) => Ok(Some(from)),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{create_dirs, write_atomic};

    #[test]
    fn what_is_created_its_owner_alone_can_read() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        create_dirs(&DiskFiles, &folder).unwrap();
        write_atomic(&DiskFiles, folder.join("c"), b"secret").unwrap();
        drop(DiskFiles.open(&folder.join("d"), OpenMode::Append).unwrap());
        let mode = |path: &str| {
            fs::metadata(scratch.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(["a", "a/b"].map(mode), [0o700; 2]);
        assert_eq!(["a/b/c", "a/b/d"].map(mode), [0o600; 2]);
        // What the user opened to others stays so, whatever is written in its place.
        fs::set_permissions(folder.join("c"), fs::Permissions::from_mode(0o640)).unwrap();
        write_atomic(&DiskFiles, folder.join("c"), b"other").unwrap();
        assert_eq!(mode("a/b/c"), 0o640);
    }
}
