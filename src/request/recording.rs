use std::{
    collections::{HashMap, HashSet},
    io::BufRead,
    ops::RangeInclusive,
    sync::Arc,
};

use indexmap::IndexMap;

use super::{
    CopiedUsage, Lack, Provenance, RecordedTools, ReportedExchange, Reports, Request, RequestDiff,
    RequestTokens,
    answers::{Answer, Answers, adds_system},
    chain::Chains,
    outline::{Outlined, Outlines},
    parts::{Frames, PartKind, parts},
};
use crate::{
    Error, ErrorKind, Result,
    export::{
        Breakpoints, Export, ExportOptions, ExportedRequest, OwnedJson, PrefixReport, PrefixRules,
    },
    hud::{Format, Hud, NativeFormat, Owner, RenderRequest, RenderedContext},
    id::{FacetId, FrameSeq, Millis},
    json::{Object, ObjectExt, Value},
    snapshot::{FrameSnapshot, Substitution},
    tokens::TokenCounter,
    transcript::{
        Api, AppliedEdit, BodyText, Record, RecordedExchange, Transcript, TranscriptFormat, Usage,
    },
    veil::{Call, Facet, Frame, History, Source, SubagentStart},
    window::{ContextInForce, ContextSize},
};

/// The sessions of a source: their frames, and the exchanges with a model.
///
/// Recorded traffic holds its requests. From a transcript each request is worked out: it is the
/// context before an answer of the agent, with the compactions that were in force then.
#[derive(Debug)]
pub struct Recording {
    hud: Hud,
    format: TranscriptFormat,
    sessions: IndexMap<Arc<str>, Session>,
    exchanges: Vec<Exchange>,
    bodies: Vec<Body>,
    /// What is known of the parts of recorded requests.
    outlines: Outlines,
    /// Of each exchange the number of the one before it in its session.
    previous: Vec<Option<usize>>,
    /// What recorded requests go on from.
    chains: Chains,
    reports: Reports,
}

/// A request, its response, and its usage.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Its number in the recording, from one.
    pub number: usize,
    /// The session that it belongs to.
    pub session: Arc<str>,
    /// The API that it speaks.
    pub api: Api,
    /// Where the request comes from.
    pub provenance: Provenance,
    /// The last frame that the request holds.
    pub last_frame: Option<FrameSeq>,
    /// What came back.
    pub response: Response,
    /// Of recorded traffic, where it stands in the source: its line, or the number of the element,
    /// from one.
    pub line: Option<u64>,
    /// When the request went out, or else the answer came, as the source has it.
    pub time: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The model, where the source names it.
    pub model: Option<String>,
    /// The usage as reported.
    pub usage: Option<Usage>,
    /// Where the answer is a copy of one of another session, what it reports, which counts there.
    pub copied: Option<CopiedUsage>,
    /// Whether the model answered.
    pub outcome: ExchangeOutcome,
    /// Why the body of the request is not known: it is stored in part, cannot be unpacked, or is no
    /// JSON. An empty object then stands for it.
    pub unread: Option<String>,
    /// Whether the request is the same as the one before it in the session, which failed.
    pub is_retry: bool,
    /// Whether the provider was told to read the request and to generate nothing: `generate` is false.
    pub is_warm_up: bool,
    /// The host that the request was sent to, where the source has an address.
    pub host: Option<Arc<str>>,
    /// What the provider took out of the request before the model read it.
    pub edits: Vec<AppliedEdit>,
}

/// What a model sent back.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The body: the bytes of the wire, or the JSON that was logged; of a stream all of its events,
    /// of a document that holds request and response its `output`. `None` where the source holds no
    /// bodies, or no response came.
    pub body: Option<Arc<str>>,
    /// Why the body is not all of what came, or was to come.
    pub cut: Option<String>,
    /// The status of HTTP.
    pub status: Option<u64>,
    /// The frames of the session that hold it, in order; none where a later request took its place.
    pub frames: Vec<FrameSeq>,
}

/// Whether a model answered a request.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// The model answered.
    Answered,
    /// The model answered, and the session went on without the answer: another request took the
    /// place of this one.
    Superseded,
    /// The model answered, and the recording has the beginning of the answer alone.
    Cut {
        /// Why the rest is not stored.
        reason: String,
    },
    /// It did not: a status, an error, no response, or one that broke off.
    Failed {
        /// What is wrong.
        reason: String,
    },
}

impl ExchangeOutcome {
    /// The name on the wire: `answered`, `superseded`, `cut`, `failed`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Superseded => "superseded",
            Self::Cut { .. } => "cut",
            Self::Failed { .. } => "failed",
        }
    }
}

impl Exchange {
    /// The first frame of the answer; `None` where the session holds none.
    pub fn answer(&self) -> Option<FrameSeq> {
        self.response.frames.first().copied()
    }

    /// The usage as reported, wherever it counts.
    pub fn figures(&self) -> Option<&Usage> {
        self.copied.as_ref().map_or(self.usage.as_ref(), |copied| copied.usage.as_ref())
    }
}

/// A session while it is read.
#[derive(Debug, Default)]
struct Session {
    history: History,
    context: ContextInForce,
    answers: Answers,
    has_system: bool,
    tools: Option<Arc<RecordedTools>>,
    /// The number of its last exchange.
    last_exchange: Option<usize>,
    /// What started it, where it is a subagent's.
    started: Option<SubagentStart>,
}

/// What a request is made of.
#[derive(Debug)]
pub(super) enum Body {
    /// It was recorded.
    Recorded { body: BodyText, frames: Frames, provenance: Provenance },
    /// It is the context up to a frame, with these blocks and tools.
    Context {
        to: FrameSeq,
        blocks: Arc<Vec<Substitution>>,
        tools: Option<Arc<RecordedTools>>,
        size: ContextSize,
        has_tail: bool,
    },
}

impl Recording {
    /// Reads a transcript to its end. `now` is the moment of a frame.
    ///
    /// Cost: what `push` costs for each frame, `finish` at the end; the texts stay in memory.
    ///
    /// # Errors
    /// Those of the transcript, and of capture.
    pub fn read<R: BufRead>(
        mut transcript: Transcript<R>,
        counter: Arc<dyn TokenCounter>,
        mut now: impl FnMut(&Frame) -> Millis,
    ) -> Result<Self> {
        transcript.keep_exchanges();
        let mut recording = Self::new(transcript.format(), counter);
        for record in transcript.by_ref() {
            let record = record?;
            let now = now(&record.frame);
            recording.push(record, now)?;
        }
        recording.finish(transcript.exchanges());
        Ok(recording)
    }

    /// A recording without sessions, of a source in this format.
    pub fn new(format: TranscriptFormat, counter: Arc<dyn TokenCounter>) -> Self {
        let hud = Hud::builder(counter).format(Arc::new(NativeFormat)).build();
        let (sessions, exchanges, bodies, outlines, previous, chains, reports) = Default::default();
        Self { hud, format, sessions, exchanges, bodies, outlines, previous, chains, reports }
    }

    /// Takes the next frame of the source. O(frame): renders and counts it.
    ///
    /// # Errors
    /// Those of [`Hud::capture`].
    pub fn push(&mut self, record: Record, now: Millis) -> Result<()> {
        let Record { session: name, mut frame } = record;
        // What was captured in another format has tags in it, which no request had.
        let is_native = |snapshot: &Arc<FrameSnapshot>| {
            let rendering = snapshot.identity().and_then(|identity| identity.rendering.as_ref());
            rendering.is_some_and(|rendering| rendering.format == NativeFormat.id())
        };
        frame.rendered_snapshot = frame.rendered_snapshot.filter(is_native);
        let api = self.format.api();
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        // A damaged event tells nothing.
        if let Ok(Some(start)) = SubagentStart::of(&frame) {
            session.started.get_or_insert(start);
        }
        // The frame may tell of a compaction itself: the request before it did not know.
        let blocks = Arc::clone(session.context.blocks());
        let (mut size, mut has_tail) = (session.context.size(), false);
        if frame.source == Source::Agent && session.history.veil().ambient().next().is_some() {
            let request = RenderRequest::default();
            let tail = self.hud.render_tail(session.history.veil(), &request, now)?;
            if let Some(tail) = tail {
                has_tail = true;
                size = size.plus(ContextSize::of(&self.hud, &tail));
            }
        }
        // A block may stand for frames after the last that shows something, too.
        let end = session.history.frames().last().map(|frame| frame.sequence);
        let frame = self.hud.capture(&mut session.history, frame, now)?;
        session.context.follow(&self.hud, &session.history, now)?;
        let shows = frame.rendered_snapshot.as_ref().is_some_and(|shown| !shown.is_empty());
        session.has_system |= shows && adds_system(&frame);
        if let Some(tools) = RecordedTools::of(&frame, api, &**self.hud.counter()) {
            session.tools = Some(tools);
        }
        let of = self.reports.push(&name, &mut session.answers, &frame, shows);
        let reported = of.exchange.and_then(|index| self.reports.listed().get(index));
        let Answer::Begins(to) = of.answer else {
            // What came later may say more of the exchange.
            let exchange = of.exchange.and_then(|index| self.exchanges.get_mut(index));
            if let Some((exchange, reported)) = exchange.zip(reported) {
                exchange.usage = reported.usage.clone();
                exchange.copied = reported.copied.clone();
                exchange.model = reported.model.as_deref().map(str::to_owned);
                exchange.response.frames.extend(shows.then_some(frame.sequence));
            }
            if of.are_copies {
                self.take_reported();
            }
            return Ok(());
        };
        let report = of.report;
        let (usage, copied) = reported.map(|of| (of.usage.clone(), of.copied.clone())).unzip();
        let number = self.exchanges.len() + 1;
        self.previous.push(session.last_exchange.replace(number));
        let tools = session.tools.clone();
        let lacks = Lack::of_transcript(session.has_system, tools.is_some());
        self.exchanges.push(Exchange {
            number,
            session: name,
            api,
            provenance: Provenance::Reconstructed { lacks },
            last_frame: Some(to),
            response: Response { frames: vec![frame.sequence], ..Response::default() },
            line: None,
            time: frame.timestamp.clone(),
            duration_ms: None,
            model: report.said.model.as_deref().map(str::to_owned),
            usage: usage.flatten(),
            copied: copied.flatten(),
            outcome: match report.said.failure() {
                Some(reason) => ExchangeOutcome::Failed { reason: reason.to_owned() },
                None => ExchangeOutcome::Answered,
            },
            unread: None,
            is_retry: false,
            is_warm_up: false,
            host: None,
            edits: Vec::new(),
        });
        self.bodies.push(Body::Context { to: end.unwrap_or(to), blocks, tools, size, has_tail });
        Ok(())
    }

    /// Ends the reading. Where the source holds requests, these are the exchanges, and none is
    /// worked out. Sorts the exchanges, and is linear in their messages; bodies are read where a
    /// request names an earlier response.
    pub fn finish(&mut self, recorded: &[RecordedExchange]) {
        if recorded.is_empty() {
            return;
        }
        let unlisted = recorded.iter().map(ReportedExchange::from);
        self.reports = Reports::unlisted(unlisted);
        let mut recorded: Vec<&RecordedExchange> =
            recorded.iter().filter(|exchange| exchange.is_listed).collect();
        recorded.sort_by_key(|exchange| exchange.line);
        self.exchanges.clear();
        self.bodies.clear();
        self.previous.clear();
        let mut before: HashMap<Arc<str>, usize> = HashMap::new();
        // Where an answer ends at the latest: another one begins there.
        let mut begun: HashSet<(&str, FrameSeq)> = HashSet::new();
        let mut last_of: HashMap<&str, u64> = HashMap::new();
        for exchange in &recorded {
            begun.extend(exchange.answer.map(|answer| (&*exchange.session, answer)));
            last_of.insert(&exchange.session, exchange.line);
        }
        // The last request of each session, where it failed.
        let mut failed: IndexMap<Arc<str>, BodyText> = IndexMap::new();
        self.chains = Chains::of(&recorded);
        for (index, exchange) in recorded.into_iter().enumerate() {
            let body = exchange.request.clone();
            let is_retry = failed.get(&exchange.session) == Some(&body);
            let again = if exchange.failure.is_some() { body.clone() } else { BodyText::default() };
            failed.insert(Arc::clone(&exchange.session), again);
            let frames =
                Frames { system: exchange.system_frame, messages: exchange.frames.clone() };
            let is_last = last_of.get(&*exchange.session) == Some(&exchange.line);
            // Of a request whose messages were not repeated nothing is known.
            let is_known = frames.messages.iter().any(Option::is_some);
            let is_warm_up = exchange.is_warm_up();
            let is_superseded = exchange.answer.is_none() && is_known && !is_last && !is_warm_up;
            let provenance =
                if exchange.is_as_sent { Provenance::Sent } else { Provenance::Logged };
            let number = self.exchanges.len() + 1;
            self.previous.push(before.insert(Arc::clone(&exchange.session), number));
            self.exchanges.push(Exchange {
                number,
                session: Arc::clone(&exchange.session),
                api: exchange.api,
                provenance: self.chains.provenance(index).unwrap_or_else(|| provenance.clone()),
                last_frame: frames.messages.iter().rev().copied().flatten().next(),
                response: Response {
                    body: exchange.response.clone(),
                    cut: exchange.cut.clone(),
                    status: exchange.status,
                    frames: self.frames_of_answer(exchange, &begun),
                },
                line: Some(exchange.line).filter(|line| *line > 0),
                time: exchange.started.clone(),
                duration_ms: exchange.duration_ms,
                model: exchange.model.clone(),
                usage: exchange.usage.clone(),
                copied: None,
                outcome: match (&exchange.failure, &exchange.cut) {
                    (Some(reason), _) => ExchangeOutcome::Failed { reason: reason.clone() },
                    (None, Some(reason)) => ExchangeOutcome::Cut { reason: reason.clone() },
                    (None, None) if is_superseded => ExchangeOutcome::Superseded,
                    (None, None) => ExchangeOutcome::Answered,
                },
                unread: exchange.unread.clone(),
                is_retry,
                is_warm_up,
                host: exchange.host.clone(),
                edits: exchange.applied_edits(),
            });
            self.bodies.push(Body::Recorded { body, frames, provenance });
        }
    }

    /// The frames that hold the answer of an exchange: the agent's from its first one on, up to where
    /// another answer begins.
    fn frames_of_answer(
        &self,
        exchange: &RecordedExchange,
        begun: &HashSet<(&str, FrameSeq)>,
    ) -> Vec<FrameSeq> {
        let session = self.sessions.get(&exchange.session);
        let Some((first, session)) = exchange.answer.zip(session) else { return Vec::new() };
        let frames = session.history.frames();
        let is_other = |frame| frame != first && begun.contains(&(&*exchange.session, frame));
        (frames.first_from(first)..frames.len())
            .take_while(|index| frames.source(*index) == Some(Source::Agent))
            .filter_map(|index| frames.sequence(index))
            .take_while(|frame| !is_other(*frame))
            .collect()
    }

    /// The format of the source.
    pub fn format(&self) -> TranscriptFormat {
        self.format
    }

    /// What is reported of the exchanges: of those that are listed, in their order, and then of the
    /// answers that show nothing.
    ///
    /// Cost: O(n) over the exchanges; copies the figures, no text of a request.
    pub fn reported(&self) -> impl Iterator<Item = ReportedExchange> {
        let unlisted = self.reports.all().filter(|exchange| !exchange.is_listed);
        self.exchanges.iter().map(ReportedExchange::from).chain(unlisted.cloned())
    }

    /// Lets `mark` say of the answers of a transcript which are copies, by
    /// [`ReportedExchange::count_in`]. O(exchanges), and what that takes.
    pub fn mark_copies(&mut self, mark: impl FnOnce(&mut [&mut ReportedExchange])) {
        mark(&mut self.reports.all_mut().collect::<Vec<_>>());
        self.take_reported();
    }

    /// Brings the exchanges of a transcript to what is reported of them now.
    fn take_reported(&mut self) {
        for (exchange, reported) in self.exchanges.iter_mut().zip(self.reports.listed()) {
            exchange.usage.clone_from(&reported.usage);
            exchange.copied.clone_from(&reported.copied);
        }
    }

    /// The exchanges, in the order of the source.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// The sessions with their frames, in the order of their first frames. O(n) for all of them.
    pub fn sessions(&self) -> impl Iterator<Item = (&Arc<str>, &History)> {
        self.sessions.iter().map(|(name, session)| (name, &session.history))
    }

    /// What started a session, where it is that of a subagent and the source tells.
    pub fn started_by(&self, session: &str) -> Option<&SubagentStart> {
        self.sessions.get(session)?.started.as_ref()
    }

    /// The frames of a session.
    pub fn history(&self, session: &str) -> Option<&History> {
        self.sessions.get(session).map(|session| &session.history)
    }

    /// The facet of a frame that says `text`, a string of a recorded message: its content, the name,
    /// the id or the arguments of its call, or a string in these. `None` where the frame adds none
    /// that does, or the facet has not this form.
    ///
    /// Cost: O(the strings of the frame).
    pub fn facet_of(&self, session: &str, frame: FrameSeq, text: &str) -> Option<FacetId> {
        let frame = self.history(session)?.get(frame)?;
        frame.added().find_map(|facet| facet_that_says(facet, text)).cloned()
    }

    /// The request with this number, as the model saw it. One of a transcript is rendered and written
    /// in the form of the API that the source speaks, in linear time in its context. One that names an
    /// earlier response is joined with what it goes on from ([`Provenance::Resolved`]).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there is none with this number, and those of rendering.
    pub fn request(&self, number: usize) -> Result<Request> {
        let (exchange, body) = self.found(number)?;
        match body {
            Body::Recorded { body, frames, .. } => {
                let index = number.saturating_sub(1);
                let text = |index: usize| match self.bodies.get(index) {
                    Some(Body::Recorded { body, .. }) => Some(body.as_str()),
                    _ => None,
                };
                let joined = self.chains.joined(index, text).map(BodyText::from);
                let body = joined.unwrap_or_else(|| body.clone());
                let provenance = exchange.provenance.clone();
                let request = Request::new(exchange.api, provenance, body, frames.clone());
                Ok(request.with_host(exchange.host.clone()))
            }
            Body::Context { .. } => self.worked_out(exchange, body, None),
        }
    }

    /// As [`Recording::request`], without what a request goes on from: a recorded one as it was sent.
    ///
    /// Cost: O(messages) for one that was recorded; as [`Recording::request`] for others.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn sent(&self, number: usize) -> Result<Request> {
        let (exchange, found) = self.found(number)?;
        let Body::Recorded { body, frames, provenance } = found else {
            return self.worked_out(exchange, found, None);
        };
        let joined = match exchange.provenance {
            Provenance::Resolved { messages, .. } => messages,
            _ => 0,
        };
        let messages = frames.messages.iter().skip(joined).copied().collect();
        let frames = Frames { system: frames.system, messages };
        let request = Request::new(exchange.api, provenance.clone(), body.clone(), frames);
        Ok(request.with_host(exchange.host.clone()))
    }

    pub(super) fn found(&self, number: usize) -> Result<(&Exchange, &Body)> {
        let index = number.checked_sub(1);
        let found = index.and_then(|index| self.exchanges.get(index).zip(self.bodies.get(index)));
        found.ok_or_else(|| {
            let count = self.exchanges.len();
            let message = format!("expected a request from 1 to {count}, found {number}");
            Error::new(ErrorKind::OutOfRange, message)
        })
    }

    /// The context of the request with this number, of a source that holds no requests; `None` of
    /// one that does. Costs what [`Hud::render`] does for it.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn context(&self, number: usize) -> Result<Option<RenderedContext>> {
        let index = number.checked_sub(1);
        let found = index.and_then(|index| self.exchanges.get(index).zip(self.bodies.get(index)));
        match found {
            Some((exchange, Body::Context { to, blocks, .. })) => {
                let Some(session) = self.sessions.get(&exchange.session) else { return Ok(None) };
                self.context_of(session, None, *to, blocks).map(Some)
            }
            Some((_, Body::Recorded { .. })) => Ok(None),
            None => self.request(number).map(|_| None),
        }
    }

    /// The tokens of the request with this number. Those of a transcript were counted when it was
    /// read; those of recorded traffic are counted now. That costs [`Recording::request`], and the
    /// parsing and counting of what earlier requests did not have.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn tokens(&self, number: usize) -> Result<RequestTokens> {
        match number.checked_sub(1).and_then(|index| self.bodies.get(index)) {
            Some(Body::Context { size, tools, .. }) => {
                let tools = tools.as_ref().map_or(0, |tools| tools.tokens);
                Ok(RequestTokens { tools, ..(*size).into() })
            }
            // Of a body that is not known nothing is counted.
            Some(Body::Recorded { .. }) if self.is_unread(number) => Ok(RequestTokens::default()),
            _ => Ok(self.outlined(number)?.tokens(&**self.hud.counter())),
        }
    }

    /// What the context of a request comes to that was worked out, without rendering it; `None` of
    /// one that was recorded, and where there is none with this number.
    pub fn size(&self, number: usize) -> Option<ContextSize> {
        match self.bodies.get(number.checked_sub(1)?)? {
            Body::Context { size, .. } => Some(*size),
            Body::Recorded { .. } => None,
        }
    }

    /// What is in the context of a request that was worked out: the frames up to this one, with these
    /// blocks in the place of some. `None` of one that was recorded.
    pub(crate) fn in_force(&self, number: usize) -> Option<(FrameSeq, &[Substitution])> {
        match self.bodies.get(number.checked_sub(1)?)? {
            Body::Context { to, blocks, .. } => Some((*to, blocks)),
            Body::Recorded { .. } => None,
        }
    }

    /// What captured the frames.
    pub(crate) fn hud(&self) -> &Hud {
        &self.hud
    }

    /// The number of the request before this one in its session. O(1).
    pub fn previous(&self, number: usize) -> Option<usize> {
        *self.previous.get(number.checked_sub(1)?)?
    }

    /// Compares the request with this number with the one before it in its session; `None` for the
    /// first, and where the body of one is not known. Contexts of a transcript that only grew are not
    /// rendered. Of recorded bodies what both begin with is compared by its bytes: in the order of the
    /// source, each message is parsed and counted once. A context that is rendered costs time
    /// linear in both.
    ///
    /// # Errors
    /// As [`Recording::request`] and [`compare`](super::compare).
    pub fn compare(&self, number: usize, rules: PrefixRules) -> Result<Option<RequestDiff>> {
        let Some(previous) = self.previous(number) else { return Ok(None) };
        let body = |number: usize| self.bodies.get(number.checked_sub(1)?);
        if let (
            Some(Body::Context { size: before, .. }),
            Some(Body::Context { tools: new, size: after, .. }),
        ) = (body(previous), body(number))
            && self.has_grown(previous, number)
            && !self.is_other_model(previous, number)
        {
            let tools = new.as_ref().map_or(0, |tools| tools.tokens);
            let unchanged = before.tokens().saturating_add(tools);
            let tokens = after.tokens().saturating_add(tools);
            let cached = rules.cached(unchanged);
            let prefix = PrefixReport { tokens, unchanged, cached, divergence: None };
            let (tools, parameters, breaks) = Default::default();
            return Ok(Some(RequestDiff { prefix, tools, parameters, breaks }));
        }
        if self.is_unread(previous) || self.is_unread(number) {
            return Ok(None);
        }
        let (was, is) = (self.outlined(previous)?, self.outlined(number)?);
        was.compare(&is, &**self.hud.counter(), rules).map(Some)
    }

    /// Whether the context of a request is that of an earlier one of its session, with nothing but
    /// more frames behind it. False for requests that were recorded.
    pub(super) fn has_grown(&self, previous: usize, number: usize) -> bool {
        let body = |number: usize| self.bodies.get(number.checked_sub(1)?);
        let (
            Some(Body::Context { blocks: was, tools: old, has_tail: false, .. }),
            Some(Body::Context { blocks: is, tools: new, .. }),
        ) = (body(previous), body(number))
        else {
            return false;
        };
        Arc::ptr_eq(was, is) && old.as_ref().map(Arc::as_ptr) == new.as_ref().map(Arc::as_ptr)
    }

    fn is_unread(&self, number: usize) -> bool {
        let exchange = number.checked_sub(1).and_then(|index| self.exchanges.get(index));
        exchange.is_some_and(|exchange| exchange.unread.is_some())
    }

    /// A request with what is known of its parts.
    pub(crate) fn outlined(&self, number: usize) -> Result<Arc<Outlined>> {
        if let Some(known) = self.outlines.known(number) {
            return Ok(known);
        }
        let request = self.request(number)?;
        let previous = self.previous(number);
        Ok(self.outlines.take(number, previous, request, &**self.hud.counter()))
    }

    /// Whether both name a model, and not the same. What a client answered itself names none.
    fn is_other_model(&self, previous: usize, next: usize) -> bool {
        let model = |number: usize| {
            let model = self.exchanges.get(number.checked_sub(1)?)?.model.as_deref();
            model.filter(|model| !model.starts_with('<'))
        };
        model(previous).zip(model(next)).is_some_and(|(was, is)| was != is)
    }

    /// The context up to a frame, from the first one on, or from a later one and without a tail.
    fn context_of(
        &self,
        session: &Session,
        from: Option<FrameSeq>,
        to: FrameSeq,
        blocks: &[Substitution],
    ) -> Result<RenderedContext> {
        let begins = || session.history.frames().first().map_or(to, |frame| frame.sequence);
        let first = from.unwrap_or_else(begins);
        let frames: RangeInclusive<FrameSeq> = first..=to;
        let blocks = blocks.iter().filter(|block| from.is_none_or(|from| block.from >= from));
        let request = RenderRequest {
            frames: Some(frames),
            substitutions: blocks.cloned().collect(),
            ..RenderRequest::default()
        };
        let (blocks, now) = ((&*request.substitutions, None), (Millis::default(), from.is_none()));
        self.hud.assemble(&session.history, &request, blocks, now)
    }

    /// The request that a context is, or what it has from a frame on.
    pub(super) fn worked_out(
        &self,
        exchange: &Exchange,
        body: &Body,
        from: Option<FrameSeq>,
    ) -> Result<Request> {
        let (Some(session), Body::Context { to, blocks, tools, .. }) =
            (self.sessions.get(&exchange.session), body)
        else {
            return Err(Error::new(ErrorKind::OutOfRange, "expected the session of the request"));
        };
        let context = self.context_of(session, from, *to, blocks)?;
        let export = Export::of(&session.history, &context)?;
        let options =
            ExportOptions { breakpoints: Breakpoints::Recorded, ..ExportOptions::default() };
        let exported = match exchange.api {
            Api::Chat => export.openai_chat(&options),
            Api::Messages => export.anthropic(&options),
            Api::Responses => export.responses(&options),
        };
        let mut body = Object::new();
        body.put_some("model", exchange.model.as_deref());
        body.put_some("tools", tools.as_ref().map(|tools| tools.list.clone()));
        match exported.value() {
            Value::Object(members) => {
                members.into_iter().for_each(|(key, value)| body.put(&key, value));
            }
            list => body.put(exchange.api.conversation_key(), list),
        }
        let body: BodyText = Value::from(body).to_string().into();
        let frames = frames_of(&exported, &body, exchange.api);
        let request = Request::new(exchange.api, exchange.provenance.clone(), body, frames);
        Ok(request.with_owners(exported))
    }
}

impl From<ContextSize> for RequestTokens {
    fn from(size: ContextSize) -> Self {
        Self { tools: 0, system: size.system_tokens, messages: size.message_tokens }
    }
}

/// The facet, or the one inside of it, that says `text`.
fn facet_that_says<'f>(facet: &'f Facet, text: &str) -> Option<&'f FacetId> {
    fn holds(value: &Value, text: &str) -> bool {
        match value {
            Value::String(own) => own == text,
            Value::Array(list) => list.iter().any(|value| holds(value, text)),
            Value::Object(object) => object.values().any(|value| holds(value, text)),
            _ => false,
        }
    }
    let of_call = |call: Call<'_>| {
        call.name == text
            || call.id == Some(text)
            || call.arguments == Some(text)
            || call.parameters.is_some_and(|value| holds(value, text) || value.to_string() == text)
    };
    let says = facet.content == text && !text.is_empty() || facet.call().is_some_and(of_call);
    if says {
        return Some(&facet.id);
    }
    facet.children.iter().find_map(|child| facet_that_says(child, text))
}

/// The frames of the messages of a request that was worked out: the first that each holds.
fn frames_of(exported: &ExportedRequest, body: &str, api: Api) -> Frames {
    let frame = |value: &OwnedJson| {
        let texts = value.texts();
        let owners = texts.iter().flat_map(|(_, text)| text.spans()).map(|span| &span.owner);
        owners.into_iter().find_map(|owner| match owner {
            Owner::Chunk { frame, .. } => Some(*frame),
            _ => None,
        })
    };
    let root = exported.root();
    let list = match root {
        OwnedJson::List(list) => Some(list),
        root => match root.get(api.conversation_key()) {
            Some(OwnedJson::List(list)) => Some(list),
            _ => None,
        },
    };
    let system = root.get(api.system_key()).and_then(frame);
    let mut messages: Vec<Option<FrameSeq>> =
        list.map(|list| list.iter().map(frame).collect()).unwrap_or_default();
    let none = Frames::default();
    let count = parts(body, api, &none)
        .iter()
        .filter(|part| matches!(part.kind, PartKind::Message { .. }))
        .count();
    messages.truncate(count);
    Frames { system, messages }
}
