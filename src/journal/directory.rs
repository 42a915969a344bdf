//! A journal in a directory; `docs/FORMAT.md` describes its files.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    SessionName,
    request::{Append, Failure, Kept, Page, Position, Request, Response},
    session_log::SessionLog,
    store::Store,
};
use crate::{
    Error, ErrorKind, Result,
    log::{CutTail, DirLock, Files, Holder, OpenMode, create_dirs, write_atomic},
};

/// How many logs are kept open.
const MOST_OPEN: usize = 64;

/// Sessions in a directory.
#[derive(Debug)]
pub(super) struct Directory {
    files: Arc<dyn Files>,
    root: PathBuf,
    /// The right to write; without it nothing is changed.
    lock: Option<DirLock>,
    logs: HashMap<SessionName, SessionLog>,
    /// The numbers of the snapshots of each session, by its token.
    snapshots: BTreeMap<String, BTreeSet<u64>>,
    tokens: BTreeSet<String>,
    cut: Vec<CutTail>,
}

impl Directory {
    /// Opens a directory for writing, and creates it where it is not there.
    pub(super) fn open(files: Arc<dyn Files>, root: &Path, holder: &Holder) -> Result<Self> {
        create_dirs(&*files, root)?;
        let lock = DirLock::acquire(&*files, root, holder)?;
        let mut directory = Self::of(files, root, Some(lock));
        directory.look()?;
        Ok(directory)
    }

    /// Opens a directory that is there, for reading beside whoever writes.
    pub(super) fn open_read_only(files: Arc<dyn Files>, root: &Path) -> Result<Self> {
        let mut directory = Self::of(files, root, None);
        directory.look()?;
        Ok(directory)
    }

    fn of(files: Arc<dyn Files>, root: &Path, lock: Option<DirLock>) -> Self {
        Self {
            files,
            root: root.to_owned(),
            lock,
            logs: HashMap::new(),
            snapshots: BTreeMap::new(),
            tokens: BTreeSet::new(),
            cut: Vec::new(),
        }
    }

    /// Looks which files are there.
    fn look(&mut self) -> Result<()> {
        let names = self.files.list(&self.root);
        let names =
            names.map_err(|error| Error::io(error, "cannot list").in_file(self.root.as_path()))?;
        self.snapshots.clear();
        self.tokens.clear();
        for name in names.iter().filter_map(|name| name.to_str()) {
            let Some((token, rest)) = name.strip_prefix("s-").and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            if rest == "events.rec" {
                self.tokens.insert(token.to_owned());
            } else if let Some(number) = rest.strip_suffix(".snapshot")
                && let Ok(number) = number.parse()
            {
                self.snapshots.entry(token.to_owned()).or_default().insert(number);
            }
        }
        Ok(())
    }

    fn events_path(&self, token: &str) -> PathBuf {
        self.root.join(format!("s-{token}.events.rec"))
    }

    fn snapshot_path(&self, token: &str, number: u64) -> PathBuf {
        self.root.join(format!("s-{token}.{number:08}.snapshot"))
    }

    /// The log of a session, if it has one.
    fn log(&mut self, session: &SessionName) -> Result<Option<&mut SessionLog>> {
        let token = session.token();
        if self.lock.is_none() {
            // Somebody else may have written since.
            self.look()?;
            self.logs.clear();
        }
        if !self.logs.contains_key(session) {
            if !self.tokens.contains(token) {
                return Ok(None);
            }
            let path = self.events_path(token);
            let opened = match self.lock {
                Some(_) => {
                    let (log, cut) = SessionLog::open(&self.files, &path, session)?;
                    self.cut.extend(cut);
                    log
                }
                None => SessionLog::read(&*self.files, &path, session)?,
            };
            self.keep(session, opened);
        }
        Ok(self.logs.get_mut(session))
    }

    fn keep(&mut self, session: &SessionName, log: SessionLog) {
        if self.logs.len() >= MOST_OPEN {
            // One that failed is kept: opened anew it would look sound.
            self.logs.retain(|_, log| log.has_failed());
        }
        self.logs.insert(session.clone(), log);
    }

    fn writable(&self) -> Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        let message = "the journal was opened for reading only";
        Err(Error::new(ErrorKind::Locked, message).in_file(self.root.as_path()))
    }

    fn append(&mut self, session: &SessionName, append: &Append) -> Result<Response> {
        self.writable()?;
        if self.log(session)?.is_none() {
            if append.after != 0 {
                return Ok(Response::Refused);
            }
            let token = session.token();
            let path = self.events_path(token);
            self.tokens.insert(token.to_owned());
            let (log, cut) = SessionLog::open(&self.files, &path, session)?;
            self.cut.extend(cut);
            self.keep(session, log);
        }
        match self.logs.get_mut(session) {
            Some(log) => log.append(append, session),
            None => Ok(Response::Refused),
        }
    }

    fn page(&mut self, session: &SessionName, from: Position, most: usize) -> Result<Page> {
        match self.log(session)? {
            Some(log) => log.page(from, most),
            None => Ok(Page { events: Vec::new(), is_end: true }),
        }
    }

    fn snapshot(&mut self, session: &SessionName, age: usize) -> Option<Kept> {
        let token = session.token();
        let number = *self.snapshots.get(token)?.iter().rev().nth(age)?;
        let path = self.snapshot_path(token, number);
        Some(match read_whole(&*self.files, &path) {
            Ok(bytes) => Kept::Bytes(bytes),
            Err(error) => Kept::Unreadable(format!("{}: {error}", path.display())),
        })
    }

    fn put_snapshot(&mut self, session: &SessionName, bytes: &[u8], keep: usize) -> Result<()> {
        self.writable()?;
        let token = session.token();
        let numbers = self.snapshots.entry(token.to_owned()).or_default();
        let number = numbers.last().copied().unwrap_or(0).saturating_add(1);
        let path = self.root.join(format!("s-{token}.{number:08}.snapshot"));
        write_atomic(&*self.files, &path, bytes)?;
        numbers.insert(number);
        let old: Vec<u64> = numbers.iter().rev().skip(keep.max(1)).copied().collect();
        for number in old {
            self.remove(&self.snapshot_path(token, number))?;
            if let Some(numbers) = self.snapshots.get_mut(token) {
                numbers.remove(&number);
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(error, "cannot remove").in_file(path))
            }
            _ => Ok(()),
        }
    }

    /// Removes a session: its snapshots first, so that none is ever left beside another log.
    fn delete(&mut self, session: &SessionName) -> Result<()> {
        self.writable()?;
        self.logs.remove(session);
        let token = session.token();
        let failed = |error| Error::io(error, "cannot remove in").in_file(self.root.as_path());
        let names = self.files.list(&self.root).map_err(failed)?;
        let prefix = format!("s-{token}.");
        let of_session = names.iter().filter_map(|name| name.to_str());
        let mut of_session: Vec<&str> =
            of_session.filter(|name| name.starts_with(&prefix)).collect();
        of_session.sort_by_key(|name| !name.contains(".snapshot"));
        for name in of_session {
            if name.ends_with(".events.rec") {
                self.files.sync_dir(&self.root).map_err(failed)?;
            }
            self.remove(&self.root.join(name))?;
        }
        self.files.sync_dir(&self.root).map_err(failed)?;
        self.snapshots.remove(token);
        self.tokens.remove(token);
        Ok(())
    }

    fn perform(&mut self, session: &SessionName, request: Request) -> Result<Response> {
        Ok(match request {
            Request::Head => Response::Head(match self.log(session)? {
                Some(log) => log.head()?,
                None => super::request::Head::empty(),
            }),
            Request::Events { from, most, .. } => Response::Events(self.page(session, from, most)?),
            Request::Append(append) => self.append(session, &append)?,
            Request::Snapshot { age } => Response::Snapshot(self.snapshot(session, age)),
            Request::PutSnapshot { bytes, keep } => {
                self.put_snapshot(session, &bytes, keep)?;
                Response::Done
            }
            Request::Delete => {
                self.delete(session)?;
                Response::Done
            }
            Request::Wait(_) => Response::Done,
        })
    }
}

impl Store for Directory {
    fn perform(&mut self, session: &SessionName, request: Request) -> Response {
        Directory::perform(self, session, request)
            .unwrap_or_else(|error| Response::Failed(Failure::Final(error)))
    }

    fn sessions(&mut self) -> Result<Vec<SessionName>> {
        if self.lock.is_none() {
            self.look()?;
        }
        let mut sessions = Vec::new();
        for token in &self.tokens {
            let path = self.events_path(token);
            sessions.extend(SessionLog::name_of(&*self.files, &path)?);
        }
        sessions.sort();
        Ok(sessions)
    }

    fn cut_tails(&self) -> &[CutTail] {
        &self.cut
    }
}

/// All bytes of a file.
fn read_whole(files: &dyn Files, path: &Path) -> io::Result<Vec<u8>> {
    let file = files.open(path, OpenMode::Read)?;
    let length = usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.resize(length, 0);
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, read as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
