//! What reaches neither the provider nor the recording.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufReader, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::support::{Message, Provider, Recorded};
use afterimage_record::{Limits, Outcome, Recorder, RecordingWriter};

#[test]
fn a_request_that_is_no_clients_of_its_own_reaches_nobody() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut recorded = Recorded::of(&provider);
    let (path, address) = (recorded.path(), recorded.address());
    let own = format!("Host: {address}\r\n");
    let post = format!("POST {path}/responses HTTP/1.1\r\n");
    let other = path.replacen(&path[1..2], if &path[1..2] == "0" { "1" } else { "0" }, 1);
    for (request, status) in [
        (format!("{post}Host: example.com\r\nContent-Length: 0\r\n\r\n"), 403),
        (format!("{post}Content-Length: 0\r\n\r\n"), 403),
        (format!("{post}{own}{own}Content-Length: 0\r\n\r\n"), 403),
        (format!("{post}{own}Origin: http://{address}\r\nContent-Length: 0\r\n\r\n"), 403),
        (format!("CONNECT {address} HTTP/1.1\r\n{own}\r\n"), 405),
        (
            format!(
                "POST http://{address}{path}/responses HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n"
            ),
            400,
        ),
        (format!("POST http://example.com/ HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n"), 400),
        (format!("POST /responses HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n"), 404),
        (format!("POST {other}/responses HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n"), 404),
        (
            format!(
                "POST /{}/q/responses HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n",
                path.split('/').nth(1).unwrap()
            ),
            404,
        ),
        (format!("{post}{own}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"), 400),
        (format!("{post}{own}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"), 400),
        (format!("{post}{own}Content-Length: 2, 2\r\n\r\n{{}}"), 400),
        (
            format!("{post}{own}Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400,
        ),
        (
            format!("{post}{own}Transfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n0\r\n\r\n"),
            400,
        ),
        (format!("{post}{own}Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"), 400),
        (
            format!(
                "{post}{own}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            400,
        ),
        (
            format!(
                "GET {path}/responses HTTP/1.1\r\n{own}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"
            ),
            426,
        ),
    ] {
        let got = recorded.raw(&request);
        assert!(got.line.starts_with("HTTP/1.1 "), "{request}: {got:?}");
        assert_eq!(got.status(), status, "{request}");
    }
    assert!(provider.received().is_empty());
    assert!(recorded.stop().exchanges().is_empty());
}

#[test]
fn a_request_that_hides_behind_another_is_refused() {
    let provider = Provider::start(|_, stream| {
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/responses");
    let one = format!("{head}Content-Length: 2\r\n\r\n{{}}");
    let two = format!("{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    // Both in one write, so that the second was read before the first was answered.
    stream.write_all(format!("{one}{two}").as_bytes()).unwrap();
    let mut input = BufReader::new(stream);
    assert_eq!(Message::read(&mut input).unwrap().status(), 200);
    assert_eq!(Message::read(&mut input).unwrap().status(), 400);
    assert!(Message::read(&mut input).is_none());
    assert_eq!(provider.received().len(), 1);
    recorded.stop();
}

#[test]
fn a_target_that_is_too_long_gets_an_answer_and_reaches_nobody() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let mut recorded = Recorded::of(&provider);
    let base = recorded.path().len() + "/responses?".len();
    for (length, status) in [(65_534, 200), (65_535, 414), (70_000, 414)] {
        let query = "q".repeat(length - base);
        let got = recorded.post(&format!("/responses?{query}"), "", b"{}");
        assert_eq!(got.status(), status, "{length}");
    }
    assert_eq!(provider.received().len(), 1);
    assert_eq!(recorded.stop().exchanges().len(), 1);
}

#[test]
fn a_request_that_is_signed_for_its_host_is_refused_and_one_with_a_key_passes() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut recorded = Recorded::by(&provider.url(), |folder| {
        let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
        let told = Arc::clone(&told);
        let tell = move |said: &str| told.lock().unwrap().push(said.to_owned());
        Recorder::start(Limits::default(), open, tell).unwrap()
    });
    let path = "/model/anthropic.claude/converse";
    let ask = |key: &str, more: &str| {
        let head = format!("Authorization: {key}\r\nContent-Type: application/json\r\n");
        recorded.post(&format!("{path}{more}"), &head, b"{\"messages\":[]}")
    };
    let signed = ask("AWS4-HMAC-SHA256 Credential=k/20260101, Signature=00", "");
    let by_parameters = ask("none", "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00");
    for refused in [signed, by_parameters] {
        assert_eq!(refused.status(), 401);
        let words = String::from_utf8(refused.body).unwrap();
        // Within the error, and outside, where the SDKs of AWS look for it.
        let said = words.matches("the request is signed for the host that it was sent to").count();
        assert_eq!(said, 2, "{words}");
        assert!(words.contains("},\"message\":\"afterimage record: "), "{words}");
    }
    assert_eq!(ask("Bearer bedrock-api-key-planted", "").status(), 200);
    assert_eq!(provider.received().len(), 1);
    let recording = recorded.stop();
    let outcomes = recording.exchanges().iter().map(|of| of.outcome() == Outcome::Complete);
    assert_eq!(outcomes.collect::<Vec<_>>(), [false, false, true]);
    let told = told.lock().unwrap();
    assert!(told.iter().any(|said| said.contains("set AWS_BEARER_TOKEN_BEDROCK")), "{told:?}");
}
