//! What passes is what was sent, as it was sent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufReader, Read, Write},
    sync::mpsc,
};

use afterimage_record::{Limits, Outcome};

use super::support::{Message, Provider, Recorded};

/// Bytes of any kind, as a packed body has them.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 5_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn transparent_bodies_and_answers_pass_byte_for_byte_and_are_recorded_so() {
    let answer = noise(100_000);
    let sent = answer.clone();
    let provider = Provider::start(move |_, stream| {
        let head = format!(
            "HTTP/1.1 201 Fine\r\nX-Own: a\r\nX-Own: b\r\nContent-Length: {}\r\n\r\n",
            sent.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&sent).unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let body = noise(300_000);
    let more = "Content-Encoding: gzip\r\nAuthorization: Bearer x\r\nX-Thing: 1\r\nX-Thing: 2\r\nExpect: 100-continue\r\nTE: trailers\r\nConnection: X-Hop\r\nX-Hop: 1\r\n";
    let got = recorded.post("/responses?beta=true&key=k", more, &body);
    assert_eq!((got.line.as_str(), got.body.len()), ("HTTP/1.1 201 Fine", answer.len()));
    assert!(got.body == answer);
    let own: Vec<&str> =
        got.headers.iter().filter(|(name, _)| name == "x-own").map(|(_, v)| v.as_str()).collect();
    assert_eq!(own, ["a", "b"]);
    let names: Vec<&str> = got.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-own", "x-own", "content-length"], "nothing is added");

    let received = provider.received();
    let [request] = received.as_slice() else { panic!("{} requests", received.len()) };
    assert_eq!(request.line, "POST /base/responses?beta=true&key=k HTTP/1.1");
    assert!(request.body == body);
    let mut headers = request.headers.clone();
    headers.sort();
    let expected = [
        ("authorization", "Bearer x"),
        ("content-encoding", "gzip"),
        ("content-length", "300000"),
        ("host", &provider.address.to_string()),
        ("te", "trailers"),
        ("x-thing", "1"),
        ("x-thing", "2"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));

    let recording = recorded.stop();
    let [exchange] = recording.exchanges() else { panic!() };
    assert_eq!(exchange.outcome(), Outcome::Complete);
    assert_eq!(
        (exchange.start.method.as_str(), exchange.start.path.as_str()),
        ("POST", "/responses?beta=true")
    );
    assert_eq!(exchange.response.as_ref().unwrap().status, 201);
    assert!(recording.request(exchange).unwrap().whole() == Some(&body));
    assert!(recording.response(exchange).unwrap().whole() == Some(&answer));
}

#[test]
fn an_event_passes_before_the_next_one_is_sent() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let provider = Provider::start(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            stream.write_all(chunk.as_bytes()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/messages");
    stream.write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
    let mut seen = String::new();
    for number in 1..=3 {
        let event = format!("data: {number}\n\n");
        while !seen.contains(&event) {
            let mut piece = [0; 512];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "{seen}");
            seen.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        go.send(()).unwrap();
    }
    while !seen.ends_with("0\r\n\r\n") {
        let mut piece = [0; 512];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    // The client has all of it, so the recording does, while the wire still runs.
    let recording = recorded.wait("the exchange", |recording| recording.exchanges().len() == 1);
    let [exchange] = recording.exchanges() else { panic!() };
    let whole = recording.response(exchange).unwrap();
    assert_eq!(whole.whole(), Some(b"data: 1\n\ndata: 2\n\ndata: 3\n\n".as_slice()));
    recorded.stop();
}

#[test]
fn an_upload_in_chunks_passes_as_it_comes() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/chat/completions");
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    for piece in ["{\"messages\"", ": []}"] {
        stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let got = Message::read(&mut BufReader::new(stream)).unwrap();
    assert_eq!(got.body, b"{}");
    let received = provider.received();
    assert_eq!(received[0].header("transfer-encoding"), Some("chunked"));
    assert_eq!(received[0].header("content-length"), None);
    assert_eq!(received[0].body, b"{\"messages\": []}");
    let recording = recorded.stop();
    let [exchange] = recording.exchanges() else { panic!() };
    let request = recording.request(exchange).unwrap();
    assert_eq!(request.whole(), Some(b"{\"messages\": []}".as_slice()));
}

#[test]
fn what_follows_a_body_passes_where_both_ends_want_it() {
    let provider = Provider::saying(
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 7\r\n\r\n",
    );
    let mut recorded = Recorded::of(&provider);
    for (more, expected) in
        [("TE: deflate, trailers\r\n", "0\r\nx-sum: 7\r\n\r\n"), ("", "0\r\n\r\n")]
    {
        let mut stream = recorded.connect();
        let head = recorded.head("POST", "/responses");
        let request = format!("{head}{more}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut seen = String::new();
        stream.read_to_string(&mut seen).unwrap();
        assert!(seen.contains("\r\ntrailer: X-Sum\r\n"), "{seen}");
        assert!(seen.ends_with(&format!("2\r\n{{}}\r\n{expected}")), "{seen}");
    }
    for exchange in recorded.stop().exchanges() {
        assert_eq!(exchange.outcome(), Outcome::Complete);
    }
}

#[test]
fn requests_of_one_connection_each_are_an_exchange() {
    let provider = Provider::start(|message, stream| {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", message.body.len());
        stream.write_all(answer.as_bytes()).unwrap();
        stream.write_all(&message.body).unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let mut input = BufReader::new(stream.try_clone().unwrap());
    for number in 0..20 {
        let (method, body) = if number % 5 == 0 {
            ("GET", String::new())
        } else {
            ("POST", format!("{{\"number\": {number}}}"))
        };
        let head = recorded.head(method, "/responses");
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        stream.write_all(format!("{head}{length}\r\n{body}").as_bytes()).unwrap();
        let got = Message::read(&mut input).unwrap();
        assert_eq!((got.status(), got.body), (200, body.into_bytes()), "{number}");
        assert_eq!(
            got.headers,
            [("content-length".to_owned(), provider.received()[number].body.len().to_string())]
        );
    }
    let recording = recorded.stop();
    assert_eq!(recording.exchanges().len(), 20);
    for (exchange, request) in recording.exchanges().iter().zip(provider.received()) {
        assert_eq!(exchange.outcome(), Outcome::Complete);
        assert_eq!(recording.request(exchange).unwrap().whole(), Some(request.body.as_slice()));
    }
}

#[test]
fn heads_of_many_headers_pass_both_ways() {
    let many = || (0..300).map(|at| format!("x-{at}: {at}\r\n")).collect::<String>();
    let provider = Provider::start(move |_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\n{{}}", many());
        stream.write_all(head.as_bytes()).unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let got = recorded.post("/responses", &many(), b"{}");
    assert_eq!((got.status(), got.header("x-299")), (200, Some("299")));
    assert_eq!(provider.received()[0].header("x-299"), Some("299"));
    assert_eq!(recorded.stop().exchanges()[0].outcome(), Outcome::Complete);
}

#[test]
fn a_request_with_a_trailer_is_recorded_whole() {
    for declared in ["", "Trailer: x-sum\r\n"] {
        let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        let mut recorded = Recorded::of(&provider);
        let head = recorded.head("POST", "/responses");
        let body = "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n";
        assert_eq!(recorded.raw(&format!("{head}{declared}{body}")).status(), 200);
        let recording = recorded.stop();
        let exchange = &recording.exchanges()[0];
        assert_eq!(exchange.outcome(), Outcome::Complete, "{declared}");
        assert_eq!(recording.request(exchange).unwrap().whole(), Some(b"{}".as_slice()));
    }
}

#[test]
fn a_redirect_is_passed_on_and_not_followed() {
    let provider = Provider::saying(
        "HTTP/1.1 307 Gone\r\nLocation: http://127.0.0.1:1/planted\r\nContent-Length: 0\r\n\r\n",
    );
    let mut recorded = Recorded::of(&provider);
    let got = recorded.post("/responses", "", b"{}");
    assert_eq!((got.status(), got.header("location")), (307, Some("http://127.0.0.1:1/planted")));
    assert_eq!(provider.received().len(), 1);
    let recording = recorded.stop();
    assert_eq!(recording.exchanges()[0].outcome(), Outcome::Complete);
}

#[test]
fn a_body_beyond_the_limit_passes_whole_and_is_stored_cut() {
    const LENGTH: usize = 40 << 20;
    let provider = Provider::start(|message, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", message.body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&message.body).unwrap();
    });
    let limits = Limits { request: 1 << 20, response: 1 << 20 };
    let mut recorded = Recorded::with(&provider.url(), limits);
    let body = noise(LENGTH);
    let (sent, mut stream) = (body.clone(), recorded.connect());
    let head = recorded.head("POST", "/responses");
    let mut out = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        out.write_all(format!("{head}Content-Length: {LENGTH}\r\n\r\n").as_bytes()).unwrap();
        out.write_all(&sent).unwrap();
    });
    let got = Message::read(&mut BufReader::new(&mut stream)).unwrap();
    sender.join().unwrap();
    assert!(got.is_whole && got.body == body);
    let recording = recorded.stop();
    let [exchange] = recording.exchanges() else { panic!() };
    for found in [recording.request(exchange).unwrap(), recording.response(exchange).unwrap()] {
        let (bytes, cut) = found.into_parts();
        assert!(bytes == body[..1 << 20]);
        assert_eq!(cut.as_deref(), Some("the body is longer than what is stored of it"));
    }
}
