//! Checkpoints that are drafted from recorded sessions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::survival;
use afterimage_testkit::data;
use afterimage_testkit::series;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use afterimage::{
    checkpoint::{Checkpoint, DiffOptions, DocumentKind, SectionKind, apply, diff, lint},
    compress::{CompressionJob, Engine, FnEngine},
    id::FacetType,
    json::{self, Value},
    session::bridge::checkpoint::{CheckpointEngine, Draft, DraftOptions},
    tokens::{Memo, TokenCounter, default_counter},
    transcript::Transcript,
    veil::{Facet, FacetChange, FacetOp, Frame, Source},
};

const TIME: &str = "2026-01-07T10:00:00Z";
const LIMIT: usize = 4_000;

/// The recorded sessions of the groups B to D: a name, and the frames.
fn sessions() -> Vec<(String, Vec<Frame>)> {
    let mut sessions: BTreeMap<String, Vec<Frame>> = BTreeMap::new();
    for group in ["B-anthropic", "C-codex-responses", "D-swe-agent"] {
        let Some(folder) = data::recordings(group) else { return Vec::new() };
        for path in data::files_under(&folder) {
            // A transcript of which nothing was understood has a draft too.
            sessions.insert(path.display().to_string(), Vec::new());
            for (session, frames) in frames_of(&path) {
                sessions.insert(format!("{} {session}", path.display()), frames);
            }
        }
    }
    sessions.into_iter().collect()
}

fn frames_of(path: &PathBuf) -> BTreeMap<String, Vec<Frame>> {
    let mut sessions: BTreeMap<String, Vec<Frame>> = BTreeMap::new();
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        sessions.entry(record.session.to_string()).or_default().push(record.frame);
    }
    sessions
}

/// The files that the edit and write tools of a session wrote, by the tools that the recordings
/// have, each with its own rule.
fn written(frames: &[Frame]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut open = None;
    let added = || {
        frames.iter().flat_map(|frame| &frame.ops).filter_map(|op| match &op.change {
            FacetChange::Add(facet) => Some(facet),
            _ => None,
        })
    };
    // A call that failed wrote nothing.
    let failed = added().filter(|facet| facet.outcome().is_failure());
    let failed: BTreeSet<&str> = failed.filter_map(|facet| facet.call_id()).collect();
    for facet in added() {
        let Some(call) = facet.call() else { continue };
        if call.id.is_some_and(|id| failed.contains(id)) {
            continue;
        }
        let argument = |key: &str| call.parameters?.get(key)?.as_str().map(str::to_owned);
        match call.name {
            "Write" | "Edit" | "MultiEdit" | "write_file" => files.extend(argument("file_path")),
            "write" => files.extend(argument("path")),
            "edit" if argument("oldText").is_some() => files.extend(argument("path")),
            // The editor of SWE-agent changes the file that was opened or made last.
            "edit" => files.extend(open.clone()),
            "open" => open = argument("path"),
            "create" => {
                open = argument("filename");
                files.extend(open.clone());
            }
            "str_replace_editor" if argument("command").as_deref() != Some("view") => {
                files.extend(argument("path"));
            }
            "apply_patch" => {
                let patch = call.arguments.or(call.parameters.and_then(Value::as_str));
                for line in patch.unwrap_or_default().lines() {
                    for mark in ["*** Add File: ", "*** Update File: ", "*** Delete File: "] {
                        files.extend(line.strip_prefix(mark).map(|path| path.trim().to_owned()));
                    }
                }
            }
            _ => {}
        }
    }
    files
}

fn draft(frames: &[Frame], id: &str, counter: &dyn TokenCounter) -> Checkpoint {
    let options = DraftOptions::new(id).created(TIME).token_limit(LIMIT);
    Draft::of(frames).checkpoint(&options, counter).unwrap().checkpoint
}

#[test]
fn drafts_lint_clean_fit_and_name_the_files_that_were_written() {
    let counter = Memo::new(default_counter());
    let sessions = sessions();
    let (mut named, mut all, mut largest) = (0, 0, 0);
    for (name, frames) in &sessions {
        let drafted = draft(frames, "chk-1", &counter);
        let found = lint(drafted.document(), DocumentKind::Checkpoint);
        assert!(found.is_empty(), "{name}: {found:#?}\n{}", drafted.text());
        let tokens = counter.count(drafted.text());
        assert!(tokens <= LIMIT, "{name}: {tokens}");
        largest = largest.max(tokens);
        let trail = drafted.body(SectionKind::ArtifactTrail).unwrap();
        let files = written(frames);
        let here = files.iter().filter(|file| trail.contains(&format!("| `{file}` |"))).count();
        assert!(here * 100 >= files.len() * 95, "{name}: {here} of {}\n{trail}", files.len());
        named += here;
        all += files.len();
    }
    println!(
        "{} sessions: {named} of {all} files are named; at most {largest} tokens",
        sessions.len()
    );
    assert!(named * 100 >= all * 95);
}

#[test]
fn the_delta_between_two_drafts_leads_from_one_to_the_other() {
    let counter = Memo::new(default_counter());
    for (name, frames) in sessions() {
        let (first, second) = (
            draft(&frames[..frames.len() / 2], "chk-1", &counter),
            draft(&frames, "chk-2", &counter),
        );
        let delta = diff(&first, &second, &DiffOptions::created(TIME)).unwrap();
        assert_eq!(apply(&first, &delta).unwrap().text(), second.text(), "{name}");
        let found = lint(delta.document(), DocumentKind::Delta);
        assert!(found.is_empty(), "{name}: {found:#?}\n{}", delta.text());
    }
}

#[test]
fn a_draft_keeps_the_decisions_and_rules_of_the_checkpoint_before() {
    let before = "---\ncheckpoint: chk-1\ncreated: 2026-01-01T10:00:00Z\n---\n\n## Problem\n\nOld.\n\n\
                  ### Decisions\n\n- SQLite\n\n## User Rules\n\n- No commits\n";
    let before = Checkpoint::parse(before).unwrap();
    let options = DraftOptions::new("chk-2").created(TIME).after(before);
    let drafted =
        Draft::new().checkpoint(&options, &Memo::new(default_counter())).unwrap().checkpoint;
    assert_eq!(drafted.parent(), Some("chk-1"));
    assert_eq!(drafted.body(SectionKind::Decisions).unwrap(), "- SQLite");
    assert_eq!(drafted.body(SectionKind::UserRules).unwrap(), "- No commits");
    assert!(lint(drafted.document(), DocumentKind::Checkpoint).is_empty());
}

#[test]
fn the_engine_keeps_one_checkpoint_over_the_compressions_of_a_session() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let files = survival::files(folder.parent().unwrap());
    let sessions =
        survival::sessions(files, &counter).filter(|session| session.group.starts_with('B'));
    let mut jobs = 0;
    for session in sessions.take(4) {
        let engine = CheckpointEngine::outline();
        for moment in survival::moments(&session) {
            let job = moment.job(5);
            let summary = engine.summarize(&job, &counter).unwrap();
            assert!(counter.count(&summary) as u64 <= job.token_limit);
            // Tried again, the job gives the same.
            assert_eq!(engine.summarize(&job, &counter).unwrap(), summary);
            jobs += 1;
        }
        // A subagent's session may be too short for a job.
        let Some(running) = engine.checkpoint() else { continue };
        assert!(
            lint(running.document(), DocumentKind::Checkpoint).is_empty(),
            "{}",
            running.text()
        );
    }
    assert!(jobs > 4);
}

#[test]
fn the_engine_feeds_only_what_is_new_and_decisions_only_grow() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(default_counter()));
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let files = survival::files(folder.parent().unwrap());
    let session = survival::sessions(files, &counter).next().unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let model = FnEngine::new("model", move |job: &CompressionJob, _: &dyn TokenCounter| {
        let mut seen = sink.lock().unwrap();
        seen.push((job.passages.len(), job.text()));
        Ok::<_, std::io::Error>(format!(
            "### Decisions\n\n- Decision {}\n\n### Current State\n\n- State {}\n",
            seen.len(),
            seen.len()
        ))
    });
    let engine = CheckpointEngine::new(Arc::new(model));
    let half = session.messages.len() / 2;
    engine
        .summarize(&CompressionJob::new(session.messages[..half].to_vec(), 2_000), &counter)
        .unwrap();
    let summary =
        engine.summarize(&CompressionJob::new(session.messages.clone(), 2_000), &counter).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].0, half);
    // The second time: the passages after the first half, and one with the open sections.
    assert_eq!(seen[1].0, session.messages.len() - half + 1);
    assert!(seen[1].1.contains("- Decision 1"));
    assert!(summary.contains("- Decision 1\n- Decision 2"), "{summary}");
    assert!(summary.contains("- State 2") && !summary.contains("- State 1"));
}

#[test]
fn deltas_of_a_series_with_small_changes_take_a_quarter_of_its_tokens_at_most() {
    let counter = default_counter();
    let (mut deltas, mut whole) = (0, 0);
    for step in 1..50 {
        let (a, b) = (work_after(step - 1), work_after(step));
        let delta = diff(&a, &b, &DiffOptions::created(TIME)).unwrap();
        assert!((1_800..2_400).contains(&counter.count(b.text())), "{}", counter.count(b.text()));
        deltas += counter.count(delta.text());
        whole += counter.count(b.text());
    }
    println!("{deltas} of {whole} tokens");
    assert!(deltas * 4 <= whole, "{deltas} of {whole}");
}

/// A session of calls: each with its name, its arguments, and its result.
fn calls(calls: &[(&str, &str, &str)]) -> Checkpoint {
    let mut frames = vec![Frame::new(0, Source::User).with(FacetOp::add(Facet::new(
        "ask",
        FacetType::EVENT,
        "Change it.",
    )))];
    for (at, (name, arguments, result)) in calls.iter().enumerate() {
        let arguments = json::read(arguments.as_bytes()).unwrap();
        let (id, frame) = (format!("call-{at}"), 1 + 2 * at as u64);
        let call = Facet::tool_call(id.as_str(), Some(&id), name, arguments);
        let result = Facet::tool_result(format!("result-{at}"), Some(&id), None, *result);
        frames.push(Frame::new(frame, Source::Agent).with(FacetOp::add(call)));
        frames.push(Frame::new(frame + 1, Source::Environment).with(FacetOp::add(result)));
    }
    draft(&frames, "chk-1", &Memo::new(default_counter()))
}

#[test]
fn an_edit_that_failed_is_no_edit() {
    let drafted = calls(&[
        ("Edit", r#"{"file_path":"gone.rs"}"#, "<tool_use_error>File has not been read yet"),
        (
            "str_replace_editor",
            r#"{"command":"str_replace","path":"no.rs"}"#,
            "No replacement was performed, old_str did not appear",
        ),
        ("Read", r#"{"file_path":"new.rs"}"#, "Error: no such file"),
        ("Write", r#"{"file_path":"new.rs","content":""}"#, "File created"),
        ("Edit", r#"{"file_path":"kept.rs"}"#, "Error: two matches"),
        ("Edit", r#"{"file_path":"kept.rs"}"#, "The file was changed"),
    ]);
    let trail = drafted.body(SectionKind::ArtifactTrail).unwrap();
    let rows: Vec<&str> = trail.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| `new.rs` | created | Write in frame 7 |",
            "| `kept.rs` | modified | Edit in frame 11 |"
        ]
    );
    let play = drafted.body(SectionKind::PlayByPlay).unwrap();
    assert!(play.contains("6 calls, 2 files, 4 failed"), "{play}");
    assert!(!drafted.body(SectionKind::Breadcrumbs).unwrap().contains("new.rs"));
}

#[test]
fn a_patch_that_goes_through_the_shell_fills_the_artifact_trail() {
    let patch = r"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\nEOF";
    let by_list = format!(r#"{{"command":["bash","-lc","{patch}"]}}"#);
    let by_text = format!(r#"{{"cmd":"{}"}}"#, patch.replace("a.rs", "b.rs"));
    let failed = format!(r#"{{"cmd":"{}"}}"#, patch.replace("a.rs", "c.rs"));
    let drafted = calls(&[
        ("shell", &by_list, "Exit code: 0\nSuccess. Updated the following files:\nM a.rs"),
        ("exec_command", &by_text, "Process exited with code 0\nOutput:\nM b.rs"),
        ("exec_command", &failed, "Process exited with code 1\nOutput:\nFailed to find lines"),
    ]);
    let trail = drafted.body(SectionKind::ArtifactTrail).unwrap();
    let rows: Vec<&str> = trail.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| `a.rs` | modified | shell in frame 1 |",
            "| `b.rs` | modified | exec_command in frame 3 |"
        ]
    );
}

fn work_after(step: usize) -> Checkpoint {
    Checkpoint::parse(series::checkpoint(step)).unwrap()
}
