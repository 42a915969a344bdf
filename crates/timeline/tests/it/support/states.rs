//! JSON states for property tests: any value, and a valid delta for any of them.
#![allow(dead_code, reason = "each test takes what it needs")]

use afterimage_json as json;
use afterimage_json::{Number, Path, PathElement};
use afterimage_timeline::{Applier, Data, Delta, DeltaOperation, Targets};
use proptest::{prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner};

pub(crate) fn data(text: &str) -> Data {
    Data::from(json::read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Keys that are hard on paths, pointers and sorting.
pub(crate) fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-e]",
        1 => prop::sample::select(vec!["", "0", "1", "-", "~", "/", "~1", "ä", "日本", "😀", "e\u{301}", "\u{0}", "\"", "\\"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

pub(crate) fn number() -> impl Strategy<Value = Data> {
    let edges = [
        "0",
        "-0",
        "1",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "9007199254740992",
        "9007199254740993",
        "1.0",
        "0.1",
        "1.7976931348623157e308",
        "5e-324",
        "-1e-7",
    ];
    prop_oneof![
        prop::sample::select(edges.to_vec()).prop_map(data),
        any::<i64>().prop_map(Data::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64).prop_map(Data::Number),
    ]
}

pub(crate) fn value() -> impl Strategy<Value = Data> {
    let leaf = prop_oneof![
        Just(Data::Null),
        any::<bool>().prop_map(Data::from),
        number(),
        "[a-c]{0,2}".prop_map(|text| Data::from(text.as_str())),
        any::<String>().prop_map(|text| Data::from(text.as_str())),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| items.into_iter().collect()),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// A state: an object.
pub(crate) fn state() -> impl Strategy<Value = Data> {
    prop::collection::vec((key(), value()), 0..6).prop_map(|members| members.into_iter().collect())
}

/// Every place in a value.
fn places(value: &Data, path: &Path, places: &mut Vec<(Path, Data)>) {
    places.push((path.clone(), value.clone()));
    match value {
        Data::Object(map) => {
            map.iter().for_each(|(key, inner)| self::places(inner, &path.child(key), places));
        }
        Data::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(at, inner)| self::places(inner, &path.child(at), places));
        }
        _ => {}
    }
}

fn operations() -> impl Strategy<Value = DeltaOperation> {
    prop::sample::select(vec![
        DeltaOperation::Set,
        DeltaOperation::Increment,
        DeltaOperation::Decrement,
        DeltaOperation::Append,
        DeltaOperation::Remove,
        DeltaOperation::Insert,
        DeltaOperation::Delete,
        DeltaOperation::Create,
        DeltaOperation::Destroy,
    ])
}

/// What a random delta is made of.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) operation: DeltaOperation,
    pub(crate) pick: Index,
    pub(crate) at: Index,
    pub(crate) key: String,
    pub(crate) value: Data,
    pub(crate) number: Data,
    pub(crate) whole: bool,
}

prop_compose! {
    pub(crate) fn choice()(
        operation in operations(),
        (pick, at) in any::<(Index, Index)>(),
        key in key(),
        value in value(),
        number in number(),
        whole in any::<bool>(),
    ) -> Choice {
        Choice { operation, pick, at, key, value, number, whole }
    }
}

impl Choice {
    /// A delta of the operation that fits the state; `None` where the state has no place for it.
    pub(crate) fn delta(&self, state: &Data) -> Option<Delta> {
        let mut all = Vec::new();
        places(state, &Path::default(), &mut all);
        let of = |wanted: &dyn Fn(&Path, &Data) -> bool| {
            let fitting: Vec<_> = all.iter().filter(|(path, value)| wanted(path, value)).collect();
            (!fitting.is_empty()).then(|| fitting[self.pick.index(fitting.len())].clone())
        };
        let delta = |path: &Path| Delta::new("knowledge", self.operation, path.clone());
        let in_object = |path: &Path| {
            let above = path.elements().len().checked_sub(1);
            above.is_some_and(|above| {
                state.at(&path.elements()[..above]).unwrap().as_object().is_some()
            })
        };
        match self.operation {
            DeltaOperation::Set => {
                let (path, previous) = of(&|path, _| !path.elements().is_empty())?;
                if self.whole && in_object(&path) {
                    return Some(delta(&path).replacing(previous, None));
                }
                Some(delta(&path).replacing(previous, self.value.clone()))
            }
            DeltaOperation::Increment | DeltaOperation::Decrement => {
                let (path, previous) = of(&|_, value| value.as_number().is_some())?;
                Some(delta(&path).replacing(previous, self.number.clone()))
            }
            DeltaOperation::Create => {
                let (path, _) = of(&|_, value| {
                    value.as_object().is_some_and(|map| map.get(&self.key).is_none())
                })?;
                Some(delta(&path.child(self.key.as_str())).replacing(None, self.value.clone()))
            }
            DeltaOperation::Delete | DeltaOperation::Destroy => {
                let (path, previous) = of(&|path, _| !path.elements().is_empty())?;
                let delta = delta(&path).replacing(previous, None);
                if in_object(&path) {
                    return Some(delta);
                }
                let above = &path.elements()[..path.elements().len() - 1];
                Some(delta.of_length(state.at(above).unwrap().as_array().unwrap().len()))
            }
            DeltaOperation::Append | DeltaOperation::Remove | DeltaOperation::Insert => {
                let (path, found) = of(&|_, value| value.as_array().is_some())?;
                let items: Vec<Data> = found.as_array().unwrap().iter().cloned().collect();
                let length = items.len();
                self.spliced(delta(&path), items, found, length)
            }
        }
    }

    fn spliced(
        &self,
        delta: Delta,
        mut items: Vec<Data>,
        found: Data,
        length: usize,
    ) -> Option<Delta> {
        let come = vec![self.value.clone(), self.number.clone()];
        let index = |index: usize| Data::from(index as u64);
        Some(match self.operation {
            DeltaOperation::Append if self.whole => {
                items.extend(come);
                delta.replacing(found, items.into_iter().collect::<Data>())
            }
            DeltaOperation::Append => {
                delta.replacing(None, come.into_iter().collect::<Data>()).of_length(length)
            }
            DeltaOperation::Remove if length == 0 => return None,
            DeltaOperation::Remove if self.whole => {
                items.remove(self.at.index(length));
                delta.replacing(found, items.into_iter().collect::<Data>())
            }
            DeltaOperation::Remove => {
                let from = self.at.index(length);
                let gone: Data = items[from..].iter().take(2).cloned().collect();
                let previous = Data::from_iter([("index", index(from)), ("items", gone)]);
                delta.replacing(previous, None).of_length(length)
            }
            _ => {
                let from = self.at.index(length + 1);
                let new = Data::from_iter([("index", index(from)), ("item", self.value.clone())]);
                delta.replacing(None, new).of_length(length)
            }
        })
    }
}

/// The element at the end of a path.
pub(crate) fn last(path: &Path) -> Option<&PathElement> {
    path.elements().last()
}

/// Applies changes, one a turn, and gives the state after each turn by the way that cannot be wrong:
/// as the deltas were made.
pub(crate) fn lived(before: &Data, choices: &[Choice]) -> (Vec<Delta>, Vec<Data>) {
    let targets = Targets::default();
    let applier = Applier::strict(&targets);
    let (mut deltas, mut states) = (Vec::new(), vec![before.clone()]);
    for choice in choices {
        let mut state = states.last().unwrap().clone();
        if let Some(delta) = choice.delta(&state) {
            applier.apply(&mut state, &delta).unwrap();
            deltas.push(delta);
            states.push(state);
        }
    }
    (deltas, states)
}

/// A history of more turns than the longest interval, the same in every run.
pub(crate) fn long_history() -> (Data, Vec<Delta>, Vec<Data>) {
    let mut runner = TestRunner::deterministic();
    let before = state().new_tree(&mut runner).unwrap().current();
    let choices = prop::collection::vec(choice(), 160).new_tree(&mut runner).unwrap().current();
    let (deltas, states) = lived(&before, &choices);
    assert!(deltas.len() > 110, "{} turns", deltas.len());
    (before, deltas, states)
}
