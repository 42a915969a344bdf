//! Requests that a client writes down in its session, in parts: they are put together, and lack nothing
//! but what the format names.

#![expect(clippy::needless_pass_by_value, reason = "values are made where they are given")]

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    hud::{Hud, NativeFormat},
    id::Millis,
    request::{Exchange, Recording},
    session::Viewer,
    tokens::Chars4,
    transcript::Transcript,
};

fn read(lines: &[Value]) -> (Recording, Vec<String>) {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let text = text.join("\n");
    let mut transcript = Transcript::new(text.as_bytes()).unwrap();
    let mut recording = Recording::new(transcript.format(), Arc::new(Chars4));
    for record in transcript.by_ref() {
        recording.push(record.unwrap(), Millis::new(0)).unwrap();
    }
    let notes = transcript.report().notes.iter().map(|note| note.text.clone()).collect();
    assert_eq!(viewed(&text), recording.exchanges().last().unwrap().provenance.as_str());
    (recording, notes)
}

/// Where the requests come from, as a viewer says it.
fn viewed(text: &str) -> &'static str {
    let transcript = Transcript::new(text.as_bytes()).unwrap();
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut viewer = Viewer::new(&hud, transcript.format());
    for record in transcript {
        viewer.view(record.unwrap(), None, Millis::new(0)).unwrap();
    }
    viewer.provenance().as_str()
}

fn rows(recording: &Recording) -> Vec<String> {
    let row = |of: &Exchange| {
        let input = of.usage.as_ref().and_then(|usage| usage.input);
        let again = if of.is_retry { " again" } else { "" };
        let (from, outcome) = (of.provenance.as_str(), of.outcome().as_str());
        format!("{} {from} {outcome}{again} {input:?}", of.number)
    };
    recording.exchanges().iter().map(row).collect()
}

fn body(recording: &Recording, number: usize) -> Value {
    serde_json::from_str(recording.request(number).unwrap().body()).unwrap()
}

fn tool() -> Value {
    json!({"name": "tide", "description": "Says the tide.", "parameters": {"type": "object"}})
}

fn sent_tool() -> Value {
    json!({"type": "function", "function": tool()})
}

mod pi {
    use super::*;

    fn entry(kind: &str, id: &str, parent: &str, members: Value) -> Value {
        let mut entry = json!({"type": kind, "id": id, "parentId": parent});
        entry.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        entry
    }

    fn message(id: &str, parent: &str, message: Value) -> Value {
        entry("message", id, parent, json!({ "message": message }))
    }

    fn answer(api: &str, content: Value, stop: &str, input: u64) -> Value {
        let usage = json!({"input": input, "output": 1, "cacheRead": 0, "cacheWrite": 0});
        json!({"role": "assistant", "content": content, "api": api, "model": "m", "usage": usage,
            "stopReason": stop, "thinkingLevel": "low"})
    }

    fn session(api: &str) -> Vec<Value> {
        let call = json!({"type": "toolCall", "id": "c1", "name": "tide", "arguments": {"at": 6}});
        let thought = json!({"type": "thinking", "thinking": "Hm.", "thinkingSignature": "reasoning_content"});
        let said = json!([thought, {"type": "text", "text": "I look."}, call]);
        let result = json!({"role": "toolResult", "toolCallId": "c1", "toolName": "tide",
            "content": [{"type": "text", "text": "High."}], "isError": false});
        let done = json!([{"type": "text", "text": "It is high."}]);
        let mut own_tool = tool();
        own_tool["constrainedSampling"] = json!({"strict": "prefer"});
        let system = json!({"role": "system", "content": "",
            "sections": {"a": "Guide ships.", "b": "Be brief."}, "toolsAdded": [own_tool]});
        let edit = entry("context_edit", "f", "e", json!({"targetId": "e", "replacement": null}));
        let summary = json!({"summary": "It was high.", "firstKeptEntryId": "h"});
        vec![
            json!({"type": "session", "version": 3, "id": "s", "cwd": "/x"}),
            message("a", "", system),
            message(
                "b",
                "a",
                json!({"role": "user", "content": [{"type": "text", "text": "How high?"}]}),
            ),
            message("c", "b", answer(api, said, "toolUse", 7)),
            message("d", "c", result),
            message("e", "d", answer(api, json!([]), "error", 0)),
            edit,
            message("g", "f", answer(api, done.clone(), "stop", 9)),
            message(
                "h",
                "g",
                json!({"role": "user", "content": [{"type": "text", "text": "And now?"}]}),
            ),
            entry("compaction", "i", "h", summary),
            message("j", "i", answer(api, done, "stop", 8)),
        ]
    }

    #[test]
    fn requests_of_pi_are_logged_with_prompt_tools_and_attempts_that_failed() {
        let (recording, notes) = read(&session("openai-completions"));
        assert_eq!(notes, [""; 0]);
        assert_eq!(
            rows(&recording),
            [
                "1 logged answered Some(7)",
                "2 logged failed None",
                "3 logged answered again Some(9)",
                "4 logged answered Some(8)"
            ]
        );
        let system = json!({"role": "system", "content": "Guide ships.\n\nBe brief."});
        let asked = json!({"role": "user", "content": [{"type": "text", "text": "How high?"}]});
        let call = json!({"id": "c1", "type": "function", "function": {"name": "tide", "arguments": "{\"at\":6}"}});
        let retried = json!({"model": "m", "tools": [sent_tool()], "messages": [system, asked,
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "High."}], "reasoning_effort": "low"});
        assert_eq!(body(&recording, 2), retried);
        assert_eq!(body(&recording, 3), retried);
        let last = body(&recording, 4);
        let told = "The conversation history before this point was compacted into the following \
                    summary:\n\n<summary>\nIt was high.\n</summary>";
        assert_eq!(last["messages"][1]["content"], told);
        assert_eq!(last["messages"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn a_request_of_pi_in_the_form_of_another_api_is_worked_out() {
        let (recording, _) = read(&session("anthropic-messages"));
        let from = recording.exchanges().iter().map(|of| of.provenance.as_str());
        assert!(from.eq(["reconstructed"; 4]));
    }
}

mod kimi {
    use super::*;

    const PROMPT: &str = "Guide ships.";

    fn looped(event: Value) -> Value {
        json!({"type": "context.append_loop_event", "event": event, "time": 5})
    }

    fn request(messages: u64, members: Value) -> Value {
        let hash: String =
            Sha256::digest(PROMPT).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut request = json!({"type": "llm.request", "kind": "loop", "provider": "openai",
            "model": "m", "thinkingEffort": "off", "systemPromptHash": hash, "toolsHash": "t1",
            "messageCount": messages});
        request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        request
    }

    fn step(id: &str, parts: Vec<Value>, finish: &str) -> Vec<Value> {
        let mut events = vec![];
        for part in parts {
            events.push(looped(part));
        }
        let usage =
            json!({"inputOther": 7, "output": 1, "inputCacheRead": 0, "inputCacheCreation": 0});
        let mut end = json!({"type": "step.end", "uuid": id, "finishReason": finish});
        if finish != "error" {
            end["usage"] = usage;
        }
        events.push(looped(end));
        events
    }

    fn text(id: &str, text: &str) -> Value {
        json!({"type": "content.part", "stepUuid": id, "part": {"type": "text", "text": text}})
    }

    fn session(last: Value) -> Vec<Value> {
        let begin = |id: &str| looped(json!({"type": "step.begin", "uuid": id}));
        let thought = json!({"type": "content.part", "stepUuid": "s1",
            "part": {"type": "think", "think": "Hm.", "reasoningKey": "reasoning_content"}});
        let call = json!({"type": "tool.call", "stepUuid": "s1", "toolCallId": "c1", "name": "tide",
            "args": {"at": 6}});
        let result = json!({"type": "tool.result", "toolCallId": "c1",
            "result": {"output": "No tide.", "isError": true, "durationMs": 26}});
        let prompt = json!({"role": "user", "content": [{"type": "text", "text": "How high?"}],
            "origin": {"kind": "user"}});
        let mut lines = vec![
            json!({"type": "metadata", "protocol_version": "1.5"}),
            json!({"type": "profile.bind", "systemPrompt": PROMPT}),
            json!({"type": "context.append_message", "message": prompt}),
            begin("s1"),
            json!({"type": "llm.tools_snapshot", "hash": "t1", "tools": [tool()]}),
            request(1, json!({})),
        ];
        lines.extend(step("s1", vec![thought, text("s1", "I look."), call, result], "tool_use"));
        lines.extend([begin("s2"), request(3, json!({}))]);
        lines.extend(step("s2", vec![], "error"));
        lines.push(json!({"type": "turn.step.retrying", "errorMessage": "500", "statusCode": 500}));
        lines.extend([begin("s3"), last]);
        lines.extend(step("s3", vec![text("s3", "It is high.")], "end_turn"));
        lines
    }

    #[test]
    fn requests_of_kimi_are_logged_with_what_the_model_is_told_of_results() {
        let (recording, notes) = read(&session(request(3, json!({"temperature": 0.5}))));
        assert_eq!(notes, [""; 0]);
        assert_eq!(
            rows(&recording),
            [
                "1 logged answered Some(7)",
                "2 logged failed None",
                "3 logged answered again Some(7)"
            ]
        );
        let call = json!({"id": "c1", "type": "function", "function": {"name": "tide", "arguments": "{\"at\":6}"}});
        let told =
            "Wall time: 0.026 seconds\n<system>ERROR: Tool execution failed.</system>\nNo tide.";
        let sent = json!({"model": "m", "tools": [sent_tool()], "messages": [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": "How high?"},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": told}], "temperature": 0.5});
        assert_eq!(body(&recording, 3), sent);
    }

    #[test]
    fn a_request_of_kimi_that_is_another_one_than_the_file_shows_is_worked_out() {
        for (last, expected) in [
            (request(4, json!({})), Some("a request of 4 messages, where the file shows 3")),
            (
                request(3, json!({"systemPromptHash": "x"})),
                Some("a request with another system prompt than the file shows"),
            ),
            (
                request(3, json!({"toolsHash": "t2"})),
                Some("a request with other tools than the file shows"),
            ),
            (request(3, json!({"projection": "strict"})), None),
            (request(3, json!({"provider": "anthropic"})), None),
        ] {
            let (recording, notes) = read(&session(last));
            let from = recording.exchanges().iter().map(|of| of.provenance.as_str());
            assert!(from.eq(["logged", "logged", "reconstructed"]), "{notes:?}");
            assert_eq!(notes.first().map(String::as_str), expected);
        }
    }
}
