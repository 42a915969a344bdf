//! The part without IO against a store that fails, loses answers, does late what it did not
//! acknowledge, shows an old state, and is written by others.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    AppendReceipt, EventId, Expected, Memory, NewEvent, Replay, Retries, SessionName,
    append::{AppendLogic, Entry, Group, StoredEvent},
    load::LoadLogic,
    machine::RetriedRequest,
    request::{Append, Failure, Machine, Request, Response, Step},
    save::{PendingSnapshot, SaveLogic},
    store::Store,
    tail::Tail,
};
use crate::{Error, ErrorKind, Millis, Result};

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    /// It is not done.
    NotDone,
    /// It is done, and nobody hears of it.
    Unheard,
    /// It is not done, nobody knows that, and it is done after some more requests.
    Late(usize),
    /// A page ends too early.
    Short,
    /// Another writer appends first.
    Overtaken,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        6 => Just(Trouble::None),
        1 => Just(Trouble::NotDone),
        2 => Just(Trouble::Unheard),
        2 => (1..6_usize).prop_map(Trouble::Late),
        1 => Just(Trouble::Short),
        1 => Just(Trouble::Overtaken),
    ]
}

struct Flaky {
    memory: Memory,
    troubles: VecDeque<Trouble>,
    late: Vec<(usize, Arc<Append>)>,
    others: u64,
}

impl Flaky {
    fn perform(&mut self, session: &SessionName, request: Request) -> Response {
        for (left, _) in &mut self.late {
            *left -= 1;
        }
        let due: Vec<_> = self.late.extract_if(.., |(left, _)| *left == 0).collect();
        for (_, append) in due {
            // What was sent for a place that is taken by now is refused, and nobody hears of that.
            Store::perform(&mut self.memory, session, Request::Append(append));
        }
        let failed = || Error::new(ErrorKind::Io, "trouble");
        let took = Duration::from_millis(1);
        match (self.troubles.pop_front().unwrap_or(Trouble::None), request) {
            (Trouble::NotDone, _) => Response::Failed(Failure::Transient { error: failed(), took }),
            (Trouble::Unheard, request) => {
                Store::perform(&mut self.memory, session, request);
                Response::Failed(Failure::Ambiguous { error: failed(), took })
            }
            (Trouble::Late(after), Request::Append(append)) => {
                self.late.push((after, append));
                Response::Failed(Failure::Ambiguous { error: failed(), took })
            }
            (Trouble::Short, Request::Events { from, most }) => {
                let request = Request::Events { from, most };
                match Store::perform(&mut self.memory, session, request) {
                    Response::Events(mut page) => {
                        page.events.pop();
                        page.is_end = true;
                        Response::Events(page)
                    }
                    response => response,
                }
            }
            (Trouble::Overtaken, request) => {
                self.overtake(session);
                Store::perform(&mut self.memory, session, request)
            }
            (_, request) => Store::perform(&mut self.memory, session, request),
        }
    }

    fn overtake(&mut self, session: &SessionName) {
        self.others += 1;
        let new = event(&format!("other {}", self.others));
        let mut logic = AppendLogic::one(None, Entry::new(new, Expected::Any, NOW), 4);
        let mut machine = RetriedRequest::new(&mut logic, session, Retries::default(), "append");
        super::store::drive(&mut self.memory, session, &mut machine).unwrap();
    }

    fn run<M: Machine>(&mut self, session: &SessionName, machine: &mut M) -> M::Output {
        loop {
            match machine.step() {
                Step::Done(output) => return output,
                Step::Do(Request::Wait(_)) => machine.take(Response::Done),
                Step::Do(request) => {
                    let response = self.perform(session, request);
                    machine.take(response);
                }
            }
        }
    }
}

const NOW: Millis = Millis::new(0);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ids(Vec<String>);

impl Replay for Ids {
    type Event = String;
    const SCHEMA: u32 = 1;

    fn kind(_: &String) -> &'static str {
        "id"
    }

    fn knows(kind: &str) -> bool {
        kind == "id"
    }

    fn apply(&mut self, _: u64, id: &String) -> Result<()> {
        self.0.push(id.clone());
        Ok(())
    }
}

fn event(id: &str) -> NewEvent {
    let body = serde_json::to_vec(id).unwrap();
    NewEvent::new(EventId::new(id).unwrap(), "id", body).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(512)))]

    #[test]
    fn nothing_is_lost_or_doubled_and_no_part_of_a_state_is_loaded(
        troubles in proptest::collection::vec(trouble(), 0..60),
        restarts in proptest::collection::vec(any::<bool>(), 12),
        attempts in 2..6_u32,
    ) {
        let session = session();
        let retries = Retries { attempts, ..Retries::default() };
        let mut store = Flaky { memory: Memory::new(), troubles: troubles.into(), late: Vec::new(), others: 0 };
        let mut tail: Option<Tail> = None;
        let mut acknowledged: Vec<(u64, String)> = Vec::new();
        for (n, restart) in restarts.into_iter().enumerate() {
            let id = format!("mine {n}");
            if restart {
                tail = None;
            }
            // As a process does that is started again until the step is done.
            let landed = loop {
                let mut logic = AppendLogic::one(tail.take(), Entry::new(event(&id), Expected::Any, NOW), 64);
                let mut machine = RetriedRequest::new(&mut logic, &session, retries, "append");
                let result = store.run(&session, &mut machine);
                match logic.into_outcome(result, &session) {
                    (Ok(landed), end) => {
                        tail = end;
                        break landed;
                    }
                    (Err(error), _) => prop_assert_eq!(error.kind(), ErrorKind::Unavailable),
                }
            };
            acknowledged.push((landed.appended.sequence, id));
            if n % 4 == 3 && let Ok(loaded) = load(&mut store, &session, retries) {
                let taken = PendingSnapshot::of(&loaded.state, loaded.sequence, NOW).unwrap();
                let logic = SaveLogic::new(&session, taken, 1);
                let mut machine = RetriedRequest::new(logic, &session, retries, "save");
                // It may fail, and nothing depends on it.
                let _ = store.run(&session, &mut machine);
            }
            match load(&mut store, &session, retries) {
                Ok(loaded) => {
                    for (sequence, id) in &acknowledged {
                        let at = usize::try_from(*sequence).unwrap() - 1;
                        prop_assert_eq!(loaded.state.0.get(at), Some(id));
                    }
                    let mut once = loaded.state.0.clone();
                    once.sort();
                    once.dedup();
                    prop_assert_eq!(once.len(), loaded.state.0.len());
                }
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Unavailable),
            }
        }
    }

    #[test]
    fn events_that_go_together_are_each_there_once_where_their_caller_was_told(
        troubles in proptest::collection::vec(trouble(), 0..60),
        // Ids may come twice, among those that go together too.
        groups in proptest::collection::vec(proptest::collection::vec((0..40_u64, any::<bool>()), 1..9), 1..8),
        most in 1..6_usize,
    ) {
        let session = session();
        let mut store = Flaky { memory: Memory::new(), troubles: troubles.into(), late: Vec::new(), others: 0 };
        let (mut tail, mut told): (Option<Tail>, Vec<(u64, String)>) = (None, Vec::new());
        for group in groups {
            let mut next = tail.as_ref().map_or(0, Tail::sequence);
            let entries: Vec<Entry> = group.iter().map(|(id, any)| {
                let expected = if *any { Expected::Any } else { Expected::Last(next) };
                next += 1;
                Entry::new(event(&format!("mine {id}")), expected, NOW)
            }).collect();
            let limits = Group { events: most, bytes: 4, size: |_| 1 };
            let mut logic = AppendLogic::new(tail.take(), entries, limits, 64);
            let mut machine = RetriedRequest::new(&mut logic, &session, Retries::default(), "append");
            let result = store.run(&session, &mut machine);
            let (fates, end) = logic.take_parts(&session);
            tail = end.filter(|_| result.is_ok());
            for ((id, any), fate) in group.iter().zip(fates) {
                match fate.outcome {
                    Some(Ok(landed)) => {
                        told.push((landed.appended.sequence, format!("mine {id}")));
                    }
                    Some(Err(error)) => {
                        prop_assert_eq!(error.kind(), ErrorKind::Conflict);
                        prop_assert!(!any);
                    }
                    None => prop_assert!(result.is_err()),
                }
            }
            if let Ok(loaded) = load(&mut store, &session, Retries::default()) {
                for (sequence, id) in &told {
                    let at = usize::try_from(*sequence).unwrap() - 1;
                    prop_assert_eq!(loaded.state.0.get(at), Some(id));
                }
                let mut once = loaded.state.0.clone();
                once.sort();
                once.dedup();
                prop_assert_eq!(once.len(), loaded.state.0.len());
            }
        }
    }

    #[test]
    fn for_each_sequence_one_writer_succeeds_and_the_other_gets_its_conflict(
        troubles in proptest::collection::vec(trouble(), 0..40),
        turns in proptest::collection::vec(0..3_usize, 0..30),
    ) {
        let session = session();
        let mut store = Flaky { memory: Memory::new(), troubles: troubles.into(), late: Vec::new(), others: 0 };
        let mut writers: Vec<(Option<Tail>, u64, u64)> = vec![(None, 0, 0); 3];
        let mut winners: Vec<(u64, String)> = Vec::new();
        for turn in turns {
            let (tail, last, n) = &mut writers[turn];
            let id = format!("{turn} {n}");
            let mut logic = AppendLogic::one(tail.take(), Entry::new(event(&id), Expected::Last(*last), NOW), 64);
            let mut machine = RetriedRequest::new(&mut logic, &session, Retries::default(), "append");
            let result = store.run(&session, &mut machine);
            let (outcome, end) = logic.into_outcome(result, &session);
            *tail = end;
            match outcome {
                Ok(StoredEvent { appended: AppendReceipt { sequence, .. }, .. }) => {
                    prop_assert_eq!(sequence, *last + 1);
                    prop_assert!(winners.iter().all(|(won, _)| *won != sequence));
                    winners.push((sequence, id));
                    *last = sequence;
                    *n += 1;
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let actual = error.place().event.unwrap();
                    prop_assert!(actual > *last);
                    *last = actual;
                    *n += 1;
                }
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Unavailable),
            }
        }
        if let Ok(loaded) = load(&mut store, &session, Retries::default()) {
            for (sequence, id) in &winners {
                let at = usize::try_from(*sequence).unwrap() - 1;
                prop_assert_eq!(loaded.state.0.get(at), Some(id));
            }
        }
    }
}

fn load(
    store: &mut Flaky,
    session: &SessionName,
    retries: Retries,
) -> Result<super::LoadedState<Ids>> {
    let logic = LoadLogic::<Ids>::new(session.clone());
    Ok(store.run(session, &mut RetriedRequest::new(logic, session, retries, "load"))?.0)
}

fn session() -> SessionName {
    SessionName::new("a").unwrap()
}

/// A store that can be read, and of which nobody knows what it does with an event.
fn unsure(request: Request, memory: &mut Memory, appends: &mut u32) -> Response {
    if matches!(request, Request::Append(_)) {
        *appends += 1;
        let error = Error::new(ErrorKind::Io, "no answer");
        return Response::Failed(Failure::Ambiguous { error, took: Duration::ZERO });
    }
    Store::perform(memory, &session(), request)
}

#[test]
fn attempts_are_counted_although_a_look_between_them_works() {
    let retries = Retries { attempts: 5, ..Retries::default() };
    let mut logic = AppendLogic::one(None, Entry::new(event("a"), Expected::Any, NOW), 4);
    let mut machine = RetriedRequest::new(&mut logic, &session(), retries, "append");
    let (mut memory, mut appends, mut waits) = (Memory::new(), 0, Vec::new());
    let error = loop {
        match machine.step() {
            Step::Done(output) => break output.unwrap_err(),
            Step::Do(Request::Wait(time)) => {
                waits.push(time.as_millis());
                machine.take(Response::Done);
            }
            Step::Do(request) => machine.take(unsure(request, &mut memory, &mut appends)),
        }
    };
    assert_eq!((appends, waits), (5, vec![50, 100, 200, 400]));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("5 failed attempts in 0.8 s"), "{error}");
    assert!(error.message().ends_with("it may have taken effect, so try again with the same id"));
}

#[test]
fn a_refusal_after_an_attempt_that_nobody_knows_of_says_so() {
    let mut logic = AppendLogic::one(None, Entry::new(event("a"), Expected::Any, NOW), 4);
    let mut machine = RetriedRequest::new(&mut logic, &session(), Retries::default(), "append");
    let (mut memory, mut appends) = (Memory::new(), 0);
    loop {
        match machine.step() {
            Step::Done(output) => break output.unwrap(),
            Step::Do(Request::Wait(_)) => machine.take(Response::Done),
            Step::Do(Request::Append(_)) if appends == 1 => {
                machine.take(Response::Rejected(Error::new(ErrorKind::Io, "full")));
            }
            Step::Do(request) => machine.take(unsure(request, &mut memory, &mut appends)),
        }
    }
    let (outcome, _) = logic.into_outcome(Ok(()), &session());
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(
        error.message().starts_with("full; an earlier attempt may have taken effect"),
        "{error}"
    );
}

#[test]
fn a_snapshot_that_is_newer_than_the_head_belongs_to_a_later_head() {
    let mut store =
        Flaky { memory: Memory::new(), troubles: VecDeque::new(), late: Vec::new(), others: 0 };
    store.overtake(&session());
    let logic = LoadLogic::<Ids>::new(session());
    let session = session();
    let mut machine = RetriedRequest::new(logic, &session, Retries::default(), "load");
    let mut is_first = true;
    let (loaded, _) = loop {
        match machine.step() {
            Step::Done(output) => break output.unwrap(),
            Step::Do(request) => {
                if matches!(request, Request::Snapshot { .. }) && std::mem::take(&mut is_first) {
                    store.overtake(&session);
                    let all = Ids(vec!["other 1".to_owned(), "other 2".to_owned()]);
                    let taken = PendingSnapshot::of(&all, 2, NOW).unwrap();
                    let logic = SaveLogic::new(&session, taken, 1);
                    let mut machine =
                        RetriedRequest::new(logic, &session, Retries::default(), "save");
                    store.run(&session, &mut machine).unwrap();
                }
                machine.take(store.perform(&session, request));
            }
        }
    };
    assert_eq!((loaded.sequence, loaded.report.events), (2, 0));
    assert_eq!(loaded.report.skipped_snapshots, []);
    assert_eq!(loaded.state, Ids(vec!["other 1".to_owned(), "other 2".to_owned()]));
}

/// More events of others than ids are remembered, between an attempt and the look for it.
#[test]
fn an_event_is_found_where_it_was_tried_however_many_came_after_it() {
    let session = session();
    for expected in [Expected::Any, Expected::Last(1)] {
        for is_reopened in [false, true] {
            let troubles = VecDeque::new();
            let mut store = Flaky { memory: Memory::new(), troubles, late: Vec::new(), others: 0 };
            store.overtake(&session);
            let mut entry = Entry::new(event("mine"), expected, NOW);
            let mut is_first = true;
            let (mut fates, mut tries) = (Vec::new(), 0);
            while fates.is_empty() {
                let mut logic = AppendLogic::new(None, vec![entry.clone()], Group::ALONE, 4);
                let mut machine =
                    RetriedRequest::new(&mut logic, &session, Retries::default(), "append");
                loop {
                    match machine.step() {
                        Step::Done(result) => {
                            result.unwrap();
                            fates = logic.take_parts(&session).0;
                            break;
                        }
                        Step::Do(request) => {
                            let is_append = matches!(request, Request::Append(_));
                            let answer = store.perform(&session, request);
                            if !(is_append && std::mem::take(&mut is_first)) {
                                machine.take(answer);
                                continue;
                            }
                            (0..20).for_each(|_| store.overtake(&session));
                            if is_reopened {
                                // Who waited for the answer was dropped, and somebody goes on.
                                entry = logic.take_parts(&session).0.remove(0).entry;
                                break;
                            }
                            let (error, took) =
                                (Error::new(ErrorKind::Io, "no answer"), Duration::ZERO);
                            machine.take(Response::Failed(Failure::Ambiguous { error, took }));
                        }
                    }
                }
                tries += 1;
                assert!(tries < 3);
            }
            let landed = fates.remove(0).outcome.unwrap().unwrap();
            let there = AppendReceipt { sequence: 2, was_there: false };
            assert_eq!(landed.appended, there, "{expected:?} {is_reopened}");
            assert_eq!(load(&mut store, &session, Retries::default()).unwrap().sequence, 22);
        }
    }
}

/// Appends events with these ids, as a process does that has just been started, and says which of
/// them were there. Counts the events that it read on the way.
fn restarted(store: &mut Flaky, ids: impl IntoIterator<Item = u64>) -> (Vec<bool>, usize) {
    let session = session();
    let (mut tail, mut were_there, mut read) = (None, Vec::new(), 0);
    for id in ids {
        let entry = Entry::new(event(&format!("mine {id}")), Expected::Any, NOW);
        let mut logic = AppendLogic::one(tail.take(), entry, usize::MAX);
        let mut machine = RetriedRequest::new(&mut logic, &session, Retries::default(), "append");
        let result = loop {
            match machine.step() {
                Step::Done(output) => break output,
                Step::Do(Request::Wait(_)) => machine.take(Response::Done),
                Step::Do(request) => {
                    let response = store.perform(&session, request);
                    if let Response::Events(page) = &response {
                        read += page.events.len();
                    }
                    machine.take(response);
                }
            }
        };
        let (outcome, end) = logic.into_outcome(result, &session);
        were_there.push(outcome.unwrap().appended.was_there);
        tail = end;
    }
    (were_there, read)
}

fn quiet() -> Flaky {
    Flaky { memory: Memory::new(), troubles: VecDeque::new(), late: Vec::new(), others: 0 }
}

#[test]
fn ids_are_read_from_events_once_and_then_from_where_they_are_kept() {
    let mut store = quiet();
    restarted(&mut store, 0..50);
    let (were_there, read) = restarted(&mut store, (0..50).rev());
    assert_eq!((were_there, read), (vec![true; 50], 50));
    // The newest event is read, which proves that the ids are those of this log.
    assert_eq!(restarted(&mut store, 0..52), ([vec![true; 50], vec![false; 2]].concat(), 1));
    assert_eq!(restarted(&mut store, 0..52), (vec![true; 52], 3));
}

#[test]
fn ids_that_are_kept_of_a_log_that_lost_its_end_and_grew_again_are_not_taken_for_its_own() {
    for left in (0..30).step_by(3) {
        for grown in (0..30).step_by(4) {
            let mut store = quiet();
            restarted(&mut store, 0..25);
            restarted(&mut store, [0]);
            store.memory.retain_events(&session(), |sequence| sequence <= left);
            restarted(&mut store, 100..100 + grown);
            let there = |id: &u64| *id < left.min(25);
            let expected: Vec<bool> = (0..25).map(|id| there(&id)).collect();
            assert_eq!(restarted(&mut store, 0..25).0, expected, "{left} {grown}");
        }
    }
}

#[test]
fn a_session_that_was_removed_and_begun_again_knows_none_of_its_old_ids() {
    let mut store = quiet();
    restarted(&mut store, 0..25);
    restarted(&mut store, [0]);
    store.perform(&session(), Request::Delete);
    assert_eq!(restarted(&mut store, 0..25).0, vec![false; 25]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(256)))]

    #[test]
    fn writers_that_walk_all_their_steps_again_and_again_double_none(
        troubles in proptest::collection::vec(trouble(), 0..80),
        walks in proptest::collection::vec(0..40_u64, 1..6),
    ) {
        let mut store = Flaky { troubles: troubles.into(), ..quiet() };
        let session = session();
        for steps in walks {
            let mut tail: Option<Tail> = None;
            let mut step = 0;
            while step < steps {
                let entry = Entry::new(event(&format!("mine {step}")), Expected::Any, NOW);
                let mut logic = AppendLogic::one(tail.take(), entry, usize::MAX);
                let mut machine = RetriedRequest::new(&mut logic, &session, Retries::default(), "append");
                let result = store.run(&session, &mut machine);
                let (outcome, end) = logic.into_outcome(result, &session);
                tail = end;
                step = if outcome.is_ok() { step + 1 } else { 0 };
            }
        }
        store.troubles.clear();
        let loaded = load(&mut store, &session, Retries::default()).unwrap();
        let mut once = loaded.state.0.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), loaded.state.0.len());
    }
}
