use std::{
    collections::{HashMap, HashSet},
    io::BufRead,
    ops::RangeInclusive,
    sync::Arc,
};

use indexmap::IndexMap;

use super::{
    Changes, Exchange, RecordedTools, Reports, Request, RequestDiff, RequestTokens,
    answers::{Answer, Answers},
    chain::Chains,
    outline::{Outlined, Outlines},
    parts::{Frames, PartKind, parts},
    request::form_of,
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
    transcript::{Api, BodyText, Provenance, Record, SourceContent, Transcript, TranscriptFormat},
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
    exchanges: Reports,
    /// Of each exchange whose request is worked out what that is made of.
    contexts: Vec<Option<RequestContext>>,
    /// What is known of the parts of recorded requests.
    outlines: Outlines,
    /// What recorded requests go on from.
    chains: Chains,
}

/// A session while it is read.
#[derive(Debug, Default)]
struct Session {
    history: History,
    context: ContextInForce,
    answers: Answers,
    /// What started it, where it is a subagent's.
    started: Option<SubagentStart>,
}

/// What a request is made of that was worked out: the context up to a frame, with these blocks and
/// tools.
#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) to: FrameSeq,
    pub(super) blocks: Arc<Vec<Substitution>>,
    pub(super) tools: Option<Arc<RecordedTools>>,
    /// What else the source states of how it was asked.
    pub(super) parameters: Option<Box<Object>>,
    pub(super) size: ContextSize,
    pub(super) has_tail: bool,
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
        recording.finish(transcript.take_exchanges());
        Ok(recording)
    }

    /// A recording without sessions, of a source in this format.
    pub fn new(format: TranscriptFormat, counter: Arc<dyn TokenCounter>) -> Self {
        let hud = Hud::builder(counter).format(Arc::new(NativeFormat)).build();
        let exchanges = Reports::of(format.api());
        let (sessions, contexts, outlines, chains) = Default::default();
        Self { hud, format, sessions, exchanges, contexts, outlines, chains }
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
        if let Some(tools) = RecordedTools::of(&frame, self.format.api(), &**self.hud.counter()) {
            session.answers.tools = Some(tools);
        }
        let answer = self.exchanges.push(&name, &mut session.answers, &frame, shows);
        let Answer::Begins(to) = answer else { return Ok(()) };
        let (to, tools) = (end.unwrap_or(to), session.answers.tools.clone());
        let said = frame.imported.as_ref().and_then(|imported| imported.answer.as_ref());
        let parameters = said.and_then(|said| said.parameters.clone());
        self.contexts.push(Some(RequestContext { to, blocks, tools, parameters, size, has_tail }));
        Ok(())
    }

    /// Ends the reading. Where the source holds requests, these are the exchanges, and none is
    /// worked out but for answers of a transcript that logged no request for them. Sorts the exchanges,
    /// and is linear in their messages; bodies are read where a request names an earlier response.
    pub fn finish(&mut self, recorded: Vec<Exchange>) {
        if recorded.is_empty() {
            return;
        }
        let is_joined = self.format.holds() == SourceContent::Transcript;
        if is_joined {
            self.join(recorded);
        } else {
            self.exchanges = Reports::recorded(Exchange::numbered(recorded));
            self.contexts.clear();
        }
        let recorded = self.exchanges.listed_mut();
        let mut before: HashMap<Arc<str>, usize> = HashMap::new();
        // Where an answer ends at the latest: another one begins there.
        let mut begun: HashSet<(Arc<str>, FrameSeq)> = HashSet::new();
        let mut last_of: HashMap<Arc<str>, Option<u64>> = HashMap::new();
        for exchange in &*recorded {
            let session = &exchange.session;
            begun.extend(exchange.answer().map(|answer| (Arc::clone(session), answer)));
            last_of.insert(Arc::clone(session), exchange.line);
        }
        // The last request of each session, where it failed.
        let mut failed: HashMap<Arc<str>, BodyText> = HashMap::new();
        self.chains = Chains::of(recorded);
        for (index, exchange) in recorded.iter_mut().enumerate() {
            let session = &exchange.session;
            let is_known = !exchange.request.is_empty();
            exchange.is_retry = is_known && failed.get(session) == Some(&exchange.request);
            let is_failed = exchange.failure.is_some();
            let again = if is_failed { exchange.request.clone() } else { BodyText::default() };
            failed.insert(Arc::clone(session), again);
            let is_last = last_of.get(session) == Some(&exchange.line);
            exchange.previous = if is_joined && exchange.unread.is_some() {
                // A call that its client logs nothing of has no place among the others.
                before.get(session).copied()
            } else {
                before.insert(Arc::clone(session), exchange.number)
            };
            let last = exchange.frames.iter().rev().copied().flatten().next();
            exchange.last_frame = exchange.last_frame.max(last);
            // Of a request whose messages were not repeated nothing is known.
            let is_known = exchange.last_frame.is_some() && !exchange.is_warm_up();
            let is_known = is_known && exchange.unread.is_none();
            exchange.is_superseded = exchange.answer().is_none() && is_known && !is_last;
            if let Some(provenance) = self.chains.provenance(index) {
                exchange.provenance = provenance;
            }
            let of = self.sessions.get(session).filter(|_| !is_joined);
            if let Some((first, of)) = exchange.answer().zip(of) {
                exchange.answer_frames = of.answer_from(first, session, &begun);
            }
            exchange.edits = exchange.applied_edits();
        }
    }

    /// Gives the exchanges that were worked out the requests that the source logged.
    fn join(&mut self, logged: Vec<Exchange>) {
        logged.into_iter().for_each(|exchange| self.exchanges.join(exchange));
        let contexts = std::mem::take(&mut self.contexts);
        let contexts = self.exchanges.settle_logged(contexts).into_iter().map(Option::flatten);
        let listed = self.exchanges.listed();
        let is_worked_out =
            |of: &Exchange| matches!(of.provenance, Provenance::Reconstructed { .. });
        let contexts = listed.iter().zip(contexts);
        self.contexts =
            contexts.map(|(of, context)| context.filter(|_| is_worked_out(of))).collect();
    }

    /// The format of the source.
    pub fn format(&self) -> TranscriptFormat {
        self.format
    }

    /// The exchanges in the order of the source, and then those that are in no list: answers that
    /// show nothing. O(n) for all of them.
    pub fn reported(&self) -> impl Iterator<Item = &Exchange> + Clone {
        self.exchanges.all()
    }

    /// Lets `mark` say of the answers of a transcript which are copies, by
    /// [`Exchange::count_in`]. O(exchanges), and what that takes.
    pub fn mark_copies(&mut self, mark: impl FnOnce(&mut [&mut Exchange])) {
        mark(&mut self.exchanges.all_mut().collect::<Vec<_>>());
    }

    /// The exchanges that have a request, in the order of the source.
    pub fn exchanges(&self) -> &[Exchange] {
        self.exchanges.listed()
    }

    /// The exchange with this number; `None` where there is none.
    pub fn exchange(&self, number: usize) -> Option<&Exchange> {
        self.exchanges().get(number.checked_sub(1)?)
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

    /// The facet that says `text`, a string of the message of a request that `frame` is: its content,
    /// the name, the id or the arguments of its call, or a string in these. `None` where the message
    /// has none that does, or the facet has not this form.
    ///
    /// Cost: O(the messages of the request, and the strings of the message).
    pub fn facet_of(&self, exchange: &Exchange, frame: FrameSeq, text: &str) -> Option<FacetId> {
        let index = exchange.frames.iter().rposition(|of| *of == Some(frame));
        let all = index.and_then(|index| self.frames_of_message(exchange, index));
        let frames = self.history(&exchange.session)?.frames();
        let all = all.unwrap_or(frame..=frame);
        (frames.first_from(*all.start())..frames.len())
            .map_while(|index| frames.get(index).filter(|frame| all.contains(&frame.sequence)))
            .find_map(|frame| frame.added().find_map(|facet| facet_that_says(facet, text)).cloned())
    }

    /// The first and the last frame that the message of a request at `index` is. A client may write
    /// several records of what it sent as one: those up to the next message, and before the agent's.
    ///
    /// Cost: O(the frames between, and the messages behind it that are no frames).
    pub(crate) fn frames_of_message(
        &self,
        exchange: &Exchange,
        index: usize,
    ) -> Option<RangeInclusive<FrameSeq>> {
        let frame = (*exchange.frames.get(index)?)?;
        let frames = self.history(&exchange.session)?.frames();
        let first = frames.first_from(frame);
        let mut later = exchange.frames.iter().skip(index + 1).copied().flatten();
        let end = later.next().or(exchange.answer()).map_or(0, |next| frames.first_from(next));
        let last = (first..end)
            .take_while(|_| self.format.holds() == SourceContent::Transcript)
            .take_while(|index| frames.source(*index) != Some(Source::Agent))
            .last();
        Some(frame..=last.and_then(|last| frames.sequence(last)).unwrap_or(frame))
    }

    /// The request with this number, as the model saw it. One of a transcript is rendered and written
    /// in the form of the API that the source speaks, in linear time in its context. One that names an
    /// earlier response is joined with what it goes on from ([`Provenance::Resolved`](super::Provenance::Resolved)).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there is none with this number, and those of rendering.
    pub fn request(&self, number: usize) -> Result<Request> {
        let (exchange, context) = self.found(number)?;
        if let Some(context) = context {
            return self.worked_out(exchange, context, None);
        }
        let all = self.exchanges();
        let text = |index: usize| all.get(index).map(|exchange| exchange.request.as_str());
        let joined = self.chains.joined(number.saturating_sub(1), text).map(BodyText::from);
        let body = joined.unwrap_or_else(|| exchange.request.clone());
        let frames = Frames { system: exchange.system_frame, messages: exchange.frames.clone() };
        let request = Request::new(exchange.api, exchange.provenance.clone(), body, frames);
        Ok(request.of_address(exchange))
    }

    /// As [`Recording::request`], without what a request goes on from: a recorded one as it was sent.
    ///
    /// Cost: O(messages) for one that was recorded; as [`Recording::request`] for others.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn sent(&self, number: usize) -> Result<Request> {
        let (exchange, context) = self.found(number)?;
        if let Some(context) = context {
            return self.worked_out(exchange, context, None);
        }
        let provenance = self.chains.sent_as(number.saturating_sub(1));
        let provenance = provenance.unwrap_or(&exchange.provenance);
        Ok(Request::of_exchange(exchange, provenance))
    }

    /// The exchange with this number, with what its request is made of where it was worked out.
    pub(super) fn found(&self, number: usize) -> Result<(&Exchange, Option<&RequestContext>)> {
        let found = self.exchange(number).map(|exchange| (exchange, self.worked(number)));
        found.ok_or_else(|| {
            let count = self.exchanges().len();
            let message = format!("expected a request from 1 to {count}, found {number}");
            Error::new(ErrorKind::OutOfRange, message)
        })
    }

    /// What the request with this number is made of, where it was worked out.
    fn worked(&self, number: usize) -> Option<&RequestContext> {
        self.contexts.get(number.checked_sub(1)?)?.as_ref()
    }

    /// The context of the request with this number, of a source that holds no requests; `None` of
    /// one that does. Costs what [`Hud::render`] does for it.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn context(&self, number: usize) -> Result<Option<RenderedContext>> {
        let (exchange, Some(RequestContext { to, blocks, .. })) = self.found(number)? else {
            return Ok(None);
        };
        let session = self.sessions.get(&exchange.session);
        session.map(|session| self.context_of(session, None, *to, blocks)).transpose()
    }

    /// The tokens of the request with this number. Those of a transcript were counted when it was
    /// read; those of recorded traffic are counted now. That costs [`Recording::request`], and the
    /// parsing and counting of what earlier requests did not have.
    ///
    /// # Errors
    /// As [`Recording::request`].
    pub fn tokens(&self, number: usize) -> Result<RequestTokens> {
        match self.worked(number) {
            Some(context) => Ok(RequestTokens { tools: context.tools(), ..context.size.into() }),
            // Of a body that is not known nothing is counted.
            None if self.is_unread(number) => Ok(RequestTokens::default()),
            None => Ok(self.outlined(number)?.tokens(&**self.hud.counter())),
        }
    }

    /// What the context of a request comes to that was worked out, without rendering it; `None` of
    /// one that was recorded, and where there is none with this number.
    pub fn size(&self, number: usize) -> Option<ContextSize> {
        self.worked(number).map(|context| context.size)
    }

    /// What is in the context of a request that was worked out: the frames up to this one, with these
    /// blocks in the place of some. `None` of one that was recorded.
    pub(crate) fn in_force(&self, number: usize) -> Option<(FrameSeq, &[Substitution])> {
        self.worked(number).map(|context| (context.to, &**context.blocks))
    }

    /// What captured the frames.
    pub(crate) fn hud(&self) -> &Hud {
        &self.hud
    }

    /// The number of the request before this one in its session. O(1).
    pub fn previous(&self, number: usize) -> Option<usize> {
        self.exchange(number)?.previous
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
        if let (Some(before), Some(after)) = (self.worked(previous), self.worked(number))
            && self.has_grown(previous, number)
            && before.parameters == after.parameters
            && !self.is_other_model(previous, number)
        {
            let unchanged = before.size.tokens().saturating_add(after.tools());
            let tokens = after.size.tokens().saturating_add(after.tools());
            let cached = rules.cached(unchanged);
            let prefix = PrefixReport { tokens, unchanged, cached, divergence: None };
            return Ok(Some(RequestDiff::new(prefix, Changes::default())));
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
        let (Some(was), Some(is)) = (self.worked(previous), self.worked(number)) else {
            return false;
        };
        let tools = |of: &RequestContext| of.tools.as_ref().map(Arc::as_ptr);
        !was.has_tail && Arc::ptr_eq(&was.blocks, &is.blocks) && tools(was) == tools(is)
    }

    fn is_unread(&self, number: usize) -> bool {
        self.exchange(number).is_some_and(|exchange| exchange.unread.is_some())
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
        let model = |number: usize| self.exchange(number)?.answering_model();
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
        RequestContext { to, blocks, tools, parameters, .. }: &RequestContext,
        from: Option<FrameSeq>,
    ) -> Result<Request> {
        let Some(session) = self.sessions.get(&exchange.session) else {
            return Err(Error::new(ErrorKind::OutOfRange, "expected the session of the request"));
        };
        let context = self.context_of(session, from, *to, blocks)?;
        let export = Export::of(&session.history, &context)?;
        let options =
            ExportOptions { breakpoints: Breakpoints::Recorded, ..ExportOptions::default() };
        let Some(exported) = export.in_form(form_of(exchange.api), &options) else {
            return Err(Error::new(
                ErrorKind::Shape,
                "expected an API that requests are written for",
            ));
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
        body.extend(parameters.as_deref().cloned().unwrap_or_default());
        let body: BodyText = Value::from(body).to_string().into();
        let frames = frames_of(&exported, &body, exchange.api);
        let request = Request::new(exchange.api, exchange.provenance.clone(), body, frames);
        Ok(request.with_owners(exported))
    }
}

impl Session {
    /// The frames of the answer that begins with this one: the agent's up to where another begins.
    fn answer_from(
        &self,
        first: FrameSeq,
        name: &Arc<str>,
        begun: &HashSet<(Arc<str>, FrameSeq)>,
    ) -> Vec<FrameSeq> {
        let frames = self.history.frames();
        let is_other = |frame| frame != first && begun.contains(&(Arc::clone(name), frame));
        (frames.first_from(first)..frames.len())
            .take_while(|index| frames.source(*index) == Some(Source::Agent))
            .filter_map(|index| frames.sequence(index))
            .take_while(|frame| !is_other(*frame))
            .collect()
    }
}

impl RequestContext {
    /// The tokens of its tools.
    fn tools(&self) -> u64 {
        self.tools.as_ref().map_or(0, |tools| tools.tokens)
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
