//! Facts of recordings, one a line, as each room of the code answers: golden files that say which
//! answer is right where two differ.
//!
//! `CONTRIBUTING.md` ("Facts") has the form of the lines. No text of a recording is in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// What some rooms answer to one question about a recording.
pub struct Fact {
    /// Where: `frame 12`, `request 3`, `session`.
    pub place: String,
    /// Which question: `speaker`.
    pub name: &'static str,
    /// What kind of input it is about, by which a choice is found: `<task-notification>`, `command`.
    pub kind: String,
    /// Each room that answers, with its answer.
    pub answers: Vec<(&'static str, String)>,
}

/// The facts of one recording.
pub struct Recording {
    /// Its path below the shared folder.
    pub name: String,
    /// What it is: format and counts.
    pub head: String,
    pub facts: Vec<Fact>,
}

/// The first eight hexadecimal digits of a text's hash.
pub fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
}

/// The hashes of some texts as one, with their number; `-` for none.
pub fn hash_of_all<T: AsRef<str>>(texts: &[T]) -> String {
    let joined: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    if joined.is_empty() {
        return "-".to_owned();
    }
    format!("{} of {}", joined.len(), short_hash(&joined.join("\n")))
}

impl Fact {
    /// The rooms that answer, those with one answer together, the largest group first.
    fn groups(&self) -> Vec<(Vec<&'static str>, &str)> {
        let mut groups: Vec<(Vec<&'static str>, &str)> = Vec::new();
        for (room, answer) in &self.answers {
            match groups.iter_mut().find(|(_, known)| known == answer) {
                Some((rooms, _)) => rooms.push(room),
                None => groups.push((vec![room], answer)),
            }
        }
        groups.sort_by_key(|(rooms, _)| std::cmp::Reverse(rooms.len()));
        groups
    }

    fn disagrees(&self) -> bool {
        self.answers.iter().any(|(_, answer)| *answer != self.answers[0].1)
    }

    fn line(&self, recording: &str, choices: &Choices) -> String {
        let Self { place, name, .. } = self;
        let groups = self.groups();
        if !self.disagrees() {
            let rooms = self.answers.len();
            let agree = if rooms > 1 { format!(" ×{rooms}") } else { String::new() };
            return format!("{place} {name} {}{agree}", groups[0].1);
        }
        let said: Vec<String> =
            groups.iter().map(|(rooms, answer)| format!("{}={answer}", rooms.join(","))).collect();
        let said = said.join(" ");
        let (right, reason) = match choices.of(self, recording, &said) {
            Some(choice) => {
                let of_room = self.answers.iter().find(|(room, _)| *room == choice.right);
                (of_room.map_or(&*choice.right, |(_, answer)| answer), &*choice.reason)
            }
            None => ("?", NOT_CHOSEN),
        };
        let kind = if reason == NOT_CHOSEN { format!(" [{}]", self.kind) } else { String::new() };
        format!("{place} {name}: {said} → {right}: {reason}{kind}")
    }
}

const NOT_CHOSEN: &str = "not chosen yet";

/// What was chosen by hand where rooms disagree: a table with the columns fact, kind, answers, right,
/// reason, parted by ` | `. `*` stands for anything; hashes and numbers in answers are `#`. The kind
/// may be a recording's name and a place in it. The right answer is that of a room, by its name, or stands
/// there itself. The first row that fits counts.
pub struct Choices(Vec<Choice>);

struct Choice {
    fact: String,
    kind: String,
    answers: String,
    right: String,
    reason: String,
}

impl Choices {
    pub fn read(table: &Path) -> Self {
        let text = fs::read_to_string(table).unwrap_or_default();
        let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(rows.map(Choice::of).collect())
    }

    fn of(&self, fact: &Fact, recording: &str, said: &str) -> Option<&Choice> {
        let (place, answers) = (format!("{recording} {}", fact.place), shape(said));
        let fits = |pattern: &str, text: &str| match pattern.split_once('*') {
            Some((before, after)) => text.starts_with(before) && text.ends_with(after),
            None => pattern == text,
        };
        self.0.iter().find(|choice| {
            choice.fact == fact.name
                && (fits(&choice.kind, &fact.kind) || fits(&choice.kind, &place))
                && fits(&choice.answers, &answers)
        })
    }
}

impl Choice {
    fn of(row: &str) -> Self {
        let columns: Vec<String> =
            row.split(" | ").map(|column| column.trim().to_owned()).collect();
        let [fact, kind, answers, right, reason] = columns.try_into().unwrap_or_else(|columns| {
            panic!("expected fact | kind | answers | right | reason, found {columns:?}")
        });
        Self { fact, kind, answers, right, reason }
    }
}

/// Answers without what differs from one fact of a kind to the next: words that hold a digit are `#`.
fn shape(said: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut shape = String::new();
    let mut rest = said;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_hash = word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        let is_varying = is_hash || word.contains(|c: char| c.is_ascii_digit());
        shape.push_str(if is_varying { "#" } else { word });
        let next = after.chars().next();
        shape.extend(next);
        rest = &after[next.map_or(0, char::len_utf8)..];
    }
    shape
}

/// Holds recordings to a golden file. Fails with the first lines that differ, or that nobody has
/// chosen an answer for; writes the file anew where `AFTERIMAGE_BLESS` is set.
#[track_caller]
pub fn check(golden: &Path, choices: &Choices, recordings: &[Recording]) {
    let mut found = String::new();
    for Recording { name, head, facts } in recordings {
        writeln!(found, "== {name}: {head}").unwrap();
        for fact in facts.iter().filter(|fact| !fact.answers.is_empty()) {
            writeln!(found, "{}", fact.line(name, choices)).unwrap();
        }
    }
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(golden, &found).unwrap();
    }
    let expected = fs::read_to_string(golden).unwrap_or_default();
    let differing = differences(&expected, &found);
    let more = differing.len().saturating_sub(SHOWN);
    let shown = differing[..differing.len() - more].join("\n");
    assert!(
        differing.is_empty(),
        "{}: facts differ\n{shown}\nand {more} more; look at each, then AFTERIMAGE_BLESS=1",
        golden.display()
    );
    let open: Vec<&str> = found.lines().filter(|line| line.contains(NOT_CHOSEN)).collect();
    assert!(open.is_empty(), "nobody chose what is right of {}:\n{}", open.len(), open.join("\n"));
}

/// So many lines that differ are shown.
const SHOWN: usize = 40;

/// The lines that differ, each with its recording.
fn differences(expected: &str, found: &str) -> Vec<String> {
    let (was, is) = (by_recording(expected), by_recording(found));
    let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    let none = Vec::new();
    let mut differing = Vec::new();
    for name in names {
        let (was, is) = (was.get(name).unwrap_or(&none), is.get(name).unwrap_or(&none));
        let known: BTreeSet<_> = was.iter().collect();
        let now: BTreeSet<_> = is.iter().collect();
        let gone = was.iter().enumerate().filter(|(_, line)| !now.contains(line));
        let new = is.iter().enumerate().filter(|(_, line)| !known.contains(line));
        let mut lines: Vec<(usize, char, &&str)> = gone.map(|(at, line)| (at, '-', line)).collect();
        lines.extend(new.map(|(at, line)| (at, '+', line)));
        lines.sort_by_key(|(at, mark, _)| (*at, *mark == '+'));
        differing.extend(lines.iter().map(|(_, mark, line)| format!("{name}: {mark} {line}")));
    }
    differing
}

fn by_recording(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("== ") {
            name = head.split_once(": ").map_or(head, |(name, _)| name);
        }
        all.entry(name).or_default().push(line);
    }
    all
}

/// The files below some folders of the shared one, with their names there; `None` where there are
/// none at all.
pub fn files(folders: &[&str]) -> Vec<(String, PathBuf)> {
    let root = super::data::beside("");
    let named = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        (name, path)
    };
    let of = |folder: &&str| match folder.strip_prefix("data/") {
        Some(name) => super::data::recording(name),
        None => super::data::case(folder.strip_prefix("cases").unwrap().trim_start_matches('/')),
    };
    let folders = folders.iter().filter_map(of);
    folders.flat_map(|folder| super::data::files_under(&folder)).map(named).collect()
}
