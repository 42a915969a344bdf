use std::{fmt, sync::Arc};

#[cfg(feature = "nats")]
use super::store::NatsSteps;
use super::{
    super::bridge::checkpoint::DraftOptions,
    AnswerStream, Awaits, Model, PaidAnswer, SessionAnswer, SessionRequest, SessionStore, Tool,
    owner::{Owner, Steps, now},
};
#[cfg(feature = "nats")]
use crate::journal::{NatsJournal, SessionName};
use crate::{
    Result,
    checkpoint::ShrunkCheckpoint,
    compress::{Engine, OutlineEngine},
    id::Millis,
    json::Value,
    observe::{Freshness, Observations, Policy},
    timeline::{Data, PushReport, Timeline, TurnRecord},
    tokens::{Memo, TokenCounter, default_counter},
    transcript::Record,
    veil::{Frame, History},
    window::ContextWindow,
};

/// What a session works with.
#[derive(Clone)]
pub struct SessionOptions {
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// Writes the summaries of what no longer fits.
    pub engine: Arc<dyn Engine + Send + Sync>,
    /// Whether it writes them beside the loop, each in a thread of its own: a request then goes out
    /// without a summary that has not come, as long as it fits, and a later one has it. Otherwise a
    /// request waits for its summaries.
    pub beside: bool,
}

impl Default for SessionOptions {
    /// The default counter, which remembers counts, and [`OutlineEngine`], which calls no model.
    fn default() -> Self {
        let counter = Arc::new(Memo::new(default_counter()));
        Self { counter, engine: Arc::new(OutlineEngine), beside: false }
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
/// of its methods that says something makes it durable before it returns, but for `ambient`. A process that was killed
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
pub struct Session(Owner<Box<dyn SessionStore>>);

/// A [`Session`] on NATS `JetStream`, which several processes may open: its methods are async, and need
/// a tokio runtime.
///
/// Each step goes behind the last one that this process knows. Where another process was faster, the
/// method answers [`ErrorKind::Conflict`](crate::ErrorKind::Conflict), and the session has caught up:
/// [`NatsSession::awaits`] says where it stands now. A step that is larger than the server's
/// `max_payload`, as one with a large image, goes to its object store before the record of it.
#[cfg(feature = "nats")]
pub struct NatsSession(Owner<NatsSteps>);

impl Session {
    /// The session in this store: a new one where it is empty. Reads all of its steps, and renders and
    /// counts what was said: O(the text).
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Version`](crate::ErrorKind::Version),
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) and [`ErrorKind::Damaged`](crate::ErrorKind::Damaged)
    /// for steps that are not as they were written.
    pub fn open(store: impl SessionStore + 'static) -> Result<Self> {
        Self::open_with(store, SessionOptions::default())
    }

    /// As [`Session::open`], with another counter or engine.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn open_with(store: impl SessionStore + 'static, options: SessionOptions) -> Result<Self> {
        let store: Box<dyn SessionStore> = Box::new(store);
        now(Owner::open(store, options)).map(Self)
    }

    /// Another session in another store, which is empty: what this one held before the request with this
    /// number. Reads and writes the steps up to there.
    ///
    /// ```
    /// use afterimage::session::{MemoryStore, Model, Session};
    ///
    /// let mut session = Session::open(MemoryStore::default())?;
    /// session.user("Is it open?")?;
    /// session.request(&Model::chat("gpt-5.2", 8_000))?;
    /// let mut branch = session.branch(1, MemoryStore::default())?;
    /// branch.user("And tomorrow?")?;
    /// assert_eq!((session.turns(), branch.turns(), branch.history().frames().len()), (1, 0, 2));
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where there is no such request,
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the other store is not empty, and those
    /// of both stores.
    pub fn branch(&mut self, turn: u64, store: impl SessionStore + 'static) -> Result<Self> {
        let mut store: Box<dyn SessionStore> = Box::new(store);
        now(self.0.copy_until(turn, &mut store))?;
        let options = self.0.options().clone();
        now(Owner::open(store, options)).map(Self)
    }

    /// Takes the answer to the last request as it streams in.
    pub fn answer_stream(&mut self) -> AnswerStream<'_> {
        AnswerStream::new(self)
    }

    pub(super) fn take_answer(&mut self, body: &str, cut: Option<String>) -> Result<SessionAnswer> {
        now(self.0.take_answer(body, cut))
    }
}

#[cfg(feature = "nats")]
impl NatsSession {
    /// The session with this name: a new one where it has no steps. Reads all of them.
    ///
    /// # Errors
    /// Those of the journal, and of [`Session::open`].
    pub async fn open(
        journal: NatsJournal,
        name: SessionName,
        options: SessionOptions,
    ) -> Result<Self> {
        Box::pin(Owner::open(NatsSteps::of(journal, name), options)).await.map(Self)
    }

    /// As [`Session::branch`]: another session, with this name, that begins where the request with this
    /// number was made.
    ///
    /// # Errors
    /// Those of [`Session::branch`], and of the journal.
    pub async fn branch(
        &mut self,
        turn: u64,
        journal: NatsJournal,
        name: SessionName,
    ) -> Result<Self> {
        let mut steps = NatsSteps::of(journal, name);
        Box::pin(self.0.copy_until(turn, &mut steps)).await?;
        Box::pin(Owner::open(steps, self.0.options().clone())).await.map(Self)
    }

    /// Takes the answer to the last request as it streams in.
    pub fn answer_stream(&mut self) -> AnswerStream<'_, Self> {
        AnswerStream::new(self)
    }

    pub(super) async fn take_answer(
        &mut self,
        body: &str,
        cut: Option<String>,
    ) -> Result<SessionAnswer> {
        Box::pin(self.0.take_answer(body, cut)).await
    }
}

impl Steps for Box<dyn SessionStore> {
    async fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
        (**self).append(number, step, now)
    }

    async fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        (**self).read(first, most)
    }

    #[cfg(feature = "storage")]
    fn name(&self) -> Option<&str> {
        (**self).name()
    }
}

/// Both faces of a session: the same methods, once at once and once awaited.
macro_rules! faces {
    (
        change { $($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $output:ty;)* }
        look { $($(#[$look_doc:meta])* fn $look:ident() -> $look_output:ty;)* }
    ) => {
        impl Session {
            $(
                $(#[$doc])*
                pub fn $name(&mut self, $($arg: $type),*) -> $output {
                    now(self.0.$name($($arg),*))
                }
            )*
            $(
                $(#[$look_doc])*
                pub fn $look(&self) -> $look_output {
                    self.0.$look()
                }
            )*
        }

        #[cfg(feature = "nats")]
        impl NatsSession {
            $(
                $(#[$doc])*
                pub async fn $name(&mut self, $($arg: $type),*) -> $output {
                    Box::pin(self.0.$name($($arg),*)).await
                }
            )*
            $(
                $(#[$look_doc])*
                pub fn $look(&self) -> $look_output {
                    self.0.$look()
                }
            )*
        }
    };
}

faces! {
    change {
        /// Sets the system prompt. Costs nothing where it is that already; another one after the first
        /// is refused. Say it first: a system prompt stands where it was said, and Anthropic, which has
        /// no place for one behind other messages, reads it there as the user's words
        /// ([`Receipt::repairs`](super::Receipt::repairs)).
        ///
        /// # Errors
        /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the session has another system
        /// prompt, and those of the store.
        fn system(text: &str) -> Result<()>;

        /// Sets the tools of the requests from here on. Costs nothing where they are those already;
        /// other ones take the provider's cache from the next request, whose receipt says so.
        ///
        /// # Errors
        /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a name that is there twice or has other letters
        /// than those of ASCII, digits, `_` and `-`, and for a schema that is no object; those of the store.
        fn tools(tools: impl IntoIterator<Item = Tool>) -> Result<()>;

        /// The user says something.
        ///
        /// # Errors
        /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a text that says nothing; those of the store.
        fn user(text: impl Into<String>) -> Result<()>;

        /// A tool answers a call of the model.
        ///
        /// # Errors
        /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where no call with this id waits for
        /// a result, and those of the store.
        fn tool_result(call: &str, content: impl Into<String>) -> Result<()>;

        /// A call of the model failed: the model reads why.
        ///
        /// # Errors
        /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where no call with this id waits for
        /// a result, and those of the store.
        fn tool_error(call: &str, reason: impl Into<String>) -> Result<()>;

        /// What holds now, by a name: the time, the open file. The model reads it behind everything
        /// else, in its newest form alone. It becomes durable with the next step, and is lost where that
        /// fails: say it again then.
        ///
        /// # Errors
        /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the name is that of something that was
        /// said, and what the veil has against it.
        fn ambient(name: &str, content: impl Into<String>) -> Result<()>;

        /// Says a frame of the caller's own: facets of any type, with ops on those that hold. It gets
        /// the session's next sequence, unless it has a higher one.
        ///
        /// # Errors
        /// What the veil and the format have against it; a damaged event of a branch, a compaction, an
        /// edit or a subagent; [`ErrorKind::Limit`](crate::ErrorKind::Limit) where it is nested too deep.
        /// The session is then as it was. Those of the store.
        fn push(frame: Frame) -> Result<()>;

        /// Makes durable what was said and is not yet.
        ///
        /// # Errors
        /// Those of the store.
        fn save() -> Result<()>;

        /// Takes the session of another program, as a [`Transcript`](crate::transcript::Transcript) reads
        /// it: this one goes on from there, with any provider. It is one step, all of it or nothing.
        ///
        /// # Errors
        /// Those of the records; [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where this session
        /// has begun, [`ErrorKind::Shape`](crate::ErrorKind::Shape) where the records are of several
        /// sessions, and those of the store.
        fn read(records: impl IntoIterator<Item = Result<Record>>) -> Result<()>;

        /// Goes back to where the request with this number was made: what was said and answered since
        /// then is in no context from here on, and the session waits for an answer. The world goes back
        /// too; what is ambient and what tools told stay as they are. The frames stay in the history, and [`sent`](Self::sent) gives all requests.
        ///
        /// # Errors
        /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where there is no such request, or
        /// where the session went back behind it; those of the store.
        fn rewind(turn: u64) -> Result<()>;

        /// Observes what tools answer from here on, by this policy: the model reads in each request what
        /// is known, and how old that is. The last 256 answers are known, however long the session is; the
        /// history has all. Costs nothing where that is so already; by another policy it begins anew.
        ///
        /// # Errors
        /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a policy that contradicts itself; those of the
        /// store.
        fn observe(policy: Policy) -> Result<()>;

        /// Whether a call can be spared, since what it would tell is known and fresh; `None` where
        /// nothing is observed.
        ///
        /// # Errors
        /// Those of [`Observations::freshness`].
        fn freshness(tool: &str, arguments: &Value) -> Result<Option<Freshness>>;

        /// Begins the agent's world with this state. Costs nothing where it began like that.
        ///
        /// # Errors
        /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where it began with another; those of the
        /// store.
        fn begin_world(state: Data) -> Result<()>;

        /// Adds a turn to the world. What goes back behind a request takes its turns back.
        ///
        /// # Errors
        /// Those of [`Timeline::push`], and of the store.
        fn turn(turn: TurnRecord) -> Result<PushReport>;

        /// A checkpoint of where things stand, written without a model. Reads all frames in force.
        ///
        /// # Errors
        /// Those of [`Draft::checkpoint`](crate::session::bridge::checkpoint::Draft::checkpoint).
        fn checkpoint(options: &DraftOptions) -> Result<ShrunkCheckpoint>;

        /// Takes the steps that others have made meanwhile, and says how many.
        ///
        /// # Errors
        /// Those of the store.
        fn catch_up() -> Result<u64>;

        /// The next request to `model`: the whole body, which fits, and what there is to say of it. The
        /// same request again, byte for byte, where the last one waits for its answer and nothing was
        /// said since.
        ///
        /// Costs what its context and the last one hold, and what was said since. Where summaries are
        /// due, the engine is asked here.
        ///
        /// # Errors
        /// [`ErrorKind::OverBudget`](crate::ErrorKind::OverBudget) where what must stay does not fit the
        /// model, [`ErrorKind::Shape`](crate::ErrorKind::Shape) where a parameter of the model is one that
        /// the session writes itself, [`ErrorKind::Other`](crate::ErrorKind::Other) where nothing was said,
        /// and those of the store.
        fn request(model: &Model) -> Result<SessionRequest>;

        /// The answer to the last request: the body of the response, or all events of its stream.
        ///
        /// # Errors
        /// [`ErrorKind::Provider`](crate::ErrorKind::Provider) where it is an error of the provider,
        /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is no response: the request then still
        /// waits. [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where another process went on
        /// meanwhile: the answer is in [`paid_beside`](Self::paid_beside), and in no context. [`ErrorKind::Utf8`](crate::ErrorKind::Utf8),
        /// and those of the store.
        fn answer(body: impl AsRef<[u8]>) -> Result<SessionAnswer>;

        /// The body of an earlier request, by its number from one. Reads the steps up to it.
        ///
        /// # Errors
        /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where there is none,
        /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where it is not what was sent, and those of
        /// the store.
        fn sent(turn: u64) -> Result<String>;
    }
    look {
        /// What the session waits for. Of a session that cannot be read again nothing is known: the
        /// user.
        fn awaits() -> Awaits;

        /// The number of the request that waits for its answer, if one does. Where the process that
        /// made it was killed, the provider may have answered, and billed, all the same.
        fn unanswered() -> Option<u64>;

        /// How many requests there were.
        fn turns() -> u64;

        /// The answers that are in no context, since another process was faster: with the request that
        /// each is to, by [`sent`](Self::sent), they are exchanges that were paid.
        fn paid_beside() -> &[PaidAnswer];

        /// The frames so far.
        fn history() -> &History;

        /// What tools have told, where that is observed.
        fn observations() -> Option<&Observations>;

        /// The state of the agent's world with its history, where it began.
        fn world() -> Option<&Timeline>;

        /// What stands for frames that no longer fit; `None` before the first request since the session was
        /// opened. Its [receipt](ContextWindow::receipt) says what a context no longer says.
        fn window() -> Option<&ContextWindow>;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("turns", &self.turns()).finish_non_exhaustive()
    }
}

#[cfg(feature = "nats")]
impl fmt::Debug for NatsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsSession").field("turns", &self.turns()).finish_non_exhaustive()
    }
}
