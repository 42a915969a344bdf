//! Requests that name an earlier response are joined with what they go on from.
#![cfg(feature = "record")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;

use afterimage::{
    export::PrefixRules,
    id::Millis,
    json::{self, Value},
    record::{End, RecordingWriter, RequestBody, ResponseHead, Start},
    request::{Exchange, ExchangeOutcome, PartKind, Provenance, Recording},
    tokens::default_counter,
    transcript::Transcript,
};

/// A request, what came back, and whether both went through a WebSocket.
type Call = (String, String, bool);

fn read(calls: &[Call]) -> Recording {
    let scratch = tempfile::tempdir().unwrap();
    write(scratch.path(), calls);
    let transcript = Transcript::open_folder(scratch.path()).unwrap().unwrap();
    Recording::read(transcript, default_counter(), |_| Millis::new(0)).unwrap()
}

fn write(folder: &Path, calls: &[Call]) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    for (request, response, is_websocket) in calls {
        let (method, status) = if *is_websocket { ("GET", 101) } else { ("POST", 200) };
        let start = Start {
            path: "/responses".to_owned(),
            is_websocket: *is_websocket,
            ..Start::now(method, "openai")
        };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(request.as_bytes())).unwrap();
        let head = ResponseHead { status, after_ms: 1, headers: Vec::new() };
        writer.response(id, &head).unwrap();
        writer.part(id, response.as_bytes()).unwrap();
        let bytes = response.len() as u64;
        writer.end(id, &End { after_ms: 2, bytes, stored: bytes, cut: None }).unwrap();
    }
}

fn message(role: &str, text: &str) -> String {
    format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":\"{text}\"}}")
}

/// A request with these messages of the user, which goes on from a response.
fn request(previous: Option<&str>, texts: &[&str], more: &str) -> String {
    let items: Vec<String> = texts.iter().map(|text| message("user", text)).collect();
    let previous = previous.map(|id| format!("\"previous_response_id\": \"{id}\","));
    let previous = previous.unwrap_or_default();
    format!(
        "{{\"type\":\"response.create\",{more}\"model\":\"m\",{previous}\"input\": [{}], \"n\": 1.50}}",
        items.join(", ")
    )
}

fn answer(id: &str, texts: &[&str]) -> String {
    let items: Vec<String> = texts.iter().map(|text| message("assistant", text)).collect();
    let output = items.join(",");
    format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"id\":\"{id}\"}}}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"{id}\",\"output\":[{output}]}}}}\n\n"
    )
}

/// What the messages of a request say, in order.
fn said(recording: &Recording, number: usize) -> Vec<String> {
    let request = recording.request(number).unwrap();
    let value = request.value().unwrap();
    let list = value.get("input").and_then(Value::as_array).unwrap();
    list.iter().map(|item| item.get("content").unwrap().as_str().unwrap().to_owned()).collect()
}

fn resolved(messages: usize, missing: Option<&str>) -> Provenance {
    Provenance::Resolved { messages, missing: missing.map(Into::into), wrong: None }
}

#[test]
fn a_request_is_joined_with_its_chain_over_http_and_over_websockets() {
    for is_websocket in [false, true] {
        let calls: Vec<Call> = [
            (request(None, &["a"], ""), answer("r1", &["A", "B"])),
            (request(Some("r1"), &["b", "c"], ""), answer("r2", &["C"])),
            (request(Some("r2"), &["d"], ""), answer("r3", &["D"])),
        ]
        .map(|(request, answer)| (request, answer, is_websocket))
        .into();
        let recording = read(&calls);
        let provenances: Vec<Provenance> =
            recording.exchanges().iter().map(|of| of.provenance.clone()).collect();
        assert_eq!(provenances, [Provenance::Sent, resolved(3, None), resolved(6, None)]);
        assert_eq!(said(&recording, 1), ["a"]);
        assert_eq!(said(&recording, 2), ["a", "A", "B", "b", "c"]);
        assert_eq!(said(&recording, 3), ["a", "A", "B", "b", "c", "C", "d"]);
        let session = &recording.exchanges()[0].session;
        for exchange in recording.exchanges() {
            assert_eq!(exchange.outcome(), ExchangeOutcome::Answered);
            assert_eq!(&exchange.session, session);
            assert!(exchange.answer().is_some());
            // What was sent is there byte for byte.
            let sent = recording.sent(exchange.number).unwrap();
            assert_eq!(sent.body(), calls[exchange.number - 1].0);
            assert_eq!(sent.provenance(), &Provenance::Sent);
        }
        // Every message has the frame that says it, joined or not.
        let last = recording.request(3).unwrap();
        assert!(
            last.body().contains("\"n\": 1.50") && !last.body().contains("previous_response_id")
        );
        let frames: Vec<u64> = last
            .parts()
            .into_iter()
            .filter(|part| matches!(part.kind, PartKind::Message { .. }))
            .map(|part| part.frame().unwrap().get())
            .collect();
        assert!(frames.is_sorted() && frames.len() == 7, "{frames:?}");
        let own: Vec<Option<u64>> = recording
            .sent(3)
            .unwrap()
            .parts()
            .into_iter()
            .filter(|part| matches!(part.kind, PartKind::Message { .. }))
            .map(|part| part.frame().map(afterimage::id::FrameSeq::get))
            .collect();
        assert_eq!(own, [frames.last().copied()]);
        // So a request that goes on from another only adds to it.
        for number in [2, 3] {
            let rules = PrefixRules::EXACT;
            let diff = recording.compare(number, rules).unwrap().unwrap();
            assert_eq!(diff.prefix.divergence, None);
        }
    }
}

#[test]
fn a_warm_up_is_marked_and_what_follows_it_is_joined() {
    let warm_up = request(None, &["a"], "\"generate\": false,");
    let calls = [
        (warm_up, answer("r1", &[]), true),
        (request(Some("r1"), &[], ""), answer("r2", &["A"]), true),
        (request(Some("r2"), &["b"], "\"generate\":true,"), answer("r3", &["B"]), true),
    ];
    let recording = read(&calls);
    let marks: Vec<bool> = recording.exchanges().iter().map(Exchange::is_warm_up).collect();
    assert_eq!(marks, [true, false, false]);
    assert!(recording.exchanges().iter().all(|of| of.outcome() == ExchangeOutcome::Answered));
    assert_eq!(said(&recording, 2), ["a"]);
    assert_eq!(said(&recording, 3), ["a", "A", "b"]);
    let answers: Vec<bool> = recording.exchanges().iter().map(|of| of.answer().is_some()).collect();
    assert_eq!(answers, [false, true, true]);
}

#[test]
fn a_missing_link_is_named() {
    let recording = read(&[
        (request(Some("r0"), &["a"], ""), answer("r1", &["A"]), false),
        (request(Some("r1"), &["b"], ""), answer("r2", &["B"]), false),
    ]);
    let provenances: Vec<Provenance> =
        recording.exchanges().iter().map(|of| of.provenance.clone()).collect();
    assert_eq!(provenances, [resolved(0, Some("r0")), resolved(2, Some("r0"))]);
    assert_eq!(said(&recording, 2), ["a", "A", "b"]);
    // The request still says that the provider has more.
    let request = recording.request(2).unwrap();
    let body = request.value().unwrap();
    assert_eq!(body.get("previous_response_id"), Some(&"r0".into()));
    let json = recording.request(2).unwrap().to_json();
    assert_eq!(
        json.get("resolved").map(ToString::to_string).as_deref(),
        Some(r#"{"messages":2,"missing":"r0"}"#)
    );
}

#[test]
fn an_answer_that_broke_off_is_joined_as_far_as_it_came_and_named() {
    let item = message("assistant", "A");
    let cut = format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"id\":\"r1\"}}}}\n\n\
         data: {{\"type\":\"response.output_item.done\",\"item\":{item}}}\n\n"
    );
    let recording = read(&[
        (request(None, &["a"], ""), cut, true),
        (request(Some("r1"), &["b"], ""), answer("r2", &["B"]), true),
    ]);
    assert_eq!(recording.exchanges()[1].provenance, resolved(2, Some("r1")));
    assert_eq!(said(&recording, 2), ["a", "A", "b"]);
}

#[test]
fn an_answer_that_failed_is_no_link() {
    let failed = "data: {\"type\":\"error\",\"status\":400,\"error\":{\"type\":\"invalid_request_error\",\"code\":\"previous_response_not_found\"}}\n\n";
    let recording = read(&[
        (request(Some("gone"), &["a"], ""), failed.to_owned(), true),
        (request(None, &["a"], ""), answer("r1", &["A"]), true),
    ]);
    let failure = recording.exchanges()[0].failure.as_deref();
    assert_eq!(failure, Some("error invalid_request_error"));
    assert_eq!(recording.exchanges()[1].outcome(), ExchangeOutcome::Answered);
}

#[test]
fn a_link_that_leads_to_a_later_answer_marks_its_request_alone() {
    let recording = read(&[
        (request(Some("r2"), &["a"], ""), answer("r1", &["A"]), false),
        (request(Some("r1"), &["b"], ""), answer("r2", &["B"]), false),
        (request(Some("r3"), &["c"], ""), answer("r3", &["C"]), false),
        (request(Some("r3"), &["d"], ""), answer("r4", &["D"]), false),
        (request(None, &["e"], ""), answer("r5", &["E"]), false),
    ]);
    let wrong = |number: usize| match &recording.exchanges()[number - 1].provenance {
        Provenance::Resolved { wrong, .. } => wrong.as_deref().map(str::to_owned),
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(1).unwrap(), "it names \"r2\", the response to request 2");
    // What goes on from it is joined with it, and lacks what it lacks.
    assert_eq!(wrong(2), None);
    let missing = |number: usize| match &recording.exchanges()[number - 1].provenance {
        Provenance::Resolved { missing, .. } => missing.as_deref().map(str::to_owned),
        other => panic!("{other:?}"),
    };
    assert_eq!((missing(2).as_deref(), missing(4).as_deref()), (Some("r2"), Some("r3")));
    assert_eq!(wrong(3).unwrap(), "it names \"r3\", the response to itself");
    assert_eq!(recording.exchanges()[4].provenance, Provenance::Sent);
    for (number, expected) in
        [(1, vec!["a"]), (2, vec!["a", "A", "b"]), (3, vec!["c"]), (4, vec!["c", "C", "d"])]
    {
        assert_eq!(said(&recording, number), expected, "{number}");
        assert!(recording.sent(number).is_ok());
    }
    for exchange in recording.exchanges() {
        recording.compare(exchange.number, PrefixRules::EXACT).unwrap();
        recording.tokens(exchange.number).unwrap();
    }
}

#[test]
fn a_text_alone_that_is_joined_only_adds() {
    let recording = read(&[
        ("{\"model\":\"m\",\"input\":\"a\"}".to_owned(), answer("r1", &["A"]), false),
        (
            "{\"model\":\"m\",\"previous_response_id\":\"r1\",\"input\":\"b\"}".to_owned(),
            answer("r2", &["B"]),
            false,
        ),
    ]);
    let diff = recording.compare(2, PrefixRules::EXACT).unwrap().unwrap();
    assert_eq!(diff.prefix.divergence, None);
    assert!(diff.parameters.is_empty() && diff.prefix.unchanged > 0);
}

#[test]
fn a_text_alone_and_forks_are_joined_too() {
    let text = |previous: &str, text: &str| {
        format!("{{\"model\":\"m\",\"previous_response_id\":\"{previous}\",\"input\":\"{text}\"}}")
    };
    let recording = read(&[
        (
            "{\"model\":\"m\",\"previous_response_id\":null,\"input\":\"a\"}".to_owned(),
            answer("r1", &["A"]),
            false,
        ),
        (text("r1", "b"), answer("r2", &["B"]), false),
        (text("r1", "c"), answer("r3", &["C"]), false),
    ]);
    assert_eq!(recording.exchanges()[0].provenance, Provenance::Sent);
    assert_eq!(said(&recording, 2), ["a", "A", "b"]);
    assert_eq!(said(&recording, 3), ["a", "A", "c"]);
    let body = recording.request(3).unwrap();
    assert!(json::read(body.body().as_bytes()).is_ok());
}

#[test]
fn a_request_of_a_kept_conversation_goes_on_from_its_last_answer() {
    let asked = |conversation: &str, text: &str| {
        format!("{{\"model\":\"m\",\"conversation\":{conversation},\"input\":\"{text}\"}}")
    };
    let recording = read(&[
        (asked("\"c\"", "a"), answer("r1", &["A"]), false),
        (asked("\"d\"", "x"), answer("r2", &["X"]), false),
        (asked("{\"id\":\"c\"}", "b"), answer("r3", &["B"]), false),
        (asked("\"c\"", "e"), answer("r4", &["E"]), false),
    ]);
    let sessions: Vec<&str> = recording.exchanges().iter().map(|of| &*of.session).collect();
    assert_eq!(sessions, ["1", "2", "1", "1"]);
    // Nobody made it here, so what stood in it before is not known.
    assert_eq!(recording.exchanges()[0].provenance, resolved(0, Some("c")));
    assert_eq!(recording.exchanges()[3].provenance, resolved(4, Some("c")));
    let last = recording.request(4).unwrap();
    assert!(last.body().contains("conversation"), "{}", last.body());
    let at = |text: &str| last.body().find(text).unwrap();
    assert!(at("\"a\"") < at("\"A\"") && at("\"A\"") < at("\"b\"") && at("\"B\"") < at("\"e\""));
}
