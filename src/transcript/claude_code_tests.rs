use crate::{
    json::Value,
    transcript::{Transcript, testing::check},
    veil::{Branch, Compaction, ContextEdit, FacetChange, SubagentStart},
};

#[test]
fn records_of_one_message_are_joined_and_results_between_them_follow() {
    check(
        "claude-code",
        r#"
{"type":"user","sessionId":"s","uuid":"u1","message":{"role":"user","content":"go"}}
{"type":"assistant","sessionId":"s","uuid":"a1","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}
{"type":"progress","sessionId":"s","uuid":"p1","data":{"message":{"type":"assistant"}}}
{"type":"user","sessionId":"s","uuid":"r1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},"toolUseResult":{"stdout":"x"}}
{"type":"assistant","sessionId":"s","uuid":"a2","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}
{"type":"user","sessionId":"other","uuid":"r2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"y"}]}}
{"type":"assistant","sessionId":"s","uuid":"a3","message":{"id":"n","role":"assistant","content":[]}}"#,
        r#"
s/user*
  event "go"
s/agent*
  action "" {"toolName":"Bash","toolCallId":"t1","parameters":{}}
  action "" {"toolName":"Read","toolCallId":"t2","parameters":{}}
s/user*
  result "x" {"toolName":"Bash","toolCallId":"t1"}
s/user*
  result "y" {"toolName":"Read","toolCallId":"t2"}
s/agent*"#,
    );
}

#[test]
fn a_part_that_comes_after_another_message_is_no_message_of_its_own() {
    check(
        "claude-code",
        r#"
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"a"}}
{"type":"user","sessionId":"s","message":{"content":"b"}}
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"c"}}
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"d"}}
{"type":"assistant","sessionId":"s","message":{"content":"e"}}
{"type":"assistant","sessionId":"s","message":{"content":"f"}}"#,
        r#"
s/agent*
  speech "a"
s/user*
  event "b"
s/agent
  speech "c"
  speech "d"
s/agent*
  speech "e"
s/agent*
  speech "f""#,
    );
}

#[test]
fn sidechains_are_sessions_found_through_the_chain() {
    let report = check(
        "claude-code",
        r#"
{"type":"assistant","sessionId":"s","uuid":"a1","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Task","input":{}}]}}
{"type":"user","sessionId":"s","uuid":"b1","parentUuid":null,"isSidechain":true,"message":{"content":"one"}}
{"type":"user","sessionId":"s","uuid":"c1","parentUuid":"a1","isSidechain":true,"message":{"content":"two"}}
{"type":"progress","sessionId":"s","uuid":"b2","parentUuid":"b1","isSidechain":true}
{"type":"assistant","sessionId":"s","uuid":"b3","parentUuid":"b2","isSidechain":true,"message":{"id":"n","content":"one!"}}
{"type":"assistant","sessionId":"s","uuid":"c2","parentUuid":"c1","isSidechain":true,"message":{"id":"o","content":"two!"}}
{"type":"user","sessionId":"s","uuid":"d1","isSidechain":true,"agentId":"ag","message":{"content":"three"}}
{"type":"assistant","sessionId":"s","uuid":"a2","parentUuid":"a1","message":{"id":"m","content":"more"}}"#,
        r#"
s/sidechain-1/user*
  event "one"
s/sidechain-2/user*
  event "two"
s/ag/user*
  event "three"
s/agent*
  action "" {"toolName":"Task","toolCallId":"t","parameters":{}}
  speech "more"
s/sidechain-1/agent*
  speech "one!"
s/sidechain-2/agent*
  speech "two!""#,
    );
    assert_eq!(report.sessions, 4);
}

#[test]
fn a_summary_stands_in_for_what_was_compacted() {
    let report = check(
        "claude-code",
        r#"
{"type":"user","sessionId":"s","message":{"content":"a"}}
{"type":"system","subtype":"compact_boundary","sessionId":"s","parentUuid":null,"logicalParentUuid":"x"}
{"type":"user","sessionId":"s","isCompactSummary":true,"message":{"content":"so far"}}"#,
        r#"
s/user*
  event "a"
s/user*
  summary "so far""#,
    );
    assert_eq!(format!("{:?}", report.skipped), r#"{"system/compact_boundary": 1}"#);
}

#[test]
fn damaged_records_are_unknown_or_empty_messages() {
    let report = check(
        "claude-code",
        r#"
"massive error"
{"type":"user","uuid":"x","message":"error"}
{"type":"user","uuid":"x","sessionId":"s","message":{"role":"user","contenst":[]}}
{"silly":"this"}
not json
{"type":"user","message":{"content":["wow"]}}
{"type":"novel"}"#,
        r#"
s/environment
  unknown "" "massive error"
s/environment
  unknown "" {"type":"user","uuid":"x","message":"error"}
s/user*
s/environment
  unknown "" {"silly":"this"}
s/environment
  unknown "" "not json"
s/user*
  event "wow"
s/environment
  unknown "" {"type":"novel"}"#,
    );
    assert_eq!(report.sessions, 1);
}

#[test]
fn old_calls_and_results_are_records_that_pair_by_position() {
    check(
        "claude-code",
        r#"
{"type":"user","sessionId":"s","message":{"content":"a"}}
{"type":"tool_use","sessionId":"s","name":"bash","input":{"command":"ls"}}
{"type":"tool_result","sessionId":"s","output":"f\n"}
{"type":"assistant","sessionId":"s","message":{"content":[{"type":"tool_use","name":"cat","input":{}}]}}
{"type":"user","sessionId":"s","sourceToolUseID":"z","message":{"content":[{"type":"tool_result","content":"g"}]}}"#,
        r#"
s/user*
  event "a"
s/agent
  action "" {"toolName":"bash","parameters":{"command":"ls"}}
s/environment
  result "f\n" {"toolName":"bash"}
s/agent*
  action "" {"toolName":"cat","parameters":{}}
s/user*
  result "g" {"toolName":"cat","toolCallId":"z"}"#,
    );
}

#[test]
fn attachments_that_hold_text_are_frames_that_name_their_source() {
    let input = r#"
{"type":"user","sessionId":"s","uuid":"u","message":{"content":"go"}}
{"type":"attachment","sessionId":"s","uuid":"a1","timestamp":"t","attachment":{"type":"nested_memory","path":"/r/CLAUDE.md","displayPath":"CLAUDE.md","content":{"type":"Project","path":"/r/CLAUDE.md","content":"Use tabs."}}}
{"type":"attachment","attachment":{"type":"file","filename":"/r/a.rs","content":{"type":"text","file":{"filePath":"/r/a.rs","content":"fn a() {}"}}}}
{"type":"attachment","attachment":{"type":"file","filename":"/r/a.png","content":{"type":"image","file":{"type":"image/png","base64":"AAAA"}}}}
{"type":"attachment","attachment":{"type":"edited_text_file","filename":"/r/b.rs","snippet":"1 let b;"}}
{"type":"attachment","attachment":{"type":"queued_command","prompt":"and b","commandMode":"prompt"}}
{"type":"attachment","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"a task ended"}],"origin":{"kind":"task"}}}
{"type":"attachment","attachment":{"type":"hook_success","hookName":"Start","content":"","stdout":"{}"}}
{"type":"attachment","attachment":{"type":"hook_blocking_error","hookName":"Stop","blockingError":{"blockingError":"tests fail","command":"c"}}}
{"type":"attachment","attachment":{"type":"todo_reminder","content":[{"content":"one","status":"pending"},{"content":"two"}]}}
{"type":"attachment","attachment":{"type":"todo_reminder","content":[]}}
{"type":"attachment","attachment":{"type":"invoked_skills","skills":[{"name":"x","path":"/x.md","content":"do x"},{"name":"y","content":""}]}}
{"type":"attachment","attachment":{"type":"deferred_tools_delta","addedNames":["n"],"addedLines":["n: a tool","m"]}}
{"type":"attachment","attachment":{"type":"diagnostics","files":[{"uri":"file:///b.rs","diagnostics":[{"message":"unused"},{"message":"moved"}]}]}}
{"type":"attachment","attachment":{"type":"command_permissions","allowedTools":["Bash"],"content":"x"}}
{"type":"attachment","attachment":{"type":"novel","content":"told"}}
{"type":"attachment","attachment":{"type":"novel","note":"told"}}
{"type":"attachment"}"#;
    let report = check(
        "claude-code",
        input,
        r#"
s/user*
  event "go"
s/environment
  event "<system-reminder>\nUse tabs.\n</system-reminder>"
s/environment
  event "<system-reminder>\nfn a() {}\n</system-reminder>"
s/environment
  image "[image/png, 3 bytes]"
s/environment
  event "<system-reminder>\n1 let b;\n</system-reminder>"
s/user
  event "and b"
s/environment
  event "<system-reminder>\na task ended\n</system-reminder>"
s/environment
  event "<system-reminder>\ntests fail\n</system-reminder>"
s/environment
  event "<system-reminder>\n[pending] one\ntwo\n</system-reminder>"
s/environment
  event "<system-reminder>\ndo x\n</system-reminder>"
s/environment
  event "<system-reminder>\nn: a tool\nm\n</system-reminder>"
s/environment
  event "<system-reminder>\nunused\nmoved\n</system-reminder>"
s/environment
  event "<system-reminder>\ntold\n</system-reminder>""#,
    );
    assert_eq!(
        format!("{:?}", report.skipped),
        r#"{"attachment": 1, "attachment/command_permissions": 1, "attachment/hook_success": 1, "attachment/novel": 1, "attachment/todo_reminder": 1}"#
    );
    let frames = Transcript::new(input.as_bytes()).unwrap();
    let frame = frames.map(|record| record.unwrap().frame).nth(1).unwrap();
    let FacetChange::Add(facet) = &frame.ops[0].change else { panic!("{frame:?}") };
    assert_eq!(facet.display_name.as_deref(), Some("CLAUDE.md"));
    assert_eq!(
        Value::from(facet.attributes.clone()).to_string(),
        r#"{"attachment":"nested_memory","path":"/r/CLAUDE.md"}"#
    );
    assert_eq!((frame.uuid.as_deref(), frame.timestamp.as_deref()), (Some("a1"), Some("t")));
}

/// A record, by its kind (`u`, `a`, `r`, `m`), its id and its parent.
fn record(of: &str) -> String {
    let (kind, rest) = of.split_at(1);
    let (id, parent) = rest.split_once('<').unwrap();
    let parent = if parent == "^" { "null".to_owned() } else { format!("{parent:?}") };
    let place = format!(r#""sessionId":"s","uuid":"{id}","parentUuid":{parent}"#);
    match kind {
        "u" => format!(r#"{{"type":"user",{place},"message":{{"content":"{id}"}}}}"#),
        "m" => format!(r#"{{"type":"user","isMeta":true,{place},"message":{{"content":"{id}"}}}}"#),
        "r" => format!(
            r#"{{"type":"user",{place},"message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{id}"}}]}}}}"#
        ),
        "s" => format!(r#"{{"type":"system","subtype":"x",{place}}}"#),
        _ => {
            let message = id.trim_end_matches(char::is_numeric);
            format!(
                r#"{{"type":"assistant",{place},"message":{{"id":"{message}","content":[{{"type":"text","text":"{id}"}}]}}}}"#
            )
        }
    }
}

/// The frames that tell of branches, with what is outside from there on, and the notes.
fn branches(records: &[&str]) -> (Vec<String>, Vec<String>) {
    let input: Vec<String> = records.iter().map(|of| record(of)).collect();
    let input = input.join("\n");
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    let mut told = Vec::new();
    for frame in transcript.by_ref().map(|record| record.unwrap().frame) {
        if let Some(branch) = Branch::of(&frame).unwrap() {
            let ranges = branch.outside.iter().map(|of| format!("{}-{}", of.start(), of.end()));
            let ranges: Vec<String> = ranges.collect();
            told.push(format!("{}: {}", frame.sequence, ranges.join(" ")));
        }
    }
    let notes = transcript.report().notes.iter().map(|note| note.text.clone());
    (told, notes.collect())
}

#[test]
fn a_prompt_that_goes_back_tells_what_is_left() {
    let none: [String; 0] = [];
    // Parts of one message with results between them, and what the harness says, are no branches.
    let plain = ["uu<^", "aA1<u", "rr<A1", "aA2<A1", "rq<A2", "ss<r", "mm<A1", "uv<r", "aB<v"];
    assert_eq!(branches(&plain), (none.to_vec(), none.to_vec()));
    // v goes back to A, w (after what the harness says) to B, and x is after v's answer again.
    let rewound =
        ["uu<^", "aA<u", "uv0<A", "aB<v0", "uv<A", "aC<v", "mm<B", "uw<m", "aD<w", "sz<C", "ux<z"];
    let (told, notes) = branches(&rewound);
    assert_eq!(told, ["4: 2-3", "7: 4-5", "9: 2-3 6-8"]);
    assert_eq!(notes, none);
}

#[test]
fn damage_in_the_chain_of_parents_leaves_the_order_of_the_file() {
    let own = branches(&["uu<^", "aA<u", "uv<v", "aB<v"]);
    assert_eq!(own.0, Vec::<String>::new());
    assert_eq!(own.1, ["a record that is its own parent"]);
    let circle = branches(&["uu<v", "uv<u", "aA<v"]);
    assert_eq!(circle.0, Vec::<String>::new());
    assert_eq!(circle.1, ["a record whose parents go in a circle, or are out of order"]);
    let gone = branches(&["uu<gone", "aA<u", "uv<nobody", "aB<v"]);
    assert_eq!(gone, (Vec::new(), Vec::new()));
    let several = branches(&["uu<^", "aA<u", "uu<A", "aB<u", "uv<u"]);
    assert_eq!(several.0, Vec::<String>::new());
    assert_eq!(several.1, ["a record whose parent is the id of several records"]);
}

#[test]
fn a_compaction_that_kept_what_is_nowhere_replaced_all() {
    let input = r#"
{"type":"user","sessionId":"s","uuid":"a","message":{"content":"a"}}
{"type":"user","sessionId":"s","uuid":"b","message":{"content":"b"}}
{"type":"system","subtype":"compact_boundary","sessionId":"s","compactMetadata":{"preservedSegment":{"headUuid":"nowhere"}}}
{"type":"user","sessionId":"s","isCompactSummary":true,"message":{"content":"so far"}}"#;
    let frames = Transcript::new(input.as_bytes()).unwrap();
    let last = frames.map(|record| record.unwrap().frame).last().unwrap();
    let told = Compaction::of(&last).unwrap().unwrap();
    assert_eq!((told.from.get(), told.to.get()), (0, 1));
}

#[test]
fn the_first_frame_of_a_sidechain_tells_which_call_started_it() {
    let call = |uuid: &str, id: &str, prompt: &str| {
        format!(
            r#"{{"type":"assistant","sessionId":"s","uuid":"{uuid}","message":{{"id":"m{uuid}","content":[{{"type":"tool_use","id":"{id}","name":"Task","input":{{"prompt":"{prompt}"}}}}]}}}}"#
        )
    };
    let side = |uuid: &str, rest: &str, text: &str| {
        format!(
            r#"{{"type":"user","sessionId":"s","uuid":"{uuid}","isSidechain":true,{rest},"message":{{"content":"{text}"}}}}"#
        )
    };
    let input = [
        call("a1", "t1", "look"),
        call("a2", "t2", "search"),
        r#"{"type":"progress","sessionId":"s","parentToolUseID":"t9","data":{"type":"agent_progress","agentId":"ag"}}"#.to_owned(),
        side("b1", r#""parentUuid":null"#, "look"),
        side("c1", r#""parentUuid":"a2""#, "in other words"),
        side("d1", r#""agentId":"ag""#, "search"),
        side("d2", r#""agentId":"ag""#, "look"),
        side("e1", r#""parentUuid":"gone""#, "of its own accord"),
    ]
    .join("\n");
    let records = Transcript::new(input.as_bytes()).unwrap().map(Result::unwrap);
    let starts = records.filter_map(|record| {
        let start = SubagentStart::of(&record.frame).unwrap()?;
        let frame = start.frame.map_or(-1, |frame| frame.get().cast_signed());
        Some(format!("{}: {} {} {frame}", record.session, start.session, start.call))
    });
    let expected = ["s/sidechain-1: s t1 0", "s/sidechain-2: s t2 -1", "s/ag: s t9 -1"];
    assert_eq!(starts.collect::<Vec<_>>(), expected);
}

#[test]
fn a_text_that_is_sent_in_the_place_of_a_large_result_is_read_from_there_on() {
    let result = record("rr<A1").replace("\"t\"", "\"c1\"");
    let replacement = r#"{"type":"content-replacement","sessionId":"s","replacements":[{"toolUseId":"c1","replacement":"Saved to /r."},{"toolUseId":"c9","replacement":"Nowhere."}]}"#;
    let input = [record("uu<^"), record("aA1<u"), result, replacement.to_owned(), record("aB<r")];
    let input = input.join("\n");
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    let frames: Vec<_> = transcript.by_ref().map(|record| record.unwrap().frame).collect();
    let edit = frames.iter().find_map(|frame| ContextEdit::of(frame).unwrap()).unwrap();
    let read = edit.frames.iter().map(|(frame, facets)| (frame.get(), &*facets[0].content));
    assert_eq!(read.collect::<Vec<_>>(), [(2, "Saved to /r.")]);
    let report = transcript.report();
    assert_eq!(report.unknown_records, 0);
    assert_eq!(report.notes[0].text, "replaces 1 of the results that the file does not hold");
}

#[test]
fn what_a_local_command_printed_is_read_before_the_next_prompt() {
    let report = check(
        "claude-code",
        r#"
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"Aye"}}
{"type":"system","subtype":"local_command","sessionId":"s","content":"<local-command-stdout>9 tokens</local-command-stdout>"}
{"type":"user","sessionId":"s","message":{"content":"So few?"}}"#,
        r#"
s/agent*
  speech "Aye"
s/environment
  event "<local-command-stdout>9 tokens</local-command-stdout>"
s/user*
  event "So few?""#,
    );
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[test]
fn what_the_client_says_of_a_failed_request_leaves_the_context_with_the_next_prompt() {
    let lines = r#"
{"type":"user","sessionId":"s","message":{"content":"Moor it."}}
{"type":"assistant","sessionId":"s","isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","stop_reason":"stop_sequence","usage":{"input_tokens":0,"output_tokens":0},"content":[{"type":"text","text":"API Error: 529"}]}}
{"type":"user","sessionId":"s","message":{"content":"Again."}}
{"type":"assistant","sessionId":"s","message":{"id":"m","model":"m","content":"Moored."}}
{"type":"user","sessionId":"s","message":{"content":"Thanks."}}"#;
    let frames: Vec<_> = { Transcript::new(lines.as_bytes()).unwrap() }
        .map(|record| record.unwrap().frame)
        .collect();
    let stop = |at: usize| frames[at].imported.as_ref()?.answer.as_ref()?.stop.as_deref();
    assert_eq!((stop(1), stop(3)), (Some("error"), None));
    let edits = frames.iter().map(|frame| ContextEdit::of(frame).unwrap());
    let edits: Vec<_> = edits.map(|edit| edit.map(|edit| edit.frames)).collect();
    let left = Some(vec![(1.into(), Vec::new())]);
    assert_eq!(edits, [None, None, left, None, None]);
}
