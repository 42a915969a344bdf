//! `compress --range`, `--preview` and `--pin`: what the preview says is what comes, and what is
//! pinned stays verbatim.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use serde_json::json;
use support::{json_lines, out, run};

const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const RANGE: [&str; 4] = ["compress", HARBOUR, "--range", "2..8"];

#[test]
fn a_range_is_compressed_as_its_preview_says() {
    let preview = json_lines(&[&RANGE[..], &["--preview", "--json"]].concat()).pop().unwrap();
    let report = json_lines(&[&RANGE[..], &["--json"]].concat()).pop().unwrap();
    assert_eq!(report["budget"], json!(null));
    let blocks = report["blocks"].as_array().unwrap();
    let goes: Vec<_> =
        blocks.iter().map(|of| json!({ "from": of["from"], "to": of["to"] })).collect();
    assert_eq!(preview["goes"], json!(goes));
    assert!(!goes.is_empty() && report["dropped"] == json!([]));
    assert_eq!(preview["tokensBefore"], report["tokensBefore"]);
    let number = |of: &serde_json::Value| of.as_u64().unwrap();
    assert!(number(&report["tokensAfter"]) <= number(&preview["tokensAfter"]));
    assert!(number(&report["tokensAfter"]) < number(&report["tokensBefore"]));
    let original: u64 = blocks.iter().map(|of| number(&of["originalTokens"])).sum();
    assert_eq!(number(&preview["tokens"]), original);
    // `expand` gives back what the block stands for.
    let id = blocks[0]["id"].as_str().unwrap();
    let expanded = out(&["expand", HARBOUR, "--range", "2..8", "--block", id]);
    assert!(!expanded.is_empty());
    // A page says the same.
    let page = out(&[&RANGE[..], &["--preview"]].concat());
    let first = format!("{}–{}", goes[0]["from"], goes[0]["to"]);
    assert!(page.contains(&first) && page.contains("The cache keeps "), "{page}");
}

#[test]
fn a_range_and_a_budget_are_both_kept() {
    let args = [&RANGE[..], &["--budget", "600", "--json"]].concat();
    let report = json_lines(&args).pop().unwrap();
    assert!(report["tokensAfter"].as_u64().unwrap() <= 600);
    assert!(!report["blocks"].as_array().unwrap().is_empty());
}

#[test]
fn what_is_pinned_stays_verbatim() {
    let args = ["compress", HARBOUR, "--budget", "900", "--keep-recent", "2", "--json"];
    let plain = json_lines(&args).pop().unwrap();
    let first = plain["blocks"][0]["from"].as_u64().unwrap();
    let pin = first.to_string();
    let pinned = json_lines(&[&args[..], &["--pin", &pin]].concat()).pop().unwrap();
    let blocks = pinned["blocks"].as_array().unwrap().iter();
    let dropped = pinned["dropped"].as_array().unwrap().iter();
    for stands in blocks.chain(dropped) {
        let (from, to) = (stands["from"].as_u64().unwrap(), stands["to"].as_u64().unwrap());
        assert!(!(from..=to).contains(&first), "{pinned}");
    }
    // What the frame shows stands in the context, byte for byte.
    let place = ["--from", &pin, "--to", &pin, "--format", "native", "--as", "snapshots"];
    let shown = out(&[&["render", HARBOUR][..], &place].concat());
    let shown: serde_json::Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    let chunks = shown["snapshot"]["chunks"].as_array().unwrap();
    let text: String = chunks.iter().map(|chunk| chunk["content"].as_str().unwrap()).collect();
    assert!(text.trim().len() > 20, "{text}");
    let context = |more: &[&str]| {
        out(&[&args[..args.len() - 1], &["--format", "native", "--as", "text"], more].concat())
    };
    assert!(!context(&[]).contains(text.trim()), "it goes without a pin");
    assert!(context(&["--pin", &pin]).contains(text.trim()));
    // By a text that the frame holds.
    let words = chunks[0]["content"].as_str().unwrap().trim();
    let by_text = json_lines(&[&args[..], &["--pin", words]].concat()).pop().unwrap();
    assert_eq!(by_text["blocks"], pinned["blocks"]);
    // By the id of its facet.
    let facet = chunks.iter().find_map(|chunk| chunk["facetIds"][0].as_str()).unwrap();
    let by_id = json_lines(&[&args[..], &["--pin", facet]].concat()).pop().unwrap();
    assert_eq!(by_id["blocks"], pinned["blocks"]);
}

#[test]
fn a_text_in_the_arguments_of_a_call_is_pinned_with_its_frame() {
    let args = ["compress", HARBOUR, "--budget", "900", "--keep-recent", "2", "--json"];
    let frames = json_lines(&["frames", HARBOUR]);
    let facets =
        |frame: &serde_json::Value| frame["deltas"].as_array().cloned().unwrap_or_default();
    let argument = |frame: &serde_json::Value| {
        facets(frame).iter().find_map(|op| {
            let arguments = op["facet"]["part"]["parameters"].as_object()?.values();
            arguments
                .filter_map(|value| value.as_str())
                .find(|text| text.len() > 3)
                .map(str::to_owned)
        })
    };
    let (at, text) =
        frames.iter().enumerate().find_map(|(at, of)| Some((at, argument(of)?))).unwrap();
    let pinned = json_lines(&[&args[..], &["--pin", &text]].concat()).pop().unwrap();
    for stands in pinned["blocks"].as_array().unwrap() {
        let (from, to) = (stands["from"].as_u64().unwrap(), stands["to"].as_u64().unwrap());
        assert!(!(from..=to).contains(&(at as u64)), "{text:?} of {at}: {pinned}");
    }
}

#[track_caller]
fn refused(args: &[&str], code: i32, expected: &str) {
    let run = run(args);
    assert_eq!(run.code, Some(code), "{}", run.err);
    assert!(run.err.contains(expected), "{}", run.err);
}

#[test]
fn what_cannot_be_compressed_or_pinned_is_said() {
    refused(
        &["compress", HARBOUR, "--range", "900..950"],
        2,
        "error: no session has a frame from 900 to 950",
    );
    refused(&["compress", HARBOUR, "--range", "5..2"], 2, "the range runs from 5 back to 2");
    refused(&["compress", HARBOUR, "--range", "x"], 2, "for example 100..150");
    refused(&["compress", HARBOUR], 2, "--budget <TOKENS>");
    refused(&["compress", HARBOUR, "--budget", "9", "--preview"], 2, "--range <FROM..TO>");
    refused(&["replay", HARBOUR], 2, "--budget <TOKENS>");
    refused(
        &["compress", SESSIONS, "--budget", "900", "--pin", "no such words"],
        2,
        "error: no frame, facet or text \"no such words\" was found to pin",
    );
}

#[test]
fn a_preview_of_what_cannot_go_says_why() {
    // Frame 0 holds the operator's words.
    let prompt = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello."}]"#;
    let run = support::run_with(&["compress", "-", "--range", "0", "--preview"], prompt);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains(" None of these frames can be compressed."), "{}", run.out);
    let refused = support::run_with(&["compress", "-", "--range", "0"], prompt);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("no frame from 0 to 0 can be compressed: 0 ("), "{}", refused.err);
}
