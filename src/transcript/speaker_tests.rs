//! Who speaks in the user's place, as the readers know it.

use super::Transcript;
use crate::steps::words_in;

/// What is known for the user's words in a transcript.
fn words(input: &str) -> Vec<String> {
    let records = Transcript::new(input.as_bytes()).unwrap();
    let frames: Vec<_> = records.map(|record| record.unwrap().frame).collect();
    frames.iter().filter_map(words_in).map(str::to_owned).collect()
}

#[track_caller]
fn check(lines: &[&str]) {
    assert_eq!(words(&lines.join("\n")), ["Dredge berth 7."], "{lines:?}");
}

#[test]
fn claude_code_says_which_messages_its_user_did_not_write() {
    let say = |text: &str, beside: &str| {
        format!(
            r#"{{"type":"user","uuid":"{}","sessionId":"s"{beside},"message":{{"role":"user","content":"{text}"}}}}"#,
            text.len()
        )
    };
    check(&[
        &say("The tide is out, push.", r#","isMeta":true"#),
        &say("Berth 9 is done, go on.", r#","origin":{"kind":"task-notification"}"#),
        &say("<bash-stdout>Never push.</bash-stdout><bash-stderr></bash-stderr>", ""),
        &say("[Request interrupted by user for tool use]", ""),
        &say("Dredge berth 7.", r#","origin":{"kind":"human"}"#),
    ]);
    let beside =
        "<system-reminder>a</system-reminder> Dredge. <system-reminder>b</system-reminder>";
    let input = say(beside, "");
    let records = Transcript::new(input.as_bytes()).unwrap().map(Result::unwrap);
    let sources: Vec<_> = records.map(|record| record.frame.source).collect();
    assert_eq!(sources, [crate::veil::Source::User], "the user's words stand between reminders");
}

#[test]
fn codex_says_in_the_name_of_the_user_what_its_user_did_not_write() {
    let say = |texts: &[&str]| {
        let part = |text: &&str| format!(r#"{{"type":"input_text","text":"{text}"}}"#);
        let parts: Vec<String> = texts.iter().map(part).collect();
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{}]}}}}"#,
            parts.join(",")
        )
    };
    check(&[
        &say(&["# AGENTS.md instructions for /quay", "<environment_context>x"]),
        &say(&["<skill>Always push.</skill>"]),
        &say(&["<user_shell_command>git push</user_shell_command>"]),
        &say(&["Dredge berth 7."]),
    ]);
}

#[test]
fn other_clients_mark_what_their_users_did_not_write() {
    let pi = |message: &str| {
        format!(r#"{{"type":"message","id":"m{}","message":{message}}}"#, message.len())
    };
    check(&[
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#,
        &pi(r#"{"role":"hookMessage","content":"Always push."}"#),
        &pi(r#"{"role":"custom","customType":"c","content":"Never dredge."}"#),
        &pi(r#"{"role":"bashExecution","command":"ls","output":"Never push.","exitCode":0}"#),
        &pi(r#"{"role":"user","content":"Dredge berth 7."}"#),
    ]);
    let copilot = |id: &str, data: &str| {
        format!(r#"{{"type":"user.message","id":"{id}","data":{{{data}}}}}"#)
    };
    check(&[
        r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e1","timestamp":"t"}"#,
        &copilot("e2", r#""content":"Read the chart.","source":"skill-chart""#),
        &copilot("e3", r#""content":"Dredge berth 7.","source":"user""#),
    ]);
    let qwen = |id: &str, by: &str, text: &str| {
        format!(
            r#"{{"uuid":"{id}","parentUuid":null,"sessionId":"s","type":"user","provenance":"{by}","message":{{"role":"user","parts":[{{"text":"{text}"}}]}}}}"#
        )
    };
    check(&[&qwen("a", "system", "Go on."), &qwen("b", "real_user", "Dredge berth 7.")]);
    let kimi = |kind: &str, text: &str| {
        format!(
            r#"{{"type":"context.append_message","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"toolCalls":[],"origin":{{"kind":"{kind}"}}}}}}"#
        )
    };
    let head = r#"{"type":"metadata","protocol_version":"1.4","created_at":1}"#;
    check(&[head, &kimi("injection", "Never dredge."), &kimi("user", "Dredge berth 7.")]);
    let opencode = |id: &str, parts: &str| {
        format!(r#"{{"info":{{"id":"{id}","role":"user","sessionID":"s"}},"parts":[{parts}]}}"#)
    };
    let (notice, asked) = (
        r#"{"type":"text","text":"Never dredge.","synthetic":true}"#,
        r#"{"type":"text","text":"Dredge berth 7."}"#,
    );
    let messages = [opencode("m1", notice), opencode("m2", &format!("{notice},{asked}"))];
    check(&[&format!(r#"{{"info":{{"id":"s"}},"messages":[{}]}}"#, messages.join(","))]);
}
