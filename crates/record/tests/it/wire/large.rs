//! Bodies that fit into no memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use afterimage_record::{MOST_STORED, Outcome, Recording};

use super::kills::start_child;

const LENGTH: usize = 1 << 30;
const BLOCK: usize = 1 << 20;
/// In kB: what waits for a disk that is slower than loopback.
const MOST_MEMORY: u64 = 400 << 10;

/// Bytes that do not pack, the same at each call.
fn block() -> Vec<u8> {
    let mut state = 3_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..BLOCK).map(|_| next()).collect()
}

/// Reads the head of a message, and as many bytes of a body. Each block of it must be the known one.
fn take(stream: &TcpStream) -> String {
    let mut input = BufReader::with_capacity(BLOCK, stream.try_clone().unwrap());
    let (mut head, mut line) = (String::new(), String::from("-"));
    while !line.trim_end().is_empty() {
        line.clear();
        assert!(input.read_line(&mut line).unwrap() > 0, "{head}");
        head.push_str(&line);
    }
    let (expected, mut found) = (block(), vec![0; BLOCK]);
    for at in 0..LENGTH / BLOCK {
        input.read_exact(&mut found).unwrap();
        assert!(found == expected, "block {at}");
    }
    head
}

fn give(mut stream: &TcpStream, head: &str) {
    stream.write_all(format!("{head}Content-Length: {LENGTH}\r\n\r\n").as_bytes()).unwrap();
    let block = block();
    for _ in 0..LENGTH / BLOCK {
        stream.write_all(&block).unwrap();
    }
}

/// The most memory that a process had, in kB.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[test]
#[ignore = "two gigabytes pass: `scripts/nightly gigabyte` runs it"]
fn a_gigabyte_passes_both_ways_in_flat_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    let provider = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        take(&stream);
        give(&stream, "HTTP/1.1 200 OK\r\n");
    });
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (mut child, base) = start_child(&folder, upstream);
    let (address, path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let stream = TcpStream::connect(address).unwrap();
    give(&stream, &format!("POST /{path}/responses HTTP/1.1\r\nHost: {address}\r\n"));
    assert!(take(&stream).starts_with("HTTP/1.1 200"));
    provider.join().unwrap();
    let began = Instant::now();
    let exchange = loop {
        let recording = Recording::open(&folder).unwrap().unwrap();
        let exchange = recording.exchanges()[0].clone();
        if exchange.outcome() != Outcome::Running {
            assert_eq!(recording.request(&exchange).unwrap().into_parts().0.len(), 64 << 20);
            break exchange;
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(50));
    };
    let memory = peak(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let end = exchange.end.unwrap();
    assert_eq!((end.bytes, end.stored), (LENGTH as u64, MOST_STORED));
    println!("at most {memory:?} kB of memory");
    assert!(memory.is_none_or(|memory| memory < MOST_MEMORY), "{memory:?} kB");
}
