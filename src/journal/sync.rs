use std::{collections::HashMap, path::Path, sync::Arc};

use super::{
    Appended, Event, EventId, Expected, JournalOptions, Live, LoadReport, Loaded, Memory, NewEvent,
    Recorded, Replay, SessionName, SessionStatus, Snapshot, SnapshotInfo, SnapshotPolicy,
    append::{AppendLogic, Entry, Landed},
    directory::Directory,
    fetch::{DeleteLogic, FetchLogic},
    load::LoadLogic,
    machine::{Logic, Retried},
    read::{PAGE, ReadLogic, Reading},
    request::At,
    save::{SaveLogic, Taken},
    status::StatusLogic,
    store::{Store, drive},
    tail::Tail,
};
use crate::{
    Result,
    id::Millis,
    log::{CutTail, DiskFiles, Files, Holder, TornTail},
};

/// Of how many sessions the end of the log is remembered.
const MOST_TAILS: usize = 1_024;

/// Sessions of events, each with snapshots of what they lead to, in memory or in a directory.
///
/// See the [module](super) for what it promises.
#[derive(Debug)]
pub struct Journal {
    store: Box<dyn Store>,
    options: JournalOptions,
    tails: HashMap<SessionName, Tail>,
}

impl Journal {
    /// A journal in memory. Several journals on one [`Memory`] are several writers.
    pub fn in_memory(memory: &Memory, options: JournalOptions) -> Self {
        Self::on(Box::new(memory.clone()), options)
    }

    /// A journal in a directory, which is created where it is not there. There is one writer for a
    /// directory at a time.
    ///
    /// An append is durable once it has returned. A session's log is opened at its first use:
    /// the headers of all its records are read (36 bytes of each), and a torn tail is cut and
    /// [reported](Journal::cut_tails).
    ///
    /// # Errors
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) where another writer has the directory,
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn open(
        directory: impl AsRef<Path>,
        holder: &Holder,
        options: JournalOptions,
    ) -> Result<Self> {
        Self::open_on(Arc::new(DiskFiles), directory, holder, options)
    }

    /// [`Journal::open`] on other files than the operating system's.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_on(
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        holder: &Holder,
        options: JournalOptions,
    ) -> Result<Self> {
        let directory = Directory::open(files, directory.as_ref(), holder)?;
        Ok(Self::on(Box::new(directory), options))
    }

    /// A journal in a directory that is there, for reading, beside whoever writes.
    ///
    /// What was appended before a method is called is seen by it. What would change something is
    /// refused with [`ErrorKind::Locked`](crate::ErrorKind::Locked).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), also where the directory is not there.
    pub fn open_read_only(directory: impl AsRef<Path>, options: JournalOptions) -> Result<Self> {
        let directory = Directory::open_read_only(Arc::new(DiskFiles), directory.as_ref())?;
        Ok(Self::on(Box::new(directory), options))
    }

    fn on(store: Box<dyn Store>, options: JournalOptions) -> Self {
        Self { store, options, tails: HashMap::new() }
    }

    fn run<L: Logic>(
        &mut self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
    ) -> Result<L::Output> {
        let mut machine = Retried::new(logic, session, self.options.retries, doing);
        drive(&mut *self.store, session, &mut machine)
    }

    fn remember(&mut self, session: &SessionName, tail: Option<Tail>) {
        if self.tails.len() >= MOST_TAILS {
            self.tails.clear();
        }
        if let Some(tail) = tail {
            self.tails.insert(session.clone(), tail);
        }
    }

    /// Appends an event, and answers with its sequence.
    ///
    /// An event whose id one of the session's newest events has
    /// ([`JournalOptions::known_ids`]) is not appended again, whatever is expected; the answer is
    /// then where it is. O(1), but for the first append to a session, which reads the ids of its
    /// newest events.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the newest event is not the
    /// expected one; the [place](crate::error::Place::event) tells the newest one's sequence.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the directory; after a failed write
    /// the session takes nothing more before the journal is opened anew
    /// ([`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned)).
    pub fn append(
        &mut self,
        session: &SessionName,
        expected: Expected,
        event: NewEvent,
        now: Millis,
    ) -> Result<Appended> {
        self.append_entry(session, Entry::new(event, expected, now)).map(|landed| landed.appended)
    }

    fn append_entry(&mut self, session: &SessionName, entry: Entry) -> Result<Landed> {
        let tail = self.tails.remove(session);
        let mut logic = AppendLogic::one(tail, entry, self.options.known_ids);
        let result = self.run(&mut logic, session, "append an event");
        let (outcome, tail) = logic.into_outcome(result, session);
        self.remember(session, tail);
        outcome
    }

    /// At most `most` events from the one with sequence `first` on; none past the end.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing, saying which;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn read(&mut self, session: &SessionName, first: u64, most: usize) -> Result<Vec<Event>> {
        let reading = self.run(ReadLogic::new(first, most), session, "read events")?;
        Ok(reading.into_events())
    }

    /// What comes after the newest event of a state.
    fn read_after<S: Replay>(&mut self, live: &Live<S>, most: usize) -> Result<Reading> {
        let logic = ReadLogic::after(live.at().cloned(), most);
        self.run(logic, live.session(), "read events")
    }

    /// Writes a snapshot of the state after the event with sequence `after_sequence`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the session has no such event,
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where the state does not become JSON,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past 1 GiB,
    /// [`ErrorKind::Io`](crate::ErrorKind::Io). The snapshots that were there before stay.
    pub fn write_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
        state: &S,
        after_sequence: u64,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        let taken = Taken::of(state, after_sequence, now)?;
        self.save(session, taken)
    }

    fn save(&mut self, session: &SessionName, taken: Taken) -> Result<SnapshotInfo> {
        let logic = SaveLogic::new(session, taken, self.options.kept_snapshots);
        self.run(logic, session, "write a snapshot")
    }

    /// The newest snapshot; `None` where there is none yet.
    ///
    /// It is not compared with the log: [`Journal::load`] does that.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged),
    /// [`ErrorKind::Version`](crate::ErrorKind::Version) and
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it cannot be used.
    pub fn read_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
    ) -> Result<Option<Snapshot<S>>> {
        self.run(FetchLogic::new(session.clone()), session, "read a snapshot")
    }

    /// The state after all events: from the newest snapshot that fits the log, and the events after
    /// it.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing that no snapshot covers,
    /// saying which; [`ErrorKind::UnknownEvent`](crate::ErrorKind::UnknownEvent),
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) and what the state has against an event;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the directory.
    pub fn load<S: Replay>(&mut self, session: &SessionName) -> Result<Loaded<S>> {
        Ok(self.load_at(session)?.0)
    }

    fn load_at<S: Replay>(&mut self, session: &SessionName) -> Result<(Loaded<S>, Option<At>)> {
        self.run(LoadLogic::new(session.clone()), session, "load the state")
    }

    /// Loads the state of a session, to go on with it.
    ///
    /// # Errors
    /// As [`Journal::load`].
    pub fn live<S: Replay>(
        &mut self,
        session: &SessionName,
        policy: SnapshotPolicy,
    ) -> Result<(Live<S>, LoadReport)> {
        Ok(Live::of(session, policy, self.load_at(session)?))
    }

    /// Checks an event, appends it after the newest one that the state knows, applies it, and writes
    /// a snapshot where one is due.
    ///
    /// # Errors
    /// What the state has [against the event](Replay::check), before it is appended;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where another writer has appended, after
    /// which [`Journal::catch_up`] helps; those of [`Journal::append`]. After an error of
    /// [`Replay::apply`] the event is in the log. A snapshot that cannot be written is no error: see
    /// [`Recorded::snapshot`].
    pub fn record<S: Replay>(
        &mut self,
        live: &mut Live<S>,
        id: EventId,
        event: &S::Event,
        now: Millis,
    ) -> Result<Recorded> {
        let new = live.prepare(id, event)?;
        let bytes = new.body.len() as u64;
        let entry = Entry::after(live.at(), new, now);
        let Landed { appended, at } = self.append_entry(live.session(), entry)?;
        if !live.is_ahead(appended)? {
            return Ok(Recorded { appended, snapshot: None });
        }
        match at {
            Some(at) => live.follow(at, event, bytes)?,
            None => live.take(&self.read_after(live, 1)?)?,
        }
        let snapshot = live.is_due(event).then(|| self.snapshot(live, now));
        if snapshot.is_some() {
            live.count_anew();
        }
        Ok(Recorded { appended, snapshot })
    }

    /// Writes a snapshot of a state now.
    ///
    /// # Errors
    /// As [`Journal::write_snapshot`].
    pub fn snapshot<S: Replay>(&mut self, live: &mut Live<S>, now: Millis) -> Result<SnapshotInfo> {
        let info = self.save(live.session(), Taken::of_live(live, now)?)?;
        live.count_anew();
        Ok(info)
    }

    /// Applies the events that others have appended, and says how many.
    ///
    /// # Errors
    /// As [`Journal::load`]. The state holds what came before the event that went wrong; where that
    /// one was applied by half it is to be loaded anew.
    pub fn catch_up<S: Replay>(&mut self, live: &mut Live<S>) -> Result<u64> {
        let before = live.sequence();
        loop {
            let reading = self.read_after(live, PAGE)?;
            if reading.events.is_empty() {
                return Ok(live.sequence() - before);
            }
            live.take(&reading)?;
        }
    }

    /// What there is of a session.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn status(&mut self, session: &SessionName) -> Result<SessionStatus> {
        self.run(StatusLogic::default(), session, "look at the session")
    }

    /// The sessions that have events, in the order of their names. One that cannot be read is among
    /// them; by its [token](SessionName::token), where its name cannot be read either.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn sessions(&mut self) -> Result<Vec<SessionName>> {
        self.store.sessions()
    }

    /// Removes a session, its snapshots first. One that is not there is no error.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn delete(&mut self, session: &SessionName) -> Result<()> {
        self.tails.remove(session);
        self.run(DeleteLogic::default(), session, "remove the session")
    }

    /// What was passed over at the end of logs, when they were last looked at: what a crash has left
    /// torn, or a writer is writing. Who opens the session for writing cuts it, which is then among
    /// [`Journal::cut_tails`].
    pub fn torn_tails(&self) -> &[TornTail] {
        self.store.torn_tails()
    }

    /// What was cut from logs that a crash had left torn: copies are beside them.
    pub fn cut_tails(&self) -> &[CutTail] {
        self.store.cut_tails()
    }
}
