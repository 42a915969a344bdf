//! Recordings of the wire, read as transcripts.
#![cfg(feature = "record")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{io::Write, path::Path};

use afterimage::{
    id::Millis,
    record::{End, RecordingWriter, RequestBody, ResponseHead, Start},
    request::{Exchange, ExchangeOutcome, Provenance, Recording},
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
    match &exchange.outcome {
        ExchangeOutcome::Failed { reason } => Some(reason),
        _ => None,
    }
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
    assert_eq!((first.duration_ms, first.response.status), (Some(90), Some(200)));
    for (exchange, body) in [(first, &one), (second, &two)] {
        assert_eq!(exchange.outcome, ExchangeOutcome::Answered);
        assert_eq!(exchange.response.body.as_deref(), Some(&*whole));
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
        (Some(STREAM), Some("broken off: the stream has no end")),
        (Some(json), Some("broken off: the stream has no end")),
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
    assert_eq!(failure(second), Some("the recorder ended before the answer did"));
}

#[test]
fn bodies_are_unpacked_by_their_coding() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut writer, _) = RecordingWriter::open_private(scratch.path()).unwrap();
    let body = request(&["Open?"]);
    let answer = format!("{STREAM}{DONE}");
    let deflated = |text: &str| {
        let mut packed =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    // A block of brotli that is stored as it is: 4 bits of the window and the length, and its end.
    let stored = |text: &str| {
        let length = u32::try_from(text.len() - 1).unwrap() << 4;
        let head = (length | 1 << 20).to_le_bytes();
        let mut bytes = vec![head[0], head[1], head[2]];
        bytes.extend(text.as_bytes());
        bytes.push(3);
        bytes
    };
    let headers = |coding: &str| vec![("content-encoding".to_owned(), coding.to_owned())];
    for (coding, body, answer) in [
        ("deflate", deflated(&body), deflated(&answer)),
        ("br", stored(&body), stored(&answer)),
        ("br", b"no brotli".to_vec(), stored(&answer)),
    ] {
        let start = Start {
            path: "/chat/completions".to_owned(),
            headers: headers(coding),
            ..Start::now("POST", "openai")
        };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(&body)).unwrap();
        let head = ResponseHead { status: 200, after_ms: 7, headers: headers(coding) };
        writer.response(id, &head).unwrap();
        writer.part(id, &answer).unwrap();
        let bytes = answer.len() as u64;
        writer.end(id, &End { after_ms: 9, bytes, stored: bytes, cut: None }).unwrap();
    }
    drop(writer);
    let mut transcript = Transcript::open_folder(scratch.path()).unwrap().unwrap();
    transcript.by_ref().for_each(drop);
    // What is not of its coding is told of.
    assert_eq!(transcript.report().unknown_records, 1);
    let recording = read(scratch.path());
    assert_eq!(recording.exchanges().len(), 2);
    for exchange in recording.exchanges() {
        assert_eq!(exchange.provenance, Provenance::Sent);
        assert_eq!(exchange.response.body.as_deref(), Some(&*answer));
        assert_eq!(recording.request(exchange.number).unwrap().body(), body.as_str());
    }
}
