//! Where facets stand in their files, and which tool calls they belong to: held to the raw files by
//! code that shares nothing with the readers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use support::{files_of, run};

/// The JSON that a command prints of a file that may be odd.
fn answer(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).out).unwrap()
}

/// The records of a session of Claude Code with its subagents, by uuid, each with its line; and the
/// tool and the file of each call, by its id.
#[derive(Default)]
struct Raw {
    records: BTreeMap<String, Vec<(u64, Value)>>,
    calls: BTreeMap<String, (String, Option<String>)>,
}

impl Raw {
    fn read(path: &Path) -> Self {
        let mut raw = Self::default();
        let subagents = path.with_extension("").join("subagents");
        let beside =
            fs::read_dir(subagents).into_iter().flatten().map(|entry| entry.unwrap().path());
        for file in std::iter::once(path.to_owned()).chain(beside) {
            for (line, text) in (1..).zip(fs::read_to_string(file).unwrap().lines()) {
                let Ok(record) = serde_json::from_str::<Value>(text) else { continue };
                for block in record["message"]["content"].as_array().into_iter().flatten() {
                    if let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) {
                        let file = block["input"]["file_path"].as_str().map(str::to_owned);
                        raw.calls.insert(id.to_owned(), (name.to_owned(), file));
                    }
                }
                if let Some(uuid) = record["uuid"].as_str() {
                    raw.records.entry(uuid.to_owned()).or_default().push((line, record));
                }
            }
        }
        raw
    }

    /// Asserts that a label is what the raw record says. The number of things compared.
    fn check(&self, facet: &Value) -> u64 {
        let Some(uuid) = facet["uuid"].as_str() else { return 0 };
        let known = &self.records[uuid];
        let line = facet["line"].as_u64().unwrap();
        let (_, record) = known.iter().find(|(at, _)| *at == line).unwrap();
        assert_eq!(facet["time"], record["timestamp"], "{facet}");
        let kind = facet["type"].as_str().unwrap();
        if !matches!(kind, "action" | "result") {
            return 1;
        }
        let blocks = record["message"]["content"].as_array();
        let ids = blocks.into_iter().flatten().filter_map(|block| {
            block[if kind == "action" { "id" } else { "tool_use_id" }].as_str()
        });
        let calls: Vec<_> = ids.filter_map(|id| self.calls.get(id)).collect();
        let is_of = |(tool, path): &&(String, Option<String>)| {
            facet["tool"] == tool.as_str()
                && path.as_deref().is_none_or(|path| facet["path"] == path)
        };
        assert!(calls.is_empty() || calls.iter().any(is_of), "{facet}: {calls:?}");
        1 + u64::from(!calls.is_empty())
    }
}

#[test]
fn labels_are_what_the_raw_record_says() {
    let mut compared = 0;
    let groups = ["B-anthropic/claude-code"];
    let files = files_of(&groups);
    for path in files.iter().filter(|path| path.extension().is_some_and(|of| of == "jsonl")) {
        let name = path.to_str().unwrap();
        if path.components().any(|part| part.as_os_str() == "subagents") {
            continue;
        }
        let raw = Raw::read(path);
        if raw.records.is_empty() {
            continue;
        }
        let largest = answer(&["stats", "--json", name]);
        let facets = largest["byFacet"].as_array().unwrap();
        compared += facets.iter().map(|facet| raw.check(facet)).sum::<u64>();
        let costliest = answer(&["stats", "--residency", "--json", name]);
        let lines = costliest["residency"]["lines"].as_array();
        compared += lines.into_iter().flatten().map(|line| raw.check(line)).sum::<u64>();
    }
    assert!(files.is_empty() || compared > 200, "{compared}");
}

#[test]
fn a_hit_names_the_record_and_the_tool_of_its_facet() {
    let file = "examples/sessions/harbour.jsonl";
    let path = support::root().join(file);
    let name = path.to_str().unwrap();
    let hits = answer(&["trace", "--text", "approved", "--json", name]);
    let hits = hits.as_array().unwrap();
    let papers = hits.iter().find(|hit| hit["facetIds"][0] == "papers").unwrap();
    assert_eq!((&papers["tool"], &papers["line"]), (&"read_manifest".into(), &Value::Null));
    assert_eq!(papers["time"], "2026-03-14T01:53:43Z");
    let page = run(&["trace", "--text", "approved", name]).out;
    assert!(page.contains("papers  read_manifest"), "{page}");
}
