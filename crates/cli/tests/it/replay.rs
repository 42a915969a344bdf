//! Requests that are replayed, as files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{fs, path::Path};

use serde_json::Value;

const HARBOUR: &str = "examples/sessions/harbour.jsonl";

fn args<'a>(directory: &'a str, form: &'a str, policy: &'a str) -> [&'a str; 10] {
    ["replay", HARBOUR, "--budget", "700", "--policy", policy, "--as", form, "--emit", directory]
}

#[test]
fn every_request_is_in_a_file_and_in_the_list() {
    let scratch = tempfile::tempdir().unwrap();
    for form in ["openai", "responses", "anthropic"] {
        let directory = scratch.path().join(form);
        let name = directory.to_str().unwrap();
        let run = support::run(&args(name, form, "sliding,blocks"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let list = fs::read_to_string(directory.join("requests.jsonl")).unwrap();
        let mut lines = list.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let head = lines.next().unwrap();
        assert_eq!((&head["format"], &head["version"]), (&"afterimage-requests".into(), &1.into()));
        assert_eq!((&head["form"], &head["budget"]), (&form.into(), &700.into()));
        let mut turns = [0, 0];
        for line in lines {
            let policy = usize::from(line["policy"] == "blocks");
            turns[policy] += 1;
            assert_eq!(line["turn"], turns[policy]);
            assert!(line["tokens"].as_u64().unwrap() <= 700, "{line}");
            let path = directory.join(line["path"].as_str().unwrap());
            let request: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            let messages = if form == "anthropic" { &request["messages"] } else { &request };
            assert!(!messages.as_array().unwrap().is_empty());
        }
        assert_eq!(turns[0], turns[1]);
        assert_eq!(files(&directory) as u64, 1 + turns.iter().sum::<u64>());
    }
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[test]
fn nothing_is_written_over() {
    let scratch = tempfile::tempdir().unwrap();
    let name = scratch.path().to_str().unwrap();
    fs::write(scratch.path().join("mine.txt"), "mine").unwrap();
    let run = support::run(&args(name, "openai", "blocks"));
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("the directory is not empty"), "{}", run.err);
    assert_eq!(fs::read_to_string(scratch.path().join("mine.txt")).unwrap(), "mine");
    assert_eq!(files(scratch.path()), 1);
}

#[test]
fn a_request_is_what_compress_prints_for_the_same_context() {
    // With room for everything nothing depends on how it is kept.
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("all");
    let name = directory.to_str().unwrap();
    let run = support::run(&[
        "replay",
        HARBOUR,
        "--budget",
        "50k",
        "--policy",
        "none,keep-user",
        "--as",
        "openai",
        "--emit",
        name,
        "--json",
    ]);
    let figures: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(figures["policies"][0]["all"], figures["policies"][1]["all"]);
    let list = fs::read_to_string(directory.join("requests.jsonl")).unwrap();
    let paths: Vec<String> = list
        .lines()
        .skip(1)
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["path"].as_str().unwrap().to_owned()
        })
        .collect();
    let text = |path: &String| fs::read_to_string(directory.join(path)).unwrap();
    for path in paths.iter().filter(|path| path.starts_with("none/")) {
        assert_eq!(text(path), text(&path.replace("none/", "keep-user/")));
    }
}

#[cfg(unix)]
#[test]
fn every_request_to_a_program_is_in_the_bill() {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked.txt");
    let of = |marker: &str| {
        let text = fs::read_to_string(&asked).unwrap();
        text.lines().filter(|line| line.starts_with(marker)).count() as u64
    };
    // It notes whether it is asked for what a first answer lost.
    let engine = format!(
        "if grep -q 'Letter by letter it lost'; then echo again; else echo first; fi >> '{}'; echo Ships came and went.",
        asked.display()
    );
    let args = ["replay", HARBOUR, "--budget", "500", "--engine", &engine, "--json"];
    let run = support::run(&args);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let replayed: Value = serde_json::from_str(&run.out).unwrap();
    let (first, again) = (of("first"), of("again"));
    assert!(first > 0 && again > 0 && again <= first, "{first} {again}");
    assert_eq!(replayed["all"]["summaryCalls"], first + again);
    assert!(replayed["all"]["summaryInput"].as_u64().unwrap() > 100 * (first + again));
}

/// What each call of the engine read.
#[cfg(unix)]
fn read_by_engine(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[cfg(unix)]
#[test]
fn a_command_is_sent_what_the_bill_counts() {
    let scratch = tempfile::tempdir().unwrap();
    for (how, form) in [("fresh", None), ("continued", None), ("continued", Some("anthropic"))] {
        let folder = scratch.path().join(format!("{how}-{form:?}"));
        fs::create_dir(&folder).unwrap();
        let engine = format!("cat > '{}'/$$.txt; echo They talked of berths.", folder.display());
        let mut args = vec!["replay", HARBOUR, "--budget", "700", "--policy", "blocks"];
        args.extend(["--engine", &engine, "--summaries", how, "--json"]);
        args.extend(form.iter().flat_map(|form| ["--as", form]));
        let run = support::run(&args);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let read = read_by_engine(&folder);
        assert_eq!(report["all"]["summaryCalls"].as_u64(), Some(read.len() as u64), "{}", run.out);
        assert!(!read.is_empty());
        let begins = read.iter().filter(|text| text.starts_with("You compress the history"));
        assert_eq!(begins.count(), if how == "fresh" { read.len() } else { 0 });
        if how == "continued" {
            assert!(report["all"]["summaryCached"].as_u64() > Some(0), "{}", run.out);
            for text in &read {
                let request: Value = serde_json::from_str(text).unwrap();
                let messages = request["messages"].as_array().unwrap();
                let last = messages.last().unwrap();
                assert_eq!(last["role"], "user");
                let words = last["content"].as_str().unwrap();
                let is_whole = words.starts_with("You compress the history");
                assert!(messages.len() > 1 || is_whole, "{text}");
                assert!(is_whole || words.starts_with("This message is from the program"));
                assert_eq!(request.get("system").is_some(), form.is_some() && !is_whole);
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn an_engine_that_fails_for_one_policy_is_asked_for_the_others() {
    let scratch = tempfile::tempdir().unwrap();
    let calls = |policies: &str| {
        let folder = scratch.path().join(policies);
        fs::create_dir(&folder).unwrap();
        let engine = format!("cat > '{}'/$$.txt; exit 1", folder.display());
        let args =
            ["replay", HARBOUR, "--budget", "500", "--policy", policies, "--engine", &engine];
        assert_eq!(support::run(&args).code, Some(0));
        read_by_engine(&folder).len()
    };
    let (one, other) = (calls("blocks"), calls("keep-user"));
    assert!(one > 0 && other > 0, "{one} {other}");
    assert_eq!(calls("blocks,keep-user"), one + other);
}

#[test]
fn policies_are_named_with_their_figures_and_a_typo_is_refused() {
    let policies = "masking:2:1,sliding:4,sliding,masking:2:1,forget:0.3";
    let run = support::run(&["replay", HARBOUR, "--budget", "700", "--json", "--policy", policies]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let named = report["policies"].as_array().unwrap().iter();
    let named: Vec<&str> = named.map(|of| of["policy"].as_str().unwrap()).collect();
    assert_eq!(named, ["masking:2:1", "sliding:4", "sliding", "forget:0.30"]);
    let sent = |at: usize| report["policies"][at]["all"]["tokensSent"].as_u64().unwrap();
    assert!(sent(1) < sent(2), "{}", run.out);
    let scratch = tempfile::tempdir().unwrap();
    let name = scratch.path().join("of");
    let emitted = args(name.to_str().unwrap(), "openai", "masking:2:1");
    assert_eq!(support::run(&emitted).code, Some(0));
    assert!(name.join("masking_2_1").is_dir());
    for wrong in ["maskin", "sliding,forget:50", "none:1"] {
        let run = support::run(&["replay", HARBOUR, "--budget", "700", "--policy", wrong]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{wrong}");
        assert!(run.err.contains("`forget[:SHARE]` or `blocks`"), "{}", run.err);
    }
}
