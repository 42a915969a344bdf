//! Recordings that are redacted before they are written.
#![cfg(all(feature = "record", feature = "rules"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{fs, io::Write, path::Path};

use afterimage::{
    id::Millis,
    record::{self, Limits, Outcome, Recorder, RecordingWriter, Redact, Start},
    redact::Redactor,
    request::{ExchangeOutcome, Provenance, Recording},
    tokens::default_counter,
    transcript::Transcript,
};

use afterimage_testkit::secrets::{planted, text};

use crate::redact::{assert_none_of, redactor, stream};

/// As the program does it.
struct By(Redactor);

impl Redact for By {
    fn line(&mut self, text: &str) -> String {
        self.0.text(text, "a header").into_owned()
    }

    fn body(&mut self, text: &str, place: &str) -> String {
        self.0.body(text, place).into_owned()
    }

    fn broken(&mut self, text: &str, place: &str) -> Option<String> {
        self.0.broken_body(text, place)
    }
}

/// An exchange: the body and its coding, the answer and its coding, and what broke that off.
type Call<'c> = (&'c [u8], &'c str, &'c [u8], &'c str, Option<&'c str>);

fn record(folder: &Path, calls: &[Call<'_>]) {
    let path = folder.to_owned();
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let by = Box::new(By(redactor()));
    let tell = |said: &str| panic!("{said}");
    let recorder = Recorder::start_redacting(Limits::default(), by, open, tell).unwrap();
    for (body, coding, answer, answer_coding, cut) in calls {
        let coded = |coding: &str| vec![("content-encoding".to_owned(), coding.to_owned())];
        let start = Start {
            path: "/messages".to_owned(),
            headers: coded(coding),
            ..Start::now("POST", "openai")
        };
        let (mut request, mut response) = recorder.exchange(start);
        request.push(body);
        request.end();
        response.head(200, coded(answer_coding));
        // The disk sees pieces.
        answer.chunks(70_000).for_each(|piece| response.push(piece));
        response.end(*cut, || {});
    }
    recorder.finish().unwrap();
}

fn read(folder: &Path) -> Recording {
    let transcript = Transcript::open_folder(folder).unwrap().unwrap();
    Recording::read(transcript, default_counter(), |_| Millis::new(0)).unwrap()
}

fn body(said: &str) -> String {
    let content = afterimage::json::Value::from(said).to_string();
    format!("{{\"model\": \"m\", \"messages\": [{{\"role\": \"user\", \"content\": {content}}}]}}")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn two_hundred_planted_secrets_are_in_no_byte_of_a_redacted_recording() {
    let scratch = tempfile::tempdir().unwrap();
    let planted = planted(200);
    let halves = planted.split_at(100);
    let said =
        |list: &[(String, String)]| -> String { list.iter().map(|of| text(of) + "\n").collect() };
    let whole = body(&said(&planted));
    let begun =
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\"}}\n\n";
    let block = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    let stop = "data: {\"type\":\"message_stop\"}\n\n";
    let answer = format!("{begun}{block}{}{stop}", stream(&said(&planted), 7));
    let (one, two) = (body(&said(halves.0)), body(&said(halves.1)));
    record(
        scratch.path(),
        &[
            (whole.as_bytes(), "identity", answer.as_bytes(), "identity", None),
            (&gzip(one.as_bytes()), "gzip", &deflate(answer.as_bytes()), "deflate", None),
            (
                &deflate(two.as_bytes()),
                "deflate",
                answer.as_bytes(),
                "identity",
                Some("the client went away"),
            ),
            (
                two.as_bytes(),
                "identity",
                &answer.as_bytes()[..answer.len() / 2],
                "identity",
                Some("the client went away"),
            ),
        ],
    );
    let bytes = fs::read(scratch.path().join("wire.rec")).unwrap();
    assert_none_of(&planted, &String::from_utf8_lossy(&bytes), "the file");
    // Most of the file is packed: what is in it counts.
    let raw = record::Recording::open(scratch.path()).unwrap().unwrap();
    assert_eq!(raw.exchanges().len(), 4);
    for exchange in raw.exchanges() {
        assert!(exchange.start.is_redacted);
        let request = raw.request(exchange).unwrap();
        let request = std::str::from_utf8(request.whole().unwrap()).unwrap();
        assert!(request.contains("[redacted:"));
        assert_none_of(&planted, request, "a request");
        let (response, _) = raw.response(exchange).unwrap().into_parts();
        assert_none_of(&planted, std::str::from_utf8(&response).unwrap(), "an answer");
    }
    let outcomes: Vec<Outcome> = raw.exchanges().iter().map(record::Exchange::outcome).collect();
    let cut = |reason: &str| Outcome::Cut { reason: reason.to_owned() };
    let gone = cut("the client went away");
    assert_eq!(outcomes, [Outcome::Complete, Outcome::Complete, gone.clone(), gone]);
    // Of the item that did not come to its end nothing is written.
    let (response, _) = raw.response(&raw.exchanges()[3]).unwrap().into_parts();
    assert_eq!(response, begun.as_bytes());
    let recording = read(scratch.path());
    assert!(recording.exchanges().iter().all(|of| of.provenance == Provenance::Logged));
    // A client that has the last event has its answer.
    let answered: Vec<bool> = recording
        .exchanges()
        .iter()
        .map(|of| matches!(of.outcome(), ExchangeOutcome::Failed))
        .collect();
    assert_eq!(answered, [false, false, false, true]);
}

#[test]
fn what_cannot_be_decoded_is_not_written_and_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let secret = b"sk-ant-api03-planted-planted-planted-planted";
    let packed = gzip(secret);
    record(
        scratch.path(),
        &[
            (
                &[b"\xff".as_slice(), secret].concat(),
                "identity",
                &[b"\xfe".as_slice(), secret].concat(),
                "identity",
                None,
            ),
            (secret, "gzip", secret, "aes", None),
            (&packed[..packed.len() - 9], "gzip", &packed[..packed.len() - 9], "gzip", None),
        ],
    );
    let bytes = fs::read(scratch.path().join("wire.rec")).unwrap();
    assert!(!bytes.windows(7).any(|window| window == b"planted"));
    let raw = record::Recording::open(scratch.path()).unwrap().unwrap();
    assert_eq!(raw.exchanges().len(), 3);
    for exchange in raw.exchanges() {
        let (bytes, cut) = raw.request(exchange).unwrap().into_parts();
        assert_eq!(bytes, b"");
        assert_eq!(cut.as_deref(), Some("the request could not be redacted, and was left out"));
        let (bytes, cut) = raw.response(exchange).unwrap().into_parts();
        assert_eq!(bytes, b"");
        assert_eq!(cut.as_deref(), Some("the answer could not be redacted, and was left out"));
    }
}

#[test]
fn what_unpacks_to_more_than_is_read_is_not_redacted_and_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let (event, body) = ("data: {\"type\":\"ping\"}\n\n", body(&"a".repeat(1 << 20)));
    let bomb = gzip(event.repeat(1 << 18).as_bytes());
    record(
        scratch.path(),
        &[
            (&gzip(body.as_bytes()), "gzip", &bomb, "gzip", None),
            (b"{}", "identity", &bomb, "gzip", Some("the client went away")),
            (b"{}", "identity", b"{}", "identity", None),
        ],
    );
    let raw = record::Recording::open(scratch.path()).unwrap().unwrap();
    let cut = |reason: &str| Outcome::Cut { reason: reason.to_owned() };
    let outcomes: Vec<Outcome> = raw.exchanges().iter().map(record::Exchange::outcome).collect();
    let left_out = "the answer could not be redacted, and was left out";
    let gone = cut(&format!("the client went away; {left_out}"));
    assert_eq!(outcomes, [cut(left_out), gone, Outcome::Complete]);
    let (request, why) = raw.request(&raw.exchanges()[0]).unwrap().into_parts();
    assert!(request.is_empty() && why.unwrap().contains("left out"));
}

#[test]
fn headers_and_paths_lose_their_secrets_too() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().to_owned();
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let by = Box::new(By(redactor()));
    let recorder = Recorder::start_redacting(Limits::default(), by, open, |_| {}).unwrap();
    let secret = "AKIAQZ7WXLTP4MNBVC2E";
    let headers = vec![("user-agent".to_owned(), format!("client {secret}"))];
    let start =
        Start { path: format!("/{secret}"), headers: headers.clone(), ..Start::now("POST", "p") };
    let (mut request, mut response) = recorder.exchange(start);
    request.end();
    response.head(200, headers);
    response.end(None, || {});
    recorder.finish().unwrap();
    let bytes = fs::read(scratch.path().join("wire.rec")).unwrap();
    assert!(bytes.windows(10).any(|window| window == b"[redacted:"));
    assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
}
