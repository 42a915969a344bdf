//! A disk in memory that fails where a test wants it to, and forgets what was not synced.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Files, OpenFile, OpenMode, files::directory_of};

/// Files in memory. Clones share the disk.
///
/// An operation that changes something (creating, appending, syncing, cutting, renaming, removing)
/// has a number, from zero; [`MemoryFiles::fault_at`] makes that operation go wrong. Bytes are
/// durable once their file is synced, names once their directory is; [`MemoryFiles::crash`] gives
/// the disk as it may be after a loss of power.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(Arc<Mutex<Disk>>);

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does nothing and fails.
    Fail,
    /// It does half of its work and fails.
    Short,
    /// It does nothing and claims to have done it.
    Lose,
    /// A sync fails, and the system holds what it did not write for written: it gives it back, later
    /// syncs pass over it, and it is lost with the power. Other operations fail.
    Forget,
    /// It does half of its work and fails, and so does everything after it.
    Crash,
}

/// What is left of bytes that were appended and not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsyncedBytes {
    /// Nothing.
    Lost,
    /// The first half.
    Halved,
    /// All of them, but the first half is zeros: the disk wrote them out of order.
    Zeroed,
    /// All of them.
    Kept,
}

#[derive(Debug, Default)]
struct Disk {
    contents: Vec<Content>,
    live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    crashed: bool,
    room: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// What no sync writes any more.
    forgotten: Option<Range<usize>>,
    locked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(usize),
    Directory,
}

/// What becomes of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultPlan {
    Done,
    Lost,
    Half,
    Forgotten,
}

impl MemoryFiles {
    /// An empty disk without an end.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the operation of this number go wrong.
    pub fn fault_at(&self, operation: u64, fault: Fault) {
        self.disk().faults.insert(operation, fault);
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }

    /// Sets how many bytes more there is room for.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.disk().room = bytes;
    }

    /// What a file holds. Copies it.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let disk = self.disk();
        let Some(Node::File(content)) = disk.live.get(path.as_ref()) else { return None };
        disk.contents.get(*content).map(|content| content.live.clone())
    }

    /// Puts a file there, durably. O(bytes).
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let mut disk = self.disk();
        let bytes = bytes.into();
        let content = Content { live: bytes.clone(), durable: bytes, ..Content::default() };
        disk.contents.push(content);
        let node = Node::File(disk.contents.len() - 1);
        disk.live.insert(path.as_ref().to_owned(), node);
        disk.durable.insert(path.as_ref().to_owned(), node);
    }

    /// The paths of all files. O(files).
    pub fn paths(&self) -> Vec<PathBuf> {
        let disk = self.disk();
        let files = disk.live.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// The disk is sound again, with all that was written: the process died, and the system went on.
    pub fn survive(&self) {
        let mut disk = self.disk();
        disk.faults.clear();
        disk.crashed = false;
    }

    /// The disk after a loss of power, sound again: with what is left of unsynced bytes, and with
    /// the names that were not synced or without. Copies all files.
    pub fn crash(&self, unsynced: UnsyncedBytes, keeps_names: bool) -> Self {
        let disk = self.disk();
        let names = if keeps_names { &disk.live } else { &disk.durable };
        // What is in a directory that is lost is lost with it.
        let is_there = |path: &Path| {
            let mut above = path.ancestors().skip(1);
            above.all(|folder| folder.parent().is_none() || names.contains_key(folder))
        };
        let names: BTreeMap<PathBuf, Node> = names
            .iter()
            .filter(|(path, _)| is_there(path))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        let after = Disk {
            contents: disk.contents.iter().map(|content| content.after(unsynced)).collect(),
            live: names.clone(),
            durable: names,
            ..Disk::default()
        };
        Self(Arc::new(Mutex::new(after)))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn after(&self, unsynced: UnsyncedBytes) -> Self {
        let same = self.live.iter().zip(&self.durable).take_while(|(a, b)| a == b).count();
        let (kept, new) = self.live.split_at(same);
        // What was written over other bytes ends before those that are the same again.
        let end = if self.live.len() == self.durable.len() {
            let pairs = self.live.iter().rev().zip(self.durable.iter().rev());
            new.len() - pairs.take_while(|(a, b)| a == b).count().min(new.len())
        } else {
            new.len()
        };
        let (first, second) = new.split_at(end / 2);
        let bytes = match unsynced {
            UnsyncedBytes::Lost => self.durable.clone(),
            // Of bytes that were written over others, the old ones are left.
            UnsyncedBytes::Halved => {
                let old = self.durable.get(same + first.len()..).unwrap_or_default();
                [kept, first, old].concat()
            }
            UnsyncedBytes::Zeroed => [kept, &vec![0; first.len()], second].concat(),
            UnsyncedBytes::Kept => self.live.clone(),
        };
        Self { live: bytes.clone(), durable: bytes, ..Self::default() }
    }
}

impl Disk {
    /// Counts an operation and says what becomes of it; an error where nothing does.
    fn operate(&mut self) -> io::Result<FaultPlan> {
        if self.crashed {
            return Err(injected());
        }
        let fault = self.faults.get(&self.operations).copied();
        self.operations += 1;
        match fault {
            None => Ok(FaultPlan::Done),
            Some(Fault::Lose) => Ok(FaultPlan::Lost),
            Some(Fault::Fail) => Err(injected()),
            Some(Fault::Forget) => Ok(FaultPlan::Forgotten),
            Some(Fault::Short) => Ok(FaultPlan::Half),
            Some(Fault::Crash) => {
                self.crashed = true;
                Ok(FaultPlan::Half)
            }
        }
    }

    /// [`Disk::operate`] for what cannot be done by half; whether it is to be done.
    fn operate_whole(&mut self) -> io::Result<bool> {
        match self.operate()? {
            FaultPlan::Done => Ok(true),
            FaultPlan::Lost => Ok(false),
            FaultPlan::Half | FaultPlan::Forgotten => Err(injected()),
        }
    }

    fn is_directory(&self, path: &Path) -> bool {
        path == Path::new(".")
            || path.parent().is_none()
            || self.live.get(path) == Some(&Node::Directory)
    }

    fn content(&mut self, content: usize) -> io::Result<&mut Content> {
        self.contents.get_mut(content).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.live.get(path) {
            Some(Node::File(content)) => Ok(*content),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn injected() -> io::Error {
    io::Error::other("injected fault")
}

impl Files for MemoryFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let mut disk = self.disk();
        let there = match disk.file(path) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let content = match (there, mode) {
            (Some(content), OpenMode::Create) => {
                if disk.operate_whole()? {
                    let content = disk.content(content)?;
                    content.live.clear();
                    content.forgotten = None;
                }
                content
            }
            (Some(content), _) => content,
            (None, OpenMode::Read | OpenMode::Write) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            (None, _) => {
                if !disk.is_directory(directory_of(path)) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                // A file without a name is what is left of one whose creation was lost.
                let has_name = disk.operate_whole()?;
                disk.contents.push(Content::default());
                let content = disk.contents.len() - 1;
                if has_name {
                    disk.live.insert(path.to_owned(), Node::File(content));
                }
                content
            }
        };
        let disk = self.clone();
        Ok(Box::new(MemoryFile { disk, content, holds_lock: AtomicBool::new(false) }))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut disk = self.disk();
        let content = disk.file(path)?;
        if disk.operate_whole()? {
            let content = disk.content(content)?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            content.live.truncate(length);
            content.durable = content.live.clone();
            content.forgotten.take_if(|range| range.start >= length);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let content = disk.file(from)?;
        if disk.operate_whole()? {
            disk.live.remove(from);
            disk.live.insert(to.to_owned(), Node::File(content));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.file(path)?;
        if disk.operate_whole()? {
            disk.live.remove(path);
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let disk = self.disk();
        if !disk.is_directory(directory) {
            let is_file = disk.live.contains_key(directory);
            let kind = if is_file { io::ErrorKind::NotADirectory } else { io::ErrorKind::NotFound };
            return Err(kind.into());
        }
        let paths = disk.live.keys().filter(|path| directory_of(path) == directory);
        Ok(paths.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        if disk.is_directory(path) || disk.live.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !disk.is_directory(directory_of(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if disk.operate_whole()? {
            disk.live.insert(path.to_owned(), Node::Directory);
        }
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        if !disk.is_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if disk.operate_whole()? {
            let Disk { live, durable, .. } = &mut *disk;
            durable.retain(|path, _| directory_of(path) != directory);
            let names = live.iter().filter(|(path, _)| directory_of(path) == directory);
            durable.extend(names.map(|(path, node)| (path.clone(), *node)));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryFiles,
    content: usize,
    holds_lock: AtomicBool,
}

impl OpenFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.disk().content(self.content)?.live.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.disk();
        let bytes = &disk.content(self.content)?.live;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = bytes.get(start..).unwrap_or_default();
        io::Read::read(&mut rest, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let course = disk.operate()?;
        let wanted = match course {
            FaultPlan::Done => bytes.len(),
            FaultPlan::Lost => return Ok(()),
            FaultPlan::Forgotten => return Err(injected()),
            FaultPlan::Half => bytes.len() / 2,
        };
        let room = disk.room.map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX));
        let written = bytes.get(..wanted.min(room)).unwrap_or_default();
        disk.room = disk.room.map(|room| room.saturating_sub(written.len() as u64));
        disk.content(self.content)?.live.extend_from_slice(written);
        match course {
            FaultPlan::Half => Err(injected()),
            _ if written.len() < wanted => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let course = disk.operate()?;
        let wanted = match course {
            FaultPlan::Done => bytes.len(),
            FaultPlan::Lost => return Ok(()),
            FaultPlan::Forgotten => return Err(injected()),
            FaultPlan::Half => bytes.len() / 2,
        };
        let live = &mut disk.content(self.content)?.live;
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        live.resize(live.len().max(start + wanted), 0);
        if let Some(place) = live.get_mut(start..start + wanted) {
            place.copy_from_slice(bytes.get(..wanted).unwrap_or_default());
        }
        if course == FaultPlan::Half { Err(injected()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let course = disk.operate()?;
        let content = disk.content(self.content)?;
        match course {
            FaultPlan::Done => {
                content.durable.clone_from(&content.live);
                let forgotten = content.forgotten.clone();
                let hole = forgotten.and_then(|range| content.durable.get_mut(range));
                hole.into_iter().for_each(|hole| hole.fill(0));
            }
            FaultPlan::Lost => {}
            FaultPlan::Forgotten => {
                content.forgotten = Some(content.durable.len()..content.live.len());
                return Err(injected());
            }
            FaultPlan::Half => {
                content.durable = content.after(UnsyncedBytes::Halved).live;
                return Err(injected());
            }
        }
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut disk = self.disk.disk();
        let content = disk.content(self.content)?;
        if content.locked && !self.holds_lock.load(Ordering::Relaxed) {
            return Ok(false);
        }
        content.locked = true;
        self.holds_lock.store(true, Ordering::Relaxed);
        Ok(true)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match self.disk.disk().file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            content => Ok(content? == self.content),
        }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        if self.holds_lock.load(Ordering::Relaxed)
            && let Ok(content) = self.disk.disk().content(self.content)
        {
            content.locked = false;
        }
    }
}
