//! A connection that remembers the head of the request that it brings, as it came.
//!
//! A server drops a length that another header overrules before anybody sees it. Whether a request
//! had two is in its bytes alone, and a recorder that took one for the other would pass on something
//! else than the client sent.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use hyper::Method;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::lingering::LingeringStream;

/// A head that is longer is refused.
const MOST_HEAD: usize = 1 << 20;

/// A connection whose heads are remembered.
#[derive(Debug)]
pub(super) struct WatchedStream {
    stream: LingeringStream,
    watch: Watch,
}

/// The head of the request that is read, from its first byte on.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Head>>);

#[derive(Debug, Default)]
struct Head {
    bytes: Vec<u8>,
    /// How far an end was looked for.
    searched: usize,
    /// Whether all of it is there, or nothing is to be remembered until the next request.
    is_closed: bool,
    /// Whether the body of the request before has been read.
    is_read: bool,
    /// Whether the connection is a WebSocket now, whose other direction may go on.
    is_upgraded: bool,
}

impl WatchedStream {
    pub(super) fn new(stream: TcpStream) -> (Self, Watch) {
        let watch = Watch::default();
        (Self { stream: LingeringStream::new(stream), watch: watch.clone() }, watch)
    }
}

impl Watch {
    fn with<T>(&self, act: impl FnOnce(&mut Head) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The connection goes on as a WebSocket.
    pub(super) fn upgrade(&self) {
        self.with(|head| head.is_upgraded = true);
    }

    fn see(&self, bytes: &[u8]) {
        self.with(|head| {
            if head.is_closed {
                return;
            }
            head.bytes.extend_from_slice(bytes);
            // An end may lie across what was there and what came.
            let from = head.searched.saturating_sub(3);
            let rest = head.bytes.get(from..).unwrap_or_default();
            let end = rest.windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
            head.searched = head.bytes.len();
            if let Some(end) = end {
                head.bytes.truncate(end);
            }
            head.is_closed = end.is_some() || head.bytes.len() > MOST_HEAD;
        });
    }

    /// The next bytes are those of another request: the body of this one has been read.
    pub(super) fn next_request(&self) {
        self.with(|head| *head = Head { is_read: true, ..Head::default() });
    }

    /// Whether the body of the request has been read to its end.
    pub(super) fn is_read(&self) -> bool {
        self.with(|head| head.is_read)
    }

    /// Whether the head that was read last is that of a request with this method, and says its length
    /// once at most. A head that was not seen from its first byte on is not: it came before the one
    /// before it was answered.
    pub(super) fn is_clear(&self, method: &Method) -> bool {
        self.with(|head| {
            head.is_read = false;
            let head = std::mem::take(&mut head.bytes);
            let line = [method.as_str().as_bytes(), b" "].concat();
            let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
            let head = head.get(start.unwrap_or_default()..).unwrap_or_default();
            head.starts_with(&line) && head.ends_with(b"\r\n\r\n") && !ambiguous_length(head)
        })
    }
}

/// Whether the head of a request says its length in more than one way: by two lengths, by two
/// codings, or by one of each.
fn ambiguous_length(head: &[u8]) -> bool {
    let names = head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let end = line.iter().position(|byte| *byte == b':')?;
        Some(line.get(..end)?.trim_ascii())
    });
    let is_length = |name: &&[u8]| {
        name.eq_ignore_ascii_case(b"content-length")
            || name.eq_ignore_ascii_case(b"transfer-encoding")
    };
    names.filter(is_length).count() > 1
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch.see(buffer.filled().get(before..).unwrap_or_default());
        read
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.watch.with(|head| head.is_upgraded) {
            return self.stream.poll_end(context);
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n";

    #[test]
    fn a_head_is_seen_whatever_pieces_it_comes_in() {
        let whole = format!("{HEAD}\r\nabcPOST /y");
        for cut in 1..whole.len() {
            let watch = Watch::default();
            let (first, second) = whole.as_bytes().split_at(cut);
            watch.see(first);
            watch.see(second);
            assert!(watch.is_clear(&Method::POST), "{cut}");
            assert!(!watch.is_clear(&Method::POST), "{cut}");
            watch.next_request();
            watch.see(b"\r\nGET / HTTP/1.1\r\n\r\n");
            assert!(watch.is_clear(&Method::GET), "{cut}");
        }
    }

    #[test]
    fn two_lengths_are_ambiguous() {
        for (line, expected) in [
            ("", false),
            ("Content-Lengths: 3\r\n", false),
            ("content-length: 3\r\n", true),
            ("Transfer-Encoding: chunked\r\n", true),
            ("TRANSFER-ENCODING : chunked\r\n", true),
        ] {
            let head = format!("{HEAD}{line}\r\n");
            assert_eq!(ambiguous_length(head.as_bytes()), expected, "{line}");
            let watch = Watch::default();
            watch.see(head.as_bytes());
            assert_eq!(watch.is_clear(&Method::POST), !expected, "{line}");
        }
    }
}
