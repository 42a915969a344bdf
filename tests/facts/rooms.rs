//! What each room answers of a recording.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use afterimage_testkit::facts::{Fact, Recording, hash_of_all, short_hash};
use indexmap::IndexMap;

use super::ledgers::{LedgerRoom, Said, name_of};
use crate::{
    hud::{Hud, NativeFormat},
    id::{FrameSeq, Millis, Role},
    json::Value,
    replay::survival::{words, work},
    snapshot::{FrameSnapshot, PartRef},
    steps::{Class, FacetCalls, Passage, WordPlaces},
    tokens::Chars4,
    transcript::{Transcript, TranscriptFormat},
    veil::{CallOutcome, Facet, FacetChange, Frame, History, Source, calls_and_results},
    window::classes_of_results,
};

/// The facts of a file; `None` where it is no transcript.
pub(super) fn recording(name: String, path: &Path) -> Option<Recording> {
    let mut transcript = Transcript::open(path).ok()?;
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut sessions: IndexMap<Arc<str>, SessionFacts> = IndexMap::new();
    let mut frames = 0_u64;
    for record in transcript.by_ref() {
        let record = record.unwrap_or_else(|error| panic!("{name}: {error}"));
        frames += 1;
        sessions.entry(record.session).or_default().push(&hud, record.frame);
    }
    let head = format!("{}, {} sessions, {frames} frames", transcript.format(), sessions.len());
    let mut facts = Vec::new();
    let is_single = sessions.len() == 1;
    for (index, (_, session)) in sessions.into_iter().enumerate() {
        let of = if is_single { String::new() } else { format!("session {} ", index + 1) };
        let session = session.finish().into_iter();
        facts.extend(session.map(|fact| Fact { place: format!("{of}{}", fact.place), ..fact }));
    }
    Some(Recording { name, head, facts })
}

/// What each format implies, as the rooms that ask for it know.
pub(super) fn formats() -> Recording {
    let fact = |format: &TranscriptFormat, name, answer: String| Fact {
        place: format.name().to_owned(),
        name,
        kind: String::new(),
        answers: vec![("format", answer)],
    };
    let facts = TranscriptFormat::ALL.iter().flat_map(|format| {
        let retracts = if format.may_retract() { "may replace frames" } else { "never replaces" };
        let copies = if format.may_hold_copies() { "may hold copies" } else { "no copies" };
        [
            fact(format, "api", format.api().as_str().to_owned()),
            fact(format, "context", retracts.to_owned()),
            fact(format, "holds", format!("{:?}", format.holds()).to_lowercase()),
            fact(format, "answers", copies.to_owned()),
        ]
    });
    let (name, head) = ("formats".to_owned(), format!("{} formats", TranscriptFormat::ALL.len()));
    Recording { name, head, facts: facts.collect() }
}

/// The rooms that read a session, and what they said so far.
#[derive(Default)]
struct SessionFacts {
    history: History,
    draft: LedgerRoom,
    ledger: LedgerRoom,
    places: WordPlaces,
    trace: FacetCalls,
    passages: Vec<Passage>,
    /// Of each frame in which somebody spoke in the user's place, the number of its fact.
    spoken: Vec<(usize, usize)>,
    facts: Vec<Fact>,
}

impl SessionFacts {
    fn push(&mut self, hud: &Hud, frame: Frame) {
        let frame = hud.capture(&mut self.history, frame, Millis::new(0)).unwrap();
        let snapshot = frame.rendered_snapshot.clone().unwrap();
        let index = self.history.frames().len() - 1;
        let role = snapshot.chunks().find_map(|chunk| chunk.role()).unwrap_or(Role::User);
        let passage = Passage::of_frame(&self.history, index, role).unwrap();
        let draft = self.draft.read_frame(&frame);
        let ledger = self.ledger.read_passage(&passage);
        let window = self.places.read(index, &frame.source, &snapshot);
        let at = format!("frame {}", frame.sequence);
        self.speakers(&at, &frame, &snapshot, [&draft, &ledger], window.of_user);
        self.calls(&at, &frame, &draft, &ledger);
        self.outcomes(&at, frame.sequence, &snapshot, [&draft, &ledger]);
        let both = |name, of: fn(&Said) -> String| Fact {
            place: at.clone(),
            name,
            kind: "ledger".to_owned(),
            answers: vec![("draft", of(&draft)), ("ledger", of(&ledger))],
        };
        let facts = [
            both("words", |said| said.words.join(" ")),
            both("rules", |said| said.rules.clone()),
            both("plan", |said| said.plan.clone().unwrap_or_default()),
            both("error", |said| said.error.clone().unwrap_or_default()),
        ];
        let says = |fact: &Fact| fact.answers.iter().any(|(_, answer)| !answer.is_empty());
        self.facts.extend(facts.into_iter().filter(says));
        self.passages.push(passage);
    }

    /// Who speaks in a frame in the user's place.
    fn speakers(
        &mut self,
        at: &str,
        frame: &Frame,
        snapshot: &FrameSnapshot,
        [draft, ledger]: [&Said; 2],
        in_window: bool,
    ) {
        let is_result = |part: &PartRef<'_>| matches!(part, PartRef::Result { .. });
        let speaks = snapshot.chunks().any(|chunk| {
            matches!(chunk.part(), PartRef::Text) && !chunk.content().trim().is_empty()
        });
        let is_mixed = snapshot.chunks().any(|chunk| is_result(&chunk.part()));
        let mut answers = vec![
            ("draft", !draft.words.is_empty()),
            ("ledger", !ledger.words.is_empty()),
            ("window", in_window),
        ];
        let role = snapshot.chunks().find_map(|chunk| chunk.role()).unwrap_or(Role::User);
        let in_place = speaks && !is_mixed && role == Role::User;
        if !in_place && answers.iter().all(|(_, of_user)| !of_user) {
            return;
        }
        // A reader that knows of a frame that a program speaks it says so.
        if frame.source != Source::User {
            answers.push(("source", false));
        }
        self.spoken.push((self.facts.len(), self.passages.len()));
        self.facts.push(Fact {
            place: at.to_owned(),
            name: "speaker",
            kind: opening(snapshot.text(), is_mixed),
            answers: answers.into_iter().map(|(room, of)| (room, speaker(of))).collect(),
        });
    }

    /// What each call does to which files.
    fn calls(&mut self, at: &str, frame: &Frame, draft: &Said, ledger: &Said) {
        let traced = self.trace.push(frame);
        let files_of = |facet: &Facet| {
            let of = traced.iter().find(|of| of.facet == facet.id);
            of.and_then(|of| of.call.as_ref()).map(|call| call.files.to_vec()).unwrap_or_default()
        };
        let calls: Vec<&Facet> =
            parts(frame).into_iter().filter(|facet| facet.call().is_some()).collect();
        let count = calls.len().max(draft.calls.len()).max(ledger.calls.len());
        for number in 0..count {
            let of_ledger = |said: &Said| match said.calls.get(number) {
                Some((tool, files)) => {
                    let files = files.iter().map(|(touch, path)| (*touch, path.as_str()));
                    format!("{} {}", short_hash(tool), written(files))
                }
                None => "no call".to_owned(),
            };
            let mut answers = vec![("draft", of_ledger(draft)), ("ledger", of_ledger(ledger))];
            let mut kind = "in text".to_owned();
            if let Some(facet) = calls.get(number) {
                let (call, files) = (facet.call().unwrap(), files_of(facet));
                kind = kind_of(call.parameters);
                let files = files.iter().map(|(touch, path)| (name_of(*touch), path.as_str()));
                answers.push(("trace", format!("{} {}", short_hash(call.name), written(files))));
            }
            let place = format!("{at}.{number}");
            self.facts.push(Fact { place, name: "call", kind, answers });
        }
    }

    /// What became of calls, by their results.
    fn outcomes(
        &mut self,
        at: &str,
        sequence: FrameSeq,
        snapshot: &FrameSnapshot,
        [draft, ledger]: [&Said; 2],
    ) {
        let mut masks = classes_of_results(&self.history, sequence);
        let kind = if masks.is_empty() { "in text" } else { "result" };
        if masks.is_empty() && !draft.outcomes.is_empty() {
            masks.push(Class::of(CallOutcome::Unstated, snapshot.text(), None));
        }
        let pairs = self.history.pairs().in_frame(sequence).to_vec();
        let count = draft.outcomes.len().max(ledger.outcomes.len()).max(masks.len());
        let name = |of: Option<&Class>| match of {
            Some(Class::Done | Class::Running) => "done".to_owned(),
            Some(class) => class.verb().unwrap_or_default().to_owned(),
            None => "nothing".to_owned(),
        };
        for number in 0..count {
            let mut answers = vec![
                ("draft", name(draft.outcomes.get(number))),
                ("ledger", name(ledger.outcomes.get(number))),
            ];
            answers.push(("mask", name(masks.get(number))));
            let stated = pairs.get(number).and_then(|pair| pair.outcome.stated());
            answers.extend(stated.map(|outcome| ("source", outcome.to_owned())));
            let (place, kind) = (format!("{at}.{number}"), kind.to_owned());
            self.facts.push(Fact { place, name: "outcome", kind, answers });
        }
    }

    /// The facts, with those that are known at the end.
    fn finish(mut self) -> Vec<Fact> {
        let is_text_only = work::has_commands_in_text(&self.passages);
        let spoke = |passage: &Passage| passage.role == Role::Assistant;
        let first = self.passages.iter().position(spoke).unwrap_or(self.passages.len());
        for (fact, passage) in std::mem::take(&mut self.spoken) {
            let said = words::words(&self.passages[passage..=passage], false);
            let is_user = !said.is_empty() && (!is_text_only || passage < first);
            self.facts[fact].answers.push(("survival", speaker(is_user)));
        }
        self.changed_files();
        let said = words::words(&self.passages, is_text_only);
        let error = work::last_error(&self.passages, is_text_only);
        for (name, found) in [
            ("measured rules", hash_of_all(&words::rules(&said))),
            ("measured plan", hash_of_all(&work::open_items(&self.passages))),
            ("measured error", error.as_deref().map_or_else(|| "-".to_owned(), short_hash)),
        ] {
            let (place, kind) = ("end".to_owned(), String::new());
            let answers = vec![("survival", found)];
            self.facts.push(Fact { place, name, kind, answers });
        }
        self.facts.retain(|fact| fact.answers != [("survival", "-".to_owned())]);
        self.facts
    }

    /// The files that the session changed.
    fn changed_files(&mut self) {
        let measured = work::files_changed(&self.passages);
        let (draft, ledger) = (&self.draft.changed, &self.ledger.changed);
        let all: BTreeSet<&String> = draft.iter().chain(ledger).chain(&measured).collect();
        let mut facts = Vec::new();
        for path in all {
            let name = |of: &BTreeSet<String>| if of.contains(path) { "changed" } else { "-" };
            let kind = if path.starts_with('/') { "absolute" } else { "relative" };
            facts.push(Fact {
                place: format!("end {}", short_hash(path)),
                name: "file",
                kind: kind.to_owned(),
                answers: vec![
                    ("draft", name(draft).to_owned()),
                    ("ledger", name(ledger).to_owned()),
                    ("survival", name(&measured).to_owned()),
                ],
            });
        }
        self.facts.extend(facts);
    }
}

/// Files with what becomes of them, without their names.
fn written<'f>(files: impl Iterator<Item = (&'static str, &'f str)>) -> String {
    let files: Vec<String> =
        files.map(|(touch, path)| format!("{touch}:{}", short_hash(path))).collect();
    if files.is_empty() { "no file".to_owned() } else { files.join(" ") }
}

/// The calls and results that a frame adds.
fn parts(frame: &Frame) -> Vec<&Facet> {
    calls_and_results(frame.ops.iter().filter_map(|op| match &op.change {
        FacetChange::Add(facet) => Some(&**facet),
        _ => None,
    }))
}

fn speaker(is_user: bool) -> String {
    if is_user { "user" } else { "program" }.to_owned()
}

/// What a text in the user's place begins with: a tag, or words.
fn opening(text: &str, is_mixed: bool) -> String {
    let text = text.trim_start();
    let tag = text.strip_prefix('<').and_then(|rest| {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        rest.get(..rest.find(|c| !is_name(c))?).filter(|name| !name.is_empty())
    });
    let begins = tag.map_or_else(
        || short_hash(&text.chars().take(12).collect::<String>()),
        |tag| format!("<{tag}>"),
    );
    if is_mixed { format!("{begins} with results") } else { begins }
}

/// What of a call's arguments tells what it does.
fn kind_of(parameters: Option<&Value>) -> String {
    let Some(parameters) = parameters else { return "text".to_owned() };
    let kinds = [
        ("command", &["command", "cmd", "script"][..]),
        ("search", &["pattern", "query", "regex"]),
        ("patch", &["patch", "input"]),
        ("path", &["file_path", "path", "notebook_path", "filename", "file"]),
    ];
    let has = |(_, keys): &&(&str, &[&str])| keys.iter().any(|key| parameters.get(key).is_some());
    kinds.iter().find(has).map_or("other", |(kind, _)| kind).to_owned()
}
