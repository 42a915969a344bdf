//! Transcripts as agents write them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use afterimage_testkit::data::case;
use serde_json::Value;

use crate::support::run;

/// A file of these lines.
fn file(folder: &Path, name: &str, lines: &[String]) -> String {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The only file of a case, or the one with this end.
fn only(name: &str, end: &str) -> Option<String> {
    let folder = case(name)?;
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(end));
    assert_eq!(files.len(), 1, "{files:?}");
    Some(files.pop().unwrap().to_str().unwrap().to_owned())
}

fn stats(file: &str) -> Value {
    serde_json::from_str(&run(&["stats", "--json", file]).out).unwrap()
}

/// Input, output, exchanges.
fn usage(file: &str) -> (u64, u64, u64) {
    let total = &stats(file)["usage"]["total"];
    let number = |key: &str| total[key].as_u64().unwrap();
    (number("input"), number("output"), number("exchanges"))
}

fn requests(file: &str) -> Vec<Value> {
    let out = run(&["requests", "--json", file]).out;
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The last may be the sums.
    lines.filter(|line| line.get("request").is_some()).collect()
}

/// What the model reads last.
fn context(file: &str) -> String {
    run(&["render", "--format", "plain", file]).out
}

/// A record of Claude Code.
fn claude(kind: &str, id: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
    format!(
        r#"{{"type":"{kind}","sessionId":"s","uuid":"{id}","parentUuid":{parent},"timestamp":"2026-05-01T10:00:00Z",{rest}}}"#
    )
}

fn prompt(id: &str, parent: &str, text: &str) -> String {
    claude("user", id, parent, &format!(r#""message":{{"role":"user","content":"{text}"}}"#))
}

fn answer(id: &str, parent: &str, text: &str) -> String {
    let message = format!(
        r#""message":{{"id":"m{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
    );
    claude("assistant", id, parent, &message)
}

/// A call for each id, and a record with the results of all of them.
fn calls(id: &str, parent: &str, called: &[&str]) -> [String; 2] {
    let list =
        |block: fn(&str) -> String| called.iter().map(|id| block(id)).collect::<Vec<_>>().join(",");
    let asks = list(|id| {
        format!(
            r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"cat {id}"}}}}"#
        )
    });
    let gives = list(|id| {
        let text = format!("HERON-{id} ").repeat(40);
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}"#)
    });
    [
        claude(
            "assistant",
            id,
            parent,
            &format!(r#""message":{{"id":"m{id}","role":"assistant","content":[{asks}]}}"#),
        ),
        claude(
            "user",
            &format!("{id}r"),
            id,
            &format!(r#""message":{{"role":"user","content":[{gives}]}}"#),
        ),
    ]
}

fn clears(id: &str, parent: &str, called: &[&str]) -> String {
    let called = serde_json::to_string(called).unwrap();
    claude(
        "system",
        id,
        parent,
        &format!(
            r#""subtype":"microcompact_boundary","microcompactMetadata":{{"compactedToolIds":{called}}}"#
        ),
    )
}

#[test]
fn a_result_that_the_client_cleared_is_in_no_later_context() {
    let folder = tempfile::tempdir().unwrap();
    let [call, results] = calls("a", "u", &["c1", "c2"]);
    let [again, more] = calls("b", "v", &["c3"]);
    let lines = [
        prompt("u", "", "Read"),
        call,
        results,
        answer("k", "ar", "Read."),
        clears("x", "k", &["c1", "nowhere"]),
        prompt("v", "x", "On"),
        again,
        more,
        clears("y", "br", &["c2", "c3"]),
        prompt("w", "y", "Last"),
        answer("l", "w", "Done."),
    ];
    let all = file(folder.path(), "s.jsonl", &lines);
    let last = context(&all);
    assert!(!last.contains("HERON"), "{last}");
    assert_eq!(last.matches("[Old tool result content cleared]").count(), 3, "{last}");
    // A budget begins with the same context, and gives back what was there.
    let fitted = run(&["compress", "--budget", "100000", "--as", "text", &all]).out;
    assert_eq!(fitted.matches("[Old tool result content cleared]").count(), 3, "{fitted}");
    assert!(!fitted.contains("HERON"), "{fitted}");
    let expanded = run(&["expand", "--budget", "100000", "--block", "edited-2", &all]).out;
    assert!(expanded.contains("HERON-c1"), "{expanded}");
    // Each request holds what was there when it was sent.
    let sent = |number: usize| run(&["render", "--request", &number.to_string(), &all]).out;
    let held = |number: usize| {
        let text = sent(number);
        ["c1", "c2", "c3"].map(|id| text.contains(&format!("HERON-{id}")))
    };
    assert_eq!(held(2), [true, true, false]);
    assert_eq!(held(3), [false, true, false]);
    assert_eq!(held(4), [false, false, false]);
    let noted = run(&["stats", &all]);
    assert!(
        noted.err.contains("clears 1 of the results that the file does not hold"),
        "{}",
        noted.err
    );
    let whole = run(&["render", "--whole", &all]).out;
    assert!(whole.contains("HERON-c1"));
    assert!(!run(&["trace", &all, "--text", "HERON-c1"]).out.contains("summary"));
}

#[test]
fn a_clearing_on_another_branch_or_before_a_compaction_harms_no_context() {
    let folder = tempfile::tempdir().unwrap();
    let [call, results] = calls("a", "u", &["c1"]);
    let mut lines = vec![
        prompt("u", "", "Read"),
        call,
        results,
        answer("k", "ar", "Read."),
        clears("x", "k", &["c1"]),
        prompt("v", "x", "On"),
        answer("l", "v", "On."),
    ];
    let cleared = file(folder.path(), "cleared.jsonl", &lines);
    assert!(!context(&cleared).contains("HERON"));
    // The user goes back to a place before the boundary.
    lines.push(prompt("w", "k", "Else"));
    lines.push(answer("m", "w", "Else."));
    let back = file(folder.path(), "back.jsonl", &lines);
    assert!(context(&back).contains("HERON-c1"));
    let fitted = run(&["compress", "--budget", "100000", "--as", "text", &back]).out;
    assert!(fitted.contains("HERON-c1"), "{fitted}");
    lines.push(claude("system", "b", "m", r#""subtype":"compact_boundary""#));
    lines.push(claude(
        "user",
        "z",
        "b",
        r#""isCompactSummary":true,"message":{"role":"user","content":"All so far."}"#,
    ));
    lines.push(answer("n", "z", "Good."));
    let compacted = file(folder.path(), "compacted.jsonl", &lines);
    let last = context(&compacted);
    assert!(last.contains("All so far.") && !last.contains("HERON"), "{last}");
}

#[test]
fn a_cleared_result_of_the_field_is_in_no_context() {
    let Some(path) = case("14-microcompact/session.jsonl") else { return };
    let path = path.to_str().unwrap();
    let last = context(path);
    assert!(!last.contains("PELICAN") && last.contains("HERON"));
    let broken = run(&["requests", "--broken", path]).out;
    assert!(broken.contains("edited-2"), "{broken}");
}

#[test]
fn a_record_that_stands_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        prompt("u", "", "When?"),
        answer("a", "u", "At two."),
        prompt("v", "a", "And then?"),
        answer("b", "v", "At three."),
    ];
    let once = stats(&file(folder.path(), "once.jsonl", &lines));
    let each: Vec<String> = lines.iter().flat_map(|line| [line.clone(), line.clone()]).collect();
    let appended: Vec<String> = lines.iter().chain(&lines).cloned().collect();
    // The same message, with another member beside it.
    let told: Vec<String> = lines
        .iter()
        .flat_map(|line| {
            [line.clone(), line.replace(r#""sessionId""#, r#""gitBranch":"x","sessionId""#)]
        })
        .collect();
    for (name, lines) in [("each.jsonl", each), ("appended.jsonl", appended), ("told.jsonl", told)]
    {
        let path = file(folder.path(), name, &lines);
        let twice = stats(&path);
        for member in ["messages", "frames", "tokens"] {
            assert_eq!(twice[member], once[member], "{name}: {member}");
        }
        assert!(run(&["stats", &path]).out.contains("repeated record 4"), "{name}");
    }
    // Other words under one id are another message.
    let mut changed = lines.to_vec();
    changed.push(prompt("u", "", "When, please?"));
    assert_eq!(stats(&file(folder.path(), "changed.jsonl", &changed))["messages"], 5);
    if let Some(path) = case("32-duplicated-lines/each-line-twice.jsonl") {
        let found = stats(path.to_str().unwrap());
        assert_eq!(
            (&found["messages"], &found["usage"]["total"]["exchanges"]),
            (&4.into(), &2.into())
        );
    }
}

/// The user says the same twice, and the model answers the same: two messages each.
#[test]
fn equal_lines_without_an_id_are_records_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let pi = |id: &str| {
        vec![
            r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#
                .to_owned(),
            format!(
                r#"{{"type":"message",{id}"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"On"}}}}"#
            ),
        ]
    };
    let codex = vec![
        r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s"}}"#.to_owned(),
        r#"{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"On"}]}}"#.to_owned(),
    ];
    for (name, mut lines, messages) in [
        ("named", pi(r#""id":"a","parentId":null,"#), 1),
        ("unnamed", pi(""), 2),
        ("redacted", pi(r#""id":"an id","#), 2),
        ("codex", codex, 2),
    ] {
        lines.push(lines[1].clone());
        let found = stats(&file(folder.path(), &format!("{name}.jsonl"), &lines));
        assert_eq!(found["messages"], messages, "{name}");
    }
}

#[test]
fn agents_of_a_workflow_belong_to_their_session_as_file_and_as_folder() {
    let folder = tempfile::tempdir().unwrap();
    let agent = |id: &str| {
        vec![
            format!(
                r#"{{"type":"user","sessionId":"s","isSidechain":true,"agentId":"{id}","uuid":"{id}u","message":{{"role":"user","content":"Look {id}"}}}}"#
            ),
            format!(
                r#"{{"type":"assistant","sessionId":"s","isSidechain":true,"agentId":"{id}","uuid":"{id}a","message":{{"id":"m{id}","role":"assistant","content":[{{"type":"text","text":"Seen"}}],"usage":{{"input_tokens":5,"output_tokens":7}}}}}}"#
            ),
        ]
    };
    let main = file(folder.path(), "s.jsonl", &[prompt("u", "", "Go"), answer("a", "u", "Gone.")]);
    for (place, id) in [
        ("s/subagents/agent-a.jsonl", "a"),
        ("s/subagents/workflows/run-1/agent-b.jsonl", "b"),
        ("s/subagents/workflows/run-1/inner/agent-c.jsonl", "c"),
        // The session of this one is missing: it is read by itself.
        ("gone/subagents/workflows/run-2/agent-d.jsonl", "d"),
    ] {
        file(folder.path(), place, &agent(id));
    }
    assert_eq!(stats(&main)["usage"]["total"]["output"], 21);
    let listed = run(&["sessions", "--no-index", "--json", folder.path().to_str().unwrap()]).out;
    let listed: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut sessions: Vec<u64> = listed.iter().map(|of| of["sessions"].as_u64().unwrap()).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, [1, 4]);
    if let Some(path) = case("04-workflow-subagents/11111111-1111-4111-8111-111111111111.jsonl") {
        assert_eq!(stats(path.to_str().unwrap())["usage"]["total"]["output"], 453);
    }
}

#[test]
fn images_in_results_of_gemini_are_images_wherever_they_stand() {
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAASwAAAEsCAIAAAD2HxkiAAAAAElFTkSuQmCC";
    let folder = tempfile::tempdir().unwrap();
    let part = format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{PIXEL}"}}}}"#);
    let block = format!(r#"{{"type":"image","data":"{PIXEL}","mimeType":"image/png"}}"#);
    let source = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PIXEL}"}}}}"#
    );
    let said = r#"{"type":"text","text":"a plot"}"#;
    let of = |response: &str, more: &str| {
        format!(r#"{{"functionResponse":{{"id":"c","name":"plot","response":{response}{more}}}}}"#)
    };
    let results = [
        format!(r"[{},{part}]", of(r#"{"output":"a plot"}"#, "")),
        format!("[{}]", of(r#"{"output":"a plot"}"#, &format!(r#","parts":[{part}]"#))),
        format!("[{}]", of(&format!(r#"{{"output":[{block},{said}]}}"#), "")),
        format!("[{}]", of(&format!(r#"{{"content":[{source},{said}]}}"#), "")),
        of(&format!(r#"{{"result":{{"deep":{{"shot":{block},"say":"a plot"}}}}}}"#), ""),
    ];
    for result in results {
        let document = format!(
            r#"{{"sessionId":"g","projectHash":"h","messages":[{{"id":"1","type":"user","content":"Plot."}},{{"id":"2","type":"gemini","content":"","model":"gemini-3-pro","toolCalls":[{{"id":"c","name":"plot","args":{{}},"status":"success","result":{result}}}]}},{{"id":"3","type":"gemini","content":"Nice.","model":"gemini-3-pro"}}]}}"#
        );
        let path = file(folder.path(), "g.json", &[document]);
        let found = stats(&path);
        assert_eq!(found["byType"]["image"]["chunks"], 1, "{result}\n{found:#}");
        let text = context(&path);
        assert!(text.contains("a plot") && !text.contains(PIXEL), "{result}\n{text}");
    }
}

/// The lines of a session of Gemini CLI that was resumed.
fn resumed(runs: usize) -> Vec<String> {
    let header = r#"{"sessionId":"g","projectHash":"h","kind":"main"}"#;
    let begin = r#"{"id":"ctx","type":"user","content":[{"text":"<session_context>"}]}"#;
    let mut context = vec![begin.to_owned()];
    let mut lines = Vec::new();
    for run in 0..runs {
        lines.push(header.to_owned());
        lines.push(format!(r#"{{"$set":{{"messages":[{begin}]}}}}"#));
        if run > 0 {
            lines.push(r#"{"$set":{"sessionId":"g"}}"#.to_owned());
            lines.push(format!(r#"{{"$set":{{"messages":[{}]}}}}"#, context.join(",")));
        }
        let response = format!(
            r#"{{"functionResponse":{{"id":"c{run}","name":"ls","response":{{"output":"out-{run}"}}}}}}"#
        );
        let call = format!(r#"{{"functionCall":{{"id":"c{run}","name":"ls","args":{{}}}}}}"#);
        let prompt =
            format!(r#"{{"id":"u{run}","type":"user","content":[{{"text":"Prompt {run}"}}]}}"#);
        let tokens =
            r#""tokens":{"input":10,"output":2,"cached":0,"thoughts":0,"tool":0,"total":12}"#;
        let asks =
            format!(r#"{{"id":"a{run}","type":"gemini","content":"I look","model":"g",{tokens}"#);
        let gave = format!(r#"{{"id":"r{run}","type":"user","content":[{response}]}}"#);
        lines.extend([
            prompt.clone(),
            format!("{asks}}}"),
            format!(r#"{asks},"toolCalls":[{{"id":"c{run}","name":"ls","args":{{}},"status":"success","result":[{response}]}}]}}"#),
            gave.clone(),
            r#"{"$set":{"lastUpdated":"t"}}"#.to_owned(),
            format!(r#"{{"id":"d{run}","type":"gemini","content":"Done {run}","model":"g",{tokens}}}"#),
        ]);
        context.extend([
            prompt,
            format!(r#"{{"id":"a{run}","type":"gemini","content":[{{"text":"I look"}},{call}]}}"#),
            format!(r#"{{"id":"a{run}_response","type":"user","content":[{response}]}}"#),
            gave,
            format!(r#"{{"id":"d{run}","type":"gemini","content":[{{"text":"Done {run}"}}]}}"#),
        ]);
    }
    lines
}

#[test]
fn a_resumed_session_of_gemini_has_its_requests_and_results_once() {
    let folder = tempfile::tempdir().unwrap();
    for runs in 1..=3 {
        let path = file(folder.path(), "g.jsonl", &resumed(runs));
        let found = stats(&path);
        let count = |key: &str| found[key].as_u64().unwrap();
        let runs = runs as u64;
        assert_eq!((count("toolCalls"), count("toolResults")), (runs, runs), "{found:#}");
        assert_eq!(usage(&path), (20 * runs, 4 * runs, 2 * runs));
        assert_eq!(requests(&path).len() as u64, 2 * runs);
        let text = context(&path);
        assert_eq!(text.matches("out-0").count(), 1, "{text}");
    }
    if let Some(path) = only("client-gemini-cli-0.61.0", ".jsonl") {
        assert_eq!((requests(&path).len(), usage(&path).0), (6, 8_900));
    }
}

#[test]
fn a_file_of_gemini_that_begins_with_a_resume_has_calls_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let lines = resumed(2);
    let path = file(folder.path(), "g.jsonl", &lines[8..]);
    let found = stats(&path);
    assert_eq!((&found["toolCalls"], &found["toolResults"]), (&2.into(), &2.into()), "{found:#}");
    assert!(found["byType"].get("opaque").is_none(), "{found:#}");
}

#[test]
fn sessions_of_qwen_code_are_read_whole() {
    let Some(path) = only("client-qwen-code-0.24.4", ".jsonl") else { return };
    let found = stats(&path);
    assert_eq!(
        (&found["messages"], &found["toolCalls"], &found["toolResults"]),
        (&8.into(), &4.into(), &4.into())
    );
    assert_eq!(usage(&path), (8_900, 149, 6));
    let text = context(&path);
    assert!(text.contains("THK-1") && text.contains("ANS-8") && text.contains("OUT-7"), "{text}");
    assert_eq!(requests(&path)[5]["model"], "m");
}

#[test]
fn a_compression_of_qwen_code_takes_the_place_of_what_was_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let record = |id: &str, parent: &str, rest: &str| {
        format!(
            r#"{{"uuid":"{id}","parentUuid":"{parent}","sessionId":"s","provenance":"x",{rest}}}"#
        )
    };
    let said = |id: &str, parent: &str, kind: &str, role: &str, text: &str| {
        record(
            id,
            parent,
            &format!(
                r#""type":"{kind}","message":{{"role":"{role}","parts":[{{"text":"{text}"}}]}}"#
            ),
        )
    };
    let lines = [
        said("a", "", "user", "user", "First words"),
        said("b", "a", "assistant", "model", "First answer"),
        record(
            "c",
            "b",
            r#""type":"system","subtype":"chat_compression","systemPayload":{"compressedHistory":[{"role":"user","parts":[{"text":"All so far"}]},{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}}]}]}"#,
        ),
        said("d", "c", "user", "user", "Go on"),
        said("e", "d", "assistant", "model", "Gone on"),
        // Back to what was said before.
        record(
            "f",
            "b",
            r#""type":"system","subtype":"rewind","systemPayload":{"truncatedCount":2}"#,
        ),
        said("g", "f", "user", "user", "Else"),
        said("h", "g", "assistant", "model", "Other answer"),
    ];
    let compressed = context(&file(folder.path(), "q.jsonl", &lines[..5]));
    assert!(compressed.contains("All so far") && compressed.contains("Gone on"), "{compressed}");
    assert!(!compressed.contains("First words"), "{compressed}");
    let back = context(&file(folder.path(), "q.jsonl", &lines));
    assert!(back.contains("First answer") && back.contains("Other answer"), "{back}");
    assert!(!back.contains("Gone on") && !back.contains("All so far"), "{back}");
}

#[test]
fn sessions_of_cline_have_results_usage_model_and_times() {
    let Some(path) = only("client-cline-3.0.65", ".json") else { return };
    assert_eq!(usage(&path), (3_800, 68, 3));
    let listed = requests(&path);
    assert_eq!(
        (&listed[0]["model"], &listed[0]["lacks"]),
        (&"m".into(), &serde_json::json!(["tools", "parameters"]))
    );
    let hit = run(&["trace", &path, "--text", r#""result":"hello"#]);
    assert!(hit.out.contains("result-"), "{}", hit.out);
    assert!(run(&["requests", &path]).out.contains("22:35:32"));
}

#[test]
fn documents_of_opencode_and_continue_are_read_and_what_is_not_known_is_refused() {
    if let Some(path) = only("client-opencode-1.18.33", ".json") {
        let found = stats(&path);
        assert_eq!((&found["messages"], &found["toolResults"]), (&8.into(), &4.into()));
        assert_eq!(usage(&path), (9_700, 157, 6));
    }
    if let Some(path) = only("client-continue-1.5.47", ".json") {
        let found = stats(&path);
        assert_eq!((&found["messages"], &found["toolResults"]), (&8.into(), &4.into()));
        assert_eq!(usage(&path), (8_900, 149, 6));
    }
    // A document without messages in it is no trajectory.
    let folder = tempfile::tempdir().unwrap();
    let novel =
        file(folder.path(), "n.json", &[r#"{"info":{},"messages":[{"novel":1}]}"#.to_owned()]);
    let refused = run(&["stats", &novel]);
    assert_ne!(refused.code, Some(0), "{}", refused.err);
}

#[test]
fn pi_says_its_prompt_its_tools_and_what_it_took_out() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |id: &str, parent: &str, rest: &str| {
        format!(
            r#"{{"id":"{id}","parentId":"{parent}","timestamp":"2026-05-01T10:00:00Z",{rest}}}"#
        )
    };
    let message = |id: &str, parent: &str, role: &str, text: &str| {
        entry(
            id,
            parent,
            &format!(
                r#""type":"message","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}"#
            ),
        )
    };
    let system = |id: &str, parent: &str, words: &str, tools: &str| {
        entry(
            id,
            parent,
            &format!(
                r#""type":"message","message":{{"role":"system","content":"","sections":{{"a":"You are a tide clerk.","b":"{words}"}},"toolsAdded":[{tools}]}}"#
            ),
        )
    };
    let tool = |name: &str| {
        format!(r#"{{"name":"{name}","description":"d","parameters":{{"type":"object"}}}}"#)
    };
    let lines = [
        r#"{"type":"session","version":3,"id":"p","cwd":"/x"}"#.to_owned(),
        system("s", "", "Be brief.", &tool("tide")),
        message("u", "s", "user", "When?"),
        message("a", "u", "assistant", "Wrong words"),
        entry("e", "a", r#""type":"context_edit","targetId":"a","replacement":null"#),
        message("b", "e", "assistant", "At two."),
        system("t", "b", "Be long.", &tool("moon")),
        message("v", "t", "user", "And then?"),
        entry(
            "f",
            "v",
            r#""type":"context_edit","targetId":"u","replacement":{"role":"user","content":"When, said otherwise?"}"#,
        ),
        entry("g", "f", r#""type":"context_edit","targetId":"nowhere","replacement":null"#),
        message("c", "g", "assistant", "At three."),
    ];
    let path = file(folder.path(), "p.jsonl", &lines);
    let listed = requests(&path);
    let lacks: Vec<&Value> = listed.iter().map(|of| &of["lacks"]).collect();
    assert!(lacks.iter().all(|of| **of == serde_json::json!(["parameters"])), "{lacks:?}");
    let last = listed.len().to_string();
    let sent: Value =
        serde_json::from_str(&run(&["render", "--request", &last, &path]).out).unwrap();
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["tide", "moon"]);
    let text = sent["messages"].to_string();
    assert!(
        text.contains(r"You are a tide clerk.\n\nBe long.") && !text.contains("Be brief."),
        "{text}"
    );
    assert!(!text.contains("Wrong words") && text.contains("said otherwise"), "{text}");
    let tokens = listed.last().unwrap()["tokens"]["tools"].as_u64().unwrap();
    assert!(tokens > 0);
    // An archive says the same.
    let archive = folder.path().join("kept");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["archive", "--output", archive, &path]).code, Some(0));
    assert_eq!(stats(archive)["requests"], stats(&path)["requests"]);
    assert!(run(&["stats", &path]).err.contains("edits a message that the session does not hold"));
    if let Some(path) = only("client-pi-1.6.0", ".jsonl") {
        assert_eq!(requests(&path)[0]["provenance"], "logged");
        assert_eq!(requests(&path)[0]["lacks"], serde_json::json!([]));
        assert!(
            run(&["trace", &path, "--text", "coding agent harness"]).out.contains("system-0.0")
        );
    }
}

#[test]
fn kimi_says_its_prompt_its_tools_and_its_project() {
    let folder = tempfile::tempdir().unwrap();
    let session = "sessions/wd_x/session_1";
    let step = |id: &str, event: &str| {
        format!(
            r#"{{"type":"context.append_loop_event","event":{{{event},"stepUuid":"{id}"}},"time":1795818840000}}"#
        )
    };
    let bind =
        |words: &str| format!(r#"{{"type":"profile.bind","systemPrompt":"{words}","time":1}}"#);
    let said = |text: &str| {
        format!(
            r#"{{"type":"context.append_message","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}},"time":1}}"#
        )
    };
    let part = r#""type":"content.part","part":{"type":"text","text":"So."}"#;
    let lines = [
        r#"{"type":"metadata","protocol_version":"1.5"}"#.to_owned(),
        bind("You are a tide clerk."),
        said("When?"),
        r#"{"type":"llm.tools_snapshot","hash":"x","tools":[{"name":"tide","description":"d","parameters":{}}],"time":1}"#.to_owned(),
        step("1", part),
        bind("You are a moon clerk."),
        said("And now?"),
        step("2", part),
    ];
    let path = file(folder.path(), &format!("{session}/agents/main/wire.jsonl"), &lines);
    file(
        folder.path(),
        &format!("{session}/state.json"),
        &[r#"{"id":"session_1","cwd":"/w/harbour"}"#.to_owned()],
    );
    assert_eq!(requests(&path)[0]["lacks"], serde_json::json!(["parameters"]));
    let sent = run(&["render", "--request", "2", &path]).out;
    assert!(
        sent.contains(r#""name":"tide""#)
            && sent.contains("moon clerk")
            && !sent.contains("tide clerk"),
        "{sent}"
    );
    let listed = run(&["sessions", "--no-index", "--json", folder.path().to_str().unwrap()]).out;
    let listed: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!(listed["project"], "/w/harbour");
    if let Some(path) = case("client-kimi-code-2.1.0/wire.jsonl") {
        let path = path.to_str().unwrap();
        assert_eq!(requests(path)[0]["lacks"], serde_json::json!(["parameters"]));
        // Six were answered, and two failed.
        assert_eq!(usage(path), (8_900, 149, 8));
    }
}

/// Sessions of tools that are not read, each in the form that it has.
#[test]
fn a_form_that_is_not_read_is_refused_by_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let message = r#"{"role":"user","content":"When is high water?"}"#;
    let steps = format!(r#"{{"schema_version":"1","steps":[{message}]}}"#);
    let forms = [
        ("notes.md", "# chat started\n\n#### When is high water?\n", "not JSON"),
        ("steps.json", &steps, r#"an object with the keys "schema_version", "steps""#),
        (
            "kept.json",
            r#"{"history":[{"contextItems":[]}]}"#,
            r#"an object with the keys "history""#,
        ),
        ("other.json", r#"[{"ts":1,"novel":"Hi"}]"#, "an array with an object alone"),
        ("said.json", r#"[{"ts":1,"type":"say","text":"Hi"}]"#, "what Cline shows to people"),
        (
            "typed.json",
            r#"[{"type":"human","data":{"content":"Hi"}}]"#,
            "messages of LangChain, which are not read yet",
        ),
        (
            "dumped.json",
            r#"[{"lc":1,"type":"constructor","id":["langchain"],"kwargs":{"content":"Hi"}}]"#,
            "messages of LangChain, which are not read yet",
        ),
        (
            "parts.json",
            r#"[{"kind":"request","parts":[]}]"#,
            "messages of pydantic-ai, which are not read yet",
        ),
        (
            "chat.md",
            "\n# aider chat started at 2026-05-01 10:00:00\n\n#### When?\n",
            "a chat history of aider",
        ),
    ];
    for (name, text, found) in forms {
        let path = file(folder.path(), name, &[text.to_owned()]);
        for command in ["stats", "render", "requests"] {
            let refused = run(&[command, &path]);
            assert_eq!(refused.code, Some(2), "{command} {name}");
            assert!(refused.out.is_empty(), "{command} {name}: {}", refused.out);
            assert!(refused.err.contains(found), "{command} {name}: {}", refused.err);
            assert!(refused.err.contains(name), "{command} {name}: {}", refused.err);
        }
    }
}
