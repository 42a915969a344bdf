//! What a session has done in threads of their own, while the loop goes on.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, TryRecvError, sync_channel},
    },
    thread,
};

use super::summaries::Summaries;
use crate::{
    Error, ErrorKind, Result,
    compress::{CompressionJob, Engine},
    tokens::TokenCounter,
};

/// Has an engine answer jobs: at once, or each in a thread of its own.
pub(super) struct Beside {
    engine: Arc<dyn Engine + Send + Sync>,
    counter: Arc<dyn TokenCounter>,
    is_on: bool,
    running: Mutex<Vec<Running>>,
}

/// A job that a thread answers. It holds no copy of the job, nor does the thread one that keeps its
/// range: whether that waits again is for the session to say.
struct Running {
    id: Arc<str>,
    attempt: u32,
    answer: Receiver<Result<String>>,
    came: Option<Result<String>>,
}

impl Running {
    fn is_of(&self, job: &CompressionJob) -> bool {
        (&self.id, self.attempt) == (&job.id, job.attempt)
    }

    fn take(&mut self) -> Result<String> {
        let answer = self.came.take().or_else(|| self.answer.recv().ok());
        answer.unwrap_or_else(|| {
            Err(Error::new(ErrorKind::Engine, "the engine ended without an answer"))
        })
    }
}

impl Beside {
    /// Threads only where it `is_on`.
    pub(super) fn new(
        engine: Arc<dyn Engine + Send + Sync>,
        counter: Arc<dyn TokenCounter>,
        is_on: bool,
    ) -> Self {
        Self { engine, counter, is_on, running: Mutex::default() }
    }

    fn start(&self, job: &CompressionJob) -> Result<Running> {
        let (sender, answer) = sync_channel(1);
        let (engine, counter) = (Arc::clone(&self.engine), Arc::clone(&self.counter));
        let asked = job.unleased();
        // Nobody may wait for the answer any more.
        let ask = move || drop(sender.send(engine.summarize(&asked, &*counter)));
        let thread = thread::Builder::new().name("summary".to_owned()).spawn(ask);
        let failed = |error| Error::new(ErrorKind::Engine, format!("no thread for it: {error}"));
        thread.map_err(failed)?;
        Ok(Running { id: Arc::clone(&job.id), attempt: job.attempt, answer, came: None })
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("engine", &self.engine.id()).finish_non_exhaustive()
    }
}

impl Engine for Beside {
    fn id(&self) -> &str {
        self.engine.id()
    }

    /// The answer of the job's thread, which is waited for; a job without one is answered here.
    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let found = running.iter().position(|running| running.is_of(job));
        let found = found.map(|at| running.swap_remove(at));
        drop(running);
        match found {
            Some(mut running) => running.take(),
            None => self.engine.summarize(job, counter),
        }
    }
}

impl Summaries for Beside {
    fn is_later(&self, job: &CompressionJob) -> bool {
        if !self.is_on {
            return false;
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = running.iter_mut().find(|running| running.is_of(job)) else {
            let started = self.start(job).map(|started| running.push(started));
            return started.is_ok();
        };
        match known.answer.try_recv() {
            Err(TryRecvError::Empty) => known.came.is_none(),
            Err(TryRecvError::Disconnected) => false,
            Ok(answer) => {
                known.came = Some(answer);
                false
            }
        }
    }
}
