//! What is said in a WebSocket is redacted as it is whole, however it was cut into frames and events.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

use afterimage_record::{Outcome, Redact};

use super::{
    support::Recorded,
    websocket::{asked, bodies, ended, open, provider},
};

/// Its one secret is a word, which two events may say together.
struct Word;

impl Redact for Word {
    fn line(&mut self, text: &str) -> String {
        text.replace("planted", "[word]")
    }

    fn body(&mut self, text: &str, _place: &str) -> String {
        let halves = format!("{}\n\ndata: {}", delta("plan"), delta("ted"));
        let joined = format!("{}\n\ndata: {}", delta("[word]"), delta(""));
        text.replace("planted", "[word]").replace(&halves, &joined)
    }

    fn broken(&mut self, _text: &str, _place: &str) -> Option<String> {
        None
    }
}

fn delta(text: &str) -> String {
    format!("{{\"type\":\"response.output_text.delta\",\"delta\":\"{text}\"}}")
}

/// The frames of a message that is cut in the middle of the secret. A client masks them, here by
/// nothing.
fn frames(message: &str, is_masked: bool) -> Vec<u8> {
    let middle = message.find("planted").map_or(message.len() / 2, |at| at + 4);
    let (start, end) = message.split_at(middle);
    let mut bytes = Vec::new();
    for (first, piece) in [(0x01, start), (0x80, end)] {
        let length = u8::try_from(piece.len()).unwrap();
        assert!(length < 126);
        bytes.extend([first, if is_masked { 0x80 | length } else { length }]);
        bytes.extend(if is_masked { &[0; 4][..] } else { &[] });
        bytes.extend(piece.as_bytes());
    }
    bytes
}

const REQUEST: &str = "{\"type\":\"response.create\",\"input\":\"planted\"}";

fn has_secret(recorded: &Recorded) -> bool {
    let bytes = std::fs::read(recorded.folder.join("wire.rec")).unwrap();
    bytes.windows(4).any(|window| window == b"plan")
}

#[test]
fn a_secret_that_is_split_over_frames_and_events_is_not_written() {
    let events = [
        "{\"type\":\"response.created\",\"say\":\"planted\"}".to_owned(),
        delta("plan"),
        delta("ted"),
        ended("completed", "planted"),
    ];
    let sent: Vec<u8> = events.iter().flat_map(|event| frames(event, false)).collect();
    let asks = frames(REQUEST, true);
    let (answer, expected) = (sent.clone(), asks.clone());
    let provider = provider("", move |mut stream: TcpStream| {
        let mut request = vec![0; expected.len()];
        stream.read_exact(&mut request).unwrap();
        assert_eq!(request, expected);
        stream.write_all(&answer).unwrap();
    });
    let mut recorded = Recorded::redacting(&provider, Word);
    let (mut stream, _) = open(&recorded, "");
    stream.write_all(&asks).unwrap();
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, sent);
    drop(stream);
    let recording = recorded.stop();
    let [exchange] = asked(&recording)[..] else { panic!("{recording:?}") };
    assert!(exchange.start.is_redacted && exchange.outcome() == Outcome::Complete);
    let (request, response) = bodies(&recording, exchange);
    assert_eq!(request, REQUEST.replace("planted", "[word]"));
    let kept = [
        "{\"type\":\"response.created\",\"say\":\"[word]\"}".to_owned(),
        delta("[word]"),
        delta(""),
        ended("completed", "[word]").replace('\n', " "),
    ];
    let kept: String = kept.iter().map(|event| format!("data: {event}\n\n")).collect();
    assert_eq!(response, kept);
    assert!(!has_secret(&recorded));
}

#[test]
fn of_an_answer_that_breaks_off_between_the_halves_of_a_secret_nothing_is_written() {
    let sent = frames(&delta("plan"), false);
    let asks = frames(REQUEST, true);
    let (answer, length) = (sent.clone(), asks.len());
    let provider = provider("", move |mut stream: TcpStream| {
        stream.read_exact(&mut vec![0; length]).unwrap();
        stream.write_all(&answer).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let mut recorded = Recorded::redacting(&provider, Word);
    let (mut stream, _) = open(&recorded, "");
    stream.write_all(&asks).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got, sent);
    let recording = recorded.stop();
    let [exchange] = asked(&recording)[..] else { panic!("{recording:?}") };
    assert!(matches!(exchange.outcome(), Outcome::Cut { .. }), "{exchange:?}");
    assert_eq!(bodies(&recording, exchange).1, "");
    assert!(!has_secret(&recorded));
}
