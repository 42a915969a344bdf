use std::{collections::HashSet, io, sync::Arc};

use indexmap::IndexMap;

use super::{
    SCHEMA_URL, chat,
    span::{Attributes, CLIENT, INTERNAL, Span, SpanTimes, span_id, trace_id},
    times::{self, TimeSource},
    tools::CallPairs,
};
use crate::{
    Error, Result,
    json::{Value, object},
    request::{Exchange, Recording, Request},
};

/// Writes recordings as OTLP JSON: one document, or one on each line. What was written is kept
/// nowhere.
#[derive(Debug)]
pub struct OtlpWriter<W> {
    out: W,
    is_by_line: bool,
    /// How many spans were written.
    spans: u64,
    /// How many recordings were added.
    recordings: u64,
    /// The ids of the conversations that were written.
    conversations: HashSet<String>,
    /// What each request writes of its messages.
    messages: SpanMessages,
    report: OtlpReport,
}

/// What a span of a request holds of its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanMessages {
    /// All of it, as the conventions have it: a document grows with the square of a session.
    #[default]
    All,
    /// What the request before in its session did not have: the messages behind the last that both
    /// have in common, and tools and instructions that differ.
    New,
}

/// What a session is made of.
#[derive(Default)]
struct Session<'r> {
    exchanges: Vec<&'r Exchange>,
    /// Those whose request is nowhere, or whose answer shows nothing.
    unlisted: Vec<&'r Exchange>,
}

/// The name of the span of a request.
fn name_of(model: Option<&str>) -> String {
    model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"))
}

/// What a document holds.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtlpReport {
    /// Sessions: each is a trace.
    pub sessions: u64,
    /// Requests: each is a span `chat`.
    pub requests: u64,
    /// Calls of tools whose times are known: each is a span `execute_tool`.
    pub tools: u64,
    /// Requests whose source has no time: they have that of their neighbour, or of their order.
    pub without_time: u64,
    /// Exchanges that no list of requests has: each is a span `chat` with its usage alone.
    pub unlisted: u64,
    /// The bytes of the document.
    pub bytes: u64,
}

impl<W: io::Write> OtlpWriter<W> {
    /// Begins a document, as collectors take it over HTTP.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn new(out: W) -> Result<Self> {
        let mut writer = Self::by_line(out);
        writer.is_by_line = false;
        writer.write(&head())?;
        Ok(writer)
    }

    /// A writer of a document on each line, with one span, as collectors write files. It has no
    /// limit of length that readers of one document have.
    pub fn by_line(out: W) -> Self {
        let (spans, recordings, conversations, messages, report) = Default::default();
        Self { out, is_by_line: true, spans, recordings, conversations, messages, report }
    }

    /// Sets what each request writes of its messages.
    pub fn with_messages(mut self, messages: SpanMessages) -> Self {
        self.messages = messages;
        self
    }

    /// Adds the sessions of a recording that are wanted, each with its requests. `moment` reads a
    /// time as a source writes it: nanoseconds since 1970. Each request is worked out, written and
    /// let go. The ids depend on how many recordings were added before, so that those of two
    /// recordings differ. A session whose name one of another recording has is the conversation
    /// `NAME/2`, or the next number: each reads back as a session of its own. Costs the sum of the
    /// requests' lengths, which is what [`SpanMessages::All`] writes: quadratic in a session. Of
    /// [`SpanMessages::New`] a request that goes on from the one before it costs what is written of
    /// it, and the places of its messages.
    ///
    /// # Errors
    /// Those of [`Recording::request`], and [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn add(
        &mut self,
        recording: &Recording,
        is_wanted: impl Fn(&str) -> bool,
        moment: impl Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        let mut sessions: IndexMap<Arc<str>, Session<'_>> = IndexMap::new();
        for exchange in recording.exchanges() {
            sessions.entry(Arc::clone(&exchange.session)).or_default().exchanges.push(exchange);
        }
        // A copy counts where it was made, and without its usage this one would say nothing.
        let is_unlisted = |of: &&Exchange| of.is_unlisted && of.copied.is_none();
        for reported in recording.reported().filter(is_unlisted) {
            let session = Arc::clone(&reported.session);
            sessions.entry(session).or_default().unlisted.push(reported);
        }
        for (name, session) in sessions.iter().filter(|(name, _)| is_wanted(name)) {
            self.session(recording, name, session, &moment)?;
        }
        self.recordings += 1;
        Ok(())
    }

    /// Ends the document: writes its end, and flushes the writer.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn finish(mut self) -> Result<OtlpReport> {
        if !self.is_by_line {
            self.write(&tail())?;
        }
        self.out.flush().map_err(|error| Error::io(error, "cannot write"))?;
        Ok(self.report)
    }

    fn session(
        &mut self,
        recording: &Recording,
        name: &str,
        session: &Session<'_>,
        moment: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        let format = recording.format();
        let first = session.exchanges.first();
        let begins = first.map(|first| recording.request(first.number)).transpose()?;
        let begins = begins.as_ref().map(Request::body).unwrap_or_default();
        let provider = first.map_or("openai", |first| chat::provider(first.api, format));
        let number = self.recordings.to_le_bytes();
        let mut hashed = vec![format.name().as_bytes(), name.as_bytes(), begins.as_bytes()];
        // The first recording has the ids that it has alone.
        if self.recordings > 0 {
            hashed.push(&number);
        }
        let trace = trace_id(&hashed);
        let conversation = self.conversation(name);
        let root = span_id(&[trace.as_bytes(), b"invoke_agent"]);
        let times = times::of_session(recording, &session.exchanges, moment);
        let mut whole: Option<SpanTimes> = None;
        let mut grow = |times: SpanTimes| {
            let known = whole.unwrap_or(times);
            let (start, end) = (known.start.min(times.start), known.end.max(times.end));
            whole = Some(SpanTimes { start, end });
        };
        let history = recording.history(name);
        let pairs = history.map(CallPairs::of);
        let after = times::after(times.last().copied());
        let mut before = (self.messages == SpanMessages::New).then(chat::Before::default);
        let unlisted = session.unlisted.iter().map(|exchange| (exchange, after));
        let placed = session.exchanges.iter().zip(times).chain(unlisted);
        for (at, (exchange, (times, source))) in placed.enumerate() {
            grow(times);
            let mut attributes =
                chat::attributes(recording, exchange, (provider, &conversation), before.as_mut())?;
            self.put_time(&mut attributes, source);
            let (kind, number) = if exchange.is_unlisted {
                self.report.unlisted += 1;
                (&b"unlisted"[..], at - session.exchanges.len())
            } else {
                self.report.requests += 1;
                (&b"chat"[..], exchange.number)
            };
            self.span(Span {
                trace: &trace,
                id: &span_id(&[trace.as_bytes(), kind, &number.to_le_bytes()]),
                parent: Some(&root),
                name: name_of(exchange.model.as_deref()),
                kind: CLIENT,
                times,
                attributes,
                failure: exchange.failure.as_deref(),
            })?;
            for frame in &exchange.answer_frames {
                let Some((history, pairs)) = history.zip(pairs.as_ref()) else { break };
                let calls = pairs.executions(history, *frame, moment);
                for (index, call) in calls.into_iter().enumerate() {
                    grow(call.times);
                    let place = [frame.get().to_le_bytes(), (index as u64).to_le_bytes()].concat();
                    self.report.tools += 1;
                    self.span(Span {
                        trace: &trace,
                        id: &span_id(&[trace.as_bytes(), b"execute_tool", &place]),
                        parent: Some(&root),
                        name: format!("execute_tool {}", call.name),
                        kind: INTERNAL,
                        times: call.times,
                        attributes: call.attributes,
                        failure: call.is_failed.then_some("the tool failed"),
                    })?;
                }
            }
        }
        let mut attributes = Attributes::default();
        attributes.put("gen_ai.operation.name", "invoke_agent");
        attributes.put("gen_ai.provider.name", provider);
        attributes.put("gen_ai.conversation.id", conversation);
        attributes.put("afterimage.format", format.name());
        self.report.sessions += 1;
        self.span(Span {
            trace: &trace,
            id: &root,
            parent: None,
            name: "invoke_agent".to_owned(),
            kind: INTERNAL,
            times: whole.unwrap_or(after.0),
            attributes,
            failure: None,
        })
    }

    /// The id of the conversation that a session is.
    fn conversation(&mut self, name: &str) -> String {
        let mut id = name.to_owned();
        let mut numbers = 2_u64..;
        while self.conversations.contains(&id)
            && let Some(number) = numbers.next()
        {
            id = format!("{name} ({number})");
        }
        self.conversations.insert(id.clone());
        id
    }

    fn put_time(&mut self, attributes: &mut Attributes, source: TimeSource) {
        attributes.put("afterimage.time", source.as_str());
        let is_told = matches!(source, TimeSource::Recorded | TimeSource::Start);
        self.report.without_time += u64::from(!is_told);
    }

    fn span(&mut self, span: Span<'_>) -> Result<()> {
        let span = span.into_value().to_string();
        self.spans += 1;
        match (self.is_by_line, self.spans) {
            (true, _) => self.write(&format!("{}{span}{}", head(), tail())),
            (false, 1) => self.write(&format!("\n{span}")),
            (false, _) => self.write(&format!(",\n{span}")),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.report.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes()).map_err(|error| Error::io(error, "cannot write"))
    }
}

/// What stands before the spans of a document: who wrote them.
fn head() -> String {
    let mut resource = Attributes::default();
    resource.put("service.name", "afterimage");
    let resource = object! { "attributes": resource.into_value() };
    let scope = object! { "name": "afterimage", "version": env!("CARGO_PKG_VERSION") };
    let (resource, scope) = (Value::from(resource), Value::from(scope));
    format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":["#
    )
}

/// And after them: by which conventions.
fn tail() -> String {
    let url = Value::from(SCHEMA_URL);
    format!("],\"schemaUrl\":{url}}}],\"schemaUrl\":{url}}}]}}\n")
}
