use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::sleep;
use tracing::instrument;

use super::{
    NatsOptions,
    appending::{Slot, group},
    connect::{self, Connection},
};
use crate::{
    AppendReceipt, Event, EventId, Expected, JournalOptions, LiveState, LoadReport, LoadedState,
    Millis, NewEvent, RecordOutcome, Replay, Result, Retries, SessionName, SessionStatus, Snapshot,
    SnapshotInfo, SnapshotPolicy,
    append::{Entry, Group, StoredEvent},
    face::{self, Steps},
    fetch::DeleteLogic,
    machine::{Logic, RetriedRequest},
    request::{Failure, Machine, Request, Response, Step},
    retry::Budget,
};

/// Of how many sessions the end of the log is remembered.
const MOST_TAILS: usize = 1_024;

/// Sessions of events on NATS JetStream, which many processes on many machines write and read.
///
/// It has the methods of [`Journal`](crate::Journal), as async ones; they take `&self`,
/// and clones share the connection. They need a tokio runtime with its timer and IO.
///
/// **What the server has to be.** Version 2.11 or newer. With its defaults a server syncs its files
/// every two minutes, and a power cut loses what was acknowledged since: set
/// `sync_interval: always`, or three replicas on machines that do not fail together. See
/// [`NatsJournal::warnings`].
///
/// **What happens when it cannot be reached.** Requests are tried again with growing waits, as
/// [`Retries`](crate::Retries) says, and then end with
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable), which says what was tried and for how
/// long. An append of which nobody knows what became is looked for by its id at the one place where
/// it can be, and made again only for that same place, so it is there once however often it was
/// sent. What the server does not allow is an error at once
/// ([`ErrorKind::Denied`](crate::ErrorKind::Denied)), which names the subject; `docs/journal.md`
/// lists those that a user needs. Where the server cannot be asked in time either, the error says
/// so; append it again with the same id then.
///
/// **Cancellation.** Every future may be dropped at any time. A dropped append was made or was not,
/// and is no more unknown than one whose error is
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
#[derive(Clone)]
pub struct NatsJournal {
    pub(super) connection: Connection,
    pub(super) options: Arc<NatsOptions>,
    /// How much goes into one message.
    pub(super) group: Group,
    tails: Arc<Mutex<HashMap<SessionName, Arc<Slot>>>>,
}

impl fmt::Debug for NatsJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsJournal").field("options", &self.options).finish_non_exhaustive()
    }
}

impl NatsJournal {
    /// Connects, checks the server's version, and creates stream, bucket and object store where
    /// they are not there.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) where no server answers in time,
    /// [`ErrorKind::Version`](crate::ErrorKind::Version) for a server before 2.11,
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) for a stream of that name that is for
    /// something else, [`ErrorKind::Io`](crate::ErrorKind::Io) for credentials that are refused,
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for names and addresses that are none, or that
    /// hold credentials, [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 64 snapshots
    /// of a session.
    #[instrument(skip_all, fields(stream = %options.stream))]
    pub async fn connect(options: NatsOptions) -> Result<Self> {
        let connection = connect::connect(&options).await?;
        let (group, tails) = (group(&connection), Arc::default());
        Ok(Self { connection, options: Arc::new(options), group, tails })
    }

    /// In which way the stream of events and what keeps snapshots promise less than they could:
    /// fewer than three replicas, storage in memory, events or snapshots that expire or are
    /// dropped.
    ///
    /// How often a server syncs its files cannot be asked for.
    pub fn warnings(&self) -> &[String] {
        &self.connection.warnings
    }

    pub(super) async fn run<L: Logic>(
        &self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
    ) -> Result<L::Output> {
        self.run_within(logic, session, doing, self.options.journal.retries).await
    }

    async fn run_within<L: Logic>(
        &self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
        retries: Retries,
    ) -> Result<L::Output> {
        let mut machine = RetriedRequest::new(logic, session, retries, doing);
        loop {
            match machine.step() {
                Step::Done(output) => return output,
                Step::Do(request) => {
                    if let Request::Wait(time) = &request {
                        tracing::debug!(%session, ?time, "waiting before the next attempt");
                    }
                    let response = self.perform(session, request).await;
                    if let Response::Failed(
                        Failure::Transient { error, .. } | Failure::Ambiguous { error, .. },
                    ) = &response
                    {
                        tracing::warn!(%session, %error, "cannot {doing} yet");
                    }
                    machine.take(response);
                }
            }
        }
    }

    /// Does what no session's log decides on, with attempts and waits.
    pub(super) async fn retried<T, F: Future<Output = Result<T>>>(
        &self,
        doing: &'static str,
        work: impl Fn() -> F,
    ) -> Result<T> {
        let mut budget = Budget::new(self.options.journal.retries, doing);
        loop {
            match self.reading(work()).await {
                Ok(done) => return Ok(done),
                Err(failure) => sleep(budget.next(failure)?).await,
            }
        }
    }

    pub(super) fn slot(&self, session: &SessionName) -> Arc<Slot> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if tails.len() >= MOST_TAILS && !tails.contains_key(session) {
            // One that somebody holds stays: its holder keeps others waiting.
            tails.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(tails.entry(session.clone()).or_default())
    }

    /// Appends an event, and answers with its sequence.
    ///
    /// One message to the server and its answer. The first append to a session also learns the ids
    /// of its events (see [`Journal::append`](crate::Journal::append)), and one that another writer
    /// was ahead of reads what came in between. Appends of one process to one session are made in
    /// the order in which they were begun. While a message is on its way, those that wait gather,
    /// and go into the next one together, as long as they are of one kind: so begin many, each
    /// expecting the one before it, and await them all.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the newest event is not the
    /// expected one; the [place](crate::Place::event) tells the newest one's sequence.
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) where it cannot be said in time;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for an event beyond the server's limit;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the server refuses it;
    /// [`ErrorKind::Version`](crate::ErrorKind::Version) where the client has gone to a server
    /// before 2.11; [`ErrorKind::Denied`](crate::ErrorKind::Denied) where this user has not the
    /// rights.
    #[instrument(skip_all, fields(%session, id = %event.id))]
    pub async fn append(
        &self,
        session: &SessionName,
        expected: Expected,
        event: NewEvent,
        now: Millis,
    ) -> Result<AppendReceipt> {
        let landed = self.append_entry(session, Entry::new(event, expected, now)).await?;
        Ok(landed.appended)
    }

    /// At most `most` events from the one with sequence `first` on; none past the end. Costs two
    /// requests, O(log n) to find the first event, and one for each 2,000 events or 8 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing, saying which;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable);
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where a message of the stream is no event.
    #[instrument(skip_all, fields(%session, first))]
    pub async fn read(&self, session: &SessionName, first: u64, most: usize) -> Result<Vec<Event>> {
        face::read(&mut &*self, session, first, most).await
    }

    /// Writes a snapshot of the state after the event with sequence `after_sequence`.
    ///
    /// It goes to the bucket, and past the server's `max_payload` (1 MiB by default, compressed and
    /// with some headers) to the object store. Where a newer snapshot of this schema is there, that
    /// one stays, and is the answer. A write that was begun goes on where this future is dropped.
    /// O(size of the state), and O(log n) requests to find the event, besides a few to write.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the session has no such event,
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where cannot write the state as JSON,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past 1 GiB,
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session, after_sequence))]
    pub async fn write_snapshot<S: Replay>(
        &self,
        session: &SessionName,
        state: &S,
        after_sequence: u64,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        face::write_snapshot(&mut &*self, session, state, after_sequence, now).await
    }

    /// The newest snapshot; `None` where there is none yet. Reads it whole: O(its size).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged),
    /// [`ErrorKind::Version`](crate::ErrorKind::Version) and
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it cannot be used,
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session))]
    pub async fn read_snapshot<S: Replay>(
        &self,
        session: &SessionName,
    ) -> Result<Option<Snapshot<S>>> {
        face::read_snapshot(&mut &*self, session).await
    }

    /// The state after all events: from the newest snapshot that fits the log, and the events after
    /// it. Costs two requests, the reading of the snapshot, and a request for each 2,000 events or
    /// 8 MiB after it.
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing that no snapshot covers,
    /// saying which; [`ErrorKind::UnknownEvent`](crate::ErrorKind::UnknownEvent),
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) and what the state has against an event;
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where a message of the stream is no event;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session))]
    pub async fn load<S: Replay>(&self, session: &SessionName) -> Result<LoadedState<S>> {
        face::load(&mut &*self, session).await
    }

    /// Loads a session that fails with [`ErrorKind::Gap`](crate::ErrorKind::Gap), and accepts that
    /// its missing events are lost.
    ///
    /// What the state is then, and what becomes of the events that are left:
    /// [`Journal::accept_loss`](crate::Journal::accept_loss) says it. Reads what a load reads: a
    /// snapshot and the events after it. Writes at most one snapshot.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEvent`](crate::ErrorKind::UnknownEvent) and
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for an event that this state does not know or
    /// cannot read, and what [`Replay::apply`] has against one;
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where a message of the stream is no event;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a snapshot past 1 GiB;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the session was removed meanwhile;
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) where this user has not the rights;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session))]
    pub async fn accept_loss<S: Replay>(
        &self,
        session: &SessionName,
        now: Millis,
    ) -> Result<LoadedState<S>> {
        face::accept_loss(&mut &*self, session, now).await
    }

    /// Loads the state of a session, to go on with it. Costs what [`NatsJournal::load`] does.
    ///
    /// # Errors
    /// As [`NatsJournal::load`].
    #[instrument(skip_all, fields(%session))]
    pub async fn live<S: Replay>(
        &self,
        session: &SessionName,
        policy: SnapshotPolicy,
    ) -> Result<(LiveState<S>, LoadReport)> {
        face::live(&mut &*self, session, policy).await
    }

    /// Checks an event, appends it after the newest one that the state knows, applies it, and
    /// writes a snapshot where one is due.
    ///
    /// Where this future is dropped, the event may be in the journal and not in the state:
    /// [`NatsJournal::catch_up`] brings it. Costs what [`NatsJournal::append`] does, and for a
    /// snapshot that is due [`NatsJournal::write_snapshot`].
    ///
    /// # Errors
    /// What the state has [against the event](Replay::check), before it is appended;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where another writer has appended, after
    /// which [`NatsJournal::catch_up`] helps; those of [`NatsJournal::append`]. A snapshot that
    /// cannot be written is no error: see [`RecordOutcome::snapshot`].
    #[instrument(skip_all, fields(session = %live.session(), %id))]
    pub async fn record<S: Replay>(
        &self,
        live: &mut LiveState<S>,
        id: EventId,
        event: &S::Event,
        now: Millis,
    ) -> Result<RecordOutcome> {
        face::record(&mut &*self, live, id, event, now).await
    }

    /// Writes a snapshot of a state now. Costs what [`NatsJournal::write_snapshot`] does.
    ///
    /// # Errors
    /// As [`NatsJournal::write_snapshot`].
    #[instrument(skip_all, fields(session = %live.session()))]
    pub async fn snapshot<S: Replay>(
        &self,
        live: &mut LiveState<S>,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        face::snapshot(&mut &*self, live, now).await
    }

    /// Applies the events that others have appended, and says how many. Costs three requests for
    /// each 2,000 of them, and two at the end.
    ///
    /// # Errors
    /// As [`NatsJournal::load`]. The state holds what came before the event that went wrong; where
    /// that one was applied by half it is to be loaded anew.
    #[instrument(skip_all, fields(session = %live.session()))]
    pub async fn catch_up<S: Replay>(&self, live: &mut LiveState<S>) -> Result<u64> {
        face::catch_up(&mut &*self, live).await
    }

    /// What there is of a session. Costs three requests, and reads the newest snapshot whole.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session))]
    pub async fn status(&self, session: &SessionName) -> Result<SessionStatus> {
        face::status(&mut &*self, session).await
    }

    /// The sessions that have events, in the order of their names. The server lists a subject for
    /// each session and kind of its events; a name that is hashed costs a request more.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all)]
    pub async fn sessions(&self) -> Result<Vec<SessionName>> {
        let needs = self.needs_of_list();
        let listed = self.retried("list the sessions", || self.allowed(&needs, self.list()));
        Box::pin(listed).await
    }

    /// Removes a session: its snapshots first, then its events, then its objects. One that is not there
    /// is no error.
    ///
    /// Where it is broken off, the session is there with fewer snapshots, or its objects stay: remove it
    /// again. Costs a few requests, some for each snapshot and each object of the session, and the
    /// names of all objects of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) where this user has not the rights;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    #[instrument(skip_all, fields(%session))]
    pub async fn delete(&self, session: &SessionName) -> Result<()> {
        let slot = self.slot(session);
        let mut tail = slot.tail.lock().await;
        *tail = None;
        self.run(DeleteLogic::default(), session, "remove the session").await
    }
}

impl Steps for &NatsJournal {
    fn options(&self) -> &JournalOptions {
        &self.options.journal
    }

    async fn run<L: Logic>(
        &mut self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
        retries: Retries,
    ) -> Result<L::Output> {
        self.run_within(logic, session, doing, retries).await
    }

    async fn append_entry(&mut self, session: &SessionName, entry: Entry) -> Result<StoredEvent> {
        NatsJournal::append_entry(self, session, entry).await
    }

    fn loaded(&self, session: &SessionName, report: &LoadReport) {
        for passed in &report.skipped_snapshots {
            tracing::warn!(%session, "passed over {passed}");
        }
    }
}
