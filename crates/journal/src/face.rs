//! What every journal does, written once: [`Journal`](crate::Journal) runs it at once, `NatsJournal`
//! awaits it.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::{
    AppendReceipt, Event, EventId, Expected, JournalOptions, LiveState, LoadReport, LoadedState,
    NewEvent, RecordOutcome, Replay, Retries, SessionName, SessionStatus, Snapshot, SnapshotInfo,
    SnapshotPolicy,
    append::{Entry, StoredEvent},
    fetch::FetchLogic,
    load::LoadLogic,
    machine::Logic,
    read::{PAGE, ReadLogic, Reading},
    request::LogPosition,
    save::{PendingSnapshot, SaveLogic},
    status::StatusLogic,
};
use crate::{Millis, Result};

/// The methods that [`Journal`](crate::Journal) and `NatsJournal` share, for code that takes either.
///
/// The methods of a [`Journal`](crate::Journal) have finished when they return, so its futures are
/// ready at once; they block meanwhile, as its own methods do. Those own methods say more about
/// cost and errors. The trait is implemented here alone.
///
/// ```
/// use afterimage_journal::{EventJournal, Result, Millis, *};
///
/// /// Works on a journal in memory, in a directory or on a server.
/// async fn count(journal: &mut impl EventJournal, session: &SessionName) -> Result<usize> {
///     let event = NewEvent::new(EventId::new("1")?, "note", b"\"moored\"".to_vec())?;
///     journal.append(session, Expected::Any, event, Millis::new(0)).await?;
///     Ok(journal.read(session, 1, usize::MAX).await?.len())
/// }
/// # let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
/// # let session = SessionName::new("harbour")?;
/// # let mut counting = std::pin::pin!(count(&mut journal, &session));
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(counted) = counting.as_mut().poll(&mut context) else { panic!() };
/// # assert_eq!(counted?, 1);
/// # Ok::<(), afterimage_journal::Error>(())
/// ```
pub trait EventJournal: sealed::Sealed {
    /// Appends an event: [`Journal::append`](crate::Journal::append).
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the newest event is not the
    /// expected one; what the store has against it.
    fn append(
        &mut self,
        session: &SessionName,
        expected: Expected,
        event: NewEvent,
        now: Millis,
    ) -> impl Future<Output = Result<AppendReceipt>> + Send;

    /// At most `most` events from sequence `first` on: [`Journal::read`](crate::Journal::read).
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing; those of the store.
    fn read(
        &mut self,
        session: &SessionName,
        first: u64,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Event>>> + Send;

    /// Writes a snapshot: [`Journal::write_snapshot`](crate::Journal::write_snapshot).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the session has no such event;
    /// those of the store.
    fn write_snapshot<S: Replay + Sync>(
        &mut self,
        session: &SessionName,
        state: &S,
        after_sequence: u64,
        now: Millis,
    ) -> impl Future<Output = Result<SnapshotInfo>> + Send;

    /// The newest snapshot: [`Journal::read_snapshot`](crate::Journal::read_snapshot).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where it cannot be used; those of the
    /// store.
    fn read_snapshot<S: Replay + Send>(
        &mut self,
        session: &SessionName,
    ) -> impl Future<Output = Result<Option<Snapshot<S>>>> + Send;

    /// The state after all events: [`Journal::load`](crate::Journal::load).
    ///
    /// # Errors
    /// [`ErrorKind::Gap`](crate::ErrorKind::Gap) where events are missing; what the state has
    /// against an event; those of the store.
    fn load<S: Replay + Send>(
        &mut self,
        session: &SessionName,
    ) -> impl Future<Output = Result<LoadedState<S>>> + Send;

    /// Loads a session and accepts that its missing events are lost:
    /// [`Journal::accept_loss`](crate::Journal::accept_loss).
    ///
    /// # Errors
    /// What the state has against an event; those of the store.
    fn accept_loss<S: Replay + Send + Sync>(
        &mut self,
        session: &SessionName,
        now: Millis,
    ) -> impl Future<Output = Result<LoadedState<S>>> + Send;

    /// Loads the state of a session, to go on with it: [`Journal::live`](crate::Journal::live).
    ///
    /// # Errors
    /// Those of [`EventJournal::load`].
    fn live<S: Replay + Send>(
        &mut self,
        session: &SessionName,
        policy: SnapshotPolicy,
    ) -> impl Future<Output = Result<(LiveState<S>, LoadReport)>> + Send;

    /// Checks an event, appends and applies it: [`Journal::record`](crate::Journal::record).
    ///
    /// # Errors
    /// What the state has against the event; [`ErrorKind::Conflict`](crate::ErrorKind::Conflict)
    /// where another writer has appended; those of the store.
    fn record<S: Replay<Event: Sync> + Send + Sync>(
        &mut self,
        live: &mut LiveState<S>,
        id: EventId,
        event: &S::Event,
        now: Millis,
    ) -> impl Future<Output = Result<RecordOutcome>> + Send;

    /// Writes a snapshot of a state now: [`Journal::snapshot`](crate::Journal::snapshot).
    ///
    /// # Errors
    /// Those of [`EventJournal::write_snapshot`].
    fn snapshot<S: Replay + Send + Sync>(
        &mut self,
        live: &mut LiveState<S>,
        now: Millis,
    ) -> impl Future<Output = Result<SnapshotInfo>> + Send;

    /// Applies what others have appended, and says how many events that were:
    /// [`Journal::catch_up`](crate::Journal::catch_up).
    ///
    /// # Errors
    /// Those of [`EventJournal::load`].
    fn catch_up<S: Replay + Send + Sync>(
        &mut self,
        live: &mut LiveState<S>,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// What there is of a session: [`Journal::status`](crate::Journal::status).
    ///
    /// # Errors
    /// Those of the store.
    fn status(
        &mut self,
        session: &SessionName,
    ) -> impl Future<Output = Result<SessionStatus>> + Send;

    /// The sessions that have events: [`Journal::sessions`](crate::Journal::sessions).
    ///
    /// # Errors
    /// Those of the store.
    fn sessions(&mut self) -> impl Future<Output = Result<Vec<SessionName>>> + Send;

    /// Removes a session: [`Journal::delete`](crate::Journal::delete).
    ///
    /// # Errors
    /// Those of the store.
    fn delete(&mut self, session: &SessionName) -> impl Future<Output = Result<()>> + Send;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// What a journal does with its store. The bodies below need nothing else.
pub(crate) trait Steps {
    fn options(&self) -> &JournalOptions;

    /// Runs an operation to its end.
    async fn run<L: Logic>(
        &mut self,
        logic: L,
        session: &SessionName,
        doing: &'static str,
        retries: Retries,
    ) -> Result<L::Output>;

    async fn append_entry(&mut self, session: &SessionName, entry: Entry) -> Result<StoredEvent>;

    /// Refuses a log that is known to have lost its end.
    fn check_end(&self, session: &SessionName) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Hears how a state was loaded.
    fn loaded(&self, session: &SessionName, report: &LoadReport) {
        let _ = (session, report);
    }
}

/// The result of an operation on a store that answers at once.
pub(crate) fn now<F: Future>(operation: F) -> F::Output {
    let mut operation = pin!(operation);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = operation.as_mut().poll(&mut context) {
            return output;
        }
    }
}

async fn run<J: Steps, L: Logic>(
    journal: &mut J,
    logic: L,
    session: &SessionName,
    doing: &'static str,
) -> Result<L::Output> {
    let retries = journal.options().retries;
    journal.run(logic, session, doing, retries).await
}

pub(crate) async fn read<J: Steps>(
    journal: &mut J,
    session: &SessionName,
    first: u64,
    most: usize,
) -> Result<Vec<Event>> {
    let reading = run(journal, ReadLogic::new(first, most), session, "read events").await?;
    Ok(reading.into_events())
}

/// What comes after the newest event of a state.
async fn read_after<J: Steps, S: Replay>(
    journal: &mut J,
    live: &LiveState<S>,
    most: usize,
) -> Result<Reading> {
    let logic = ReadLogic::after(live.at().cloned(), most);
    run(journal, logic, live.session(), "read events").await
}

pub(crate) async fn write_snapshot<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
    state: &S,
    after_sequence: u64,
    now: Millis,
) -> Result<SnapshotInfo> {
    let taken = PendingSnapshot::of(state, after_sequence, now)?;
    let retries = journal.options().retries;
    save(journal, session, taken, retries).await
}

async fn save<J: Steps>(
    journal: &mut J,
    session: &SessionName,
    taken: PendingSnapshot,
    retries: Retries,
) -> Result<SnapshotInfo> {
    let logic = SaveLogic::new(session, taken, journal.options().kept_snapshots);
    journal.run(logic, session, "write a snapshot", retries).await
}

pub(crate) async fn read_snapshot<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
) -> Result<Option<Snapshot<S>>> {
    run(journal, FetchLogic::new(session.clone()), session, "read a snapshot").await
}

pub(crate) async fn load<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
) -> Result<LoadedState<S>> {
    Ok(load_at(journal, session).await?.0)
}

async fn load_at<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
) -> Result<(LoadedState<S>, Option<LogPosition>)> {
    let logic = LoadLogic::<S>::new(session.clone());
    let (loaded, at) = run(journal, logic, session, "load the state").await?;
    journal.loaded(session, &loaded.report);
    Ok((loaded, at))
}

pub(crate) async fn accept_loss<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
    now: Millis,
) -> Result<LoadedState<S>> {
    let logic = LoadLogic::<S>::accepting_loss(session.clone());
    let (loaded, at) = run(journal, logic, session, "load the state").await?;
    journal.check_end(session)?;
    if !loaded.report.lost.is_empty() {
        let taken = PendingSnapshot::of_loaded(&loaded, at, now)?;
        let retries = journal.options().retries;
        save(journal, session, taken, retries).await?;
    }
    Ok(loaded)
}

pub(crate) async fn live<J: Steps, S: Replay>(
    journal: &mut J,
    session: &SessionName,
    policy: SnapshotPolicy,
) -> Result<(LiveState<S>, LoadReport)> {
    Ok(LiveState::of(session, policy, load_at(journal, session).await?))
}

pub(crate) async fn record<J: Steps, S: Replay>(
    journal: &mut J,
    live: &mut LiveState<S>,
    id: EventId,
    event: &S::Event,
    now: Millis,
) -> Result<RecordOutcome> {
    let new = live.prepare(id, event)?;
    let bytes = new.body.len() as u64;
    let entry = Entry::after(live.at(), new, now);
    let StoredEvent { appended, at } = journal.append_entry(live.session(), entry).await?;
    if !live.is_ahead(appended)? {
        return Ok(RecordOutcome { appended, snapshot: None });
    }
    if let Some(at) = at {
        live.follow(at, event, bytes)?;
    } else {
        let reading = read_after(journal, live, 1).await?;
        live.take(&reading)?;
    }
    if !live.is_due(event) {
        return Ok(RecordOutcome { appended, snapshot: None });
    }
    let snapshot = match PendingSnapshot::of_live(live, now) {
        Ok(taken) => {
            let retries = journal.options().snapshot_retries;
            save(journal, live.session(), taken, retries).await
        }
        Err(error) => Err(error),
    };
    live.count_anew();
    Ok(RecordOutcome { appended, snapshot: Some(snapshot) })
}

pub(crate) async fn snapshot<J: Steps, S: Replay>(
    journal: &mut J,
    live: &mut LiveState<S>,
    now: Millis,
) -> Result<SnapshotInfo> {
    let taken = PendingSnapshot::of_live(live, now)?;
    let retries = journal.options().retries;
    let info = save(journal, live.session(), taken, retries).await?;
    live.count_anew();
    Ok(info)
}

pub(crate) async fn catch_up<J: Steps, S: Replay>(
    journal: &mut J,
    live: &mut LiveState<S>,
) -> Result<u64> {
    let before = live.sequence();
    loop {
        let reading = read_after(journal, live, PAGE).await?;
        if reading.events.is_empty() {
            return Ok(live.sequence() - before);
        }
        live.take(&reading)?;
    }
}

pub(crate) async fn status<J: Steps>(
    journal: &mut J,
    session: &SessionName,
) -> Result<SessionStatus> {
    run(journal, StatusLogic::default(), session, "look at the session").await
}
