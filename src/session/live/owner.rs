//! What owns a session, written once: `Session` runs it at once, `NatsSession` awaits it.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::SystemTime,
};

#[cfg(feature = "storage")]
use super::spans::Spans;
use super::{
    super::bridge::checkpoint::DraftOptions,
    Awaits, Model, PaidAnswer, SessionAnswer, SessionOptions, SessionRequest, Tool, ToolCall,
    beside::Beside,
    core::Core,
    kept_window::{KeptWindow, WindowParts, WindowWriting},
    step::{PaidStep, Step},
};
use crate::{
    Error, ErrorKind, Result,
    checkpoint::ShrunkCheckpoint,
    hud::{Hud, NativeFormat},
    id::{FacetType, Millis},
    json::{Object, ObjectExt, Value},
    observe::{Freshness, Observations, Policy},
    timeline::{Data, PushReport, Timeline, TurnRecord},
    transcript::{Api, Record},
    veil::{CallOutcome, Facet, FacetOp, Frame, History, PartContent, Source},
    window::ContextWindow,
};

/// The id of the system prompt.
const SYSTEM: &str = "system-prompt";

/// How many steps are read at once.
const PAGE: usize = 256;

/// How often an answer that came too late is tried to be kept while others go on.
const TRIES: usize = 16;

/// A [`SessionStore`](super::SessionStore) that is awaited.
pub(super) trait Steps {
    async fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()>;
    async fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>>;

    /// The name of the session, where it has one.
    #[cfg(feature = "storage")]
    fn name(&self) -> Option<&str> {
        None
    }
}

/// A session with the store of its steps.
pub(super) struct Owner<S> {
    /// `None` where the steps could not be read again after one could not be made durable.
    core: Option<Core>,
    store: S,
    options: SessionOptions,
    hud: Hud,
    beside: Arc<Beside>,
    /// The number and the API of the request that waits for its answer here.
    asked: Option<(u64, Api)>,
    writing: Option<WindowWriting>,
    #[cfg(feature = "storage")]
    spans: Spans,
}

impl<S: Steps> Owner<S> {
    pub(super) async fn open(store: S, options: SessionOptions) -> Result<Self> {
        let format = Arc::new(NativeFormat);
        let hud = Hud::builder(Arc::clone(&options.counter)).format(format).build();
        let (engine, counter) = (Arc::clone(&options.engine), Arc::clone(&options.counter));
        let beside = Arc::new(Beside::new(engine, counter, options.beside));
        let mut owner = Self {
            core: None,
            store,
            options,
            hud,
            beside,
            asked: None,
            writing: None,
            #[cfg(feature = "storage")]
            spans: Spans::default(),
        };
        owner.core().await?;
        Ok(owner)
    }

    pub(super) async fn system(&mut self, text: &str) -> Result<()> {
        match self.core().await?.facet(SYSTEM) {
            Some(known) if known.content == text => Ok(()),
            Some(_) => {
                let message =
                    "the session has another system prompt, which its requests were sent with";
                Err(Error::new(ErrorKind::Conflict, message))
            }
            None => {
                // What was said before has a step of its own: this one may be another's.
                self.save().await?;
                let said =
                    self.say(Source::System, Facet::new(SYSTEM, FacetType::SYSTEM, text)).await;
                // Another process may have said the same first.
                let known = self.core().await?.facet(SYSTEM);
                said.or_else(|error| match known {
                    Some(known) if known.content == text => Ok(()),
                    _ => Err(error),
                })
            }
        }
    }

    pub(super) async fn tools(&mut self, tools: impl IntoIterator<Item = Tool>) -> Result<()> {
        let tools = Tool::all_into_values(tools)?;
        if self.core().await?.tools == tools {
            return Ok(());
        }
        // What was said before has a step of its own: this one may be another's.
        self.save().await?;
        let step = self.core().await?.set_tools(tools.clone(), clock());
        let kept = self.keep_some(step).await;
        let is_late = kept.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict);
        // Another process may have said the same first.
        if is_late && self.core().await?.tools == tools { Ok(()) } else { kept }
    }

    pub(super) async fn user(&mut self, text: impl Into<String>) -> Result<()> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::expected("the user's words", "a text that says nothing"));
        }
        self.say(Source::User, Facet::new("", FacetType::EVENT, text)).await
    }

    pub(super) async fn tool_result(&mut self, call: &str, said: impl Into<String>) -> Result<()> {
        self.result_of(call, said.into(), CallOutcome::Unstated).await
    }

    pub(super) async fn tool_error(&mut self, call: &str, why: impl Into<String>) -> Result<()> {
        self.result_of(call, why.into(), CallOutcome::Failed).await
    }

    async fn result_of(&mut self, call: &str, said: String, outcome: CallOutcome) -> Result<()> {
        let open = self.core().await?.open_calls();
        let Some(ToolCall { name, .. }) = open.into_iter().find(|open| open.id == call) else {
            let message = format!("no call with the id {call:?} waits for a result");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        };
        let (answers, tool) = (Some(Box::from(call)), Some(name.as_str().into()));
        let part = PartContent::Result { answers, tool, outcome };
        let facet = Facet::new("", FacetType::RESULT, said).with_part(part);
        self.say(Source::Environment, facet).await?;
        #[cfg(feature = "storage")]
        self.spans.ran(&name, call, outcome);
        Ok(())
    }

    pub(super) async fn ambient(&mut self, name: &str, content: impl Into<String>) -> Result<()> {
        let (content, now) = (content.into(), clock());
        let core = self.core().await?;
        let op = match core.facet(name) {
            Some(known) if known.facet_type != FacetType::AMBIENT => {
                let message = format!("{name:?} names what was said, not what holds now");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            Some(known) if known.content == content && !core.changes_later(name) => return Ok(()),
            Some(_) => {
                let mut change = Object::new();
                change.put("content", content);
                FacetOp::rewrite(name, change)
            }
            None => FacetOp::add(Facet::new(name, FacetType::AMBIENT, content).named(name)),
        };
        core.say_frame(Frame::new(0, Source::Environment).with(op), now)
    }

    pub(super) async fn push(&mut self, frame: Frame) -> Result<()> {
        let now = clock();
        self.core().await?.push_told(frame, now)?;
        self.save_at(now).await
    }

    async fn say(&mut self, source: Source, facet: Facet) -> Result<()> {
        let now = clock();
        self.core().await?.say(source, vec![facet], now)?;
        self.save_at(now).await
    }

    pub(super) async fn save(&mut self) -> Result<()> {
        self.save_at(clock()).await
    }

    /// What is known of tools' answers was seen at the moment that the step has.
    async fn save_at(&mut self, now: Millis) -> Result<()> {
        let core = self.core().await?;
        if core.is_saved() {
            return Ok(());
        }
        let step = core.said(now);
        self.keep(step).await
    }

    pub(super) async fn observe(&mut self, policy: Policy) -> Result<()> {
        let step = self.core().await?.observe(&policy, clock())?;
        self.keep_some(step).await
    }

    pub(super) async fn freshness(
        &mut self,
        tool: &str,
        arguments: &Value,
    ) -> Result<Option<Freshness>> {
        self.core().await?.memory.freshness(tool, arguments, clock())
    }

    pub(super) async fn begin_world(&mut self, state: Data) -> Result<()> {
        let step = self.core().await?.begin_world(state, clock())?;
        self.keep_some(step).await
    }

    pub(super) async fn turn(&mut self, turn: TurnRecord) -> Result<PushReport> {
        let (report, step) = self.core().await?.turn(turn, clock())?;
        self.keep(step).await.map(|()| report)
    }

    pub(super) async fn checkpoint(&mut self, options: &DraftOptions) -> Result<ShrunkCheckpoint> {
        self.core().await?.checkpoint(options)
    }

    async fn keep_some(&mut self, step: Option<Step>) -> Result<()> {
        match step {
            Some(step) => self.keep(step).await,
            None => Ok(()),
        }
    }

    pub(super) async fn read(
        &mut self,
        records: impl IntoIterator<Item = Result<Record>>,
    ) -> Result<()> {
        match self.core().await?.read(records, clock()) {
            Ok(step) => self.keep(step).await,
            Err(error) => {
                self.read_again().await;
                Err(error)
            }
        }
    }

    pub(super) async fn rewind(&mut self, turn: u64) -> Result<()> {
        let step = self.core().await?.rewind(turn, clock())?;
        self.keep(step).await
    }

    pub(super) async fn copy_until(&mut self, turn: u64, to: &mut impl Steps) -> Result<()> {
        // Steps that are there already would be taken for those that are copied.
        if !to.read(1, 1).await?.is_empty() {
            let message = "expected an empty store for the branch, found steps in it";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let (mut number, mut requests) = (0, 0);
        loop {
            let page = self.store.read(number + 1, PAGE).await?;
            if page.is_empty() {
                let message = format!("expected a request from 1 to {requests}, found {turn}");
                return Err(Error::new(ErrorKind::OutOfRange, message));
            }
            for bytes in page {
                let step = Step::from_bytes(&bytes)?;
                requests += u64::from(step.request.is_some());
                if requests == turn && step.request.is_some() {
                    // What was said for that request goes with it.
                    let said = Step { frames: step.frames, ..Step::at(step.at) };
                    if !said.frames.is_empty() {
                        to.append(number + 1, &said.to_bytes(None)?, step.at).await?;
                    }
                    return Ok(());
                }
                number += 1;
                to.append(number, &bytes, step.at).await?;
            }
        }
    }

    pub(super) async fn catch_up(&mut self) -> Result<u64> {
        self.save().await?;
        let Self { core, store, .. } = self;
        let Some(core) = core else { return Ok(0) };
        let first = core.next_step();
        let taken =
            read_steps(store, first, |step, bytes| core.take(step, bytes).map(|()| true)).await;
        let count = core.next_step() - first;
        if taken.is_err() {
            self.core = None;
        }
        taken.map(|()| count)
    }

    pub(super) async fn request(&mut self, model: &Model) -> Result<SessionRequest> {
        // A request that fails is read again, which costs what was said and not saved.
        model.expect_own()?;
        let beside = Arc::clone(&self.beside);
        let request = match self.core().await?.request(model, &*beside, clock()) {
            Ok((request, None)) => request,
            Ok((request, Some(step))) => {
                self.keep(step).await?;
                self.write_window();
                request
            }
            Err(error) => {
                self.read_again().await;
                return Err(error);
            }
        };
        self.asked = Some((request.receipt.turn, model.api));
        #[cfg(feature = "storage")]
        {
            let window = self.core.as_ref().and_then(Core::window);
            self.spans.asked(model, &request.receipt, window, self.store.name());
        }
        Ok(request)
    }

    pub(super) async fn answer(&mut self, body: impl AsRef<[u8]>) -> Result<SessionAnswer> {
        let body = str::from_utf8(body.as_ref()).map_err(|error| {
            let message = format!("an answer is text in UTF-8; {error}");
            Error::new(ErrorKind::Utf8, message)
        })?;
        self.take_answer(body, None).await
    }

    pub(super) async fn take_answer(
        &mut self,
        body: &str,
        cut: Option<String>,
    ) -> Result<SessionAnswer> {
        let answer = self.keep_answer(body, cut).await;
        #[cfg(feature = "storage")]
        if let Some(core) = &self.core {
            self.spans.answered(&answer, core.history());
        }
        answer
    }

    async fn keep_answer(&mut self, body: &str, cut: Option<String>) -> Result<SessionAnswer> {
        let asked = self.asked;
        let core = self.core().await?;
        let asked = asked.or_else(|| core.asked());
        let reason = cut.clone();
        let paid = |(turn, api)| {
            let (body, cut) = (body.to_owned(), reason.clone());
            PaidStep { turn, api, body, cut }
        };
        if let Some(late) = asked.filter(|(turn, _)| core.unanswered() != Some(*turn)) {
            // An error of the provider costs nothing, and the answer may still come.
            let late = paid(late);
            late.usage()?;
            self.keep_paid(late).await?;
            self.asked = None;
            let message = "another process went on meanwhile; `paid_beside` has the answer";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let frames = core.history().frames().len();
        match core.answer(body, cut, clock()) {
            Ok((answer, step)) => {
                let kept = self.keep(step).await;
                let is_late = kept.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict);
                if let Some(late) = asked.filter(|_| is_late) {
                    self.keep_paid(paid(late)).await?;
                }
                // Where it failed otherwise, another request may wait when the answer comes again.
                if kept.is_ok() || is_late {
                    self.asked = None;
                }
                kept.map(|()| answer)
            }
            Err(error) => {
                // What is half taken is let go.
                if core.history().frames().len() > frames {
                    self.read_again().await;
                }
                Err(error)
            }
        }
    }

    pub(super) async fn sent(&mut self, turn: u64) -> Result<String> {
        let (mut body, mut number) = (String::new(), 0);
        let found = read_steps(&mut self.store, 1, |step, _| {
            if let Some(request) = step.request {
                body = request.body_after(&body)?;
                number += 1;
            }
            Ok(number < turn)
        });
        found.await?;
        if number == turn && turn > 0 {
            return Ok(body);
        }
        let message = format!("expected a request from 1 to {number}, found {turn}");
        Err(Error::new(ErrorKind::OutOfRange, message))
    }

    /// What is known, read again where that failed before.
    async fn core(&mut self) -> Result<&mut Core> {
        let core = if let Some(core) = self.core.take() {
            core
        } else {
            self.writing = None;
            let window = last_window(&mut self.store).await?;
            let mut core = Core::new(self.hud.clone(), window);
            read_steps(&mut self.store, 1, |step, bytes| core.take(step, bytes).map(|()| true))
                .await?;
            core
        };
        Ok(self.core.insert(core))
    }

    /// Lets go what is known, and reads again what is kept. Where that fails too, the next call tries
    /// again, and says why.
    async fn read_again(&mut self) {
        self.core = None;
        let _ = self.core().await;
    }

    /// Makes a step durable. Where that fails, what is kept counts.
    async fn keep(&mut self, step: Step) -> Result<()> {
        let Err(error) = self.append(&step).await else { return Ok(()) };
        self.read_again().await;
        Err(error)
    }

    /// Keeps an answer beside the context: another process was faster, and it was paid.
    async fn keep_paid(&mut self, answer: PaidStep) -> Result<()> {
        let step = Step { paid: Some(answer), ..Step::at(clock()) };
        for _ in 0..TRIES {
            self.core().await?;
            match self.append(&step).await {
                Ok(()) => {
                    self.read_again().await;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict => self.read_again().await,
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "others went on too often for an answer to be kept"))
    }

    async fn append(&mut self, step: &Step) -> Result<()> {
        let Some(core) = &mut self.core else { return Ok(()) };
        let part = self.writing.as_mut().and_then(WindowWriting::next_part);
        let bytes = step.to_bytes(part.as_deref())?;
        self.store.append(core.next_step(), &bytes, step.at).await?;
        core.stepped(bytes.len());
        if let Some(window) = self.writing.as_ref().and_then(WindowWriting::bytes_written) {
            // Where it could not be written, the next try waits as long.
            self.writing = None;
            core.keeps_window(window);
        }
        Ok(())
    }

    /// Begins to write the window down where it is time for that: later steps have it.
    fn write_window(&mut self) {
        let due = self.core.as_ref().filter(|_| self.writing.is_none()).and_then(Core::window_due);
        if let Some((turn, window)) = due {
            self.writing = WindowWriting::start(turn, window.clone());
        }
    }
}

impl<S> Owner<S> {
    pub(super) fn options(&self) -> &SessionOptions {
        &self.options
    }

    pub(super) fn awaits(&self) -> Awaits {
        self.core.as_ref().map_or(Awaits::User, Core::awaits)
    }

    pub(super) fn unanswered(&self) -> Option<u64> {
        self.core.as_ref().and_then(Core::unanswered)
    }

    pub(super) fn turns(&self) -> u64 {
        self.core.as_ref().map_or(0, Core::turns)
    }

    pub(super) fn paid_beside(&self) -> &[PaidAnswer] {
        self.core.as_ref().map_or(&[], Core::paid_beside)
    }

    pub(super) fn history(&self) -> &History {
        static NONE: std::sync::LazyLock<History> = std::sync::LazyLock::new(History::new);
        self.core.as_ref().map_or(&NONE, Core::history)
    }

    pub(super) fn observations(&self) -> Option<&Observations> {
        self.core.as_ref()?.memory.observations.as_ref()
    }

    pub(super) fn world(&self) -> Option<&Timeline> {
        self.core.as_ref()?.memory.world.as_ref()
    }

    pub(super) fn window(&self) -> Option<&ContextWindow> {
        self.core.as_ref().and_then(Core::window)
    }
}

/// The last window that steps have.
async fn last_window(store: &mut impl Steps) -> Result<Option<KeptWindow>> {
    let (mut number, mut parts) = (1, WindowParts::default());
    loop {
        let page = store.read(number, PAGE).await?;
        if page.is_empty() {
            return Ok(parts.last());
        }
        number += page.len() as u64;
        page.iter().filter_map(|bytes| Step::window_in(bytes)).for_each(|part| parts.take(part));
    }
}

/// Reads the steps of a store from one on, until `each` wants no more.
async fn read_steps(
    store: &mut impl Steps,
    first: u64,
    mut each: impl FnMut(Step, usize) -> Result<bool>,
) -> Result<()> {
    let mut number = first;
    loop {
        let page = store.read(number, PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        for bytes in page {
            let at_step = |error: Error| error.under(format_args!("step {number}"));
            let step = Step::from_bytes(&bytes);
            if !step.and_then(|step| each(step, bytes.len())).map_err(at_step)? {
                return Ok(());
            }
            number += 1;
        }
    }
}

/// The clock of a session's steps; no byte of a request depends on it.
fn clock() -> Millis {
    SystemTime::now().into()
}

/// The result of an operation on a store that answers at once.
pub(super) fn now<F: Future>(operation: F) -> F::Output {
    let mut operation = pin!(operation);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = operation.as_mut().poll(&mut context) {
            return output;
        }
    }
}
