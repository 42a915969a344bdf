use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    derived::Tally,
    end,
    family::{self, MOST_GENERATIONS},
    layout::{
        ACKNOWLEDGED, INDEXES, MOST_BYTES, SCENES, SNAPSHOTS, STATE, TURNS, block_path,
        first_of_file,
    },
    meta::{Parent, SessionMeta},
    opening,
    options::{Durability, SessionOptions},
    sealed,
    shelf::Shelf,
};
use crate::{
    Data, Error, ErrorKind, Millis, PushReport, Result, SnapshotReason, Timeline, TimelineConfig,
    TurnRecord,
    log::{
        DirLock, Files, HighWater, Holder, LineWriter, LogMark, OpenFile, create_dirs, line,
        pack_file, read_file, within, write_atomic,
    },
    slot::{Line, Slot},
    snapshot::iso8601,
    timeline::{PreparedTurn, check_id},
};

/// A timeline in a directory.
///
/// One writer at a time holds the directory's lock. Reading needs none.
#[derive(Debug)]
pub struct SessionDir {
    pub(super) files: Arc<dyn Files>,
    pub(super) directory: PathBuf,
    pub(super) lock: Option<DirLock>,
    pub(super) meta: SessionMeta,
    pub(super) timeline: Timeline,
    pub(super) shelf: Arc<Shelf>,
    /// The file that is appended to; none until the first turn of its fifty.
    pub(super) writer: Option<LineWriter>,
    /// How far the turns were acknowledged; none for reading.
    pub(super) mark: Option<Arc<HighWater>>,
    pub(super) durability: Durability,
    pub(super) durable: u64,
    pub(super) tally: Option<Tally>,
    pub(super) notes: Vec<String>,
    /// The first turn of the directory itself; a branch's comes after those that it shares.
    pub(super) first: u64,
    /// How many sessions it shares its past with, one out of the other.
    pub(super) generations: usize,
}

/// What is to be synced.
pub(super) struct Pending {
    pub(super) file: Arc<dyn OpenFile>,
    /// The mark to raise then.
    pub(super) mark: Option<Arc<HighWater>>,
    /// The last turn in the file.
    pub(super) last: LogMark,
}

impl SessionDir {
    /// Creates a session: its directory, and the snapshot of the state that it begins with. O(size
    /// of the state), and a fixed number of syncs.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where a session is there, [`ErrorKind::Locked`] where somebody else
    /// creates one, those of [`TimelineBuilder::build`](crate::TimelineBuilder::build), and
    /// [`ErrorKind::Io`]. A directory without `session.meta.json` is no session, whatever else is in
    /// it.
    #[allow(clippy::needless_pass_by_value, reason = "options are made for one call")]
    pub fn create(
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        options: SessionOptions,
        state: Data,
    ) -> Result<Self> {
        let directory = directory.as_ref();
        let session_id = options.session_id.clone().unwrap_or_default();
        let config = options.config.clone().unwrap_or_default();
        let targets = options.targets.clone().unwrap_or_default();
        let timeline = Timeline::builder(session_id.as_str(), state)
            .config(TimelineConfig { lenient: config.lenient || options.lenient, ..config.clone() })
            .targets(targets.clone())
            .mappers(options.mappers.clone())
            .at(options.now)
            .build()?;
        let meta = SessionMeta {
            session_id,
            created_at: iso8601(options.now),
            config,
            targets,
            parent: None,
            extra: crate::json::Object::new(),
            config_extra: crate::json::Object::new(),
        };
        Self::found(files, directory, &options, meta, timeline, None)
    }

    /// Creates the session `session_id` in the folder of `root` that its name encodes to. Costs what
    /// [`SessionDir::create`] does.
    ///
    /// # Errors
    /// Those of [`SessionDir::create`].
    pub fn create_in(
        files: Arc<dyn Files>,
        root: impl AsRef<Path>,
        options: SessionOptions,
        state: Data,
    ) -> Result<Self> {
        let name = crate::log::file_name(options.session_id.as_deref().unwrap_or_default())?;
        Self::create(files, root.as_ref().join(name), options, state)
    }

    /// Makes the directory of a timeline that has no turns of its own yet.
    pub(super) fn found(
        files: Arc<dyn Files>,
        directory: &Path,
        options: &SessionOptions,
        meta: SessionMeta,
        timeline: Timeline,
        parent: Option<(Arc<Shelf>, u64)>,
    ) -> Result<Self> {
        let files = within(files, directory);
        create_dirs(&*files, directory)?;
        let lock = acquire(&*files, directory, options)?;
        if sealed::read_if_there(&*files, &directory.join(super::layout::META))?.is_some() {
            return Err(
                Error::new(ErrorKind::Conflict, "a session is there already").in_file(directory)
            );
        }
        if !super::blocks::blocks(&*files, directory)?.is_empty() {
            let message =
                "turns are there already, without a session.meta.json; `repair` makes it anew";
            return Err(Error::new(ErrorKind::Conflict, message).in_file(directory));
        }
        let remembered = HighWater::read(&*files, directory.join(ACKNOWLEDGED))?;
        if let Some(last) = remembered.map(|found| found.mark.last).filter(|last| *last > 0) {
            let message = format!(
                "{last} turns were acknowledged here, and are missing; `repair` accepts that they are lost"
            );
            return Err(Error::new(ErrorKind::Conflict, message).in_file(directory));
        }
        for folder in [TURNS, SNAPSHOTS, INDEXES, STATE, SCENES] {
            create_dirs(&*files, directory.join(folder))?;
        }
        let last = timeline.last_turn();
        let durability = options.durability_by(timeline.config());
        let shelf =
            Arc::new(Shelf::new(Arc::clone(&files), directory, (last + 1, Vec::new()), parent)?);
        if last == 0 {
            shelf.write(&*timeline.nearest_snapshot(0)?)?;
        }
        let mark = HighWater::create(&*files, directory.join(ACKNOWLEDGED), end::mark(last, None))?;
        // What makes it a session comes last.
        sealed::write(&*files, &directory.join(super::layout::META), &meta.to_json()?)?;
        let mut session = Self {
            files,
            directory: directory.to_owned(),
            lock: Some(lock),
            meta,
            timeline,
            shelf,
            writer: None,
            mark: Some(Arc::new(mark)),
            durability,
            durable: last,
            tally: None,
            notes: Vec::new(),
            first: last + 1,
            generations: 0,
        };
        session.write_derived();
        Ok(session)
    }

    /// Opens a session for reading and writing. A torn tail is cut, with a copy kept; what else a
    /// crash left is put in order, and [notes](SessionDir::notes) say what that was.
    ///
    /// Reads and checks every line; snapshots and states are read when they are asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] where another writer has the directory, [`ErrorKind::Damaged`], with
    /// file and line, where a line is not what was written and others follow it,
    /// [`ErrorKind::Version`], [`ErrorKind::UnknownFormat`] where no session is there,
    /// [`ErrorKind::Conflict`] where it is another than was asked for, [`ErrorKind::Io`].
    pub fn open(
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        options: SessionOptions,
    ) -> Result<Self> {
        let directory = directory.as_ref();
        // Whoever waits for the lock of something that is no session waits for nothing.
        let meta = opening::meta(&*files, directory, &options)?;
        let lock = acquire(&*files, directory, &options)?;
        opening::open(files, directory, options, meta, Some(lock))
    }

    /// Opens a session for reading alone. Changes nothing, and needs no lock: a torn tail is passed
    /// over. Costs what [`SessionDir::open`] does.
    ///
    /// # Errors
    /// Those of [`SessionDir::open`], but for the lock.
    pub fn open_read(
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        options: SessionOptions,
    ) -> Result<Self> {
        let directory = directory.as_ref();
        let meta = opening::meta(&*files, directory, &options)?;
        opening::open(files, directory, options, meta, None)
    }

    /// The timeline: states, turns, who changed what.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What the directory says of itself.
    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was odd so far, and is in order now or does no harm.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The last turn that a crash does not take.
    pub fn durable_turn(&self) -> u64 {
        self.durable
    }

    /// Adds a turn, as [`Timeline::push`]. It is durable as [`Durability`] says; a snapshot that is
    /// due is written after the turn is durable. Costs [`Timeline::push`], one write, and two syncs
    /// where turns become durable; a snapshot that is due writes the whole state, and each fiftieth
    /// turn packs its file.
    ///
    /// # Errors
    /// Those of [`Timeline::push`]; [`ErrorKind::Io`] where it cannot be written: the turn is then
    /// not there, and the next one can be added when there is room again. After a sync that failed
    /// everything is [`ErrorKind::Poisoned`] until the session is opened anew. That a snapshot or an
    /// index could not be written is a note and no error.
    pub fn push(&mut self, turn: TurnRecord) -> Result<PushReport> {
        let prepared = self.timeline.prepare(turn)?;
        let pushed = self.append(prepared)?;
        let is_due = match self.durability {
            Durability::EachTurn => true,
            Durability::Batch(turns) => self.timeline.last_turn() - self.durable >= turns,
            Durability::Deferred => false,
        };
        if is_due {
            self.sync()?;
        }
        self.after(&pushed)?;
        Ok(pushed)
    }

    /// Writes a turn that was prepared, and takes it over.
    fn append(&mut self, prepared: PreparedTurn) -> Result<PushReport> {
        let turn_id = prepared.record.turn_id;
        let text = prepared.record.to_json().to_string();
        let mut sealed = line::seal(&text)?;
        let crc = sealed.get(sealed.len() - 10..sealed.len() - 2).unwrap_or_default().to_owned();
        sealed.push('\n');
        let writer = self.writer()?;
        writer.append(&sealed)?;
        let file: Arc<Path> = writer.path().into();
        self.shelf.appended(crc);
        if let Some(tally) = &mut self.tally {
            tally.add(&prepared.record);
        }
        let number = turn_id - first_of_file(turn_id).max(self.first) + 1;
        let slot = Slot::Line(Arc::new(Line { text, file, number }));
        self.timeline.commit(prepared, slot)
    }

    /// What is to be done after a turn: the snapshot, and the end of a file.
    fn after(&mut self, pushed: &PushReport) -> Result<()> {
        let turn_id = pushed.record.turn_id;
        let is_full = turn_id.is_multiple_of(super::layout::TURNS_PER_FILE);
        if is_full || pushed.snapshot.is_some() {
            self.sync()?;
        }
        if is_full {
            self.close_file();
        }
        if pushed.snapshot.is_some() {
            self.keep_snapshot();
        }
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut LineWriter> {
        self.writer_lock()?;
        let turn = self.timeline.last_turn() + 1;
        let writer = if let Some(writer) = self.writer.take() {
            writer
        } else {
            let path = block_path(&self.directory, first_of_file(turn).max(self.first));
            LineWriter::create(Arc::clone(&self.files), path)?
        };
        Ok(self.writer.insert(writer))
    }

    /// Makes every turn durable. Costs two syncs, where one is not durable yet.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] and [`ErrorKind::Poisoned`]: see [`SessionDir::push`].
    pub fn sync(&mut self) -> Result<()> {
        if self.durable < self.timeline.last_turn()
            && let Some(writer) = &mut self.writer
        {
            writer.sync()?;
            let last = self.timeline.last_turn();
            self.remember(last)?;
            self.durable = last;
        }
        Ok(())
    }

    /// What is to be synced, to be done by somebody else.
    pub(super) fn pending(&self) -> Option<Pending> {
        let last = self.timeline.last_turn();
        let last = end::mark(last, self.shelf.crc(last).as_deref());
        let file = self.writer.as_ref()?.file();
        Some(Pending { file, mark: self.mark.clone(), last })
    }

    /// Somebody else synced the file, up to a turn.
    pub(super) fn synced(&mut self, turn: u64, outcome: std::io::Result<()>) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.synced(outcome)?,
            // The file was closed meanwhile, and synced before.
            None => return Ok(()),
        }
        self.remember(turn)?;
        self.durable = self.durable.max(turn);
        Ok(())
    }

    /// Packs a file that has its fifty turns.
    fn close_file(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        if let Err(error) = pack_block(&*self.files, writer.path()) {
            self.note(format!("{} stays as it is: {error}", writer.path().display()));
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Makes a snapshot of the state as it is, and writes it. Writes the whole state: O(its size),
    /// and a few syncs.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn snapshot(&mut self, reason: SnapshotReason, now: Millis) -> Result<()> {
        self.writer_lock()?;
        self.sync()?;
        let snapshot = self.timeline.snapshot(reason, now);
        self.shelf.write(&snapshot)?;
        self.apply_retention();
        Ok(())
    }

    pub(super) fn writer_lock(&self) -> Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Locked, "the session was opened for reading")
            .in_file(&self.directory))
    }

    /// Takes turns back, as [`Timeline::undo`]. Costs what that does, and [`SessionDir::push`].
    ///
    /// # Errors
    /// Those of [`SessionDir::push`].
    pub fn undo(&mut self, to: u64, now: Millis) -> Result<PushReport> {
        let turn = self.timeline.undo_turn(to, now)?;
        self.push(turn)
    }

    /// Takes an undo back, as [`Timeline::redo`]. Costs what that does, and [`SessionDir::push`].
    ///
    /// # Errors
    /// Those of [`SessionDir::push`].
    pub fn redo(&mut self, now: Millis) -> Result<PushReport> {
        let turn = self.timeline.redo_turn(now)?;
        self.push(turn)
    }

    /// Makes a session in another directory that shares this one's past up to a turn, and copies
    /// nothing of it: it reads this directory. It names this one as seen from there, so that both
    /// can move together. Costs [`Timeline::branch`] and [`SessionDir::create`].
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for a branch of the 65th generation; those of [`Timeline::branch`] and
    /// [`SessionDir::create`].
    pub fn branch(
        &self,
        at: u64,
        directory: impl AsRef<Path>,
        options: &SessionOptions,
    ) -> Result<Self> {
        let session_id = options.session_id.clone().unwrap_or_default();
        check_id(&session_id)?;
        if self.generations >= MOST_GENERATIONS {
            let message = format!(
                "the session is a branch of the {MOST_GENERATIONS}th generation, and the last: create a session with the state of the turn instead"
            );
            return Err(Error::new(ErrorKind::Limit, message).in_file(&self.directory));
        }
        let timeline = self.timeline.branch(at, session_id.as_str())?;
        let (files, directory) = (Arc::clone(&self.files), directory.as_ref());
        create_dirs(&*files, directory)?;
        let parent = Parent {
            directory: self.directory.clone(),
            session_id: self.meta.session_id.clone(),
            turn: at,
        };
        let meta = SessionMeta {
            session_id,
            created_at: iso8601(options.now),
            parent: Some(family::seen_from(&*files, directory, parent)?),
            ..self.meta.clone()
        };
        let parent = Some((Arc::clone(&self.shelf), at));
        let mut branch = Self::found(files, directory, options, meta, timeline, parent)?;
        branch.timeline.source = Some(Arc::clone(&branch.shelf) as _);
        branch.generations = self.generations + 1;
        Ok(branch)
    }

    /// Syncs, writes what is derived, and lets the directory go. Writes the indexes, two states,
    /// and each scene that was not written since the session was opened: a file with two syncs for
    /// each of them.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where turns could not be synced.
    pub fn close(mut self) -> Result<Vec<String>> {
        self.sync()?;
        if self.lock.is_some() {
            self.write_derived();
        }
        Ok(self.notes)
    }
}

fn acquire(files: &dyn Files, directory: &Path, options: &SessionOptions) -> Result<DirLock> {
    let holder = options.holder.clone().unwrap_or_else(|| Holder::new("afterimage"));
    Ok(DirLock::acquire(files, directory, &holder)?)
}

/// Puts the packed form of a file beside it, then takes the file away.
pub(super) fn pack_block(files: &dyn Files, path: &Path) -> Result<()> {
    let bytes = read_file(files, path, MOST_BYTES)?;
    let mut packed = path.as_os_str().to_owned();
    packed.push(".zst");
    write_atomic(files, PathBuf::from(packed), &pack_file(&bytes)?)?;
    sealed::remove(files, path)
}
