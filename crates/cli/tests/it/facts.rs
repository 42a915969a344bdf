//! The facts of every recording, as the commands answer: what was asked, the requests with their
//! sums, and the caches that broke. Those that the library knows alone are in its `tests/facts`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use afterimage::{
    checkpoint::SectionKind,
    session::bridge::checkpoint::{Draft, DraftOptions},
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, FacetChange, Frame, Source},
};
use afterimage_testkit::{
    data::beside,
    facts::{Choices, Fact, Recording, check, files, hash_of_all, short_hash},
};
use serde_json::Value;

/// The rows that a command prints, by their files.
type Rows = BTreeMap<String, Vec<Value>>;

/// The rows of every command over one folder.
struct Answers {
    sessions: Rows,
    requests: Rows,
    stats: Rows,
    broken: Rows,
    guard: Rows,
    archived_requests: Rows,
    archived_stats: Rows,
    archived_broken: Rows,
}

impl Answers {
    fn of(folder: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("archive");
        let archive = archive.to_str().unwrap();
        let rows = |args: &[&str], of: &str| rows(home.path(), &[args, &["--json", of]].concat());
        rows(&["archive", "--output", archive], folder);
        Self {
            sessions: rows(&["sessions"], folder),
            requests: rows(&["requests"], folder),
            stats: rows(&["stats", "--format", "native"], folder),
            broken: rows(&["requests", "--broken"], folder),
            guard: rows(&["guard"], folder),
            archived_requests: rows(&["requests"], archive),
            archived_stats: rows(&["stats", "--format", "native"], archive),
            archived_broken: rows(&["requests", "--broken"], archive),
        }
    }

    fn facts(&self, name: &str, path: &Path) -> Option<Recording> {
        let of = |rows: &Rows| rows.get(name).cloned().unwrap_or_default();
        let stats = of(&self.stats);
        let stats = stats.first()?;
        let head = format!("{}, {} sessions", stats["format"].as_str().unwrap(), stats["sessions"]);
        let (sessions, archived) = (of(&self.sessions), of(&self.archived_stats));
        let requests = of(&self.requests);
        let mut facts = vec![task(sessions.first(), path)];
        facts.extend(sums(sessions.first(), stats, archived.first(), &requests));
        let rooms = [("requests", &self.requests), ("archive", &self.archived_requests)];
        let rooms = rooms.map(|(room, rows)| (room, by_number(of(rows), request)));
        facts.extend(of_requests("answer", &rooms));
        let told = [("requests", of(&self.broken)), ("archive", of(&self.archived_broken))];
        let rooms = told.clone().map(|(room, rows)| (room, by_number(rows, cause)));
        facts.extend(of_requests("cause", &rooms));
        let mut rooms = told.map(|(room, rows)| (room, by_number(rows, broken))).to_vec();
        let guard = of(&self.guard);
        if !guard.is_empty() {
            rooms.push(("guard", by_number(guard.clone(), lost)));
        }
        facts.extend(of_requests("broken", &rooms));
        facts.extend(of_requests("forecast", &[("guard", by_number(guard, forecast))]));
        Some(Recording { name: name.to_owned(), head, facts })
    }
}

/// What a command prints, by the files' names below the shared folder.
fn rows(home: &Path, args: &[&str]) -> Rows {
    let mut command = support::afterimage(args);
    command.env("HOME", home).env("AFTERIMAGE_CACHE", home.join("cache"));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = Rows::new();
    let root = format!("{}/", beside("").to_str().unwrap().trim_end_matches('/'));
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().or(row["path"].as_str()).unwrap_or_default();
        rows.entry(file.trim_start_matches(&root).to_owned()).or_default().push(row);
    }
    assert!(!rows.is_empty() || args[1] == "--broken" || args[0] == "guard", "{args:?}");
    rows
}

/// The frame with what the user asked first, in the order of the file.
fn task(session: Option<&Value>, path: &Path) -> Fact {
    let mut sessions: BTreeMap<Arc<str>, Draft> = BTreeMap::new();
    let mut frames: Vec<(Arc<str>, Frame)> = Vec::new();
    let mut transcript = Transcript::open(path).unwrap();
    for record in transcript.by_ref().map(Result::unwrap) {
        sessions.entry(Arc::clone(&record.session)).or_default().see(&record.frame);
        frames.push((record.session, record.frame));
    }
    let at = |is_it: &dyn Fn(&Arc<str>, &Frame) -> bool| {
        let found = frames.iter().position(|(session, frame)| is_it(session, frame));
        found.map_or("nowhere".to_owned(), |at| format!("frame {}", frames[at].1.sequence))
    };
    let firsts: BTreeMap<&Arc<str>, String> =
        sessions.iter().filter_map(|(name, draft)| Some((name, first_step(draft)?))).collect();
    let by_draft = at(&|session, frame| {
        firsts.get(session).is_some_and(|first| *first == frame.sequence.to_string())
    });
    let first = session.map_or(&Value::Null, |session| &session["first"]);
    // A line may hold the whole recording, so the words count too: letters, since signs are shown.
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let shown = first["text"].as_str().and_then(|text| text.split("<U+").next());
    let words = shown.map(letters).filter(|words| !words.is_empty());
    let by_sessions = at(&|_, frame| {
        let line = frame.imported.as_ref().map(|imported| imported.line);
        let says = |facet: &Facet| {
            words.as_deref().is_some_and(|words| letters(&facet.content).contains(words))
        };
        line == first["line"].as_u64()
            && frame.uuid.as_deref() == first["uuid"].as_str()
            && frame.source == Source::User
            && frame
                .ops
                .iter()
                .any(|op| matches!(&op.change, FacetChange::Add(facet) if says(facet)))
    });
    let answers = vec![("sessions", by_sessions), ("draft", by_draft)];
    let kind = opening(first["text"].as_str().unwrap_or_default());
    Fact { place: "first".to_owned(), name: "task", kind, answers }
}

/// The frame of the first request in a draft.
fn first_step(draft: &Draft) -> Option<String> {
    let options = DraftOptions::new("first").created("2026-01-01T00:00:00Z").token_limit(1 << 24);
    let drafted = draft.checkpoint(&options, &Chars4).ok()?.checkpoint;
    let steps = drafted.body(SectionKind::PlayByPlay)?;
    let (frame, _) = steps.lines().next()?.strip_prefix("- Frame ")?.split_once(':')?;
    Some(frame.to_owned())
}

/// The tag that a text begins with, or that it has none.
fn opening(text: &str) -> String {
    let tag = text.strip_prefix('<').and_then(|rest| Some(rest.split_once('>')?.0));
    tag.map_or_else(|| "words".to_owned(), |tag| format!("<{tag}>"))
}

/// The sums of a file's requests.
fn sums(
    session: Option<&Value>,
    stats: &Value,
    archived: Option<&Value>,
    requests: &[Value],
) -> Vec<Fact> {
    let (rows, totals): (Vec<&Value>, Vec<&Value>) =
        requests.iter().partition(|row| row["request"].is_u64());
    let own = rows.iter().filter(|row| row["copied"].is_null()).count();
    let tokens = |of: &str| rows.iter().filter_map(|row| row["tokens"][of].as_u64()).sum::<u64>();
    let all: u64 = ["tools", "system", "messages"].map(tokens).iter().sum();
    let session = session.unwrap_or(&Value::Null);
    let of_all = |list: &str, sum: fn(&Value) -> String| {
        let total = |of: Option<&&Value>| sum(of.map_or(&Value::Null, |of| &of[list]["total"]));
        let answers =
            [("requests", totals.first()), ("stats", Some(&stats)), ("archive", archived.as_ref())];
        answers.map(|(room, of)| (room, total(of))).to_vec()
    };
    let counted = |member: &str| {
        let of = |from: Option<&Value>| {
            from.map_or(&Value::Null, |of| &of["requests"][member]).to_string()
        };
        vec![("stats", of(Some(stats))), ("archive", of(archived))]
    };
    let with = |mut answers: Vec<(&'static str, String)>, room, answer| {
        answers.push((room, answer));
        answers
    };
    let answers = [
        ("requests", with(counted("count"), "requests", rows.len().to_string())),
        ("own", vec![("requests", own.to_string()), ("sessions", session["requests"].to_string())]),
        (
            "copied",
            vec![("requests", (rows.len() - own).to_string()), ("sessions", copied(session))],
        ),
        ("tokens", with(counted("tokens"), "requests", all.to_string())),
        ("usage", with(of_all("usage", usage), "sessions", usage(&session["usage"]))),
        ("cost", with(of_all("price", money), "sessions", money(&session["cost"]))),
    ];
    let kind = stats["format"].as_str().unwrap();
    let fact =
        |(name, answers)| Fact { place: "sum".to_owned(), name, kind: kind.to_owned(), answers };
    answers.map(fact).into()
}

/// How many requests a session has that another one paid.
fn copied(session: &Value) -> String {
    let of = session["copied"].as_array().into_iter().flatten();
    of.filter_map(|of| of["requests"].as_u64()).sum::<u64>().to_string()
}

fn money(amount: &Value) -> String {
    let text = |of: &str| amount[of].as_str().map(str::to_owned);
    text("amount").zip(text("currency")).map_or("-".to_owned(), |(of, in_)| format!("{of} {in_}"))
}

/// The figures of a usage; `-` where there is none.
fn usage(usage: &Value) -> String {
    let figure = |(figure, name): (&str, &str)| Some(format!("{name} {}", usage[figure].as_u64()?));
    let said: Vec<String> = FIGURES.into_iter().filter_map(figure).collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}

const FIGURES: [(&str, &str); 7] = [
    ("input", "in"),
    ("cacheRead", "read"),
    ("cacheWrite", "write"),
    ("cacheWrite5m", "5m"),
    ("cacheWrite1h", "1h"),
    ("output", "out"),
    ("reasoning", "reasoning"),
];

/// What each row of a command says of its request, by the request's number.
fn by_number(rows: Vec<Value>, says: fn(&Value) -> Option<String>) -> BTreeMap<u64, String> {
    let numbered = |row: Value| Some((row["request"].as_u64()?, says(&row)?));
    rows.into_iter().filter_map(numbered).collect()
}

fn request(row: &Value) -> Option<String> {
    let text = |of: &str| row[of].as_str().unwrap_or("-");
    let number = |of: &str| row[of].as_u64().map_or("-".to_owned(), |of| of.to_string());
    let hashed = |of: &str| row[of].as_str().map_or("-".to_owned(), short_hash);
    let list = |of: &str| {
        row[of].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let tokens = row.get("tokens")?;
    let said = [
        format!("frames {}..{}", number("lastFrame"), number("frame")),
        format!("line {}", number("line")),
        format!("{} {} {}", text("api"), text("provenance"), text("outcome")),
        format!("session {}", hashed("session")),
        if list("lacks").is_empty() {
            "lacks -".to_owned()
        } else {
            format!("lacks {}", list("lacks").join("+"))
        },
        format!("model {}", hashed("model")),
        format!("retry {}", if row["retry"] == true { "yes" } else { "-" }),
        format!("calls {}", hash_of_all(&list("calls"))),
        format!("tokens {}+{}+{}", tokens["tools"], tokens["system"], tokens["messages"]),
        format!("usage {}", usage(&row["usage"])),
        format!("copied {}", usage(&row["copied"]["usage"])),
        format!("price {}", money(&row["price"])),
    ];
    Some(said.into_iter().filter(|of| !of.ends_with(" -")).collect::<Vec<_>>().join("; "))
}

fn broken(row: &Value) -> Option<String> {
    Some(format!("lost {} {}", row["lost"], short_hash(row["words"].as_str()?)))
}

fn cause(row: &Value) -> Option<String> {
    row["cause"].as_str().map(str::to_owned)
}

/// What the guard says of a request that is reported to have lost something.
fn lost(row: &Value) -> Option<String> {
    let lost = row["reported"]["lost"].as_u64().filter(|lost| *lost > 0)?;
    Some(format!("lost {lost} {}", row["cause"].as_str().map_or("-".to_owned(), short_hash)))
}

fn forecast(row: &Value) -> Option<String> {
    let of = &row["forecast"];
    let cause = row["cause"].as_str().map_or("-".to_owned(), short_hash);
    // What is below may be named in the recording alone.
    let place: Vec<&str> =
        row["difference"]["path"].as_str().unwrap_or("-").split('/').take(3).collect();
    let place = place.join("/");
    let change = row["difference"]["change"].as_str().unwrap_or("-");
    Some(format!(
        "{} shared {} read {} write {} lost {}; {change} at {place}, cause {cause}",
        row["lifetime"].as_str()?,
        row["shared"]["tokens"],
        of["read"],
        of["write"],
        of["lost"]
    ))
}

/// A fact of each request that a room speaks of.
fn of_requests(name: &'static str, rooms: &[(&'static str, BTreeMap<u64, String>)]) -> Vec<Fact> {
    let numbers: std::collections::BTreeSet<u64> =
        rooms.iter().flat_map(|(_, rows)| rows.keys().copied()).collect();
    let said = |number: u64| {
        let of =
            |rows: &BTreeMap<u64, String>| rows.get(&number).cloned().unwrap_or("-".to_owned());
        rooms.iter().map(|(room, rows)| (*room, of(rows))).collect()
    };
    let fact = |number: u64| Fact {
        place: format!("request {number}"),
        name,
        kind: "request".to_owned(),
        answers: said(number),
    };
    numbers.into_iter().map(fact).collect()
}

#[track_caller]
fn hold(golden: &str, folder: &str) {
    let files = files(&[folder]);
    if files.is_empty() {
        return;
    }
    let answers = Answers::of(beside(folder).to_str().unwrap());
    let recordings: Vec<Recording> =
        files.iter().filter_map(|(name, path)| answers.facts(name, path)).collect();
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    let choices = Choices::read(&facts.join("choices.txt"));
    check(&facts.join(golden).with_extension("txt"), &choices, &recordings);
}

#[test]
fn requests_of_chats() {
    hold("chats", "data/A-openai-chat");
}

#[test]
fn requests_of_claude_code_and_pi() {
    hold("claude-code-and-pi", "data/B-anthropic");
}

#[test]
fn requests_of_codex_and_of_other_agents() {
    hold("codex", "data/C-codex-responses");
}

#[test]
fn requests_of_logs_of_plain_text() {
    hold("swe-agents", "data/D-swe-agent");
}

#[test]
fn requests_of_cases() {
    hold("cases", "cases");
}
