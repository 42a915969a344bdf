//! Recordings of the wire, read as transcripts.
#![cfg(feature = "record")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{io::Write, path::Path};

use afterimage::{
    export::PrefixRules,
    id::Millis,
    record::{End, RecordingWriter, RequestBody, ResponseHead, Start},
    request::{Exchange, ExchangeOutcome, Provenance, Recording, Request},
    tokens::default_counter,
    transcript::{Transcript, TranscriptFormat},
};

const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// An exchange: the body, what came back, and what cut it off.
type Call<'c> = (&'c [u8], Option<&'c [u8]>, Option<&'c str>);

fn write(folder: &Path, calls: &[Call<'_>]) -> RecordingWriter {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    for (request, response, cut) in calls {
        let start = Start {
            time_ms: 1_795_449_600_123,
            path: "/chat/completions".to_owned(),
            ..Start::now("POST", "openai")
        };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(request)).unwrap();
        let mut length = 0;
        if let Some(response) = response {
            let head = ResponseHead { status: 200, after_ms: 7, headers: Vec::new() };
            writer.response(id, &head).unwrap();
            response.chunks(50).for_each(|part| writer.part(id, part).unwrap());
            length = response.len() as u64;
        }
        let cut = cut.map(str::to_owned);
        writer.end(id, &End { after_ms: 90, bytes: length, stored: length, cut }).unwrap();
    }
    writer
}

fn read(folder: &Path) -> Recording {
    let transcript = Transcript::open_folder(folder).unwrap().unwrap();
    assert_eq!(transcript.format(), TranscriptFormat::Recording);
    let counter = default_counter();
    Recording::read(transcript, counter, |_| Millis::new(0)).unwrap()
}

fn request(turns: &[&str]) -> String {
    let messages: Vec<String> = turns
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}")
        })
        .collect();
    format!("{{\"model\":\"m\",\"messages\":[{}]}}", messages.join(","))
}

fn failure(exchange: &Exchange) -> Option<&str> {
    exchange.failure.as_deref()
}

#[test]
fn one_context_a_recording_of_the_wire_holds_the_requests_as_they_were_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, two) = (request(&["Open?"]), request(&["Open?", "Yes", "Sure?"]));
    let whole = format!("{STREAM}{DONE}");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(whole.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let two_packed = {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(two.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let calls: [Call<'_>; 2] =
        [(one.as_bytes(), Some(whole.as_bytes()), None), (&two_packed, Some(&packed), None)];
    drop(write(scratch.path(), &calls));
    let recording = read(scratch.path());
    let [first, second] = recording.exchanges() else { panic!("{:?}", recording.exchanges()) };
    assert_eq!((&first.session, first.provenance.clone()), (&second.session, Provenance::Sent));
    assert_eq!(first.time.as_deref(), Some("2026-11-23T16:00:00.123Z"));
    assert_eq!((first.duration_ms, first.status), (Some(90), Some(200)));
    for (exchange, body) in [(first, &one), (second, &two)] {
        assert_eq!(exchange.outcome(), ExchangeOutcome::Answered);
        assert_eq!(exchange.response.as_deref(), Some(&*whole));
        assert_eq!(recording.request(exchange.number).unwrap().body(), body.as_str());
    }
}

#[test]
fn a_cut_answer_is_never_taken_for_a_whole_one() {
    let gone = Some("the client went away");
    let whole = format!("{STREAM}{DONE}");
    let json = "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Yes\"}}]}";
    for (answer, expected) in [
        // The client has what it waits for, and leaves.
        (Some(whole.as_str()), None),
        (Some(STREAM), Some("broken off: the client went away")),
        (Some(json), Some("broken off: the client went away")),
        (Some(&json[..40]), Some("no response: the client went away")),
        (None, Some("the client went away")),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let body = request(&["Open?"]);
        let call: Call<'_> = (body.as_bytes(), answer.map(str::as_bytes), gone);
        drop(write(scratch.path(), &[call]));
        let recording = read(scratch.path());
        let [exchange] = recording.exchanges() else { panic!("{answer:?}") };
        assert_eq!(failure(exchange), expected, "{answer:?}");
    }
}

#[test]
fn a_request_or_an_answer_that_cannot_be_read_is_called_what_it_is() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Yes\"}}]}";
    let body = request(&["Open?"]);
    for (request, answer, unread, failed) in [
        ("null", text, Some("the request is null, and no object"), None),
        ("not JSON", text, Some("the request is no JSON"), None),
        ("", text, Some("the request has no body"), None),
        (&deep, text, Some("the request cannot be read: nesting deeper than 128 levels"), None),
        (&body, "abc", None, Some("the response is no JSON")),
        (&body, "null", None, Some("the response is null, and no object")),
        (&body, "", None, Some("an answer without a body")),
        (&body, DONE, None, Some("a stream of events without an answer")),
        (&body, &deep, None, Some("the response cannot be read: nesting deeper than 128 levels")),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let call: Call<'_> = (request.as_bytes(), Some(answer.as_bytes()), None);
        drop(write(scratch.path(), &[call]));
        let recording = read(scratch.path());
        let [exchange] = recording.exchanges() else { panic!("{request} {answer}") };
        assert_eq!(exchange.unread.as_deref(), unread, "{request}");
        assert_eq!(failure(exchange), failed, "{answer}");
    }
}

/// What is wrong with a stream, and whether there is something of its answer.
fn streamed(path: &str, body: &str, stream: &str) -> (String, bool) {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    pass(&mut writer, path, &RequestBody::whole(body.as_bytes()), (200, stream), 0);
    drop(writer);
    let recording = read(scratch.path());
    let [exchange] = recording.exchanges() else { panic!("{stream}") };
    (failure(exchange).unwrap().to_owned(), !exchange.answer_frames.is_empty())
}

#[test]
fn a_stream_that_ends_with_an_error_is_told_by_the_error() {
    let event = |data: &str| format!("event: error\ndata: {data}\n\n");
    let overloaded = event(
        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy\\nnow\"}}",
    );
    let begun = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\"}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Ye\"}}\n\n";
    let messages = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Open?\"}]}";
    let told = "overloaded_error: Busy";
    let (found, has_answer) = streamed("/messages", messages, &format!("{begun}{overloaded}"));
    assert_eq!(found, format!("broken off: the stream ended with an error event: {told}"));
    // What had come is kept, as of a stream without an end.
    assert!(has_answer);
    let (found, has_answer) = streamed("/messages", messages, &overloaded);
    assert_eq!(found, format!("the stream is nothing but an error event: {told}"));
    assert!(!has_answer);
    let (found, _) = streamed("/messages", messages, begun);
    assert_eq!(found, "broken off: the stream has no end");

    // An error that the stream goes on after is not its end.
    let more = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"s\"}}\n\n";
    let ping = "data: {\"type\":\"ping\"}\n\n";
    let (found, _) = streamed("/messages", messages, &format!("{begun}{overloaded}{more}"));
    assert_eq!(found, "broken off: the stream has no end");
    let (found, _) = streamed("/messages", messages, &format!("{begun}{ping}{overloaded}{ping}"));
    assert_eq!(found, format!("broken off: the stream ended with an error event: {told}"));
    let (found, _) = streamed("/messages", messages, &format!("{overloaded}{more}"));
    assert_eq!(found, format!("a stream of events without an answer, with an error event: {told}"));
    // The first line is kept whole: what is redacted later must not be cut before.
    let long = "a".repeat(5_000);
    let error = event(&format!("{{\"type\":\"error\",\"error\":{{\"message\":\"{long}\"}}}}"));
    let (found, _) = streamed("/messages", messages, &format!("{begun}{error}"));
    assert!(found.ends_with(&long), "{found}");

    let half = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Ye\"}}]}\n\n";
    let wrong = "data: {\"error\":{\"message\":\"Too slow\",\"type\":null,\"code\":529}}\n\n";
    let (found, has_answer) = streamed(CHAT, messages, &format!("{half}{wrong}"));
    assert_eq!(found, "broken off: the stream ended with an error event: 529: Too slow");
    assert!(has_answer);

    let responses = "{\"model\":\"m\",\"input\":\"Open?\"}";
    let flat =
        event("{\"type\":\"error\",\"code\":\"server_error\",\"message\":\"No\",\"param\":null}");
    let (found, _) = streamed("/responses", responses, &flat);
    assert_eq!(found, "error server_error: No");
}

#[test]
fn an_exchange_that_still_runs_is_left_out_until_it_has_ended() {
    let scratch = tempfile::tempdir().unwrap();
    let body = request(&["Open?"]);
    let call: Call<'_> = (body.as_bytes(), Some(STREAM.as_bytes()), None);
    let mut writer = write(scratch.path(), &[call]);
    let start = Start { path: "/chat/completions".to_owned(), ..Start::now("POST", "openai") };
    let id = writer.start(&start).unwrap();
    writer.request(id, "openai", RequestBody::whole(body.as_bytes())).unwrap();
    assert_eq!(read(scratch.path()).exchanges().len(), 1);
    drop(writer);
    let recording = read(scratch.path());
    let [_, second] = recording.exchanges() else { panic!() };
    assert_eq!(
        failure(second),
        Some("its end is not recorded: the recorder was stopped, or could not write")
    );
}

fn deflated(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// Exchanges whose bodies are packed in a coding.
fn write_packed(folder: &Path, calls: &[(&str, Vec<u8>, Vec<u8>)]) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    for (coding, body, answer) in calls {
        let headers = || vec![("content-encoding".to_owned(), (*coding).to_owned())];
        let start = Start {
            path: "/chat/completions".to_owned(),
            headers: headers(),
            ..Start::now("POST", "openai")
        };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(body)).unwrap();
        let head = ResponseHead { status: 200, after_ms: 7, headers: headers() };
        writer.response(id, &head).unwrap();
        writer.part(id, answer).unwrap();
        let bytes = answer.len() as u64;
        writer.end(id, &End { after_ms: 9, bytes, stored: bytes, cut: None }).unwrap();
    }
}

#[test]
fn a_request_unpacks_to_as_much_as_an_answer_may_and_to_no_more() {
    let scratch = tempfile::tempdir().unwrap();
    let answer = deflated(&format!("{STREAM}{DONE}"));
    // Of 128 bytes for each that was sent, and 64 KiB.
    let (most, more) = ("tide ".repeat(12_000), "tide ".repeat(1 << 18));
    let calls = [&most, &more].map(|text| {
        let body = deflated(&request(&[text]));
        ("deflate", body, answer.clone())
    });
    let limit = calls[1].1.len() * 128 + (64 << 10);
    write_packed(scratch.path(), &calls);
    let recording = read(scratch.path());
    let [read, refused] = recording.exchanges() else { panic!("{:?}", recording.exchanges()) };
    assert_eq!(read.unread, None);
    let why = format!("expected a body that unpacks to {limit} bytes at most, found more");
    assert_eq!(refused.unread.as_deref(), Some(&*why));
}

#[test]
fn bodies_are_unpacked_by_their_coding() {
    let scratch = tempfile::tempdir().unwrap();
    let body = request(&["Open?"]);
    let answer = format!("{STREAM}{DONE}");
    // A block of brotli that is stored as it is: 4 bits of the window and the length, and its end.
    let stored = |text: &str| {
        let length = u32::try_from(text.len() - 1).unwrap() << 4;
        let head = (length | 1 << 20).to_le_bytes();
        let mut bytes = vec![head[0], head[1], head[2]];
        bytes.extend(text.as_bytes());
        bytes.push(3);
        bytes
    };
    write_packed(
        scratch.path(),
        &[
            ("deflate", deflated(&body), deflated(&answer)),
            ("br", stored(&body), stored(&answer)),
            ("br", b"no brotli".to_vec(), stored(&answer)),
        ],
    );
    let mut transcript = Transcript::open_folder(scratch.path()).unwrap().unwrap();
    transcript.by_ref().for_each(drop);
    assert_eq!(transcript.report().unknown_records, 0);
    let recording = read(scratch.path());
    let (broken, read) = recording.exchanges().split_last().unwrap();
    // What is not of its coding is told of.
    assert!(broken.unread.as_ref().unwrap().contains("br"), "{broken:?}");
    assert_eq!(read.len(), 2);
    for exchange in read {
        assert_eq!(exchange.provenance, Provenance::Sent);
        assert_eq!(exchange.response.as_deref(), Some(&*answer));
        assert_eq!(recording.request(exchange.number).unwrap().body(), body.as_str());
    }
}

#[test]
fn of_an_answer_that_broke_off_all_is_read_that_came_before() {
    let gone = Some("the provider went away".to_owned());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(STREAM.as_bytes()).unwrap();
    packed.flush().unwrap();
    let packed = packed.get_ref().clone();
    let half = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é".as_bytes();
    let plain = [STREAM.as_bytes(), &half[..half.len() - 1]].concat();
    let two = vec![("content-encoding".to_owned(), "identity".to_owned())];
    let gzip = [two.clone(), vec![("content-encoding".to_owned(), "gzip".to_owned())]].concat();
    for (headers, answer) in [(gzip, packed), (two, plain)] {
        let scratch = tempfile::tempdir().unwrap();
        let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
        let start = Start { path: "/chat/completions".to_owned(), ..Start::now("POST", "openai") };
        let id = writer.start(&start).unwrap();
        let body = request(&["Open?"]);
        writer.request(id, "openai", RequestBody::whole(body.as_bytes())).unwrap();
        writer.response(id, &ResponseHead { status: 200, after_ms: 7, headers }).unwrap();
        writer.part(id, &answer).unwrap();
        let bytes = answer.len() as u64;
        let end = End { after_ms: 9, bytes, stored: bytes, cut: gone.clone() };
        writer.end(id, &end).unwrap();
        drop(writer);
        let recording = read(scratch.path());
        let [exchange] = recording.exchanges() else { panic!("{:?}", recording.exchanges()) };
        assert_eq!(failure(exchange), Some("broken off: the provider went away"));
        assert!(exchange.response.as_deref().unwrap().starts_with(STREAM));
        assert_eq!(exchange.cut, gone);
        let (_, history) = recording.sessions().next().unwrap();
        let last = history.frames().last().unwrap();
        assert!(format!("{last:?}").contains("Yes"), "{last:?}");
    }
}

/// An exchange whose body, answer and end are given as they stand.
fn pass(
    writer: &mut RecordingWriter,
    path: &str,
    body: &RequestBody<'_>,
    (status, answer): (u16, &str),
    more: u64,
) {
    let start = Start { path: path.to_owned(), ..Start::now("POST", "openai") };
    let id = writer.start(&start).unwrap();
    writer.request(id, "openai", *body).unwrap();
    writer.response(id, &ResponseHead { status, after_ms: 7, headers: Vec::new() }).unwrap();
    writer.part(id, answer.as_bytes()).unwrap();
    let stored = answer.len() as u64;
    writer.end(id, &End { after_ms: 9, bytes: stored + more, stored, cut: None }).unwrap();
}

fn billed(id: &str, input: u64) -> String {
    format!(
        "{{\"id\":\"{id}\",\"model\":\"m\",\"usage\":{{\"prompt_tokens\":{input},\"completion_tokens\":5}},\
         \"choices\":[{{\"message\":{{\"role\":\"assistant\",\"content\":\"Yes\"}}}}]}}"
    )
}

const CHAT: &str = "/chat/completions";

#[test]
fn exchanges_that_are_the_same_are_each_an_exchange() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    let body = request(&["Open?"]);
    for input in [1_000, 2_000, 3_000] {
        let answer = billed("same", input);
        pass(&mut writer, CHAT, &RequestBody::whole(body.as_bytes()), (200, &answer), 0);
    }
    drop(writer);
    let recording = read(scratch.path());
    let inputs: Vec<_> =
        recording.exchanges().iter().map(|of| of.usage.as_ref().unwrap().input.unwrap()).collect();
    assert_eq!(inputs, [1_000, 2_000, 3_000]);
    let numbers: Vec<_> = recording.exchanges().iter().map(|of| of.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(recording.reported().count(), 3);
}

#[test]
fn each_request_to_a_model_is_an_exchange_whatever_its_body_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    let body = request(&["Open?"]);
    let answer = billed("r", 100);
    let marked = format!("\u{feff}{body}");
    let whole = |text: &'static str| RequestBody::whole(text.as_bytes());
    let cut = RequestBody { bytes: &body.as_bytes()[..9], total: 3_000_000, ended: false };
    pass(&mut writer, CHAT, &cut, (413, "{\"error\":{}}"), 0);
    let long = RequestBody { bytes: &body.as_bytes()[..9], total: 70_000_000, ended: true };
    pass(&mut writer, CHAT, &long, (200, &answer), 0);
    pass(&mut writer, CHAT, &RequestBody::whole(marked.as_bytes()), (200, &answer), 0);
    pass(&mut writer, CHAT, &whole("[1]"), (200, &answer), 0);
    pass(&mut writer, "/embeddings", &whole("{\"input\":\"a\"}"), (200, &answer), 0);
    pass(&mut writer, CHAT, &RequestBody::whole(body.as_bytes()), (200, &answer), 0);
    drop(writer);
    let recording = read(scratch.path());
    let rows: Vec<_> = recording
        .exchanges()
        .iter()
        .map(|of| (of.unread.as_deref(), failure(of), of.usage.as_ref().and_then(|of| of.input)))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("the request broke off"), Some("status 413"), None),
            (Some("the body is longer than what is stored of it"), None, Some(100)),
            (Some("the request is no JSON"), None, Some(100)),
            (Some("the request is an array, and no object"), None, Some(100)),
            (None, None, Some(100)),
        ]
    );
    assert_eq!(recording.exchanges()[1].model.as_deref(), Some("m"));
    for exchange in recording.exchanges() {
        recording.tokens(exchange.number).unwrap();
        assert_eq!(recording.compare(exchange.number, PrefixRules::EXACT).unwrap(), None);
    }
    let unlisted: Vec<_> = recording.reported().filter(|of| of.is_unlisted).collect();
    let [embeddings] = unlisted.as_slice() else { panic!("{unlisted:?}") };
    assert_eq!(embeddings.usage.as_ref().unwrap().input, Some(100));
    let mut transcript = Transcript::open_folder(scratch.path()).unwrap().unwrap();
    transcript.by_ref().for_each(drop);
    let named: Vec<_> = transcript.report().unlisted.iter().collect();
    assert_eq!(named, [(&"POST /embeddings".to_owned(), &1)]);
}

#[test]
fn an_answer_that_came_whole_and_is_stored_in_part_is_cut() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    let body = request(&["Open?"]);
    let answer = billed("r", 100);
    for answer in [&answer[..40], STREAM] {
        pass(&mut writer, CHAT, &RequestBody::whole(body.as_bytes()), (200, answer), 70_000_000);
    }
    pass(&mut writer, CHAT, &RequestBody::whole(body.as_bytes()), (500, &answer[..40]), 9);
    drop(writer);
    let recording = read(scratch.path());
    let [json, stream, failed] = recording.exchanges() else { panic!() };
    let reason = "the body is longer than what is stored of it";
    for exchange in [json, stream] {
        assert_eq!(exchange.outcome(), ExchangeOutcome::Cut);
    }
    assert_eq!(failure(failed), Some("status 500"));
    for exchange in recording.exchanges() {
        assert_eq!(exchange.cut.as_deref(), Some(reason));
    }
}

#[test]
fn a_request_alone_is_that_of_the_whole_recording() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    let mut turns = Vec::new();
    for number in 0..40 {
        turns.push("Open?");
        let path = if number % 5 == 3 { "/embeddings" } else { CHAT };
        let body = request(&turns);
        pass(&mut writer, path, &RequestBody::whole(body.as_bytes()), (200, STREAM), 0);
    }
    pass(&mut writer, CHAT, &RequestBody::whole(b"no JSON"), (200, STREAM), 0);
    let next = b"{\"model\":\"m\",\"previous_response_id\":\"r\",\"input\":[]}";
    pass(&mut writer, "/responses", &RequestBody::whole(next), (200, STREAM), 0);
    drop(writer);
    let recording = read(scratch.path());
    assert_eq!(recording.exchanges().len(), 34);
    for number in 1..=32 {
        let alone = Request::of_recording(scratch.path(), number).unwrap().unwrap();
        let whole = recording.request(number).unwrap();
        assert_eq!((alone.body(), alone.to_json()), (whole.body(), whole.to_json()));
    }
    for number in [0, 33, 34, 35] {
        assert_eq!(Request::of_recording(scratch.path(), number).unwrap(), None, "{number}");
    }
}
