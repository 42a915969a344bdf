//! A journal in a directory; `docs/FORMAT.md` describes its files.
//!
//! Whoever has the lock knows what is there. A reader looks at the head of a session what is there
//! now, and answers all else from the log that it opened then: it stays the same file, whatever
//! becomes of its name.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    SessionName,
    id_parts::Part,
    name::from_token,
    request::{Append, Failure, Head, Page, Position, Request, Response, StoredSnapshot},
    session_log::{ACKNOWLEDGED, LogOwner, SessionLog, end_path, unrepaired},
    snapshot,
    store::Store,
};
use crate::{
    Error, ErrorKind, Result,
    log::{
        CutTail, DirLock, Files, HighWater, Holder, LogMark, LostEnd, OpenMode, TornEnd, TornFile,
        create_dirs, read_file, write_atomic,
    },
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
    /// What was passed over, of each log as it was last looked at.
    torn: Vec<TornFile>,
    lost: Vec<LostEnd>,
    cut: Vec<CutTail>,
}

impl Directory {
    /// Opens a directory for writing, and creates it where it is not there.
    pub(super) fn open(files: Arc<dyn Files>, root: &Path, holder: &Holder) -> Result<Self> {
        create_dirs(&*files, root)?;
        let lock = DirLock::acquire(&*files, root, holder)?;
        // Who had the lock before may have been killed between a file and its name.
        let synced = files.sync_dir(root);
        synced.map_err(|error| Error::io(error, "cannot sync").in_file(root))?;
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
            torn: Vec::new(),
            lost: Vec::new(),
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
            // Of a log that is missing the mark tells.
            if rest == "events.rec" || rest == ACKNOWLEDGED {
                self.tokens.insert(token.to_owned());
            } else if let Some(number) = rest.strip_suffix(".snapshot")
                && let Ok(number) = number.parse()
            {
                self.snapshots.entry(token.to_owned()).or_default().insert(number);
            }
        }
        Ok(())
    }

    fn has(&self, path: &Path) -> Result<bool> {
        match self.files.open(path, OpenMode::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(error, "cannot open").in_file(path)),
        }
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
        if !self.logs.contains_key(session) {
            if !self.tokens.contains(token) {
                return Ok(None);
            }
            let path = self.events_path(token);
            if !self.has(&path)? {
                return self.remembered(&path)?.map_or(Ok(None), |lost| Err(unrepaired(&lost)));
            }
            if self.lock.is_some() {
                self.open_log(session, false)?;
            } else {
                let Some(log) = SessionLog::read(&*self.files, &path, session)? else {
                    return Ok(None);
                };
                self.saw(path, &log);
                self.keep(session, log);
            }
        }
        Ok(self.logs.get_mut(session))
    }

    /// Whether nothing was acknowledged of a log without events.
    fn is_empty(&self, path: &Path) -> bool {
        let mark = HighWater::read(&*self.files, end_path(path));
        mark.is_ok_and(|found| found.is_none_or(|found| found.mark.last == 0))
    }

    /// What was acknowledged of a log that is not there.
    fn remembered(&self, path: &Path) -> Result<Option<LostEnd>> {
        let end = end_path(path);
        let mark = HighWater::read(&*self.files, &end);
        // Whoever removes it lowers the mark first, and removes it last.
        if self.has(path)? {
            return Ok(None);
        }
        Ok(LostEnd::find((path, &end), "event", &mark, false, 0, |_| None))
    }

    /// Opens a log for writing, and creates it where it is not there.
    fn open_log(&mut self, session: &SessionName, accepts: bool) -> Result<()> {
        let token = session.token();
        let path = self.events_path(token);
        let (log, cut) = SessionLog::open(&self.files, &path, session, accepts)?;
        self.tokens.insert(token.to_owned());
        self.saw(path, &log);
        self.cut.extend(cut);
        self.keep(session, log);
        Ok(())
    }

    /// Takes note of what a log ends with.
    fn saw(&mut self, file: PathBuf, log: &SessionLog) {
        let ends = [&file, &end_path(&file)];
        self.lost.retain(|lost| !ends.contains(&&lost.file));
        self.lost.extend(log.lost().cloned());
        let torn = if self.lock.is_some() { None } else { log.torn() };
        self.saw_tail(file, torn.cloned());
    }

    fn saw_tail(&mut self, file: PathBuf, torn: Option<TornEnd>) {
        self.torn.retain(|tail| tail.file != file);
        self.torn.extend(torn.map(|torn| TornFile { file, torn }));
    }

    fn head(&mut self, session: &SessionName) -> Result<Head> {
        if self.lock.is_none() {
            // Somebody else may have written since.
            self.logs.clear();
            self.look()?;
        }
        match self.log(session).map(drop) {
            Err(error) if !self.is_gone(session, &error)? => return Err(error),
            _ => {}
        }
        self.logs.get(session).map_or_else(|| Ok(Head::empty()), SessionLog::head)
    }

    /// Whether a log could not be read since it was removed meanwhile.
    fn is_gone(&mut self, session: &SessionName, error: &Error) -> Result<bool> {
        if self.lock.is_some() || error.kind() != ErrorKind::Io {
            return Ok(false);
        }
        self.look()?;
        Ok(!self.tokens.contains(session.token()))
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
            self.open_log(session, false)?;
        }
        match self.logs.get_mut(session) {
            Some(log) => log.append(&*self.files, append, session),
            None => Ok(Response::Refused),
        }
    }

    fn page(&mut self, session: &SessionName, from: Position, most: usize) -> Result<Page> {
        match self.log(session)? {
            Some(log) => log.page(from, most),
            None => Ok(Page { events: Vec::new(), is_end: true }),
        }
    }

    fn snapshot(&mut self, session: &SessionName, age: usize) -> Result<Option<StoredSnapshot>> {
        if self.lock.is_none() && age == 0 {
            self.look()?;
        }
        let found = self.kept(session, age);
        if self.lock.is_some() || !matches!(found, Some(StoredSnapshot::Unreadable(_))) {
            return Ok(found);
        }
        // A newer one may have taken its place meanwhile.
        self.look()?;
        Ok(self.kept(session, age))
    }

    fn kept(&self, session: &SessionName, age: usize) -> Option<StoredSnapshot> {
        let token = session.token();
        let number = *self.snapshots.get(token)?.iter().rev().nth(age)?;
        let path = self.snapshot_path(token, number);
        Some(match read_file(&*self.files, &path, snapshot::MOST_BYTES) {
            Ok(bytes) => StoredSnapshot::Bytes(bytes),
            Err(error) => StoredSnapshot::Unreadable(error.into()),
        })
    }

    /// The event up to which the newest sound snapshot has the state of what is missing; 0 for none.
    fn covered(&self, session: &SessionName) -> u64 {
        let Some(log) = self.logs.get(session) else { return 0 };
        let covered = |age| match self.kept(session, age)? {
            StoredSnapshot::Bytes(bytes) => match snapshot::look(&bytes) {
                Ok((header, _, Ok(()))) if *header.session == *session.as_str() => {
                    Some(log.covered_by(&header).unwrap_or_default())
                }
                _ => Some(0),
            },
            StoredSnapshot::Unreadable(_) => Some(0),
        };
        (0..).map_while(covered).max().unwrap_or_default()
    }

    fn put_snapshot(
        &mut self,
        session: &SessionName,
        bytes: &[u8],
        keep: usize,
    ) -> Result<Response> {
        self.writable()?;
        let last = match self.log(session)? {
            // A snapshot of what is missing may be all that is left of it.
            Some(log) => log.lost().map_or(Ok(log.last()), |lost| Err(unrepaired(lost)))?,
            None => 0,
        };
        if let Some(StoredSnapshot::Bytes(newest)) = self.kept(session, 0)
            && let Some(newer) = snapshot::standing(&newest, bytes, last)
        {
            return Ok(Response::Stands(newer));
        }
        let token = session.token();
        let numbers = self.snapshots.entry(token.to_owned()).or_default();
        let number = numbers.last().copied().unwrap_or(0).saturating_add(1);
        let path = self.root.join(format!("s-{token}.{number:08}.snapshot"));
        write_atomic(&*self.files, &path, bytes)?;
        numbers.insert(number);
        let old: Vec<u64> = numbers.iter().rev().skip(keep.max(1)).copied().collect();
        for number in old {
            // The snapshot is written. What stays is in nobody's way, and is tried again with the
            // next one.
            if self.remove(&self.snapshot_path(token, number)).is_ok()
                && let Some(numbers) = self.snapshots.get_mut(token)
            {
                numbers.remove(&number);
            }
        }
        Ok(Response::Done)
    }

    fn ids_path(&self, session: &SessionName, part: u64) -> PathBuf {
        self.root.join(format!("s-{}.{part:08}.ids", session.token()))
    }

    fn put_ids(&self, session: &SessionName, part: &Part) -> Response {
        if self.writable().is_ok() {
            // Whoever opens the session next tries again.
            let _ = write_atomic(&*self.files, self.ids_path(session, part.number), &part.bytes);
        }
        Response::Done
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(error, "cannot remove").in_file(path))
            }
            _ => Ok(()),
        }
    }

    /// Removes a session: its events last, so that nothing is ever left beside another log.
    fn delete(&mut self, session: &SessionName) -> Result<()> {
        self.writable()?;
        self.logs.remove(session);
        let token = session.token();
        let failed = |error| Error::io(error, "cannot remove in").in_file(self.root.as_path());
        let end = end_path(&self.events_path(token));
        if self.has(&end)? {
            // Else what is left when this is broken off would look like a log that lost its events.
            HighWater::create(&*self.files, &end, LogMark::default())?;
        }
        let names = self.files.list(&self.root).map_err(failed)?;
        let prefix = format!("s-{token}.");
        let of_session = names.iter().filter_map(|name| name.to_str());
        let mut of_session: Vec<&str> =
            of_session.filter(|name| name.starts_with(&prefix)).collect();
        // Snapshots and ids first, then the events, and then what is remembered of them.
        of_session.sort_by_key(|name| {
            let is_mark = name.ends_with(&format!(".{ACKNOWLEDGED}"));
            (is_mark, name.ends_with(".events.rec"))
        });
        for name in of_session {
            if name.ends_with(".events.rec") {
                self.files.sync_dir(&self.root).map_err(failed)?;
            }
            self.remove(&self.root.join(name))?;
        }
        self.files.sync_dir(&self.root).map_err(failed)?;
        self.snapshots.remove(token);
        self.tokens.remove(token);
        // The copies are gone too.
        let is_of_session = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&prefix))
        };
        self.torn.retain(|tail| !is_of_session(&tail.file));
        self.lost.retain(|lost| !is_of_session(&lost.file));
        self.cut.retain(|tail| !is_of_session(&tail.copy));
        Ok(())
    }

    fn perform(&mut self, session: &SessionName, request: Request) -> Result<Response> {
        Ok(match request {
            Request::Head => Response::Head(self.head(session)?),
            Request::Events { from, most, .. } => Response::Events(self.page(session, from, most)?),
            Request::Append(append) => self.append(session, &append)?,
            Request::Snapshot { age } => Response::Snapshot(self.snapshot(session, age)?),
            Request::PutSnapshot { bytes, keep } => self.put_snapshot(session, &bytes, keep)?,
            Request::Ids { part } => {
                let path = self.ids_path(session, part);
                Response::Ids(read_file(&*self.files, path, snapshot::MOST_BYTES).ok())
            }
            Request::PutIds(part) => self.put_ids(session, &part),
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

    fn reopen(&mut self, session: &SessionName) {
        if self.logs.get(session).is_some_and(SessionLog::is_sure) {
            self.logs.remove(session);
        }
    }

    fn sessions(&mut self) -> Result<Vec<SessionName>> {
        if self.lock.is_none() {
            self.look()?;
        }
        let mut sessions = Vec::new();
        for token in self.tokens.clone() {
            let path = self.events_path(&token);
            match SessionLog::name_of(&*self.files, &path) {
                Ok(LogOwner::Session(name)) if name.token() == token => sessions.push(name),
                Ok(LogOwner::Nobody(torn)) if self.is_empty(&path) => self.saw_tail(path, torn),
                // Removed meanwhile.
                Err(error)
                    if error.kind() == ErrorKind::Io
                        && !self.has(&path)?
                        && self.remembered(&path)?.is_none() => {}
                // To use it says what is wrong with it; the others are sound.
                Ok(_) | Err(_) => {
                    let name = from_token(&token).and_then(|name| SessionName::new(name).ok());
                    sessions.push(name.unwrap_or_else(|| SessionName::of_token(&token)));
                }
            }
        }
        sessions.sort();
        Ok(sessions)
    }

    fn repair(&mut self, session: &SessionName) -> Result<Option<LostEnd>> {
        self.writable()?;
        self.logs.remove(session);
        let path = self.events_path(session.token());
        let accepted = if self.has(&path)? {
            self.open_log(session, true)?;
            let covered = self.covered(session);
            let log = self.logs.get_mut(session);
            log.map_or(Ok(None), |log| log.accept(&*self.files, covered))?
        } else {
            let lost = self.remembered(&path)?;
            if lost.is_some() {
                HighWater::create(&*self.files, end_path(&path), LogMark::default())?;
            }
            lost
        };
        if let Some(accepted) = &accepted {
            self.lost.retain(|lost| lost != accepted);
        }
        Ok(accepted)
    }

    fn lost_ends(&self) -> &[LostEnd] {
        &self.lost
    }

    fn lost_end(&self, session: &SessionName) -> Option<&LostEnd> {
        let path = self.events_path(session.token());
        let end = end_path(&path);
        self.lost.iter().find(|lost| lost.file == path || lost.file == end)
    }

    fn torn_tails(&self) -> &[TornFile] {
        &self.torn
    }

    fn cut_tails(&self) -> &[CutTail] {
        &self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventId, Millis, NewEvent, log::testing::MemoryFiles, request::Writing};

    const ROOT: &str = "journal";

    fn writer(files: &MemoryFiles) -> Directory {
        let holder = Holder::new("test");
        Directory::open(Arc::new(files.clone()), Path::new(ROOT), &holder).unwrap()
    }

    fn reader(files: &MemoryFiles) -> Directory {
        Directory::open_read_only(Arc::new(files.clone()), Path::new(ROOT)).unwrap()
    }

    fn session() -> SessionName {
        SessionName::new("a").unwrap()
    }

    /// Appends events that name the log.
    fn fill(writer: &mut Directory, log: i64, count: u64) {
        for after in 0..count {
            let id = EventId::new(format!("{log}.{after}")).unwrap();
            let event = NewEvent::new(id, "kind", *b"{}").unwrap();
            let writing = Writing { event, recorded_at: Millis::new(log) };
            let append = Append { sequence: after + 1, after, events: vec![writing] };
            let appended = writer.append(&session(), &append).unwrap();
            assert!(matches!(appended, Response::AppendReceipt { .. }));
        }
    }

    fn ids(directory: &mut Directory) -> Vec<String> {
        let page = directory.page(&session(), 0, 9).unwrap();
        page.events.iter().map(|placed| placed.event.id.to_string()).collect()
    }

    /// The moment in the life of a log.
    fn begun(head: &Head) -> &str {
        head.life.split_once('-').unwrap().0
    }

    #[test]
    fn logs_that_begin_in_the_same_millisecond_with_other_events_have_other_lives() {
        let lives = ["x", "y", "x"].map(|id| {
            let files = MemoryFiles::new();
            let mut writer = writer(&files);
            let event = NewEvent::new(EventId::new(id).unwrap(), "kind", *b"{}").unwrap();
            let writing = Writing { event, recorded_at: Millis::new(1) };
            let append = Append { sequence: 1, after: 0, events: vec![writing] };
            writer.append(&session(), &append).unwrap();
            writer.head(&session()).unwrap().life
        });
        assert_ne!(lives[0], lives[1]);
        assert_eq!(lives[0], lives[2]);
    }

    fn kept(directory: &mut Directory, age: usize) -> Option<Vec<u8>> {
        match directory.snapshot(&session(), age).unwrap()? {
            StoredSnapshot::Bytes(bytes) => Some(bytes),
            StoredSnapshot::Unreadable(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn a_reader_stays_with_the_log_whose_head_it_saw() {
        let files = MemoryFiles::new();
        let (mut writer, mut reader) = (writer(&files), reader(&files));
        assert_eq!(reader.head(&session()).unwrap(), Head::empty());
        fill(&mut writer, 1, 3);
        let head = reader.head(&session()).unwrap();
        assert_eq!((begun(&head), head.ceiling), ("1", 3));
        // The writer begins the session anew, and the reader has not read it yet.
        writer.delete(&session()).unwrap();
        fill(&mut writer, 2, 5);
        assert_eq!(ids(&mut reader), ["1.0", "1.1", "1.2"]);
        let head = reader.head(&session()).unwrap();
        assert_eq!((begun(&head), head.ceiling), ("2", 5));
        assert_eq!(ids(&mut reader).len(), 5);
        writer.delete(&session()).unwrap();
        assert_eq!(reader.head(&session()).unwrap(), Head::empty());
    }

    #[test]
    fn a_reader_finds_the_snapshots_that_took_the_place_of_those_it_knew() {
        let files = MemoryFiles::new();
        let (mut writer, mut reader) = (writer(&files), reader(&files));
        fill(&mut writer, 1, 3);
        assert_eq!(kept(&mut reader, 0), None);
        writer.put_snapshot(&session(), b"first", 1).unwrap();
        assert_eq!(kept(&mut reader, 0).unwrap(), b"first");
        writer.put_snapshot(&session(), b"second", 2).unwrap();
        assert_eq!(kept(&mut reader, 0).unwrap(), b"second");
        // The one that is asked for next is gone when it is read.
        writer.put_snapshot(&session(), b"third", 2).unwrap();
        assert_eq!(kept(&mut reader, 1).unwrap(), b"second");
    }
}
