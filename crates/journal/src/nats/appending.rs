//! Appends that wait for each other go together.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::future::{Either, select};
use tokio::sync::{Mutex as Turn, oneshot};

use super::{
    NatsJournal,
    connect::{Connection, unavailable},
};
use crate::{
    Error, Result, SessionName,
    append::{AppendLogic, AppendOutcome, Entry, Group, StoredEvent},
    record,
    tail::Tail,
};

/// The most events of one message.
const MOST_EVENTS: usize = 512;

/// The most bytes of a message with several events.
const MOST_BYTES: usize = 256 << 10;

/// The end of a session's log, and what is to be appended.
///
/// Whoever has the end appends everything that waits: what comes while a message is on its way goes
/// into the next one.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) tail: Turn<Option<Tail>>,
    /// In the order in which they were begun.
    waiting: Mutex<VecDeque<WaitingAppend>>,
}

struct WaitingAppend {
    entry: Entry,
    answer: Answer,
}

type Answer = oneshot::Sender<Result<StoredEvent>>;

impl NatsJournal {
    /// Appends one event, by itself or with others.
    pub(super) async fn append_entry(
        &self,
        session: &SessionName,
        entry: Entry,
    ) -> Result<StoredEvent> {
        let slot = self.slot(session);
        let (answer, mut answered) = oneshot::channel();
        slot.waiting().push_back(WaitingAppend { entry, answer });
        loop {
            match select(&mut answered, pin!(slot.tail.lock())).await {
                Either::Left((answered, _)) => {
                    return answered.unwrap_or_else(|_| Err(unavailable("nobody appended it")));
                }
                Either::Right((mut tail, _)) => {
                    self.append_waiting(&slot, session, &mut tail).await;
                }
            }
        }
    }

    async fn append_waiting(&self, slot: &Slot, session: &SessionName, tail: &mut Option<Tail>) {
        // Where this future is dropped, the end is to be learnt anew: what it holds then is unknown.
        let known = tail.take();
        let mut batch = Batch::of(slot, session, self.keeps_ends(), |entries| {
            AppendLogic::new(known, entries, self.group, self.options.journal.known_ids)
        });
        let result = self.run(&mut batch.logic, session, "append an event").await;
        if batch.keeps_end
            && let Some(tail) = batch.logic.tail()
        {
            let needs = self.needs_of_end(session);
            let kept = self.retried("keep how far the session is", || {
                self.allowed(&needs, self.put_end(session, &tail.life, tail.sequence()))
            });
            batch.unkept =
                Box::pin(kept).await.err().map(|error| error.in_session(session.as_str()));
            batch.keeps_end = false;
        }
        // After a failure nothing is known of the end.
        *tail = batch.settle(result.as_ref().err());
    }
}

/// The appends that one of their callers makes for all of them.
struct Batch<'s> {
    slot: &'s Slot,
    session: &'s SessionName,
    logic: AppendLogic,
    answers: Vec<Answer>,
    /// Whether nothing is acknowledged before the end of the session is kept.
    keeps_end: bool,
    /// Why it is not kept.
    unkept: Option<Error>,
}

impl<'s> Batch<'s> {
    /// All that wait, but for those who have gone.
    fn of(
        slot: &'s Slot,
        session: &'s SessionName,
        keeps_end: bool,
        logic: impl FnOnce(Vec<Entry>) -> AppendLogic,
    ) -> Self {
        let waiting = std::mem::take(&mut *slot.waiting());
        let there = waiting.into_iter().filter(|waiting| !waiting.answer.is_closed());
        let (entries, answers) =
            there.map(|waiting| (waiting.entry, waiting.answer)).collect::<(Vec<_>, Vec<_>)>();
        Self { slot, session, logic: logic(entries), answers, keeps_end, unkept: None }
    }

    /// Answers everybody: those of whom nothing is known with the failure.
    fn settle(&mut self, failure: Option<&Error>) -> Option<Tail> {
        let (fates, tail) = self.logic.take_parts(self.session);
        for (answer, fate) in std::mem::take(&mut self.answers).into_iter().zip(fates) {
            let outcome = match (fate.outcome, &self.unkept, failure) {
                (Some(Ok(_)), Some(unkept), _) => Err(again(unkept)),
                (Some(outcome), _, _) => outcome,
                (None, _, Some(failure)) => Err(again(failure)),
                (None, _, None) => Err(unavailable(
                    "the append ended without an answer; append the event again with the same id",
                )),
            };
            // Who has gone meanwhile does not want to know.
            let _ = answer.send(outcome);
        }
        tail.filter(|_| failure.is_none())
    }
}

/// Where the one who appends is dropped on the way, those who are not answered wait again, before
/// those who came later.
impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let (fates, _) = self.logic.take_parts(self.session);
        let mut waiting = self.slot.waiting();
        for (answer, AppendOutcome { mut entry, outcome }) in
            std::mem::take(&mut self.answers).into_iter().zip(fates).rev()
        {
            match outcome {
                Some(outcome) if outcome.is_err() || !self.keeps_end => drop(answer.send(outcome)),
                outcome => {
                    if let Some(Ok(landed)) = &outcome {
                        entry.tried.get_or_insert(landed.appended.sequence);
                    }
                    waiting.push_front(WaitingAppend { entry, answer });
                }
            }
        }
    }
}

/// How much goes into one message of a stream.
pub(super) fn group(connection: &Connection) -> Group {
    let payload = connection.client.server_info().max_payload;
    let message = connection.stream.cached_info().config.max_message_size;
    let limit = usize::try_from(message).ok().filter(|limit| *limit > 0);
    let bytes = MOST_BYTES.min(payload / 2).min(limit.unwrap_or(usize::MAX) / 2);
    Group { events: MOST_EVENTS, bytes, size: record::most_bytes }
}

impl Slot {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingAppend>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same error for the next one whom it concerns.
fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.message()).at(|place| *place = error.place().clone())
}
