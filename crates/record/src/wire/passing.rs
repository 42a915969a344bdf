//! Bodies that are recorded as they pass.

use std::{
    error::Error as _,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{
    sync::oneshot,
    time::{Sleep, sleep, timeout},
};

use super::{client::Call, watched::Watch};
use crate::{RequestRecorder, ResponseRecorder, coding::MOST_STORED};

/// The last bytes of an answer wait so long for the disk, and no longer; what says that there is no
/// answer waits so long for the rest of its request.
const PATIENCE: Duration = Duration::from_millis(500);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request on its way to the provider. One that the provider never asked for goes to
/// its [`UnsentBody`].
pub(super) struct RequestBody {
    /// `None` while it is dropped alone.
    passing: Option<PassingRequest>,
    unsent: Option<oneshot::Sender<PassingRequest>>,
}

/// A body that comes from the client.
struct PassingRequest {
    body: Incoming,
    recorder: RequestRecorder,
    watch: Watch,
    is_over: bool,
    /// What its client did wrong.
    broken: Arc<OnceLock<&'static str>>,
}

/// What nobody took of the body of a request, and how its client broke it.
pub(super) struct UnsentBody(oneshot::Receiver<PassingRequest>, Arc<OnceLock<&'static str>>);

impl RequestBody {
    pub(super) fn new(
        body: Incoming,
        recorder: RequestRecorder,
        watch: Watch,
    ) -> (Self, UnsentBody) {
        let broken = Arc::<OnceLock<_>>::default();
        let of_passing = Arc::clone(&broken);
        let mut passing =
            PassingRequest { body, recorder, watch, is_over: false, broken: of_passing };
        // Nobody asks an empty body for its end.
        passing.end_if(passing.body.is_end_stream());
        let (unsent, rest) = oneshot::channel();
        (Self { passing: Some(passing), unsent: Some(unsent) }, UnsentBody(rest, broken))
    }
}

impl PassingRequest {
    fn end_if(&mut self, is_end: bool) {
        self.is_over |= is_end;
        if is_end && self.recorder.end() {
            self.watch.next_request();
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.recorder.push(data);
        }
        if let Some(Err(error)) = &frame {
            self.is_over = true;
            let _ = self.broken.set(broken(error));
        }
        // Behind trailers nobody asks for the end.
        let is_last = match &frame {
            None => true,
            Some(frame) => frame.as_ref().is_ok_and(Frame::is_trailers),
        };
        let is_end = is_last || self.body.is_end_stream();
        self.end_if(is_end);
        Poll::Ready(frame)
    }
}

/// What a client did wrong that is no failure of its provider.
fn broken(error: &hyper::Error) -> &'static str {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let kind = source.map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            "the client sent a body that is no HTTP"
        }
        _ => "the client broke its request off",
    }
}

impl UnsentBody {
    /// How the client broke its request, if it did.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.1.get().copied()
    }

    /// Records what the client still sends of a request that no provider answers: as much as is
    /// stored of one, and as comes soon.
    pub(super) async fn record(self) {
        let rest = async {
            let Ok(mut passing) = self.0.await else { return };
            let mut left = MOST_STORED;
            while left > 0 && !passing.is_over {
                let next = poll_fn(|context| passing.poll_frame(context)).await;
                let Some(Ok(frame)) = next else { return };
                let length = frame.data_ref().map_or(0, Bytes::len);
                left = left.saturating_sub(length as u64);
            }
        };
        // What does not come is no reason to keep the client waiting.
        let _ = timeout(PATIENCE, rest).await;
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.passing.as_mut().map_or(Poll::Ready(None), |passing| passing.poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.passing.as_ref().is_none_or(|passing| passing.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.passing.as_ref().map_or_else(SizeHint::default, |passing| passing.body.size_hint())
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(passing), Some(unsent)) = (self.passing.take(), self.unsent.take())
            && !passing.is_over
        {
            // Where there is an answer, nobody waits for it.
            let _ = unsent.send(passing);
        }
    }
}

/// The body of an answer on its way to the client.
///
/// The last bytes are held back until the system has the record of the end: an answer that a client
/// has all of is in the recording, however the recorder ends.
pub(super) enum ResponseBody {
    /// What the recorder says itself.
    Own(Option<Bytes>),
    Passing(PassingAnswer),
    /// The last frame with bytes or trailers, what it waits for, and the rest: no bytes.
    Ending(Option<Frame<Bytes>>, EndReceipt, Option<PassingAnswer>),
}

/// A frame, `None` after the last; and whether nothing follows that has something in it.
type Next = (Option<Frame<Bytes>>, bool);

/// An answer that comes.
pub(super) struct PassingAnswer {
    body: Incoming,
    recorder: ResponseRecorder,
    patience: Patience,
    /// How many bytes are still to come, where the provider has said it.
    left: Option<u64>,
    /// Why it broke off, until what came before is on its way.
    failure: Option<BoxError>,
    _call: Option<Call>,
}

impl PassingAnswer {
    pub(super) fn new(
        body: Incoming,
        recorder: ResponseRecorder,
        patience: Patience,
        length: Option<u64>,
        call: Option<Call>,
    ) -> Self {
        Self { body, recorder, patience, left: length, failure: None, _call: call }
    }

    /// The next frame, and whether it is the last with something in it.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Next, BoxError>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose();
        // In HTTP/2 a provider may take back an answer as if it had come to its end.
        let is_short = |left: Option<u64>| left.is_some_and(|left| left > 0);
        let failure: BoxError = match frame {
            Ok(None) if is_short(self.left) => "the answer is shorter than it says".into(),
            Ok(frame) => {
                if let Some(data) = frame.as_ref().and_then(Frame::data_ref) {
                    self.recorder.push(data);
                    self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                }
                let is_end = self.body.is_end_stream() || self.body.size_hint().exact() == Some(0);
                let is_last = frame.as_ref().is_none_or(|frame| is_end || frame.is_trailers());
                return Poll::Ready(Ok((frame, is_last)));
            }
            Err(error) => error.into(),
        };
        self.recorder.end(Some("the upstream broke off"), || {});
        // The connection is dropped at a failure, with what was not flushed: the client has to get
        // all that the provider sent.
        self.failure = Some(failure);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Whether answers wait for the disk: not while it is late, so that one call alone waits in vain.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<AtomicBool>);

impl Patience {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, is_over: bool) {
        self.0.store(is_over, Ordering::Relaxed);
    }
}

/// The moment when the system has the record of an end, or it takes too long.
pub(super) struct EndReceipt {
    done: oneshot::Receiver<()>,
    patience: Patience,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl EndReceipt {
    /// Ends an exchange.
    pub(super) fn end(
        recorder: &mut ResponseRecorder,
        cut: Option<&str>,
        patience: &Patience,
    ) -> Self {
        let (done, waiting) = oneshot::channel();
        let again = patience.clone();
        recorder.end(cut, move || {
            again.set(false);
            let _ = done.send(());
        });
        Self { done: waiting, patience: patience.clone(), sleep: None }
    }
}

impl Future for EndReceipt {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Pin::new(&mut self.done).poll(context).is_ready() || self.patience.is_over() {
            return Poll::Ready(());
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(sleep.as_mut().poll(context));
        self.patience.set(true);
        Poll::Ready(())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match &mut *self {
                Self::Own(bytes) => {
                    return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
                }
                Self::Passing(passing) => {
                    let (frame, is_last) = match ready!(passing.poll_next(context)) {
                        Ok(next) => next,
                        Err(error) => {
                            *self = Self::Own(None);
                            return Poll::Ready(Some(Err(error)));
                        }
                    };
                    if !is_last {
                        return Poll::Ready(frame.map(Ok));
                    }
                    let recorded = EndReceipt::end(&mut passing.recorder, None, &passing.patience);
                    let rest = match std::mem::replace(&mut *self, Self::Own(None)) {
                        Self::Passing(passing) if frame.is_some() => Some(passing),
                        _ => None,
                    };
                    *self = Self::Ending(frame, recorded, rest);
                }
                Self::Ending(frame, recorded, rest) => {
                    ready!(Pin::new(recorded).poll(context));
                    let (frame, rest) = (frame.take(), rest.take());
                    let rest = rest.filter(|passing| !passing.body.is_end_stream());
                    *self = rest.map_or(Self::Own(None), Self::Passing);
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
            Self::Passing(passing) => passing.body.size_hint(),
            Self::Ending(frame, ..) => {
                let data = frame.as_ref().and_then(Frame::data_ref);
                SizeHint::with_exact(data.map_or(0, Bytes::len) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::runtime::Builder;

    use super::*;

    fn receipt(patience: &Patience) -> (oneshot::Sender<()>, EndReceipt) {
        let (done, waiting) = oneshot::channel();
        (done, EndReceipt { done: waiting, patience: patience.clone(), sleep: None })
    }

    #[test]
    fn an_answer_waits_half_a_second_for_a_disk_that_hangs_and_the_next_one_not_at_all() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let patience = Patience::default();
            let (_hangs, waiting) = receipt(&patience);
            let began = Instant::now();
            timeout(PATIENCE * 10, waiting).await.unwrap();
            assert!(began.elapsed() >= Duration::from_millis(500));
            let (_hangs, next) = receipt(&patience);
            timeout(Duration::ZERO, next).await.unwrap();
            // The disk took the record of an end: now it is waited for again.
            patience.set(false);
            let (done, mut again) = receipt(&patience);
            assert!(timeout(Duration::ZERO, &mut again).await.is_err());
            done.send(()).unwrap();
            timeout(Duration::ZERO, again).await.unwrap();
        });
    }
}
