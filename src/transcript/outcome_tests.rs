//! What the readers state of calls.

use super::Transcript;
use crate::veil::{
    CallOutcome::{self, Cancelled, Denied, Done, Failed, Unstated},
    Facet, Frame,
};

/// What the reader of a transcript states of each result.
fn outcomes(input: &str) -> Vec<CallOutcome> {
    let records = Transcript::new(input.as_bytes()).unwrap();
    let frames: Vec<_> = records.map(|record| record.unwrap().frame).collect();
    let results = frames.iter().flat_map(Frame::added);
    results.filter(|facet| facet.is_result()).map(Facet::outcome).collect()
}

#[track_caller]
fn check(input: &str, expected: &[CallOutcome]) {
    assert_eq!(outcomes(input), expected, "{input}");
}

/// A record of Claude Code with a result.
fn claude(mark: &str, told: &str) -> String {
    let (call, result) = (
        r#"{"type":"assistant","uuid":"a","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}"#,
        r#"{"type":"tool_result","tool_use_id":"c","content":"x"MARK}"#.replace("MARK", mark),
    );
    format!(
        "{call}\n{{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"message\":{{\"role\":\"user\",\"content\":[{result}]}},\"toolUseResult\":{told}}}"
    )
}

#[test]
fn claude_code_notes_that_the_user_refused_or_interrupted_a_call() {
    let failed = r#","is_error":true"#;
    check(&claude(failed, r#""User rejected tool use""#), &[Denied]);
    check(&claude(failed, r#""Error: Permission to use Bash has been denied.""#), &[Denied]);
    check(&claude(failed, r#""Sibling tool call errored""#), &[Cancelled]);
    check(&claude(failed, r#"{"stdout":"","interrupted":true}"#), &[Cancelled]);
    check(&claude(failed, r#""Error: Exit code 2""#), &[Failed]);
    check(&claude(r#","is_error":false"#, r#"{"interrupted":false}"#), &[Done]);
    check(&claude("", r#"{"stdout":"User rejected tool use"}"#), &[Unstated]);
}

#[test]
fn codex_states_exit_codes_and_what_the_user_declined() {
    let item = |payload: &str| format!(r#"{{"type":"response_item","payload":{payload}}}"#);
    let note = |payload: &str| format!(r#"{{"type":"event_msg","payload":{payload}}}"#);
    let of = |noted: &str, output: &str| {
        let call =
            item(r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}"#);
        let output = format!(
            r#"{{"type":"function_call_output","call_id":"c","output":{}}}"#,
            crate::json::Value::from(output)
        );
        [call, note(noted), item(&output)].join("\n")
    };
    let nothing = r#"{"type":"user_message","message":"x"}"#;
    check(&of(nothing, "Exit code: 0\nWall time: 1 seconds\nOutput:\nx"), &[Done]);
    check(&of(nothing, "Chunk ID: 1\nProcess exited with code 3\nOutput:\nx"), &[Failed]);
    check(&of(nothing, "Output:\nExit code: 3"), &[Unstated]);
    check(&of(nothing, r#"{"output":"x","metadata":{"exit_code":1}}"#), &[Failed]);
    check(&of(nothing, r#"{"metadata":{"exit_code":0},"output":"x"}"#), &[Done]);
    check(&of(nothing, "aborted by user after 2.0s"), &[Cancelled]);
    let refused = r#"exec_command failed for `ls`: CreateProcess { message: "Rejected(\"rejected by user\")" }"#;
    check(&of(nothing, refused), &[Denied]);
    let ended = |members: &str| format!(r#"{{"type":"exec_command_end","call_id":"c",{members}}}"#);
    check(&of(&ended(r#""exit_code":2"#), "x"), &[Failed]);
    check(&of(&ended(r#""exit_code":-1,"status":"declined""#), "x"), &[Denied]);
    check(&of(&ended(r#""result":{"Ok":{"content":[],"isError":true}}"#), "x"), &[Failed]);
    check(&of(&ended(r#""success":true"#), "x"), &[Done]);
}

#[test]
fn the_ai_sdk_says_what_a_part_is_an_output_of() {
    let model = |output: &str| {
        format!(
            r#"[{{"role":"assistant","content":[{{"type":"tool-call","toolCallId":"c","toolName":"f","input":{{}}}}]}},
            {{"role":"tool","content":[{{"type":"tool-result","toolCallId":"c","toolName":"f","output":{output}}}]}}]"#
        )
    };
    check(&model(r#"{"type":"text","value":"x"}"#), &[Unstated]);
    check(&model(r#"{"type":"error-json","value":{}}"#), &[Failed]);
    check(&model(r#"{"type":"execution-denied","reason":"no"}"#), &[Denied]);
    let page = |members: &str| {
        format!(
            r#"[{{"role":"assistant","parts":[{{"type":"tool-f","toolCallId":"c",{members}}}]}}]"#
        )
    };
    check(&page(r#""state":"output-available","output":"x""#), &[Done]);
    check(&page(r#""state":"output-error","errorText":"x""#), &[Failed]);
    check(&page(r#""state":"output-denied","approval":{"id":"a","approved":false}"#), &[Denied]);
    check(&page(r#""state":"input-available","input":{}"#), &[]);
}

#[test]
fn clients_name_the_status_of_a_call() {
    let gemini = |status: &str, result: &str| {
        format!(
            r#"{{"sessionId":"s","projectHash":"p","startTime":"t","lastUpdated":"t","messages":[{{"id":"m","timestamp":"t","type":"gemini","content":"","toolCalls":[{{"id":"c","name":"f","args":{{}},"status":"{status}","result":"{result}"}}]}}]}}"#
        )
    };
    check(&gemini("success", "x"), &[Done]);
    check(&gemini("error", "x"), &[Failed]);
    check(&gemini("cancelled", "[Operation Cancelled]"), &[Cancelled]);
    check(&gemini("cancelled", "[Operation Cancelled] Reason: User did not allow it"), &[Denied]);
    check(&gemini("scheduled", "x"), &[Unstated]);
    let pi = |mark: &str| {
        format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}}\n{{\"type\":\"message\",\"id\":\"m\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"f\",\"content\":[]{mark}}}}}"
        )
    };
    check(&pi(""), &[Unstated]);
    check(&pi(r#","isError":false"#), &[Done]);
    check(&pi(r#","isError":true"#), &[Failed]);
}
