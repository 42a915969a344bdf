use crate::transcript::testing::{check_wire as check, exchanges};

const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/models/tide-9";
const VERTEX: &str =
    "https://x-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/tide-9";

const ASKED: &str = r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},
    "contents":[{"role":"user","parts":[{"text":"When is high water?"}]}],
    "tools":[{"functionDeclarations":[{"name":"tide","description":"Looks it up."}]}]}"#;

const EVENTS: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"I think ","thought":true}]},"index":0}],"modelVersion":"tide-9-01","responseId":"r1"}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"so.","thought":true},{"text":"I "}]},"index":0}],"usageMetadata":{"promptTokenCount":30,"totalTokenCount":30}}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"look."},{"functionCall":{"id":"c1","name":"tide","args":{"at":"Brest"}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":7,"thoughtsTokenCount":5,"cachedContentTokenCount":10,"toolUsePromptTokenCount":2,"totalTokenCount":54}}

"#;

const GONE_ON: &str = r#"{"system_instruction":{"parts":[{"text":"Be brief."}]},
    "contents":[{"role":"user","parts":[{"text":"When is high water?"}]},
      {"role":"model","parts":[{"text":"I look."},{"function_call":{"id":"c1","name":"tide","args":{"at":"Brest"}},"thought_signature":"c2ln"}]},
      {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"tide","response":{"output":"At four."}}},
        {"functionResponse":{"name":"moon","response":{"phase":"full"}}},
        {"inline_data":{"mime_type":"image/png","data":"AAAA"}},
        {"novelPart":{"x":"kept as it is"}}]}]}"#;

#[test]
fn contents_are_frames_however_their_members_are_spelt() {
    let answer = r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"print(4)"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"no"}},{"text":"At four."}],"role":"model"},"finishReason":"STOP"},{"content":{"parts":[{"text":"At five."}]}}]}"#;
    let stream = format!("{GEMINI}:streamGenerateContent?alt=sse");
    let report = check(
        &[
            (&stream, ASKED, 200, EVENTS),
            (&format!("{VERTEX}:generateContent"), GONE_ON, 200, answer),
        ],
        r#"
1/system
  system "Be brief."
1/user*
  event "When is high water?"
1/agent*
  speech "I look."
  action "" {"toolName":"tide","toolCallId":"c1","parameters":{"at":"Brest"}}
1/user*
  result "At four." {"toolName":"tide","toolCallId":"c1"}
  result "{\"phase\":\"full\"}" {"toolName":"moon"}
  image "[image/png, 3 bytes]"
  opaque "[novelPart, 35 bytes]"
1/agent*
  action "" {"toolName":"codeExecution","parameters":{"language":"PYTHON","code":"print(4)"}}
  result "no" {"toolName":"codeExecution","outcome":"failed"}
  speech "At four.""#,
    );
    let notes: Vec<&str> = report.notes.iter().map(|note| &*note.text).collect();
    assert_eq!(
        notes,
        [
            "an answer has further choices, which are kept beside the first",
            "a part of type \"novelPart\" is not understood, and kept as it is"
        ]
    );
}

#[test]
fn a_stream_is_joined_whether_it_is_of_events_or_a_list() {
    let pieces: Vec<&str> = EVENTS.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let list = format!("[{}]", pieces.join("\n,\n"));
    let uri = format!("{GEMINI}:streamGenerateContent");
    let expected = r#"
1/system
  system "Be brief."
1/user*
  event "When is high water?"
1/agent*
  thought "I think so."
  speech "I look."
  action "" {"toolName":"tide","toolCallId":"c1","parameters":{"at":"Brest"}}"#;
    for stream in [EVENTS, &list] {
        check(&[(&uri, ASKED, 200, stream)], expected);
        assert_eq!(
            exchanges(&[(&uri, ASKED, 200, stream)]),
            [r#"gemini tide-9 - {"input":42,"cacheRead":10,"output":12,"reasoning":5}"#]
        );
    }
    // Cut in the last element: what came before is there.
    let cut = list.get(..list.len() - 20).unwrap();
    assert_eq!(
        exchanges(&[(&uri, ASKED, 200, cut)]),
        [r#"gemini tide-9 broken off: the stream has no end {"input":30}"#]
    );
}

#[test]
fn what_went_wrong_is_said_in_the_words_of_the_provider() {
    let uri = format!("{GEMINI}:streamGenerateContent?alt=sse");
    let begun = EVENTS.split_inclusive("\n\n").next().unwrap();
    let error = "data: {\"error\":{\"code\":503,\"message\":\"Too many ask.\",\"status\":\"UNAVAILABLE\"}}\n\n";
    let blocked =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#;
    let starred = GEMINI.replace("tide-9", "*");
    assert_eq!(
        exchanges(&[
            (&uri, ASKED, 200, &format!("{begun}{error}")),
            (&uri, ASKED, 200, error),
            (&uri, ASKED, 200, blocked),
            (&uri, ASKED, 429, r#"{"error":{"code":429}}"#),
            (&format!("{starred}:streamGenerateContent"), ASKED, 200, EVENTS),
        ]),
        [
            "gemini tide-9 broken off: the stream ended with an error event: 503: Too many ask. null",
            "gemini tide-9 the stream is nothing but an error event: 503: Too many ask. null",
            "gemini tide-9 the prompt was blocked: SAFETY {\"input\":3}",
            "gemini tide-9 status 429 null",
            "gemini tide-9-01 - {\"input\":42,\"cacheRead\":10,\"output\":12,\"reasoning\":5}",
        ]
    );
}

#[test]
fn a_tuned_model_is_called_as_its_answer_calls_it() {
    let uri = "https://x.googleapis.com/v1/projects/p/locations/l/endpoints/70707:generateContent";
    let asked = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#;
    let answer = |more: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"b"}}]}},"finishReason":"STOP"}}]{more}}}"#
        )
    };
    assert_eq!(
        exchanges(&[
            (uri, asked, 200, &answer(r#","modelVersion":"gemini-7""#)),
            (uri, asked, 200, &answer(""))
        ]),
        ["gemini gemini-7 - null", "gemini 70707 - null"]
    );
}

#[test]
fn a_claude_on_vertex_says_where_it_ran() {
    let uri = |place: &str| {
        format!(
            "/v1/projects/*/locations/{place}/publishers/anthropic/models/claude-tide-4%4020260101:rawPredict"
        )
    };
    let asked = r#"{"anthropic_version":"v","messages":[{"role":"user","content":"a"}]}"#;
    let answer = r#"{"role":"assistant","content":[{"type":"text","text":"b"}],"usage":{"input_tokens":4,"output_tokens":3}}"#;
    let [region, anywhere] = [uri("us-east5"), uri("global")];
    assert_eq!(
        exchanges(&[(&region, asked, 200, answer), (&anywhere, asked, 200, answer)]),
        [
            r#"messages claude-tide-4@20260101 - {"input":4,"output":3,"terms":{"endpoint=regional":1}}"#,
            r#"messages claude-tide-4@20260101 - {"input":4,"output":3}"#,
        ]
    );
}

#[test]
fn the_pieces_of_a_call_are_one_call() {
    let uri = format!("{VERTEX}:streamGenerateContent?alt=sse");
    let asked = r#"{"contents":[{"role":"user","parts":[{"text":"Light the pier."}]}]}"#;
    let event = |part: &str, more: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{part}}}]}}{more}}}]}}\n\n"
        )
    };
    let pieces = |pieces: &str| format!(r#"{{"partialArgs":[{pieces}],"willContinue":true}}"#);
    let stream = [
        event(r#"{"name":"light","willContinue":true}"#, ""),
        event(&pieces(r#"{"jsonPath":"$.place","stringValue":"north "}"#), ""),
        event(
            &pieces(
                r#"{"jsonPath":"$.place","stringValue":"pier"},{"jsonPath":"$.lamps[0].watts","numberValue":40}"#,
            ),
            "",
        ),
        event(
            &pieces(
                r#"{"jsonPath":"$['lamps'][1]['is on']","boolValue":true},{"jsonPath":"$.place.x","stringValue":"nowhere"}"#,
            ),
            "",
        ),
        event("{}", ""),
        event(
            r#"{"name":"look","partialArgs":[{"jsonPath":"$.at","nullValue":"NULL_VALUE"}]}"#,
            r#","finishReason":"STOP""#,
        ),
    ];
    check(
        &[(&uri, asked, 200, &stream.concat())],
        r#"
1/user*
  event "Light the pier."
1/agent*
  action "" {"toolName":"light","parameters":{"place":"north pier","lamps":[{"watts":40},{"is on":true}]}}
  action "" {"toolName":"look","parameters":{"at":null}}"#,
    );
}
