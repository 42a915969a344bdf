//! An answer that comes before all of its request was sent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener},
    thread,
};

use afterimage_record::{Limits, Outcome};

use super::support::{Message, Recorded};

const LENGTH: usize = 40 << 20;

/// Sends all of a large body, and only then reads, as clients do.
fn upload(recorded: &Recorded) -> Message {
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/responses");
    stream.write_all(format!("{head}Content-Length: {LENGTH}\r\n\r\n").as_bytes()).unwrap();
    stream.write_all(&vec![b'x'; LENGTH]).unwrap();
    Message::read(&mut BufReader::new(stream)).expect("an answer")
}

#[test]
fn an_answer_to_the_head_of_a_large_request_reaches_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::from("-");
        while !line.trim_end().is_empty() {
            line.clear();
            input.read_line(&mut line).unwrap();
        }
        let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\n\r\n{\"e\":1}";
        stream.write_all(answer).unwrap();
        // As servers do, it takes what was on the way.
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = vec![0; 1 << 20];
        while matches!(input.read(&mut rest), Ok(1..)) {}
    });
    let mut recorded = Recorded::with(&format!("http://{address}"), Limits::default());
    let got = upload(&recorded);
    assert_eq!((got.status(), got.body.as_slice()), (413, b"{\"e\":1}".as_slice()));
    let recording = recorded.stop();
    let [exchange] = recording.exchanges() else { panic!() };
    assert_eq!(recording.response(exchange).unwrap().whole(), Some(b"{\"e\":1}".as_slice()));
    assert!(recording.request(exchange).unwrap().whole().is_none());
}

#[test]
fn a_refusal_of_a_large_request_reaches_the_client() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut recorded = Recorded::with(&format!("http://{free}"), Limits::default());
    let got = upload(&recorded);
    assert_eq!(got.status(), 502);
    let recording = recorded.stop();
    assert!(matches!(recording.exchanges()[0].outcome(), Outcome::Cut { .. }));
}
