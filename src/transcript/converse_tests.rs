use crate::transcript::testing::{check_wire as check, exchanges};
#[cfg(feature = "record")]
use crate::{
    json::{self, Value, object},
    transcript::{event_stream::tests::frame, testing},
};

const URI: &str =
    "https://bedrock-runtime.x.amazonaws.com/model/us.tide.tide-7-v1%3A0/converse-stream";

const ASKED: &str = r#"{"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],
    "messages":[{"role":"user","content":[{"text":"What is this?"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}],
    "toolConfig":{"tools":[{"toolSpec":{"name":"look","inputSchema":{"json":{}}}}],"toolChoice":{"auto":{}}},
    "inferenceConfig":{"maxTokens":99}}"#;

const EVENTS: &str = r#"data: {"messageStart":{"role":"assistant"}}

data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"I think "}}}}

data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"so."}}}}

data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}}

data: {"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"I "}}}

data: {"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"look."}}}

data: {"contentBlockStart":{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"c1","name":"look"}}}}

data: {"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"at\":"}}}}

data: {"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"\"it\"}"}}}}

data: {"messageStop":{"stopReason":"tool_use"}}

data: {"metadata":{"usage":{"inputTokens":30,"outputTokens":7,"totalTokens":57,"cacheReadInputTokens":15,"cacheWriteInputTokens":5},"metrics":{"latencyMs":9}}}

"#;

const GONE_ON: &str = r#"{"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],
    "messages":[{"role":"user","content":[{"text":"What is this?"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]},
      {"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"I think so.","signature":"c2ln"}}},{"text":"I look."},{"toolUse":{"toolUseId":"c1","name":"look","input":{"at":"it"}}}]},
      {"role":"user","content":[{"toolResult":{"toolUseId":"c1","status":"error","content":[{"text":"It is dark."},{"json":{"lux":0}}]}},{"novelPart":{"x":"kept as it is"}}]}]}"#;

#[test]
fn blocks_are_facets_and_a_stream_is_joined() {
    let answer = r#"{"output":{"message":{"role":"assistant","content":[{"text":"A door."}]}},"stopReason":"end_turn","usage":{"inputTokens":40,"outputTokens":3,"totalTokens":43}}"#;
    let report = check(
        &[(URI, ASKED, 200, EVENTS), (&URI.replace("-stream", ""), GONE_ON, 200, answer)],
        r#"
1/system
  system "Be brief."
1/user*
  event "What is this?"
  image "[image/png, 3 bytes]"
1/agent*
  thought "I think so."
  speech "I look."
  action "" {"toolName":"look","toolCallId":"c1","parameters":{"at":"it"}}
1/user*
  result "" {"toolName":"look","toolCallId":"c1","outcome":"failed"}
    result "It is dark."
    result "{\"lux\":0}"
  opaque "[novelPart, 35 bytes]"
1/agent*
  speech "A door.""#,
    );
    assert_eq!(
        report.notes[0].text,
        "a part of type \"novelPart\" is not understood, and kept as it is"
    );
    assert_eq!(
        exchanges(&[(URI, ASKED, 200, EVENTS)]),
        [r#"converse us.tide.tide-7-v1:0 - {"input":50,"cacheRead":15,"cacheWrite":5,"output":7}"#]
    );
}

#[test]
fn a_stream_alone_gives_the_whole_answer() {
    check(
        &[(URI, ASKED, 200, EVENTS)],
        r#"
1/system
  system "Be brief."
1/user*
  event "What is this?"
  image "[image/png, 3 bytes]"
1/agent*
  thought "I think so."
  speech "I look."
  action "" {"toolName":"look","toolCallId":"c1","parameters":{"at":"it"}}"#,
    );
    let (begun, _) = EVENTS.split_once("data: {\"messageStop\"").unwrap();
    let error = format!(
        "{begun}data: {{\"type\":\"error\",\"error\":{{\"type\":\"throttlingException\",\"message\":\"Too many ask.\"}}}}\n\n"
    );
    assert_eq!(
        exchanges(&[(URI, ASKED, 200, begun), (URI, ASKED, 200, &error), (URI, ASKED, 403, "{}")]),
        [
            "converse us.tide.tide-7-v1:0 broken off: the stream has no end null",
            "converse us.tide.tide-7-v1:0 broken off: the stream ended with an error event: throttlingException: Too many ask. null",
            "converse us.tide.tide-7-v1:0 status 403 null",
        ]
    );
}

#[test]
fn amazons_own_models_have_the_same_messages_where_they_are_invoked() {
    let uri =
        "https://bedrock-runtime.x.amazonaws.com/model/tide.own-v1/invoke-with-response-stream";
    let found = exchanges(&[(uri, ASKED, 200, EVENTS)]);
    assert!(found[0].starts_with("converse tide.own-v1 - {\"input\":50"), "{found:?}");
}

#[test]
fn amazons_own_models_are_known_by_their_names_and_what_is_kept_by_its_variables() {
    let at = |model: &str, end: &str| format!("https://b.amazonaws.com/model/{model}/{end}");
    let plain = r#"{"messages":[{"role":"user","content":[{"text":"a"}]}]}"#;
    let kept = r#"{"promptVariables":{"tide":{"text":"high"}}}"#;
    let answer = r#"{"output":{"message":{"role":"assistant","content":[{"text":"A door."}]}},"usage":{"inputTokens":4,"outputTokens":3}}"#;
    let arn = "arn%3Aaws%3Abedrock%3Ax%3A1%3Aprompt%2FTIDE%3a1";
    let [own, kept_at] = [at("eu.amazon.nova-7-v1%3A0", "invoke"), at(arn, "converse")];
    assert_eq!(
        exchanges(&[(&own, plain, 200, answer), (&kept_at, kept, 200, answer)]),
        [
            r#"converse eu.amazon.nova-7-v1:0 - {"input":4,"output":3}"#,
            r#"converse arn:aws:bedrock:x:1:prompt/TIDE:1 - {"input":4,"output":3}"#,
        ]
    );
}

#[test]
fn a_stream_of_an_invoked_model_that_is_nothing_but_an_exception_is_a_failed_request() {
    let uri = "https://b.amazonaws.com/model/anthropic.claude-7/invoke-with-response-stream";
    let asked = r#"{"anthropic_version":"v","messages":[{"role":"user","content":"a"}]}"#;
    let thrown = "data: {\"type\":\"error\",\"error\":{\"type\":\"throttlingException\",\"message\":\"Too many.\"}}\n\n";
    assert_eq!(
        exchanges(&[(uri, asked, 200, thrown)]),
        [
            "messages anthropic.claude-7 the stream is nothing but an error event: throttlingException: Too many. null"
        ]
    );
}

#[test]
fn a_text_that_a_guardrail_looks_at_is_a_text() {
    let guarded = r#"{"guardContent":{"text":{"text":"Be brief.","qualifiers":["query"]}}}"#;
    let asked = format!(
        r#"{{"system":[{guarded}],"messages":[{{"role":"user","content":[{guarded},{{"guardContent":{{"image":{{}}}}}}]}}]}}"#
    );
    check(
        &[(&URI.replace("-stream", ""), &asked, 400, "{}")],
        r#"
1/system
  system "Be brief."
1/user*
  event "Be brief."
  opaque "[guardContent, 29 bytes]""#,
    );
}

#[cfg(feature = "record")]
#[test]
fn frames_of_an_archive_are_read_as_their_events() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let framed = |event: &str| {
        let event = event.strip_prefix("data: ").unwrap();
        let event = json::read(event.as_bytes()).unwrap();
        let (kind, payload) = event.as_object().unwrap().iter().next().unwrap();
        frame(&[(":event-type", kind), (":message-type", "event")], &payload.to_string())
    };
    let frames: Vec<u8> = EVENTS.split_terminator("\n\n").flat_map(framed).collect();
    let content = object! { "encoding": "base64", "text": STANDARD.encode(&frames) };
    let request = object! { "method": "POST", "url": URI, "postData": object! { "text": ASKED } };
    let response = object! { "status": 200_u64, "content": content };
    let entries = vec![Value::from(object! { "request": request, "response": response })];
    let archive: Value = object! { "log": object! { "entries": entries } }.into();
    testing::check(
        "har",
        &archive.to_string(),
        r#"
1/system
  system "Be brief."
1/user*
  event "What is this?"
  image "[image/png, 3 bytes]"
1/agent*
  thought "I think so."
  speech "I look."
  action "" {"toolName":"look","toolCallId":"c1","parameters":{"at":"it"}}"#,
    );
}
