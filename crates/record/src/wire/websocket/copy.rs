use std::{future::poll_fn, io, pin::pin, task::Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::wire::passing::EndReceipt;

/// So many bytes are copied at a time.
const PIECE: usize = 16 << 10;

/// Copies the bytes of one direction until its sender ends it. `see` sees them before they go on, and
/// says what is to be waited for; at the end it sees none.
pub(super) async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut see: impl FnMut(&[u8]) -> Vec<EndReceipt>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        let bytes = piece.get(..read).unwrap_or_default();
        for recorded in see(bytes) {
            recorded.await;
        }
        if bytes.is_empty() {
            // The other direction may go on.
            return to.shutdown().await;
        }
        to.write_all(bytes).await?;
        to.flush().await?;
    }
}

/// Runs both directions to their ends, or until one of them breaks.
pub(super) async fn both(
    one: impl Future<Output = io::Result<()>>,
    other: impl Future<Output = io::Result<()>>,
) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let mut is_over = [false, false];
    poll_fn(|context| {
        for (at, is_over) in is_over.iter_mut().enumerate() {
            if *is_over {
                continue;
            }
            let polled =
                if at == 0 { one.as_mut().poll(context) } else { other.as_mut().poll(context) };
            match polled {
                Poll::Ready(Ok(())) => *is_over = true,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        if is_over == [true, true] { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
