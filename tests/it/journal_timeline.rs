//! A world state that replays from a journal is the one that the turns led to.
#![allow(clippy::unwrap_used)]

use afterimage_testkit::data;

use std::path::Path;

use afterimage::{
    ErrorKind,
    id::Millis,
    journal::{
        self, EventId, Expected, Journal, JournalOptions, Memory, NewEvent, Replay, SessionName,
        SnapshotPolicy,
    },
    log::{DiskFiles, Holder},
    session::bridge::ReplayedTimeline,
    timeline::{self, Data, Delta, Event, Timeline, TurnRecord, session::read_recorded},
};
use data::recordings;
use proptest::prelude::*;

const NOW: Millis = Millis::new(0);

/// The id of a turn of one writer among others.
fn id(writer: &str, turn: &TurnRecord) -> EventId {
    EventId::new(format!("{writer} {}", turn.turn_id)).unwrap()
}

fn append(journal: &mut Journal, session: &SessionName, turn: &TurnRecord) {
    let new = NewEvent::new(id("test", turn), "turn", serde_json::to_vec(turn).unwrap()).unwrap();
    journal.append(session, Expected::Last(turn.turn_id - 1), new, NOW).unwrap();
}

/// The turns of a session as a journal holds them.
fn turns(journal: &mut Journal, session: &SessionName) -> Vec<TurnRecord> {
    let events = journal.read(session, 1, usize::MAX).unwrap();
    events.iter().map(|event| ReplayedTimeline::turn(event).unwrap()).collect()
}

fn moved(zone: &str) -> TurnRecord {
    let event = Event::new("move", Data::from_iter([("zone", Data::from(zone))]));
    TurnRecord::new("player").with_event(event)
}

/// Everything that was recorded, told again from an empty world.
#[test]
fn recorded_turns_lead_to_the_same_state_by_a_snapshot_and_without() {
    let Some(folder) = recordings("E-state/llmrpg") else { return };
    let mut directories: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    directories.sort_by_key(std::fs::DirEntry::path);
    let mut told = 0;
    for directory in directories {
        told += check_recorded(&directory.path());
    }
    eprintln!("{told} turns");
}

fn check_recorded(directory: &Path) -> u64 {
    let Ok(recorded) = read_recorded(&DiskFiles, directory) else { return 0 };
    let session = SessionName::new("recorded").unwrap();
    let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
    let mut timeline = ReplayedTimeline::timeline(session.as_str(), [], true).unwrap();
    let last = recorded.timeline.last_turn();
    for turn in 1..=last {
        let mut record = (*recorded.timeline.turn(turn).unwrap()).clone();
        record.session_id.clear();
        let pushed = timeline.push(record).unwrap();
        append(&mut journal, &session, &pushed.record);
        if turn == last / 2 {
            let half = ReplayedTimeline::of(&timeline);
            journal.write_snapshot(&session, &half, turn, NOW).unwrap();
        }
    }
    let loaded = journal.load::<ReplayedTimeline>(&session).unwrap();
    assert_eq!(loaded.state, ReplayedTimeline::of(&timeline), "{}", directory.display());
    let whole = turns(&mut journal, &session);
    let again = ReplayedTimeline::timeline(session.as_str(), whole, false).unwrap();
    assert_eq!(again.state(), timeline.state());
    last
}

#[derive(Clone, Debug)]
enum Move {
    To(String),
    Gain(String),
    Undo(u64),
    Snapshot,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => "[a-z]{1,4}".prop_map(Move::To),
        4 => "[a-z]{1,4}".prop_map(Move::Gain),
        1 => (0_u64..40).prop_map(Move::Undo),
        1 => Just(Move::Snapshot),
    ];
    proptest::collection::vec(one, 0..40)
}

fn taken(timeline: &mut Timeline, step: &Move) -> Option<TurnRecord> {
    let pushed = match step {
        Move::To(zone) => timeline.push(moved(zone)),
        Move::Gain(item) => {
            let event =
                Event::new("item_gain", Data::from_iter([("item", Data::from(item.as_str()))]));
            timeline.push(TurnRecord::new("player").with_event(event))
        }
        Move::Undo(to) => timeline.undo(to % (timeline.last_turn() + 1), NOW),
        Move::Snapshot => return None,
    };
    pushed.ok().map(|pushed| (*pushed.record).clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(64)))]

    #[test]
    fn same_state_by_snapshot_by_replay_and_as_a_timeline(moves in moves()) {
        let folder = tempfile::tempdir().unwrap();
        let holder = Holder::new("test");
        let options = JournalOptions::default();
        let session = SessionName::new("../tale").unwrap();
        let mut journal = Journal::open(folder.path(), &holder, options.clone()).unwrap();
        let mut timeline = ReplayedTimeline::timeline(session.as_str(), [], false).unwrap();
        for step in &moves {
            if let Some(turn) = taken(&mut timeline, step) {
                append(&mut journal, &session, &turn);
            } else if matches!(step, Move::Snapshot) {
                let (state, last) = (ReplayedTimeline::of(&timeline), timeline.last_turn());
                // Before the first turn there is nothing to take one of.
                prop_assert_eq!(journal.write_snapshot(&session, &state, last, NOW).is_ok(), last > 0);
            }
        }
        drop(journal);
        let mut journal = Journal::open(folder.path(), &holder, options.clone()).unwrap();
        let loaded = journal.load::<ReplayedTimeline>(&session).unwrap();
        prop_assert_eq!(loaded.state.state(), timeline.state());
        prop_assert_eq!(loaded.state.last_turn(), timeline.last_turn());
        let again = turns(&mut journal, &session);
        let again = ReplayedTimeline::timeline(session.as_str(), again, false).unwrap();
        for turn in 0..=timeline.last_turn() {
            prop_assert_eq!(again.state_at(turn).unwrap(), timeline.state_at(turn).unwrap());
        }
    }
}

#[test]
fn a_turn_that_does_not_follow_or_does_not_fit_is_not_appended() {
    let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
    let session = SessionName::new("tale").unwrap();
    let policy = SnapshotPolicy::IterationEnd;
    let (mut live, _) = journal.live::<ReplayedTimeline>(&session, policy).unwrap();
    let mut timeline = ReplayedTimeline::timeline("tale", [], false).unwrap();
    let first = (*timeline.push(moved("gate")).unwrap().record).clone();
    let second = (*timeline.push(moved("inn")).unwrap().record).clone();
    let id = |turn| id("test", turn);
    let early = journal.record(&mut live, id(&second), &second, NOW).unwrap_err();
    assert_eq!((early.kind(), early.place().turn), (journal::ErrorKind::Sequence, None));
    journal.record(&mut live, id(&first), &first, NOW).unwrap();
    let mut strange = first.clone();
    strange.turn_id = 2;
    strange.deltas.iter_mut().for_each(|delta| {
        delta.previous_value = Some(Data::from("the moon"));
        delta.new_value = Some(Data::from("mars"));
    });
    let drifted = journal.record(&mut live, id(&strange), &strange, NOW).unwrap_err();
    assert_eq!((drifted.kind(), drifted.place().turn), (journal::ErrorKind::Refused, Some(2)));
    journal.record(&mut live, id(&second), &second, NOW).unwrap();
    assert_eq!(live.state().state(), timeline.state());
    assert_eq!(journal.read(&session, 1, 9).unwrap().len(), 2);
    assert!(!ReplayedTimeline::knows("frame"));
}

/// The ids are the writers': turns that are equal to the last byte are there for each of them.
#[test]
fn equal_turns_of_two_writers_are_both_there() {
    let memory = Memory::new();
    let session = SessionName::new("tale").unwrap();
    let policy = SnapshotPolicy::IterationEnd;
    let started = || {
        let mut journal = Journal::in_memory(&memory, JournalOptions::default());
        let (live, _) = journal.live::<ReplayedTimeline>(&session, policy).unwrap();
        (journal, live)
    };
    let event = Event::new("item_gain", Data::from_iter([("item", Data::from("coin"))]));
    let gained = TurnRecord::new("player").with_event(event);
    for (writer, (mut journal, mut live)) in [("one", started()), ("two", started())] {
        let mut attempts = 0;
        loop {
            let whole = turns(&mut journal, &session);
            let known = whole.into_iter().take(usize::try_from(live.sequence()).unwrap());
            let mut timeline = ReplayedTimeline::timeline("tale", known, false).unwrap();
            let turn = (*timeline.push(gained.clone()).unwrap().record).clone();
            let step = EventId::new(format!("{writer}'s step 1")).unwrap();
            attempts += 1;
            match journal.record(&mut live, step, &turn, NOW) {
                Ok(recorded) => break assert!(!recorded.appended.was_there),
                Err(error) => assert_eq!(error.kind(), journal::ErrorKind::Conflict),
            }
            journal.catch_up(&mut live).unwrap();
        }
        assert_eq!(attempts, if writer == "one" { 1 } else { 2 });
    }
    let (mut journal, live) = started();
    assert_eq!((live.sequence(), turns(&mut journal, &session).len()), (2, 2));
}

#[test]
fn turns_that_were_recorded_leniently_need_a_timeline_that_is_lenient() {
    let mut writer = ReplayedTimeline::timeline("tale", [], true).unwrap();
    let mut strict = ReplayedTimeline::timeline("tale", [], false).unwrap();
    let first = (*writer.push(moved("gate")).unwrap().record).clone();
    ReplayedTimeline::follow(&mut strict, [first.clone()]).unwrap();
    let from_to = |deltas: &mut Vec<Delta>, from: &str, to: &str| {
        for delta in deltas {
            delta.delta_id.clear();
            delta.turn_id = 0;
            (delta.previous_value, delta.new_value) =
                (Some(Data::from(from)), Some(Data::from(to)));
        }
    };
    let mut strange = first.clone();
    strange.turn_id = 2;
    from_to(&mut strange.deltas, "the moon", "mars");
    let drifted = (*writer.push(strange).unwrap().record).clone();
    assert!(drifted.lenient);
    let refused = ReplayedTimeline::follow(&mut strict, [drifted.clone()]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Timeline(timeline::ErrorKind::Drift));
    assert_eq!(strict.last_turn(), 1);
    let mut whole = ReplayedTimeline::timeline("tale", [first, drifted.clone()], false).unwrap();
    assert_eq!(whole.state(), writer.state());
    // What was recorded as one that fits is still to fit.
    let mut unmarked = drifted;
    (unmarked.turn_id, unmarked.lenient) = (3, false);
    from_to(&mut unmarked.deltas, "the moon", "pluto");
    let refused = ReplayedTimeline::follow(&mut whole, [unmarked]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Timeline(timeline::ErrorKind::Drift));
}
