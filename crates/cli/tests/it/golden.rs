//! What people see, held to files. `AFTERIMAGE_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use crate::support;

use std::{fs, path::Path};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const HARBOUR: &str = "examples/sessions/harbour.jsonl";

#[track_caller]
fn check(name: &str, args: &[&str]) {
    check_text(name, &support::out(args));
}

#[track_caller]
fn check_text(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name}: expected\n{expected}\nfound\n{found}");
}

#[test]
fn the_demo_is_a_table_a_view_an_answer_and_what_to_try_next() {
    check("demo.txt", &["demo"]);
    check("demo-color.txt", &["demo", "--color", "always"]);
}

#[test]
fn frames_are_jsonl_in_a_pipe_and_a_table_on_demand() {
    check("frames-chat.jsonl", &["frames", CHAT]);
    check("frames-chat.txt", &["frames", "--table", CHAT]);
    check("frames-sessions.txt", &["frames", "--table", "--color", "always", SESSIONS]);
    check("frames-captured.jsonl", &["frames", "--capture", "--tokenizer", "chars4", SESSIONS]);
}

#[test]
fn text_is_nothing_but_the_text_unless_it_is_viewed() {
    check("render-chat.txt", &["render", CHAT]);
    check("render-chat-native.txt", &["render", "--format", "native", CHAT]);
    check("render-chat-plain.txt", &["render", "--format", "plain", CHAT]);
    check("render-sessions.txt", &["render", SESSIONS]);
    check("view-sessions.txt", &["render", "--color", "always", SESSIONS]);
    check(
        "view-harbour.txt",
        &["render", "--color", "always", "--from", "5", "--to", "7", HARBOUR],
    );
}

#[test]
fn messages_and_snapshots_are_json() {
    check("messages-chat.json", &["render", "--as", "messages", CHAT]);
    check("messages-sessions.jsonl", &["render", "--json", "--tokenizer", "cl100k", SESSIONS]);
    check("snapshots-sessions.jsonl", &["render", "--as", "snapshots", "--from", "6", SESSIONS]);
}

#[test]
fn traces_are_rows_with_their_line() {
    check("trace-text.txt", &["trace", "--text", "11 logs", SESSIONS]);
    check("trace-text-color.txt", &["trace", "--text", "11 logs", "--color", "always", SESSIONS]);
    check("trace-facet.txt", &["trace", "--facet", "wood", SESSIONS]);
    check("trace-at.json", &["trace", "--at", "0:20", "--json", SESSIONS]);
    check("trace-files.txt", &["trace", "--text", "0", CHAT, SESSIONS]);
}

#[test]
fn sums_have_bars() {
    check("stats-chat.txt", &["stats", CHAT]);
    check("stats-sessions.txt", &["stats", "--color", "always", SESSIONS]);
    check("stats.jsonl", &["stats", "--json", CHAT, SESSIONS, HARBOUR]);
}

#[test]
fn what_was_archived_is_a_table() {
    let scratch = tempfile::tempdir().unwrap();
    let checked = |name: &str, args: &[&str]| {
        // On disk numbers of processes are kept too, whose length differs.
        let directory = scratch.path().join(name);
        let path = directory.to_str().unwrap();
        let table = support::out(&[&["archive", "-o", path], args].concat());
        let (table, said) = table.split_once("\n\n").unwrap();
        assert!(said.starts_with(&format!("{path}  ")) && said.ends_with(" on disk\n"), "{said}");
        check_text(name, &format!("{table}\n"));
    };
    checked("archive-one.txt", &[CHAT]);
    checked("archive-several.txt", &[CHAT, SESSIONS, HARBOUR]);
}

const FIT: [&str; 5] = [HARBOUR, "--budget", "900", "--keep-recent", "4"];

#[test]
fn a_session_that_is_fitted_is_text_a_view_a_report_or_a_request() {
    let fitted = |name: &str, args: &[&str]| check(name, &[&["compress"], &FIT[..], args].concat());
    fitted("compress.txt", &[]);
    fitted("compress-view.txt", &["--color", "always"]);
    fitted("compress.json", &["--json"]);
    fitted("compress-blocks.json", &["--as", "blocks"]);
    fitted("compress-blocks-view.txt", &["--as", "blocks", "--color", "always"]);
    fitted("compress-openai.json", &["--as", "openai"]);
    fitted("compress-responses.json", &["--as", "responses"]);
    fitted("compress-anthropic.json", &["--as", "anthropic"]);
    fitted("compress-owners.json", &["--as", "openai", "--json"]);
    // Both sessions fit as they are.
    check("compress-sessions.txt", &["compress", SESSIONS, "--budget", "900", "--color", "always"]);
    check("compress-sessions.jsonl", &["compress", SESSIONS, "--budget", "900", "--json"]);
}

#[test]
fn what_gave_way_is_expanded() {
    let report = support::json(&[&["compress"], &FIT[..], &["--json"]].concat());
    let id = report["blocks"][0]["id"].as_str().unwrap();
    check("expand.txt", &[&["expand"], &FIT[..], &["--block", id]].concat());
}

#[test]
fn what_a_context_no_longer_says_is_a_table_a_report_and_a_part() {
    let fit = [HARBOUR, "--budget", "200"];
    check("receipt.txt", &[&["compress"], &fit[..], &["--receipt"]].concat());
    check("receipt.json", &[&["compress"], &fit[..], &["--receipt", "--json"]].concat());
    let part = ["--around", "slipway-2", "--limit", "60"];
    let part = support::run(&[&["expand"], &fit[..], &part].concat());
    check_text("expand-around.txt", &format!("{}\n{}", part.out, part.err));
}

#[test]
fn sessions_are_replayed() {
    let files = [HARBOUR, "crates/cli/tests/data/sessions.jsonl"];
    for policy in ["blocks", "sliding", "none"] {
        let args = ["replay", "--budget", "500", "--policy", policy, files[0], files[1]];
        check(&format!("replay-{policy}.txt"), &args);
    }
    let all = "none,sliding,first-and-last,masking,keep-user,forget,blocks";
    let priced = ["--summaries", "continued", "--model", "claude-sonnet-4-5"];
    let args = ["replay", "--budget", "500", "--policy", all, files[0]];
    check("replay-policies.txt", &[&args[..], &priced].concat());
    let json = ["replay", "--json", "--budget", "500", files[0], files[1]];
    check("replay.json", &json);
}

#[test]
fn recordings_of_one_task_are_audited() {
    let files =
        ["crates/cli/tests/data/audit-without.jsonl", "crates/cli/tests/data/audit-with.jsonl"];
    check("audit.txt", &["audit", files[0], files[1]]);
    check("audit.json", &["audit", "--json", files[0], files[1]]);
}

#[test]
fn contexts_are_compared() {
    let (before, after) = ("crates/cli/tests/data/before.json", "crates/cli/tests/data/after.json");
    check("diff.txt", &["diff", before, after]);
    check("diff-color.txt", &["diff", "--color", "always", before, after]);
    check("diff-cache.txt", &["diff", "--cache", "openai", "--full", before, after]);
    check("diff.json", &["diff", "--json", before, after]);
    check("diff-same.txt", &["diff", before, before]);
    let blocks = support::out(&[&["compress"], &FIT[..], &["--as", "blocks"]].concat());
    let compared = support::run_with(&["diff", HARBOUR, "-"], blocks);
    assert_eq!((compared.code, compared.said().as_str()), (Some(0), ""), "{}", compared.err);
    check_text("diff-compressed.txt", &compared.out);
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        "demo",
        "frames",
        "render",
        "trace",
        "stats",
        "archive",
        "compress",
        "expand",
        "replay",
        "audit",
        "export",
        "guard",
        "diff",
        "checkpoint",
        "observe",
        "record",
        "sessions",
        "formats",
        "completions",
        "man",
    ] {
        let help = support::out(&[command, "--help"]);
        assert!(help.contains("Example: afterimage "), "{help}");
        check(&format!("help-{command}.txt"), &[command, "--help"]);
    }
    check("help.txt", &["--help"]);
    check("formats.txt", &["formats"]);
    check("formats.jsonl", &["formats", "--json"]);
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(support::out(&["completions", shell]).contains("afterimage"));
    }
    assert!(support::out(&["man"]).contains(".TH afterimage 1"));
    for command in ["trace", "archive", "compress", "expand", "replay", "diff"] {
        let page = support::out(&["man", command]);
        assert!(page.contains(&format!(".TH afterimage-{command} 1")));
    }
}

const TRAFFIC: &str = "crates/cli/tests/data/traffic.json";

#[test]
fn requests_are_listed_printed_compared_and_searched() {
    check("requests.txt", &["requests", TRAFFIC]);
    check("requests.jsonl", &["requests", "--json", "--cache", "anthropic", TRAFFIC]);
    check("requests-harbour.txt", &["requests", HARBOUR]);
    check("request.json", &["render", "--request", "3", TRAFFIC]);
    check("response.json", &["render", "--response", "3", TRAFFIC]);
    let response = support::run(&["render", "--response", "2", HARBOUR]);
    assert_eq!(response.err, "note: response 2 is what the frames of a transcript say\n");
    check_text("response-harbour.txt", &response.out);
    check("response-harbour.json", &["render", "--response", "2", "--json", HARBOUR]);
    let numbered = |number: u32| format!("{TRAFFIC}@{number}");
    let (was, is) = (numbered(2), numbered(3));
    check("diff-requests.txt", &["diff", &was, &is]);
    check("diff-requests.json", &["diff", "--json", &was, &is]);
    check("trace-request.txt", &["trace", "--request", "3", "--text", "tide", TRAFFIC]);
    check(
        "trace-request.json",
        &["trace", "--request", "3", "--text", "Tuesday", "--json", TRAFFIC],
    );
}

const GUARDED: &str = "crates/cli/tests/data/guarded.json";

#[test]
fn the_guard_says_what_breaks_each_cache() {
    check("guard.txt", &["guard", GUARDED]);
    check("guard.jsonl", &["guard", "--json", GUARDED]);
    check("guard-unknown.txt", &["guard", TRAFFIC]);
    let excess = support::run(&["guard", "--max-loss", "0.005", GUARDED]);
    assert_eq!(excess.code, Some(1));
    check_text("guard-excess.txt", &format!("{}\n{}", excess.out, excess.err));
    assert_eq!(support::run(&["guard", "--max-loss", "1", GUARDED]).code, Some(0));
    for (amount, says) in [("-1", "\"-1\""), ("much", "\"much\"")] {
        let refused = support::run(&["guard", &format!("--max-loss={amount}"), GUARDED]);
        let expected = format!("expected an amount of money for `--max-loss`, found {says}");
        assert!(refused.code == Some(2) && refused.err.contains(&expected), "{}", refused.err);
    }
}

#[test]
fn the_guard_takes_rules_of_ones_own_and_says_what_is_wrong_with_them() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("rules.toml");
    let path = file.to_str().unwrap();
    let rules = "date = \"2026-11-23\"\n[[provider]]\nname = \"Harbour\"\nsource = \"x\"\n\
        apis = [\"messages\"]\norder = [\"tools\", \"system\", \"messages\"]\n\
        breakpoints = \"marks\"\nmost = 4\nlook_back = 20\nwrite = 1\n\
        [[provider.family]]\nnames = [\"claude-opus-5\"]\nminimum = 5000\n\
        documented = [\"minimum\"]\n";
    std::fs::write(&file, rules).unwrap();
    let lines = support::json_lines(&["guard", "--json", "--rules", path, GUARDED]);
    let reads = lines.iter().map(|line| line["forecast"]["read"].as_u64());
    assert_eq!(reads.take(5).collect::<Vec<_>>(), [Some(0); 5]);
    assert_eq!(lines[5]["noForecast"], "unknownModel");
    std::fs::write(&file, rules.replace("minimum = 5000", "minimum = \"many\"")).unwrap();
    let refused = support::run(&["guard", "--rules", path, GUARDED]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("not a table of rules of caches"), "{}", refused.err);
    let followed = support::run(&["guard", "--follow", "crates/cli/tests/data"]);
    assert_eq!(followed.code, Some(2));
    assert!(followed.err.contains("expected a file to follow"), "{}", followed.err);
    let told = support::run(&["guard", HARBOUR]);
    assert_eq!(told.code, Some(0));
    assert!(told.err.contains("worked out from a transcript"), "{}", told.err);
}

const SPANS: &str = "crates/cli/tests/data/spans.jsonl";

#[test]
fn spans_are_requests_and_requests_are_written_as_spans() {
    check("requests-otlp.txt", &["requests", SPANS]);
    check("requests-otlp.jsonl", &["requests", "--json", SPANS]);
    check("stats-otlp.txt", &["stats", SPANS]);
    check("request-otlp.json", &["render", "--request", "4", SPANS]);
    let written = support::run(&["export", "--otlp", TRAFFIC]);
    assert_eq!(
        written.err,
        "note: 3 requests and 0 calls of tools in 1 session, 5,847 bytes, by the conventions 1.41.0\n\
         note: 3 requests without a time in the source: `afterimage.time` says what stands in its \
         place\n"
    );
    check_text("export-otlp.json", &written.out);
    let lines = support::run(&["export", "--otlp", "--lines", HARBOUR]);
    let said = lines.err.replace(',', "");
    assert_eq!(
        said,
        format!(
            "note: 7 requests and 8 calls of tools in 1 session {} bytes by the conventions 1.41.0\n",
            lines.out.len()
        )
    );
    check_text("export-otlp-harbour.jsonl", &lines.out);
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("spans.json");
    std::fs::write(&file, &written.out).unwrap();
    let again = support::run(&["export", "--otlp", file.to_str().unwrap()]);
    // What it writes of what it wrote is the same, but for where it comes from.
    let said = |text: &str| -> Vec<String> {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let spans = &document["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let attributes = spans.as_array().unwrap().iter().flat_map(|span| {
            span["attributes"].as_array().unwrap().iter().map(ToString::to_string)
        });
        attributes.filter(|text| !text.contains("afterimage.format")).collect()
    };
    assert_eq!(said(&again.out), said(&written.out));
    let missing = support::run(&["export", "--otlp", "--session", "nobody", TRAFFIC]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.starts_with("error: there is no session \"nobody\""), "{}", missing.err);
    assert_eq!(support::run(&["export", TRAFFIC]).code, Some(2));
}

#[test]
fn a_request_that_was_worked_out_says_so_once() {
    let run = support::run(&["render", "--request", "2", HARBOUR]);
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.err,
        "note: request 2 is reconstructed from a transcript, without the tools and the parameters\n"
    );
    let body: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((body["messages"].as_array().unwrap().len(), body.get("tools")), (7, None));
    for (args, code) in [
        (&["render", "--request", "0", HARBOUR][..], 2),
        (&["render", "--request", "99", HARBOUR], 2),
        (&["render", "--response", "99", HARBOUR], 2),
        (&["trace", "--request", "1", "--text", "no such words", HARBOUR], 1),
        (&["requests", "--session", "nobody", HARBOUR], 2),
        (&["render", "--request", "1", HARBOUR, CHAT], 2),
    ] {
        assert_eq!(support::run(args).code, Some(code), "{args:?}");
    }
}
