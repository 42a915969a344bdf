//! What bad input gets: a decided exit code, one readable block on standard error, no panic.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use support::{run, run_with};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const TRACE: [&str; 3] = ["trace", "--text", "x"];

/// Runs every command that reads on `input` and asserts that each refuses it with `expected`.
#[track_caller]
fn refused(input: impl Into<Vec<u8>>, expected: &str) {
    let input = input.into();
    for command in [&["frames"][..], &["render"], &["stats"], &TRACE, &["render", "--json"]] {
        let run = run_with(&[command, &["-"]].concat(), input.clone());
        assert_eq!(run.code, Some(2), "{command:?}");
        assert_eq!(run.err.trim_end(), expected.trim(), "{command:?}");
        assert_eq!(run.out, "", "{command:?}");
    }
}

#[test]
fn an_empty_input_is_refused() {
    for input in ["", "\n", "  \n\n\t\n"] {
        refused(
            input,
            "error: the input is empty
  file    standard input
  hint    `afterimage formats` lists what can be read, `--input-format NAME` overrules",
        );
    }
}

#[test]
fn a_binary_file_is_refused_with_its_place() {
    refused(
        [&b"\x7fELF\x02\x01\x01\0\0\0"[..], &[0xff; 300], b"\n\x80\n"].concat(),
        "error: not JSON: expected value
  file    standard input
  line    1
  column  1
  hint    a transcript is a JSON document, or JSON by line",
    );
}

#[test]
fn invalid_utf8_in_a_document_is_refused_and_in_a_line_is_reported() {
    let run = run_with(&["stats", "-"], &b"[{\"role\": \"user\", \"content\": \"a\xffb\"}]"[..]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("\n  line    1\n  column  "), "{}", run.err);

    let lines = b"{\"role\":\"user\",\"content\":\"one\"}\n{\"role\":\"user\",\"content\":\"t\xffo\"}\n{\"role\":\"user\",\"content\":\"three\"}\n";
    let run = run_with(&["stats", "--json", "-"], &lines[..]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.starts_with("note: 1 record was not understood, at line 2: "), "{}", run.err);
    let stats: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&stats["frames"], &stats["unknownRecords"]), (&3.into(), &1.into()));
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character_with_a_note_and_refuses_no_document() {
    let document = r#"[{"role":"user","content":"cut: \ud83d"},{"role":"assistant","content":"\ude00 \ud83d\ude00"}]"#;
    let lines = r#"{"role":"user","content":"cut: \ud83d"}
{"role":"assistant","content":"\ude00 \ud83d\ude00"}
"#;
    let note = "note: 2 escapes are half of a surrogate pair, read as U+FFFD\n";
    for input in [document, lines] {
        let run = run_with(&["render", "--format", "plain", "-"], input);
        assert_eq!(run.out, "cut: \u{fffd}\n\n\u{fffd} \u{1f600}\n");
        assert_eq!((run.code, run.said().as_str()), (Some(0), note));
        for command in [&["stats"][..], &["frames"], &TRACE, &["compress", "--budget", "500"]] {
            let run = run_with(&[command, &["-"]].concat(), input);
            assert!(run.err.contains(note), "{command:?}: {}", run.err);
        }
    }
    let one = run_with(&["stats", "-"], r#"[{"role":"user","content":"\ud83d"}]"#);
    assert_eq!(one.err, "note: 1 escape is half of a surrogate pair, read as U+FFFD\n");
}

#[test]
fn an_escaped_nul_refuses_no_document() {
    let call = r#"{"id":"c\u0000","type":"function","function":{"name":"f\u0000","arguments":"{\"a\\u0000\":\"\\u0000\"}"}}"#;
    let input = format!(
        r#"[{{"role":"user","content":"a\u0000b"}},{{"role":"assistant","content":"c","tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"c\u0000","content":"\u0000"}}]"#
    );
    for command in [
        &["stats"][..],
        &["frames"],
        &["render", "--as", "messages"],
        &["compress", "--budget", "500"],
        &["compress", "--budget", "500", "--as", "openai"],
        &["compress", "--budget", "500", "--as", "anthropic"],
        &["replay", "--budget", "500"],
    ] {
        let run = run_with(&[command, &["-"]].concat(), input.as_str());
        assert_eq!((run.code, run.said().as_str()), (Some(0), ""), "{command:?}");
        assert!(!run.out.is_empty());
    }
}

#[test]
fn nesting_over_128_is_refused() {
    let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
    let run = run_with(&["render", "-"], deep);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("error: nesting deeper than 128 levels\n"), "{}", run.err);
}

/// Runs the program on what `write` puts into its standard input once it has started.
fn run_on(args: &[&str], write: impl FnOnce(&mut dyn Write) + Send) -> support::Run {
    let mut program = Command::new(env!("CARGO_BIN_EXE_afterimage"))
        .current_dir(support::root())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || write(&mut input));
        program.wait_with_output().unwrap()
    });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    support::Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_gigabyte_on_one_line_is_refused_at_256_mib() {
    let run = run_on(&["stats", "-"], |input| {
        let some = [b'x'; 1 << 14];
        // A gigabyte. The program stops reading before its end: what is left finds no reader.
        for _ in 0..(1 << 30) / some.len() {
            if input.write_all(&some).is_err() {
                return;
            }
        }
    });
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.starts_with("error: a line of more than 256 MiB; "), "{}", run.err);
}

#[test]
fn a_file_that_is_gone_when_its_turn_comes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brief.json");
    let name = path.to_str().unwrap();
    let run = run_with(&["stats", "--json", "-", name, CHAT], "[]");
    assert_eq!(run.code, Some(2));
    let error =
        format!("error: cannot open the file: no such file or directory\n  file    {name}\n");
    assert!(run.err.ends_with(&error), "{}", run.err);
    assert_eq!(run.out.lines().count(), 2);
}

#[test]
fn a_document_of_another_kind_is_refused_with_what_was_found() {
    let run = run_with(&["stats", "-"], r#"{"recipe": "soup", "servings": 4}"#);
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("found an object with the keys \"recipe\", \"servings\"\n"),
        "{}",
        run.err
    );
    assert!(run.err.contains("\n  hint    `afterimage formats` lists"), "{}", run.err);
}

#[test]
fn a_missing_file_and_a_directory_are_refused_and_the_other_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.jsonl");
    let (directory, missing) = (directory.path().to_str().unwrap(), missing.to_str().unwrap());
    let run = run(&["stats", "--json", missing, directory, CHAT]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.err,
        format!(
            "error: cannot open the file: no such file or directory
  file    {missing}
error: there is no transcript in the folder
  file    {directory}
"
        )
    );
    assert_eq!(run.out.lines().count(), 1);
}

#[test]
fn files_of_other_kinds_are_read_or_refused_and_never_more_than_that() {
    let files = support::files_of(&["E-state", "F-json-robustness", "G-delta-md", "I-spacemolt"]);
    for command in [&["frames"][..], &["render"], &["stats"], &TRACE] {
        for some in files.chunks(100) {
            let paths: Vec<&str> = some.iter().map(|path| path.to_str().unwrap()).collect();
            // `run` fails where anything panicked.
            let run = run(&[command, &paths].concat());
            assert!(matches!(run.code, Some(0..=2)), "{command:?}: {}", run.err);
        }
    }
}

#[test]
fn frames_that_cannot_be_applied_are_refused_with_frame_and_op() {
    let run = run_with(
        &["stats", "-"],
        r#"{"session":"a","sequence":3,"source":"user","events":[],"deltas":[{"type":"removeFacet","id":"ghost"}]}"#,
    );
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.err,
        "error: the facet does not exist
  file    standard input
  frame   3
  op      0
  facet   ghost
"
    );
}

#[test]
fn no_messages_and_null_content_are_read() {
    for input in ["[]", r#"{"messages": []}"#] {
        let run = run_with(&["render", "-"], input);
        assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
        assert_eq!(run.err, "note: there is no message in it (openai-chat was recognised)\n");
        assert_eq!(run_with(&["stats", "--json", "-"], input).code, Some(0));
        assert_eq!(run_with(&["trace", "--text", "x", "--json", "-"], input).out, "[]\n");
    }
    let input = r#"[{"role": "assistant", "content": null}, {"role": "user"}]"#;
    let run = run_with(&["stats", "--json", "-"], input);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.contains(r#""messages":2"#));
}

#[test]
fn a_range_that_runs_backwards_or_lies_outside_is_refused() {
    let check = |range: &[&str], expected: &str| {
        for what in ["text", "messages", "snapshots"] {
            let run = run(&[&["render", "--as", what, SESSIONS][..], range].concat());
            assert_eq!(run.code, Some(2), "{range:?}");
            assert!(run.err.starts_with(&format!("error: {expected}\n")), "{}", run.err);
        }
    };
    check(&["--from", "3", "--to", "1"], "the range runs from frame 3 back to 1");
    check(&["--from", "90"], "no frame is in the range from 90: the frames are 4 to 9");
    check(
        &["--from", "0", "--to", "2"],
        "no frame is in the range from 0 to 2: the frames begin at 4",
    );

    let run = run(&["render", SESSIONS, "--from", "9", "--to", "90"]);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.said(), "note: the last frame is 9, before 90\n");
}

#[test]
fn a_place_that_is_not_there_is_refused_and_a_text_that_is_not_there_is_no_hit() {
    let check = |args: &[&str], expected: &str| {
        let run = run(&[&["trace", SESSIONS][..], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}");
        assert_eq!(run.err, format!("error: {expected}\n  file    {SESSIONS}\n"));
    };
    check(&["--at", "9:0"], "session ash has 4 messages; there is no message 9");
    check(&["--at", "2:500"], "message 2 has 38 bytes; there is no byte 500 in it");
    for target in [["--at", "0:0"], ["--text", "a"], ["--facet", "event-1.0"]] {
        let run = run(&[&["trace", SESSIONS, "--session", "oak"][..], &target].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
        let hint = "  hint    the sessions are ash, birch\n";
        assert_eq!(
            run.err,
            format!("error: there is no session \"oak\"\n  file    {SESSIONS}\n{hint}")
        );
    }

    for args in [["--text", "unicorn"], ["--facet", "unicorn"]] {
        let run = run(&[&["trace", "--json", SESSIONS][..], &args].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(1), "[]\n"));
        assert_eq!(run.err, "note: no hit\n");
    }
}

#[test]
fn standard_input_is_read_once() {
    for command in [&["stats"][..], &["frames"], &["compress", "--budget", "500"], &TRACE] {
        let run = run_with(&[command, &["-", CHAT, "-"]].concat(), "[]");
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command:?}");
        assert_eq!(run.err, "error: only one of the files can be `-`, standard input\n");
    }
}

#[test]
fn a_file_that_is_not_read_outranks_every_other_answer() {
    for (command, code) in [
        (&["trace", "--text", "unicorn"][..], 1),
        (&["trace", "--text", "a"], 0),
        (&["compress", "--budget", "1"], 3),
        (&["stats"], 0),
    ] {
        let run = |files: &[&str]| run(&[command, files].concat()).code;
        assert_eq!(run(&[CHAT]), Some(code), "{command:?}");
        assert_eq!(run(&[CHAT, "missing"]), Some(2), "{command:?}");
        assert_eq!(run(&["missing", CHAT]), Some(2), "{command:?}");
    }
    let bad = "crates/cli/tests/data/checkpoints/bad-delta.md";
    assert_eq!(run(&["checkpoint", "lint", bad]).code, Some(1));
    assert_eq!(run(&["checkpoint", "lint", bad, "missing"]).code, Some(2));
    assert_eq!(run(&["checkpoint", "lint", "missing", bad]).code, Some(2));
}

#[test]
fn a_session_is_looked_for_in_every_file() {
    for target in [["--at", "0:0"], ["--text", "a"]] {
        let found = run(&[&["trace", "--session", "birch", CHAT, SESSIONS][..], &target].concat());
        assert_eq!((found.code, found.said().as_str()), (Some(0), ""), "{target:?}");
        assert!(found.out.contains("session birch"), "{}", found.out);
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for args in [
        &["stats", "--input-format", "floppy", CHAT][..],
        &["stats"],
        &["stats", "--input-format", "pi"],
        &["trace", CHAT],
        &["trace", CHAT, "--text", "a", "--facet", "b"],
        &["trace", CHAT, "--text", ""],
        &["trace", CHAT, "--at", "7"],
        &["render", CHAT, "--from", "-1"],
        &["render", CHAT, "--tokenizer", "o300k"],
        &["unknown"],
        &[],
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert_eq!(run.out, "", "{args:?}");
        assert!(!run.err.is_empty());
    }
    let floppy = run(&["stats", "--input-format", "floppy", CHAT]);
    assert!(floppy.err.contains("openai-chat"), "{}", floppy.err);
    let list = run(&["stats", "--input-format", "list"]);
    assert_eq!((list.code, list.out.as_str()), (Some(2), ""));
    assert!(list.err.contains("the command `afterimage formats` lists them"), "{}", list.err);
}

#[test]
fn colour_is_off_in_a_pipe_and_with_no_color() {
    for args in [&["stats", CHAT][..], &["render", CHAT], &["demo"], &["frames", "--table", CHAT]] {
        assert!(!support::out(args).contains('\u{1b}'), "{args:?}");
    }
    let output = support::afterimage(&["stats", CHAT]).env("NO_COLOR", "1").output().unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

/// The shell command, with the program as `$0`.
#[cfg(unix)]
fn shell(script: &str) -> std::process::Output {
    Command::new("sh")
        .current_dir(support::root())
        .args(["-c", script, env!("CARGO_BIN_EXE_afterimage")])
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.jsonl");
    let line = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "word ".repeat(2_000));
    fs::write(&path, line.repeat(200)).unwrap();
    let path = path.to_str().unwrap();
    for command in [
        "render",
        "render --json",
        "render --as snapshots",
        "frames",
        "frames --table",
        "trace --text word",
        "trace --json --text word",
        "stats --json",
    ] {
        // The status of the program is what the group around it says on standard error.
        let script = format!(
            "{{ \"$0\" {command} '{path}'; echo \"exit $?\" >&2; }} | head -c 1 >/dev/null"
        );
        let output = shell(&script);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "exit 0\n", "{command}");
    }
    for command in ["completions bash", "man", "demo", "--help"] {
        let output = shell(&format!("\"$0\" {command} | true"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_standard_error_is_no_reason_to_fail() {
    let output = shell("printf '[]' | \"$0\" stats --json - 2>&-");
    assert!(output.status.success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let output = shell("\"$0\" demo >/dev/full");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.starts_with("error: cannot write to standard output: "), "{error}");
}

#[test]
fn declared_counts_that_exceed_64_bits_together_stay_at_the_largest_number() {
    let frame = |sequence: u64, chunks: &str, total: u64| {
        format!(
            r#"{{"session":"a","sequence":{sequence},"source":"user","events":[],"deltas":[],"renderedSnapshot":{{"chunks":[{chunks}],"totalContent":"x","totalTokens":{total},"capturedAt":0,"madeBy":{{"viewer":"agent","format":"xml","renderer":1,"tokenizer":"o200k_base"}}}}}}
"#
        )
    };
    let largest = format!(
        r#"{{"content":"x","tokens":{},"facetIds":["f"],"type":"event","role":"user"}}"#,
        u64::MAX
    );
    let input = frame(0, &largest, u64::MAX) + &frame(1, &largest, u64::MAX);
    let run = run_with(&["stats", "--json", "-"], input.clone());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let stats: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(stats["frames"], 2);
    for sum in [
        &stats["tokens"],
        &stats["byRole"]["user"]["tokens"],
        &stats["byType"]["event"]["tokens"],
        &stats["byFacet"][0]["tokens"],
        &stats["repeatedTextTokens"],
    ] {
        assert_eq!(sum, u64::MAX);
    }
    for command in [
        &["stats"][..],
        &["frames"],
        &["frames", "--table"],
        &["frames", "--capture"],
        &["render"],
        &["render", "--color", "always"],
        &["render", "--as", "snapshots"],
        &["render", "--json"],
        &TRACE,
    ] {
        let run = run_with(&[command, &["-"]].concat(), input.clone());
        assert_eq!(run.code, Some(0), "{command:?}: {}", run.err);
    }
}

/// As the published reference writes a system prompt: no facet wrote it, and it is content.
#[test]
fn a_snapshot_that_tells_its_content_wrongly_is_counted_and_noted() {
    let frame = |sequence: u64, text: &str, tokens: u64, flag: &str| {
        format!(
            r#"{{"sequence":{sequence},"source":"system","events":[],"deltas":[],"renderedSnapshot":{{"chunks":[{{"content":"{text}","tokens":{tokens},"role":"system"}}],"totalContent":"{text}","totalTokens":{tokens},"capturedAt":0{flag}}}}}"#
        )
    };
    let counted = |flag: &str| {
        let lines = [frame(0, "Be careful.", 3, flag), frame(1, "Be brief.", 3, "")].join("\n");
        let run = run_with(&["stats", "--json", "-"], lines);
        assert_eq!(run.code, Some(0));
        let stats: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(stats["unknownRecords"], 0);
        (stats["frames"].clone(), stats["tokens"].clone(), run.err)
    };
    let (frames, tokens, said) = counted("");
    assert_eq!((&frames, said.as_str()), (&2.into(), ""));
    assert_eq!(counted(",\"hasContent\":true"), (frames.clone(), tokens.clone(), said));
    let note = "note: ignored 1 inconsistency, at line 1: expected true, found false (frame 0, at /renderedSnapshot/hasContent)\n";
    assert_eq!(counted(",\"hasContent\":false"), (frames, tokens, note.to_owned()));
}
