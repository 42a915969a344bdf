//! The independent counter agrees with totals taken by hand from real recordings, and with the
//! rules of `docs/transcripts.md` that those recordings do not exercise.

use afterimage_testkit::data;
use afterimage_testkit::recount;

use data::{files_under, recordings};
use recount::{Counts, recount};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// File, messages, calls, results. Taken from the recordings' own description, from `grep -c`,
/// or by reading the file.
const TOTALS: &[(&str, u64, u64, u64)] = &[
    ("A-openai-chat/inspect-ai/2025-05-12T20-27-36-04-00_browser.json", 10, 4, 4),
    ("A-openai-chat/inspect-ai/log_images_tc.json", 3, 0, 0),
    // 56 of the results are empty strings, 569 of the calls stand beside a null content.
    ("A-openai-chat/tau-bench/gpt-4o-airline.tasks00-24.json", 2922, 614, 614),
    // The call to `Finish` has no result.
    ("A-openai-chat/toolbench/G3_answer-13_ChatGPT_DFS.json", 12, 5, 4),
    ("A-openai-chat/toolbench/G3_answer-21_ChatGPT_DFS.json", 9, 4, 3),
    // The response's call has the id "", its echo a generated one: still one call.
    ("A-openai-chat/wire-openai_chat/test_compatible_api_with_tool_calls_without_id.json", 4, 1, 1),
    (
        "A-openai-chat/wire-openai_chat/test_deepseek_deferred_capability_with_thinking.json",
        11,
        4,
        4,
    ),
    ("A-openai-chat/wire-openai_chat/test_mixed_content_ordering_openai_chat.json", 5, 1, 1),
    // Two of the four interactions speak Gemini's API.
    ("A-openai-chat/wire-openai_chat/test_multiple_agent_tool_calls.json", 12, 3, 3),
    // The first of three responses is an HTTP 400.
    ("A-openai-chat/wire-openai_chat/test_tool_use_failed_error.json", 7, 2, 2),
    // One call and one result are records of their own.
    ("B-anthropic/claude-code/agent-sessions/schema_drift.jsonl", 3, 1, 1),
    // Twenty records; six of them have one placeholder for a message id.
    ("B-anthropic/claude-code/agent-sessions/small.jsonl", 15, 3, 3),
    ("B-anthropic/claude-code/agentcmd/full-session-three.jsonl", 32, 23, 20),
    ("B-anthropic/claude-code/agentcmd/full-session-two.jsonl", 30, 10, 10),
    ("B-anthropic/claude-code/agentcmd/individual/tool-bash-piped.jsonl", 1, 1, 0),
    ("B-anthropic/claude-code/agentcmd/individual/user-image.jsonl", 1, 0, 0),
    ("B-anthropic/claude-code/claude-code-log/edge_cases.jsonl", 13, 3, 1),
    ("B-anthropic/claude-code/claude-code-log/representative_messages.jsonl", 11, 2, 2),
    ("B-anthropic/claude-code/codemie/incremental-simple/turn-1.jsonl", 2, 0, 0),
    ("B-anthropic/claude-code/codemie/incremental-simple/turn-2.jsonl", 12, 2, 2),
    ("B-anthropic/claude-code/codemie/session-624a4a58.jsonl", 124, 48, 48),
    ("B-anthropic/claude-code/codemie/session-9eda1058.jsonl", 12, 3, 3),
    ("B-anthropic/claude-code/simonw/sample_session.json", 33, 12, 12),
    // 458 records: 180 of users, 278 of the assistant under 143 message ids.
    ("B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl", 323, 177, 177),
    (
        "B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20/subagents/agent-a7be2f0.jsonl",
        33,
        19,
        19,
    ),
    (
        "B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20/subagents/agent-acompact-f46190.jsonl",
        7,
        0,
        0,
    ),
    ("B-anthropic/claude-code/spotter/short.jsonl", 5, 2, 2),
    ("B-anthropic/pi/before-compaction.jsonl", 990, 454, 448),
    // Two conversations of one question each.
    ("B-anthropic/wire-anthropic/test_anthropic_code_execution_tool.json", 4, 2, 2),
    ("B-anthropic/wire-anthropic/test_anthropic_compaction_usage_with_cache.json", 2, 0, 0),
    (
        "B-anthropic/wire-anthropic/test_anthropic_deferred_capability_tool_callable_without_tool_search.json",
        8,
        3,
        3,
    ),
    ("B-anthropic/wire-anthropic/test_anthropic_lazy_advertisement_live.json", 7, 2, 2),
    ("B-anthropic/wire-anthropic/test_anthropic_model_thinking_part_redacted.json", 4, 0, 0),
    ("B-anthropic/wire-anthropic/test_model_sees_multiple_images_anthropic.json", 4, 1, 1),
    ("B-anthropic/wire-anthropic/test_multiple_parallel_tool_calls.json", 4, 4, 4),
    // The question, the paused turn, and the response that takes it up.
    ("B-anthropic/wire-anthropic/test_pause_turn_web_search_vcr.json", 3, 15, 15),
    ("C-codex-responses/other-cli/copilot-small.jsonl", 7, 4, 4),
    ("C-codex-responses/other-cli/gemini-session-2025-10-27.json", 18, 13, 13),
    // Six output items, and one image that its call carries itself.
    ("C-codex-responses/rollout/agent-sessions-small.jsonl", 3, 8, 7),
    ("C-codex-responses/rollout/codemie-rollout-2026-05-11T11-26-55.jsonl", 17, 105, 102),
    ("C-codex-responses/rollout/codemie-turn-2.jsonl", 8, 0, 0),
    ("C-codex-responses/rollout/codex_052_raw.jsonl", 0, 0, 0),
    (
        "C-codex-responses/wire-openai_responses/test_openai_responses_compact_stateful_mode.json",
        8,
        0,
        0,
    ),
    // The last request echoes the call with `output: null`; the first response has the output.
    (
        "C-codex-responses/wire-openai_responses/test_openai_responses_model_mcp_server_tool.json",
        4,
        1,
        1,
    ),
    (
        "C-codex-responses/wire-openai_responses/test_openai_responses_model_web_search_tool.json",
        4,
        2,
        0,
    ),
    ("D-swe-agent/mini/django__django-11163.traj.json", 28, 0, 0),
    ("D-swe-agent/mini/django__django-16560.traj.json", 292, 0, 0),
    ("D-swe-agent/mini/pytest-dev__pytest-6197.traj.json", 186, 0, 0),
    ("D-swe-agent/mini/sympy__sympy-13091.traj.json", 260, 0, 0),
    ("D-swe-agent/mini/v2-github_issue.traj.json", 22, 0, 0),
    ("D-swe-agent/openhands/basic_gui_mode.json", 2, 4, 4),
    ("D-swe-agent/traj/ctf-crypto-katy.traj", 37, 0, 0),
    ("D-swe-agent/traj/ctf-web-i_got_id_demo.traj", 43, 0, 0),
    ("D-swe-agent/traj/function_calling_simple.traj", 12, 5, 5),
    ("D-swe-agent/traj/marshmallow-1867.function_calling.traj", 24, 11, 11),
];

#[test]
fn real_recordings_count_to_their_known_totals() {
    let Some(root) = recordings("") else { return };
    let wrong: Vec<String> = TOTALS
        .iter()
        .filter_map(|&(file, messages, calls, results)| {
            let found = recount(&root.join(file));
            let expected = counts(messages, calls, results);
            (found != expected).then(|| format!("{file}: expected {expected:?}, found {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_recorded_transcript_has_a_known_total() {
    let Some(root) = recordings("") else { return };
    let groups = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
    let found: BTreeSet<_> =
        groups.iter().flat_map(|group| files_under(&root.join(group))).collect();
    let listed = TOTALS.iter().map(|(file, ..)| root.join(file)).collect();
    assert_eq!(found, listed);
}

#[test]
fn a_conversation_is_its_last_request_and_the_reply() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let call = json!({"role": "assistant", "tool_calls": [{"id": "", "function": {}}]});
    let tool = json!({"role": "tool", "tool_call_id": "a", "content": ""});
    let (a, b) = (user("a"), user("b"));
    let interactions = json!({"interactions": [
        chat(&[&a], 200, &call),
        chat(&[&b], 200, &json!({"role": "assistant", "content": "hi"})),
        chat(&[&a, &call, &tool], 500, &Value::Null),
        chat(&[&a, &call, &tool], 200, &json!({"role": "assistant", "content": null})),
        {"uri": "https://host/v1/embeddings", "request": {"input": "x"}, "status": 200,
         "response": {}},
    ]});
    check(&interactions.to_string(), counts(4 + 2, 1, 1));
}

#[test]
fn a_moved_cache_mark_does_not_split_a_conversation() {
    let marked = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    let plain = json!({"type": "text", "text": "a"});
    let exchange = |messages: Value| {
        json!({"uri": "https://host/v1/messages", "request": {"messages": messages},
            "status": {"code": 200},
            "response": {"role": "assistant", "content": [{"type": "text", "text": "b"}]}})
    };
    let interactions = json!({"interactions": [
        exchange(json!([{"role": "user", "content": [marked]}])),
        exchange(json!([
            {"role": "user", "content": [plain]},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ])),
    ]});
    check(&interactions.to_string(), counts(4, 0, 0));
}

#[test]
fn a_previous_response_id_continues_its_conversation() {
    let exchange = |request: Value, id: &str, output: Value| {
        json!({"uri": "https://host/v1/responses", "request": request, "status": 200,
            "response": {"id": id, "error": null, "output": output}})
    };
    let interactions = json!({"interactions": [
        exchange(json!({"input": "a"}), "r1", json!([
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ])),
        exchange(
            json!({"previous_response_id": "r1",
                "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}),
            "r2",
            json!([{"type": "message", "role": "assistant", "content": []}]),
        ),
    ]});
    check(&interactions.to_string(), counts(2, 1, 1));
}

#[test]
fn a_stream_counts_like_the_response_it_spells_out() {
    let stream = |events: &[Value]| -> String {
        events
            .iter()
            .flat_map(|event| ["data: ".to_owned(), event.to_string(), "\n\n".to_owned()])
            .collect()
    };
    let piece = |index: u64| {
        let calls = json!([{"index": index, "function": {}}]);
        json!({"choices": [{"delta": {"tool_calls": calls}}]})
    };
    let block = |kind: &str| json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind}});
    let item = json!({"type": "message", "role": "assistant", "content": []});
    let streams = [
        ("chat/completions", "messages", stream(&[piece(0), piece(0), piece(1)]), counts(2, 2, 0)),
        (
            "messages",
            "messages",
            stream(&[block("text"), block("server_tool_use"), block("web_search_tool_result")]),
            counts(2, 1, 1),
        ),
        (
            "responses",
            "input",
            stream(&[json!({"type": "response.completed", "response": {"output": [item]}})]),
            counts(2, 0, 0),
        ),
    ];
    for (end, key, response, expected) in streams {
        let interactions = json!({"interactions": [{
            "uri": format!("https://host/v1/{end}"),
            "request": {(key): [{"role": "user", "content": "a"}]},
            "status": 200,
            "response": response,
        }]});
        check(&interactions.to_string(), expected);
    }
}

#[test]
fn flat_rollouts_kimi_logs_and_gemini_lines_are_told_apart() {
    check(
        r#"{"id": "s", "timestamp": "t", "instructions": null}
           {"record_type": "state"}
           {"type": "message", "role": "user", "content": []}
           {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
           {"type": "function_call_output", "call_id": "c", "output": "{}"}"#,
        counts(1, 1, 1),
    );
    check(
        r#"{"type": "metadata", "protocol_version": "1.4"}
           {"type": "turn.prompt", "input": []}
           {"type": "context.append_message", "message": {"role": "user", "content": []}}
           {"type": "context.append_loop_event", "event": {"type": "content.part", "stepUuid": "s"}}
           {"type": "context.append_loop_event", "event": {"type": "tool.call", "stepUuid": "s"}}
           {"type": "context.append_loop_event", "event": {"type": "tool.result"}}"#,
        counts(2, 1, 1),
    );
    check(
        r#"{"sessionId": "s", "projectHash": "h"}
           {"id": "1", "type": "gemini", "content": ""}
           {"$set": {"lastUpdated": "t"}}
           {"id": "1", "type": "gemini", "content": "", "toolCalls": [{"result": [{}]}]}
           {"id": "2", "type": "info", "content": "restarted"}"#,
        counts(1, 1, 1),
    );
}

fn check(text: &str, expected: Counts) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("transcript");
    std::fs::write(&path, text).expect("a file in it");
    assert_eq!(recount(&path), expected, "{text}");
}

fn chat(messages: &[&Value], status: u64, message: &Value) -> Value {
    json!({"uri": "https://host/v1/chat/completions", "request": {"messages": messages},
        "status": status, "response": {"choices": [{"message": message}]}})
}

fn counts(messages: u64, tool_calls: u64, tool_results: u64) -> Counts {
    Counts { messages, tool_calls, tool_results }
}
