//! Appends that wait for each other go together.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::{Either, select};
use tokio::sync::{Mutex as Turn, oneshot};

use super::{NatsJournal, connect::Connection};
use crate::{
    Error, Result,
    journal::{
        Appended, SessionName,
        append::{AppendLogic, Entry, Group},
        record,
        tail::Tail,
    },
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
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    entry: Entry,
    answer: oneshot::Sender<Result<Appended>>,
}

impl NatsJournal {
    /// Appends one event, by itself or with others.
    pub(super) async fn append_entry(
        &self,
        slot: &Arc<Slot>,
        session: &SessionName,
        mut entry: Entry,
    ) -> Result<Appended> {
        loop {
            let (answer, mut answered) = oneshot::channel();
            slot.waiting().push(Waiting { entry: entry.clone(), answer });
            match select(&mut answered, pin!(slot.tail.lock())).await {
                Either::Left((Ok(result), _)) => return result,
                // Whoever appended it was dropped on the way.
                Either::Left((Err(_), _)) => entry.was_tried = true,
                Either::Right((mut tail, _)) => {
                    self.append_waiting(slot, session, &mut tail).await;
                    if let Ok(result) = answered.try_recv() {
                        return result;
                    }
                    entry.was_tried = true;
                }
            }
        }
    }

    async fn append_waiting(&self, slot: &Slot, session: &SessionName, tail: &mut Option<Tail>) {
        let waiting = std::mem::take(&mut *slot.waiting());
        let waiting: Vec<Waiting> =
            waiting.into_iter().filter(|waiting| !waiting.answer.is_closed()).collect();
        let entries: Vec<Entry> = waiting.iter().map(|waiting| waiting.entry.clone()).collect();
        // Where this future is dropped, the end is to be learnt anew: what it holds then is unknown.
        let known = tail.take();
        let window = self.options.journal.known_ids;
        let logic = AppendLogic::new(known, entries, self.group, window);
        let (result, logic) = self.run(logic, session, "append an event").await;
        let (outcomes, end) = logic.into_parts(session);
        // After a failure nothing is known of the end.
        *tail = end.filter(|_| result.is_ok());
        let mut failure = result.err();
        for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
            let outcome = outcome.or_else(|| {
                let error = failure.take()?;
                failure = Some(again(&error));
                Some(Err(error))
            });
            if let Some(outcome) = outcome {
                // Who has gone meanwhile does not want to know.
                let _ = waiting.answer.send(outcome);
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
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same error for the next one whom it concerns.
fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.message()).at(|place| *place = error.place().clone())
}
