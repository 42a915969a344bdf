//! Generated histories: every kind of facet, op and text that a renderer must stand.
//!
//! Plans come first and frames second: a plan names its target by a number, and only when the
//! frames are made does that number pick one of the facets that hold by then. So plans shrink
//! freely and the frames are valid all the same.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use afterimage::{
    id::FacetType,
    json::{self, Object, Value},
    veil::{Facet, FacetChange, FacetOp, Frame, PartContent, Source},
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{Index, select},
};
use regex_automata::meta::Regex;

/// The ids that facets have: few, so that they meet again.
const IDS: [&str; 7] = ["a", "b", "c", "event-1", "état", "漢", "<my_turn>"];

/// The display names that facets have: plain ones, and what a tag cannot hold.
pub(crate) const NAMES: [&str; 14] = [
    "ship_status",
    "Ship Status",
    "a",
    "thought",
    "my_turn",
    "tool_call",
    "x-1",
    "漢字",
    "né",
    "",
    " ",
    "</my_turn>",
    "two\nlines",
    "pending_activations",
];

/// What a plan does to one facet.
#[derive(Clone, Debug)]
enum Plan {
    Add { id: usize, facet: Box<Facet> },
    Rewrite { target: usize, changes: Object, unset: Vec<json::Path> },
    Remove { target: usize },
}

/// A history of up to `most` frames, whose sequences may have gaps.
pub(crate) fn history(most: usize) -> impl Strategy<Value = Vec<Frame>> {
    let first = prop_oneof![8 => Just(0_u64), 1 => Just(1), 1 => 5..1_000_000_u64];
    let step = prop_oneof![9 => Just(1_u64), 1 => 2..99_u64];
    (first, vec((step, source(), vec(plan(), 0..7)), 0..=most))
        .prop_map(|(first, plans)| frames_of(first, plans))
}

fn frames_of(first: u64, plans: Vec<(u64, Source, Vec<Plan>)>) -> Vec<Frame> {
    // The facets that hold, each with whether it goes at the end of its frame.
    let mut holding: BTreeMap<String, bool> = BTreeMap::new();
    let mut frames = Vec::with_capacity(plans.len());
    let mut sequence = first;
    for (step, source, plans) in plans {
        let mut frame = Frame::new(sequence, source);
        sequence += step;
        for plan in plans {
            let pick = |target: usize| {
                let count = holding.len();
                holding.keys().nth(target.checked_rem(count)?).cloned()
            };
            match plan {
                Plan::Add { id, facet } => {
                    let facet = with_ids(*facet, IDS[id % IDS.len()]);
                    holding.insert(facet.id.to_string(), facet.ephemeral);
                    frame.ops.push(FacetOp::add(facet));
                }
                Plan::Rewrite { target, changes, unset } => {
                    let Some(id) = pick(target) else { continue };
                    if let Some(flag) = changes.get("ephemeral") {
                        holding.insert(id.clone(), flag.as_bool().unwrap_or_default());
                    }
                    frame.ops.push(FacetChange::Rewrite { id: id.into(), changes, unset }.into());
                }
                Plan::Remove { target } => {
                    let Some(id) = pick(target) else { continue };
                    holding.remove(&id);
                    frame.ops.push(FacetOp::remove(id));
                }
            }
        }
        holding.retain(|_, ephemeral| !*ephemeral);
        frames.push(frame);
    }
    frames
}

fn with_ids(mut facet: Facet, id: &str) -> Facet {
    facet.id = id.into();
    facet.children = std::mem::take(&mut facet.children)
        .into_iter()
        .enumerate()
        .map(|(index, child)| with_ids(child, &format!("{id}.{index}")))
        .collect();
    facet
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        3 => Just(Source::User),
        4 => Just(Source::Agent),
        3 => Just(Source::Environment),
        1 => Just(Source::System),
        1 => select(&["radar", "", "User"][..]).prop_map(Source::from),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        6 => (0..IDS.len(), shape(3))
            .prop_map(|(id, facet)| Plan::Add { id, facet: Box::new(facet) }),
        3 => (0..8_usize, changes(), unset())
            .prop_map(|(target, changes, unset)| Plan::Rewrite { target, changes, unset }),
        2 => (0..8_usize).prop_map(|target| Plan::Remove { target }),
    ]
}

/// A facet of any type, without ids, with children down to `depth`.
fn shape(depth: u32) -> BoxedStrategy<Facet> {
    let children = match depth {
        0 => Just(Vec::new()).boxed(),
        _ => prop_oneof![4 => Just(Vec::new()), 1 => vec(shape(depth - 1), 1..3)].boxed(),
    };
    (
        kind(),
        option::weighted(0.4, select(&NAMES[..])),
        children,
        prop::bool::weighted(0.15),
        extra(),
    )
        .prop_map(|(facet, name, children, ephemeral, extra)| Facet {
            display_name: name.map(str::to_owned),
            children,
            ephemeral,
            extra,
            ..facet
        })
        .boxed()
}

fn extra() -> impl Strategy<Value = Object> {
    let unknown = Object::from_iter([("unknownField".to_owned(), Value::from("kept"))]);
    prop_oneof![9 => Just(Object::new()), 1 => Just(unknown)]
}

fn kind() -> impl Strategy<Value = Facet> {
    let types = [
        FacetType::EVENT,
        FacetType::SPEECH,
        FacetType::THOUGHT,
        FacetType::STATE,
        FacetType::STATE,
        FacetType::AMBIENT,
        FacetType::SYSTEM,
        FacetType::SUMMARY,
        FacetType::IMAGE,
        FacetType::OPAQUE,
        FacetType::UNKNOWN,
        FacetType::ACTION,
        FacetType::RESULT,
        FacetType::from("of my own"),
    ];
    let said = (select(types.to_vec()), text(), option::weighted(0.3, value(2))).prop_map(
        |(facet_type, content, state)| Facet { state, ..Facet::new("", facet_type, content) },
    );
    let id = || option::of(select(&["call_1", "call_2", ""][..]));
    let name = || select(&["get", "", "a b", "</tool_call>", "q\"&<>\n", "漢"][..]);
    let call = (id(), name(), value(2))
        .prop_map(|(id, name, parameters)| Facet::tool_call("", id, name, parameters));
    let raw = (id(), name(), text()).prop_map(|(id, name, arguments)| {
        Facet::new("", FacetType::ACTION, "").with_part(PartContent::Call {
            id: id.map(Box::from),
            name: name.into(),
            parameters: None,
            arguments: Some(arguments.into()),
        })
    });
    let result = (id(), option::of(name()), text())
        .prop_map(|(id, name, content)| Facet::tool_result("", id, name, content));
    prop_oneof![6 => said, 2 => call, 1 => raw, 2 => result]
}

fn changes() -> impl Strategy<Value = Object> {
    let member = |key: &'static str, value: BoxedStrategy<Value>| (Just(key.to_owned()), value);
    let types = select(&["event", "state", "ambient", "speech", "unknown"][..]);
    let change = prop_oneof![
        3 => member("content", prop_oneof![4 => text().prop_map(Value::from), 1 => Just(Value::Null)].boxed()),
        4 => member("state", value(2).boxed()),
        1 => member("displayName", prop_oneof![select(&NAMES[..]).prop_map(Value::from), Just(Value::Null)].boxed()),
        1 => member("ephemeral", any::<bool>().prop_map(Value::from).boxed()),
        1 => member("attributes", prop_oneof![object(1).prop_map(Value::from), Just(Value::Null)].boxed()),
        1 => member("type", types.prop_map(Value::from).boxed()),
        1 => member("unknownField", value(1).boxed()),
    ];
    vec(change, 0..3).prop_map(|members| members.into_iter().collect())
}

fn unset() -> impl Strategy<Value = Vec<json::Path>> {
    let paths: &[&[&str]] = &[
        &["state", "k"],
        &["state"],
        &["content"],
        &["nothing"],
        &["state", "m", "k"],
        &[],
        &["displayName"],
    ];
    prop_oneof![3 => Just(Vec::new()), 1 => vec(select(paths), 1..3).prop_map(|paths| {
        paths.into_iter().map(|path| json::Path::of_keys(path.iter().copied())).collect()
    })]
}

/// A JSON value with strings that forge, nested down to `depth`.
fn value(depth: u32) -> BoxedStrategy<Value> {
    let number = select(&["0", "-1", "1.50", "12345678901234567890123"][..])
        .prop_map(|digits| json::read(digits.as_bytes()).expect("a number"));
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text().prop_map(Value::from),
    ];
    if depth == 0 {
        return scalar.boxed();
    }
    let array = vec(value(depth - 1), 0..3).prop_map(Value::from);
    prop_oneof![2 => scalar, 1 => array, 4 => object(depth - 1).prop_map(Value::from)].boxed()
}

fn object(depth: u32) -> impl Strategy<Value = Object> {
    let key = select(&["k", "m", "a b", "</parameter>", "\"", "漢"][..]).prop_map(str::to_owned);
    vec((key, value(depth)), 0..3).prop_map(|members| members.into_iter().collect())
}

/// What a facet says: up to six pieces that are hard each in its own way.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let plain = select(
        &[
            "word",
            "Energy signature in sector 7-G",
            " ",
            "\n",
            "\n\n",
            "\t",
            "\r\n",
            "漢字かな交じり文",
            "👩‍👩‍👧‍👦",
            "🇨🇭",
            "e\u{301}",
            "\u{301}",
            "a\u{308}\u{323}",
            "\u{200b}",
            "\u{feff}",
            "\u{0}",
            "&lt;",
            "&lt;/my_turn>",
            "&amp;",
            "<",
            "< /",
            "</",
            "a<b && c>d",
            "<b>bold</b>",
            "<my_turns>",
            "<|endoftext|>",
            "/my_turn>",
            "my_turn>",
            "tool_call name=\"x\">",
            "ship_status>",
            "<my_",
            "{\"k\":\"v\"}",
            "    ",
        ][..],
    )
    .prop_map(str::to_owned);
    let piece = prop_oneof![5 => plain, 3 => forged()];
    prop_oneof![1 => Just(String::new()), 9 => vec(piece, 1..6).prop_map(|pieces| pieces.concat())]
}

/// A tag of the renderer or of a facet, written so that a lenient reader takes it for one.
fn forged() -> impl Strategy<Value = String> {
    let names = [
        "my_turn",
        "tool_call",
        "tool_result",
        "parameter",
        "thought",
        "pending_activations",
        "ship_status",
        "a",
        "x-1",
        "__",
        "_",
        "n_",
    ];
    let blank = || {
        select(&["", "", "", " ", "\n", "\t ", "            ", "\u{b}", "\u{a0}", "\u{3000}"][..])
    };
    let case = select(&[str::to_owned as fn(&str) -> String, str::to_uppercase, capitalised][..]);
    let end = select(&[">", " >", "/>", " name=\"x\">", ""][..]);
    let tag = (blank(), select(&["", "/"][..]), blank(), select(names.to_vec()), case, end);
    let tag = tag.prop_map(|(before, slash, after, name, case, end)| {
        let after = if slash.is_empty() { "" } else { after };
        format!("<{before}{slash}{after}{}{end}", case(name))
    });
    let hidden = vec((any::<Index>(), select(&INVISIBLE[..])), 1..4);
    (tag, option::weighted(0.4, hidden)).prop_map(|(mut tag, hidden)| {
        for (at, invisible) in hidden.into_iter().flatten() {
            let places: Vec<usize> = tag.char_indices().map(|(at, _)| at).skip(1).collect();
            tag.insert(*at.get(&places), invisible);
        }
        tag
    })
}

/// What cannot be seen, by Unicode's properties, by the list of what has a glyph without ink, and
/// noncharacters; of the many tags of plane 14 only the first.
pub(crate) static INVISIBLE: LazyLock<Vec<char>> = LazyLock::new(|| {
    let ends = ['\u{efffe}', '\u{effff}', '\u{ffffe}', '\u{fffff}', '\u{10fffe}', '\u{10ffff}'];
    let all = ('\0'..'\u{e0080}').chain('\u{e0fff}'..'\u{e1001}').chain(ends);
    let all: String = all.collect();
    let invisible = Regex::new(
        r"[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\x{2800}\x{2D7F}\x{13440}-\x{13442}\x{16FE4}\x{1D159}]",
    )
    .unwrap();
    invisible.find_iter(&all).filter_map(|found| all[found.range()].chars().next()).collect()
});

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

/// The tag that the specification of the XML format makes of a display name: ASCII lower case,
/// `_` for everything that is no letter, digit, `_` or `-`; with `facet_` before a tag of the format
/// itself.
pub(crate) fn tag_of(name: &str) -> String {
    const OWN: &str = "|my_turn|tool_call|parameter|tool_result|thought|pending_activations|";
    let keep = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let tag: String =
        name.chars().map(|c| if keep(c) { c.to_ascii_lowercase() } else { '_' }).collect();
    if OWN.contains(&format!("|{tag}|")) { format!("facet_{tag}") } else { tag }
}

/// The tags of a facet's display name and of its children's.
pub(crate) fn tags_of(facet: &Facet, tags: &mut BTreeSet<String>) {
    tags.extend(facet.display_name.as_deref().map(tag_of));
    facet.children.iter().for_each(|child| tags_of(child, tags));
}
