use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Event, SessionName,
    id_parts::Part,
    request::{
        Append, Head, Page, Position, PositionedEvent, Request, Response, StoredSnapshot, Writing,
    },
    snapshot,
    store::Store,
};
use crate::Result;

/// Sessions in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Sessions>>);

#[derive(Debug, Default)]
struct Sessions {
    by_name: BTreeMap<SessionName, Session>,
    created: u64,
    /// The newest position, of all sessions that there ever were.
    position: Position,
}

#[derive(Debug)]
struct Session {
    life: Arc<str>,
    events: Vec<PositionedEvent>,
    /// The newest last.
    snapshots: Vec<Arc<[u8]>>,
    /// The ids of the events, in parts.
    ids: BTreeMap<u64, Arc<[u8]>>,
}

impl Memory {
    /// No sessions.
    pub fn new() -> Self {
        Self::default()
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the newest snapshot; for tests of what becomes of damage.
    #[doc(hidden)]
    pub fn change_snapshot(&self, session: &SessionName, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(session) = self.sessions().by_name.get_mut(session)
            && let Some(last) = session.snapshots.last_mut()
        {
            let mut bytes = last.to_vec();
            change(&mut bytes);
            *last = bytes.into();
        }
    }

    /// Takes events away; for tests of what becomes of a log that is not whole.
    #[doc(hidden)]
    pub fn retain_events(&self, session: &SessionName, keep: impl Fn(u64) -> bool) {
        if let Some(session) = self.sessions().by_name.get_mut(session) {
            session.events.retain(|placed| keep(placed.event.sequence));
        }
    }
}

impl Sessions {
    fn append(&mut self, session: &SessionName, append: &Append) -> Response {
        let (created, position) = (&mut self.created, &mut self.position);
        let session = self.by_name.entry(session.clone()).or_insert_with(|| {
            *created += 1;
            let life = created.to_string().into();
            Session { life, events: Vec::new(), snapshots: Vec::new(), ids: BTreeMap::new() }
        });
        if session.events.last().map_or(0, |last| last.position) != append.after {
            return Response::Refused;
        }
        for (sequence, writing) in append.numbered() {
            *position += 1;
            let event = writing.to_event(sequence);
            session.events.push(PositionedEvent { position: *position, event });
        }
        Response::AppendReceipt { last: *position, life: Some(Arc::clone(&session.life)) }
    }

    fn put_snapshot(&mut self, name: &SessionName, bytes: Arc<[u8]>, keep: usize) -> Response {
        let Some(session) = self.by_name.get_mut(name) else { return Response::Done };
        let last = session.events.last().map_or(0, |last| last.position);
        let newest = session.snapshots.last();
        if let Some(newer) = newest.and_then(|newest| snapshot::standing(newest, &bytes, last)) {
            return Response::Stands(newer);
        }
        session.snapshots.push(bytes);
        let old = session.snapshots.len().saturating_sub(keep);
        session.snapshots.drain(..old);
        Response::Done
    }
}

impl Session {
    fn head(&self) -> Head {
        let last = self.events.last().map(PositionedEvent::mark);
        let ceiling = last.as_ref().map_or(0, |last| last.position);
        let reached = last.as_ref().map_or(0, |last| last.sequence);
        Head { life: Arc::clone(&self.life), last, floor: 0, ceiling, reached }
    }

    fn page(&self, from: Position, most: usize) -> Page {
        let start = self.events.partition_point(|event| event.position < from);
        let events: Vec<PositionedEvent> =
            self.events.iter().skip(start).take(most).cloned().collect();
        let is_end = start + events.len() == self.events.len();
        Page { events, is_end }
    }

    fn snapshot(&self, age: usize) -> Option<StoredSnapshot> {
        self.snapshots.iter().rev().nth(age).map(|bytes| StoredSnapshot::Bytes(bytes.to_vec()))
    }
}

impl Writing {
    fn to_event(&self, sequence: u64) -> Event {
        Event {
            sequence,
            id: self.event.id.clone(),
            kind: Arc::clone(&self.event.kind),
            recorded_at: self.recorded_at,
            body: self.event.body.to_vec(),
        }
    }
}

impl Store for Memory {
    fn perform(&mut self, name: &SessionName, request: Request) -> Response {
        let mut sessions = Memory::sessions(self);
        let session = sessions.by_name.get(name);
        match request {
            Request::Head => Response::Head(session.map_or_else(Head::empty, Session::head)),
            Request::Events { from, most, .. } => Response::Events(
                session.map_or(Page { events: Vec::new(), is_end: true }, |session| {
                    session.page(from, most)
                }),
            ),
            Request::Append(append) => sessions.append(name, &append),
            Request::Snapshot { age } => {
                Response::Snapshot(session.and_then(|session| session.snapshot(age)))
            }
            Request::PutSnapshot { bytes, keep } => sessions.put_snapshot(name, bytes, keep),
            Request::Ids { part } => {
                Response::Ids(session.and_then(|session| Some(session.ids.get(&part)?.to_vec())))
            }
            Request::PutIds(Part { number, bytes }) => {
                if let Some(session) = sessions.by_name.get_mut(name) {
                    session.ids.insert(number, bytes);
                }
                Response::Done
            }
            Request::Delete => {
                sessions.by_name.remove(name);
                Response::Done
            }
            Request::Wait(_) => Response::Done,
        }
    }

    fn sessions(&mut self) -> Result<Vec<SessionName>> {
        let sessions = Memory::sessions(self);
        let with_events = sessions.by_name.iter().filter(|(_, session)| !session.events.is_empty());
        Ok(with_events.map(|(name, _)| name.clone()).collect())
    }
}
