//! Images and documents: on lines of their own, and in budgets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{fs, path::PathBuf};

use afterimage_testkit::data;
use serde_json::{Value, json};
use support::{json as object, json_lines, out};

/// A file in a folder that goes with the first of the two.
fn written(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// A session of Claude Code in which each question has an image of 1,092 by 1,092 pixels: 1,521
/// tokens for Claude. The answers are of this model.
fn with_images(count: usize, model: &str) -> (tempfile::TempDir, String) {
    // The header of a GIF is all that is looked at.
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhRAREBA=="}});
    let lines = (0..count).flat_map(|index| {
        let text =
            json!({"type": "text", "text": format!("Berth {index}: {}", "calm ".repeat(40))});
        let user = json!({"type": "user", "sessionId": "s", "uuid": format!("u{index}"),
            "message": {"role": "user", "content": [image, text]}});
        let agent = json!({"type": "assistant", "sessionId": "s", "uuid": format!("a{index}"),
            "message": {"id": format!("m{index}"), "role": "assistant", "model": model,
                "content": [{"type": "text", "text": "Seen."}],
                "usage": {"input_tokens": 2_000 * (index + 1), "output_tokens": 3}}});
        [user.to_string(), agent.to_string()]
    });
    written("session.jsonl", &lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn stats_has_images_on_lines_of_their_own_and_an_archive_answers_the_same() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let session = folder.join("claude-code/agentcmd/full-session-two.jsonl");
    let session = session.to_str().unwrap();
    let stats = object(&["stats", "--json", session]);
    let row = json!({"kind": "image", "model": "claude-sonnet-4-5-20250929",
        "rule": "anthropicPatches", "unknown": null, "parts": 1, "tokens": 110});
    let expected = json!({"parts": 1, "tokens": 110, "unknown": 0, "rows": [row]});
    assert_eq!(stats["media"], expected);
    let page = out(&["stats", session]);
    for says in ["IMAGES AND DOCUMENTS", "1 image: Anthropic's patches of 28 pixels, for"] {
        assert!(page.contains(says), "{says} in {page}");
    }
    let residency = object(&["stats", "--json", "--residency", session]);
    let by_type = residency["residency"]["byType"]["media"]["input"].as_u64().unwrap();
    assert!(by_type > 0 && by_type.is_multiple_of(110), "{by_type}");
    assert_eq!(residency["residency"]["unknownMedia"], 0);

    let scratch = tempfile::tempdir().unwrap();
    let archive = scratch.path().join("archive");
    let archive = archive.to_str().unwrap();
    out(&["archive", session, "-o", archive]);
    assert_eq!(object(&["stats", "--json", archive])["media"], expected);

    // Of the last request alone.
    let of = object(&["stats", "--json", "--request", "9", session]);
    assert_eq!(of["media"]["tokens"], 110, "{}", of["media"]);
}

#[test]
fn what_is_said_of_images_fits_80_columns() {
    let (_folder, session) = with_images(2, "claude-sonnet-4-5-20250929");
    let output =
        support::afterimage(&["stats", &session]).env("COLUMNS", "80").output().unwrap().stdout;
    let page = String::from_utf8(output).unwrap();
    assert!(page.contains("2 images: "), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn what_no_rule_counts_is_unknown_and_said_so() {
    let (_folder, session) = with_images(3, "gpt-6.1-sol");
    let media = &object(&["stats", "--json", &session])["media"];
    assert_eq!((&media["tokens"], &media["unknown"]), (&json!(0), &json!(3)));
    assert_eq!(media["rows"][0]["unknown"], "noRule");
    assert_eq!(media["rows"][0]["tokens"], Value::Null);
    let page = out(&["stats", &session]);
    assert!(page.contains("unknown") && page.contains("no published rule is known"), "{page}");
    let page = out(&["stats", "--residency", &session]);
    assert!(page.contains("3 media items of unknown cost"), "{page}");
    let replay = object(&["replay", "--json", "--budget", "8k", &session]);
    assert_eq!(replay["sessions"][0]["unknownMedia"], 3);
}

#[test]
fn the_images_of_a_context_take_room_in_its_budget() {
    let (_folder, session) = with_images(12, "claude-opus-4-5");
    for budget in [8_000_u64, 12_000, 40_000] {
        let of = budget.to_string();
        let lines = json_lines(&["compress", "--json", "--budget", &of, &session]);
        let figure = |pointer: &str| lines[0].pointer(pointer).unwrap().as_u64().unwrap();
        let after = figure("/media/after/tokens");
        assert_eq!(figure("/media/before/tokens"), 12 * 1_521);
        assert_eq!(after, figure("/media/after/parts") * 1_521);
        assert!(figure("/tokensAfter") + after <= budget, "{}", lines[0]);
        if budget == 40_000 {
            assert_eq!(figure("/media/after/parts"), 12, "they all fit");
        } else {
            // Some of the newest stay, and the budget is made use of.
            assert!((1_521..12 * 1_521).contains(&after), "{}", lines[0]);
        }
        let replay = object(&["replay", "--json", "--budget", &of, &session]);
        assert_eq!(replay["all"]["overBudget"], 0, "{}", replay["all"]);
        assert!(replay["all"]["mediaTokens"].as_u64().unwrap() >= 1_521, "{}", replay["all"]);
    }
    // Without a budget that is kept each request holds all images before it.
    let all = object(&["replay", "--json", "--policy", "none", "--budget", "8k", &session]);
    assert_eq!(all["all"]["mediaTokens"], (1..=12).sum::<u64>() * 1_521);
    assert!(all["all"]["overBudget"].as_u64().unwrap() >= 7, "{}", all["all"]);
    let page =
        out(&["compress", "--as", "blocks", "--color", "always", "--budget", "8k", &session]);
    assert!(page.contains("Images and documents: ") && page.contains(" of 12, "), "{page}");
}

/// A command with this tokenizer.
fn command<'a>(by: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--tokenizer", by]].concat()
}

#[test]
fn every_command_says_how_far_off_its_calibrated_counts_are() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let name = |file: &str| folder.join("claude-code").join(file).to_str().unwrap().to_owned();
    let session = name("spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl");
    let short = name("spotter/short.jsonl");
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let file = at("claude.json");
    out(&["stats", &session, "--calibrate", &file]);
    let by = format!("calibrated:{file}");
    let error = json!({"model": "claude-opus-4-6", "interval": 290, "medianError": 579,
        "checked": 142, "held": 133});
    let says = "off by 0.06 % in the median, the next request within ± 290 tokens in 133 of 142 held-out exchanges";

    let check = |found: &Value| {
        assert_eq!((&found["counts"], &found["error"]), (&json!("calibrated"), &error), "{found}");
        assert!(found["tokenizer"].as_str().unwrap().starts_with("calibrated:o200k_base*1.1"));
    };
    check(&object(&command(&by, &["stats", "--json", &session])));
    check(&object(&command(&by, &["stats", "--json", "--residency", &session])));
    check(&object(&command(&by, &["replay", "--json", "--budget", "200k", &short])));
    let archive = at("archive");
    check(&object(&command(&by, &["archive", "--json", &short, "-o", &archive]))["files"][0]);
    let hits = object(&command(&by, &["trace", "--json", "--text", "the", &short]));
    check(&hits[0]);
    for args in [
        &["stats", &session][..],
        &["trace", "--text", "the", &short],
        &["frames", "--table", &short],
        &["replay", "--budget", "200k", &short],
    ] {
        let page = out(&command(&by, args));
        assert!(page.contains(says), "{args:?} {page}");
    }

    // The calibration does not know this session, and knows one other of the client.
    let lines = json_lines(&command(&by, &["compress", "--json", "--budget", "90k", &short]));
    check(&lines[0]);
    assert_eq!(lines[0]["otherSessions"], 1);
    assert!((25_000..26_500).contains(&lines[0]["lacks"].as_u64().unwrap()), "{}", lines[0]);
    let requests = json_lines(&command(&by, &["requests", "--json", &short]));
    let counted = &requests[0]["counted"];
    assert_eq!((&counted["counts"], &counted["otherSessions"]), (&json!("calibrated"), &json!(1)));
    let figure = |name: &str| counted[name].as_u64().unwrap();
    assert!((figure("low")..=figure("high")).contains(&25_353), "{counted}");
    let page = out(&command(&by, &["replay", "--budget", "90k", &short]));
    for says in ["of the budget are for what the transcript lacks (± ", "from 1 other session)"] {
        assert!(page.contains(says), "{page}");
    }
    // An archive keeps the counts, and knows nothing of the error.
    let kept = object(&["stats", "--json", &archive]);
    assert_eq!((&kept["counts"], &kept["error"]), (&json!("calibrated"), &Value::Null));

    // Several sessions are fitted together.
    let both = at("both.json");
    let said = out(&["stats", &session, &short, "--calibrate", &both]);
    assert!(said.contains("2 exchanges after the last report"), "{said}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&both).unwrap()).unwrap();
    let sessions = written["sessions"].as_array().unwrap();
    assert!(sessions.iter().any(|of| of["session"].as_str().unwrap().starts_with("55604662")));
}

#[test]
fn a_calibration_of_another_model_says_nothing_of_a_session() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let name = |file: &str| folder.join("claude-code").join(file).to_str().unwrap().to_owned();
    // Opus 4.6 was fitted; Sonnet 4.5 answers.
    let by = format!("calibrated:{}", name("spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl"));
    let session = name("agentcmd/full-session-two.jsonl");
    let lines = json_lines(&command(&by, &["compress", "--json", "--budget", "90k", &session]));
    assert_eq!(lines[0]["counts"], "estimated");
    for member in ["error", "lacks", "otherSessions"] {
        assert_eq!(lines[0][member], Value::Null, "{member}");
    }
}
