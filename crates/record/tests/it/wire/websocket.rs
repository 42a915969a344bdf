//! WebSockets pass as they are, and what is asked for in them is recorded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use afterimage_record::{Exchange, Limits, Outcome, Recording};
use tungstenite::{Message as Said, WebSocket, client::IntoClientRequest, protocol::Role};

use super::support::{Message, Provider, Recorded};

/// What RFC 6455 answers to the key of its example.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A provider that opens a WebSocket, and then does this with the connection.
pub(super) fn provider(
    extensions: &'static str,
    then: impl Fn(TcpStream) + Send + Sync + 'static,
) -> Provider {
    Provider::start(move |message, stream| {
        assert_eq!(message.header("sec-websocket-key"), Some(KEY));
        assert_eq!(message.header("upgrade"), Some("websocket"));
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n{extensions}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        then(stream.try_clone().unwrap());
        let _ = stream.shutdown(Shutdown::Both);
    })
}

/// Opens a WebSocket through the wire: the connection behind the handshake.
pub(super) fn open(recorded: &Recorded, more: &str) -> (TcpStream, Message) {
    let mut stream = recorded.connect();
    let head = recorded.head("GET", "/responses");
    let head = format!(
        "{head}Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Not a byte more than the head: what follows is of the WebSocket.
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let answer = Message::read(&mut bytes.as_slice()).unwrap();
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
    (stream, answer)
}

/// The exchanges of what was asked for in WebSockets.
pub(super) fn asked(recording: &Recording) -> Vec<&Exchange> {
    recording.exchanges().iter().filter(|exchange| exchange.start.is_websocket).collect()
}

pub(super) fn bodies(recording: &Recording, exchange: &Exchange) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let request = recording.request(exchange).unwrap();
    let (response, _) = recording.response(exchange).unwrap().into_parts();
    (text(request.whole().unwrap()), text(&response))
}

fn created(id: &str) -> String {
    format!("{{\"type\":\"response.created\",\"response\":{{\"id\":\"{id}\"}}}}")
}

pub(super) fn ended(kind: &str, id: &str) -> String {
    format!("{{\"type\":\"response.{kind}\",\n\"response\":{{\"id\":\"{id}\"}}}}")
}

/// A client of WebSockets that is connected through the wire.
fn client(recorded: &Recorded, headers: &[(&'static str, &str)]) -> WebSocket<TcpStream> {
    let url = format!("ws://{}{}/responses?beta=true", recorded.address(), recorded.path());
    let mut request = url.into_client_request().unwrap();
    for (name, value) in [("sec-websocket-key", KEY)].iter().chain(headers) {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    tungstenite::client(request, recorded.connect()).unwrap().0
}

#[test]
fn transparent_each_answer_of_a_websocket_is_an_exchange() {
    let provider = provider("", |stream| {
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
        let mut number = 0;
        while let Ok(message) = socket.read() {
            if !message.to_text().is_ok_and(|text| text.contains("response.create")) {
                continue;
            }
            number += 1;
            let id = format!("r{number}");
            let last = ended(if number == 2 { "failed" } else { "completed" }, &id);
            for text in ["{\"type\":\"codex.rate_limits\"}", &created(&id), &last] {
                socket.send(Said::text(text)).unwrap();
            }
            socket.send(Said::text("{\"type\":\"of nobody\"}")).unwrap();
        }
    });
    let mut recorded = Recorded::of(&provider);
    let mut socket = client(
        &recorded,
        &[
            ("openai-beta", "responses_websockets=2026-02-06"),
            ("authorization", "Bearer planted"),
            ("sec-websocket-extensions", "x-planted"),
        ],
    );
    let bodies_sent: Vec<String> = (0..3)
        .map(|number| {
            let generate = if number == 0 { ",\"generate\":false" } else { "" };
            format!("{{\"type\": \"response.create\"{generate},\"input\":[{number}]}}")
        })
        .collect();
    let mut seen = Vec::new();
    for body in &bodies_sent {
        socket.send(Said::Ping("here?".into())).unwrap();
        socket.send(Said::text("{\"type\":\"session.update\"}")).unwrap();
        socket.send(Said::text(body.as_str())).unwrap();
        loop {
            let Said::Text(text) = socket.read().unwrap() else { continue };
            let is_last = text.contains("of nobody");
            seen.push(text.to_string());
            if is_last {
                break;
            }
        }
    }
    // The client has it, so the recording does, while the wire still runs.
    assert_eq!(asked(&recorded.wait("exchanges", |of| asked(of).len() == 3)).len(), 3);
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    assert_eq!(seen.len(), 12);

    let received = provider.received();
    assert_eq!(received[0].line, "GET /base/responses?beta=true HTTP/1.1");
    assert_eq!(received[0].header("authorization"), Some("Bearer planted"));
    assert_eq!(received[0].header("sec-websocket-extensions"), Some("x-planted"));
    let recording = recorded.stop();
    let opening = &recording.exchanges()[0];
    assert_eq!((opening.start.is_websocket, opening.outcome()), (false, Outcome::Complete));
    assert_eq!(opening.response.as_ref().unwrap().status, 101);
    let asked = asked(&recording);
    assert_eq!(asked.len(), 3);
    for (number, exchange) in asked.iter().enumerate() {
        assert_eq!(exchange.outcome(), Outcome::Complete);
        assert_eq!(exchange.start.path, "/responses?beta=true");
        assert!(exchange.start.headers.iter().any(|(name, _)| name == "openai-beta"));
        let (request, response) = bodies(&recording, exchange);
        assert_eq!(request, bodies_sent[number]);
        let id = format!("r{}", number + 1);
        let last = ended(if number == 1 { "failed" } else { "completed" }, &id).replace('\n', " ");
        let limits = "data: {\"type\":\"codex.rate_limits\"}";
        assert_eq!(response, format!("{limits}\n\ndata: {}\n\ndata: {last}\n\n", created(&id)));
    }
}

#[test]
fn packed_messages_are_unpacked_for_the_recording_alone() {
    let mut stream = flate2::Compress::new(flate2::Compression::default(), false);
    let mut packed = |text: &str| {
        let mut bytes = Vec::with_capacity(1000);
        stream.compress_vec(text.as_bytes(), &mut bytes, flate2::FlushCompress::Sync).unwrap();
        bytes.truncate(bytes.len() - 4);
        let mut frame = vec![0xc1, u8::try_from(bytes.len()).unwrap()];
        frame.extend(bytes);
        frame
    };
    let events = ["r1", "r2"].map(|id| ended("completed", id));
    let frames = events.clone().map(|event| packed(&event));
    // The second one refers to the first one.
    assert!(frames[1].len() < frames[0].len() / 2);
    let sent = frames.clone();
    let agreed = "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n";
    let provider = provider(agreed, move |mut stream| {
        for frame in &sent {
            let mut request = [0; 6 + 26];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(frame).unwrap();
        }
    });
    let mut recorded = Recorded::of(&provider);
    let (mut stream, answer) = open(&recorded, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    assert!(answer.header("sec-websocket-extensions").unwrap().contains("client_no_context"));
    let request = b"{\"type\":\"response.create\"}";
    let mut frame = vec![0x81, 0x80 | 0x1a, 0, 0, 0, 0];
    frame.extend(request);
    for expected in &frames {
        stream.write_all(&frame).unwrap();
        let mut got = vec![0; expected.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, *expected);
    }
    drop(stream);
    let recording = recorded.stop();
    let asked = asked(&recording);
    assert_eq!(asked.len(), 2);
    for (exchange, event) in asked.into_iter().zip(events) {
        let (found, response) = bodies(&recording, exchange);
        assert_eq!(found.as_bytes(), request);
        assert_eq!(response, format!("data: {}\n\n", event.replace('\n', " ")));
    }
}

#[test]
fn transparent_bytes_that_are_no_frames_pass_and_a_half_may_be_closed() {
    let provider = provider("", |mut stream| {
        let mut bytes = Vec::new();
        // It answers when the client has said all.
        stream.read_to_end(&mut bytes).unwrap();
        bytes.reverse();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let (mut stream, _) = open(&recorded, "");
    let mut state = 9_u64;
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(300_000)
    .collect();
    stream.write_all(&bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    bytes.reverse();
    assert!(got == bytes);
    assert!(asked(&recorded.stop()).is_empty());
}

#[test]
fn an_answer_that_a_side_breaks_off_is_cut() {
    const REQUEST: &[u8] = b"\x81\x1a{\"type\":\"response.create\"}";
    for (then, expected) in [
        ("close", "the upstream closed the WebSocket"),
        ("garbage", "the WebSocket cannot be decoded: expected a frame of a known kind"),
        ("wait", "the client closed the WebSocket"),
        ("cancel", "the client closed the WebSocket"),
    ] {
        let provider = provider("", move |mut stream| {
            let mut request = [0; REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(b"\x81\x0c{\"type\":\"x\"}").unwrap();
            match then {
                "close" => stream.shutdown(Shutdown::Both).unwrap(),
                "garbage" => stream.write_all(&[0x83, 0]).unwrap(),
                _ => drop(stream.read_to_end(&mut Vec::new())),
            }
        });
        let recorded = Recorded::of(&provider);
        let (mut stream, _) = open(&recorded, "");
        stream.write_all(REQUEST).unwrap();
        let mut event = [0; 14];
        stream.read_exact(&mut event).unwrap();
        match then {
            "wait" => drop(stream),
            // A frame that closes, and no more.
            "cancel" => stream.write_all(&[0x88, 0]).unwrap(),
            "close" => assert_eq!(stream.read(&mut event).unwrap(), 0),
            _ => stream.read_exact(&mut [0; 2]).unwrap(),
        }
        if then == "cancel" {
            let mut recorded = recorded;
            let recording = recorded.stop();
            // The upstream never answered the frame: what runs is cut when the wire stops.
            assert!(matches!(asked(&recording)[0].outcome(), Outcome::Cut { .. }));
            continue;
        }
        // The end may be written before the request: two threads write them.
        let is_cut = |recording: &Recording| {
            let is_whole = |of: &&Exchange| of.request_cut().is_none();
            let is_cut = |of: &Exchange| matches!(of.outcome(), Outcome::Cut { .. });
            asked(recording).into_iter().filter(is_whole).any(is_cut)
        };
        let recording = recorded.wait("a cut exchange and its request", is_cut);
        let exchange = asked(&recording)[0];
        assert_eq!(exchange.outcome(), Outcome::Cut { reason: expected.to_owned() }, "{then}");
        assert_eq!(bodies(&recording, exchange).1, "data: {\"type\":\"x\"}\n\n");
    }
}

/// Answers each request by its number, when all have come: an event that names the answer, and then
/// these.
fn answers_at_once(
    count: usize,
    more: impl Fn(usize) -> Vec<String> + Send + Sync + 'static,
) -> Provider {
    provider("", move |stream| {
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
        for _ in 0..count {
            socket.read().unwrap();
        }
        for number in 0..count {
            for text in std::iter::once(created(&format!("r{number}"))).chain(more(number)) {
                socket.send(Said::text(text)).unwrap();
            }
        }
        while socket.read().is_ok() {}
    })
}

/// Asks so often, and then reads so many events.
fn ask_at_once(recorded: &Recorded, count: usize, events: usize) {
    let mut socket = client(recorded, &[]);
    for number in 0..count {
        let body = format!("{{\"type\":\"response.create\",\"input\":[{number}]}}");
        socket.send(Said::text(body)).unwrap();
    }
    for _ in 0..events {
        socket.read().unwrap();
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
}

#[test]
fn of_more_answers_than_are_followed_none_is_given_to_another_request() {
    const COUNT: usize = 70;
    let last = |number: usize| vec![ended("completed", &format!("r{number}"))];
    let provider = answers_at_once(COUNT, last);
    let mut recorded = Recorded::of(&provider);
    ask_at_once(&recorded, COUNT, 2 * COUNT);
    let recording = recorded.stop();
    let asked = asked(&recording);
    assert_eq!(asked.len(), COUNT);
    for (number, exchange) in asked.iter().enumerate() {
        let (request, response) = bodies(&recording, exchange);
        assert!(request.ends_with(&format!("[{number}]}}")), "{request}");
        if number < 64 {
            assert_eq!(exchange.outcome(), Outcome::Complete, "{number}");
            assert_eq!(response.matches(&format!("\"r{number}\"")).count(), 2, "{response}");
        } else {
            let Outcome::Cut { reason } = exchange.outcome() else { panic!("{number}") };
            assert!(reason.starts_with("more answers were asked for at once"), "{reason}");
            assert_eq!(response, "");
        }
    }
}

#[test]
fn what_follows_an_event_that_is_too_long_goes_to_no_other_answer() {
    // Of the first answer an event is too long, of the second the last event.
    let events = |number: usize| {
        let (id, long) = (format!("r{number}"), "x".repeat(2000));
        let delta = |text: &str| {
            format!(
                "{{\"type\":\"response.output_text.delta\",\"response_id\":\"{id}\",\"delta\":\"{text}\"}}"
            )
        };
        match number {
            0 => vec![delta(&long), delta("a"), ended("completed", &id)],
            1 => vec![
                delta("b"),
                format!(
                    "{{\"response\":{{\"id\":\"{id}\",\"text\":\"{long}\"}},\"type\":\"response.completed\"}}"
                ),
            ],
            _ => vec![delta("c"), ended("completed", &id)],
        }
    };
    let provider = answers_at_once(4, events);
    let limits = Limits { request: 1000, response: 1000 };
    let mut recorded = Recorded::with(&provider.url(), limits);
    ask_at_once(&recorded, 4, 4 + 3 + 2 + 2 + 2);
    let recording = recorded.stop();
    let asked = asked(&recording);
    assert_eq!(asked.len(), 4);
    for (number, exchange) in asked.iter().enumerate() {
        let (_, response) = bodies(&recording, exchange);
        for other in (0..4).filter(|other| *other != number) {
            assert!(!response.contains(&format!("\"r{other}\"")), "{number}: {response}");
        }
        let is_whole = exchange.outcome() == Outcome::Complete;
        assert_eq!(is_whole, number > 1, "{number}: {:?}", exchange.outcome());
        assert_eq!(response.contains("\"c\""), number > 1);
    }
}

#[test]
fn an_answer_that_opens_no_websocket_is_passed_on() {
    let provider = Provider::saying("HTTP/1.1 401 No\r\nX-Why: key\r\nContent-Length: 2\r\n\r\n{}");
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("GET", "/responses");
    for _ in 0..2 {
        let head = format!(
            "{head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut input = std::io::BufReader::new(&mut stream);
        let got = Message::read(&mut input).unwrap();
        assert_eq!(
            (got.status(), got.header("x-why"), got.body.as_slice()),
            (401, Some("key"), &b"{}"[..])
        );
    }
    let recording = recorded.stop();
    let found: Vec<(u16, bool)> = recording
        .exchanges()
        .iter()
        .map(|of| (of.response.as_ref().unwrap().status, of.start.is_websocket))
        .collect();
    assert_eq!(found, [(401, false), (401, false)]);
}

#[test]
fn a_side_that_does_not_read_holds_the_other_up() {
    let provider = provider("", |stream| {
        // Until the client goes away.
        let _ = stream.set_read_timeout(None);
        while stream.peek(&mut [0]).is_ok_and(|read| read > 0) && stream.take_error().is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let recorded = Recorded::of(&provider);
    let (mut stream, _) = open(&recorded, "");
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = vec![0; 1 << 20];
    let mut sent = 0;
    let stopped = loop {
        match stream.write(&piece) {
            Ok(written) => sent += written,
            Err(error) => break error.kind(),
        }
        assert!(sent < 64 << 20, "the wire takes what nobody reads");
    };
    assert!(matches!(stopped, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{stopped}");
}

#[test]
fn no_secret_of_a_handshake_is_written() {
    let provider = provider("Sec-WebSocket-Protocol: planted-1\r\n", drop);
    let mut recorded = Recorded::of(&provider);
    let secret = "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.planted-2\r\nCookie: planted-3\r\n";
    let (_, answer) = open(&recorded, secret);
    assert_eq!(answer.header("sec-websocket-protocol"), Some("planted-1"));
    let received = provider.received();
    let protocol = received[0].header("sec-websocket-protocol");
    assert_eq!(protocol, Some("realtime, openai-insecure-api-key.planted-2"));
    drop(recorded.stop());
    let bytes = std::fs::read(recorded.folder.join("wire.rec")).unwrap();
    assert!(bytes.windows(10).any(|window| window == b"/responses"));
    for secret in [&b"planted"[..], KEY.as_bytes(), ACCEPT.as_bytes()] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}
