//! The rows of a recording, in a pipe and where nobody writes it any more.

use std::{path::Path, time::Duration};

use afterimage::record::{End, RecordingWriter, RequestBody, ResponseHead, Start};

use crate::support::{afterimage, run};

const REASON: &str =
    "request unread: the body is longer than what is stored of it; failed: status 413";

/// A session, another one, and a request that is refused; the last answer is stored in part.
fn recording(folder: &Path) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    let answer =
        "{\"id\":\"r\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Yes\"}}]}";
    for (text, status, more, is_stored) in [
        ("one", 200, 0, true),
        ("two", 200, 0, true),
        ("refused", 413, 0, false),
        ("one", 200, 70_000_000, true),
    ] {
        let start = Start { path: "/chat/completions".to_owned(), ..Start::now("POST", "openai") };
        let id = writer.start(&start).unwrap();
        let body = format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}"
        );
        let whole = RequestBody::whole(body.as_bytes());
        let total = if is_stored { whole.total } else { whole.total + 70_000_000 };
        writer.request(id, "openai", RequestBody { total, ..whole }).unwrap();
        writer.response(id, &ResponseHead { status, after_ms: 1, headers: Vec::new() }).unwrap();
        let answer = if more > 0 { &answer[..30] } else { answer };
        writer.part(id, answer.as_bytes()).unwrap();
        let stored = answer.len() as u64;
        let end = End { after_ms: 2, bytes: stored + more, stored, cut: None };
        writer.end(id, &end).unwrap();
    }
}

#[test]
fn in_a_pipe_a_row_is_whole_unless_columns_asks_for_less() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    recording(&folder);
    let path = folder.to_str().unwrap();
    let shown = run(&["requests", path]);
    assert!(shown.out.contains(REASON), "{}", shown.out);
    for (columns, is_whole) in [("60", false), ("200", true)] {
        let out = afterimage(&["requests", path]).env("COLUMNS", columns).output().unwrap();
        let out = String::from_utf8(out.stdout).unwrap();
        assert_eq!(out.contains(REASON), is_whole, "{out}");
    }
}

#[test]
fn a_recording_that_nobody_writes_is_followed_to_its_end_and_in_order() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    recording(&folder);
    let path = folder.to_str().unwrap();
    for command in ["requests", "guard"] {
        // It would wait for ever where somebody might write.
        let followed = afterimage(&[command, "--follow", "--json", path])
            .timeout(Duration::from_secs(120))
            .output()
            .unwrap();
        assert_eq!(followed.status.code(), Some(0), "{command}");
        let out = String::from_utf8(followed.stdout).unwrap();
        let lines =
            out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let numbers: Vec<u64> = lines.filter_map(|line| line["request"].as_u64()).collect();
        let expected: &[u64] = if command == "guard" { &[1, 2, 4] } else { &[1, 2, 3, 4] };
        assert_eq!(numbers, expected, "{command}");
    }
}

#[test]
fn a_cut_answer_is_printed_with_a_word_and_a_status() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    recording(&folder);
    let path = folder.to_str().unwrap();
    let whole = run(&["render", "--response", "1", path]);
    assert_eq!((whole.code, whole.err.as_str()), (Some(0), ""));
    let cut = run(&["render", "--response", "4", path]);
    assert_eq!((cut.code, cut.out.len()), (Some(1), 30));
    assert!(cut.err.contains("response 4 is cut, its end is missing"), "{}", cut.err);
    let unread = run(&["render", "--request", "3", path]);
    assert_eq!((unread.code, unread.out.as_str()), (Some(2), ""));
    assert!(unread.err.contains("the body of request 3 is not known"), "{}", unread.err);
}

/// A request that is packed and no JSON, answers of three bytes, without a body, and in a coding that
/// they are not of, and a request that breaks off.
fn odd_recording(folder: &Path) -> Vec<u8> {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    // A block of zstd that is stored, with the bytes 0xff, 0x00, 0xfe.
    let packed =
        [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, 0xff, 0x00, 0xfe].as_slice();
    let zstd = vec![("content-encoding".to_owned(), "zstd".to_owned())];
    let gzip = vec![("content-encoding".to_owned(), "gzip".to_owned())];
    let body = b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Open?\"}]}";
    let half = RequestBody { bytes: b"{\"mod", total: 90, ended: false };
    for (sent, request, text, status, encoding) in [
        (RequestBody::whole(packed), zstd, "abc", 200, Vec::new()),
        (RequestBody::whole(body), Vec::new(), "", 204, Vec::new()),
        (RequestBody::whole(body), Vec::new(), "not gzip", 200, gzip),
        (half, Vec::new(), "{}", 413, Vec::new()),
    ] {
        let path = "/chat/completions".to_owned();
        let start = Start { path, headers: request, ..Start::now("POST", "openai") };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", sent).unwrap();
        writer.response(id, &ResponseHead { status, after_ms: 1, headers: encoding }).unwrap();
        if !text.is_empty() {
            writer.part(id, text.as_bytes()).unwrap();
        }
        let bytes = text.len() as u64;
        writer.end(id, &End { after_ms: 2, bytes, stored: bytes, cut: None }).unwrap();
    }
    body.to_vec()
}

#[test]
fn each_stored_body_can_be_printed_whatever_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let body = odd_recording(&folder);
    let path = folder.to_str().unwrap();
    let raw = |side: &str, number: &str| {
        let out = afterimage(&["render", side, number, "--raw", path]).output().unwrap();
        (out.status.code(), out.stdout, String::from_utf8(out.stderr).unwrap())
    };
    let unread = run(&["render", "--request", "1", path]);
    assert_eq!((unread.code, unread.out.as_str()), (Some(2), ""));
    assert!(
        unread.err.contains("`afterimage render --request 1 --raw FILE` prints the body"),
        "{}",
        unread.err
    );
    let quiet = String::new();
    assert_eq!(raw("--request", "1"), (Some(0), vec![0xff, 0x00, 0xfe], quiet.clone()));
    assert_eq!(raw("--request", "2"), (Some(0), body, quiet.clone()));
    assert_eq!(raw("--response", "1"), (Some(0), b"abc".to_vec(), quiet.clone()));
    assert_eq!(raw("--response", "2"), (Some(0), Vec::new(), quiet));

    let undecoded = run(&["render", "--response", "3", path]);
    let hint = "`afterimage render --response 3 --raw FILE` prints the body";
    assert!(undecoded.err.contains(hint), "{}", undecoded.err);
    // Of nothing that is stored nothing can be printed.
    let empty = run(&["render", "--response", "2", path]);
    let said = "error: request 2 has no response: it failed, an answer without a body\n";
    assert!(empty.err.starts_with(said) && !empty.err.contains("--raw"), "{}", empty.err);
    let (code, bytes, said) = raw("--response", "3");
    assert_eq!((code, bytes.as_slice()), (Some(0), b"not gzip".as_slice()));
    assert!(said.contains("response 3 is printed as it was sent, not unpacked: "), "{said}");
    let (code, bytes, said) = raw("--request", "4");
    assert_eq!((code, bytes.as_slice()), (Some(1), b"{\"mod".as_slice()));
    assert!(said.contains("request 4 is cut, its end is missing: the request broke off"), "{said}");

    let listed = run(&["requests", path]).out;
    assert!(listed.contains("failed: the response is no JSON"), "{listed}");
    assert!(listed.contains("failed: an answer without a body"), "{listed}");
    for refused in [
        &["render", "--raw", path][..],
        &["render", "--request", "1", "--raw", "--json", path],
        &["render", "--request", "1", "--raw", "--redact", path],
        &["render", "--request", "1", "--raw", "crates/cli/tests/data/traffic.json"],
    ] {
        assert_eq!(run(refused).code, Some(2), "{refused:?}");
    }
}

/// Two requests of one conversation with these tools, answered by a stream with these last bytes;
/// the client went away behind them.
fn streamed_recording(folder: &Path, tools: [&str; 2], last: [&str; 2]) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    let mut messages = "{\"role\":\"user\",\"content\":\"Open?\"}".to_owned();
    for (tools, last) in tools.into_iter().zip(last) {
        let start = Start { path: "/chat/completions".to_owned(), ..Start::now("POST", "openai") };
        let id = writer.start(&start).unwrap();
        let body = format!("{{\"model\":\"m\",\"tools\":[{tools}],\"messages\":[{messages}]}}");
        writer.request(id, "openai", RequestBody::whole(body.as_bytes())).unwrap();
        writer.response(id, &ResponseHead { status: 200, after_ms: 1, headers: vec![] }).unwrap();
        let delta = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes\"}}]}";
        let answer = format!("data: {delta}\n\n{last}");
        writer.part(id, answer.as_bytes()).unwrap();
        let bytes = answer.len() as u64;
        let cut = Some("the client went away".to_owned());
        writer.end(id, &End { after_ms: 2, bytes, stored: bytes, cut }).unwrap();
        messages.push_str(
            ",{\"role\":\"assistant\",\"content\":\"Yes\"},{\"role\":\"user\",\"content\":\"On?\"}",
        );
    }
}

#[test]
fn a_stream_is_whole_with_its_last_event_and_else_it_is_said_who_ended_it() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    streamed_recording(&folder, ["", ""], ["data: [DONE]\n\n", ""]);
    let path = folder.to_str().unwrap();
    let whole = run(&["render", "--response", "1", "--raw", path]);
    assert_eq!((whole.code, whole.err.as_str()), (Some(0), ""));
    assert!(whole.out.ends_with("[DONE]\n\n"), "{}", whole.out);
    let cut = run(&["render", "--response", "2", "--raw", path]);
    assert_eq!(cut.code, Some(1));
    let said = "response 2 is cut, its end is missing: the client went away";
    assert!(cut.err.contains(said), "{}", cut.err);
    let listed = run(&["requests", path]).out;
    assert!(listed.contains("failed: broken off: the client went away"), "{listed}");
}

#[test]
fn the_tool_that_is_gone_owns_the_difference() {
    let tool = |name: &str| {
        format!(
            "{{\"type\":\"function\",\"function\":{{\"name\":\"{name}\",\"parameters\":{{}}}}}}"
        )
    };
    let list = |names: &[&str]| names.iter().map(|name| tool(name)).collect::<Vec<_>>().join(",");
    let cases: [(&[&str], &[&str], &str); 3] = [
        (&["tide", "berth"], &["tide"], "berth"),
        (&["tide", "berth"], &[], "tide"),
        (&["tide", "berth", "lamp"], &["tide", "lamp"], "berth"),
    ];
    for (before, after, gone) in cases {
        let (before, after) = (list(before), list(after));
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("recording");
        streamed_recording(&folder, [&before, &after], ["data: [DONE]\n\n"; 2]);
        let path = folder.to_str().unwrap();
        let paths = [1, 2].map(|number| format!("{path}@{number}"));
        let compared = run(&["diff", &paths[0], &paths[1]]).out;
        assert!(compared.contains(&format!("the tool {gone}")), "{compared}");
        let listed = run(&["requests", path]).out;
        assert!(listed.contains(&format!("tool:{gone} is gone; ")), "{listed}");
        let json = run(&["requests", "--json", path]).out;
        let second: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
        let owner = &second["differs"]["at"]["owner"];
        assert_eq!(*owner, serde_json::json!({"recorded": format!("tool:{gone}")}));
    }
}

#[test]
fn where_requests_come_from_is_said_of_those_that_come_from_there() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("session.jsonl");
    let record = |kind: &str, members: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-29T10:00:00Z\",{members}}}\n"
        )
    };
    let answer = |id: &str, of: &str| {
        let message = format!(
            r#"{{"role":"assistant","id":"{id}","model":"m","content":[{{"type":"text","text":"Six."}}]}}"#
        );
        record("assistant", &format!(r#""uuid":"{id}",{of}"message":{message}"#))
    };
    let said = |text: &str| {
        let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
        record("user", &format!(r#""uuid":"{text}","message":{message}"#))
    };
    let (shape, message) = (
        "3a8a4c8bdcd5cd3ee19531e0dd1fc1da531aa62123860ecdff1ea5e571b2c27e",
        "9b299320381aba5fd7e6bcece1d4022c030b42fd8f73f86fde6b142c937cddab",
    );
    let logged = [
        said("How deep?"),
        record(
            "api-request-shape",
            &format!(
                r#""shapeHash":"{shape}","shape":{{"system":[{{"type":"text","text":"Guide ships."}}],"tools":[]}}"#
            ),
        ),
        record(
            "api-request-blob",
            &format!(
                r#""hash":"{message}","message":{{"role":"user","content":[{{"type":"text","text":"How deep?"}}]}}"#
            ),
        ),
        record(
            "api-request",
            &format!(
                r#""id":"r1","keep":0,"tail":["{message}"],"shapeHash":"{shape}","params":{{"model":"m"}}"#
            ),
        ),
        answer("1", r#""requestRef":"r1","#),
    ];
    let later = ["And now?", "And then?"].map(|text| said(text) + &answer(text, ""));
    let listed = |text: String| {
        std::fs::write(&path, text).unwrap();
        run(&["requests", path.to_str().unwrap()]).out
    };
    let out = listed(logged.concat());
    assert!(out.contains(" as the client logged it") && !out.contains("request 1"), "{out}");
    let out = listed(logged.concat() + &later.concat());
    assert!(out.contains("request 1: as the client logged it"), "{out}");
    assert!(out.contains("requests 2–3: reconstructed"), "{out}");
}
