//! The index of sessions. `docs/FORMAT.md` describes the file.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use afterimage::{
    json::{self, Fields, Value},
    log::{self, DirLock, DiskFiles, Holder, line, read_file, scan_lines, write_atomic},
    steps::WORDS,
};

use super::summary::Summary;
use crate::input::Stamp;
use crate::{
    json::{object, or_null},
    output,
};

/// The name of the file, in which the version stands: programs of other versions have their own.
const NAME: &str = "sessions-1.jsonl";
const VERSION: u64 = 1;
/// The largest index that is read.
const LARGEST: u64 = 256 << 20;
/// How often, and how long apart, the lock is asked for.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// What is known of a file: its session, or that it is no transcript.
pub(super) type Known = Option<Summary>;

/// The index of sessions, in a folder or nowhere.
#[derive(Debug, Default)]
pub(super) struct Index {
    folder: Option<PathBuf>,
    entries: HashMap<String, (Stamp, Known)>,
    /// The entries that are newer than those on the disk.
    updated: HashSet<String>,
    is_damaged: bool,
}

impl Index {
    /// Reads the index in a folder. Where it is damaged, what is sound of it is taken.
    pub(super) fn open(folder: PathBuf) -> Self {
        let mut index = Self { folder: Some(folder), ..Self::default() };
        index.entries = index.read();
        if index.is_damaged {
            let left = index.entries.len() as u64;
            let sound = if left == 1 { "entry of it is" } else { "entries of it are" };
            output::note(&format!("the index is damaged and is made anew; {left} {sound} sound"));
        }
        index
    }

    fn path(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(NAME))
    }

    fn read(&mut self) -> HashMap<String, (Stamp, Known)> {
        let Some(path) = self.path() else { return HashMap::new() };
        // That there is none is no damage.
        if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return HashMap::new();
        }
        let Ok(bytes) = read_file(&DiskFiles, &path, LARGEST) else {
            self.is_damaged = true;
            return HashMap::new();
        };
        let scan = scan_lines(&bytes);
        let mut lines = scan.lines.iter().map(|line| json::read(line.text.as_bytes()));
        let head = lines.next().and_then(Result::ok).unwrap_or_default();
        let is_ours = head.get("version").and_then(Value::as_u64) == Some(VERSION);
        self.is_damaged = !is_ours || !scan.damage.is_empty() || scan.torn.is_some();
        if !is_ours || head.str_at("words") != Some(WORDS) {
            return HashMap::new();
        }
        let entries: Vec<_> = lines.map(|line| line.and_then(entry)).collect();
        self.is_damaged |= entries.iter().any(Result::is_err);
        entries.into_iter().flatten().collect()
    }

    /// What is known of a file that has not changed since.
    pub(super) fn get(&self, key: &str, stamp: Stamp) -> Option<&Known> {
        self.entries.get(key).filter(|(of, _)| *of == stamp).map(|(_, known)| known)
    }

    pub(super) fn put(&mut self, key: String, stamp: Stamp, known: Known) {
        if self.folder.is_some() {
            self.updated.insert(key.clone());
            self.entries.insert(key, (stamp, known));
        }
    }

    /// Forgets files that are gone, and says whether the disk holds something else now.
    pub(super) fn forget_gone(&mut self) -> bool {
        let before = self.entries.len();
        self.entries.retain(|path, _| !is_gone(path));
        self.is_damaged || before != self.entries.len() || !self.updated.is_empty()
    }

    /// Writes the index, with what another program has put there meanwhile.
    ///
    /// Where another program is writing it just now, nothing is written: the next run does.
    pub(super) fn save(&mut self) -> log::Result<()> {
        let (Some(folder), Some(path)) = (self.folder.clone(), self.path()) else { return Ok(()) };
        log::create_dirs(&DiskFiles, &folder)?;
        let Some(_lock) = lock(&folder)? else { return Ok(()) };
        for (key, entry) in self.read() {
            if !self.updated.contains(&key) && !is_gone(&key) {
                self.entries.insert(key, entry);
            }
        }
        write_atomic(&DiskFiles, &path, &self.bytes()?)?;
        self.updated.clear();
        self.is_damaged = false;
        Ok(())
    }

    fn bytes(&self) -> log::Result<Vec<u8>> {
        let head =
            object! { "index": "sessions of afterimage", "version": VERSION, "words": WORDS };
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(path, _)| *path);
        let entries = entries.into_iter().map(|(path, (stamp, known))| {
            let session = known.as_ref().map(json::to_value).transpose();
            session.map(|session| {
                object! {
                    "path": path.as_str(),
                    "size": stamp.size,
                    "modified": stamp.modified,
                    "files": stamp.files,
                    "session": or_null(session),
                }
            })
        });
        let mut bytes = Vec::new();
        for line in std::iter::once(Ok(head)).chain(entries) {
            let line = line?;
            bytes.extend_from_slice(line::seal(&Value::from(line).to_string())?.as_bytes());
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
}

fn entry(value: Value) -> json::Result<(String, (Stamp, Known))> {
    let mut fields = Fields::of(value, "an entry")?;
    let path = Fields::required(fields.string("path")?, "path", "a string")?;
    let stamp = Stamp {
        size: fields.u64("size")?.unwrap_or_default(),
        modified: fields.u64("modified")?.unwrap_or_default(),
        files: fields.u64("files")?.unwrap_or_default(),
    };
    let known = fields.nested("session", json::from_value::<Summary>)?;
    Ok((path, (stamp, known)))
}

fn is_gone(path: &str) -> bool {
    // Below the path of a database are the names of its sessions.
    let is_in_file = || Path::new(path).parent().is_some_and(Path::is_file);
    let is_missing =
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    is_missing && !is_in_file()
}

/// The lock of the folder; `None` where another program keeps it.
fn lock(folder: &Path) -> log::Result<Option<DirLock>> {
    let holder = Holder::new("afterimage").noting("writes the index of sessions");
    for _ in 0..TRIES {
        match DirLock::acquire(&DiskFiles, folder, &holder) {
            Err(error) if error.kind() == log::ErrorKind::Locked => thread::sleep(PAUSE),
            locked => return locked.map(Some),
        }
    }
    Ok(None)
}
