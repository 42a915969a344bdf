//! A provider, a client or a disk that fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpListener},
    path::Path,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use afterimage_log::{Files, testing::MemoryFiles};
use afterimage_record::{
    Limits, Recorder, RecordingWriter,
    wire::{Route, Upstream, Wire},
};

use super::support::{Message, Provider, Recorded};

#[test]
fn a_provider_that_refuses_gives_a_bad_gateway() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut recorded = Recorded::with(&format!("http://{free}"), Limits::default());
    let got = recorded.post("/responses", "", b"{\"input\": 1}");
    assert_eq!(got.status(), 502);
    assert!(String::from_utf8(got.body).unwrap().contains("cannot be reached"));
    let recording = recorded.stop();
    assert_eq!(recorded.wait_for_cut(), "the upstream cannot be reached");
    // Nothing took the body, and it is kept all the same.
    let request = recording.request(&recording.exchanges()[0]).unwrap();
    assert_eq!(request.whole(), Some(&b"{\"input\": 1}"[..]));
}

#[test]
fn a_client_that_sends_slowly_need_not_send_all_to_hear_that_nobody_takes_it() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut recorded = Recorded::with(&format!("http://{free}"), Limits::default());
    let head = recorded.head("POST", "/responses");
    let mut stream = recorded.connect();
    stream.write_all(format!("{head}Content-Length: 1000\r\n\r\n").as_bytes()).unwrap();
    let mut sending = stream.try_clone().unwrap();
    // All of it would take a minute and a half.
    let (stop, stopped) = mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(100)).is_err() {
            if sending.write_all(b"x").is_err() {
                break;
            }
        }
    });
    let got = Message::read(&mut BufReader::new(stream)).unwrap();
    assert_eq!(got.status(), 502);
    stop.send(()).ok();
    sender.join().unwrap();
    let recording = recorded.stop();
    assert!(recording.request(&recording.exchanges()[0]).unwrap().cut().is_some());
}

#[test]
fn garbage_is_no_answer() {
    let provider = Provider::start(|_, stream| {
        let _ = stream.write_all(b"\x00\xffnot HTTP at all\r\n\r\n");
        let _ = stream.shutdown(Shutdown::Both);
    });
    let mut recorded = Recorded::of(&provider);
    assert_eq!(recorded.post("/responses", "", b"{}").status(), 502);
    recorded.stop();
    assert_eq!(recorded.wait_for_cut(), "the upstream gave no answer of HTTP");
}

#[test]
fn what_a_client_sends_wrong_is_no_failure_of_the_provider() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    for (body, reason) in [
        (
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
            "the client sent a body that is no HTTP",
        ),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\n{}", "the client broke its request off"),
        ("Content-Length: 9\r\n\r\n{}", "the client broke its request off"),
    ] {
        let mut recorded = Recorded::of(&provider);
        let mut stream = recorded.connect();
        let head = recorded.head("POST", "/responses");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // It is answered where it is still there.
        let got = Message::read(&mut BufReader::new(stream));
        assert!(got.is_none_or(|got| got.line.is_empty() || got.status() == 400), "{body}");
        recorded.stop();
        assert_eq!(recorded.wait_for_cut(), reason, "{body}");
    }
}

#[test]
fn an_answer_with_two_lengths_is_told_as_what_it_is() {
    let reason = "the upstream sent lengths of its answer that differ, or are no numbers";
    for (method, head) in [
        ("POST", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n"),
        ("POST", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n"),
    ] {
        let provider = Provider::saying(head);
        let mut recorded = Recorded::of(&provider);
        let request = recorded.head(method, "/responses");
        let got = recorded.raw(&format!("{request}Content-Length: 2\r\n\r\n{{}}"));
        assert_eq!(got.status(), 502, "{head}");
        assert_eq!(recorded.wait_for_cut(), reason, "{head}");
        recorded.stop();
    }
}

#[test]
fn lengths_that_agree_or_that_a_coding_overrules_pass() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", Some("2")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}", Some("2")),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            None,
        ),
    ] {
        let provider = Provider::saying(answer);
        let mut recorded = Recorded::of(&provider);
        let got = recorded.post("/responses", "", b"{}");
        assert_eq!((got.status(), got.is_whole, got.body.as_slice()), (200, true, &b"{}"[..]));
        assert_eq!(got.header("content-length"), expected, "{answer}");
        let recording = recorded.stop();
        let response = recording.response(&recording.exchanges()[0]).unwrap();
        assert_eq!(response.whole(), Some(&b"{}"[..]), "{answer}");
    }
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    for head in ["Transfer-Encoding: chunked\r\n\r\n9\r\n", "Content-Length: 100\r\n\r\n"] {
        let provider = Provider::start(move |_, stream| {
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}data: 1\n\n").as_bytes()).unwrap();
            let _ = stream.shutdown(Shutdown::Both);
        });
        let mut recorded = Recorded::of(&provider);
        let got = recorded.post("/responses", "", b"{}");
        assert!(!got.is_whole, "{head}");
        let reason = recorded.wait_for_cut();
        assert_eq!(reason, "the upstream broke off", "{head}");
        let recording = recorded.stop();
        let (bytes, cut) = recording.response(&recording.exchanges()[0]).unwrap().into_parts();
        assert_eq!((bytes.as_slice(), cut.as_deref()), (b"data: 1\n\n".as_slice(), Some(&*reason)));
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_ends_the_call() {
    for is_silent in [false, true] {
        let (closed, wait) = mpsc::channel();
        let closed = Mutex::new(closed);
        let provider = Provider::start(move |_, stream| {
            if !is_silent {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n").unwrap();
            }
            // The wire closes its connection, so that the provider stops too.
            let read = stream.read(&mut [0; 9]);
            closed.lock().unwrap().send(matches!(read, Ok(0) | Err(_))).unwrap();
        });
        let mut recorded = Recorded::of(&provider);
        let mut stream = recorded.connect();
        let head = recorded.head("POST", "/responses");
        stream.write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
        if is_silent {
            recorded.wait("the request", |_| !provider.received().is_empty());
        } else {
            let mut seen = Vec::new();
            while !seen.ends_with(b"data: 1\n\n\r\n") {
                let mut byte = [0];
                assert_eq!(stream.read(&mut byte).unwrap(), 1);
                seen.push(byte[0]);
            }
        }
        drop(stream);
        assert_eq!(recorded.wait_for_cut(), "the client went away");
        assert!(wait.recv().unwrap());
        let recording = recorded.stop();
        let exchange = &recording.exchanges()[0];
        assert_eq!(recording.request(exchange).unwrap().whole(), Some(b"{}".as_slice()));
        let (bytes, _) = recording.response(exchange).unwrap().into_parts();
        assert_eq!(bytes.as_slice(), if is_silent { b"".as_slice() } else { b"data: 1\n\n" });
    }
}

#[test]
fn a_provider_that_hangs_in_the_middle_is_waited_for() {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let provider = Provider::start(move |_, stream| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
        stream.write_all(head).unwrap();
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n").unwrap();
    });
    let mut recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/responses");
    stream.write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
    let mut read_until = |end: &[u8]| {
        let mut seen = Vec::new();
        while !seen.ends_with(end) {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1);
            seen.push(byte[0]);
        }
    };
    // What came so far is with the client.
    read_until(b"data: 1\n\n\r\n");
    recorded.wait("the call", |recording| recording.exchanges().len() == 1);
    go_on.send(()).unwrap();
    read_until(b"data: 2\n\n\r\n0\r\n\r\n");
    let recording = recorded.stop();
    let response = recording.response(&recording.exchanges()[0]).unwrap();
    assert_eq!(response.whole(), Some(b"data: 1\n\ndata: 2\n\n".as_slice()));
}

#[test]
fn an_upload_that_breaks_off_is_marked() {
    let provider = Provider::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let recorded = Recorded::of(&provider);
    let mut stream = recorded.connect();
    let head = recorded.head("POST", "/responses");
    stream.write_all(format!("{head}Content-Length: 20\r\n\r\n{{\"half").as_bytes()).unwrap();
    recorded.wait("the start", |recording| recording.exchanges().len() == 1);
    drop(stream);
    recorded.wait_for_cut();
    let recording = recorded.wait("the body", |recording| {
        recording
            .request(&recording.exchanges()[0])
            .is_ok_and(|body| body.cut() == Some("the request broke off"))
    });
    assert!(recording.request(&recording.exchanges()[0]).unwrap().whole().is_none());
}

#[test]
fn transparent_a_disk_that_fails_changes_no_call() {
    let provider = Provider::start(|message, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", message.body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&message.body).unwrap();
    });
    let files = MemoryFiles::new();
    files.set_room(Some(900));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (disk, heard) = (files.clone(), Arc::clone(&told));
    let open = move || {
        let files: Arc<dyn Files> = Arc::new(disk.clone());
        Ok(RecordingWriter::open(files, Path::new("r"))?.0)
    };
    let tell = move |said: &str| heard.lock().unwrap().push(said.to_owned());
    let recorder = Recorder::start(Limits::default(), open, tell).unwrap();
    let route = Route::new("p", Upstream::parse(&provider.url()).unwrap());
    let wire = Wire::start("127.0.0.1:0".parse().unwrap(), vec![route], recorder).unwrap();
    let recorded = Recorded::around(wire);
    for number in 0..12 {
        let body = format!("{{\"number\": {number}}}");
        let got = recorded.post("/responses", "", body.as_bytes());
        assert_eq!((got.status(), got.body), (200, body.into_bytes()));
    }
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    drop(recorded);
    let recording = afterimage_record::Recording::open_from(&files, "r").unwrap().unwrap();
    assert!((1..12).contains(&recording.exchanges().len()));
}
