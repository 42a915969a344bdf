//! What every journal does, written once: [`Journal`](crate::Journal) runs it at once, `NatsJournal`
//! awaits it.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::{
    Event, EventId, JournalOptions, LiveState, LoadReport, LoadedState, RecordOutcome, Replay,
    Retries, SessionName, SessionStatus, Snapshot, SnapshotInfo, SnapshotPolicy,
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
