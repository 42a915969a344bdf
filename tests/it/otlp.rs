//! Every recording that is written as OTLP JSON is read back with the same requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    sync::Arc,
};

use afterimage::{
    id::Millis,
    otlp::{OtlpReport, OtlpWriter, SCHEMA_URL, SpanMessages},
    request::{Exchange, Recording, Request},
    tokens::Chars4,
    transcript::{Api, Transcript},
};
use serde_json::Value;

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
/// Of a longer recording its beginning is looked at: what is written grows with the square.
const MOST_FRAMES: usize = 100;

fn recording(mut transcript: Transcript<impl std::io::BufRead>, most: usize) -> Recording {
    transcript.keep_exchanges();
    let mut recording = Recording::new(transcript.format(), Arc::new(Chars4));
    for record in transcript.by_ref().take(most) {
        recording.push(record.unwrap(), Millis::new(0)).unwrap();
    }
    recording.finish(transcript.take_exchanges());
    recording
}

/// Whole seconds of times in UTC, without a calendar: they only have to be times.
fn moment(text: &str) -> Option<u64> {
    let digits: String = text.chars().take(19).filter(char::is_ascii_digit).collect();
    (digits.len() == 14).then(|| digits.parse().ok())?
}

/// The same, a span on each line.
fn written_by_line(recording: &Recording) -> String {
    let mut lines = Vec::new();
    let mut writer = OtlpWriter::by_line(&mut lines);
    writer.add(recording, |_| true, moment).unwrap();
    writer.finish().unwrap();
    String::from_utf8(lines).unwrap()
}

fn written(recording: &Recording) -> (String, OtlpReport) {
    written_with(recording, SpanMessages::All)
}

fn written_with(recording: &Recording, messages: SpanMessages) -> (String, OtlpReport) {
    let mut document = Vec::new();
    let mut writer = OtlpWriter::new(&mut document).unwrap().with_messages(messages);
    writer.add(recording, |_| true, moment).unwrap();
    let report = writer.finish().unwrap();
    (String::from_utf8(document).unwrap(), report)
}

/// What is said in a request, by rules of its own for each API: the role, the kind, and the words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line(String, &'static str, String);

struct Lines<'i> {
    lines: Vec<Line>,
    items: &'i Items,
}

/// What is known of the items of the Responses API that only OpenAI's own tools have. What these
/// hold is in other members for each tool: that the calls are there is compared.
#[derive(Default)]
struct Items {
    /// Whether there are items at all.
    are_items: bool,
    /// The ids of the calls of such tools.
    providers: HashSet<String>,
}

/// Whether an item is a call of one of OpenAI's own tools.
fn is_providers_call(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or("");
    kind.ends_with("_call") && kind != "function_call" && kind != "custom_tool_call"
}

fn id_of(item: &Value) -> &Value {
    if item["call_id"].is_string() { &item["call_id"] } else { &item["id"] }
}

impl Items {
    fn of(recording: &Recording) -> Self {
        let mut found = Self::default();
        for exchange in recording.exchanges().iter().filter(|of| of.api == Api::Responses) {
            found.are_items = true;
            let request = recording.request(exchange.number).unwrap();
            let body: Value = serde_json::from_str(request.body()).unwrap();
            let items = body["input"].as_array().into_iter().flatten();
            let ids = items.filter(|item| is_providers_call(item)).map(id_of);
            found.providers.extend(ids.map(|id| id.as_str().unwrap_or("").to_owned()));
        }
        found
    }

    fn is_providers(&self, id: &Value) -> bool {
        self.are_items && self.providers.contains(id.as_str().unwrap_or(""))
    }
}

impl Lines<'_> {
    fn put(&mut self, role: &str, kind: &'static str, words: impl Into<String>) {
        let words = words.into();
        // What says nothing need not come back.
        let is_empty = kind == "text" && words.is_empty();
        let is_passed_over = is_empty || kind == "block" && self.items.are_items;
        if !is_passed_over {
            self.lines.push(Line(role.to_owned(), kind, words));
        }
    }

    fn call(&mut self, id: &Value, name: &Value, arguments: &Value) {
        if self.items.is_providers(id) {
            return self.put("assistant", "providers call", id.as_str().unwrap_or(""));
        }
        let parsed = match arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or(arguments.clone()),
            other => other.clone(),
        };
        self.put("assistant", "call", format!("{} {} {parsed}", id.as_str().unwrap_or(""), name));
    }

    fn result(&mut self, id: &Value, content: &Value) {
        if self.items.is_providers(id) {
            return;
        }
        let mut words = String::new();
        match content {
            Value::String(text) => words.clone_from(text),
            Value::Array(list) => list.iter().for_each(|part| match part["text"].as_str() {
                Some(text) => words.push_str(text),
                None => words.push_str(kind_of(part)),
            }),
            Value::Null => {}
            other => words = other.to_string(),
        }
        self.put("tool", "result", format!("{} {words}", id.as_str().unwrap_or("")));
    }

    fn content(&mut self, role: &str, content: &Value) {
        match content {
            Value::String(text) => self.put(role, "text", text.as_str()),
            Value::Array(list) => list.iter().for_each(|part| self.block(role, part)),
            _ => {}
        }
    }

    fn block(&mut self, role: &str, block: &Value) {
        match block["type"].as_str().unwrap_or("") {
            "text" | "input_text" | "output_text" => {
                self.put(role, "text", block["text"].as_str().unwrap_or(""));
            }
            "thinking" => self.put(role, "reasoning", block["thinking"].as_str().unwrap_or("")),
            "tool_use" | "server_tool_use" => {
                self.call(&block["id"], &block["name"], &block["input"]);
            }
            // Of what a provider's own tool gave back, that it is there is compared.
            "tool_result" if role == "assistant" => {
                self.put("tool", "providers result", block["tool_use_id"].as_str().unwrap_or(""));
            }
            "tool_result" => self.result(&block["tool_use_id"], &block["content"]),
            kind if kind.ends_with("_tool_result") => {
                self.put("tool", "providers result", block["tool_use_id"].as_str().unwrap_or(""));
            }
            _ => self.put(role, "block", kind_of(block)),
        }
    }

    fn chat(&mut self, message: &Value) {
        let role = message["role"].as_str().unwrap_or("");
        if role == "tool" || role == "function" {
            return self.result(&message["tool_call_id"], &message["content"]);
        }
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = message[key].as_str().filter(|text| !text.is_empty()) {
                self.put(role, "reasoning", text);
            }
        }
        self.content(role, &message["content"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.call(&call["id"], &call["function"]["name"], &call["function"]["arguments"]);
        }
        if message["function_call"].is_object() {
            let call = &message["function_call"];
            self.call(&Value::Null, &call["name"], &call["arguments"]);
        }
    }

    fn gemini(&mut self, content: &Value) {
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        for part in content["parts"].as_array().unwrap() {
            let (call, result) = (&part["functionCall"], &part["functionResponse"]);
            if call.is_object() {
                self.call(&call["id"], &call["name"], &call["args"]);
            } else if result.is_object() {
                self.result(&result["id"], &result["response"]);
            } else {
                self.put(role, "text", part["text"].as_str().unwrap_or(""));
            }
        }
    }

    fn item(&mut self, item: &Value) {
        let id = id_of(item);
        match item["type"].as_str().unwrap_or("message") {
            "message" => self.content(item["role"].as_str().unwrap_or(""), &item["content"]),
            "reasoning" => {
                for summary in item["summary"].as_array().into_iter().flatten() {
                    self.put("assistant", "reasoning", summary["text"].as_str().unwrap_or(""));
                }
            }
            "function_call" => self.call(id, &item["name"], &item["arguments"]),
            "custom_tool_call" => self.call(id, &item["name"], &item["input"]),
            kind if kind.ends_with("_output") => self.result(id, &item["output"]),
            _ if is_providers_call(item) => self.call(id, &Value::Null, &Value::Null),
            _ => {}
        }
    }
}

fn kind_of(block: &Value) -> &'static str {
    match block["type"].as_str().unwrap_or("") {
        "image" | "image_url" | "input_image" => "image",
        _ => "other",
    }
}

/// What a request says, and what it is asked with.
fn said(request: &Request, items: &Items) -> String {
    let body: Value = serde_json::from_str(request.body()).unwrap();
    let mut lines = Lines { lines: Vec::new(), items };
    let system = match request.api() {
        Api::Responses => &body["instructions"],
        _ => &body["system"],
    };
    lines.content("system", system);
    match request.api() {
        Api::Chat => body["messages"].as_array().unwrap().iter().for_each(|it| lines.chat(it)),
        Api::Gemini => body["contents"].as_array().unwrap().iter().for_each(|it| lines.gemini(it)),
        Api::Messages => body["messages"].as_array().unwrap().iter().for_each(|message| {
            lines.content(message["role"].as_str().unwrap(), &message["content"]);
        }),
        _ => match &body["input"] {
            Value::Array(items) => items.iter().for_each(|item| lines.item(item)),
            text => lines.content("user", text),
        },
    }
    let tools: Vec<String> = request
        .tools()
        .iter()
        .map(|tool| tool.id.as_str().split('#').next().unwrap().to_owned())
        .collect();
    format!("{:?} {:#?} {tools:?}", request.model(), lines.lines)
}

/// The requests, each with what is reported of it, without an order: times may be another.
fn requests(recording: &Recording, items: &Items) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for exchange in recording.exchanges() {
        let request = recording.request(exchange.number).unwrap();
        // The conventions have no place for the runs that a request was made of.
        let usage = exchange.usage.clone().map(|mut usage| {
            usage.iterations = Vec::new();
            usage.to_json().to_string()
        });
        let is_failed = exchange.outcome().as_str() == "failed";
        *all.entry(format!("{usage:?} {is_failed} {}", said(&request, items))).or_default() += 1;
    }
    all
}

fn difference(expected: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> String {
    let only = |a: &BTreeMap<String, usize>, b: &BTreeMap<String, usize>| {
        a.keys().filter(|key| !b.contains_key(*key)).take(1).cloned().collect::<String>()
    };
    let (lost, new) = (only(expected, found), only(found, expected));
    let differ = lost.lines().zip(new.lines()).find(|(a, b)| a != b);
    format!("{} of {}: {differ:?}", expected.len(), found.len())
}

/// Spans as every reader of OTLP takes them.
fn check_spans(document: &str, path: &Path) {
    let document: Value = serde_json::from_str(document).unwrap();
    let scope = &document["resourceSpans"][0]["scopeSpans"][0];
    assert_eq!(scope["schemaUrl"], SCHEMA_URL);
    let mut ids = HashSet::new();
    for span in scope["spans"].as_array().unwrap() {
        let is_id = |id: &Value, length: usize| {
            let id = id.as_str().unwrap();
            id.len() == length && id.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
        };
        assert!(is_id(&span["traceId"], 32) && is_id(&span["spanId"], 16), "{}", path.display());
        assert!(ids.insert(span["spanId"].as_str().unwrap()), "{}", path.display());
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
        assert!(start > 0 && start <= end, "{}", path.display());
        let known = ["gen_ai.", "afterimage.", "error.type"];
        for attribute in span["attributes"].as_array().unwrap() {
            let key = attribute["key"].as_str().unwrap();
            assert!(known.iter().any(|of| key.starts_with(of)), "{key}");
            assert_eq!(attribute["value"].as_object().unwrap().len(), 1, "{key}");
        }
    }
}

/// Holds that each request of `new` is what the one before it had up to a message, and its own.
fn check_new_messages(all: &str, new: &str, path: &Path) {
    let spans = |document: &str| {
        let document: Value = serde_json::from_str(document).unwrap();
        document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    let attribute = |span: &Value, key: &str| {
        let found = span["attributes"].as_array().unwrap().iter().find(|of| of["key"] == key)?;
        let text = found["value"]["stringValue"].as_str().or(found["value"]["intValue"].as_str())?;
        serde_json::from_str::<Value>(text).ok()
    };
    let (mut before, mut of) = (Vec::new(), Value::Null);
    for (all, new) in spans(all).iter().zip(&spans(new)) {
        let messages = |span| attribute(span, "gen_ai.input.messages");
        let Some(Value::Array(whole)) = messages(all) else { continue };
        if of != all["traceId"] {
            (before, of) = (Vec::new(), all["traceId"].clone());
        }
        let same = attribute(new, "afterimage.request.messages_before").unwrap();
        before.truncate(same.as_u64().unwrap() as usize);
        before.extend(messages(new).unwrap().as_array().unwrap().iter().cloned());
        assert!(before == whole, "{}: {}", path.display(), all["spanId"]);
    }
}

#[test]
fn every_recording_is_read_back_with_the_same_requests() {
    let files = GROUPS.iter().filter_map(|group| data::recordings(group));
    let files: Vec<_> = files.flat_map(|folder| data::files_under(&folder)).collect();
    let (mut compared, mut calls) = (0, 0);
    for path in &files {
        let original = recording(Transcript::open(path).unwrap(), MOST_FRAMES);
        if original.exchanges().is_empty() {
            continue;
        }
        let (document, report) = written(&original);
        check_spans(&document, path);
        // The same recording is the same document.
        if document.len() < 1 << 20 {
            assert!(written(&original).0 == document);
            let lines = written_by_line(&original);
            let spans = lines.lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone()
            });
            let whole: Value = serde_json::from_str(&document).unwrap();
            let whole = &whole["resourceSpans"][0]["scopeSpans"][0]["spans"];
            assert_eq!(spans.collect::<Vec<_>>(), *whole.as_array().unwrap(), "{}", path.display());
        }
        let read = recording(Transcript::new(document.as_bytes()).unwrap(), usize::MAX);
        let items = Items::of(&original);
        let expected = requests(&original, &items);
        let found = requests(&read, &items);
        assert!(expected == found, "{}: {}", path.display(), difference(&expected, &found));
        check_new_messages(&document, &written_with(&original, SpanMessages::New).0, path);
        // So does what is in no list.
        let sums = |recording: &Recording| {
            // An unlisted copy has no span: it counts in the session that it was copied from.
            let is_written = |of: &&Exchange| !of.is_unlisted || of.copied.is_none();
            let reported: Vec<_> = recording.reported().filter(is_written).collect();
            let input: u64 = reported.iter().filter_map(|of| of.usage.as_ref()?.input).sum();
            (reported.len(), input)
        };
        assert_eq!(sums(&original), sums(&read), "{}", path.display());
        compared += expected.values().sum::<usize>();
        calls += report.tools;
    }
    assert!(files.is_empty() || compared > 400 && calls > 100, "{compared} {calls}");
}

#[test]
fn new_messages_take_work_in_what_is_written_of_them() {
    let work = |turns: usize| {
        let turn = |n: usize| {
            format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{n}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{n}","content":"Berth {n} is free."}}"#
            )
        };
        let turns: String = (0..turns).map(turn).collect();
        let recording = of_text(&format!(r#"[{{"role":"user","content":"Look."}}{turns}]"#));
        let taken = allocation_counter::measure(|| {
            drop(written_with(&recording, SpanMessages::New));
        });
        taken.bytes_total
    };
    let (half, whole) = (work(80), work(160));
    assert!(whole * 2 < half * 5, "{half} bytes, and {whole} of twice as many turns");
}

fn of_text(text: &str) -> Recording {
    recording(Transcript::new(text.as_bytes()).unwrap(), usize::MAX)
}

#[test]
fn two_recordings_of_one_otlp_document_share_no_ids() {
    let chat = |answer: &str| {
        format!(
            r#"[{{"role":"user","content":"Is it open?"}},{{"role":"assistant","content":"{answer}"}}]"#
        )
    };
    let (first, second) = (of_text(&chat("Yes.")), of_text(&chat("No.")));
    let mut document = Vec::new();
    let mut writer = OtlpWriter::new(&mut document).unwrap();
    for recording in [&first, &second] {
        writer.add(recording, |_| true, moment).unwrap();
    }
    assert_eq!(writer.finish().unwrap().sessions, 2);
    let document = String::from_utf8(document).unwrap();
    check_spans(&document, Path::new("two recordings"));
    // The first one has the ids that it has alone.
    let spans = |document: &str| {
        let document: Value = serde_json::from_str(document).unwrap();
        document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    let (both, alone) = (spans(&document), spans(&written(&first).0));
    assert_eq!(both[..2], alone);
    assert_ne!(both[0]["traceId"], both[2]["traceId"]);
    let read = of_text(&document);
    assert_eq!(read.exchanges().len(), 2);
}

#[test]
fn each_of_many_calls_of_one_answer_is_an_otlp_span() {
    const CALLS: usize = 1_000;
    let list =
        |entry: &dyn Fn(usize) -> String| (0..CALLS).map(entry).collect::<Vec<_>>().join(",");
    let calls = list(&|n| {
        format!(r#"{{"type":"tool_use","id":"c{n}","name":"look","input":{{"n":{n}}}}}"#)
    });
    let results =
        list(&|n| format!(r#"{{"type":"tool_result","tool_use_id":"c{n}","content":"{n}"}}"#));
    let line = |kind: &str, uuid: &str, parent: &str, second: u64, content: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-01-01T00:00:0{second}.000Z","message":{{"role":"{kind}","content":{content}}}}}"#
        )
    };
    let text = [
        line("user", "a", "null", 1, r#""Look.""#),
        line("assistant", "b", r#""a""#, 2, &format!("[{calls}]")),
        line("user", "c", r#""b""#, 3, &format!("[{results}]")),
    ];
    let recording = of_text(&text.join("\n"));
    let (document, report) = written(&recording);
    assert_eq!(report.tools, CALLS as u64);
    assert!(document.contains(r#""stringValue":"{\"n\":999}""#));
}

#[test]
fn requests_of_gemini_and_bedrock_have_the_attributes_of_the_conventions_and_come_back() {
    let converse = r#"{"system":[{"text":"S"}],
        "messages":[{"role":"user","content":[{"text":"See"},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"document":{"format":"pdf","name":"d","source":{"bytes":"BBBB"}}}]}],
        "toolConfig":{"tools":[{"toolSpec":{"name":"look","description":"D","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}],"toolChoice":{"auto":{}}},
        "inferenceConfig":{"temperature":0.25,"maxTokens":9,"stopSequences":["END"]}}"#;
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"See"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}],
        "tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":{"type":"object"}}]},{"googleSearch":{}}],
        "generationConfig":{"temperature":0.25,"maxOutputTokens":9,"stopSequences":["END"],"thinkingConfig":{"thinkingBudget":1}}}"#;
    let said = [
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"Yes"}]}},"stopReason":"end_turn"}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Yes"}]},"finishReason":"STOP"}]}"#,
    ];
    let at = [
        "https://b.amazonaws.com/model/tide-7/converse",
        "https://g/models/tide-7:generateContent",
    ];
    for (at, (asked, said)) in at.into_iter().zip([converse, gemini].into_iter().zip(said)) {
        let exchange =
            serde_json::json!({"uri": at, "request": asked, "status": 200, "response": said});
        let of_wire = of_text(&serde_json::json!({"interactions": [exchange]}).to_string());
        let (document, _) = written(&of_wire);
        let spans: Value = serde_json::from_str(&document).unwrap();
        let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let chat = spans.iter().find(|span| span["name"] == "chat tide-7").unwrap();
        let attribute = |name: &str| {
            let all = chat["attributes"].as_array().unwrap().iter();
            let mut found = all.filter(|of| of["key"] == name).map(|of| of["value"].clone());
            found.next().unwrap_or_default()
        };
        let tools = attribute("gen_ai.tool.definitions");
        let look = r#""name":"look""#;
        let tools = tools["stringValue"].as_str().unwrap_or_default();
        assert!(
            tools.contains(look) && tools.contains(r#""parameters":{"type":"object"}"#),
            "{tools}"
        );
        assert!(
            !tools.contains("cachePoint") && !tools.contains(r#""function","google"#),
            "{tools}"
        );
        assert_eq!(attribute("gen_ai.request.temperature")["doubleValue"], 0.25, "{chat}");
        assert_eq!(attribute("gen_ai.request.max_tokens")["intValue"], "9", "{chat}");
        let stops = attribute("gen_ai.request.stop_sequences");
        assert_eq!(stops["arrayValue"]["values"][0]["stringValue"], "END", "{chat}");
        let messages = attribute("gen_ai.input.messages").to_string();
        let image = r#"{\"type\":\"blob\",\"modality\":\"image\",\"mime_type\":\"image/png\",\"content\":\"AAAA\"}"#;
        assert!(messages.contains(image), "{messages}");
        let mut back = Transcript::new(document.as_bytes()).unwrap();
        back.by_ref().for_each(|record| drop(record.unwrap()));
        assert_eq!(back.report().notes, [], "{at}");
        let request = of_text(&document).request(1).unwrap();
        assert!(request.tools().iter().any(|tool| tool.id.as_str() == "tool:look"), "{at}");
    }
}
