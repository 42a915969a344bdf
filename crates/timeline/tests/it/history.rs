//! Timelines: the same state by every route, events that become deltas, snapshots that come and go.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::states;

use std::sync::Arc;

use afterimage_json as json;
use afterimage_json::Millis;
use afterimage_json::Path;
use afterimage_timeline::{
    CompressedSnapshot, Data, Delta, DeltaOperation, ErrorKind, Event, LlmContext, Mappers,
    RetentionPlan, SnapshotInfo, SnapshotPolicy, SnapshotReason, StateSnapshot, Targets, Timeline,
    TimelineConfig, TurnRecord, invert,
};
use proptest::prelude::*;
use states::{choice, data, lived, long_history, state};

fn config(interval: u64) -> TimelineConfig {
    TimelineConfig {
        snapshot_interval: interval,
        verify_every_n_turns: 3,
        policy: SnapshotPolicy { max_snapshots: 1_000, ..SnapshotPolicy::default() },
        ..TimelineConfig::default()
    }
}

fn timeline(before: &Data, deltas: &[Delta], interval: u64) -> Timeline {
    let builder = Timeline::builder("s", before.clone()).config(config(interval));
    let mut timeline = builder.build().unwrap();
    for delta in deltas {
        let pushed = timeline.push(TurnRecord::new("a").with_deltas([delta.clone()])).unwrap();
        assert!(pushed.verification.is_none_or(|verification| verification.valid));
    }
    timeline
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(40), ..ProptestConfig::default() })]

    #[test]
    fn same_state(
        before in state(),
        choices in prop::collection::vec(choice(), 1..30),
        interval in 1..100_u64,
        at in any::<prop::sample::Index>(),
    ) {
        let (deltas, states) = lived(&before, &choices);
        // Full replay, every interval up to the length, and one beyond.
        for interval in [0, 1, 2, 3, 7, interval] {
            let timeline = timeline(&before, &deltas, interval);
            for (turn, state) in states.iter().enumerate() {
                prop_assert_eq!(&timeline.state_at(turn as u64).unwrap(), state);
            }
            prop_assert!(timeline.verify().unwrap().valid);
            // Snapshots as differences, in chains.
            let mut base: Option<StateSnapshot> = None;
            for snapshot in timeline.snapshots() {
                if let Some(base) = &base {
                    let small = CompressedSnapshot::of(snapshot, base, 0).unwrap().unwrap();
                    let text = small.to_json().to_string();
                    let small = CompressedSnapshot::from_json(afterimage_json::read(text.as_bytes()).unwrap());
                    let whole = small.unwrap().expand(base).unwrap();
                    prop_assert_eq!(&whole, &**snapshot);
                }
                base = Some((**snapshot).clone());
            }
        }
        // Undone from later, and brought back; and another way from there.
        let mut timeline = timeline(&before, &deltas, interval);
        let last = timeline.last_turn();
        let to = at.index(states.len());
        timeline.undo(to as u64, Millis::default()).unwrap();
        prop_assert_eq!(timeline.state(), &states[to]);
        prop_assert_eq!(timeline.last_turn(), last + 1);
        timeline.undo(0, Millis::default()).unwrap();
        prop_assert_eq!(timeline.state(), &before);
        timeline.redo(Millis::default()).unwrap();
        prop_assert_eq!(timeline.state(), &states[to]);
        timeline.redo(Millis::default()).unwrap();
        prop_assert_eq!(timeline.state(), states.last().unwrap());
        prop_assert_eq!(timeline.redo(Millis::default()).unwrap_err().kind(), ErrorKind::OutOfRange);
        prop_assert!(timeline.verify().unwrap().valid);
        // Turn by turn, by the inverses of the deltas.
        let mut state = states.last().unwrap().clone();
        let targets = Targets::default();
        for turn in (1..states.len()).rev() {
            let record = timeline.turn(turn as u64).unwrap();
            let applier = afterimage_timeline::Applier::strict(&targets);
            applier.apply_all(&mut state, &invert(&record.deltas).unwrap()).unwrap();
            prop_assert_eq!(&state, &states[turn - 1]);
        }
        let mut branch = timeline.branch(to as u64, "other").unwrap();
        prop_assert_eq!(branch.state(), &states[to]);
        for (turn, state) in states.iter().enumerate().take(to + 1) {
            prop_assert_eq!(&branch.state_at(turn as u64).unwrap(), state);
        }
        for delta in deltas.iter().skip(to) {
            branch.push(TurnRecord::new("b").with_deltas([delta.clone()])).unwrap();
        }
        prop_assert_eq!(branch.state(), states.last().unwrap());
        prop_assert!(branch.verify().unwrap().valid);
    }

    #[test]
    fn what_blame_names_made_the_value(
        before in state(),
        choices in prop::collection::vec(choice(), 1..20),
        path in prop::collection::vec("[a-c]|[0-2]", 1..4),
    ) {
        let (deltas, states) = lived(&before, &choices);
        let timeline = timeline(&before, &deltas, 5);
        let path = Path::of_keys(path);
        let value = |turn: usize| states[turn].at(path.elements());
        let changed: Vec<u64> =
            (1..states.len()).filter(|turn| value(*turn) != value(*turn - 1)).map(|turn| turn as u64).collect();
        let found = timeline.changes(&path, timeline.last_turn()).unwrap();
        prop_assert!(found.iter().map(|change| change.turn.turn_id).eq(changed.iter().copied()));
        for change in found {
            let turn = usize::try_from(change.turn.turn_id).unwrap();
            prop_assert_eq!(change.before.as_ref(), value(turn - 1));
            prop_assert_eq!(change.after.as_ref(), value(turn));
        }
        // Where nothing moves, the last change is the one that is named.
        let moves = deltas.iter().any(|delta| delta.previous_length.is_some());
        let blame = timeline.blame(&path, timeline.last_turn()).unwrap();
        if !moves && value(states.len() - 1).is_some() {
            prop_assert_eq!(blame.map(|blame| blame.turn_id), changed.last().copied());
        }
    }
}

#[test]
fn same_state_at_each_snapshot_interval_from_1_to_100() {
    let (before, deltas, states) = long_history();
    for interval in 1..=100 {
        let timeline = timeline(&before, &deltas, interval);
        let snapshots = timeline.snapshots().count();
        assert_eq!(snapshots, 1 + deltas.len() / usize::try_from(interval).unwrap());
        for (turn, state) in states.iter().enumerate() {
            let found = timeline.state_at(turn as u64).unwrap();
            assert_eq!(&found, state, "interval {interval}, turn {turn}");
        }
    }
}

fn world() -> Data {
    data(
        r#"{"player":{"hp":9},"world":{},"scene":{"sceneId":"inn","aspects":[]},"npcs":{"bo":{}},"quests":{},"gameTime":{"day":1}}"#,
    )
}

fn event(event_type: &str, members: &str) -> Event {
    Event::new(event_type, data(members))
}

/// Pushes a turn with one event; what it comes to at a path.
#[track_caller]
fn after(event_type: &str, members: &str, path: &str, expected: &str) -> Timeline {
    let mut timeline = Timeline::builder("s", world()).build().unwrap();
    let pushed =
        timeline.push(TurnRecord::new("p").with_event(event(event_type, members))).unwrap();
    let path = Path::from_pointer(path).unwrap();
    assert_eq!(timeline.state().at(path.elements()), Some(&data(expected)));
    for delta in &pushed.record.deltas {
        assert_eq!((delta.cause.as_str(), delta.event_id.as_str()), (event_type, "s-1-1"));
    }
    timeline
}

#[test]
fn the_events_of_the_document_and_its_world_become_deltas() {
    after("move", r#"{"zone":"temple"}"#, "/player/location", r#"{"zone":"temple"}"#);
    after(
        "move",
        r#"{"zone":"gate","location":"keep"}"#,
        "/player/location",
        r#"{"id":"keep","zone":"gate"}"#,
    );
    after(
        "stress_taken",
        r#"{"target":"player","track":"physical","box":1}"#,
        "/player/stress/physical",
        "[false,true]",
    );
    after(
        "stress_taken",
        r#"{"target":"bo","track":"mental","box":0}"#,
        "/npcs/bo/stress/mental",
        "[true]",
    );
    after(
        "knowledge_gain",
        r#"{"category":"locations","item":"loc-1"}"#,
        "/player/knowledge/locations",
        r#"["loc-1"]"#,
    );
    after(
        "knowledge_gain",
        r#"{"category":"names","item":"x","who":"bo"}"#,
        "/npcs/bo/knowledge/names",
        r#"["x"]"#,
    );
    after(
        "create_advantage",
        r#"{"aspect":{"name":"Smoke","freeInvokes":2}}"#,
        "/scene/aspects",
        r#"[{"name":"Smoke","freeInvokes":2}]"#,
    );
    after("relationship_change", r#"{"npc":"bo","amount":-5}"#, "/npcs/bo/relationship", "-5");
    after("item_gain", r#"{"item":{"id":"rope"}}"#, "/player/inventory", r#"[{"id":"rope"}]"#);
    after(
        "quest_start",
        r#"{"questId":"q","quest":{"status":"open"}}"#,
        "/quests/q/status",
        r#""open""#,
    );
    after("quest_update", r#"{"questId":"q","changes":{"step":2}}"#, "/quests/q", r#"{"step":2}"#);
    after("time_pass", r#"{"amount":15}"#, "/gameTime", r#"{"day":1,"minutes":15}"#);
    after("time_pass", r#"{"changes":{"day":2}}"#, "/gameTime/day", "2");
    after("scene_change", r#"{"scene":{"sceneId":"road"}}"#, "/scene", r#"{"sceneId":"road"}"#);
    let mut fight =
        after("conflict_start", r#"{"conflict":{"with":"bo"}}"#, "/scene/conflict/with", r#""bo""#);
    let end = fight.push(TurnRecord::new("p").with_event(event("conflict_end", "{}"))).unwrap();
    assert_eq!(end.snapshot, Some(SnapshotReason::ConflictEnd));
    assert_eq!(fight.state().get("scene").unwrap().get("conflict"), None);
    let mut smoke = after(
        "create_advantage",
        r#"{"aspect":{"name":"Smoke"}}"#,
        "/scene/aspects/0/name",
        r#""Smoke""#,
    );
    smoke
        .push(TurnRecord::new("p").with_event(event("aspect_removed", r#"{"name":"Smoke"}"#)))
        .unwrap();
    assert_eq!(smoke.state().get("scene").unwrap().get("aspects"), Some(&data("[]")));
    let mut bag = after("item_gain", r#"{"item":"rope"}"#, "/player/inventory", r#"["rope"]"#);
    bag.push(TurnRecord::new("p").with_event(event("item_loss", r#"{"item":"rope"}"#))).unwrap();
    assert_eq!(bag.state().get("player").unwrap().get("inventory"), Some(&data("[]")));
    assert_eq!(Mappers::default().event_types().count(), 20);
}

#[test]
fn what_an_event_lacks_is_said_and_nothing_changes() {
    let mut timeline = Timeline::builder("s", world()).build().unwrap();
    let turn = TurnRecord::new("p").with_event(event("save", "{}")).with_event(event("move", "{}"));
    let error = timeline.push(turn).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a value, found nothing (turn 1, at /events/1/data/zone)"
    );
    assert_eq!((timeline.last_turn(), timeline.state()), (0, &world()));
    let pushed = timeline.push(TurnRecord::new("p").with_event(event("sneeze", "{}"))).unwrap();
    assert_eq!(pushed.unmapped, ["sneeze"]);
}

#[test]
fn each_reason_makes_its_snapshot() {
    let mut timeline = Timeline::builder("s", world()).config(config(5)).build().unwrap();
    let mut push = |event_type: &str, members: &str| {
        let turn = TurnRecord::new("p").with_event(event(event_type, members));
        timeline.push(turn).unwrap().snapshot
    };
    assert_eq!(push("scene_end", "{}"), Some(SnapshotReason::SceneEnd));
    assert_eq!(push("conflict_end", "{}"), Some(SnapshotReason::ConflictEnd));
    assert_eq!(push("quest_complete", r#"{"questId":"q"}"#), Some(SnapshotReason::Milestone));
    assert_eq!(push("save", "{}"), Some(SnapshotReason::Manual));
    assert_eq!(push("other", "{}"), Some(SnapshotReason::Interval));
    assert_eq!(push("session_pause", "{}"), Some(SnapshotReason::SessionEnd));
    assert_eq!(push("other", "{}"), None);
    let reasons: Vec<_> = timeline.snapshots().map(|snapshot| snapshot.reason).collect();
    assert_eq!(reasons[0], SnapshotReason::Initial);
    assert_eq!(reasons.len(), 7);
    assert_eq!(SnapshotReason::ALL.map(SnapshotReason::as_str).len(), 7);
    // Of two snapshots of one turn the later stands.
    timeline.snapshot(SnapshotReason::Manual, Millis::new(0));
    timeline.snapshot(SnapshotReason::Milestone, Millis::new(0));
    let last: Vec<_> = timeline.snapshots().filter(|snapshot| snapshot.turn_id == 7).collect();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].reason, SnapshotReason::Milestone);
    assert_eq!(last[0].delta_range.from_snapshot, "snapshot-6");
}

#[test]
fn a_snapshot_has_every_field_and_its_range_names_real_deltas() {
    let mut timeline = Timeline::builder("abc", world())
        .at(Millis::new(1_732_557_777_531))
        .config(config(2))
        .build()
        .unwrap();
    for amount in 1..=5 {
        let change = format!(r#"{{"npc":"bo","amount":{amount}}}"#);
        timeline
            .push(TurnRecord::new("p").with_event(event("relationship_change", &change)))
            .unwrap();
    }
    let snapshots: Vec<Arc<StateSnapshot>> = timeline.snapshots().cloned().collect();
    assert_eq!(snapshots.iter().map(|s| s.turn_id).collect::<Vec<_>>(), [0, 2, 4]);
    let json = snapshots[2].to_json();
    let text = |path: &str| json.pointer(path).map(ToString::to_string).unwrap_or_default();
    assert_eq!(text("/snapshotId"), "\"snapshot-4\"");
    assert_eq!(text("/sessionId"), "\"abc\"");
    assert_eq!(text("/reason"), "\"interval\"");
    assert_eq!(
        text("/deltaRange"),
        r#"{"fromSnapshot":"snapshot-2","deltaCount":2,"firstDeltaId":"abc-3-1","lastDeltaId":"abc-4-1"}"#
    );
    let sums = json.get("checksums").unwrap().as_object().unwrap();
    assert_eq!(
        sums.keys().collect::<Vec<_>>(),
        ["player", "world", "scene", "npcs", "quests", "gameTime", "combined"]
    );
    assert_eq!(StateSnapshot::from_json(json.clone()).unwrap(), *snapshots[2]);
    assert!(text("/timestamp").starts_with("\"1970-01-01T"));
    assert_eq!(snapshots[0].timestamp, "2024-11-25T18:02:57.531Z");
    assert_eq!(snapshots[0].delta_range.from_snapshot, "initial");
    // A changed state fails the check of its part.
    let changed = json.to_string().replace("\"relationship\":10", "\"relationship\":11");
    let error =
        StateSnapshot::from_json(afterimage_json::read(changed.as_bytes()).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("turn 4 fails its check: npcs"), "{error}");
    // Deltas lead from one snapshot to the next, and nothing less does.
    let deltas =
        [timeline.turn(3).unwrap().deltas.clone(), timeline.turn(4).unwrap().deltas.clone()]
            .concat();
    assert!(snapshots[1].verify_chain(&deltas, &snapshots[2], timeline.targets()).unwrap());
    assert!(!snapshots[1].verify_chain(&deltas[..1], &snapshots[2], timeline.targets()).unwrap());
}

#[test]
fn a_turn_is_filled_in_and_its_wire_form_keeps_everything() {
    let mut timeline = Timeline::builder("abc", world()).build().unwrap();
    let context = LlmContext {
        prompt: "p".into(),
        response: "r".into(),
        seed: Some(7_u64.into()),
        model: "m".into(),
        ..LlmContext::default()
    };
    let mut turn = TurnRecord::new("player")
        .at(Millis::new(5))
        .with_event(event("move", r#"{"zone":"gate"}"#));
    turn.llm_context = Some(context);
    let record = timeline.push(turn).unwrap().record;
    assert_eq!(
        (record.turn_id, record.session_id.as_str(), record.scene_id.as_str()),
        (1, "abc", "inn")
    );
    assert_eq!(record.game_time, data(r#"{"day":1}"#));
    let delta = &record.deltas[0];
    assert_eq!((delta.delta_id.as_str(), delta.turn_id, delta.sequence), ("abc-1-1", 1, 1));
    assert_eq!((delta.timestamp, delta.event_id.as_str()), (Millis::new(5), "abc-1-1"));
    assert_eq!(record.summary.delta_count, 1);
    assert_eq!(record.summary.targets_modified, ["player"]);
    assert_eq!(record.summary.significant_changes, [r#"player /location: create {"zone":"gate"}"#]);
    let text = record.to_json().to_string();
    let again = TurnRecord::from_json(afterimage_json::read(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(again.to_json().to_string(), text);
    // As the document writes a turn: deltas take from the turn what they lack.
    let line = r#"{"turnId":2,"actor":"player","mood":"odd","events":[],"deltas":[{"deltaId":"abc-2-1","target":"player","operation":"set","path":["hp"],"previousValue":9,"newValue":8,"cause":"move"}]}"#;
    let turn = TurnRecord::from_json(afterimage_json::read(line.as_bytes()).unwrap()).unwrap();
    let record = timeline.push(turn).unwrap().record;
    assert_eq!((record.deltas[0].turn_id, record.deltas[0].sequence), (2, 1));
    assert!(record.to_json().to_string().contains("\"mood\":\"odd\""));
}

#[test]
fn a_turn_out_of_sequence_and_a_drifted_delta_change_nothing() {
    let mut timeline = Timeline::builder("abc", world()).build().unwrap();
    let mut turn = TurnRecord::new("player");
    turn.turn_id = 3;
    let error = timeline.push(turn).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Sequence, "expected turn 1, found turn 3".to_owned())
    );
    let delta = |previous: &str, new: &str| {
        Delta::new("player", DeltaOperation::Set, Path::of_keys(["hp"]))
            .replacing(data(previous), data(new))
    };
    let error = timeline
        .push(TurnRecord::new("p").with_deltas([delta("9", "8"), delta("9", "7")]))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the state has drifted: expected 9, found 8 (turn 1, delta "abc-1-2", at /player/hp)"#
    );
    assert_eq!((timeline.last_turn(), timeline.state()), (0, &world()));
}

#[test]
fn a_log_applies_each_delta_id_once() {
    let mut timeline = Timeline::builder("abc", world()).build().unwrap();
    let mut delta = Delta::new("npc", DeltaOperation::Append, Path::of_keys(["bo", "l"]))
        .replacing(None, data("[1]"));
    delta.delta_id = "event-7-d1".to_owned();
    timeline.push(TurnRecord::new("p").with_deltas([delta.clone()])).unwrap();
    let again = timeline.push(TurnRecord::new("p").with_deltas([delta.clone()])).unwrap();
    assert_eq!(again.repeated, ["event-7-d1"]);
    assert!(again.record.deltas.is_empty());
    delta.new_value = Some(data("[2]"));
    let error = timeline.push(TurnRecord::new("p").with_deltas([delta])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn blame_follows_elements_of_arrays_and_names_turn_event_and_cause() {
    let mut timeline =
        Timeline::builder("s", data(r#"{"player":{"inventory":[]}}"#)).build().unwrap();
    for item in ["rope", "lamp", "oil"] {
        let gain = event("item_gain", &format!(r#"{{"item":"{item}"}}"#));
        timeline.push(TurnRecord::new(item).with_event(gain)).unwrap();
    }
    let loss = event("item_loss", r#"{"item":"rope"}"#);
    timeline.push(TurnRecord::new("thief").with_event(loss)).unwrap();
    // The oil came as the third and is the second now.
    let blame =
        timeline.blame(&Path::from_pointer("/player/inventory/1").unwrap(), 4).unwrap().unwrap();
    assert_eq!(
        (blame.turn_id, blame.actor.as_str(), blame.delta.cause.as_str()),
        (3, "oil", "item_gain")
    );
    assert_eq!(blame.event.unwrap().event_id(), "s-3-1");
    let blame =
        timeline.blame(&Path::from_pointer("/player/inventory").unwrap(), 4).unwrap().unwrap();
    assert_eq!(blame.turn_id, 4);
    assert_eq!(timeline.blame(&Path::from_pointer("/player/hp").unwrap(), 4).unwrap(), None);
    timeline.undo(2, Millis::new(0)).unwrap();
    let blame =
        timeline.blame(&Path::from_pointer("/player/inventory/0").unwrap(), 5).unwrap().unwrap();
    assert_eq!((blame.turn_id, blame.delta.cause.as_str()), (5, "undo"));
}

#[test]
fn retention_keeps_what_the_policy_says_and_reports_what_it_cannot() {
    let snapshots: Vec<SnapshotInfo> = (0..=30)
        .map(|n| SnapshotInfo {
            turn_id: n * 50,
            reason: match n {
                0 => SnapshotReason::Initial,
                3 => SnapshotReason::Milestone,
                _ => SnapshotReason::Interval,
            },
            bytes: 100,
            base: (n % 4 != 0).then(|| (n - 1) * 50),
        })
        .collect();
    let policy = SnapshotPolicy::default();
    let plan = RetentionPlan::of(&snapshots, 1500, &policy);
    // Older than 500 turns: every hundredth turn, and the milestone of turn 150.
    assert!(plan.remove.iter().all(|turn| *turn < 1000 && turn % 100 == 50 && *turn != 150));
    assert!(plan.keep.contains(&0) && plan.keep.contains(&150) && !plan.keep.contains(&950));
    assert_eq!(plan.keep.len() + plan.remove.len(), snapshots.len());
    // One that is based on another that goes is written anew.
    assert!(plan.rewrite.contains(&100), "{:?}", plan.rewrite);
    assert!(plan.rewrite.iter().all(|turn| plan.keep.contains(turn)));
    assert!(plan.over.is_empty());
    let policy = SnapshotPolicy { max_snapshots: 15, max_total_size: 1200, ..policy };
    let plan = RetentionPlan::of(&snapshots, 1500, &policy);
    assert_eq!(plan.keep.len(), 12);
    assert!(plan.keep.contains(&0) && plan.keep.contains(&150));
    let policy = SnapshotPolicy { max_snapshots: 5, max_snapshot_size: 99, ..policy };
    let plan = RetentionPlan::of(&snapshots, 1500, &policy);
    // A limit counts more than what is recent.
    assert_eq!(plan.keep, [0, 150, 1400, 1450, 1500]);
    assert_eq!(plan.over.len(), 31, "{:?}", plan.over);
    let policy = SnapshotPolicy { max_snapshots: 2, ..policy };
    let plan = RetentionPlan::of(&snapshots, 1500, &policy);
    assert_eq!(plan.keep, [0, 150, 1500]);
    assert!(plan.over.last().unwrap().contains("3 snapshots always stay; the limit is 2"));
}

#[test]
fn drift_is_found_with_both_values_and_recovered_from() {
    let mut timeline = timeline(&world(), &[], 2);
    for zone in ["a", "b", "c"] {
        timeline
            .push(
                TurnRecord::new("p").with_event(event("move", &format!(r#"{{"zone":"{zone}"}}"#))),
            )
            .unwrap();
    }
    let drifted = data(&timeline.state().to_string().replace("\"c\"", "\"x\""));
    let verification = timeline.verify_state(3, &drifted).unwrap();
    assert!(!verification.valid);
    let json = json::to_value(&verification).unwrap().to_string();
    assert_eq!(
        json,
        r#"{"valid":false,"turnId":3,"differences":[{"path":"/player/location/zone","expected":"c","found":"x"}],"suggestion":"State drift detected. Consider creating recovery snapshot."}"#
    );
    assert!(timeline.recover(Millis::new(0)).unwrap().valid);
    assert_eq!(timeline.snapshots().last().unwrap().turn_id, 3);
}

#[test]
fn a_partial_state_of_the_document_expands_as_a_merge_patch() {
    let base = StateSnapshot::from_json(
        afterimage_json::read(br#"{"turnId":50,"state":{"player":{"hp":9,"xp":1},"scene":{}}}"#)
            .unwrap(),
    )
    .unwrap();
    let text = br#"{"snapshotId":"snapshot-100","baseSnapshot":"snapshot-50","turnId":100,"stateDiffs":{"player":{"hp":3,"xp":null}}}"#;
    let partial = CompressedSnapshot::from_json(afterimage_json::read(text).unwrap()).unwrap();
    assert_eq!(partial.expand(&base).unwrap().state, data(r#"{"player":{"hp":3},"scene":{}}"#));
}

#[test]
fn a_scene_that_a_partial_state_holds_takes_the_place_of_the_whole_scene() {
    let read = |text: &str| afterimage_json::read(text.as_bytes()).unwrap();
    let base = r#"{"turnId":50,"state":{"player":{"hp":9,"xp":1},"scene":{"id":"market","aspects":["crowd"]}}}"#;
    let base = StateSnapshot::from_json(read(base)).unwrap();
    let text = r#"{"snapshotId":"snapshot-100","baseSnapshot":"snapshot-50","turnId":100,"stateDiffs":{"player":{"hp":3},"scene":{"id":"temple"}}}"#;
    let partial = CompressedSnapshot::from_json(read(text)).unwrap();
    assert_eq!(
        partial.expand(&base).unwrap().state,
        data(r#"{"player":{"hp":3,"xp":1},"scene":{"id":"temple"}}"#)
    );
}

#[test]
fn a_snapshot_with_an_unknown_reason_is_refused_with_those_that_are_known() {
    let read = |reason: &str| {
        let text = format!(r#"{{"turnId":3,{reason}"state":{{}}}}"#);
        StateSnapshot::from_json(afterimage_json::read(text.as_bytes()).unwrap())
    };
    let error = read(r#""reason":"boss_fight","#).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Shape,
            "expected \"initial\" or \"interval\" or \"scene_end\" or \"conflict_end\" or \"milestone\" or \"manual\" or \"session_end\", found \"boss_fight\" (at /reason)"
        )
    );
    assert_eq!(read(r#""reason":"milestone","#).unwrap().reason, SnapshotReason::Milestone);
    // The compressed snapshots of the document have none.
    assert_eq!(read("").unwrap().reason, SnapshotReason::Manual);
}

#[test]
fn limits_of_snapshots_hold_in_memory() {
    let mut config = config(1);
    config.policy.max_snapshots = 5;
    let mut timeline = Timeline::builder("t", world()).config(config).build().unwrap();
    let mut expected = Vec::new();
    for n in 0..=40_u64 {
        if n > 0 {
            let zone = event("move", &format!(r#"{{"zone":"{n}"}}"#));
            timeline.push(TurnRecord::new("p").with_event(zone)).unwrap();
        }
        expected.push(timeline.state().clone());
    }
    let turns: Vec<u64> = timeline.snapshots().map(|snapshot| snapshot.turn_id).collect();
    assert_eq!(turns, [0, 37, 38, 39, 40]);
    for (turn, expected) in (0..).zip(&expected) {
        assert_eq!(&timeline.state_at(turn).unwrap(), expected);
    }
    assert!(timeline.verify().unwrap().valid);
}

#[test]
fn configuration_and_session_ids_are_checked() {
    let config = TimelineConfig { max_chain: 5, lenient: true, ..TimelineConfig::default() };
    assert_eq!(TimelineConfig::from_json(json::to_value(&config).unwrap()).unwrap(), config);
    assert_eq!(json::to_value(&config).unwrap().as_object().unwrap().len(), 14);
    assert!(Timeline::builder("", world()).build().is_err());
    assert!(Timeline::builder("x".repeat(10_000), world()).build().is_err());
    assert!(Timeline::builder("../x", world()).build().is_ok());
    let deep = (0..120).fold(Data::Null, |inner, _| Data::from_iter([("a", inner)]));
    assert_eq!(Timeline::builder("s", deep).build().unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn a_clock_that_runs_backwards_changes_nothing() {
    let mut timeline = timeline(&world(), &[], 1);
    for (zone, now) in [("a", 900), ("b", -5), ("c", 3)] {
        let turn = TurnRecord::new("p").at(Millis::new(now));
        timeline.push(turn.with_event(event("move", &format!(r#"{{"zone":"{zone}"}}"#)))).unwrap();
    }
    let zones: Vec<_> = (1..=3)
        .map(|turn| {
            timeline
                .state_at(turn)
                .unwrap()
                .get("player")
                .unwrap()
                .get("location")
                .unwrap()
                .to_string()
        })
        .collect();
    assert_eq!(zones, [r#"{"zone":"a"}"#, r#"{"zone":"b"}"#, r#"{"zone":"c"}"#]);
    assert!(timeline.verify().unwrap().valid);
}

#[test]
fn what_is_not_known_in_a_turn_or_a_snapshot_is_written_back() {
    let turn = br#"{"turnId":3,"sessionId":"s","sceneId":"","actor":"bo","timestamp":1,"gameTime":null,"actions":[],"events":[],"deltas":[],"llmContext":{"prompt":"p","response":"r","seed":18446744073709551615,"model":"m","tool":1},"summary":{"deltaCount":0,"targetsModified":[],"significantChanges":[],"mood":"calm"},"rewind":{"kind":"undo","to":1,"by":"ada"},"note":4}"#;
    let read = TurnRecord::from_json(json::read(turn).unwrap()).unwrap();
    assert_eq!(read.to_json().to_string().as_bytes(), turn);
    let snapshot = br#"{"snapshotId":"snapshot-2","sessionId":"s","turnId":2,"timestamp":"t","reason":"manual","deltaRange":{"fromSnapshot":"initial","deltaCount":0,"firstDeltaId":"","lastDeltaId":"","span":[1]},"state":{},"note":4}"#;
    let read = StateSnapshot::from_json(json::read(snapshot).unwrap()).unwrap();
    let written = read.to_json();
    assert_eq!(written.pointer("/deltaRange/span").unwrap().to_string(), "[1]");
    assert_eq!(written.pointer("/note").unwrap().to_string(), "4");
    let mut timeline = Timeline::builder("s", Data::object()).build().unwrap();
    let given = json::read(br#"{"actor":"bo","summary":{"mood":"calm"}}"#).unwrap();
    let pushed = timeline.push(TurnRecord::from_json(given).unwrap()).unwrap();
    assert!(pushed.record.summary.extra.contains_key("mood"));
}

#[test]
fn a_seed_is_any_number_and_keeps_its_digits() {
    for seed in ["0", "-1", "9223372036854775808", "1e30", "0.50"] {
        let text = format!(r#"{{"llmContext":{{"seed":{seed}}}}}"#);
        let turn = TurnRecord::from_json(json::read(text.as_bytes()).unwrap()).unwrap();
        let written = turn.to_json().pointer("/llmContext/seed").unwrap().to_string();
        assert_eq!(written, seed);
    }
    let text = br#"{"llmContext":{"seed":"7"}}"#;
    let error = TurnRecord::from_json(json::read(text).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
}

#[test]
fn a_snapshot_that_is_called_by_another_turn_is_refused() {
    let read = |id: &str| {
        let text = format!(r#"{{"snapshotId":{id},"turnId":7,"state":{{}}}}"#);
        StateSnapshot::from_json(json::read(text.as_bytes()).unwrap())
    };
    assert_eq!(read("\"snapshot-7\"").unwrap().turn_id, 7);
    for id in ["\"snapshot-8\"", "\"seven\"", "7"] {
        let error = read(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape, "{id}");
        assert!(error.to_string().contains("snapshotId"), "{error}");
    }
}

#[test]
fn a_snapshot_keeps_the_weightiest_reason_of_its_turn() {
    use SnapshotReason::{Interval, Manual, Milestone, SessionEnd};
    for (first, second, stands) in [
        (Milestone, Manual, Milestone),
        (SessionEnd, Manual, SessionEnd),
        (Interval, Manual, Manual),
        (Manual, SessionEnd, SessionEnd),
        (Manual, Interval, Manual),
    ] {
        let mut timeline = Timeline::builder("s", Data::object()).build().unwrap();
        timeline.push(TurnRecord::new("bo")).unwrap();
        timeline.snapshot(first, Millis::new(1));
        assert_eq!(timeline.snapshot(second, Millis::new(2)).reason, stands);
        assert_eq!(timeline.snapshots().count(), 2);
    }
}
