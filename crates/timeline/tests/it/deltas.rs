//! Deltas: each operation has an exact inverse, applies once, and says what it finds in its way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::states;

use afterimage_json as json;
use afterimage_json::Path;
use afterimage_timeline::{
    Applier, Data, Delta, DeltaOperation, DeltaOutcome, ErrorKind, Targets, diff, differences,
    from_json_patch, from_merge_patch, invert, merge, squash, to_json_patch, to_merge_patch,
};
use proptest::prelude::*;
use states::{choice, data, state, value};

/// A state with deltas that fit, one after the other.
fn run(before: &Data, choices: &[states::Choice]) -> (Vec<Delta>, Data) {
    let targets = Targets::default();
    let mut after = before.clone();
    let mut deltas = Vec::new();
    for delta in choices {
        if let Some(delta) = delta.delta(&after) {
            Applier::strict(&targets).apply(&mut after, &delta).unwrap();
            deltas.push(delta);
        }
    }
    (deltas, after)
}

fn serde(data: &Data) -> serde_json::Value {
    serde_json::to_value(data).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(300), ..ProptestConfig::default() })]

    #[test]
    fn inverse(before in state(), choice in choice()) {
        let Some(delta) = choice.delta(&before) else { return Ok(()) };
        let targets = Targets::default();
        let applier = Applier::strict(&targets);
        let mut state = before.clone();
        applier.apply(&mut state, &delta).unwrap();
        let after = state.clone();
        applier.reverse(&mut state, &delta).unwrap();
        prop_assert_eq!(&state, &before);
        // The inverse of the inverse does what the delta did.
        let again = delta.reversed().unwrap().reversed().unwrap();
        applier.apply(&mut state, &again).unwrap();
        prop_assert_eq!(state, after);
    }

    #[test]
    fn idempotent(before in state(), choice in choice()) {
        let Some(delta) = choice.delta(&before) else { return Ok(()) };
        let targets = Targets::default();
        for delta in [delta.clone(), delta.reversed().unwrap()] {
            let mut once = before.clone();
            if Applier::strict(&targets).apply(&mut once, &delta).is_err() {
                continue;
            }
            let mut twice = once.clone();
            Applier::strict(&targets).apply(&mut twice, &delta).unwrap();
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn wire_form_there_and_back(before in state(), choice in choice()) {
        let Some(delta) = choice.delta(&before) else { return Ok(()) };
        let text = delta.to_json().to_string();
        prop_assert_eq!(Delta::from_json(json::read(text.as_bytes()).unwrap()).unwrap(), delta);
    }

    #[test]
    fn diff_then_apply_equals(before in state(), after in state()) {
        let targets = Targets::default();
        let deltas = diff(&before, &after, &targets);
        prop_assert_eq!(deltas.is_empty(), before == after);
        prop_assert_eq!(differences(&before, &after).is_empty(), before == after);
        let mut state = before.clone();
        Applier::strict(&targets).apply_all(&mut state, &deltas).unwrap();
        prop_assert_eq!(&state, &after);
        Applier::strict(&targets).apply_all(&mut state, &invert(&deltas).unwrap()).unwrap();
        prop_assert_eq!(state, before);
    }

    #[test]
    fn diff_of_changed_arrays(
        items in prop::collection::vec(value(), 0..12),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(value())), 0..4),
    ) {
        let mut changed = items.clone();
        for (at, change) in changes {
            match change {
                Some(new) => changed.insert(at.index(changed.len() + 1), new),
                None if !changed.is_empty() => drop(changed.remove(at.index(changed.len()))),
                None => {}
            }
        }
        let state = |items: Vec<Data>| Data::from_iter([("player", items.into_iter().collect::<Data>())]);
        let (before, after) = (state(items), state(changed));
        let targets = Targets::default();
        let mut found = before.clone();
        let deltas = diff(&before, &after, &targets);
        Applier::strict(&targets).apply_all(&mut found, &deltas).unwrap();
        prop_assert_eq!(found, after);
    }

    #[test]
    fn squash_equals(before in state(), choices in prop::collection::vec(choice(), 0..12)) {
        let (deltas, after) = run(&before, &choices);
        let targets = Targets::default();
        let net = squash(&before, &deltas, &targets).unwrap();
        let mut state = before.clone();
        Applier::strict(&targets).apply_all(&mut state, &net).unwrap();
        prop_assert_eq!(&state, &after);
        // What was taken back leaves nothing.
        let back: Vec<_> = deltas.iter().cloned().chain(invert(&deltas).unwrap()).collect();
        prop_assert_eq!(squash(&before, &back, &targets).unwrap(), []);
    }

    #[test]
    fn json_patch_there_and_back(before in state(), choices in prop::collection::vec(choice(), 1..6)) {
        let (deltas, after) = run(&before, &choices);
        let targets = Targets::default();
        let patch = to_json_patch(&deltas, &targets).unwrap();
        // Where serde_json keeps digits, json-patch still reads -0 as 0.
        let text = format!("{before}{patch}");
        prop_assume!(["-0,", "-0]", "-0}"].iter().all(|zero| !text.contains(zero)));
        // Another implementation comes to the same state.
        let theirs: json_patch::Patch = serde_json::from_value(serde_json::to_value(&patch).unwrap()).unwrap();
        let mut document = serde(&before);
        json_patch::patch(&mut document, &theirs).unwrap();
        prop_assert_eq!(document, serde(&after));
        let back = from_json_patch(&before, &patch, &targets).unwrap();
        let mut state = before.clone();
        Applier::strict(&targets).apply_all(&mut state, &back).unwrap();
        prop_assert_eq!(&state, &after);
        // And what it says of two states is understood.
        let theirs = json_patch::diff(&serde(&before), &serde(&after));
        let theirs: json::Value = serde_json::from_value(serde_json::to_value(&theirs).unwrap()).unwrap();
        let mut state = before.clone();
        let deltas = from_json_patch(&before, &theirs, &targets).unwrap();
        Applier::strict(&targets).apply_all(&mut state, &deltas).unwrap();
        prop_assert_eq!(serde(&state), serde(&after));
    }

    #[test]
    fn merge_patch_there_and_back(before in state(), after in state()) {
        let mut document = serde(&before);
        json_patch::merge(&mut document, &serde(&after));
        prop_assert_eq!(serde(&merge(&before, &after)), document);
        if let Ok(patch) = to_merge_patch(&before, &after) {
            let targets = Targets::default();
            let deltas = from_merge_patch(&before, &patch, &targets);
            let mut state = before.clone();
            Applier::strict(&targets).apply_all(&mut state, &deltas).unwrap();
            prop_assert_eq!(state, after);
        }
    }

    #[test]
    fn the_canonical_text_says_what_a_state_is(a in state(), b in state()) {
        prop_assert_eq!(a == b, a.to_string() == b.to_string());
        prop_assert_eq!(a == b, a.checksum() == b.checksum());
        prop_assert_eq!(data(&a.to_string()), a);
    }

    #[test]
    fn a_strict_refusal_changes_nothing_and_a_lenient_one_never_fails(
        before in state(), other in state(), choices in prop::collection::vec(choice(), 1..6),
    ) {
        let (deltas, _) = run(&other, &choices);
        let targets = Targets::default();
        for delta in &deltas {
            let mut state = before.clone();
            if Applier::strict(&targets).apply(&mut state, delta).is_err() {
                prop_assert_eq!(&state, &before);
                Applier::lenient(&targets).apply(&mut state, delta).unwrap();
            }
        }
    }
}

#[track_caller]
fn apply(state: &str, delta: &str) -> Result<(DeltaOutcome, String), afterimage_timeline::Error> {
    let targets = Targets::default();
    let mut state = data(state);
    let delta = Delta::from_json(json::read(delta.as_bytes()).unwrap())?;
    let applied = Applier::strict(&targets).apply(&mut state, &delta)?;
    Ok((applied, state.to_string()))
}

#[track_caller]
fn changes(before: &str, delta: &str, after: &str) {
    assert_eq!(apply(before, delta).unwrap(), (DeltaOutcome::Changed, data(after).to_string()));
}

#[track_caller]
fn drifts(before: &str, delta: &str, message: &str) {
    let error = apply(before, delta).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Drift, "{error}");
    assert_eq!(error.to_string(), message);
}

/// The examples of the document, with what they need around them.
#[test]
fn the_document_s_examples_apply() {
    changes(
        r#"{"player":{"location":{"zone":"market-stalls"}}}"#,
        r#"{"deltaId":"abc123-42-1","turnId":42,"sequence":1,"timestamp":1732557777531,"target":"player","operation":"set","path":["location","zone"],"previousValue":"market-stalls","newValue":"temple-entrance","cause":"move","eventId":"abc123-42-1"}"#,
        r#"{"player":{"location":{"zone":"temple-entrance"}}}"#,
    );
    changes(
        r#"{"player":{"stress":{"physical":[false,false,false]}}}"#,
        r#"{"target":"player","operation":"set","path":["stress","physical",1],"previousValue":false,"newValue":true}"#,
        r#"{"player":{"stress":{"physical":[false,true,false]}}}"#,
    );
    changes(
        r#"{"npcs":{"npc-khaosbyte":{"relationship":10}}}"#,
        r#"{"target":"npc","operation":"increment","path":["npc-khaosbyte","relationship"],"previousValue":10,"newValue":15}"#,
        r#"{"npcs":{"npc-khaosbyte":{"relationship":15}}}"#,
    );
    changes(
        r#"{"player":{"locations":["loc-001","loc-002"]}}"#,
        r#"{"target":"knowledge","operation":"append","path":["player","locations"],"previousValue":["loc-001","loc-002"],"newValue":["loc-001","loc-002","loc-003"]}"#,
        r#"{"player":{"locations":["loc-001","loc-002","loc-003"]}}"#,
    );
    changes(
        r#"{"scene":{"aspects":[{"name":"Crowded Market"}]}}"#,
        r#"{"target":"scene","operation":"append","path":["aspects"],"previousValue":[{"name":"Crowded Market"}],"newValue":[{"name":"Crowded Market"},{"name":"Smoke Filling Room","freeInvokes":2}]}"#,
        r#"{"scene":{"aspects":[{"name":"Crowded Market"},{"name":"Smoke Filling Room","freeInvokes":2}]}}"#,
    );
}

#[test]
fn every_target_has_its_place() {
    let places = [
        ("player", "/player"),
        ("npc", "/npcs"),
        ("location", "/world/locations"),
        ("scene", "/scene"),
        ("world", "/world"),
        ("quest", "/quests"),
        ("relationship", "/npcs"),
        ("knowledge", ""),
        ("inventory", "/player/inventory"),
        ("time", "/gameTime"),
    ];
    let targets = Targets::default();
    for (target, place) in places {
        assert_eq!(targets.place(&target.into()).unwrap().to_string(), place);
    }
    assert_eq!(targets.to_json().as_object().unwrap().len(), places.len());
    assert_eq!(Targets::from_json(targets.to_json()).unwrap(), targets);
    let error = apply("{}", r#"{"target":"moon","operation":"set","path":["a"],"newValue":1}"#)
        .unwrap_err();
    assert!(
        error.to_string().contains("unknown target \"moon\": expected one of player, npc"),
        "{error}"
    );
    let named = |path: &[&str]| {
        let path = Path::of_keys(path.iter().copied());
        let (target, rest) = targets.of_path(path.elements());
        (target.to_string(), rest.len())
    };
    assert_eq!(named(&["player", "hp"]), ("player".to_owned(), 1));
    assert_eq!(named(&["player", "inventory", "0"]), ("inventory".to_owned(), 1));
    assert_eq!(named(&["world", "locations", "x", "y"]), ("location".to_owned(), 2));
    assert_eq!(named(&["npcs"]), ("npc".to_owned(), 0));
    assert_eq!(named(&["grid", "0"]), ("knowledge".to_owned(), 2));
}

#[test]
fn absent_is_not_null() {
    let set = r#"{"target":"player","operation":"set","path":["hp"],"newValue":1}"#;
    changes(r#"{"player":{}}"#, set, r#"{"player":{"hp":1}}"#);
    drifts(
        r#"{"player":{"hp":null}}"#,
        set,
        "the state has drifted: expected nothing, found null (at /player/hp)",
    );
    let from_null =
        r#"{"target":"player","operation":"set","path":["hp"],"previousValue":null,"newValue":1}"#;
    changes(r#"{"player":{"hp":null}}"#, from_null, r#"{"player":{"hp":1}}"#);
    drifts(
        r#"{"player":{}}"#,
        from_null,
        "the state has drifted: expected null, found nothing (at /player/hp)",
    );
}

#[test]
fn what_is_already_so_is_left_alone() {
    let create = r#"{"target":"npc","operation":"create","path":["bo"],"previousValue":null,"newValue":{"hp":1}}"#;
    changes(r#"{"npcs":{}}"#, create, r#"{"npcs":{"bo":{"hp":1}}}"#);
    assert_eq!(apply(r#"{"npcs":{"bo":{"hp":1}}}"#, create).unwrap().0, DeltaOutcome::Unchanged);
    drifts(
        r#"{"npcs":{"bo":{"hp":2}}}"#,
        create,
        r#"the state has drifted: expected nothing, found {"hp":2} (at /npcs/bo)"#,
    );
    let destroy =
        r#"{"target":"npc","operation":"destroy","path":["bo"],"previousValue":{"hp":1}}"#;
    assert_eq!(apply(r#"{"npcs":{}}"#, destroy).unwrap().0, DeltaOutcome::Unchanged);
    assert_eq!(apply("{}", destroy).unwrap().0, DeltaOutcome::Unchanged);
    drifts(
        r#"{"npcs":{"bo":{"hp":2}}}"#,
        destroy,
        r#"the state has drifted: expected {"hp":1}, found {"hp":2} (at /npcs/bo)"#,
    );
}

#[test]
fn duplicates_in_arrays_come_and_go_exactly() {
    let append = r#"{"target":"knowledge","operation":"append","path":["a"],"newValue":[1],"previousLength":2}"#;
    changes(r#"{"a":[1,1]}"#, append, r#"{"a":[1,1,1]}"#);
    assert_eq!(apply(r#"{"a":[1,1,1]}"#, append).unwrap().0, DeltaOutcome::Unchanged);
    drifts(
        r#"{"a":[1,1,1,1]}"#,
        append,
        "the state has drifted: expected an array of 2 elements, found one of 4 (at /a)",
    );
    let remove = r#"{"target":"knowledge","operation":"remove","path":["a"],"previousValue":{"index":1,"item":1},"previousLength":3}"#;
    changes(r#"{"a":[1,1,2]}"#, remove, r#"{"a":[1,2]}"#);
    drifts(
        r#"{"a":[1,3,2]}"#,
        remove,
        "the state has drifted: expected [1] from index 1 on, found [3] (at /a)",
    );
}

/// As another program writes it: nothing says how long the array was.
#[test]
fn an_insert_without_a_length_always_inserts() {
    let insert = r#"{"target":"knowledge","operation":"insert","path":["a"],"newValue":{"index":1,"item":"b"}}"#;
    changes(r#"{"a":["a","c"]}"#, insert, r#"{"a":["a","b","c"]}"#);
    changes(r#"{"a":["a","b"]}"#, insert, r#"{"a":["a","b","b"]}"#);
    changes(r#"{"a":["a"]}"#, insert, r#"{"a":["a","b"]}"#);
    drifts(
        r#"{"a":[]}"#,
        insert,
        "the state has drifted: expected an array of at least 1 element, found one of 0 (at /a)",
    );
    drifts("{}", insert, "the state has drifted: expected an array, found nothing (at /a)");
    let null = insert.replace("\"newValue\"", "\"previousValue\":null,\"newValue\"");
    changes(r#"{"a":["a","b"]}"#, &null, r#"{"a":["a","b","b"]}"#);
    // Its inverse takes back the element that it brought.
    let delta = Delta::from_json(json::read(insert.as_bytes()).unwrap()).unwrap();
    let mut state = data(r#"{"a":["a","b","b"]}"#);
    let targets = Targets::default();
    assert_eq!(
        Applier::strict(&targets).reverse(&mut state, &delta).unwrap(),
        DeltaOutcome::Changed
    );
    assert_eq!(state, data(r#"{"a":["a","b"]}"#));
}

#[test]
fn an_insert_with_the_whole_array_before_knows_its_length() {
    let insert = r#"{"target":"knowledge","operation":"insert","path":["a"],"previousValue":["a","b"],"newValue":{"index":1,"item":"b"}}"#;
    changes(r#"{"a":["a","b"]}"#, insert, r#"{"a":["a","b","b"]}"#);
    assert_eq!(apply(r#"{"a":["a","b","b"]}"#, insert).unwrap().0, DeltaOutcome::Unchanged);
    drifts(
        r#"{"a":["a","x"]}"#,
        insert,
        r#"the state has drifted: expected ["a","b"], found ["a","x"] (at /a)"#,
    );
    let both = r#"{"target":"knowledge","operation":"insert","path":["a"],"previousValue":["a","b"],"newValue":["a","x","b"]}"#;
    changes(r#"{"a":["a","b"]}"#, both, r#"{"a":["a","x","b"]}"#);
    assert_eq!(apply(r#"{"a":["a","x","b"]}"#, both).unwrap().0, DeltaOutcome::Unchanged);
}

#[test]
fn a_removal_without_a_length_is_not_lost_where_its_element_stands_elsewhere() {
    let remove = r#"{"target":"knowledge","operation":"remove","path":["a"],"previousValue":{"index":1,"item":"b"}}"#;
    changes(r#"{"a":["a","b"]}"#, remove, r#"{"a":["a"]}"#);
    assert_eq!(apply(r#"{"a":["a"]}"#, remove).unwrap().0, DeltaOutcome::Unchanged);
    drifts(
        r#"{"a":["b","a"]}"#,
        remove,
        r#"the state has drifted: expected ["b"] from index 1 on, found ["a"] (at /a)"#,
    );
}

#[test]
fn a_changed_array_element_is_not_a_new_array() {
    let world = |hp: u64| {
        let npcs: Data = (0..500_u64)
            .map(|n| {
                Data::from_iter([
                    ("id", Data::from(n)),
                    ("hp", Data::from(if n == 250 { hp } else { 9 })),
                ])
            })
            .collect();
        Data::from_iter([("world", Data::from_iter([("npcs", npcs)]))])
    };
    let deltas = diff(&world(9), &world(3), &Targets::default());
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0].path.to_string(), "/npcs/250/hp");
    assert!(deltas[0].to_json().to_string().len() < 300);
    // Elements that came and went in the middle, too.
    let list = |text: &str| Data::from_iter([("a", data(text))]);
    let deltas = diff(&list("[1,2,3,4,5,6,7]"), &list("[1,3,4,9,5,6,7]"), &Targets::default());
    let operations: Vec<_> = deltas.iter().map(|delta| delta.operation).collect();
    assert!(operations.len() <= 3, "{deltas:?}");
    let deltas = diff(&list("[1,2,3,4,5,6,7,8]"), &list("[1,3,4,9,5,6,7]"), &Targets::default());
    assert_eq!(deltas.len(), 3, "{deltas:?}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let refused = |delta: &str, message: &str| {
        let error = apply(r#"{"player":{"bag":[1,2],"name":"x"}}"#, delta).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    };
    refused(
        r#"{"target":"player","operation":"jump","path":[]}"#,
        r#"expected "set" or "increment" or"#,
    );
    refused(
        r#"{"target":"player","operation":"set"}"#,
        "expected a path (an array), found nothing",
    );
    refused(
        r#"{"target":"player","operation":"set","path":[true]}"#,
        "expected a key or an array index",
    );
    refused(
        r#"{"target":"player","operation":"set","path":[-1]}"#,
        "expected an array index, found -1",
    );
    refused(
        r#"{"target":"player","operation":"increment","path":["name"],"previousValue":"x","newValue":1}"#,
        "expected a number, found a string (at /previousValue)",
    );
    refused(
        r#"{"target":"player","operation":"append","path":["bag"],"newValue":1}"#,
        "expected an array of elements, found a number (at /newValue)",
    );
    refused(
        r#"{"target":"player","operation":"delete","path":["bag",0],"previousValue":1}"#,
        "cannot set an element past the end of an array",
    );
    refused(
        r#"{"target":"player","operation":"set","path":["name","x"],"newValue":1}"#,
        "expected an object or an array, found a string (at /player/name)",
    );
    refused(
        r#"{"target":"player","operation":"set","path":["a","b"],"newValue":1}"#,
        "expected something that holds it, found nothing (at /player/a/b)",
    );
}

#[test]
fn ten_thousand_path_elements_are_refused_quickly() {
    let path: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\"")).collect();
    let delta = format!(
        r#"{{"target":"player","operation":"set","path":[{}],"newValue":1}}"#,
        path.join(",")
    );
    let error = apply(r#"{"player":{}}"#, &delta).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(
        error.to_string().contains("the state would be nested 10001 levels deep; the limit is 112")
    );
    assert!(error.to_string().len() < 1000, "{error}");
    let targets = Targets::default();
    let delta = Delta::from_json(json::read(delta.as_bytes()).unwrap()).unwrap();
    let refused = Applier::lenient(&targets).apply(&mut data("{}"), &delta);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn the_lenient_applier_says_what_it_did() {
    let targets = Targets::default();
    let applier = Applier::lenient(&targets);
    let check = |before: &str, delta: Delta, after: &str, done: &str| {
        let mut state = data(before);
        let applied = applier.apply(&mut state, &delta).unwrap();
        let DeltaOutcome::BestEffort(drift) = applied else { panic!("{applied:?}") };
        assert_eq!((state, drift.done.as_str()), (data(after), done), "{drift}");
    };
    let delta = |operation, path: &[&str]| {
        Delta::new("world", operation, Path::of_keys(path.iter().copied()))
    };
    let set = delta(DeltaOperation::Set, &["a", "b"]).replacing(data("1"), data("2"));
    check("{}", set, r#"{"world":{"a":{"b":2}}}"#, "the new value was put there");
    let more = delta(DeltaOperation::Increment, &["n"]).replacing(data("1"), data("4"));
    check(r#"{"world":{"n":10}}"#, more, r#"{"world":{"n":13}}"#, "the new value was put there");
    let item =
        delta(DeltaOperation::Append, &["quests"]).replacing(Data::Null, data(r#"{"id":1}"#));
    check(r#"{"world":{}}"#, item, r#"{"world":{"quests":[{"id":1}]}}"#, "1 element was appended");
    let gone = delta(DeltaOperation::Remove, &["l"]).replacing(data("[1,2,2]"), data("[1,2]"));
    check(
        r#"{"world":{"l":[2,3,2]}}"#,
        gone,
        r#"{"world":{"l":[3,2]}}"#,
        "1 equal element was removed",
    );
    let gone = delta(DeltaOperation::Delete, &["l"]).replacing(data("1"), None);
    check(r#"{"world":{"l":2}}"#, gone, r#"{"world":{}}"#, "what was there was removed");
}
