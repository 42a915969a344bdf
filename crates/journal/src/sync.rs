use std::{collections::HashMap, path::Path, sync::Arc};

use super::{
    AppendReceipt, Event, EventId, Expected, JournalOptions, LiveState, LoadReport, LoadedState,
    Memory, NewEvent, RecordOutcome, Replay, Retries, SessionName, SessionStatus, Snapshot,
    SnapshotInfo, SnapshotPolicy,
    append::{AppendLogic, Entry, StoredEvent},
    directory::Directory,
    face::{self, Steps},
    fetch::DeleteLogic,
    load::of_lost_end,
    machine::{Logic, RetriedRequest},
    session_log::unrepaired,
    store::{Store, drive},
    tail::Tail,
};
use crate::{
    Error, Millis, Result,
    log::{CutTail, DiskFiles, Files, Holder, LostEnd, TornFile},
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
    /// [reported](Journal::cut_tails). Lists the directory.
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

    /// [`Journal::open`] on other files than the operating system's. Costs as much.
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
    /// refused with [`ErrorKind::Locked`](crate::ErrorKind::Locked). Lists the directory. Each
    /// method lists it again, and those that use a session's log read the headers of all its
    /// records anew (36 bytes of each).
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

    /// Names the repair where a log that lost its end is the reason of an error.
    fn explained(&self, session: &SessionName, error: Error) -> Error {
        match self.store.lost_end(session) {
            Some(lost) => of_lost_end(lost, error).in_session(session.as_str()),
            None => error,
        }
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
    /// An event whose id an event of the session has is not appended again, whatever is expected;
    /// the answer is then where it is. O(1), but for the first append to a session, which learns
    /// the ids of its events: of the oldest from where they are kept (16 bytes of each), of the
    /// rest by reading them. [`JournalOptions::known_ids`] limits both, and the promise.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the newest event is not the
    /// expected one; the [place](crate::Place::event) tells the newest one's sequence.
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
    ) -> Result<AppendReceipt> {
        let entry = Entry::new(event, expected, now);
        face::now(self.append_entry(session, entry)).map(|landed| landed.appended)
    }

    /// Goes on with a session after a write that failed: its log is opened anew at its next use, as
    /// [`Journal::append`] says, and a torn tail is cut. An event whose append failed may be there.
    /// What a sync did not make durable was cut. Where the system refused that too, the session takes
    /// nothing before the journal is opened anew: look then whether the disk has what it shows. O(1).
    pub fn reopen(&mut self, session: &SessionName) {
        self.tails.remove(session);
        self.store.reopen(session);
    }

    /// At most `most` events from the one with sequence `first` on; none past the end. Reads the
    /// events that it gives, and two more.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing, saying which;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn read(&mut self, session: &SessionName, first: u64, most: usize) -> Result<Vec<Event>> {
        face::now(face::read(self, session, first, most))
    }

    /// Writes a snapshot of the state after the event with sequence `after_sequence`. Costs the
    /// state as JSON, a read of the newest snapshot, and one file with two syncs.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the session has no such event,
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where cannot write the state as JSON,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past 1 GiB,
    /// [`ErrorKind::Io`](crate::ErrorKind::Io). The snapshots that were there before stay.
    pub fn write_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
        state: &S,
        after_sequence: u64,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        face::now(face::write_snapshot(self, session, state, after_sequence, now))
    }

    /// The newest snapshot; `None` where there is none yet.
    ///
    /// It is not compared with the log: [`Journal::load`] does that. Reads it whole: O(its size).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged),
    /// [`ErrorKind::Version`](crate::ErrorKind::Version) and
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it cannot be used.
    pub fn read_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
    ) -> Result<Option<Snapshot<S>>> {
        face::now(face::read_snapshot(self, session))
    }

    /// The state after all events: from the newest snapshot that fits the log, and the events after
    /// it. Reads these, the newest event, and each newer snapshot that it passes over.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing that no snapshot covers,
    /// saying which; [`ErrorKind::UnknownEvent`](crate::ErrorKind::UnknownEvent),
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) and what the state has against an event;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the directory.
    pub fn load<S: Replay>(&mut self, session: &SessionName) -> Result<LoadedState<S>> {
        face::now(face::load(self, session))
    }

    /// Loads a session that fails with [`ErrorKind::Gap`](crate::ErrorKind::Gap), and accepts that
    /// its missing events are lost.
    ///
    /// The state is that of the newest snapshot that can be used, or the first one, with the events
    /// that are left. [`Replay::skip_lost`] tells it which ones it does not get. An event that it
    /// then refuses is lost too. [`LoadReport::lost`] names them all. A snapshot is written of what
    /// came out, so that everybody loads it from then on. Where nothing is missing this is a load,
    /// and nothing is written.
    ///
    /// Reads what a load reads: a snapshot and the events after it. Writes at most one snapshot.
    ///
    /// A log in a directory that lost its end is refused: [`Journal::repair`] goes on with it.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEvent`](crate::ErrorKind::UnknownEvent) and
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for an event that this state does not know or
    /// cannot read, and what [`Replay::apply`] has against one;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a snapshot past 1 GiB;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the session was removed meanwhile;
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) where the journal was opened for reading;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the directory, the latter
    /// also where the log lost its end.
    pub fn accept_loss<S: Replay>(
        &mut self,
        session: &SessionName,
        now: Millis,
    ) -> Result<LoadedState<S>> {
        face::now(face::accept_loss(self, session, now))
    }

    /// Loads the state of a session, to go on with it. Costs what [`Journal::load`] does.
    ///
    /// # Errors
    /// As [`Journal::load`].
    pub fn live<S: Replay>(
        &mut self,
        session: &SessionName,
        policy: SnapshotPolicy,
    ) -> Result<(LiveState<S>, LoadReport)> {
        face::now(face::live(self, session, policy))
    }

    /// Checks an event, appends it after the newest one that the state knows, applies it, and
    /// writes a snapshot where one is due. Costs what [`Journal::append`] does, and for a snapshot
    /// that is due [`Journal::write_snapshot`].
    ///
    /// # Errors
    /// What the state has [against the event](Replay::check), before it is appended;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where another writer has appended, after
    /// which [`Journal::catch_up`] helps; those of [`Journal::append`]. After an error of
    /// [`Replay::apply`] the event is in the log. A snapshot that cannot be written is no error:
    /// see [`RecordOutcome::snapshot`].
    pub fn record<S: Replay>(
        &mut self,
        live: &mut LiveState<S>,
        id: EventId,
        event: &S::Event,
        now: Millis,
    ) -> Result<RecordOutcome> {
        face::now(face::record(self, live, id, event, now))
    }

    /// Writes a snapshot of a state now. Costs what [`Journal::write_snapshot`] does.
    ///
    /// # Errors
    /// As [`Journal::write_snapshot`].
    pub fn snapshot<S: Replay>(
        &mut self,
        live: &mut LiveState<S>,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        face::now(face::snapshot(self, live, now))
    }

    /// Applies the events that others have appended, and says how many. Reads these events, and two
    /// more for each 2,000 of them.
    ///
    /// # Errors
    /// As [`Journal::load`]. The state holds what came before the event that went wrong; where that
    /// one was applied by half it is to be loaded anew.
    pub fn catch_up<S: Replay>(&mut self, live: &mut LiveState<S>) -> Result<u64> {
        face::now(face::catch_up(self, live))
    }

    /// What there is of a session. Reads the newest snapshot whole, and two events.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn status(&mut self, session: &SessionName) -> Result<SessionStatus> {
        face::now(face::status(self, session))
    }

    /// The sessions that have events, in the order of their names. One that cannot be read is among
    /// them; by its [token](SessionName::token), where its name cannot be read either. Opens the
    /// log of each session, and reads a few headers and the first record of it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged).
    pub fn sessions(&mut self) -> Result<Vec<SessionName>> {
        self.store.sessions()
    }

    /// Removes a session, its snapshots first. One that is not there is no error. Lists the
    /// directory, and removes the session's files with up to four syncs.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn delete(&mut self, session: &SessionName) -> Result<()> {
        self.tails.remove(session);
        let retries = self.options.retries;
        face::now(Steps::run(self, DeleteLogic::default(), session, "remove the session", retries))
    }

    /// Accepts that acknowledged events are missing at the end of a session's log. Appends work
    /// again afterwards. Returns what was lost, or `None` if the log is complete. For events that
    /// are missing elsewhere see [`Journal::accept_loss`].
    ///
    /// A log in a directory is compared with what is remembered beside it
    /// ([`HighWater`](crate::log::HighWater)). While events are missing at its end, what is there
    /// can be [read](Journal::read); loading a state says which are missing, and nothing is
    /// appended.
    ///
    /// Reads the header of each record of the log (36 bytes), and writes at most one small file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the directory;
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) where it was opened for reading.
    pub fn repair(&mut self, session: &SessionName) -> Result<Option<LostEnd>> {
        self.tails.remove(session);
        self.store.repair(session).map_err(|error| error.in_session(session.as_str()))
    }

    /// The logs that did not end where they were acknowledged, when they were last looked at.
    pub fn lost_ends(&self) -> &[LostEnd] {
        self.store.lost_ends()
    }

    /// What is wrong with the end of a session's log, when it was last looked at. Linear in
    /// [`Journal::lost_ends`].
    pub fn lost_end(&self, session: &SessionName) -> Option<&LostEnd> {
        self.store.lost_end(session)
    }

    /// What was passed over at the end of logs, when they were last looked at: what a crash has
    /// left torn, or a writer is writing. Who opens the session for writing cuts it, which is then
    /// among [`Journal::cut_tails`].
    pub fn torn_tails(&self) -> &[TornFile] {
        self.store.torn_tails()
    }

    /// What was cut from logs that a crash had left torn: copies are beside them.
    pub fn cut_tails(&self) -> &[CutTail] {
        self.store.cut_tails()
    }
}

impl Steps for Journal {
    fn options(&self) -> &JournalOptions {
        &self.options
    }

    async fn run<L: Logic>(
        &mut self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
        retries: Retries,
    ) -> Result<L::Output> {
        let mut machine = RetriedRequest::new(logic, session, retries, doing);
        let done = drive(&mut *self.store, session, &mut machine);
        done.map_err(|error| self.explained(session, error))
    }

    async fn append_entry(&mut self, session: &SessionName, entry: Entry) -> Result<StoredEvent> {
        let tail = self.tails.remove(session);
        let mut logic = AppendLogic::one(tail, entry, self.options.known_ids);
        let retries = self.options.retries;
        let result = Steps::run(self, &mut logic, session, "append an event", retries).await;
        let (outcome, tail) = logic.into_outcome(result, session);
        self.remember(session, tail);
        outcome.map_err(|error| self.explained(session, error))
    }

    fn check_end(&self, session: &SessionName) -> Result<()> {
        match self.store.lost_end(session) {
            Some(lost) => Err(unrepaired(lost).in_session(session.as_str())),
            None => Ok(()),
        }
    }
}
