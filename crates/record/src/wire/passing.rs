//! Bodies that are recorded as they pass.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{
    sync::oneshot,
    time::{Sleep, sleep},
};

use super::watched::Watch;
use crate::{RequestRecorder, ResponseRecorder};

/// The last bytes of an answer wait so long for the disk, and no longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The body of a request on its way to the provider.
pub(super) struct RequestBody {
    body: Incoming,
    recorder: RequestRecorder,
    watch: Watch,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, recorder: RequestRecorder, watch: Watch) -> Self {
        let mut passing = Self { body, recorder, watch };
        // Nobody asks an empty body for its end.
        passing.end_if(passing.body.is_end_stream());
        passing
    }

    fn end_if(&mut self, is_end: bool) {
        if is_end && self.recorder.end() {
            self.watch.next_request();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.recorder.push(data);
        }
        let is_end = frame.is_none() || self.body.is_end_stream();
        self.end_if(is_end);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer on its way to the client.
///
/// The last bytes are held back until the system has the record of the end: an answer that a client
/// has all of is in the recording, however the recorder ends.
pub(super) enum ResponseBody {
    /// What the recorder says itself.
    Own(Option<Bytes>),
    Passing(Incoming, ResponseRecorder),
    /// The last frame with bytes, what it waits for, and the rest: no bytes, maybe trailers.
    Ending(Option<Frame<Bytes>>, Recorded, Option<(Incoming, ResponseRecorder)>),
}

/// The moment when the system has the record of an end, or it takes too long.
pub(super) struct Recorded {
    done: oneshot::Receiver<()>,
    patience: Pin<Box<Sleep>>,
}

impl Recorded {
    /// Ends an exchange.
    pub(super) fn end(recorder: &mut ResponseRecorder, cut: Option<&str>) -> Self {
        let (done, waiting) = oneshot::channel();
        recorder.end(cut, move || {
            let _ = done.send(());
        });
        Self { done: waiting, patience: Box::pin(sleep(PATIENCE)) }
    }
}

impl Future for Recorded {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Pin::new(&mut self.done).poll(context).is_ready() {
            return Poll::Ready(());
        }
        self.patience.as_mut().poll(context)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            match &mut *self {
                Self::Own(bytes) => {
                    return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
                }
                Self::Passing(body, recorder) => {
                    let frame = match ready!(Pin::new(&mut *body).poll_frame(context)) {
                        Some(Err(error)) => {
                            recorder.end(Some("the upstream broke off"), || {});
                            *self = Self::Own(None);
                            return Poll::Ready(Some(Err(error)));
                        }
                        Some(Ok(frame)) => Some(frame),
                        None => None,
                    };
                    if let Some(data) = frame.as_ref().and_then(Frame::data_ref) {
                        recorder.push(data);
                    }
                    let is_last = body.is_end_stream() || body.size_hint().exact() == Some(0);
                    if frame.is_some() && !is_last {
                        return Poll::Ready(frame.map(Ok));
                    }
                    let recorded = Recorded::end(recorder, None);
                    let passing = std::mem::replace(&mut *self, Self::Own(None));
                    let rest = match passing {
                        Self::Passing(body, recorder) if frame.is_some() => Some((body, recorder)),
                        _ => None,
                    };
                    *self = Self::Ending(frame, recorded, rest);
                }
                Self::Ending(frame, recorded, rest) => {
                    ready!(Pin::new(recorded).poll(context));
                    let (frame, rest) = (frame.take(), rest.take());
                    let rest = rest.filter(|(body, _)| !body.is_end_stream());
                    *self = rest
                        .map_or(Self::Own(None), |(body, recorder)| Self::Passing(body, recorder));
                    return Poll::Ready(frame.map(Ok));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Own(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passing(body, _) => body.size_hint(),
            Self::Ending(frame, ..) => {
                let data = frame.as_ref().and_then(Frame::data_ref);
                SizeHint::with_exact(data.map_or(0, Bytes::len) as u64)
            }
        }
    }
}
