use std::{collections::HashMap, sync::Arc};

use indexmap::IndexMap;

use super::request_sums::{RequestSize, RequestSums, RequestTally};
use crate::{
    Result,
    hud::{Hud, RenderRequest},
    id::{FacetType, FrameSeq, Millis},
    json::Value,
    request::{
        Answer, Answers, CountedParts, Exchange, Lack, Provenance, RecordedTools, Reports, Request,
    },
    snapshot::FrameSnapshot,
    tokens::TokenCounter,
    transcript::{Record, SourceContent, TranscriptFormat},
    veil::{FacetChange, FacetOp, Frame, History, Source, Veil, VisibleFacets},
    window::{ContextInForce, ContextSize, without_text},
};

/// Renders the frames of a transcript as they come, session by session, and keeps none of them.
///
/// A [`History`] keeps every frame; this keeps what the next frame needs, and of the others the
/// numbers that say which of them the [context](Viewer::context) holds.
///
/// ```
/// use afterimage::{
///     hud::Hud, id::{FacetType, Millis}, session::Viewer, tokens::Chars4,
///     transcript::{Record, TranscriptFormat}, veil::{Facet, FacetOp, Frame, Source},
/// };
///
/// let hud = Hud::new(std::sync::Arc::new(Chars4));
/// let mut viewer = Viewer::new(&hud, TranscriptFormat::Frames);
/// let facet = Facet::new("tide", FacetType::EVENT, "high water at 06:10");
/// let frame = Frame::new(1, Source::Environment).with(FacetOp::add(facet));
/// let viewed = viewer.view(Record { session: "harbour".into(), frame }, None, Millis::new(0))?;
/// assert!(viewed.snapshot.text().contains("high water"));
/// assert_eq!(viewed.message, Some(0));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Debug)]
pub struct Viewer<'h> {
    hud: &'h Hud,
    format: TranscriptFormat,
    /// Whether later frames may change the facets of earlier ones. Those of imports never do, so
    /// their facets are let go at once.
    keeps_facets: bool,
    /// Whether a frame may tell that others are in the context no more.
    may_replace: bool,
    sessions: IndexMap<Arc<str>, Session>,
    worked_out: RequestTally,
    reports: Reports,
    /// The exchanges that the transcript holds, without their bodies.
    recorded: Option<(RequestTally, Vec<Exchange>)>,
    /// Requests that were logged beside the frames, by the first frame of their answers, which is to
    /// come.
    early: HashMap<FrameSeq, (Exchange, RequestSize)>,
    /// The frame that came last.
    seen: Option<FrameSeq>,
    counted: CountedParts,
}

#[derive(Debug, Default)]
struct Session {
    veil: Veil,
    /// The frames without their texts.
    history: History,
    context: ContextInForce,
    answers: Answers,
}

/// A frame with what it rendered to.
#[derive(Clone, Debug)]
pub struct ViewedFrame {
    /// The name of its session.
    pub session: Arc<str>,
    /// The frame.
    pub frame: Frame,
    /// What it rendered to.
    pub snapshot: Arc<FrameSnapshot>,
    /// The index of its message in the session's context when it comes; `None` where it shows
    /// nothing. [`ContextInForce::message_of`] knows it later.
    pub message: Option<usize>,
    /// Where it begins to answer a request, what the context of that comes to, the tail included.
    pub request: Option<ContextSize>,
    /// Whether it tells that frames left the context, or came back to it.
    pub changes_context: bool,
}

/// What the model sees after the last frame of a session.
#[derive(Clone, Debug)]
pub struct ViewedTail {
    /// The name of the session.
    pub session: Arc<str>,
    /// What the ambient facets rendered to.
    pub snapshot: Arc<FrameSnapshot>,
    /// The index of its message in the session's context.
    pub message: usize,
}

impl<'h> Viewer<'h> {
    /// A viewer of a transcript in this format.
    pub fn new(hud: &'h Hud, format: TranscriptFormat) -> Self {
        let keeps_facets = format.holds() == SourceContent::Frames;
        let may_replace = format.may_retract();
        let reports = Reports::of(format.api());
        let (sessions, worked_out, recorded, early, seen, counted) = Default::default();
        Self {
            hud,
            format,
            keeps_facets,
            may_replace,
            sessions,
            worked_out,
            reports,
            recorded,
            early,
            seen,
            counted,
        }
    }

    /// Whether a frame may tell that others are in the context no more. Where none may, what a
    /// frame is in the context stays so.
    pub fn may_replace(&self) -> bool {
        self.may_replace
    }

    /// Renders a frame at the moment `now`, unless it brings along what it rendered to, or
    /// `rendered` is that. Renders and counts the frame: O(its text).
    ///
    /// # Errors
    /// What the veil has against the frame, and the format against what it shows.
    pub fn view(
        &mut self,
        record: Record,
        rendered: Option<&Arc<FrameSnapshot>>,
        now: Millis,
    ) -> Result<ViewedFrame> {
        let Record { session: name, frame } = record;
        // What the agent answers: the frame itself may change the context.
        let is_agents = frame.source == Source::Agent;
        let tail = if is_agents && self.has_tail(&name) { self.tail(&name)? } else { None };
        let shown = self.follow(&name, &frame)?;
        let snapshot = match frame.rendered_snapshot.as_ref().or(rendered) {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(self.hud.render_frame(&frame, &shown, now)?),
        };
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        let before = session.context.size();
        let shows = !snapshot.is_empty();
        let message = shows.then(|| usize::try_from(before.messages).unwrap_or(usize::MAX));
        session.context.push(frame.sequence, ContextSize::of(self.hud, &snapshot));
        if let Some(tools) = RecordedTools::of(&frame, self.format.api(), &**self.hud.counter()) {
            session.answers.tools = Some(tools);
        }
        let mut changes_context = false;
        if self.may_replace {
            session.history.push(without_text(&frame, &snapshot))?;
            changes_context = session.context.follow_told(self.hud, &session.history, now)?;
        }
        let request = match self.reports.push(&name, &mut session.answers, &frame, shows) {
            Answer::Begins(_) => {
                let tail = tail.map(|tail| ContextSize::of(self.hud, &tail.snapshot));
                let context = before.plus(tail.unwrap_or_default());
                let tools = session.answers.tool_tokens();
                self.worked_out.add(&name, frame.sequence.get(), RequestSize { context, tools });
                Some(context)
            }
            Answer::None | Answer::GoesOn => None,
        };
        self.seen = Some(frame.sequence);
        if let Some((logged, size)) = self.early.remove(&frame.sequence) {
            self.join(logged, size);
        }
        Ok(ViewedFrame { session: name, frame, snapshot, message, request, changes_context })
    }

    /// Applies a frame of a session, and renders nothing. O(n log n) in the frame's ops and the
    /// ambient facets.
    ///
    /// # Errors
    /// What the veil has against the frame.
    pub fn follow(&mut self, session: &Arc<str>, frame: &Frame) -> Result<VisibleFacets> {
        let session = self.sessions.entry(Arc::clone(session)).or_default();
        let shown = session.veil.apply(frame)?;
        if !self.keeps_facets {
            let gone = session.veil.facets();
            let gone = gone.iter().filter(|facet| facet.facet_type != FacetType::AMBIENT);
            let forget = gone.fold(Frame::new(frame.sequence, Source::System), |forget, facet| {
                forget.with(FacetOp::remove(facet.id.clone()))
            });
            session.veil.apply(&forget)?;
        }
        Ok(shown)
    }

    /// Whether ambient facets hold in a session.
    pub fn has_tail(&self, session: &str) -> bool {
        let session = self.sessions.get(session);
        session.is_some_and(|session| session.veil.ambient().next().is_some())
    }

    /// The number of messages of a session so far, the tail aside.
    pub fn messages(&self, session: &str) -> Option<usize> {
        let messages = self.context(session)?.size().messages;
        Some(usize::try_from(messages).unwrap_or(usize::MAX))
    }

    /// What requests that are worked out from what was seen so far lack. O(sessions).
    pub fn lacks(&self) -> Vec<Lack> {
        let mut all = self.sessions.values().map(|session| &session.answers);
        let has_system = all.clone().all(|of| of.system_from.is_some());
        let has_tools = !self.sessions.is_empty() && all.all(|of| of.tools.is_some());
        let mut listed = self.reports.all().filter(|of| !of.is_unlisted).peekable();
        let is_stated = |of: &Exchange| !of.provenance.lacks().contains(&Lack::Parameters);
        let has_parameters = listed.peek().is_some() && listed.all(is_stated);
        Lack::of_transcript(has_system, has_tools, has_parameters)
    }

    /// The first frame of a session with a system prompt.
    #[cfg(feature = "storage")]
    pub(crate) fn system_from(&self, session: &str) -> Option<crate::id::FrameSeq> {
        self.sessions.get(session)?.answers.system_from
    }

    /// Takes an exchange that the transcript holds. The requests then are those of such exchanges, and
    /// none is worked out from the frames but for answers of a client's session that logged none for
    /// them. Keeps no body of it.
    ///
    /// Cost: counts the tokens of what no earlier request had with `counter`, O(the body); without one
    /// the request is in no sum of tokens.
    pub fn exchange(&mut self, exchange: Exchange, counter: Option<&dyn TokenCounter>) {
        let size = counter.filter(|_| !exchange.is_unlisted);
        let request = || Request::recorded(&exchange);
        let size = size.map(|by| RequestSize::of(&request(), &mut self.counted, by));
        let size = size.unwrap_or_default();
        if self.format.holds() == SourceContent::Transcript {
            match exchange.answer() {
                Some(answer) if self.seen.is_none_or(|seen| seen < answer) => {
                    self.early.insert(answer, (exchange, size));
                }
                _ => self.join(exchange, size),
            }
            return;
        }
        let (tally, exchanges) = self.recorded.get_or_insert_default();
        if !exchange.is_unlisted {
            tally.add(&exchange.session, exchange.line.unwrap_or_default(), size);
        }
        exchanges.push(exchange.into_head());
    }

    /// Gives an exchange that was worked out the request that was logged for it.
    fn join(&mut self, logged: Exchange, size: RequestSize) {
        let place = logged.place().0.map_or(0, FrameSeq::get);
        let is_known = logged.answer().is_some_and(|answer| self.reports.begins_with(answer));
        if is_known {
            self.worked_out.replace(place, size);
        } else if !logged.is_unlisted {
            self.worked_out.add(&logged.session, place, size);
        }
        self.reports.join(logged.into_head());
    }

    /// Where the requests so far come from: [`Provenance::Logged`] where some were recorded, and not
    /// kept as they were sent. O(exchanges).
    pub fn provenance(&self) -> Provenance {
        let is_logged = |of: &Exchange| of.provenance.is_logged();
        let mut listed = self.reports.all().filter(|of| !of.is_unlisted).peekable();
        match &self.recorded {
            None if listed.peek().is_some() && listed.all(is_logged) => Provenance::Logged,
            None => Provenance::Reconstructed { lacks: self.lacks() },
            Some((_, all)) if all.iter().all(|of| of.provenance == Provenance::Sent) => {
                Provenance::Sent
            }
            Some(_) => Provenance::Logged,
        }
    }

    /// The exchanges so far without their bodies: those that the transcript holds, or else those that
    /// begin with a request, in their order, and then the answers that show nothing. O(n) for all of
    /// them.
    pub fn reported(&self) -> impl Iterator<Item = &Exchange> {
        let recorded = self.recorded.as_ref().map(|(_, exchanges)| exchanges);
        let worked_out = recorded.is_none().then(|| self.reports.all());
        recorded.into_iter().flatten().chain(worked_out.into_iter().flatten())
    }

    /// What the requests so far come to. O(sessions).
    pub fn requests(&self) -> RequestSums {
        self.recorded.as_ref().map_or(&self.worked_out, |(tally, _)| tally).sums()
    }

    /// The context in force of a session.
    pub fn context(&self, session: &str) -> Option<&ContextInForce> {
        self.sessions.get(session).map(|session| &session.context)
    }

    /// What the model sees after the last frame of a session; `None` where that is nothing. Renders
    /// and counts it: O(its text).
    ///
    /// # Errors
    /// What the format has against the ambient facets.
    pub fn tail(&self, session: &str) -> Result<Option<ViewedTail>> {
        let Some((_, name, Session { veil, context, .. })) = self.sessions.get_full(session) else {
            return Ok(None);
        };
        let tail = self.hud.render_tail(veil, &RenderRequest::default(), Millis::default())?;
        Ok(tail.map(|snapshot| ViewedTail {
            session: Arc::clone(name),
            snapshot: Arc::new(snapshot),
            message: usize::try_from(context.size().messages).unwrap_or(usize::MAX),
        }))
    }

    /// The sessions so far, in the order of their first frames. O(sessions).
    pub fn sessions(&self) -> Vec<Arc<str>> {
        self.sessions.keys().map(Arc::clone).collect()
    }
}

/// How many records of its transcript a frame keeps that the reader did not understand. Frames that
/// were written of a transcript keep them too. O(facets).
pub fn unknown_records(frame: &Frame) -> u64 {
    let records = |op: &FacetOp| match &op.change {
        // A facet keeps one, or as many as it says.
        FacetChange::Add(facet) if facet.facet_type == FacetType::UNKNOWN => {
            Some(facet.attributes.get("records").and_then(Value::as_u64).unwrap_or(1))
        }
        _ => None,
    };
    frame.ops.iter().filter_map(records).fold(0, u64::saturating_add)
}
