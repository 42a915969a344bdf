//! Documents and states: checkpoints, frames, observations.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use std::{fs, path::Path};

use crate::support::{out, run};

/// A file of its own with this text.
fn file(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_delta_gives_the_line_ends_of_its_target_and_validate_sees_others() {
    let folder = tempfile::tempdir().unwrap();
    let body = |says: &str| {
        format!(
            "---\ncheckpoint: {says}\ncreated: 2026-05-01T10:00:00Z\n---\n\n## Problem\n\n{says}\n"
        )
    };
    let plain = file(&folder, "plain.md", body("one"));
    let text = body("two");
    let targets = [
        text.clone(),
        text.replace('\n', "\r\n"),
        text.replace('\n', "\r"),
        text.trim_end().to_owned(),
        text.replacen('\n', "\r\n", 3),
        format!("\u{feff}{}", text.trim_end()),
        text.split("\n##").next().unwrap().to_owned(),
        String::new(),
    ];
    for (at, target) in targets.iter().enumerate() {
        let target_file = file(&folder, &format!("target-{at}.md"), target);
        let args =
            ["checkpoint", "diff", &plain, &target_file, "--created", "2026-05-02T10:00:00Z"];
        for bounded in [&[][..], &["--bounded"]] {
            let delta = file(&folder, "delta.md", out(&[&args[..], bounded].concat()));
            assert_eq!(&out(&["checkpoint", "apply", &plain, &delta]), target);
            out(&["checkpoint", "validate", &plain, &delta, &target_file]);
            let other = file(&folder, "other.md", format!("{target}\r\n"));
            let found = run(&["checkpoint", "validate", &plain, &delta, &other]);
            assert_eq!(found.code, Some(1), "{at}: {}", found.out);
        }
        let there = file(&folder, "there.md", out(&args));
        let back = file(&folder, "back.md", out(&["checkpoint", "invert", &there]));
        assert_eq!(out(&["checkpoint", "apply", &target_file, &back]), body("one"), "{at}");
    }
    let delta = file(&folder, "delta.md", out(&["checkpoint", "diff", &plain, &plain_of(&folder)]));
    let crlf = file(&folder, "crlf.md", text.replace('\n', "\r\n"));
    let found = run(&["checkpoint", "validate", &plain, &delta, &crlf]);
    assert!(found.out.contains("- ---␍␊\n  + ---␊\n"), "{}", found.out);
}

/// A target in canonical form.
fn plain_of(folder: &tempfile::TempDir) -> String {
    folder.path().join(Path::new("target-0.md")).to_str().unwrap().to_owned()
}

#[test]
fn frames_whose_snapshot_is_not_understood_are_read_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let ask = r#"{"id":"q","type":"event","content":"Is the tide high?"}"#;
    let first =
        format!(r#""sequence":1,"source":"user","deltas":[{{"type":"addFacet","facet":{ask}}}]"#);
    let second = r#"{"sequence":2,"source":"agent","deltas":[{"type":"addFacet","facet":{"id":"s","type":"speech","content":"It is."}}]}"#;
    let plain = file(&folder, "plain.jsonl", format!("{{{first}}}\n{second}\n"));
    let snapshot = r#""renderedSnapshot":{"parts":["Is the tide high?"],"version":2}"#;
    let other = file(&folder, "other.jsonl", format!("{{{first},{snapshot}}}\n{second}\n"));
    for command in ["render", "export"] {
        let args = |path: &str| match command {
            "export" => vec!["export".to_owned(), "--otlp".to_owned(), path.to_owned()],
            _ => vec![command.to_owned(), path.to_owned()],
        };
        let of = |path: &str| run(&args(path).iter().map(String::as_str).collect::<Vec<_>>());
        let (plain, other) = (of(&plain), of(&other));
        assert_eq!((other.code, &other.out), (Some(0), &plain.out), "{}", other.err);
        assert!(command != "render" || other.out.contains("Is the tide high?"));
        assert!(other.err.contains("the snapshot is left out"), "{}", other.err);
    }
}
