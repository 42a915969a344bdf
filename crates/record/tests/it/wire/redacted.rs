//! What is redacted passes as it is, and is written without its secrets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use afterimage_record::{
    Limits, Outcome, Recorder, Recording, RecordingWriter, Redact, Start,
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

/// Panics at what holds its word; of what broke off it keeps whole events.
struct Fragile;

impl Redact for Fragile {
    fn line(&mut self, text: &str) -> String {
        self.body(text, "a line")
    }

    fn body(&mut self, text: &str, place: &str) -> String {
        assert!(!text.contains("fragile"), "a rule failed at {place}");
        text.replace("planted", "[word]")
    }

    fn broken(&mut self, text: &str, place: &str) -> Option<String> {
        let end = text.rfind("\n\n")? + 2;
        Some(self.body(&text[..end], place))
    }
}

/// Records exchanges, and gives what was told.
fn record(folder: &std::path::Path, exchanges: impl FnOnce(&Recorder)) -> Vec<String> {
    let (path, told) = (folder.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&told);
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let tell = move |said: &str| heard.lock().unwrap().push(said.to_owned());
    let recorder = Recorder::start_redacting(Limits::default(), Box::new(Fragile), open, tell);
    let recorder = recorder.unwrap();
    exchanges(&recorder);
    recorder.finish().unwrap();
    let told = told.lock().unwrap();
    told.clone()
}

#[test]
fn a_text_at_which_the_redaction_panics_is_left_out_and_said() {
    let scratch = tempfile::tempdir().unwrap();
    let texts =
        [("planted", "planted"), ("fragile 1", "planted"), ("planted", "fragile 2"), ("a", "b")];
    let told = record(scratch.path(), |recorder| {
        for (asked, answered) in texts {
            let headers = vec![("user-agent".to_owned(), asked.to_owned())];
            let start = Start { path: "/responses".into(), headers, ..Start::now("POST", "p") };
            let (mut request, mut response) = recorder.exchange(start);
            request.push(asked.as_bytes());
            request.end();
            response.head(200, Vec::new());
            response.push(answered.as_bytes());
            response.end(None, || {});
        }
    });
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("a rule failed at") && told[0].contains("left out"), "{told:?}");
    let recording = Recording::open(scratch.path()).unwrap().unwrap();
    let found: Vec<_> = recording
        .exchanges()
        .iter()
        .map(|of| {
            let request = recording.request(of).unwrap().whole().map(<[u8]>::to_vec);
            let response = recording.response(of).unwrap().whole().map(<[u8]>::to_vec);
            (request, response, of.outcome() == Outcome::Complete)
        })
        .collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let expected = [
        (text("[word]"), text("[word]"), true),
        (None, text("[word]"), false),
        (text("[word]"), None, false),
        (text("a"), text("b"), true),
    ];
    assert_eq!(found, expected);
    let bytes = std::fs::read(scratch.path().join("wire.rec")).unwrap();
    assert!(!bytes.windows(7).any(|window| matches!(window, b"planted" | b"fragile")));
}

#[test]
fn of_a_packed_answer_that_broke_off_whole_events_are_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for text in ["data: planted\n\n", "data: two\n\n", "data: \u{6f6e}"] {
        packed.write_all(text.as_bytes()).unwrap();
        packed.flush().unwrap();
    }
    let sent = packed.get_ref().clone();
    let told = record(scratch.path(), |recorder| {
        let (mut request, mut response) = recorder.exchange(Start::now("POST", "p"));
        request.end();
        let coding = ("content-encoding".to_owned(), "gzip".to_owned());
        response.head(200, vec![coding]);
        response.push(&sent);
        response.end(Some("the client went away"), || {});
    });
    assert!(told.is_empty(), "{told:?}");
    let recording = Recording::open(scratch.path()).unwrap().unwrap();
    let [exchange] = recording.exchanges() else { panic!("{recording:?}") };
    let (bytes, cut) = recording.response(exchange).unwrap().into_parts();
    assert_eq!(String::from_utf8(bytes).unwrap(), "data: [word]\n\ndata: two\n\n");
    assert_eq!(cut.as_deref(), Some("the client went away"));
}
