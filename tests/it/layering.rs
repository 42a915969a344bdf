//! Data flows one way inside of `src`, and the core is free of clocks, randomness, globals and IO: the
//! sources say so themselves. What the crates depend on is held by cargo (`scripts/layers`).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use data::files_under;

/// What every module may use. They use nothing but each other.
const BASE: &[&str] = &["error", "id", "json", "log", "record", "text", "tokens", "usage"];

/// What each module may use besides itself and [`BASE`]. A module that is not named here has no
/// place in the layers yet.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("id", &[]),
    ("json", &[]),
    ("log", &[]),
    ("record", &[]),
    ("text", &[]),
    ("tokens", &[]),
    ("usage", &[]),
    ("snapshot", &[]),
    ("veil", &["snapshot"]),
    ("hud", &["snapshot", "veil"]),
    ("transcript", &["snapshot", "veil"]),
    ("steps", &["snapshot", "veil"]),
    ("summary", &["snapshot", "veil", "steps"]),
    ("compress", &["snapshot", "veil", "steps", "summary"]),
    ("window", &["snapshot", "veil", "hud", "steps", "summary", "compress"]),
    ("redact", &["snapshot", "veil"]),
    ("export", &["snapshot", "veil", "hud", "steps", "summary", "compress"]),
    (
        "request",
        &[
            "snapshot",
            "veil",
            "hud",
            "steps",
            "summary",
            "compress",
            "window",
            "export",
            "transcript",
        ],
    ),
    (
        "replay",
        &["snapshot", "veil", "hud", "steps", "summary", "compress", "window", "export", "request"],
    ),
    (
        "bill",
        &[
            "snapshot",
            "veil",
            "hud",
            "steps",
            "summary",
            "compress",
            "window",
            "export",
            "transcript",
            "request",
        ],
    ),
    (
        "guard",
        &[
            "snapshot",
            "veil",
            "hud",
            "steps",
            "summary",
            "compress",
            "window",
            "export",
            "transcript",
            "request",
            "bill",
        ],
    ),
    (
        "otlp",
        &[
            "snapshot",
            "veil",
            "hud",
            "steps",
            "summary",
            "compress",
            "window",
            "export",
            "transcript",
            "request",
        ],
    ),
    ("timeline", &[]),
    ("checkpoint", &[]),
    ("journal", &[]),
    ("observe", &[]),
    (
        "session",
        &[
            "snapshot",
            "veil",
            "hud",
            "transcript",
            "steps",
            "summary",
            "compress",
            "window",
            "export",
            "request",
            "bill",
            "guard",
            "timeline",
            "checkpoint",
            "journal",
            "observe",
        ],
    ),
];

/// The files and folders that touch the outside: the one place where domain and storage meet, the
/// log that all storage writes through, what opens a file or a folder for the caller, the engine that runs a
/// command, the database of observations, the journal on a server, and the recorder.
const OUTSIDE: &[&str] = &[
    "session/",
    "session.rs",
    "transcript/database.rs",
    "transcript/input.rs",
    "transcript/flight.rs",
    "transcript/folder.rs",
    "transcript/kimi_state.rs",
    "transcript/subagents.rs",
    "compress/command.rs",
    "crates/log/",
    "crates/observe/sqlite",
    "crates/journal/nats/",
    "crates/record/entry.rs",
    "crates/record/folder.rs",
    "crates/record/recorder",
    "crates/record/wire/",
];

/// The crates that know no frames.
const CRATES: &[&str] =
    &["json", "log", "tokens", "timeline", "journal", "observe", "checkpoint", "record"];

/// What the rest must not touch.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "SystemTime::now",
    "Instant::now",
    "std::thread::spawn",
    "std::thread::scope",
    "std::thread::Builder",
    "thread::spawn",
    "thread::scope",
    "thread::Builder",
    "rand",
    "getrandom",
    "fastrand",
    "static mut",
    "thread_local!",
];

/// The paths that a source names: each `use` spelled out, and whatever else has a `::`.
fn paths_in(source: &str) -> Vec<String> {
    let code = code_of(source);
    let mut paths = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("use ") {
        let starts_word =
            rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';');
        rest = &rest[at + "use ".len()..];
        if starts_word {
            let tree = rest.split(';').next().unwrap_or_default();
            spell_out("", tree, &mut paths);
        }
    }
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_path(c)).filter(|word| word.contains("::"));
    paths.extend(words.map(|word| word.trim_end_matches(':').to_owned()));
    paths
}

/// The paths of a use tree: `a::{b, c::{d, e as f}}` is `a::b`, `a::c::d` and `a::c::e`.
fn spell_out(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let (mut depth, mut from) = (0_usize, 0);
    let mut parts = Vec::new();
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => parts.push(&tree[std::mem::replace(&mut from, at + 1)..at]),
            _ => {}
        }
    }
    parts.push(&tree[from..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        if let Some((head, inner)) = part.split_once('{') {
            let inner = inner.strip_suffix('}').unwrap_or(inner);
            spell_out(&format!("{prefix}{}", head.trim()), inner, paths);
        } else {
            let path = part.split_whitespace().next().unwrap_or_default();
            paths.push(format!("{prefix}{}", path.trim_end_matches("::self")));
        }
    }
}

/// A source without its comments, the contents of its plain strings, and its tests.
fn code_of(source: &str) -> String {
    let tests =
        ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(super) mod "].map(|mark| source.find(mark));
    let tests = tests.into_iter().flatten().min().unwrap_or(source.len());
    let mut code = String::new();
    for line in source[..tests].lines() {
        let mut in_string = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '/' if !in_string && chars.peek() == Some(&'/') => break,
                '\\' if in_string => {
                    chars.next();
                }
                '\'' if !in_string && chars.peek() == Some(&'"') => {
                    // The character of a quotation mark.
                    chars.next();
                }
                '"' => in_string = !in_string,
                c if !in_string => code.push(c),
                _ => {}
            }
        }
        code.push('\n');
    }
    code
}

/// The modules outside of `module` that `paths` name, and the paths that climb out by `super`.
/// `depth` is how many modules the file is deep in the crate.
fn uses<'p>(
    paths: &'p [String],
    module: &str,
    depth: usize,
) -> (BTreeSet<&'p str>, BTreeSet<&'p str>) {
    let mut used = BTreeSet::new();
    let mut escapes = BTreeSet::new();
    for path in paths {
        if let Some(inside) = path.strip_prefix("crate::") {
            let name = inside.split("::").next().unwrap_or_default();
            // The crate's root names the error and nothing else.
            let name =
                if ["Error", "ErrorKind", "Result"].contains(&name) { "error" } else { name };
            if name != module {
                used.insert(name);
            }
        }
        let climbs = path.split("::").take_while(|part| *part == "super").count();
        if climbs >= depth {
            escapes.insert(path.as_str());
        }
    }
    (used, escapes)
}

fn allowed(module: &str) -> Option<Vec<&'static str>> {
    let (_, above) = LAYERS.iter().find(|(name, _)| *name == module)?;
    Some(BASE.iter().chain(*above).copied().collect())
}

/// Every source with its path below `src`, or `crates/` and its path below the `src` of a crate, but
/// for the files that hold a module's tests.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![(String::new(), root.join("src"))];
    for name in CRATES {
        folders.push((format!("crates/{name}/"), root.join("crates").join(name).join("src")));
    }
    let mut sources = Vec::new();
    for (prefix, folder) in folders {
        for path in files_under(&folder) {
            let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().replace('\\', "/");
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            if is_rust && !name.ends_with("_tests.rs") {
                sources.push((format!("{prefix}{name}"), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources
}

/// What each room of the program names of the others: a room is a command or a module beside them,
/// with its folder.
fn rooms_of_the_program() -> BTreeMap<String, BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/cli/src");
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_under(&folder) {
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().replace('\\', "/");
        let room = name.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let paths = paths_in(&fs::read_to_string(&path).unwrap());
        let (used, _) = uses(&paths, &room, usize::MAX);
        let used = used.into_iter().map(str::to_owned);
        rooms.entry(room).or_default().extend(used);
    }
    rooms
}

/// The rooms that are left where each that names none of the others is taken away, again and again:
/// those of circles, and those above them.
fn circle_in(mut rooms: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let names: BTreeSet<String> = rooms.keys().cloned().collect();
        let before = names.len();
        rooms.retain(|_, used| used.iter().any(|other| names.contains(other)));
        if rooms.len() == before {
            return rooms.into_keys().collect();
        }
    }
}

/// The layer of a source: its module, or a part of one that stands higher.
fn layer_of(name: &str) -> &str {
    let mut parts = LAYERS.iter().map(|(layer, _)| *layer).filter(|layer| layer.contains('/'));
    let of_part =
        |layer: &&str| name.strip_prefix(*layer).is_some_and(|rest| rest.starts_with('/'));
    let module = name.split('/').next().unwrap_or(name).trim_end_matches(".rs");
    parts.find(of_part).unwrap_or(module)
}

/// What a source at `name` does that its layer may not.
fn offences(name: &str, source: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let module = layer_of(name);
    let paths = paths_in(source);
    let mut offences = Vec::new();
    let climbs_into = |(layer, _): &&(&str, &[&str])| {
        let Some((outer, inner)) = layer.split_once('/') else { return false };
        // The table of contents of the module shows what the part has.
        module == outer
            && name != format!("{outer}/mod.rs")
            && paths.iter().any(|path| path.split("::").any(|part| part == inner))
    };
    let higher = LAYERS.iter().filter(climbs_into);
    offences.extend(higher.map(|(layer, _)| format!("{name}: {module} may not use {layer}")));
    if module != "lib" && module != "crates" {
        let depth = parts.len() - usize::from(name.ends_with("/mod.rs"));
        let depth = depth - module.matches('/').count();
        let (used, escapes) = uses(&paths, module, depth);
        let Some(allowed) = allowed(module) else {
            return vec![format!("{name}: the layers do not name the module {module}")];
        };
        let wrong = used.into_iter().filter(|used| !allowed.contains(used));
        offences.extend(wrong.map(|used| format!("{name}: {module} may not use {used}")));
        offences.extend(escapes.into_iter().map(|path| format!("{name}: {path} leaves {module}")));
    }
    if !OUTSIDE.iter().any(|outside| name.starts_with(outside)) {
        let code = code_of(source);
        let touches = |forbidden: &&&str| {
            let of_path =
                |path: &String| path == *forbidden || path.starts_with(&format!("{forbidden}::"));
            paths.iter().any(of_path)
                || forbidden.contains([' ', '!']) && code.contains(**forbidden)
        };
        let outside = FORBIDDEN.iter().filter(touches);
        let offence = |forbidden| format!("{name}: only the outermost layer touches {forbidden}");
        offences.extend(outside.map(offence));
    }
    offences
}

#[test]
fn data_flows_one_way_and_the_core_touches_nothing_outside() {
    let sources = sources();
    assert!(sources.len() > 20);
    let offences: Vec<String> =
        sources.iter().flat_map(|(name, source)| offences(name, source)).collect();
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn no_circle_of_imports_in_the_program_is_wider_than_the_folder_of_a_command() {
    let rooms = rooms_of_the_program();
    assert!(rooms.len() > 20 && rooms["stats"].contains("args"));
    assert_eq!(circle_in(rooms.clone()), [""; 0]);
    let mut circle = rooms;
    circle.get_mut("args").unwrap().insert("stats".to_owned());
    assert!(circle_in(circle).contains(&"args".to_owned()));
}

#[test]
fn nothing_outside_of_the_readers_asks_which_format_it_was() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/cli/src");
    let of_program = files_under(&program).into_iter().map(|path| {
        let name = path.strip_prefix(&program).unwrap().to_str().unwrap().replace('\\', "/");
        (format!("crates/cli/{name}"), fs::read_to_string(&path).unwrap())
    });
    let sources = sources().into_iter().filter(|(name, _)| !name.starts_with("transcript/"));
    let mut asking = Vec::new();
    for (name, source) in sources.chain(of_program) {
        for path in paths_in(&source) {
            let format = path.rsplit_once("TranscriptFormat::").map(|(_, format)| format);
            // `ALL` and functions are for everybody.
            let is_variant = format
                .is_some_and(|format| format.starts_with(char::is_uppercase) && format != "ALL");
            if is_variant {
                asking.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(asking.is_empty(), "a column of the table of formats is missing: {asking:?}");
}

#[test]
fn the_layers_have_no_circle() {
    let above: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    assert_eq!(above.len(), LAYERS.len(), "a module is named twice");
    for (at, (name, uses)) in LAYERS.iter().enumerate() {
        for used in *uses {
            let below = LAYERS.iter().position(|(other, _)| other == used);
            assert!(
                below.is_some_and(|below| below < at),
                "{name} uses {used}, which is not below it"
            );
        }
    }
    for siblings in ["timeline", "checkpoint", "journal", "observe"] {
        assert!(above[siblings].is_empty());
    }
}

#[test]
fn what_is_not_allowed_is_found() {
    let check =
        |name: &str, source: &str, expected: &[&str]| assert_eq!(offences(name, source), expected);
    check("veil/op.rs", "use crate::{Error, json::{Path, Value}, snapshot::Part};", &[]);
    check("veil/op.rs", "// use crate::hud::Hud;\nlet s = \"crate::hud\";", &[]);
    check(
        "veil/op.rs",
        "use crate::{\n    id::FacetId,\n    hud::{Hud, Merge},\n};",
        &["veil/op.rs: veil may not use hud"],
    );
    check("veil/op.rs", "fn f() { crate::hud::f() }", &["veil/op.rs: veil may not use hud"]);
    check(
        "snapshot/chunk.rs",
        "use crate::veil;",
        &["snapshot/chunk.rs: snapshot may not use veil"],
    );
    check(
        "compress/job.rs",
        "use crate::timeline::Delta;",
        &["compress/job.rs: compress may not use timeline"],
    );
    check(
        "summary/outline/fit.rs",
        "use crate::compress::Engine;",
        &["summary/outline/fit.rs: summary may not use compress"],
    );
    check("session/bridge/draft.rs", "use crate::{checkpoint::diff, veil::Frame};", &[]);
    check("crates/timeline/apply.rs", "use crate::Data;", &[]);
    check(
        "crates/timeline/apply.rs",
        "use std::time::Instant; fn f() { Instant::now(); }",
        &["crates/timeline/apply.rs: only the outermost layer touches Instant::now"],
    );
    check("crates/log/disk.rs", "use std::fs;", &[]);
    check("hud/xml.rs", "use super::Format;", &[]);
    check(
        "hud/xml.rs",
        "use super::super::export::f;",
        &["hud/xml.rs: super::super::export::f leaves hud"],
    );
    check("hud/mod.rs", "use super::export;", &["hud/mod.rs: super::export leaves hud"]);
    check("text.rs", "use super::id;", &["text.rs: super::id leaves text"]);
    check("extra.rs", "", &["extra.rs: the layers do not name the module extra"]);
    let clock = "hud/a.rs: only the outermost layer touches";
    check("hud/a.rs", "use std::{io, fs::{self, File}};", &[&format!("{clock} std::fs")]);
    check("hud/a.rs", "use std::fs;", &[&format!("{clock} std::fs")]);
    check("hud/a.rs", "let t = Instant::now();", &[&format!("{clock} Instant::now")]);
    check("hud/a.rs", "static mut X: u8 = 0;", &[&format!("{clock} static mut")]);
    check("hud/a.rs", "use rand::Rng;", &[&format!("{clock} rand")]);
    check("hud/a.rs", "thread::spawn(f)", &[&format!("{clock} thread::spawn")]);
    check("session/a.rs", "use std::fs; use crate::{hud, journal};", &[]);
    check("hud/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }", &[]);
}
