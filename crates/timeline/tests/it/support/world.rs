//! A world of about 500 KB, and turns that change 1 to 10 things in it. Everything is invented and
//! follows from the turn's number.
#![allow(dead_code, reason = "each test takes what it needs")]

use afterimage_json::{Path, PathElement};
use afterimage_timeline::{Data, Delta, DeltaOperation};

pub(crate) const NPCS: u64 = 900;

const WORDS: &[&str] = &[
    "harbour",
    "lantern",
    "quiet",
    "ridge",
    "copper",
    "morning",
    "ledger",
    "weathered",
    "stair",
    "tide",
    "orchard",
    "rumour",
    "glass",
    "hollow",
    "ferry",
    "salt",
    "keeper",
    "north",
    "broken",
    "thread",
    "winter",
    "market",
    "stone",
    "whisper",
    "river",
    "candle",
    "gate",
    "bitter",
    "song",
];

/// Numbers that follow from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end.max(1)
    }

    pub(crate) fn text(&mut self, words: u64) -> Data {
        let words: Vec<_> =
            (0..words).map(|_| WORDS[(self.below(WORDS.len() as u64)) as usize]).collect();
        Data::from(words.join(" ").as_str())
    }
}

fn object<const N: usize>(members: [(&str, Data); N]) -> Data {
    Data::from_iter(members)
}

fn npc_id(n: u64) -> String {
    format!("npc-{n:04}")
}

/// The world at its beginning.
pub(crate) fn world() -> Data {
    let mut dice = Dice::new(7);
    let npcs: Data = (0..NPCS)
        .map(|n| {
            let npc = object([
                ("name", dice.text(2)),
                ("description", dice.text(30)),
                ("relationship", Data::from(0_u64)),
                ("mood", dice.text(1)),
                ("knowledge", (0..3).map(|_| dice.text(2)).collect()),
                (
                    "stress",
                    object([(
                        "physical",
                        [false, false, false].map(Data::from).into_iter().collect(),
                    )]),
                ),
                ("location", Data::from(format!("loc-{:03}", n % 150).as_str())),
            ]);
            (npc_id(n), npc)
        })
        .collect();
    let locations: Data = (0..150_u64)
        .map(|n| {
            let place = object([
                ("name", dice.text(2)),
                ("description", dice.text(60)),
                ("aspects", (0..2).map(|_| object([("name", dice.text(3))])).collect()),
                ("discovered", Data::from(false)),
            ]);
            (format!("loc-{n:03}"), place)
        })
        .collect();
    let quests: Data = (0..60_u64)
        .map(|n| {
            (
                format!("quest-{n:02}"),
                object([
                    ("title", dice.text(4)),
                    ("status", Data::from("open")),
                    ("progress", Data::from(0_u64)),
                ]),
            )
        })
        .collect();
    object([
        (
            "player",
            object([
                ("name", dice.text(2)),
                ("hp", Data::from(100_u64)),
                ("location", object([("zone", dice.text(1))])),
                ("inventory", Data::from_iter(Vec::<Data>::new())),
                ("knowledge", object([])),
            ]),
        ),
        ("world", object([("locations", locations), ("weather", dice.text(1))])),
        (
            "scene",
            object([("name", dice.text(3)), ("aspects", Data::from_iter(Vec::<Data>::new()))]),
        ),
        ("npcs", npcs),
        ("quests", quests),
        ("gameTime", object([("day", Data::from(1_u64)), ("minute", Data::from(0_u64))])),
    ])
}

fn path(elements: impl IntoIterator<Item = &'static str>) -> Path {
    Path::of_keys(elements)
}

fn keyed(first: &str, rest: &[&str]) -> Path {
    [first].iter().chain(rest).map(|key| PathElement::from(*key)).collect()
}

/// A change that sets a scalar, of the state as it is: what replays fastest.
pub(crate) fn simple(state: &Data, n: u64) -> Delta {
    let mut dice = Dice::new(n + 1);
    let npc = npc_id(dice.below(NPCS));
    let at = keyed(&npc, &["relationship"]);
    let full: Path = keyed("npcs", &[&npc, "relationship"]);
    let previous = state.at(full.elements()).cloned();
    Delta::new("npc", DeltaOperation::Set, at).replacing(previous, Data::from(n + 1))
}

/// The deltas of a turn, 1 to 10, with the state after them in `state`.
pub(crate) fn turn(state: &mut Data, turn: u64) -> Vec<Delta> {
    let targets = afterimage_timeline::Targets::default();
    let mut dice = Dice::new(turn);
    let count = 1 + dice.below(10);
    let mut deltas = Vec::new();
    for _ in 0..count {
        let delta = change(state, turn, &mut dice);
        afterimage_timeline::Applier::strict(&targets).apply(state, &delta).unwrap();
        deltas.push(delta);
    }
    deltas
}

fn change(state: &Data, turn: u64, dice: &mut Dice) -> Delta {
    let npc = npc_id(dice.below(NPCS));
    let found = |path: &[&str]| state.at(Path::of_keys(path.iter().copied()).elements()).cloned();
    let number = |value: &Option<Data>| {
        value
            .as_ref()
            .and_then(Data::as_number)
            .and_then(afterimage_json::Number::as_u64)
            .unwrap_or(0)
    };
    match dice.below(10) {
        0 => {
            let previous = found(&["player", "location", "zone"]);
            Delta::new("player", DeltaOperation::Set, path(["location", "zone"]))
                .replacing(previous, dice.text(1))
        }
        1 | 2 => {
            let previous = found(&["npcs", &npc, "relationship"]);
            let new = Data::from(number(&previous) + 1 + dice.below(9));
            Delta::new("npc", DeltaOperation::Increment, keyed(&npc, &["relationship"]))
                .replacing(previous, new)
        }
        3 => {
            let previous = found(&["npcs", &npc, "mood"]);
            Delta::new("npc", DeltaOperation::Set, keyed(&npc, &["mood"]))
                .replacing(previous, dice.text(1))
        }
        4 => {
            let list = found(&["npcs", &npc, "knowledge"]).unwrap();
            let length = list.as_array().unwrap().len();
            Delta::new("npc", DeltaOperation::Append, keyed(&npc, &["knowledge"]))
                .replacing(None, Data::from_iter([dice.text(2)]))
                .of_length(length)
        }
        5 => {
            let previous = found(&["gameTime", "minute"]);
            let new = Data::from(number(&previous) + 5);
            Delta::new("time", DeltaOperation::Increment, path(["minute"])).replacing(previous, new)
        }
        6 => {
            let key = format!("fact-{turn}-{}", dice.below(1000));
            let previous = found(&["player", "knowledge", &key]);
            Delta::new("player", DeltaOperation::Set, keyed("knowledge", &[&key]))
                .replacing(previous, dice.text(4))
        }
        7 => {
            let quest = format!("quest-{:02}", dice.below(60));
            let previous = found(&["quests", &quest, "progress"]);
            let new = Data::from(number(&previous) + 1);
            Delta::new("quest", DeltaOperation::Increment, keyed(&quest, &["progress"]))
                .replacing(previous, new)
        }
        8 => {
            let list = found(&["player", "inventory"]).unwrap();
            let list = list.as_array().unwrap();
            if list.len() > 20 {
                let gone = Data::from_iter([
                    ("index", Data::from(3_u64)),
                    ("item", list.get(3).unwrap().clone()),
                ]);
                return Delta::new("inventory", DeltaOperation::Remove, path([]))
                    .replacing(gone, None)
                    .of_length(list.len());
            }
            Delta::new("inventory", DeltaOperation::Append, path([]))
                .replacing(None, Data::from_iter([dice.text(2)]))
                .of_length(list.len())
        }
        _ => {
            let previous = found(&["player", "hp"]);
            let new = Data::from(dice.below(100));
            Delta::new("player", DeltaOperation::Set, path(["hp"])).replacing(previous, new)
        }
    }
}
