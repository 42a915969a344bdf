use std::{fmt, sync::Arc, time::SystemTime};

use super::{
    AnswerStream, Awaits, Model, SessionAnswer, SessionRequest, SessionStore, Tool, ToolCall,
    core::Core, step::Step,
};
use crate::{
    Error, ErrorKind, Result,
    compress::{Engine, OutlineEngine},
    hud::{Hud, NativeFormat},
    id::{FacetType, Millis},
    json::{Object, ObjectExt},
    tokens::{Memo, TokenCounter, default_counter},
    veil::{CallOutcome, Facet, FacetOp, Frame, History, PartContent, Source},
    window::ContextWindow,
};

/// The id of the system prompt.
const SYSTEM: &str = "system-prompt";

/// How many steps are read at once.
const PAGE: usize = 256;

/// What a session works with.
#[derive(Clone)]
pub struct SessionOptions {
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// Writes the summaries of what no longer fits.
    pub engine: Arc<dyn Engine + Send + Sync>,
}

impl Default for SessionOptions {
    /// The default counter, which remembers counts, and [`OutlineEngine`], which calls no model.
    fn default() -> Self {
        Self { counter: Arc::new(Memo::new(default_counter())), engine: Arc::new(OutlineEngine) }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions").field("engine", &self.engine.id()).finish_non_exhaustive()
    }
}

/// One agent's memory under one owner: what was said, what was asked, what was answered.
///
/// A session makes the requests of an agent's loop, which fit the model, and takes the answers. Each
/// of its methods that says something makes it durable before it returns. A process that was killed
/// opens the session again, and its next request is byte for byte the one that it would have made:
/// [`Session::awaits`] says where it stood.
///
/// ```
/// use afterimage::{json, session::{Awaits, MemoryStore, Model, Session, Tool}};
///
/// // The model of this example: it calls a tool, and then says what that answered.
/// fn ask(body: &str) -> String {
///     let answer = match body.contains("14:20") {
///         true => r#"{"type": "text", "text": "High water is at 14:20."}"#,
///         false => r#"{"type": "tool_use", "id": "c1", "name": "tide", "input": {"city": "Cuxhaven"}}"#,
///     };
///     format!(r#"{{"type": "message", "role": "assistant", "content": [{answer}]}}"#)
/// }
///
/// let mut session = Session::open(MemoryStore::default())?;
/// let model = Model::anthropic("claude-sonnet-4-6", 8_000);
/// session.system("You are a harbour pilot. Be brief.")?;
/// session.tools([Tool::new("tide", "When high water is.", json::read(br#"{"type": "object"}"#)?)])?;
/// session.user("When must I leave Cuxhaven?")?;
/// loop {
///     match session.awaits() {
///         Awaits::Answer => {
///             let request = session.request(&model)?;
///             session.answer(ask(&request.body))?;
///         }
///         Awaits::Results(calls) => {
///             for call in calls {
///                 session.tool_result(&call.id, "14:20")?;
///             }
///         }
///         Awaits::User => break,
///     }
/// }
/// assert_eq!(session.history().frames().len(), 5);
/// # Ok::<(), afterimage::Error>(())
/// ```
pub struct Session {
    /// `None` after a step could not be made durable: what is kept is read again.
    core: Option<Core>,
    store: Box<dyn SessionStore>,
    options: SessionOptions,
    hud: Hud,
}

impl Session {
    /// The session in this store: a new one where it is empty. Reads all of its steps, and renders and
    /// counts what was said: O(the text).
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Version`], [`ErrorKind::Shape`] and [`ErrorKind::Damaged`] for
    /// steps that are not as they were written.
    pub fn open(store: impl SessionStore + 'static) -> Result<Self> {
        Self::open_with(store, SessionOptions::default())
    }

    /// As [`Session::open`], with another counter or engine.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn open_with(store: impl SessionStore + 'static, options: SessionOptions) -> Result<Self> {
        let format = Arc::new(NativeFormat);
        let hud = Hud::builder(Arc::clone(&options.counter)).format(format).build();
        let mut session = Self { core: None, store: Box::new(store), options, hud };
        session.core()?;
        Ok(session)
    }

    /// Sets the system prompt. Costs nothing where it is that already; another one after the first is
    /// refused.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the session has another system prompt, and those of the store.
    pub fn system(&mut self, text: &str) -> Result<()> {
        match self.core()?.facet(SYSTEM) {
            Some(known) if known.content == text => Ok(()),
            Some(_) => {
                let message =
                    "the session has another system prompt, which its requests were sent with";
                Err(Error::new(ErrorKind::Conflict, message))
            }
            None => self.say(Source::System, Facet::new(SYSTEM, FacetType::SYSTEM, text)),
        }
    }

    /// Sets the tools of the requests from here on. Costs nothing where they are those already; other
    /// ones take the provider's cache from the next request, whose receipt says so.
    ///
    /// # Errors
    /// Those of the store.
    pub fn tools(&mut self, tools: impl IntoIterator<Item = Tool>) -> Result<()> {
        let (tools, now) = (tools.into_iter().map(Tool::into_value).collect(), now());
        match self.core()?.set_tools(tools, now) {
            Some(step) => self.keep(&step),
            None => Ok(()),
        }
    }

    /// The user says something.
    ///
    /// # Errors
    /// Those of the store.
    pub fn user(&mut self, text: impl Into<String>) -> Result<()> {
        self.say(Source::User, Facet::new("", FacetType::EVENT, text))
    }

    /// A tool answers a call of the model.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where no call with this id waits for a result, and those of the store.
    pub fn tool_result(&mut self, call: &str, content: impl Into<String>) -> Result<()> {
        self.result_of(call, content.into(), CallOutcome::Unstated)
    }

    /// A call of the model failed: the model reads why.
    ///
    /// # Errors
    /// Those of [`Session::tool_result`].
    pub fn tool_error(&mut self, call: &str, reason: impl Into<String>) -> Result<()> {
        self.result_of(call, reason.into(), CallOutcome::Failed)
    }

    fn result_of(&mut self, call: &str, content: String, outcome: CallOutcome) -> Result<()> {
        let open = self.core()?.open_calls();
        let Some(ToolCall { name, .. }) = open.into_iter().find(|open| open.id == call) else {
            let message = format!("no call with the id {call:?} waits for a result");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        };
        let (answers, tool) = (Some(Box::from(call)), Some(name.into()));
        let part = PartContent::Result { answers, tool, outcome };
        self.say(Source::Environment, Facet::new("", FacetType::RESULT, content).with_part(part))
    }

    /// What holds now, by a name: the time, the open file. The model reads it behind everything else,
    /// in its newest form alone. It becomes durable with the next step.
    ///
    /// # Errors
    /// What the veil has against it.
    pub fn ambient(&mut self, name: &str, content: impl Into<String>) -> Result<()> {
        let (content, now) = (content.into(), now());
        let core = self.core()?;
        let op = match core.facet(name) {
            Some(known) if known.content == content => return Ok(()),
            Some(_) => {
                let mut change = Object::new();
                change.put("content", content);
                FacetOp::rewrite(name, change)
            }
            None => FacetOp::add(Facet::new(name, FacetType::AMBIENT, content).named(name)),
        };
        core.say_frame(Frame::new(0, Source::Environment).with(op), now)
    }

    /// Says a frame of the caller's own: facets of any type, with ops on those that hold. Its sequence
    /// is given by the session.
    ///
    /// # Errors
    /// What the veil and the format have against it; the session is then as it was. Those of the store.
    pub fn push(&mut self, frame: Frame) -> Result<()> {
        let now = now();
        self.core()?.say_frame(frame, now)?;
        self.save()
    }

    fn say(&mut self, source: Source, facet: Facet) -> Result<()> {
        let now = now();
        self.core()?.say(source, vec![facet], now)?;
        self.save()
    }

    /// Makes durable what was said and is not yet.
    ///
    /// # Errors
    /// Those of the store.
    pub fn save(&mut self) -> Result<()> {
        let core = self.core()?;
        if core.is_saved() {
            return Ok(());
        }
        let step = core.said(now());
        self.keep(&step)
    }

    /// What the session waits for. Of a session that cannot be read again nothing is known: the user.
    pub fn awaits(&self) -> Awaits {
        self.core.as_ref().map_or(Awaits::User, Core::awaits)
    }

    /// The next request to `model`: the whole body, which fits, and what there is to say of it. The same
    /// request again, byte for byte, where the last one waits for its answer and nothing was said since.
    ///
    /// Costs what its context and the last one hold, and what was said since. Where summaries are due,
    /// the engine is asked here.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] where what must stay does not fit the model, and those of the store.
    pub fn request(&mut self, model: &Model) -> Result<SessionRequest> {
        let engine = Arc::clone(&self.options.engine);
        let made = self.core()?.request(model, &*engine, now());
        match made {
            Ok((request, None)) => Ok(request),
            Ok((request, Some(step))) => self.keep(&step).map(|()| request),
            Err(error) => {
                self.core = None;
                Err(error)
            }
        }
    }

    /// The answer to the last request: the body of the response, or all events of its stream.
    ///
    /// # Errors
    /// [`ErrorKind::Provider`] where it is an error of the provider, [`ErrorKind::Shape`] where it is no
    /// response: the request then still waits. [`ErrorKind::Utf8`], and those of the store.
    pub fn answer(&mut self, body: impl AsRef<[u8]>) -> Result<SessionAnswer> {
        let body = str::from_utf8(body.as_ref()).map_err(|error| {
            let message = format!("an answer is text in UTF-8; {error}");
            Error::new(ErrorKind::Utf8, message)
        })?;
        self.take_answer(body, None)
    }

    /// Takes the answer to the last request as it streams in.
    pub fn answer_stream(&mut self) -> AnswerStream<'_> {
        AnswerStream::new(self)
    }

    pub(super) fn take_answer(&mut self, body: &str, cut: Option<String>) -> Result<SessionAnswer> {
        let (answer, step) = self.core()?.answer(body, cut, now())?;
        self.keep(&step).map(|()| answer)
    }

    /// The frames so far.
    pub fn history(&self) -> &History {
        static NONE: std::sync::LazyLock<History> = std::sync::LazyLock::new(History::new);
        self.core.as_ref().map_or(&NONE, Core::history)
    }

    /// What stands for frames that no longer fit; `None` before the first request. Its
    /// [receipt](ContextWindow::receipt) says what a context no longer says.
    pub fn window(&self) -> Option<&ContextWindow> {
        self.core.as_ref().and_then(Core::window)
    }

    /// How many requests there were.
    pub fn turns(&self) -> u64 {
        self.core.as_ref().map_or(0, Core::turns)
    }

    /// The number of the request that waits for its answer, if one does. Where the process that made it
    /// was killed, the provider may have answered, and billed, all the same.
    pub fn unanswered(&self) -> Option<u64> {
        self.core.as_ref().and_then(Core::unanswered)
    }

    /// The body of an earlier request, by its number from one. Reads the steps up to it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there is none, [`ErrorKind::Damaged`] where it is not what was
    /// sent, and those of the store.
    pub fn sent(&mut self, turn: u64) -> Result<String> {
        let (mut body, mut number) = (String::new(), 0);
        let found = read_steps(&mut *self.store, &mut |_, step| {
            if let Some(request) = step.request {
                body = request.body_after(&body)?;
                number += 1;
            }
            Ok(number < turn)
        });
        found?;
        if number == turn && turn > 0 {
            return Ok(body);
        }
        let message = format!("expected a request from 1 to {number}, found {turn}");
        Err(Error::new(ErrorKind::OutOfRange, message))
    }

    /// What is known, read again where a step could not be made durable.
    fn core(&mut self) -> Result<&mut Core> {
        let core = if let Some(core) = self.core.take() {
            core
        } else {
            let mut core = Core::new(self.hud.clone());
            read_steps(&mut *self.store, &mut |_, step| core.take(step).map(|()| true))?;
            core
        };
        Ok(self.core.insert(core))
    }

    /// Makes a step durable. Where that fails, what is kept counts.
    fn keep(&mut self, step: &Step) -> Result<()> {
        let Some(core) = &mut self.core else { return Ok(()) };
        let kept = step.to_bytes();
        let kept = kept.and_then(|bytes| self.store.append(core.next_step(), &bytes, step.at));
        match kept {
            Ok(()) => {
                core.stepped();
                Ok(())
            }
            Err(error) => {
                self.core = None;
                Err(error)
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("turns", &self.turns()).finish_non_exhaustive()
    }
}

/// Reads the steps of a store in order, until `each` wants no more.
fn read_steps(
    store: &mut dyn SessionStore,
    each: &mut dyn FnMut(u64, Step) -> Result<bool>,
) -> Result<()> {
    let mut number = 0;
    loop {
        let page = store.read(number + 1, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for bytes in page {
            number += 1;
            let at_step = |error: Error| error.under(format_args!("step {number}"));
            if !Step::from_bytes(&bytes).and_then(|step| each(number, step)).map_err(at_step)? {
                return Ok(());
            }
        }
    }
}

/// The clock of a session's steps; no byte of a request depends on it.
fn now() -> Millis {
    SystemTime::now().into()
}
