//! Merging, held against a state that is nothing but a list of paths: each with the value and the
//! moment of the last response that named it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::observing;

use std::collections::BTreeMap;

use afterimage_json::{Object, Value};
use afterimage_observe::{
    Moment, Observations, PartialRule, Pointer, Policy, ReplacementRule, Response, ToolCall,
    ToolRule,
};
use observing::tick;
use proptest::{collection::vec, prelude::*, sample::select};

/// A step into a value: a member, or the element with this key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Member(String),
    Element(String),
}

type Path = Vec<Step>;
type Flat = BTreeMap<Path, (Value, Moment)>;

/// The arrays that are merged by `id`.
const KEYED: [&str; 3] = ["/list", "/a/list", "/list/*/list"];

fn is_keyed(path: &[Step], array: &[Value]) -> bool {
    let is_at = |place: &&str| {
        let segments: Vec<&str> = place.split('/').skip(1).collect();
        let fits = |(segment, step): (&&str, &Step)| match step {
            Step::Member(name) => *segment == "*" || segment == name,
            Step::Element(_) => *segment == "*",
        };
        segments.len() == path.len() && segments.iter().zip(path).all(fits)
    };
    KEYED.iter().any(is_at) && array.iter().all(|element| element.get("id").is_some())
}

/// The paths that a response names, in order.
fn leaves(value: &Value, path: &mut Path, out: &mut Vec<(Path, Value)>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (name, value) in object {
                path.push(Step::Member(name.clone()));
                leaves(value, path, out);
                path.pop();
            }
        }
        Value::Array(array) if !array.is_empty() && is_keyed(path, array) => {
            for element in array {
                path.push(Step::Element(element.get("id").unwrap().to_string()));
                leaves(element, path, out);
                path.pop();
            }
        }
        leaf => out.push((path.clone(), leaf.clone())),
    }
}

/// Applies one path: what stands above it as a leaf, below it, or in another kind of container,
/// gives way.
fn apply(state: &mut Flat, path: &Path, leaf: &Value, seen: Moment) {
    let is_inside = |other: &Path| other.len() > path.len() && other.starts_with(path);
    let is_empty_container = match leaf {
        Value::Object(object) => object.is_empty().then_some(false),
        Value::Array(array) => (array.is_empty() && is_keyed(path, array)).then_some(true),
        _ => None,
    };
    if let Some(of_elements) = is_empty_container
        && state.keys().any(|other| {
            is_inside(other) && matches!(other[path.len()], Step::Element(_)) == of_elements
        })
    {
        // Nothing that the container holds is named.
        return;
    }
    state.retain(|other, _| {
        let shared = other.iter().zip(path).take_while(|(a, b)| a == b).count();
        let is_above = shared == other.len();
        let is_below = shared == path.len();
        let is_other_kind = shared < other.len()
            && shared < path.len()
            && std::mem::discriminant(&other[shared]) != std::mem::discriminant(&path[shared]);
        !(is_above || is_below || is_other_kind)
    });
    state.insert(path.clone(), (leaf.clone(), seen));
}

fn pointer(path: &Path) -> Pointer {
    let names = path.iter().map(|step| match step {
        Step::Member(name) => format!("/{name}"),
        Step::Element(id) => format!("/id={id}"),
    });
    Pointer::parse(&names.collect::<String>()).unwrap()
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..4_u64).prop_map(Value::from),
        Just(Value::from("x")),
        Just(Value::Array(Vec::new())),
        vec((0..3_u64).prop_map(Value::from), 1..3).prop_map(Value::Array),
        Just(Value::from(Object::new())),
    ];
    leaf.prop_recursive(4, 24, 4, |inside| {
        let name = select(&["a", "b", "c", "list"][..]);
        let object = vec((name, inside.clone()), 0..4).prop_map(|members| {
            members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Object>().into()
        });
        let member = select(&["a", "b", "list"][..]);
        let element = vec((member, inside), 0..3);
        let list = proptest::collection::btree_map(0..4_u64, element, 0..4).prop_map(|elements| {
            let element = |(id, members): (u64, Vec<(&str, Value)>)| {
                let members = members.into_iter().map(|(k, v)| (k.to_owned(), v));
                let id = [("id".to_owned(), id.into())];
                Value::from(id.into_iter().chain(members).collect::<Object>())
            };
            Value::Array(elements.into_iter().map(element).collect())
        });
        let listed = list
            .clone()
            .prop_map(|list| Value::from(Object::from_iter([("list".to_owned(), list)])));
        let deeper = list.clone().prop_map(|list| {
            let inner = Value::from(Object::from_iter([("list".to_owned(), list)]));
            Value::from(Object::from_iter([("a".to_owned(), inner)]))
        });
        prop_oneof![4 => object, 1 => list, 2 => listed, 1 => deeper]
    })
}

fn policy() -> Policy {
    let arrays = KEYED.map(|path| (Pointer::parse(path).unwrap(), "id".to_owned())).into();
    Policy {
        tools: vec![ToolRule { arrays, accepts: ReplacementRule::Any, ..ToolRule::new("get") }],
        partials: vec![PartialRule {
            tool: "part".to_owned(),
            from: Pointer::parse("/part").unwrap(),
            into: "get".to_owned(),
            to: Pointer::default(),
        }],
        ..Policy::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(512)))]

    /// Any sequence of full and partial responses gives the same state as applying their paths in
    /// order, and each path's age is that of the last response that named it.
    #[test]
    fn merging_is_applying_paths_in_order(
        responses in vec((prop::bool::weighted(0.25), values()), 1..9),
    ) {
        let observations = Observations::in_memory(policy()).unwrap();
        observations.login("agent", "x", tick(0)).unwrap();
        let mut expected = Flat::new();
        for (at, (is_full, value)) in responses.iter().enumerate() {
            let seen = tick(at as u64 + 1);
            let (tool, response) = if *is_full {
                expected.clear();
                ("get", Response::json(value.clone()))
            } else if value.is_null() {
                // Says nothing.
                continue;
            } else {
                let part = Object::from_iter([("part".to_owned(), value.clone())]);
                ("part", Response::json(part.into()))
            };
            observations.intercept(&ToolCall::new("agent", tool, &response), seen).unwrap();
            let mut named = Vec::new();
            leaves(value, &mut Vec::new(), &mut named);
            for (path, leaf) in &named {
                apply(&mut expected, path, leaf, seen);
            }
            let found = observations.get("x", "get").unwrap().unwrap();
            let known = found.value().unwrap();
            let mut kept = Vec::new();
            leaves(&known, &mut Vec::new(), &mut kept);
            let kept: BTreeMap<Path, Value> = kept.into_iter().collect();
            let wanted: BTreeMap<Path, Value> =
                expected.iter().map(|(path, (leaf, _))| (path.clone(), leaf.clone())).collect();
            prop_assert_eq!(kept, wanted, "after {}", value);
            for (path, (_, seen)) in &expected {
                let age = observations.seen(&found, &pointer(path)).unwrap();
                prop_assert_eq!(age, Some(*seen), "{:?} of {}", path, known);
            }
        }
    }
}
