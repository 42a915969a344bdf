//! A connection that is closed as a client can bear it.
//!
//! A system resets a connection that is closed while bytes of the client wait in it, and the client
//! then loses an answer that was sent before. So the connection first says that it sends no more,
//! takes what the client still sends, and drops it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// A client that sends nothing for so long has read its answer, or will not.
const SILENCE: Duration = Duration::from_secs(2);
/// However much it sends, it is cut after so long.
const MOST: Duration = Duration::from_secs(30);
const BLOCK: usize = 16 << 10;

/// A connection that lingers when it is shut down.
#[derive(Debug)]
pub(super) struct LingeringStream {
    stream: TcpStream,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    began: Instant,
    silence: Pin<Box<Sleep>>,
}

impl LingeringStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, end: None }
    }

    /// Sends no more, and leaves what the client still sends to whoever reads it.
    pub(super) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    /// Ready when the client sends no more, or is not waited for any longer.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.end else { return Poll::Ready(()) };
        let mut block = [0; BLOCK];
        loop {
            if end.began.elapsed() > MOST || end.silence.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut block);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
            end.silence.as_mut().reset(Instant::now() + SILENCE);
        }
    }
}

impl AsyncRead for LingeringStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LingeringStream {
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
        if self.end.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            let silence = Box::pin(sleep(SILENCE));
            self.end = Some(End { began: Instant::now(), silence });
        }
        self.poll_drain(context).map(Ok)
    }
}
