//! What programs read: every span, offset and sum that the output states must hold.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{collections::HashMap, fs, path::Path};

use serde_json::Value;
use support::{json, json_lines, out, run_with};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const OWN: [&str; 3] = [CHAT, SESSIONS, HARBOUR];

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// What the commands say of a file.
#[derive(Default)]
struct Said {
    file: String,
    /// The sums.
    stats: Value,
    /// For each frame, its session, sequence and snapshot.
    snapshots: Vec<Value>,
    /// For each session, its context.
    contexts: Vec<Value>,
}

/// Runs each command once on all files, of which there are several: each line then names its file.
fn said_of(files: &[&str]) -> Vec<Said> {
    let lines = |args: &[&str]| -> Vec<(String, Value)> {
        let run = support::run(&[args, files].concat());
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
        let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["file"].as_str().unwrap().to_owned(), line)).collect()
    };
    let mut said: Vec<Said> =
        files.iter().map(|file| Said { file: (*file).to_owned(), ..Said::default() }).collect();
    let of =
        |said: &mut [Said], file: &str| said.iter().position(|said| said.file == file).unwrap();
    for (file, line) in lines(&["stats", "--json"]) {
        let at = of(&mut said, &file);
        said[at].stats = line;
    }
    for (file, line) in lines(&["render", "--as", "snapshots"]) {
        let at = of(&mut said, &file);
        said[at].snapshots.push(line);
    }
    for (file, line) in lines(&["render", "--as", "messages"]) {
        let at = of(&mut said, &file);
        said[at].contexts.push(line);
    }
    said
}

#[track_caller]
fn spans_tile_and_name_their_owners(said: &Said) {
    let Said { file, snapshots, contexts, .. } = said;
    let by_sequence: HashMap<u64, &Value> = snapshots
        .iter()
        .map(|line| (line["sequence"].as_u64().unwrap(), &line["snapshot"]))
        .collect();
    let of_frame = |sequence: &Value| by_sequence[&sequence.as_u64().unwrap()];
    for context in contexts {
        let mut chunk_tokens = 0;
        for message in context["messages"].as_array().unwrap() {
            let content = message["content"].as_str().unwrap();
            let mut end = 0;
            for span in message["spans"].as_array().unwrap() {
                assert_eq!(number(&span["start"]), end, "{file}");
                end = number(&span["end"]);
                let text = &content[number(&span["start"])..end];
                let owner = &span["owner"];
                if owner["frame"].is_null() {
                    // What a recorded compaction put in the place of frames is a block.
                    let holder = if owner["block"].is_string() { owner } else { &owner["tail"] };
                    assert!(holder["facetIds"].is_array(), "{span}");
                    continue;
                }
                let chunk = &of_frame(&owner["frame"])["chunks"][number(&owner["chunk"])];
                assert_eq!(chunk["content"], text);
                let ids = chunk["facetIds"].as_array().cloned().unwrap_or_default();
                assert_eq!(owner["facetIds"].as_array().unwrap(), &ids);
            }
            assert_eq!(end, content.len(), "{file}");
        }
        for (frame, message) in context["frameToMessage"].as_object().unwrap() {
            let frame: Value = frame.parse::<u64>().unwrap().into();
            assert_eq!(context["messages"][number(message)]["frames"]["from"], frame);
            chunk_tokens += number(&of_frame(&frame)["totalTokens"]);
        }
        let tokens = &context["tokens"];
        assert!(chunk_tokens <= number(&tokens["chunks"]));
        let exact: usize = context["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| number(&message["tokens"]))
            .sum();
        assert_eq!(number(&tokens["exact"]), exact);
        assert_eq!(number(&tokens["total"]), exact + number(&tokens["framing"]));
    }
}

#[track_caller]
fn sums_hold(said: &Said) {
    let Said { file, stats, snapshots, .. } = said;
    let chunks: Vec<&Value> =
        snapshots.iter().flat_map(|line| line["snapshot"]["chunks"].as_array().unwrap()).collect();
    let sum = |chunks: &[&Value]| -> [usize; 3] {
        let of = |f: fn(&Value) -> usize| chunks.iter().copied().map(f).sum();
        [
            chunks.len(),
            of(|chunk| chunk["content"].as_str().unwrap().len()),
            of(|chunk| number(&chunk["tokens"])),
        ]
    };
    let stated = |value: &Value| ["chunks", "bytes", "tokens"].map(|key| number(&value[key]));
    assert_eq!(stated(stats), sum(&chunks), "{file}");
    assert_eq!(number(&stats["frames"]), snapshots.len());
    for (key, member) in [("byRole", "role"), ("byType", "type")] {
        let mut total = [0; 3];
        for (name, sums) in stats[key].as_object().unwrap() {
            let of_name: Vec<&Value> =
                chunks.iter().copied().filter(|chunk| chunk[member] == name.as_str()).collect();
            assert_eq!(stated(sums), sum(&of_name), "{file} {name}");
            total.iter_mut().zip(stated(sums)).for_each(|(total, part)| *total += part);
        }
        assert_eq!(total, stated(stats));
    }
    let no_facet = |chunk: &&Value| chunk["facetIds"].as_array().is_none_or(Vec::is_empty);
    let unattributed: Vec<&Value> = chunks.iter().copied().filter(no_facet).collect();
    assert_eq!(number(&stats["unattributedTokens"]), sum(&unattributed)[2]);
    let mut known = std::collections::HashSet::new();
    let repeated: Vec<&Value> =
        chunks.iter().copied().filter(|chunk| !known.insert(chunk["content"].as_str())).collect();
    assert_eq!(number(&stats["repeatedTextTokens"]), sum(&repeated)[2], "{file}");
    let estimate =
        |chunk: &&Value| chunk["content"].as_str().unwrap().encode_utf16().count().div_ceil(4);
    assert_eq!(number(&stats["estimatedTokens"]), chunks.iter().map(estimate).sum::<usize>());
    let largest = stats["byFacet"].as_array().unwrap();
    assert!(largest.len() <= 10);
    assert!(largest.is_sorted_by_key(|facet| std::cmp::Reverse(number(&facet["tokens"]))));
    for facet in largest {
        let of_facet: Vec<&Value> = snapshots
            .iter()
            .filter(|line| line["session"] == facet["session"])
            .flat_map(|line| line["snapshot"]["chunks"].as_array().unwrap())
            .filter(|chunk| {
                chunk["facetIds"].as_array().is_some_and(|ids| ids.contains(&facet["facet"]))
            })
            .collect();
        assert_eq!(
            [number(&facet["bytes"]), number(&facet["tokens"])],
            sum(&of_facet)[1..],
            "{facet}"
        );
    }
}

/// Stats of the frames that were written of each file are those of the file.
fn frames_carry_everything(all: &[Said]) {
    let directory = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    for (index, said) in all.iter().enumerate().filter(|(_, said)| !said.snapshots.is_empty()) {
        let frames = support::run(&["frames", &said.file]);
        let path = directory.path().join(index.to_string());
        fs::write(&path, frames.out).unwrap();
        written.push((path.to_str().unwrap().to_owned(), said));
    }
    let paths: Vec<&str> = written.iter().map(|(path, _)| path.as_str()).collect();
    let stats = json_lines(&[&["stats", "--json"], &*paths].concat());
    assert_eq!(stats.len(), written.len());
    for (mut piped, (_, said)) in stats.into_iter().zip(written) {
        assert_eq!(piped["format"], "frames");
        for key in ["file", "format"] {
            piped[key] = said.stats[key].clone();
        }
        // Nor do they know that the instructions of a rollout are not those that were sent.
        if said.stats["format"] == "codex" {
            piped["lacks"] = said.stats["lacks"].clone();
        }
        // Frames hold no requests: those of recorded traffic are in the file alone.
        if said.stats["provenance"] != "reconstructed" {
            // So are the models, which say what counts are worth.
            for key in
                ["requests", "context", "provenance", "lacks", "usage", "price", "counts", "media"]
            {
                piped[key] = said.stats[key].clone();
            }
        }
        assert_eq!(piped, said.stats);
    }
}

#[test]
fn every_byte_has_the_owner_that_its_span_names_and_sums_are_those_of_the_snapshots() {
    let all = said_of(&OWN);
    for said in &all {
        spans_tile_and_name_their_owners(said);
        sums_hold(said);
    }
    frames_carry_everything(&all);
}

#[test]
fn recorded_transcripts_hold_all_of_this_too() {
    let mut recordings = support::recordings();
    // Those of subagents are read with their session.
    recordings.retain(|path| !path.to_string_lossy().contains("/subagents/"));
    // A few at a time, since their snapshots are kept.
    for files in recordings.chunks(14) {
        let all = said_of(&files.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>());
        for said in &all {
            spans_tile_and_name_their_owners(said);
            sums_hold(said);
        }
        frames_carry_everything(&all);
    }
}

#[test]
fn captured_frames_keep_what_they_rendered_to() {
    let captured = out(&["frames", "--capture", "--format", "plain", SESSIONS]);
    let again = run_with(&["render", "--as", "snapshots", "-"], captured.clone());
    for (frame, line) in captured.lines().zip(again.out.lines()) {
        let frame: Value = serde_json::from_str(frame).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(frame["renderedSnapshot"], line["snapshot"]);
    }
    // Counts of another tokenizer are not taken over.
    let estimated = out(&["frames", "--capture", "--tokenizer", "chars4", SESSIONS]);
    let recounted = run_with(&["stats", "--json", "-"], estimated);
    let recounted: Value = serde_json::from_str(&recounted.out).unwrap();
    assert_eq!(recounted["tokens"], json(&["stats", "--json", SESSIONS])["tokens"]);
}

#[test]
fn hits_are_where_they_say() {
    for (file, text) in
        [(CHAT, "04:12"), (HARBOUR, "Morning Star"), (HARBOUR, "晨星号"), (SESSIONS, "aa")]
    {
        let hits = json(&["trace", "--json", "--text", text, file]);
        let hits = hits.as_array().unwrap();
        let mut expected = 0;
        for line in json_lines(&["render", "--as", "snapshots", file]) {
            let snapshot = &line["snapshot"];
            let content = snapshot["totalContent"].as_str().unwrap();
            expected += (0..content.len())
                .filter(|at| content.get(*at..).is_some_and(|rest| rest.starts_with(text)))
                .count();
            for hit in hits.iter().filter(|hit| hit["sequence"] == line["sequence"]) {
                let (start, end) = (number(&hit["start"]), number(&hit["end"]));
                assert_eq!(&content[start..end], text);
                let chunks = snapshot["chunks"].as_array().unwrap();
                let index = number(&hit["chunk"]);
                let before: usize = chunks[..index]
                    .iter()
                    .map(|chunk| chunk["content"].as_str().unwrap().len())
                    .sum();
                let chunk = &chunks[index];
                assert!(
                    before <= start && start < before + chunk["content"].as_str().unwrap().len()
                );
                for key in ["type", "role", "tokens", "facetIds"] {
                    assert_eq!(hit[key], chunk[key]);
                }
            }
        }
        assert_eq!(hits.len(), expected, "{text}");
        assert!(expected > 0);
    }
}

#[test]
fn many_hits_on_one_long_line_are_each_shown_by_what_is_around_them() {
    let line = "needle in a haystack without a single line feed ".repeat(20_000);
    let input = serde_json::json!([{"role": "user", "content": line}]).to_string();
    let table = run_with(&["trace", "--text", "needle in", "-"], input.clone());
    assert_eq!((table.code, table.said().as_str()), (Some(0), ""));
    let quotes: Vec<&str> = table.out.lines().filter(|line| line.contains('│')).collect();
    assert_eq!(quotes.len(), 20_000);
    assert!(quotes.iter().all(|quote| quote.contains("needle in") && quote.chars().count() <= 80));
    let hits = run_with(&["trace", "--json", "--text", "needle in", "-"], input);
    let hits: Value = serde_json::from_str(&hits.out).unwrap();
    assert_eq!(hits.as_array().unwrap().len(), 20_000);
}

#[test]
fn a_hit_over_several_chunks_names_every_facet_once() {
    let hits = json(&["trace", "--json", "--text", "12 logs\n</wood_pile>", SESSIONS]);
    assert_eq!(hits.as_array().unwrap().len(), 1);
    assert_eq!(
        (&hits[0]["chunk"], &hits[0]["facetIds"]),
        (&3.into(), &serde_json::json!(["wood"]))
    );
    let hits = json(&["trace", "--json", "--text", "fire.\n<wood", SESSIONS]);
    assert_eq!(hits[0]["facetIds"], serde_json::json!(["orders", "wood"]));
}

#[test]
fn the_owner_of_a_byte_is_the_one_that_the_message_names() {
    let contexts = json_lines(&["render", "--as", "messages", SESSIONS]);
    let sessions: Vec<&str> =
        contexts.iter().map(|context| context["session"].as_str().unwrap()).collect();
    assert_eq!(sessions, ["ash", "birch"]);
    for context in &contexts {
        for (index, message) in context["messages"].as_array().unwrap().iter().enumerate() {
            for span in message["spans"].as_array().unwrap() {
                let at = format!("{index}:{}", number(&span["end"]) - 1);
                let session = context["session"].as_str().unwrap();
                let hits = json(&["trace", "--json", "--at", &at, "--session", session, SESSIONS]);
                let owner = &span["owner"];
                assert_eq!(hits[0]["sequence"], owner["frame"]);
                let inner = if owner["frame"].is_null() { &owner["tail"] } else { owner };
                assert_eq!(hits[0]["facetIds"], inner["facetIds"]);
                assert_eq!((&hits[0]["start"], &hits[0]["end"]), (&span["start"], &span["end"]));
                assert_eq!(hits[0]["message"], index);
            }
        }
    }
}

#[test]
fn several_files_are_read_each_by_itself_and_name_themselves() {
    for args in [&["frames"][..], &["render", "--as", "snapshots"], &["render", "--json"]] {
        let lines = json_lines(&[args, &[SESSIONS, CHAT]].concat());
        let mut files: Vec<_> = lines.iter().map(|line| line["file"].as_str().unwrap()).collect();
        files.dedup();
        assert_eq!(files, [SESSIONS, CHAT]);
        let single = json_lines(&[args, &[CHAT]].concat());
        assert!(single.iter().all(|line| line.get("file").is_none()));
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for args in [
        &["render", "--as", "snapshots", HARBOUR][..],
        &["stats", "--json", HARBOUR],
        &["demo", "--json"],
    ] {
        assert_eq!(out(args), out(args));
    }
    let demo = json(&["demo", "--json"]);
    assert_eq!(demo["frames"].as_array().unwrap().len(), 18);
    assert_eq!(demo["hits"][0]["facetIds"], serde_json::json!(["papers"]));
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let text = fs::read_to_string(Path::new(&support::root()).join(CHAT)).unwrap();
    assert_eq!(run_with(&["render", "-"], text).out, out(&["render", CHAT]));
}
