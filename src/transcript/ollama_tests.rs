use crate::{
    json::{Value, object},
    transcript::testing::{check_wire as check, exchanges},
};

const CHAT: &str = "http://127.0.0.1:11434/api/chat";
const GENERATE: &str = "http://127.0.0.1:11434/api/generate";

const ASKED: &str = r#"{"model":"tide:7b","messages":[{"role":"system","content":"Be brief."},
    {"role":"user","content":"What is this?","images":["AAAA"]}],
    "tools":[{"type":"function","function":{"name":"look","parameters":{}}}]}"#;

const LINES: &str = r#"{"model":"tide:7b","message":{"role":"assistant","content":"","thinking":"I think "},"done":false}
{"model":"tide:7b","message":{"role":"assistant","content":"","thinking":"so."},"done":false}
{"model":"tide:7b","message":{"role":"assistant","content":"I "},"done":false}
{"model":"tide:7b","message":{"role":"assistant","content":"look.","tool_calls":[{"function":{"name":"look","arguments":{"at":"it"}}}]},"done":false}
{"model":"tide:7b","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"prompt_eval_count":26,"eval_count":9}
"#;

#[test]
fn messages_have_images_and_reasoning_of_their_own_and_lines_are_joined() {
    let gone_on = r#"{"model":"tide:7b","messages":[{"role":"system","content":"Be brief."},
        {"role":"user","content":"What is this?","images":["AAAA"]},
        {"role":"assistant","content":"I look.","tool_calls":[{"function":{"name":"look","arguments":{"at":"it"}}}]},
        {"role":"tool","tool_name":"look","content":"A door."}]}"#;
    let answer = r#"{"model":"tide:7b","message":{"role":"assistant","content":"A door."},"done":true,"prompt_eval_count":40,"eval_count":3}"#;
    check(
        &[(CHAT, ASKED, 200, LINES), (CHAT, gone_on, 200, answer)],
        r#"
1/system*
  system "Be brief."
1/user*
  event "What is this?"
  image "[image, 3 bytes]"
1/agent*
  speech "I look."
  action "" {"toolName":"look","parameters":{"at":"it"}}
1/environment*
  result "A door." {"toolName":"look"}
1/agent*
  speech "A door.""#,
    );
    assert_eq!(
        exchanges(&[(CHAT, ASKED, 200, LINES), (CHAT, gone_on, 200, answer)]),
        [
            r#"ollama tide:7b - {"input":26,"output":9}"#,
            r#"ollama tide:7b - {"input":40,"output":3}"#
        ]
    );
}

#[test]
fn a_prompt_alone_is_a_message_of_the_user() {
    let asked = r#"{"model":"tide:7b","prompt":"High water?","system":"Be brief."}"#;
    let lines = "{\"response\":\"At \",\"done\":false}\n{\"response\":\"four.\",\"done\":true,\"prompt_eval_count\":8,\"eval_count\":2}\n";
    check(
        &[(GENERATE, asked, 200, lines)],
        r#"
1/system
  system "Be brief."
1/user*
  event "High water?"
1/agent*
  speech "At four.""#,
    );
    assert_eq!(
        exchanges(&[(GENERATE, asked, 200, lines)]),
        [r#"generate tide:7b - {"input":8,"output":2}"#]
    );
}

#[test]
fn a_stream_that_broke_off_says_why() {
    let (begun, _) = LINES
        .split_once("{\"model\":\"tide:7b\",\"message\":{\"role\":\"assistant\",\"content\":\"I \"")
        .unwrap();
    let error = format!("{begun}{{\"error\":\"out of memory\"}}\n");
    assert_eq!(
        exchanges(&[
            (CHAT, ASKED, 200, begun),
            (CHAT, ASKED, 200, &error),
            (CHAT, ASKED, 404, "{\"error\":\"no such model\"}"),
        ]),
        [
            "ollama tide:7b broken off: the stream has no end null",
            "ollama tide:7b broken off: the stream ended with an error event: out of memory null",
            "ollama tide:7b status 404 null",
        ]
    );
}

#[test]
fn a_path_like_ollamas_at_another_host_is_told_by_its_body() {
    let elsewhere = "https://models.example/api/chat";
    assert_eq!(exchanges(&[(elsewhere, ASKED, 200, LINES)]).len(), 1);
    let other = r#"{"id":"1","messages":[{"role":"user","parts":[]}]}"#;
    assert_eq!(exchanges(&[(elsewhere, other, 200, "{}")]).len(), 0);
}

#[test]
fn what_loads_a_model_or_lets_it_go_is_no_request_to_it() {
    let gone = r#"{"model":"tide:7b","prompt":"","keep_alive":0}"#;
    let loaded = r#"{"model":"tide:7b","messages":[]}"#;
    let image = r#"{"model":"tide:7b","prompt":"","images":["AAAA"]}"#;
    let answer = r#"{"model":"tide:7b","response":"","done":true,"done_reason":"unload"}"#;
    let all = [(GENERATE, gone, 200, answer), (CHAT, loaded, 200, answer)];
    let kept = |uri: &str, asked: &str| {
        let record =
            object! { "uri": uri, "request": asked, "status": 200_u64, "response": answer };
        format!("1/environment\n  unknown \"\" {}\n", Value::from(record))
    };
    let report = check(&all, &[kept(GENERATE, gone), kept(CHAT, loaded)].concat());
    let says = "a request to load a model or to let it go: none answers it";
    assert_eq!(report.unknown[0].reason, says);
    assert_eq!(exchanges(&all), [] as [&str; 0]);
    assert_eq!(exchanges(&[(GENERATE, image, 200, answer)]), ["generate tide:7b - null"]);
}
