//! What a compressed context no longer says: `compress --receipt`, and `expand --around` and
//! `--frame`, which find it again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use serde_json::Value;
use support::{json_lines, out, run};

const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const FIT: [&str; 3] = [HARBOUR, "--budget", "200"];

/// Everything that a receipt of recordings names is printed by `expand`, in at most 1,000 tokens.
#[test]
fn what_a_receipt_names_is_found_again() {
    let small = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len() < 200_000;
    let files = support::recordings().into_iter().filter(small).step_by(3);
    let (mut all, mut reached) = (0, 0);
    for path in files {
        let file = path.to_str().unwrap();
        let options = ["--budget", "3000", "--tokenizer", "chars4", "--format", "native"];
        let run =
            support::run(&[&["compress", file, "--json", "--receipt"][..], &options].concat());
        let mut sessions = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lossy = |session: &Value| {
            session["receipt"]["lost"].as_array().is_some_and(|lost| !lost.is_empty())
        };
        let Some(session) = sessions.find(lossy) else { continue };
        let options = [&options[..], &["--session", session["session"].as_str().unwrap()]].concat();
        let lost = session["receipt"]["lost"].as_array().unwrap();
        all += lost.len();
        for lost in lost.iter().step_by(lost.len().div_ceil(4).max(1)) {
            let (text, id) = (lost["text"].as_str().unwrap(), lost["id"].as_str().unwrap());
            let whole = out(&[&["expand", file, "--block", id][..], &options].concat());
            let around = [&["expand", file, "--around", text][..], &options].concat();
            let frame = lost["frame"].to_string();
            for more in [&["--block", id][..], &["--frame", &frame], &[]] {
                let part = support::run(&[&around, more].concat());
                assert_eq!(part.code, Some(0), "{file}: {text}: {}", part.err);
                assert!(part.out.contains(text), "{file}: {text}: {}", part.out);
                assert!(part.out.encode_utf16().count() <= 4_000, "{file}: {text}");
                if !more.is_empty() {
                    assert!(whole.contains(&part.out), "{file}: {text}");
                }
            }
            reached += 1;
        }
    }
    assert!(support::recordings().is_empty() || (all > 80 && reached > 15), "{all} {reached}");
}

#[test]
fn a_receipt_stands_in_place_of_the_context_and_beside_it_in_json() {
    let page = out(&[&["compress"], &FIT[..], &["--receipt"]].concat());
    assert!(page.contains("Can no longer be read: "), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let report = |more: &[&str]| {
        json_lines(&[&["compress"], &FIT[..], &["--json"], more].concat()).pop().unwrap()
    };
    let receipt = &report(&["--receipt"])["receipt"];
    assert!(report(&[]).get("receipt").is_none());
    let text = report(&["--as", "text", "--receipt"]);
    assert!(text["context"].is_string());
    assert_eq!(&text["receipt"], receipt);
    for lost in receipt["lost"].as_array().unwrap() {
        let lost = lost["text"].as_str().unwrap();
        assert!(page.contains(lost), "{lost}");
        assert!(!text["context"].as_str().unwrap().split_whitespace().any(|word| word == lost));
    }
    let fits = out(&["compress", SESSIONS, "--budget", "9k", "--receipt"]);
    assert_eq!(fits.matches("It fits unchanged.").count(), 2, "{fits}");
}

#[test]
fn a_part_says_where_it_stands_and_where_else() {
    let expand = |more: &[&str]| run(&[&["expand"], &FIT[..], more].concat());
    let part = expand(&["--around", "03:45", "--limit", "30"]);
    assert!(part.out.contains("03:45"));
    assert!(part.err.contains("note: frame ") && part.err.contains(": 30 tokens"), "{}", part.err);
    assert!(part.err.contains("the text stands in frames "), "{}", part.err);
    let whole = expand(&["--frame", "5", "--limit", "9k"]);
    assert_eq!(whole.err, "");
    let beginning = expand(&["--frame", "5", "--limit", "20"]);
    assert!(whole.out.starts_with(&beginning.out) && whole.out.len() > beginning.out.len());
    // A frame that stands in the context is printed too.
    assert!(expand(&["--frame", "2"]).out.contains("Mirela"));
}

#[test]
fn what_nobody_says_is_refused() {
    let refused = |more: &[&str], expected: &str| {
        let run = run(&[&["expand"], &FIT[..], more].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{more:?}");
        assert!(run.err.contains(expected), "{more:?}: {}", run.err);
    };
    refused(
        &["--around", "nowhere"],
        "no frame that was replaced in the context contains \"nowhere\"",
    );
    refused(&["--around", "nowhere", "--frame", "4"], "frame 4 does not contain \"nowhere\"");
    refused(&["--frame", "99"], "frame 99 does not exist, or has no text");
    refused(&["--block", "block-9-99", "--around", "a"], "there is no block \"block-9-99\"");
    refused(&["--block", "x", "--limit", "9"], "--around <TEXT>");
    refused(&[], "--block <ID>");
    let both = run(&["expand", HARBOUR, HARBOUR, "--budget", "200", "--frame", "2"]);
    assert!(both.err.contains("error: several sessions have it\n"), "{}", both.err);
    assert_eq!(
        run(&["compress", HARBOUR, "--range", "2..8", "--preview", "--receipt"]).code,
        Some(2)
    );
}
