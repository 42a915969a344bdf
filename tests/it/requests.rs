//! Requests: those of recorded traffic are the ones of the file, those of transcripts are worked
//! out, and what differs between two is found.
#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Read,
    path::Path,
    sync::Arc,
};

use afterimage::{
    compress::{CompressionOptions, OutlineEngine},
    export::{Breakpoints, Export, ExportOptions, Form, PrefixRules},
    hud::{Hud, NativeFormat, Owner, RenderRequest, RenderedContext, Span},
    id::{FrameSeq, Millis},
    json,
    replay::{Replay, ReplayPolicy},
    request::{Lack, PartKind, Provenance, Recording, Request, RequestPart, compare},
    session::{Fit, RequestFitter, Viewer},
    snapshot::{ChunkRef, FrameSnapshot, PartRef},
    tokens::{Bpe, Chars4, TokenCounter},
    transcript::{Api, Exchange, Transcript, Usage},
    veil::{FacetChange, Frame, History, Source},
    window::{Budget, ContextInForce, ContextItem, ContextSize, RecordedCompactions},
};
use afterimage_testkit::data;
use serde_json::{Value, json};

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn read(path: &Path) -> Option<Recording> {
    let transcript = Transcript::open(path).ok()?;
    Some(Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap())
}

fn read_text(text: &str) -> Recording {
    let transcript = Transcript::new(text.as_bytes()).unwrap();
    Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap()
}

fn each_recording(mut check: impl FnMut(&Path, Recording)) {
    for group in GROUPS {
        let Some(folder) = data::recordings(group) else { return };
        for path in data::files_under(&folder) {
            if let Some(recording) = read(&path) {
                check(&path, recording);
            }
        }
    }
}

/// The sums of recorded requests are those of the requests of the recording, one by one.
#[test]
fn sums_of_recorded_requests_are_those_of_the_recording() {
    let mut checked = 0;
    each_recording(|path, recording| {
        let mut transcript = Transcript::open(path).unwrap();
        transcript.keep_exchanges();
        let hud = Hud::new(Arc::new(Chars4));
        let mut viewer = Viewer::new(&hud, transcript.format());
        transcript.by_ref().for_each(|record| drop(record.unwrap()));
        let recorded = transcript.take_exchanges().into_iter();
        recorded.for_each(|exchange| viewer.exchange(exchange, Some(&Chars4)));
        let exchanges = recording.exchanges();
        let is_recorded = exchanges.iter().any(|of| of.provenance.lacks().is_empty());
        assert_eq!(viewer.provenance().lacks().is_empty(), is_recorded, "{}", path.display());
        if !is_recorded {
            return;
        }
        let tokens = |number: usize| recording.tokens(number).unwrap().total();
        let last: HashMap<_, _> =
            exchanges.iter().map(|exchange| (&exchange.session, exchange.number)).collect();
        let found = viewer.requests();
        let all = exchanges.iter().map(|exchange| tokens(exchange.number)).sum();
        assert_eq!((found.requests, found.tokens), (exchanges.len() as u64, all));
        assert_eq!(found.last_tokens(), last.values().map(|number| tokens(*number)).sum::<u64>());
        let bytes = last.values().map(|number| recording.request(*number).unwrap().body().len());
        assert_eq!(found.last.bytes, bytes.sum::<usize>() as u64, "{}", path.display());
        checked += 1;
    });
    if data::recordings(GROUPS[0]).is_some() {
        assert!(checked > 10, "{checked}");
    }
}

#[test]
fn the_usage_of_a_rollout_adds_up_to_the_total_that_it_reports() {
    let Some(folder) = data::recordings("C-codex-responses/rollout") else { return };
    let path = folder.join("codemie-rollout-2026-05-11T11-26-55.jsonl");
    let recording = read(&path).unwrap();
    let usage: Vec<_> = recording.exchanges().iter().map(|of| of.usage.clone().unwrap()).collect();
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut totals = lines.map(|line| line["payload"]["info"]["total_token_usage"].clone());
    let total = totals.rfind(Value::is_object).unwrap();
    let sum = |of: fn(&Usage) -> Option<u64>| json!(usage.iter().filter_map(of).sum::<u64>());
    assert_eq!(sum(|usage| usage.input), total["input_tokens"]);
    assert_eq!(sum(|usage| usage.cache_read), total["cached_input_tokens"]);
    assert_eq!(sum(|usage| usage.output), total["output_tokens"]);
    assert_eq!(sum(|usage| usage.reasoning), total["reasoning_output_tokens"]);
    assert!(recording.exchanges().iter().all(|of| of.model.as_deref() == Some("gpt-5.5")));
}

fn requests(recording: &Recording) -> Vec<Request> {
    let numbers = 1..=recording.exchanges().len();
    numbers.map(|number| recording.request(number).unwrap()).collect()
}

#[track_caller]
fn check_parts(request: &Request) {
    let mut end = 0;
    for part in request.parts() {
        assert_eq!(part.range.start, end);
        assert!(request.body().get(part.range.clone()).is_some_and(|text| !text.is_empty()));
        end = part.range.end;
    }
    assert_eq!(end, request.body().len());
}

#[test]
fn requests_of_recorded_traffic_are_those_of_the_file() {
    let (mut files, mut all) = (0, 0);
    each_recording(|path, recording| {
        let text = fs::read_to_string(path).unwrap();
        let Ok(document) = serde_json::from_str::<Value>(&text) else { return };
        let Some(interactions) = document["interactions"].as_array() else { return };
        let is_known = |uri: &str| {
            let ends = ["/chat/completions", "/messages", "/responses", ":generateContent"];
            ends.iter().any(|end| uri.contains(end))
        };
        let expected: Vec<&Value> = interactions
            .iter()
            .filter(|of| is_known(of["uri"].as_str().unwrap()))
            .map(|of| &of["request"])
            .filter(|request| {
                ["messages", "input", "contents"].iter().any(|key| !request[key].is_null())
            })
            .collect();
        let found: Vec<Value> = requests(&recording)
            .iter()
            .map(|request| serde_json::from_str(request.body()).unwrap())
            .collect();
        assert!(found.iter().eq(expected.iter().copied()), "{}", path.display());
        for (exchange, request) in recording.exchanges().iter().zip(requests(&recording)) {
            assert_eq!(exchange.provenance, Provenance::Logged);
            check_parts(&request);
            let tools = &expected[exchange.number - 1]["tools"];
            let tools = tools.as_array().or_else(|| tools["function_declarations"].as_array());
            let tools = tools.map_or(0, Vec::len);
            let found = request.parts();
            let is_tool = |kind: &PartKind| matches!(kind, PartKind::Tool { .. });
            assert_eq!(found.iter().filter(|part| is_tool(&part.kind)).count(), tools);
        }
        (files, all) = (files + 1, all + expected.len());
    });
    assert!(
        (files, all) >= (16, 30) || data::recordings("A-openai-chat").is_none(),
        "{files} {all}"
    );
}

/// The text of a message's content, where that is one text.
fn content(message: &Value) -> Option<&str> {
    let content = &message["content"];
    content.as_str().or_else(|| match content.as_array()?.as_slice() {
        [only] => only["text"].as_str(),
        _ => None,
    })
}

#[test]
fn messages_of_recorded_requests_know_their_frames() {
    let (mut known, mut unknown) = (0, 0);
    each_recording(|path, recording| {
        for (exchange, request) in recording.exchanges().iter().zip(requests(&recording)) {
            if !matches!(exchange.provenance, Provenance::Logged) {
                return;
            }
            let history = recording.history(&exchange.session).unwrap();
            let body: Value = serde_json::from_str(request.body()).unwrap();
            let Some(list) = body[exchange.api.conversation_key()].as_array() else { continue };
            for part in request.parts() {
                let PartKind::Message { index, frame, .. } = part.kind else { continue };
                let Some(frame) = frame else {
                    unknown += 1;
                    continue;
                };
                known += 1;
                let Some(text) = content(&list[index]).filter(|text| !text.is_empty()) else {
                    continue;
                };
                let frame = history.get(frame).unwrap();
                let holds = frame.ops.iter().any(|op| match &op.change {
                    FacetChange::Add(facet) => facet.content == text,
                    _ => false,
                });
                let role = list[index]["role"].as_str().unwrap_or_default();
                assert!(holds || role == "tool", "{}: message {index}: {text}", path.display());
            }
        }
    });
    assert!(known > 4 * unknown, "{known} known, {unknown} not");
}

#[test]
fn requests_of_a_transcript_are_its_contexts_before_each_answer() {
    let mut worked_out = 0;
    each_recording(|path, recording| {
        let exchanges = recording.exchanges();
        let is_worked_out = |provenance: &Provenance| provenance.lacks().contains(&Lack::Tools);
        if !exchanges.iter().all(|exchange| is_worked_out(&exchange.provenance)) {
            return;
        }
        for exchange in exchanges.iter().take(12) {
            let name = path.display();
            let (last, answer) = (exchange.last_frame.unwrap(), exchange.answer().unwrap());
            assert!(last < answer, "{name}");
            let request = recording.request(exchange.number).unwrap();
            check_parts(&request);
            worked_out += 1;
            // What is said after it is not in it.
            let frames = request.parts().into_iter().filter_map(|part| part.frame());
            assert!(frames.max().is_none_or(|frame| frame <= last), "{name}");
            let context = recording.context(exchange.number).unwrap().unwrap();
            let shown = context.frame_to_message().map(|(frame, _)| frame).last();
            assert!(shown.is_none_or(|frame| frame <= last), "{name}");
        }
        // The quick answer of a listing is that of a whole comparison.
        for exchange in exchanges.iter().skip(1).take(6) {
            let number = exchange.number;
            let Some(previous) = recording.previous(number) else { continue };
            let quick = recording.compare(number, PrefixRules::EXACT).unwrap().unwrap();
            if quick.prefix.divergence.is_some() {
                continue;
            }
            let (was, is) = (recording.context(previous), recording.context(number));
            let (was, is) = (was.unwrap().unwrap(), is.unwrap().unwrap());
            let texts = |context: &afterimage::hud::RenderedContext| -> Vec<String> {
                context.messages().iter().map(|message| message.content().into_owned()).collect()
            };
            assert!(texts(&is).starts_with(&texts(&was)), "{} request {number}", path.display());
        }
    });
    assert!(worked_out > 200 || data::recordings("A-openai-chat").is_none(), "{worked_out}");
}

#[test]
fn a_compaction_is_in_force_from_the_request_after_it_on() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let mut compacted = 0;
    for path in data::files_under(&folder) {
        let Some(recording) = read(&path) else { continue };
        let told = |history: &History| -> Vec<u64> {
            let frames = history.frames();
            let told = frames.filter_map(|frame| afterimage::veil::Compaction::of(&frame).ok()?);
            told.map(|told| told.told_at.get()).collect()
        };
        for exchange in recording.exchanges() {
            if exchange.provenance.lacks().is_empty() {
                continue;
            }
            let history = recording.history(&exchange.session).unwrap();
            let last = exchange.last_frame.unwrap().get();
            let in_force = told(history).into_iter().filter(|at| *at <= last).count();
            let context = recording.context(exchange.number).unwrap().unwrap();
            let blocks = context.messages().iter().filter(|message| message.is_block()).count();
            assert_eq!(in_force > 0, blocks > 0, "{} request {}", path.display(), exchange.number);
            compacted += usize::from(in_force > 0);
        }
    }
    assert!(compacted > 0);
}

fn body(description: &str, text: &str) -> Value {
    json!({
        "model": "m", "temperature": 0.5,
        "tools": [{"name": "look", "description": "Looks."},
            {"name": "get_time", "description": description, "input_schema": {"type": "object"}}],
        "system": "Be brief.",
        "messages": [{"role": "user", "content": text}],
    })
}

fn request(body: &Value) -> Request {
    let recording = read_text(&body.to_string());
    assert_eq!(recording.exchanges().len(), 1);
    recording.request(1).unwrap()
}

#[test]
fn a_changed_tool_model_parameter_and_message_are_found_with_their_owners() {
    let first = body("Tells the time.", "Hi");
    let changed = |pointer: &str, value: Value| {
        let mut next = first.clone();
        *next.pointer_mut(pointer).unwrap() = value;
        let diff = compare(&request(&first), &request(&next), &Chars4, PrefixRules::ANTHROPIC);
        diff.unwrap()
    };
    let owner = |diff: &afterimage::request::RequestDiff| match diff
        .prefix
        .divergence
        .as_ref()
        .unwrap()
        .owner
        .as_ref()
        .unwrap()
    {
        Owner::Recorded { facet, .. } => facet.to_string(),
        other => panic!("{other:?}"),
    };
    let diff = changed("/tools/1/description", "Tells the date.".into());
    assert_eq!(owner(&diff), "tool:get_time");
    assert_eq!((diff.tools.len(), diff.tools[0].path.to_string().as_str()), (1, "/description"));
    assert_eq!((diff.prefix.cached, diff.is_same()), (0, false));

    let diff = changed("/model", "n".into());
    assert_eq!(owner(&diff), "parameter:model");
    assert_eq!((diff.prefix.unchanged, diff.parameters.len()), (0, 1));

    let diff = changed("/temperature", json!(0.7));
    assert_eq!(diff.parameters[0].name, "temperature");
    assert_eq!((diff.prefix.divergence.as_ref(), diff.is_same()), (None, false));

    let diff = changed("/messages/0/content", "Ho".into());
    assert_eq!(owner(&diff), "message:0");
    let diff = changed("/system", "Be long.".into());
    assert_eq!(owner(&diff), "system");
    assert!(changed("/system", "Be brief.".into()).is_same());
}

#[test]
fn tools_stand_before_the_messages_in_the_order_of_the_cache() {
    // The member of the body that stands first is the conversation.
    let written = |tool: &str| {
        format!(
            r#"{{"input":[{{"role":"user","content":"Hi"}}],"model":"m","tools":[{{"type":"function","name":"{tool}"}}]}}"#
        )
    };
    let one = |tool: &str| read_text(&written(tool)).request(1).unwrap();
    let (was, is) = (one("f"), one("g"));
    assert_eq!((was.api(), was.body()), (Api::Responses, written("f").as_str()));
    let diff = compare(&was, &is, &Chars4, PrefixRules::EXACT).unwrap();
    assert_eq!(diff.prefix.divergence.unwrap().path.to_string(), "/tools/0");
}

#[cfg(feature = "record")]
fn packed(text: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut gzip = flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::fast());
    gzip.read_to_end(&mut packed).unwrap();
    packed
}

#[cfg(feature = "record")]
fn base64(bytes: &[u8]) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(bytes)
}

/// A stream of the Messages API that says `Yes.`.
const STREAM: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":100}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Yes.\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":3}}\n\n";

const SENT: &str = "{\"model\": \"m\",\n \"messages\":[{\"role\":\"user\",\"content\":\"Is it  open?\"}], \"max_tokens\":1.50}";

#[track_caller]
fn check_sent(recording: &Recording) {
    let [exchange] = recording.exchanges() else { panic!("{:?}", recording.exchanges()) };
    assert_eq!((exchange.api, &exchange.provenance), (Api::Messages, &Provenance::Sent));
    assert_eq!(recording.request(1).unwrap().body(), SENT);
    let usage = exchange.usage.clone().unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (Some(109), Some(100), Some(3)));
    let (_, history) = recording.sessions().next().unwrap();
    let said: Vec<_> = history.frames().flat_map(|frame| frame.ops.clone()).collect();
    assert_eq!(said.len(), 2);
    assert_eq!(exchange.answer().unwrap(), history.frames().get(1).unwrap().sequence);
}

#[cfg(feature = "record")]
#[test]
fn http_archives_are_read_with_packed_bodies_and_streams() {
    let har = |text: Value, content: Value| {
        json!({"log": {"version": "1.2", "entries": [
            {"startedDateTime": "2026-01-02T03:04:05.000Z", "time": 12.6,
             "request": {"method": "GET", "url": "https://x.example/logo.png"},
             "response": {"status": 200, "content": {"text": "iVBO", "encoding": "base64"}}},
            {"startedDateTime": "2026-01-02T03:04:06.000Z", "time": 1200.4,
             "request": {"method": "POST", "url": "https://x.example/v1/messages", "postData": text},
             "response": {"status": 200, "content": content}},
        ]}}).to_string()
    };
    let plain = har(json!({"text": SENT}), json!({"text": STREAM}));
    check_sent(&read_text(&plain));
    let encoded = har(
        json!({"text": base64(&packed(SENT)), "encoding": "base64"}),
        json!({"text": base64(STREAM.as_bytes()), "encoding": "base64"}),
    );
    let recording = read_text(&encoded);
    check_sent(&recording);
    let exchange = &recording.exchanges()[0];
    assert_eq!(exchange.duration_ms, Some(1_200));
    assert_eq!(exchange.time.as_deref(), Some("2026-01-02T03:04:06.000Z"));
}

#[cfg(feature = "record")]
#[test]
fn cassettes_are_read_with_their_streams_and_binary_bodies() {
    let indented = |text: &str| text.replace('\n', "\n        ");
    let (sent, stream) = (indented(SENT), indented(STREAM));
    let cassette = format!(
        "interactions:\n- request:\n    body: |-\n        {sent}\n    headers: &id001\n      accept: ['*/*']\n    method: POST\n    uri: https://x.example/v1/messages\n  response:\n    body:\n      string: |-\n        {stream}\n    headers: *id001\n    status: {{code: 200, message: OK}}\nversion: 1\n"
    );
    check_sent(&read_text(&cassette));
    let binary = base64(&packed(STREAM));
    let cassette = format!(
        "---\nhttp_interactions:\n- request:\n    method: post\n    uri: https://x.example/v1/messages\n    body:\n      encoding: UTF-8\n      string: |-\n        {sent}\n  response:\n    status:\n      code: 200\n    body:\n      string: !!binary |\n        {binary}\n  recorded_at: Fri, 02 Jan 2026 03:04:05 GMT\nrecorded_with: VCR 6.0\n"
    );
    check_sent(&read_text(&cassette));
}

fn open_folder(path: &Path) -> Option<Recording> {
    let transcript = Transcript::open_folder(path).unwrap()?;
    Some(Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap())
}

/// A trace bundle of two inferences, of which the second failed.
fn bundle(folder: &Path) {
    fs::create_dir_all(folder.join("payloads")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("manifest.json", "{\"schema_version\": 2, \"raw_event_log\": \"trace.jsonl\"}");
    let event = |time: u64, payload: Value| {
        json!({"schema_version": 2, "wall_time_unix_ms": time, "payload": payload}).to_string()
    };
    let events = [
        event(1_000, json!({"type": "rollout_started"})),
        event(
            2_000,
            json!({"type": "inference_started", "inference_call_id": "a",
            "request_payload": {"path": "payloads/1.json"}}),
        ),
        event(
            2_500,
            json!({"type": "inference_completed", "inference_call_id": "a",
            "response_payload": {"path": "payloads/2.json"}}),
        ),
        event(
            3_000,
            json!({"type": "inference_started", "inference_call_id": "b",
            "request_payload": {"path": "payloads/3.json"}}),
        ),
        event(
            3_100,
            json!({"type": "inference_failed", "inference_call_id": "b", "error": "stream closed"}),
        ),
    ];
    write("trace.jsonl", &(events.join("\n") + "\n"));
    write(
        "payloads/1.json",
        "{\n  \"model\": \"m\",\n  \"input\": [{\"role\": \"user\", \"content\": \"Hi\"}],\n  \"tools\": [{\"name\": \"f\"}]\n}",
    );
    write(
        "payloads/2.json",
        "{\"response_id\": \"r\", \"token_usage\": {\"input_tokens\": 7, \"cached_input_tokens\": 2, \"output_tokens\": 1}, \"output_items\": [{\"type\": \"message\", \"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", \"text\": \"Yo\"}]}]}",
    );
    write(
        "payloads/3.json",
        "{\"model\": \"m\", \"input\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"type\": \"message\", \"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", \"text\": \"Yo\"}]}, {\"role\": \"user\", \"content\": \"And?\"}], \"tools\": [{\"name\": \"g\"}]}",
    );
}

#[test]
fn a_trace_bundle_of_another_version_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    bundle(folder.path());
    for file in ["trace.jsonl", "manifest.json"] {
        let path = folder.path().join(file);
        let known = fs::read_to_string(&path).unwrap();
        fs::write(
            &path,
            known
                .replace("\"schema_version\": 2", "\"schema_version\": \"9\"")
                .replace("\"schema_version\":2", "\"schema_version\":\"9\""),
        )
        .unwrap();
        let error = Transcript::open_folder(folder.path()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), afterimage::ErrorKind::Version);
        let message = error.to_string();
        assert!(message.contains("schema_version 1, 2 or 3, found \"9\""), "{message}");
        assert!(message.contains(file), "{message}");
        fs::write(&path, known).unwrap();
    }
}

#[test]
fn a_trace_bundle_is_read_with_its_failures() {
    let folder = tempfile::tempdir().unwrap();
    bundle(folder.path());
    let recording = open_folder(folder.path()).unwrap();
    let [first, second] = recording.exchanges() else { panic!("{:?}", recording.exchanges()) };
    assert_eq!(
        (&first.provenance, first.usage.as_ref().unwrap().cache_read),
        (&Provenance::Logged, Some(2))
    );
    assert_eq!((first.duration_ms, first.outcome().as_str()), (Some(500), "answered"));
    assert_eq!(second.failure.as_deref(), Some("failed: stream closed"));
    let written = fs::read_to_string(folder.path().join("payloads/1.json")).unwrap();
    assert_eq!(recording.request(1).unwrap().body(), written);
    let diff = recording.compare(2, PrefixRules::EXACT).unwrap().unwrap();
    assert_eq!(diff.prefix.divergence.unwrap().path.to_string(), "/tools/0");
}

#[test]
fn a_damaged_bundle_is_decided_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    bundle(folder.path());
    let events = fs::read(folder.path().join("trace.jsonl")).unwrap();
    for end in 0..events.len() {
        fs::write(folder.path().join("trace.jsonl"), &events[..end]).unwrap();
        let recording = open_folder(folder.path()).unwrap();
        assert!(recording.exchanges().len() <= 2);
    }
    fs::write(folder.path().join("trace.jsonl"), &events).unwrap();
    let payload = fs::read(folder.path().join("payloads/3.json")).unwrap();
    for end in 0..payload.len() {
        fs::write(folder.path().join("payloads/3.json"), &payload[..end]).unwrap();
        let recording = open_folder(folder.path()).unwrap();
        assert_eq!(recording.exchanges().len(), 1);
    }
    fs::remove_file(folder.path().join("payloads/3.json")).unwrap();
    assert_eq!(open_folder(folder.path()).unwrap().exchanges().len(), 1);
    let outside = String::from_utf8(events).unwrap().replace("payloads/1.json", "../secret.json");
    fs::write(folder.path().join("trace.jsonl"), outside).unwrap();
    let mut transcript = Transcript::open_folder(folder.path()).unwrap().unwrap();
    assert_eq!(transcript.by_ref().count(), 0);
    assert!(transcript.report().notes[0].text.contains("inside of the folder"));
}

/// The bundle with its payloads in a shard; the shard as it is unpacked.
fn sharded(folder: &Path) -> Vec<u8> {
    bundle(folder);
    for file in ["trace.jsonl", "manifest.json"] {
        let mut text = fs::read_to_string(folder.join(file)).unwrap();
        for number in 1..4 {
            let own = format!("\"path\":\"payloads/{number}.json\"");
            let shard = format!("\"raw_payload_id\":\"raw_payload:{number}\",\"shard\":1");
            text = text.replace(&own, &shard);
        }
        let text =
            text.replace("version\": 2", "version\": 3").replace("version\":2", "version\":3");
        fs::write(folder.join(file), text).unwrap();
    }
    let mut shard = Vec::new();
    for number in 1..4 {
        let body = fs::read(folder.join(format!("payloads/{number}.json"))).unwrap();
        let id = format!("raw_payload:{number}");
        shard.extend(u16::try_from(id.len()).unwrap().to_le_bytes());
        shard.extend((body.len() as u64).to_le_bytes());
        shard.extend(id.bytes().chain(body));
    }
    shard
}

#[cfg(feature = "record")]
#[test]
fn payloads_of_a_bundle_are_found_in_its_shards() {
    let (plain, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bundle(plain.path());
    let shard = sharded(folder.path());
    for number in 1..4 {
        fs::remove_file(folder.path().join(format!("payloads/{number}.json"))).unwrap();
    }
    let packed = zstd::stream::encode_all(&shard[..], 1).unwrap();
    fs::write(folder.path().join("payloads/000001.zst"), packed).unwrap();
    let [read, expected] = [folder.path(), plain.path()].map(|folder| open_folder(folder).unwrap());
    assert_eq!(read.exchanges(), expected.exchanges());
    assert_eq!(read.request(2).unwrap().body(), expected.request(2).unwrap().body());
}

#[test]
fn a_cut_shard_is_read_up_to_where_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let shard = sharded(folder.path());
    let path = folder.path().join("payloads/000001.zst");
    let mut seen = Vec::new();
    for end in 0..=shard.len() {
        fs::write(&path, &shard[..end]).unwrap();
        seen.push(open_folder(folder.path()).unwrap().exchanges().len());
    }
    assert!(seen.is_sorted() && seen.first() == Some(&0) && seen.last() == Some(&2), "{seen:?}");
    // A length that nothing holds.
    let mut huge = shard;
    huge[2..10].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(&path, huge).unwrap();
    let mut transcript = Transcript::open_folder(folder.path()).unwrap().unwrap();
    assert_eq!(transcript.by_ref().count(), 0);
    let note = &transcript.report().notes[0].text;
    assert!(note.contains("more than 256 MiB") && note.contains("000001.zst"), "{note}");
    fs::remove_file(&path).unwrap();
    assert_eq!(open_folder(folder.path()).unwrap().exchanges().len(), 0);
}

#[test]
fn raw_bodies_are_paired_by_their_index_or_by_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        // Without an index the order of the files is that of their times.
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let request = |text: &str| {
        format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}")
    };
    let reply = |text: &str| {
        format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
        )
    };
    assert!(open_folder(folder.path()).is_none());
    write("b.request.json", &request("one"));
    write("req_1.response.json", &reply("first"));
    write("a.request.json", &request("two"));
    write("req_2.response.json", &reply("second"));
    let said = |recording: &Recording| -> Vec<String> {
        let texts = recording.sessions().flat_map(|(_, history)| history.frames());
        let ops = texts.flat_map(|frame| frame.ops.clone());
        ops.filter_map(|op| match &op.change {
            FacetChange::Add(facet) => Some(facet.content.clone()),
            _ => None,
        })
        .collect()
    };
    assert_eq!(said(&open_folder(folder.path()).unwrap()), ["one", "first", "two", "second"]);
    write(
        "index.jsonl",
        "{\"request\":\"a\",\"response\":\"req_1\"}\n{\"request_file\":\"/x/b.request.json\",\"response_file\":\"req_2.response.json\"}\n{\"torn",
    );
    let recording = open_folder(folder.path()).unwrap();
    assert_eq!(said(&recording), ["two", "first", "one", "second"]);
    assert_eq!(recording.request(2).unwrap().body(), request("one"));
}

#[test]
fn failed_and_repeated_requests_are_exchanges_too() {
    let exchange = |status: u64, response: Value| json!({"uri": "/v1/messages", "request": body("d", "Hi"), "status": status, "response": response});
    let failed = exchange(529, json!({"type": "error", "error": {"type": "overloaded_error"}}));
    let answered = exchange(200, json!({"content": [{"type": "text", "text": "Yo"}]}));
    let recording = read_text(&json!({"interactions": [failed, answered]}).to_string());
    let found: Vec<_> = recording
        .exchanges()
        .iter()
        .map(|exchange| {
            (exchange.outcome().as_str(), exchange.is_retry, exchange.answer().is_some())
        })
        .collect();
    assert_eq!(found, [("failed", false, false), ("answered", true, true)]);
}

#[test]
fn a_document_on_one_long_line_is_read_like_a_short_one() {
    let text = "word ".repeat(2 << 20);
    let long = format!(
        "{{\"interactions\":[{{\"uri\":\"/v1/messages\",\"request\":{{\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}},\"status\":200,\"response\":{{}}}}]}}"
    );
    assert!(long.len() > 9 << 20);
    for input in [long.clone(), format!("{long}\n")] {
        assert_eq!(read_text(&input).exchanges().len(), 1);
    }
}

#[test]
fn traffic_that_is_cut_anywhere_is_refused_or_read() {
    let whole = json!({"log": {"entries": [{
        "request": {"url": "https://x.example/v1/messages", "postData": {"text": SENT}},
        "response": {"status": 200, "content": {"text": STREAM}},
    }]}})
    .to_string();
    check_sent(&read_text(&whole));
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        if let Ok(transcript) = Transcript::new(&whole.as_bytes()[..end]) {
            let read = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
            assert!(read.unwrap().exchanges().is_empty());
        }
    }
    // What a request says may be anything.
    for body in
        ["", "null", "[]", "{\"messages\":7}", "{\"messages\":[]}", "{\"messages\":[7]}", "\u{0}"]
    {
        let document =
            json!({"interactions": [{"uri": "/v1/messages", "request": body, "response": "x"}]});
        for request in requests(&read_text(&document.to_string())) {
            check_parts(&request);
            let _ = (request.in_cache_order(), request.tokens(&Chars4), request.to_json());
        }
    }
    assert!(json::children("{\"a\": [", 0..7).len() == 1);
}

/// What `render` prints of a context, from the snapshots of its frames.
fn texts(
    viewer: &Viewer<'_>,
    session: &str,
    shown: &HashMap<u64, Arc<FrameSnapshot>>,
) -> Vec<String> {
    let items = viewer.context(session).into_iter().flat_map(ContextInForce::items);
    let text = |item: ContextItem<'_>| match item {
        ContextItem::Frame(frame) => shown[&frame.get()].text().to_owned(),
        ContextItem::Block(block) => block.snapshot.text().to_owned(),
    };
    items.map(text).collect()
}

/// Whether the next request is that which a frame answers, or whose failure it tells.
fn is_asked_before(frame: &Frame, next: &Exchange) -> bool {
    match next.answer() {
        Some(answer) => answer == frame.sequence,
        None => frame.source == Source::Agent && Some(frame.sequence) > next.last_frame,
    }
}

/// What `stats`, `observe replay`, `render` and `trace --at` follow is the context of the recording.
fn check_viewer(path: &Path, recording: &Recording, hud: &Hud) {
    let exchanges = recording.exchanges();
    let mut viewer = Viewer::new(hud, recording.format());
    let mut shown: HashMap<Arc<str>, HashMap<u64, Arc<FrameSnapshot>>> = HashMap::new();
    let mut seen = 0;
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        let session = Arc::clone(&record.session);
        let next = exchanges
            .get(seen)
            .filter(|next| next.session == session && is_asked_before(&record.frame, next));
        let of_session = shown.entry(Arc::clone(&session)).or_default();
        let before = next.map(|next| (next, texts(&viewer, &session, of_session)));
        if let Some((next, before)) = &before {
            let name = format!("{} request {}", path.display(), next.number);
            let context = recording.context(next.number).unwrap().unwrap();
            let expected: Vec<_> =
                context.messages().iter().map(|message| message.content()).collect();
            assert_eq!(before, &expected, "{name}: render");
            let follower = viewer.context(&session).unwrap();
            for (frame, message) in context.frame_to_message() {
                assert_eq!(follower.message_of(frame), Some(message), "{name}: trace");
                assert_eq!(context.message_of(frame), Some(message), "{name}: message");
            }
            assert_eq!(
                follower.size().frames,
                context.frame_to_message().count() as u64,
                "{name}: frames"
            );
        }
        let viewed = viewer.view(record, None, Millis::new(0)).unwrap();
        let request = viewed.request;
        assert_eq!(request.is_some(), before.is_some(), "{}", path.display());
        if let (Some((next, before)), Some(request)) = (before, request) {
            seen += 1;
            let name = format!("{} request {}", path.display(), next.number);
            let tokens = recording.tokens(next.number).unwrap();
            let expected = ContextSize {
                frames: request.frames,
                replaced: request.replaced,
                messages: before.len() as u64,
                bytes: before.iter().map(|text| text.len() as u64).sum(),
                system_tokens: tokens.system,
                message_tokens: tokens.messages,
            };
            assert_eq!(request, expected, "{name}: stats");
            assert_eq!(recording.size(next.number), Some(expected), "{name}: stats --request");
            let context = recording.context(next.number).unwrap().unwrap();
            assert_eq!(context.tokens().chunks, tokens.total(), "{name}: tokens");
        }
        let of_session = shown.entry(session).or_default();
        of_session.insert(viewed.frame.sequence.get(), viewed.snapshot);
    }
    assert_eq!(seen, exchanges.len(), "{}", path.display());
    let sums = viewer.requests();
    let tokens = (1..=exchanges.len()).map(|of| recording.tokens(of).unwrap().total());
    assert_eq!((sums.requests, sums.tokens), (exchanges.len() as u64, tokens.sum()));
}

/// A hash of what a request holds of a context.
fn hash(parts: impl IntoIterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.into_iter().for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}

fn hash_of(context: &RenderedContext) -> u64 {
    hash(context.messages().iter().map(|message| (message.role().as_str(), message.content())))
}

/// The frames and the blocks whose text these spans hold, and how many bytes of each.
fn owned<'s>(spans: impl IntoIterator<Item = &'s Span>) -> BTreeMap<String, usize> {
    let mut owned = BTreeMap::new();
    for span in spans {
        let owner = match &span.owner {
            Owner::Chunk { frame, .. } => format!("frame {frame}"),
            Owner::Block { block, .. } => format!("block {block}"),
            _ => continue,
        };
        *owned.entry(owner).or_default() += span.range.len();
    }
    owned
}

/// The export in the form of the session's API is the request, and each form holds each frame and
/// each block of the context, and no other; but for reasoning that a form has no place for.
fn check_exports(
    name: &str,
    history: &History,
    context: &RenderedContext,
    request: &Request,
    is_sampled: bool,
) {
    let options = ExportOptions { breakpoints: Breakpoints::Recorded, ..ExportOptions::default() };
    let export = Export::of(history, context).unwrap();
    let mut body: Value = serde_json::from_str(request.body()).unwrap();
    body.as_object_mut().unwrap().remove("model");
    let own = match request.api() {
        Api::Chat => export.openai_chat(&options),
        Api::Messages => export.anthropic(&options),
        Api::Responses => export.responses(&options),
        api => panic!("{name}: {api}"),
    };
    let own = match serde_json::from_str(&own.value().to_string()).unwrap() {
        list @ Value::Array(_) => json!({ request.api().conversation_key(): list }),
        object => object,
    };
    assert_eq!(hash([own.to_string()]), hash([body.to_string()]), "{name}: export");
    let spans: Vec<Span> =
        context.messages().iter().flat_map(|message| context.spans(message)).collect();
    let of_context = owned(&spans);
    let mut exports = vec![export.plain(&options)];
    if is_sampled {
        exports.push(export.openai_chat(&options));
        exports.push(export.anthropic(&options));
        exports.push(export.responses(&options));
    }
    for exported in exports {
        let texts = exported.root().texts();
        let of_export = owned(texts.iter().flat_map(|(_, text)| text.spans()));
        let form = exported.form();
        let in_context = |owner: &String| of_context.contains_key(owner);
        assert!(of_export.keys().all(in_context), "{name}: {form:?} holds more");
        let is_left_out = |owner: &&String| !of_export.contains_key(*owner);
        for owner in of_context.keys().filter(is_left_out) {
            let frame = owner.strip_prefix("frame ").map(|frame| frame.parse::<u64>().unwrap());
            let snapshot = history.snapshot(frame.unwrap().into()).unwrap();
            let is_reasoning = |chunk: ChunkRef<'_>| {
                let part = chunk.part();
                matches!(part, PartRef::Reasoning)
                    || chunk.content().starts_with("[encrypted ")
                    || chunk.content().trim().is_empty()
            };
            let dropped = &exported.report().dropped;
            // OpenAI takes no search without its id, which Codex does not write.
            let is_search = |chunk: ChunkRef<'_>| matches!(chunk.part(), PartRef::Call { .. });
            let lacks_searches = form == Form::Responses && dropped.contains_key("hosted_call");
            let may_lack = |chunk| is_reasoning(chunk) || lacks_searches && is_search(chunk);
            assert!(snapshot.chunks().all(may_lack), "{name}: {form:?} lacks {owner}");
            let is_told = |kind: &str| kind.starts_with("reasoning") || kind == "hosted_call";
            assert!(dropped.keys().any(|kind| is_told(kind)));
        }
    }
}

/// Invariant `one_context`: what follows the frames one by one sees the contexts of the recording.
#[test]
fn one_context_for_what_follows_the_frames() {
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut checked = 0;
    each_recording(|path, recording| {
        if recording.exchanges().iter().all(|of| !of.provenance.lacks().is_empty()) {
            check_viewer(path, &recording, &hud);
            checked += recording.exchanges().len();
        }
    });
    assert!(checked > 1_000 || data::recordings("A-openai-chat").is_none(), "{checked}");
}

/// Invariant `one_context`: whoever is asked, the context before an answer is the same.
#[test]
fn one_context_whoever_is_asked() {
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let room = Budget::once(u64::MAX / 4);
    let mut checked = 0;
    each_recording(|path, recording| {
        let exchanges = recording.exchanges();
        if exchanges.iter().any(|exchange| exchange.provenance.lacks().is_empty()) {
            return;
        }
        for (session, history) in recording.sessions() {
            let policy = ReplayPolicy::Unlimited;
            let mut replay = Replay::new(hud.clone(), room, policy, Arc::new(OutlineEngine));
            let policy = ReplayPolicy::Blocks(CompressionOptions::default());
            let mut window = Replay::new(hud.clone(), room, policy, Arc::new(OutlineEngine));
            let (mut compactions, mut so_far) = (RecordedCompactions::default(), History::new());
            // An attempt that failed is no turn.
            let is_turn = |of: &&Exchange| of.session == *session && of.answer().is_some();
            let of_session: Vec<_> = exchanges.iter().filter(is_turn).collect();
            let mut expected = of_session.iter().peekable();
            for frame in history.frames() {
                let now = Millis::new(0);
                let exchange = expected.next_if(|of| of.answer() == Some(frame.sequence));
                let name = format!("{} frame {}", path.display(), frame.sequence);
                let turn = replay.push(frame.as_ref().clone(), now).unwrap();
                assert_eq!(turn.is_some(), exchange.is_some(), "{name}: replay");
                if let (Some(exchange), Some(turn)) = (exchange, turn) {
                    let context = recording.context(exchange.number).unwrap().unwrap();
                    assert_eq!(hash_of(turn.context.unwrap()), hash_of(&context), "{name}: replay");
                    let turn = window.push(frame.as_ref().clone(), now).unwrap().unwrap();
                    let windowed = turn.context.unwrap();
                    assert_eq!(hash_of(windowed), hash_of(&context), "{name}: window");
                    // What `render --as messages --to` prints.
                    compactions.follow(&hud, &so_far, now).unwrap();
                    let substitutions = compactions.blocks().to_vec();
                    let request = RenderRequest { substitutions, ..RenderRequest::default() };
                    let rendered = hud.render(&so_far, &request, now).unwrap();
                    assert_eq!(hash_of(&rendered), hash_of(&context), "{name}: render");
                    // Of a long session some requests, and the last: each holds those before it.
                    let is_last = expected.peek().is_none();
                    if is_last || so_far.frames().len() < 48 || exchange.number % 8 == 1 {
                        let request = recording.request(exchange.number).unwrap();
                        let is_sampled = is_last || exchange.number % 16 == 1;
                        check_exports(&name, &so_far, &rendered, &request, is_sampled);
                        let fitted = RequestFitter::new(hud.clone(), room)
                            .fit(&mut so_far, &OutlineEngine, now, |_| {})
                            .unwrap();
                        let Fit::Fits(fitted) = fitted.fit else { panic!("{name}: compress") };
                        assert_eq!(hash_of(&fitted.context), hash_of(&context), "{name}: compress");
                    }
                    checked += 1;
                } else {
                    window.push(frame.as_ref().clone(), now).unwrap();
                }
                hud.capture(&mut so_far, frame.as_ref().clone(), now).unwrap();
            }
            assert!(expected.next().is_none());
        }
    });
    assert!(checked > 1_000 || data::recordings("A-openai-chat").is_none(), "{checked}");
}

/// Of recorded traffic, the context before an answer holds the messages of the request that it
/// answers, and an answer is in the frames that follow.
#[test]
fn the_context_of_recorded_traffic_is_that_of_its_requests() {
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut checked = 0;
    each_recording(|path, recording| {
        for exchange in recording.exchanges() {
            let is_recorded = exchange.provenance.lacks().is_empty();
            let Some(answer) = exchange.answer().filter(|_| is_recorded) else { continue };
            let name = format!("{} request {}", path.display(), exchange.number);
            let history = recording.history(&exchange.session).unwrap();
            let request = recording.request(exchange.number).unwrap();
            let of_request: BTreeSet<_> =
                request.parts().iter().filter_map(RequestPart::frame).collect();
            let mut before = History::new();
            let frames = history.frames().take_while(|frame| frame.sequence < answer);
            for frame in frames {
                hud.capture(&mut before, frame.as_ref().clone(), Millis::new(0)).unwrap();
            }
            let mut compactions = RecordedCompactions::default();
            compactions.follow(&hud, &before, Millis::new(0)).unwrap();
            let substitutions = compactions.blocks().to_vec();
            let asked = RenderRequest { substitutions, ..RenderRequest::default() };
            let context = hud.render(&before, &asked, Millis::new(0)).unwrap();
            let in_context: BTreeSet<_> =
                context.frame_to_message().map(|(frame, _)| frame).collect();
            let unseen: Vec<_> = of_request.difference(&in_context).collect();
            let shows = |frame: &FrameSeq| !history.snapshot(*frame).unwrap().is_empty();
            // A summary that the request holds too stands for what is before it.
            let is_replaced = |frame: FrameSeq| {
                compactions.blocks().iter().any(|block| (block.from..=block.to).contains(&frame))
            };
            let mut unseen = unseen.into_iter().filter(|frame| shows(frame));
            assert!(unseen.all(|frame| is_replaced(*frame)), "{name}: not in the context");
            let unsent: Vec<_> = in_context.difference(&of_request).collect();
            assert!(unsent.is_empty(), "{name}: not in the request: {unsent:?}");
            for frame in &exchange.answer_frames {
                assert_eq!(history.get(*frame).unwrap().source, Source::Agent, "{name}");
            }
            assert!(exchange.response.is_some(), "{name}");
            checked += 1;
        }
    });
    assert!(checked > 20 || data::recordings("A-openai-chat").is_none(), "{checked}");
}

#[test]
fn an_answer_outlives_a_later_attempt_that_failed() {
    let exchange = |temperature: f64, status: u64, response: Value| {
        let mut body = body("d", "Hi");
        body["temperature"] = json!(temperature);
        json!({"uri": "/v1/messages", "request": body, "status": status, "response": response})
    };
    let answer = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let read = |list: Vec<Value>| read_text(&json!({ "interactions": list }).to_string());
    let recording = read(vec![exchange(0.5, 200, answer("one")), exchange(0.7, 500, json!({}))]);
    let found = recording.exchanges().iter().map(|exchange| exchange.answer().is_some());
    assert_eq!(found.collect::<Vec<_>>(), [true, false]);
    let (_, history) = recording.sessions().next().unwrap();
    assert_eq!(history.frames().len(), 3);
    // Of two answers the last one is in the conversation, and neither request is a retry.
    let recording =
        read(vec![exchange(0.5, 200, answer("one")), exchange(0.5, 200, answer("two"))]);
    let found: Vec<_> = recording
        .exchanges()
        .iter()
        .map(|exchange| {
            (exchange.outcome().as_str(), exchange.answer().is_some(), exchange.is_retry)
        })
        .collect();
    assert_eq!(found, [("superseded", false, false), ("answered", true, false)]);
}

/// Two requests to the Messages API, or to `uri`, that are alike but for these members.
fn compared(uri: &str, was: Value, is: Value) -> (Vec<(String, &'static str)>, [u64; 3]) {
    let members = json!({
        "model": "m", "system": "You keep the log.", "tools": [{"name": "tide"}],
        "messages": [{"role": "user", "content": "When is high water?"}],
    });
    let interaction = |other: Value| {
        let mut body = members.clone();
        if uri.contains("responses") {
            body = json!({"model": "m", "tools": [{"name": "tide"}], "input": "When?"});
        }
        let others = other.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(others);
        json!({"uri": uri, "request": body.to_string(), "status": 200, "response": {}})
    };
    let document = json!({"interactions": [interaction(was), interaction(is)]}).to_string();
    let recording = read_text(&document);
    let (was, is) = (recording.request(1).unwrap(), recording.request(2).unwrap());
    let diff = compare(&was, &is, &Chars4, PrefixRules::EXACT).unwrap();
    let breaks = diff.breaks.iter().map(|of| (of.cause.clone(), of.from.as_str()));
    let tokens = is.tokens(&Chars4);
    let served = [tokens.tools, tokens.system, diff.prefix.cached];
    (breaks.collect(), served)
}

#[test]
fn a_word_that_differs_is_billed_again_and_its_facet_is_named() {
    let rewound = |word: &str| {
        json!([{"role": "user", "content": "One."}, {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": format!("Then berth {word}")}, {"role": "assistant", "content": "Done."}])
        .to_string()
    };
    let (was, is) = (read_text(&rewound("four")), read_text(&rewound("five")));
    let (was, is) = (was.request(2).unwrap(), is.request(2).unwrap());
    for counter in [&Chars4 as &dyn TokenCounter, &Bpe::o200k()] {
        let diff = compare(&was, &is, counter, PrefixRules::EXACT).unwrap();
        assert_eq!(diff.prefix.tokens - diff.prefix.unchanged, 1, "{:?}", diff.prefix);
        let divergence = diff.prefix.divergence.unwrap();
        let Some(Owner::Chunk { frame, facet_ids, .. }) = divergence.owner else { panic!() };
        assert_eq!((frame.get(), facet_ids[0].as_str()), (2, "event-2.0"));
    }
}

#[test]
fn entries_of_an_archive_are_taken_in_the_order_of_their_times() {
    let entry = |time: &str, text: &str| {
        json!({"startedDateTime": time, "request": {"url": "https://x.example/v1/messages",
            "postData": {"text": body("d", text).to_string()}}, "response": {"status": 500}})
    };
    let order = |entries: Vec<Value>| {
        let recording = read_text(&json!({"log": {"entries": entries}}).to_string());
        let times = recording.exchanges().iter().map(|of| of.time.clone().unwrap());
        times.map(|time| time[17..].to_owned()).collect::<Vec<_>>()
    };
    let times = ["2026-01-02T03:04:06Z", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.25Z"];
    let entries = |times: [&str; 3]| times.map(|time| entry(time, "Hi")).to_vec();
    assert_eq!(order(entries(times)), ["05.25Z", "05.5Z", "06Z"]);
    let zones = ["2026-01-02T03:04:06Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:04Z"];
    assert_eq!(order(entries(zones)), ["04Z", "05+01:00", "06Z"]);
    // Where one is no time, all stay as they stand.
    let odd = ["2026-01-02T03:04:06Z", "2026-01-02T03:04 five", "2026-01-02T03:04:05Z"];
    assert_eq!(order(entries(odd)), ["06Z", "five", "05Z"]);
}

#[test]
fn a_body_that_was_mended_is_not_what_was_sent() {
    let (whole, cut) = (body("d", "Hi").to_string(), body("d", "HALF").to_string());
    let entry = |text: &str| json!({"uri": "https://x.example/v1/messages", "request": text, "status": 500, "response": {}});
    let document = json!({"interactions": [entry(&whole), entry(&cut)]}).to_string();
    let document = document.replace("HALF", "\\ud83d");
    let recording = read_text(&document);
    let provenances = recording.exchanges().iter().map(|of| of.provenance.as_str());
    assert_eq!(provenances.collect::<Vec<_>>(), ["sent", "logged"]);
}

#[test]
fn a_request_for_a_count_is_no_request_to_a_model() {
    let exchange = |uri: &str| json!({"uri": uri, "request": body("d", "Hi"), "status": 200, "response": {"input_tokens": 4}});
    let list = [
        "https://x.example/v1/messages/count_tokens?beta=true",
        "https://x.example/v1/messages/batches",
    ];
    let document = json!({"interactions": list.map(exchange)}).to_string();
    assert!(read_text(&document).exchanges().is_empty());
}

#[test]
fn nothing_of_a_request_without_a_mark_is_cached_by_anthropic() {
    let text = "All hands to the quay before the tide turns. ".repeat(400);
    let exchange = |members: Value, more: &str| {
        let mut body =
            json!({"model": "m", "system": text, "messages": [{"role": "user", "content": "Hi"}]});
        if !more.is_empty() {
            body["messages"].as_array_mut().unwrap().extend([
                json!({"role": "assistant", "content": "Yes"}),
                json!({"role": "user", "content": more}),
            ]);
        }
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"uri": "https://x.example/v1/messages", "request": body.to_string(), "status": 200, "response": {}})
    };
    for (members, is_cached) in
        [(json!({}), false), (json!({"cache_control": {"type": "ephemeral"}}), true)]
    {
        let list = [exchange(members.clone(), ""), exchange(members, "Go on.")];
        let recording = read_text(&json!({"interactions": list}).to_string());
        let (was, is) = (recording.request(1).unwrap(), recording.request(2).unwrap());
        let diff = compare(&was, &is, &Chars4, PrefixRules::ANTHROPIC).unwrap();
        assert_eq!(diff.prefix.cached > 0, is_cached);
        assert!(diff.prefix.unchanged > 1_024);
    }
}

#[test]
fn a_parameter_takes_the_cache_from_where_the_provider_says() {
    const ANTHROPIC: &str = "https://x.example/v1/messages";
    const CHAT: &str = "https://x.example/v1/chat/completions";
    const RESPONSES: &str = "https://x.example/v1/responses";
    let cited = json!([{"role": "user", "content": [
        {"type": "document", "citations": {"enabled": true}, "source": {}}]}]);
    let seen = json!([{"role": "user", "content": [
        {"type": "tool_result", "content": [{"type": "image", "source": {}}]}]}]);
    let messages = [
        (json!({"temperature": 1, "max_tokens": 5}), json!({}), None),
        (json!({"tool_choice": {"type": "any"}}), json!({}), Some(("tool_choice", "messages"))),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            Some(("thinking", "messages")),
        ),
        (
            json!({"output_config": {"effort": "low"}}),
            json!({"output_config": {"effort": "high"}}),
            Some(("output_config", "messages")),
        ),
        (
            json!({"output_config": {"effort": "low"}}),
            json!({"output_config": {"effort": "low", "format": {"type": "json_schema"}}}),
            Some(("output_config", "start")),
        ),
        (json!({"speed": "fast"}), json!({}), Some(("speed", "system"))),
        (json!({"model": "other"}), json!({}), Some(("model", "start"))),
        (json!({ "messages": cited }), json!({}), Some(("citations", "system"))),
        (json!({ "messages": seen }), json!({}), Some(("images", "messages"))),
    ];
    for (was, is, expected) in messages {
        let name = format!("{was} → {is}");
        let (breaks, [tools, system, cached]) = compared(ANTHROPIC, was.clone(), is.clone());
        let found: Vec<(&str, &str)> =
            breaks.iter().map(|(cause, from)| (cause.as_str(), *from)).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{name}");
        match expected.map(|(_, from)| from) {
            None => assert!(cached > tools + system, "{name}"),
            Some("start") => assert_eq!(cached, 0, "{name}"),
            Some("system") => assert_eq!(cached, tools, "{name}"),
            Some(_) => assert_eq!(cached, tools + system, "{name}"),
        }
    }
    let others = [
        (CHAT, json!({"response_format": {"type": "json_object"}}), Some("response_format")),
        (CHAT, json!({"reasoning_effort": "low"}), Some("reasoning_effort")),
        (CHAT, json!({"prompt_cache_key": "a"}), Some("prompt_cache_key")),
        (CHAT, json!({"tool_choice": "required", "thinking": {}}), None),
        (RESPONSES, json!({"text": {"format": {"type": "json_object"}}}), Some("text")),
        (CHAT, json!({"verbosity": "low"}), Some("verbosity")),
        (RESPONSES, json!({"text": {"verbosity": "low"}}), Some("text")),
        (RESPONSES, json!({"parallel_tool_calls": false}), Some("parallel_tool_calls")),
        (RESPONSES, json!({"service_tier": "flex"}), Some("service_tier")),
        (RESPONSES, json!({"reasoning": {"effort": "low"}}), Some("reasoning")),
        (RESPONSES, json!({"reasoning": {"summary": "auto"}}), None),
    ];
    for (uri, was, expected) in others {
        let (breaks, [.., cached]) = compared(uri, was.clone(), json!({}));
        let expected: Vec<_> =
            expected.into_iter().map(|cause| (cause.to_owned(), "start")).collect();
        assert_eq!(breaks, expected, "{uri} {was}");
        assert_eq!(cached == 0, !expected.is_empty(), "{uri} {was}");
    }
}
