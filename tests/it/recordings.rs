//! What becomes of every recording that is read, held to a table that was checked by hand.
//! `AFTERIMAGE_BLESS=1` writes it anew.
#![allow(clippy::unwrap_used)]

use afterimage_testkit::data;

use std::{collections::BTreeMap, fmt::Write, fs, path::Path, sync::Arc};

use afterimage::{
    hud::{Hud, NativeFormat},
    id::Millis,
    tokens::{Bpe, Memo},
    transcript::{ImportReport, Tally, Transcript},
    veil::History,
};

const TABLE: &str = "tests/fixtures/recordings.tsv";
const HEAD: &str = "file\tformat\tsessions\tframes\tmessages\tcalls\tresults\ttokens\tnotes\n";

/// The folders of recordings; those of JSON documents and Markdown have tests of their own.
const GROUPS: [&str; 6] =
    ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent", "E-state", "I-spacemolt"];

/// What an import says besides the frames.
fn notes(report: &ImportReport) -> String {
    let mut notes = Vec::new();
    if let Some(first) = report.unknown.first() {
        let (count, line) = (report.unknown_records, first.line);
        notes.push(format!("{count} unknown, first at line {line}: {}", first.reason));
    }
    if report.renumbered > 0 {
        notes.push(format!("{} renumbered", report.renumbered));
    }
    if report.mended_surrogates > 0 {
        notes.push(format!("{} mended", report.mended_surrogates));
    }
    let skipped = report.skipped.iter().map(|(kind, count)| format!("{kind} {count}"));
    let skipped: Vec<String> = skipped.collect();
    if !skipped.is_empty() {
        notes.push(format!("skipped {}", skipped.join(", ")));
    }
    notes.join("; ").replace(['\t', '\n'], " ")
}

/// The line of a file; `None` where it is no recording.
fn line_of(hud: &Hud, name: &str, path: &Path) -> Option<String> {
    let mut transcript = Transcript::open(path).ok()?;
    let mut sessions: BTreeMap<Arc<str>, History> = BTreeMap::new();
    let (mut tally, mut frames, mut tokens) = (Tally::default(), 0_u64, 0_u64);
    for record in transcript.by_ref() {
        let record = record.unwrap_or_else(|error| panic!("{name}: {error}"));
        tally.add(&record.frame);
        frames += 1;
        let history = sessions.entry(record.session).or_default();
        let frame = hud.capture(history, record.frame, Millis::new(0)).unwrap();
        tokens += frame.rendered_snapshot.as_ref().unwrap().total_tokens();
    }
    let (format, report) = (transcript.format(), transcript.report());
    // A session of records that the model never saw has no frame.
    assert!(report.sessions >= sessions.len() as u64, "{name}");
    let Tally { messages, tool_calls, tool_results, .. } = tally;
    let notes = notes(report);
    Some(format!(
        "{name}\t{format}\t{}\t{frames}\t{messages}\t{tool_calls}\t{tool_results}\t{tokens}\t{notes}\n",
        report.sessions
    ))
}

#[test]
fn every_recording_is_read_as_the_table_says() {
    let counter = Arc::new(Memo::new(Bpe::o200k()));
    let hud = Hud::builder(counter).format(Arc::new(NativeFormat)).build();
    let mut found = HEAD.to_owned();
    for group in GROUPS {
        let Some(folder) = data::recordings(group) else { return };
        for path in data::files_under(&folder) {
            let inside = path.strip_prefix(&folder).unwrap().to_string_lossy().replace('\\', "/");
            found.push_str(&line_of(&hud, &format!("{group}/{inside}"), &path).unwrap_or_default());
        }
    }
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(&table, &found).unwrap();
    }
    let expected = fs::read_to_string(&table).unwrap_or_default();
    let mut differences = String::new();
    let by_file = |text: &str| -> BTreeMap<String, String> {
        let split = |line: &str| Some((line.split_once('\t')?.0.to_owned(), line.to_owned()));
        text.lines().filter_map(split).collect()
    };
    let (expected, found) = (by_file(&expected), by_file(&found));
    for name in expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name))) {
        let (expected, found) = (expected.get(name), found.get(name));
        if expected != found {
            writeln!(differences, "expected {expected:?}\n   found {found:?}").unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
