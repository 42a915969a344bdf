//! A wire that is killed at any moment.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use afterimage_record::{
    Limits, Outcome, Recorder, Recording, RecordingWriter,
    wire::{Route, Upstream, Wire},
};

use super::support::{Message, Provider};
use crate::support::Kills;

pub(super) const FOLDER: &str = "AFTERIMAGE_TEST_WIRE";
pub(super) const UPSTREAM: &str = "AFTERIMAGE_TEST_UPSTREAM";

/// What the killed process does: it passes requests on, and says where it listens.
#[test]
fn child_passes_requests_on_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
    let recorder = Recorder::start(Limits::default(), open, |said| eprintln!("{said}")).unwrap();
    let upstream = Upstream::parse(&std::env::var(UPSTREAM).unwrap()).unwrap();
    let routes = vec![Route::new("p", upstream)];
    let wire = Wire::start("127.0.0.1:0".parse().unwrap(), routes, recorder).unwrap();
    let line = format!("base {}\n", wire.base_url("p").unwrap());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    loop {
        thread::park();
    }
}

fn body(number: u64) -> String {
    format!("{{\"number\": {number}, \"text\": \"{}\"}}", "as before ".repeat(200))
}

/// The answer to a body, in events.
fn answer(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let event = |at: usize| format!("data: {at} {}\n\n", text.get(..16).unwrap_or_default());
    (0..20).map(event).collect()
}

/// Sends one request; true where all of its answer came.
fn call(base: &str, number: u64) -> bool {
    let rest = base.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let body = body(number);
    let head = format!(
        "POST /{path}/responses HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
        return false;
    }
    let Some(got) = Message::read(&mut BufReader::new(stream)) else { return false };
    if got.is_whole && got.line.contains(" 200 ") {
        assert_eq!(String::from_utf8(got.body).unwrap(), answer(body.as_bytes()));
        return true;
    }
    false
}

/// Answers each request with events; some answers say their length and some do not.
fn provider() -> Provider {
    Provider::start(|message, stream| {
        let answer = answer(&message.body);
        let is_chunked = message.body.len() % 2 == 0;
        let head = if is_chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {}", answer.len())
        };
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
        for event in answer.split_inclusive("\n\n") {
            let event = if is_chunked {
                format!("{:x}\r\n{event}\r\n", event.len())
            } else {
                event.to_owned()
            };
            let _ = stream.write_all(event.as_bytes());
        }
        let _ = stream.write_all(if is_chunked { b"0\r\n\r\n" } else { b"" });
    })
}

/// A process that records into a folder, and its base URL.
pub(super) fn start_child(folder: &Path, upstream: String) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["wire::kills::child_passes_requests_on_until_it_is_killed", "--exact"])
        .arg("--nocapture")
        .env(FOLDER, folder)
        .env(UPSTREAM, upstream)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let base = lines.find_map(|line| Some(line.split_once("base ")?.1.to_owned()));
    (child, base.unwrap())
}

/// The numbers of the exchanges that are whole, and how many are not. Each is what was sent.
fn whole_exchanges(folder: &Path) -> (HashSet<u64>, usize) {
    let recording = Recording::open(folder).unwrap().unwrap();
    let (mut whole, mut cut) = (HashSet::new(), 0);
    for exchange in recording.exchanges() {
        let (request, response) =
            (recording.request(exchange).unwrap(), recording.response(exchange).unwrap());
        let (Some(sent), Some(got)) = (request.whole(), response.whole()) else {
            assert!(matches!(exchange.outcome(), Outcome::Cut { .. }) || request.whole().is_none());
            cut += 1;
            continue;
        };
        assert_eq!(String::from_utf8_lossy(got), answer(sent));
        let number = afterimage_json::read(sent).unwrap();
        whole.insert(number.get("number").unwrap().as_u64().unwrap());
    }
    (whole, cut)
}

#[test]
fn durable_a_wire_killed_at_any_moment_has_every_answer_that_a_client_got() {
    let provider = provider();
    let mut kills = Kills::new(10);
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (next, ended) = (AtomicU64::new(1), Mutex::new(HashSet::new()));
    let mut cut = 0;
    while let Some((wanted, after)) = kills.next(25) {
        let (mut child, base) = start_child(&folder, provider.url());
        let (said, heard) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..4 {
                let (said, base, next, ended) = (said.clone(), &base, &next, &ended);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if !call(base, number) {
                            break;
                        }
                        ended.lock().unwrap().insert(number);
                        let _ = said.send(());
                    }
                });
            }
            for _ in 0..wanted {
                heard.recv().unwrap();
            }
            thread::sleep(after);
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let (whole, not_whole) = whole_exchanges(&folder);
        cut += not_whole;
        let ended = ended.lock().unwrap();
        let missing: Vec<&u64> = ended.difference(&whole).collect();
        assert!(missing.is_empty(), "{missing:?} ended and are not whole");
    }
    assert!(cut > 0, "every kill came between two calls");
}
