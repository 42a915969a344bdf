//! Files that are made durable together.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::log::{DiskFiles, Files, OpenFile, OpenMode, WholeSync};

/// How many files are synced at once, and how few are not worth a thread of their own.
const AT_ONCE: usize = 8;
const FEW: usize = 16;
/// From so many files and folders on, the file system is synced as a whole where that is possible.
const MANY: usize = 128;

/// The files of the operating system, whose syncs wait for [`LateSync::sync`].
///
/// What a directory holds counts only once its list is there, so what comes before needs no order
/// of its own on the disk. An archive of many short sessions is mostly waiting for syncs: this way
/// each file and folder is synced once, or all of them with one call.
#[derive(Clone, Debug, Default)]
pub(super) struct LateSync {
    waiting: Arc<Mutex<PendingSync>>,
}

#[derive(Debug, Default)]
struct PendingSync {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl LateSync {
    fn waiting(&self) -> MutexGuard<'_, PendingSync> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what waits in a folder that was moved, with the folder itself and that in which it
    /// is now.
    pub(super) fn take_moved(&self, of: &Self, from: &Path, to: &Path) {
        let PendingSync { files, directories } = std::mem::take(&mut *of.waiting());
        let moved = |path: PathBuf| Some(to.join(path.strip_prefix(from).ok()?));
        let mut waiting = self.waiting();
        waiting.files.extend(files.into_iter().filter_map(moved));
        waiting.directories.extend(directories.into_iter().filter_map(moved));
        waiting.directories.extend(to.ancestors().take(2).map(Path::to_owned));
    }

    /// Makes all that waits durable: file by file, or, where that is many, with all of their file
    /// system, which holds `directory`. `whole` is asked for before the first of them is written.
    ///
    /// # Errors
    /// What the system refuses; which of the files are durable is then unknown.
    pub(super) fn sync(
        &self,
        whole: Option<&WholeSync>,
        directory: &Path,
    ) -> Result<(), (io::Error, PathBuf)> {
        let PendingSync { files, directories } = std::mem::take(&mut *self.waiting());
        if let Some(whole) = whole.filter(|_| files.len() + directories.len() >= MANY) {
            return whole.sync().map_err(|error| (error, directory.to_owned()));
        }
        // Not every system syncs a file that is open for reading alone.
        let sync_file =
            |path: &Path| DiskFiles.open(path, OpenMode::Write).and_then(|file| file.sync());
        sync_all(files, sync_file)?;
        sync_all(directories, |path| DiskFiles.sync_dir(path))
    }
}

/// Syncs paths, several at once: what waits for the disk waits together.
fn sync_all(
    paths: BTreeSet<PathBuf>,
    sync: impl Fn(&Path) -> io::Result<()> + Sync,
) -> Result<(), (io::Error, PathBuf)> {
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    let sync_some = |some: &[PathBuf]| {
        let mut synced = some.iter().map(|path| sync(path).map_err(|error| (error, path.clone())));
        synced.find(Result::is_err).unwrap_or(Ok(()))
    };
    let share = paths.len().div_ceil(AT_ONCE).max(FEW);
    if paths.len() <= share {
        return sync_some(&paths);
    }
    thread::scope(|scope| {
        let sync_some = &sync_some;
        let running: Vec<_> =
            paths.chunks(share).map(|some| scope.spawn(move || sync_some(some))).collect();
        let ended = running.into_iter().map(|thread| match thread.join() {
            Ok(synced) => synced,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

impl Files for LateSync {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let file = DiskFiles.open(path, mode)?;
        if mode == OpenMode::Read {
            return Ok(file);
        }
        Ok(Box::new(LateFile { file, path: path.to_owned(), of: self.clone() }))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        DiskFiles.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        DiskFiles.rename(from, to)?;
        let mut waiting = self.waiting();
        if waiting.files.remove(from) {
            waiting.files.insert(to.to_owned());
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        DiskFiles.remove(path)?;
        self.waiting().files.remove(path);
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        DiskFiles.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DiskFiles.create_dir(path)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        DiskFiles.is_link(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.waiting().directories.insert(directory.to_owned());
        Ok(())
    }
}

#[derive(Debug)]
struct LateFile {
    file: Box<dyn OpenFile>,
    path: PathBuf,
    of: LateSync,
}

impl OpenFile for LateFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn next_data(&self, from: u64) -> io::Result<Option<u64>> {
        self.file.next_data(from)
    }

    fn sync(&self) -> io::Result<()> {
        self.of.waiting().files.insert(self.path.clone());
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use crate::log::write_atomic;

    use super::*;

    #[test]
    fn what_is_synced_waits_under_the_name_that_it_has_in_the_end() {
        let scratch = tempfile::tempdir().unwrap();
        let files = LateSync::default();
        for name in ["a", "b"] {
            write_atomic(&files, scratch.path().join(name), b"here").unwrap();
        }
        files.remove(&scratch.path().join("b")).unwrap();
        let waiting = |files: &LateSync| files.waiting().files.clone();
        assert_eq!(waiting(&files), BTreeSet::from([scratch.path().join("a")]));
        assert_eq!(files.waiting().directories, BTreeSet::from([scratch.path().to_owned()]));
        files.sync(None, scratch.path()).unwrap();
        assert!(waiting(&files).is_empty());
        assert_eq!(std::fs::read(scratch.path().join("a")).unwrap(), b"here");
    }

    #[test]
    fn what_waits_in_a_folder_that_was_moved_waits_where_it_is_now() {
        let scratch = tempfile::tempdir().unwrap();
        let (from, to) = (scratch.path().join("from/0001"), scratch.path().join("0007"));
        let (files, all) = (LateSync::default(), LateSync::default());
        crate::log::create_dirs(&files, &from).unwrap();
        write_atomic(&files, from.join("a"), b"here").unwrap();
        std::fs::rename(&from, &to).unwrap();
        all.take_moved(&files, &from, &to);
        assert!(files.waiting().files.is_empty());
        assert_eq!(all.waiting().files, BTreeSet::from([to.join("a")]));
        let directories = BTreeSet::from([scratch.path().to_owned(), to]);
        assert_eq!(all.waiting().directories, directories);
        all.sync(None, scratch.path()).unwrap();
    }

    #[test]
    fn many_files_are_synced_with_their_file_system() {
        let scratch = tempfile::tempdir().unwrap();
        let Some(whole) = WholeSync::of(scratch.path()) else { return };
        let files = LateSync::default();
        for number in 0..MANY {
            let path = scratch.path().join(number.to_string());
            let file = files.open(&path, OpenMode::Create).unwrap();
            file.append(b"here").unwrap();
            file.sync().unwrap();
        }
        // One by one it would be missed.
        std::fs::remove_file(scratch.path().join("0")).unwrap();
        std::fs::create_dir(scratch.path().join("0")).unwrap();
        files.sync(Some(&whole), scratch.path()).unwrap();
        assert!(files.waiting().files.is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_synced_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let (files, path) = (LateSync::default(), scratch.path().join("folder"));
        files.open(&path, OpenMode::Create).unwrap().sync().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(files.sync(None, scratch.path()).unwrap_err().1, path);
    }
}
