//! What is redacted passes as it is, and is written without its secrets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::Write;

use afterimage_record::{
    Limits, Recorder, Recording, RecordingWriter, Redact,
    wire::{Route, Upstream, Wire},
};

use super::support::{Provider, Recorded};

/// Its one secret is a word.
struct Word;

impl Redact for Word {
    fn line(&mut self, text: &str) -> String {
        text.replace("planted", "[word]")
    }

    fn body(&mut self, text: &str, _place: &str) -> String {
        text.replace("planted", "[word]")
    }

    fn broken(&mut self, _text: &str, _place: &str) -> Option<String> {
        None
    }
}

#[test]
fn transparent_a_redacted_recording_changes_nothing_that_passes() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"{\"answer\": \"planted\"}").unwrap();
    let packed = packed.finish().unwrap();
    let answer = packed.clone();
    let provider = Provider::start(move |_, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A word may be split over the pieces in which it comes.
        for byte in &answer {
            stream.write_all(&[*byte]).unwrap();
        }
    });
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
    let tell = |said: &str| panic!("{said}");
    let recorder = Recorder::start_redacting(Limits::default(), Box::new(Word), open, tell);
    let route = Route::new("p", Upstream::parse(&provider.url()).unwrap());
    let listen = "127.0.0.1:0".parse().unwrap();
    let wire = Wire::start(listen, vec![route], recorder.unwrap()).unwrap();
    let recorded = Recorded::around(wire);
    let body = b"{\"say\": \"planted\"}";
    let got = recorded.post("/responses", "User-Agent: planted\r\n", body);
    assert_eq!(got.body, packed);
    let received = provider.received();
    assert_eq!(received[0].body, body);
    assert_eq!(received[0].header("user-agent"), Some("planted"));
    // The client has the answer, so the recording does, while the wire still runs.
    let recording = Recording::open(scratch.path()).unwrap().unwrap();
    let [exchange] = recording.exchanges() else { panic!("{recording:?}") };
    assert!(exchange.start.is_redacted);
    assert!(exchange.start.headers.contains(&("user-agent".to_owned(), "[word]".to_owned())));
    let request = recording.request(exchange).unwrap();
    assert_eq!(request.whole(), Some(&b"{\"say\": \"[word]\"}"[..]));
    let response = recording.response(exchange).unwrap();
    assert_eq!(response.whole(), Some(&b"{\"answer\": \"[word]\"}"[..]));
    drop(recorded);
    let bytes = std::fs::read(scratch.path().join("wire.rec")).unwrap();
    assert!(!bytes.windows(7).any(|window| window == b"planted"));
}
