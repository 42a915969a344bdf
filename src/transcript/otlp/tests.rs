use crate::{
    json::{self, Object, ObjectExt, Value, object},
    transcript::{Exchange, ImportReport, Provenance, Transcript, testing::check},
};

/// An attribute with a text.
fn text(key: &str, value: &str) -> Value {
    object! { "key": key, "value": object! { "stringValue": value } }.into()
}

fn integer(key: &str, value: u64) -> Value {
    object! { "key": key, "value": object! { "intValue": value.to_string() } }.into()
}

/// A span with these attributes; `at` is its start and its id.
fn span(at: u64, attributes: Vec<Value>) -> Object {
    object! {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": format!("{at:016x}"),
        "name": "chat m",
        "startTimeUnixNano": (at * 1_000_000_000).to_string(),
        "endTimeUnixNano": (at * 1_000_000_000 + 250_000_000).to_string(),
        "attributes": attributes,
    }
}

fn chat(mut attributes: Vec<Value>) -> Vec<Value> {
    attributes.insert(0, text("gen_ai.operation.name", "chat"));
    attributes.insert(1, text("gen_ai.request.model", "m"));
    attributes
}

fn document(kind: &str, items: Vec<Object>) -> String {
    let (resources, scopes) = match kind {
        "spans" => ("resourceSpans", "scopeSpans"),
        _ => ("resourceLogs", "scopeLogs"),
    };
    let mut scope = object! { "scope": object! { "name": "test" } };
    scope.put(kind, items.into_iter().collect::<Value>());
    let mut resource = object! { "resource": Object::new() };
    resource.put(scopes, Value::Array(vec![scope.into()]));
    let mut document = Object::new();
    document.put(resources, Value::Array(vec![resource.into()]));
    Value::from(document).to_string()
}

/// The exchanges, in order of time.
fn recorded(input: &str) -> Vec<Exchange> {
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    transcript.keep_exchanges();
    transcript.by_ref().for_each(|record| drop(record.unwrap()));
    let mut exchanges = transcript.take_exchanges();
    exchanges.sort_by_key(|exchange| exchange.line);
    exchanges
}

fn notes(input: &str) -> ImportReport {
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    transcript.by_ref().for_each(|record| drop(record.unwrap()));
    transcript.report().clone()
}

const INPUT: &str = r#"[{"role":"user","parts":[{"type":"text","content":"Is it open?"}]}]"#;
const OUTPUT: &str = r#"[{"role":"assistant","parts":[{"type":"reasoning","content":"Look."},{"type":"text","content":"Wait."},{"type":"tool_call","id":"c","name":"look","arguments":{"door":7}}],"finish_reason":"tool_call"}]"#;

#[test]
fn a_span_with_messages_is_an_exchange_with_all_that_it_says() {
    let span = span(
        7,
        chat(vec![
            text("gen_ai.provider.name", "openai"),
            text("gen_ai.conversation.id", "talk"),
            text("gen_ai.system_instructions", r#"[{"type":"text","content":"Be brief."}]"#),
            text("gen_ai.input.messages", INPUT),
            text("gen_ai.output.messages", OUTPUT),
            text(
                "gen_ai.tool.definitions",
                r#"[{"type":"function","name":"look","description":"d","parameters":{"type":"object"}}]"#,
            ),
            integer("gen_ai.request.max_tokens", 9),
            integer("gen_ai.usage.input_tokens", 100),
            integer("gen_ai.usage.cache_read.input_tokens", 60),
            integer("gen_ai.usage.output_tokens", 5),
            text("gen_ai.response.id", "r1"),
            text("gen_ai.unheard_of", "x"),
        ]),
    );
    let input = document("spans", vec![span]);
    check(
        "otlp",
        &input,
        r#"
talk/system
  system "Be brief."
talk/user*
  event "Is it open?"
talk/agent*
  thought "Look."
  speech "Wait."
  action "" {"toolName":"look","toolCallId":"c","parameters":{"door":7}}"#,
    );
    let [exchange] = &recorded(&input)[..] else { panic!() };
    assert!(exchange.provenance == Provenance::Logged && !exchange.is_unlisted);
    assert_eq!(exchange.time.as_deref(), Some("1970-01-01T00:00:07Z"));
    assert_eq!(exchange.duration_ms, Some(250));
    let usage = exchange.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (Some(100), Some(60), Some(5)));
    assert_eq!(
        &*exchange.request,
        r#"{"model":"m","max_tokens":9,"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}}],"system":"Be brief.","messages":[{"role":"user","content":"Is it open?"}]}"#
    );
}

#[test]
fn anthropics_are_written_as_messages_and_structured_values_are_read() {
    let part = |kind: &str, key: &str, value: &str| {
        format!(
            r#"{{"kvlistValue":{{"values":[{{"key":"type","value":{{"stringValue":"{kind}"}}}},{{"key":"{key}","value":{{"stringValue":"{value}"}}}}]}}}}"#
        )
    };
    let messages = format!(
        r#"{{"arrayValue":{{"values":[{{"kvlistValue":{{"values":[{{"key":"role","value":{{"stringValue":"user"}}}},{{"key":"parts","value":{{"arrayValue":{{"values":[{},{}]}}}}}}]}}}}]}}}}"#,
        part("text", "content", "a"),
        part("text", "content", "b"),
    );
    let messages = json::read(messages.as_bytes()).unwrap();
    let input = document(
        "spans",
        vec![span(
            1,
            chat(vec![
                text("gen_ai.system", "Anthropic"),
                object! { "key": "gen_ai.input.messages", "value": messages }.into(),
            ]),
        )],
    );
    assert_eq!(
        &*recorded(&input)[0].request,
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#
    );
}

#[test]
fn events_in_logs_belong_to_the_span_that_they_name_whichever_came_first() {
    let log = |name: &str, body: &str| {
        let mut log = object! {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": format!("{:016X}", 10),
            "eventName": name,
        };
        log.put("body", json::read(body.as_bytes()).unwrap());
        log
    };
    let said = |text: &str| {
        format!(
            r#"{{"kvlistValue":{{"values":[{{"key":"content","value":{{"stringValue":"{text}"}}}}]}}}}"#
        )
    };
    let choice = format!(
        r#"{{"kvlistValue":{{"values":[{{"key":"index","value":{{"intValue":"0"}}}},{{"key":"message","value":{}}}]}}}}"#,
        said("Yes.")
    );
    let logs = document(
        "logRecords",
        vec![
            log("gen_ai.system.message", &said("S")),
            log("gen_ai.user.message", &said("Open?")),
            log("gen_ai.choice", &choice),
            log("other", &said("no")),
        ],
    );
    let spans =
        document("spans", vec![span(10, chat(vec![integer("gen_ai.usage.input_tokens", 3)]))]);
    for input in [format!("{logs}\n{spans}\n"), format!("{spans}\n{logs}\n")] {
        let report = check(
            "otlp",
            &input,
            r#"
1/system*
  system "S"
1/user*
  event "Open?"
1/agent*
  speech "Yes.""#,
        );
        assert_eq!(report.skipped.get("log record of no model"), Some(&1));
        assert_eq!(recorded(&input)[0].usage.as_ref().unwrap().input, Some(3));
    }
}

#[test]
fn spans_are_put_in_order_of_time_and_conversations_continue() {
    let of = |at: u64, input: &str| span(at, chat(vec![text("gen_ai.input.messages", input)]));
    let longer = format!(
        r#"{},{{"role":"assistant","parts":[{{"type":"text","content":"Yes."}}]}},{{"role":"tool","parts":[{{"type":"tool_call_response","id":"x","response":{{"a":1}}}}]}}]"#,
        &INPUT[..INPUT.len() - 1]
    );
    check(
        "otlp",
        &document("spans", vec![of(9, &longer), of(2, INPUT)]),
        r#"
1/user*
  event "Is it open?"
1/agent*
  speech "Yes."
1/environment*
  result "{\"a\":1}" {"toolCallId":"x"}"#,
    );
}

#[test]
fn a_call_without_messages_counts_in_the_sums_alone() {
    let input = document(
        "spans",
        vec![
            span(1, chat(vec![integer("gen_ai.usage.input_tokens", 100)])),
            span(2, chat(vec![text("gen_ai.input.messages", INPUT)])),
        ],
    );
    let [unlisted, listed] = &recorded(&input)[..] else { panic!() };
    assert!(unlisted.is_unlisted && !listed.is_unlisted);
    assert_eq!(unlisted.usage.as_ref().unwrap().input, Some(100));
    assert_eq!(unlisted.model.as_deref(), Some("m"));
}

#[test]
fn messages_without_words_were_not_captured() {
    let empty = r#"[{"role":"user","parts":[]},{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f"}]}]"#;
    let input = document(
        "spans",
        vec![span(
            1,
            chat(vec![
                text("gen_ai.input.messages", empty),
                integer("gen_ai.usage.input_tokens", 100),
            ]),
        )],
    );
    let [unlisted] = &recorded(&input)[..] else { panic!() };
    assert!(unlisted.is_unlisted);
    assert_eq!(notes(&input).skipped.get("call without messages"), Some(&1));
}

#[test]
fn what_is_no_call_is_passed_over_and_counted() {
    let named = |name: &str| {
        vec![text("gen_ai.operation.name", name), text("gen_ai.input.messages", INPUT)]
    };
    let report = notes(&document(
        "spans",
        vec![
            span(1, named("invoke_agent")),
            span(2, named("execute_tool")),
            span(3, vec![text("http.request.method", "GET")]),
            span(4, chat(Vec::new())),
        ],
    ));
    assert_eq!(
        format!("{:?}", report.skipped),
        r#"{"call without messages and usage": 1, "execute_tool": 1, "invoke_agent": 1, "span of no model": 1}"#
    );
}

#[test]
fn a_text_that_was_cut_is_told_and_not_guessed() {
    let cut = &INPUT[..20];
    let of = |attributes: Vec<Value>| document("spans", vec![span(1, chat(attributes))]);
    let input =
        of(vec![text("gen_ai.input.messages", cut), integer("gen_ai.usage.input_tokens", 100)]);
    let report = notes(&input);
    assert_eq!(
        report.notes[0].text,
        "gen_ai.input.messages is no whole JSON: it ends after 20 characters, as where a limit cut it"
    );
    let [unlisted] = &recorded(&input)[..] else { panic!() };
    assert!(unlisted.is_unlisted);
    let input = of(vec![
        text("gen_ai.input.messages", INPUT),
        text("gen_ai.output.messages", &OUTPUT[..40]),
    ]);
    assert_eq!(notes(&input).noted, 1);
    let [exchange] = &recorded(&input)[..] else { panic!() };
    assert_eq!((&exchange.failure, exchange.answer()), (&None, None));
}

#[test]
fn a_span_that_comes_twice_is_one() {
    let once = || span(1, chat(vec![text("gen_ai.input.messages", INPUT)]));
    let other = span(1, chat(vec![text("gen_ai.input.messages", &INPUT.replace("open", "shut"))]));
    let report = notes(&document("spans", vec![once(), once()]));
    assert_eq!((report.skipped.get("repeated span"), report.noted), (Some(&1), 0));
    let input = document("spans", vec![once(), other]);
    assert_eq!(notes(&input).noted, 1);
    check("otlp", &input, "1/user*\n  event \"Is it shut?\"");
}

#[test]
fn a_call_that_failed_says_why() {
    let mut failed = span(
        1,
        chat(vec![text("gen_ai.input.messages", INPUT), text("error.type", "RateLimitError")]),
    );
    failed.put("status", object! { "code": 2_u64, "message": "slow down" });
    let [exchange] = &recorded(&document("spans", vec![failed]))[..] else { panic!() };
    assert_eq!(exchange.failure.as_deref(), Some("error RateLimitError: slow down"));
}

#[test]
fn damaged_spans_are_unknown_and_end_nothing() {
    let input = r#"{"resourceSpans":[7,{"scopeSpans":[{"spans":[3,{"traceId":5,"attributes":[1,{"key":2},{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[{"stringValue":"x"}]}}}]}]}]}]}"#;
    let report = notes(input);
    assert_eq!(report.unknown_records, 1);
    let report = notes("{\"resourceSpans\":[]}\n{\"resourceMetrics\":[]}\n{\"a\":1}\n");
    assert_eq!((report.unknown_records, report.skipped.get("resourceMetrics")), (1, Some(&1)));
}

#[test]
fn a_span_that_comes_again_after_its_log_records_is_the_same() {
    let usage = || span(1, chat(vec![integer("gen_ai.usage.input_tokens", 3)]));
    let log = object! {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": format!("{:016x}", 1),
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": vec![text("gen_ai.input.messages", INPUT)],
    };
    let logs = document("logRecords", vec![log]);
    let span = document("spans", vec![usage()]);
    for lines in [[&span, &logs, &span], [&logs, &span, &span], [&span, &span, &logs]] {
        let input = lines.map(String::as_str).join("\n");
        let report = check("otlp", &input, "1/user*\n  event \"Is it open?\"");
        assert_eq!((report.skipped.get("repeated span"), report.noted), (Some(&1), 0));
    }
}

#[test]
fn of_a_span_that_comes_again_with_other_events_the_last_holds() {
    let of = |said: &str, tokens: u64| {
        let mut span = span(1, chat(vec![integer("gen_ai.usage.input_tokens", tokens)]));
        let event = object! {
            "name": "gen_ai.user.message",
            "attributes": vec![text("content", said)],
        };
        span.put("events", Value::Array(vec![event.into()]));
        span
    };
    for tokens in [1, 2] {
        let input = document("spans", vec![of("first", 1), of("last", tokens)]);
        let report = check("otlp", &input, "1/user*\n  event \"last\"");
        assert_eq!((report.skipped.get("repeated span"), report.noted), (None, 1));
        assert_eq!(recorded(&input)[0].usage.as_ref().unwrap().input, Some(tokens));
    }
}

#[test]
fn a_request_that_nests_too_deep_is_read_again_and_told() {
    let of = |levels: usize| {
        let arguments = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let messages = format!(
            r#"[{{"role":"user","parts":[{{"type":"text","content":"a"}}]}},{{"role":"assistant","parts":[{{"type":"tool_call","id":"c","name":"f","arguments":{arguments}}}]}}]"#
        );
        let attributes = vec![
            text("gen_ai.provider.name", "anthropic"),
            text("gen_ai.input.messages", &messages),
        ];
        document("spans", vec![span(1, chat(attributes))])
    };
    for (levels, noted) in [(100, 0), (123, 0), (124, 1)] {
        let input = of(levels);
        let report = notes(&input);
        assert_eq!(report.noted, noted, "{levels}");
        let [exchange] = &recorded(&input)[..] else { panic!() };
        let request = json::read(exchange.request.as_bytes()).unwrap();
        assert_eq!(request.get("messages").and_then(Value::as_array).unwrap().len(), 2);
        assert_eq!(exchange.request.contains(r#"["[1]"]"#), noted == 1);
    }
    assert_eq!(
        notes(&of(124)).notes[0].text,
        "the request nests deeper than 128 levels: what is deeper is kept as JSON text"
    );
}

#[test]
fn sessions_of_one_conversation_get_no_name_of_another() {
    let of = |at: u64, id: Option<&str>, said: &str| {
        let mut attributes =
            chat(vec![text("gen_ai.input.messages", &INPUT.replace("Is it open?", said))]);
        attributes.extend(id.map(|id| text("gen_ai.conversation.id", id)));
        span(at, attributes)
    };
    let input = document(
        "spans",
        vec![
            of(1, Some("a"), "one"),
            of(2, Some("a/2"), "two"),
            of(3, Some("a"), "three"),
            of(4, Some("a"), "four"),
        ],
    );
    let report = check(
        "otlp",
        &input,
        r#"
a/user*
  event "one"
a/3/user*
  event "three"
a/4/user*
  event "four"
a/2/user*
  event "two""#,
    );
    assert_eq!(report.sessions, 4);
    let input = document(
        "spans",
        vec![of(1, Some("7"), "one"), of(2, Some("unnamed"), "two"), of(3, None, "three")],
    );
    check(
        "otlp",
        &input,
        r#"
7/user*
  event "one"
unnamed/user*
  event "two"
unnamed/2/user*
  event "three""#,
    );
}

#[test]
fn a_list_of_another_shape_is_told() {
    let of = |input: &str, output: &str, tools: &str| {
        let attributes = vec![
            text("gen_ai.input.messages", input),
            text("gen_ai.output.messages", output),
            text("gen_ai.tool.definitions", tools),
            integer("gen_ai.usage.input_tokens", 3),
        ];
        let report = notes(&document("spans", vec![span(1, chat(attributes))]));
        report.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(of(INPUT, OUTPUT, "[]"), [""; 0]);
    assert_eq!(of(INPUT, "null", "null"), [""; 0]);
    assert_eq!(
        of(INPUT, r#"{"role":"assistant"}"#, "7"),
        [
            "gen_ai.tool.definitions is a number, not an array: left out",
            "gen_ai.output.messages is an object, not an array: left out",
        ]
    );
    assert_eq!(
        of(r#"{"role":"user"}"#, OUTPUT, "[]"),
        ["gen_ai.input.messages is an object, not an array: left out"]
    );
}

#[test]
fn the_details_of_an_operation_may_stand_in_an_event_of_its_span() {
    let mut span = span(7, chat(vec![integer("gen_ai.usage.input_tokens", 5)]));
    let details =
        vec![text("gen_ai.input.messages", INPUT), text("gen_ai.output.messages", OUTPUT)];
    let event = object! {
        "name": "gen_ai.client.inference.operation.details",
        "attributes": details.into_iter().collect::<Value>(),
    };
    span.put("events", Value::Array(vec![event.into()]));
    let exchanges = recorded(&document("spans", vec![span]));
    let [exchange] = exchanges.as_slice() else { panic!("{exchanges:?}") };
    assert!(exchange.request.contains("Is it open?"), "{}", exchange.request);
    assert!(exchange.response.as_ref().unwrap().contains("Wait."));
    assert_eq!(exchange.usage.as_ref().unwrap().input, Some(5));
}

#[test]
fn a_log_record_that_was_exported_twice_is_one_message() {
    let log = |name: &str, at: u64, content: &str| {
        object! {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": format!("{:016x}", 7),
            "timeUnixNano": at.to_string(),
            "eventName": name,
            "body": object! { "kvlistValue": object! { "values": Value::Array(vec![text("content", content)]) } },
        }
    };
    let asked = || log("gen_ai.user.message", 1, "Is it open?");
    let again = log("gen_ai.user.message", 2, "Is it open?");
    let span = || document("spans", vec![span(7, chat(vec![]))]);
    let messages = |logs: Vec<Object>| {
        let input = format!("{}\n{}", document("logRecords", logs), span());
        let exchanges = recorded(&input);
        let request = json::read(exchanges[0].request.as_bytes()).unwrap();
        request.get("messages").and_then(Value::as_array).map(<[Value]>::len)
    };
    assert_eq!(messages(vec![asked(), asked()]), Some(1));
    // What is said again at another time is said twice.
    assert_eq!(messages(vec![asked(), again, asked()]), Some(2));
}

#[test]
fn spans_of_the_ai_sdk_are_calls_with_their_messages_and_tools() {
    let messages = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Is it open?"}]},
        {"role":"assistant","content":[{"type":"reasoning","text":"Look."},{"type":"tool-call","toolCallId":"c","toolName":"look","input":{"door":7}}]},
        {"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"type":"text","value":"ajar"}}]}]"#;
    let tool =
        r#"{"type":"function","name":"look","description":"d","inputSchema":{"type":"object"}}"#;
    let tools = object! { "key": "ai.prompt.tools", "value": object! { "arrayValue": object! { "values": Value::Array(vec![object! { "stringValue": tool }.into()]) } } };
    let calls =
        r#"[{"toolCallType":"function","toolCallId":"d","toolName":"look","args":"{\"door\":8}"}]"#;
    let call = span(
        8,
        vec![
            text("operation.name", "ai.generateText.doGenerate"),
            text("ai.operationId", "ai.generateText.doGenerate"),
            text("ai.model.id", "m"),
            text("ai.telemetry.metadata.sessionId", "talk"),
            text("ai.prompt.messages", messages),
            tools.into(),
            text("ai.response.text", "Wait."),
            text("ai.response.toolCalls", calls),
            text("ai.response.finishReason", "tool-calls"),
            integer("ai.usage.inputTokens", 50),
            integer("ai.usage.cachedInputTokens", 30),
            integer("ai.usage.outputTokens", 9),
        ],
    );
    // What holds the call says it again, and so does the call of the tool.
    let whole = span(
        7,
        vec![
            text("ai.operationId", "ai.generateText"),
            text("ai.prompt", r#"{"prompt":"Is it open?"}"#),
            text("ai.response.text", "Wait."),
            integer("ai.usage.inputTokens", 50),
        ],
    );
    let of_tool =
        span(9, vec![text("ai.operationId", "ai.toolCall"), text("ai.toolCall.name", "look")]);
    let exchanges = recorded(&document("spans", vec![whole, call, of_tool]));
    let [exchange] = exchanges.as_slice() else { panic!("{exchanges:?}") };
    assert_eq!((&*exchange.session, exchange.model.as_deref()), ("talk", Some("m")));
    let usage = exchange.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (Some(50), Some(30), Some(9)));
    for says in [
        "Be brief.",
        "Is it open?",
        "ajar",
        "Look.",
        r#""tool_call_id":"c""#,
        r#""parameters":{"type":"object"}"#,
    ] {
        assert!(exchange.request.contains(says), "{says}: {}", exchange.request);
    }
    let response = exchange.response.as_ref().unwrap();
    for says in ["Wait.", r#"{\"door\":8}"#, "tool-calls"] {
        assert!(response.contains(says), "{says}: {response}");
    }
}
