//! A session without IO: it makes steps, and takes them.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use super::{
    Awaits, Model, PaidAnswer, SessionAnswer, ToolCall,
    kept_window::KeptWindow,
    memory::Memory,
    scale::Scales,
    step::{AnswerStep, PaidStep, RequestStep, Step},
    summaries::Remembered,
};
#[cfg(feature = "rules")]
use crate::guard::Guard;
use crate::{
    Error, ErrorKind, Result,
    bill::MediaItem,
    compress::CompressionJob,
    hud::{Hud, RenderRequest},
    id::{FacetId, FacetType, FrameSeq, Millis},
    json::Value,
    snapshot::FrameSnapshot,
    timeline::{Data, TurnRecord},
    transcript::{Api, Record, ReplyFrames},
    usage::Usage,
    veil::{
        Branch, Compaction, ContextEdit, Facet, FacetChange, FacetOp, Frame, History, PartPlace,
        Source, SubagentStart, calls_and_results,
    },
    window::ContextWindow,
};

/// Steps keep the window again where the steps since then have so many times its bytes.
const TIMES_WINDOW: usize = 4;
/// And where they have so many bytes.
const LEAST_BYTES: usize = 32 << 10;

/// Why a model stops that goes on when it is asked again.
const PAUSED: &str = "pause_turn";

/// Calls of these kinds the provider answers itself.
const OF_PROVIDERS: [&str; 8] = [
    "server_tool_use",
    "mcp_tool_use",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "tool_search_call",
];

/// The highest sequence of a frame that is pushed: as many are left for those after it.
const MOST_SEQUENCE: FrameSeq = FrameSeq::new(u64::MAX / 2);

/// What a session knows. Whoever owns it makes each step durable, and lets a session go whose step
/// could not be made so.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) hud: Hud,
    pub(super) history: History,
    pub(super) window: Option<ContextWindow>,
    /// The window as steps have it, until it is needed.
    pub(super) saved_window: Option<Value>,
    /// The last window that steps have, and the request that it is as after; until that is taken.
    kept_window: Option<KeptWindow>,
    /// The bytes of the steps since a window was kept, and of that window.
    since_window: usize,
    window_bytes: usize,
    /// The summaries that come later.
    pub(super) waiting: Vec<CompressionJob>,
    /// The first frame behind each request, and the turns that the world had.
    ends: Vec<(FrameSeq, u64)>,
    pub(super) memory: Memory,
    /// The frames that the session went back behind.
    outside: Vec<RangeInclusive<FrameSeq>>,
    pub(super) tools: Vec<Value>,
    /// Those of the last request.
    asked_tools: Vec<Value>,
    pub(super) media: BTreeMap<FrameSeq, Vec<MediaItem>>,
    /// The steps so far.
    steps: u64,
    /// The requests so far.
    pub(super) turns: u64,
    pub(super) last: Option<LastRequest>,
    /// Whether the last request waits for its answer.
    pub(super) is_asking: bool,
    /// What was said since.
    later: Vec<Frame>,
    /// Frames of the history that are in no step yet.
    pub(super) unsaved: Vec<Frame>,
    /// The frames of the last answer, where it is whole.
    answer: Option<FrameSeq>,
    /// Whether something was said that no answer has seen.
    is_unanswered: bool,
    /// The answers that are in no context.
    paid: Vec<PaidAnswer>,
    /// How many tokens those that are counted here are to each model.
    pub(super) scales: Scales,
    /// What was reported of the last request that was answered.
    pub(super) reported: Option<Usage>,
    #[cfg(feature = "rules")]
    pub(super) guard: Option<Guard>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) struct SentBody {
    pub(super) api: Api,
    pub(super) body: Arc<str>,
    #[cfg_attr(not(feature = "rules"), expect(dead_code, reason = "caches forget with time"))]
    pub(super) at: Millis,
}

#[derive(Clone, Debug)]
pub(super) struct LastRequest {
    pub(super) model: Model,
    pub(super) aside: u64,
    /// The tokens of its texts and tools as they are counted here, and those of its media.
    pub(super) counted: u64,
    pub(super) media: u64,
    pub(super) sent: SentBody,
    /// The one before it.
    pub(super) before: Option<SentBody>,
}

impl Core {
    /// A session without steps. Those that it takes have this window as their last one, as after the
    /// request with this number.
    pub(super) fn new(hud: Hud, kept_window: Option<KeptWindow>) -> Self {
        Self {
            kept_window,
            waiting: Vec::new(),
            hud,
            history: History::new(),
            window: None,
            saved_window: None,
            since_window: 0,
            window_bytes: 0,
            ends: Vec::new(),
            memory: Memory::default(),
            outside: Vec::new(),
            tools: Vec::new(),
            asked_tools: Vec::new(),
            media: BTreeMap::new(),
            steps: 0,
            turns: 0,
            last: None,
            is_asking: false,
            later: Vec::new(),
            unsaved: Vec::new(),
            answer: None,
            is_unanswered: false,
            paid: Vec::new(),
            scales: Scales::default(),
            reported: None,
            #[cfg(feature = "rules")]
            guard: None,
        }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn window(&self) -> Option<&ContextWindow> {
        self.window.as_ref()
    }

    pub(super) fn paid_beside(&self) -> &[PaidAnswer] {
        &self.paid
    }

    /// The number of the next step.
    pub(super) fn next_step(&self) -> u64 {
        self.steps + 1
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The number of the request that waits for its answer.
    pub(super) fn unanswered(&self) -> Option<u64> {
        self.is_asking.then_some(self.turns)
    }

    /// The number of that request, and the API of its model.
    pub(super) fn asked(&self) -> Option<(u64, Api)> {
        self.unanswered().zip(self.last.as_ref().map(|last| last.model.api))
    }

    /// Takes note that a step of so many bytes is durable.
    pub(super) fn stepped(&mut self, bytes: usize) {
        self.steps += 1;
        self.since_window = self.since_window.saturating_add(bytes);
    }

    /// The window, where it is time that steps keep it; with its turn.
    pub(super) fn window_due(&self) -> Option<(u64, &ContextWindow)> {
        let is_due = self.since_window >= LEAST_BYTES.max(TIMES_WINDOW * self.window_bytes);
        let window = self.window.as_ref().filter(|_| is_due && self.waiting.is_empty());
        window.map(|window| (self.turns, window))
    }

    /// All parts of a window of so many bytes are kept, or it could not be written.
    pub(super) fn keeps_window(&mut self, bytes: usize) {
        (self.since_window, self.window_bytes) = (0, bytes);
    }

    pub(super) fn is_saved(&self) -> bool {
        self.unsaved.is_empty()
    }

    /// Takes a step that was kept. Where no step has the window after it or a later one, the request is
    /// made again for it.
    ///
    /// # Errors
    /// What the history has against its frames, and a request that is not the one with its hash.
    pub(super) fn take(&mut self, step: Step, bytes: usize) -> Result<()> {
        let Step { at, frames, tools, request, answer, paid, policy, world, turn, .. } = step;
        self.paid.extend(paid.map(PaidStep::into_answer));
        if let Some(tools) = tools {
            self.tools = tools;
        }
        if let Some(policy) = policy {
            self.memory.observe(policy, self.hud.counter())?;
        }
        if let Some(state) = world {
            self.memory.begin_world(Data::from(state), at)?;
        }
        if let Some(turn) = turn {
            self.memory.turn(TurnRecord::from_json(turn)?)?;
        }
        match answer {
            Some(answer) => self.take_answer(frames, answer.cut.is_none(), at)?,
            None => self.take_said(frames, at)?,
        }
        if let Some(mut request) = request {
            self.say_what_waited(at)?;
            let number = self.turns + 1;
            match self.kept_window.take_if(|kept| kept.turn <= number) {
                Some(kept) if kept.turn == number => {
                    self.keeps_window(kept.bytes);
                    self.saved_window = Some(kept.state);
                }
                None if self.kept_window.is_some() => {}
                _ => {
                    let summaries = std::mem::take(&mut request.summaries);
                    let engine = Remembered::new(request.engine.clone(), summaries);
                    self.ask_again(&request.model, &engine, at)?;
                }
            }
            let before = self.last.take().map(|last| last.sent);
            let body = request.body_after(before.as_ref().map_or("", |before| &before.body))?;
            let RequestStep { model, aside, counted, media, .. } = request;
            let sent = SentBody { api: model.api, body: body.into(), at };
            self.asks(LastRequest { model, aside, counted, media, sent, before });
        }
        self.stepped(bytes);
        Ok(())
    }

    /// A request was made.
    pub(super) fn asks(&mut self, request: LastRequest) {
        self.asked_tools.clone_from(&self.tools);
        self.last = Some(request);
        self.turns += 1;
        self.is_asking = true;
        let end = self.history.next_sequence().unwrap_or_default();
        self.ends.push((end, self.memory.turns()));
    }

    /// Whether the last request was to this model with these tools, waits for its answer, and nothing was
    /// said since.
    pub(super) fn is_asked(&self, model: &Model) -> bool {
        self.is_asking
            && self.asked_tools == self.tools
            && self.ends.last().map(|(end, _)| *end) == self.history.next_sequence()
            && self.last.as_ref().is_some_and(|last| last.model == *model)
    }

    /// Goes back to where a request was made: what came since then is in no context from here on.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there was no such request, or where it is one that the session
    /// went back behind.
    pub(super) fn rewind(&mut self, turn: u64, now: Millis) -> Result<Step> {
        let at = usize::try_from(turn).ok().and_then(|turn| turn.checked_sub(1));
        let end = at.and_then(|at| self.ends.get(at)).map(|(end, _)| *end);
        let Some(end) = end.filter(|end| !self.is_left(*end)) else {
            let found = format_args!("{turn}");
            let message =
                format!("expected a request that the session holds, of 1 to {}", self.turns);
            return Err(Error::new(ErrorKind::OutOfRange, format!("{message}, found {found}")));
        };
        let next = self.next_frame().get();
        let kept = self.outside.iter().take_while(|range| *range.end() < end);
        let mut outside: Vec<_> =
            kept.map(|range| (range.start().get(), range.end().get())).collect();
        if end.get() < next {
            outside.push((end.get(), next - 1));
        }
        let mut frame = Frame::new(0, Source::Environment);
        frame.events.push(Branch::event(outside));
        self.say_frame(frame, now)?;
        Ok(self.said(now))
    }

    /// The last frame of the request that the last answer is to.
    pub(super) fn last_end(&self) -> Option<FrameSeq> {
        let frames = self.history.frames();
        let is_left = |at: &usize| frames.get(*at).is_some_and(|of| self.is_outside(of.sequence));
        let is_agents = |at: &usize| frames.source(*at) == Some(Source::Agent);
        let mut in_force = (0..frames.len()).rev().filter(|at| !is_left(at));
        in_force.by_ref().find(is_agents)?;
        let end = in_force.find(|at| !is_agents(at))?;
        frames.get(end).map(|frame| frame.sequence)
    }

    /// Whether a frame is in no context, since the session went back behind it.
    pub(super) fn is_outside(&self, frame: FrameSeq) -> bool {
        self.outside.iter().any(|range| range.contains(&frame))
    }

    /// Whether the session went back behind the frame before this one.
    fn is_left(&self, end: FrameSeq) -> bool {
        end.get().checked_sub(1).is_some_and(|last| self.is_outside(FrameSeq::new(last)))
    }

    fn take_said(&mut self, frames: Vec<Frame>, now: Millis) -> Result<()> {
        if self.is_asking {
            self.later.extend(frames);
            return Ok(());
        }
        frames.into_iter().try_for_each(|frame| self.push_said(frame, now))
    }

    fn take_answer(&mut self, frames: Vec<Frame>, is_whole: bool, now: Millis) -> Result<()> {
        let tail = self.hud.render_tail(self.history.veil(), &RenderRequest::default(), now)?;
        let mut tail = tail.map(Arc::new);
        let first = frames.first().map(|frame| frame.sequence);
        let usage = |frame: &Frame| frame.imported.as_ref()?.answer.as_ref()?.usage.clone();
        self.reported = frames.iter().find_map(usage);
        if let (Some(usage), Some(asked)) = (&self.reported, &self.last) {
            self.scales.learn(asked, usage);
        }
        let stop = |frame: &Frame| frame.imported.as_ref()?.answer.as_ref()?.stop.clone();
        let is_paused = frames.iter().find_map(stop).is_some_and(|stop| *stop == *PAUSED);
        for frame in frames {
            self.push(frame, tail.take(), now)?;
        }
        self.answer = first.filter(|_| is_whole);
        (self.is_asking, self.is_unanswered) = (false, is_whole && is_paused);
        self.say_what_waited(now)
    }

    /// What was said while an answer was awaited comes behind it, or before the next request.
    pub(super) fn say_what_waited(&mut self, now: Millis) -> Result<()> {
        for frame in std::mem::take(&mut self.later) {
            self.push_said(frame, now)?;
        }
        Ok(())
    }

    pub(super) fn push_said(&mut self, frame: Frame, now: Millis) -> Result<()> {
        let shows = frame.added().any(Facet::is_shown_in_frames);
        let (is_agents, is_system) =
            (frame.source == Source::Agent, frame.source == Source::System);
        let goes_back = frame.events.iter().any(Branch::is_event);
        let goes_on = self.history.frames().last().is_some_and(|last| last.source == Source::Agent);
        if self.memory.observations.is_some() {
            self.memory.look(&frame, &self.open_calls(), now)?;
        }
        self.push(frame, None, now)?;
        match shows {
            // An answer that was read; it may be told in several frames.
            true if is_agents => {
                let told = self.history.frames().last().map(|frame| frame.sequence);
                self.answer = self.answer.filter(|_| goes_on).or(told);
                self.is_unanswered = false;
            }
            true => self.is_unanswered |= !is_system,
            false => self.is_unanswered |= goes_back,
        }
        if goes_back {
            // Their frames may be left.
            self.waiting.clear();
            let told = self.history.frames().last();
            let branch = told.map(|frame| Branch::of(&frame)).transpose()?.flatten();
            self.outside = branch.map(|branch| branch.outside).unwrap_or_default();
            self.answer = self.answer.filter(|_| is_agents);
            let asked = self.ends.iter().rev().find(|(end, _)| !self.is_left(*end));
            self.memory.go_back(asked.map_or(0, |(_, turns)| *turns), now)?;
        }
        Ok(())
    }

    /// Pushes a frame with the tail of the context that it answers. It gets the next sequence, unless it
    /// has a higher one: what was read tells of frames by theirs.
    fn push(&mut self, frame: Frame, tail: Option<Arc<FrameSnapshot>>, now: Millis) -> Result<()> {
        let sequence = self.history.next_sequence();
        let none_left = || Error::new(ErrorKind::Sequence, "a session has 2^64 frames at most");
        let sequence = sequence.ok_or_else(none_left)?.max(frame.sequence);
        let frame = Frame { sequence, ..frame };
        let frame = self.hud.seal(&mut self.history, frame, tail, now)?;
        let items = MediaItem::of_frame(&frame);
        if !items.is_empty() {
            self.media.insert(frame.sequence, items);
        }
        Ok(())
    }

    /// Says something: the frame of these ops. It is in a step once [`Core::said`] gave one.
    pub(super) fn say(&mut self, source: Source, facets: Vec<Facet>, now: Millis) -> Result<()> {
        let mut frame = Frame::new(0, source);
        for (number, mut facet) in facets.into_iter().enumerate() {
            if facet.id.as_str().is_empty() {
                let (kind, step) = (facet.facet_type.as_str(), self.next_step());
                facet.id = FacetId::from(format!("{kind}-s{step}.{}.{number}", self.unsaved.len()));
            }
            frame.ops.push(FacetOp::add(facet));
        }
        self.say_frame(frame, now)
    }

    /// As [`Core::say_frame`], with events of the caller's own.
    ///
    /// # Errors
    /// Those of [`Core::say_frame`], and those of the events that this crate reads;
    /// [`ErrorKind::OutOfRange`] for a sequence that leaves too few.
    pub(super) fn push_told(&mut self, frame: Frame, now: Millis) -> Result<()> {
        let sequence = self.next_frame().max(frame.sequence);
        if sequence > MOST_SEQUENCE {
            let message = format!("expected a sequence up to {MOST_SEQUENCE}, found {sequence}");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        let frame = Frame { sequence, ..frame };
        Compaction::of(&frame)?;
        ContextEdit::of(&frame)?;
        SubagentStart::of(&frame)?;
        self.say_frame(frame, now)
    }

    /// The sequence of a frame that is said now.
    fn next_frame(&self) -> FrameSeq {
        let next = self.history.next_sequence().unwrap_or_default().get();
        FrameSeq::new(next.saturating_add(self.later.len() as u64))
    }

    /// As [`Core::say`], with ops of the caller's own.
    ///
    /// # Errors
    /// What the veil, the format and the branches have against it. Nothing is said then.
    pub(super) fn say_frame(&mut self, frame: Frame, now: Millis) -> Result<()> {
        let frame = Frame { sequence: self.next_frame().max(frame.sequence), ..frame };
        Branch::of(&frame)?;
        if self.is_asking {
            // It takes effect later, and is kept before: it must be one that can.
            let mut veil = self.history.veil().clone();
            self.later.iter().try_for_each(|later| veil.apply(later).map(drop))?;
            veil.apply(&frame)?;
        }
        self.take_said(vec![frame.clone()], now)?;
        self.unsaved.push(frame);
        Ok(())
    }

    /// Takes the frames of a session that was read; this one is new.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where this one is not new, [`ErrorKind::Shape`] where there are several
    /// sessions, and what the history has against a frame.
    pub(super) fn read(
        &mut self,
        records: impl IntoIterator<Item = Result<Record>>,
        now: Millis,
    ) -> Result<Step> {
        if self.steps > 0 || !self.unsaved.is_empty() {
            let message = "a session is read into one that is new; this one has begun";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let mut name: Option<Arc<str>> = None;
        for record in records {
            let Record { session, frame } = record?;
            let name = name.get_or_insert_with(|| Arc::clone(&session));
            let of_subagent =
                session.strip_prefix(&**name).is_some_and(|rest| rest.starts_with('/'));
            if of_subagent {
                continue;
            }
            if *name != session {
                let expected = "the records of one session";
                return Err(Error::expected(expected, format_args!("{name:?} and {session:?}")));
            }
            self.say_frame(frame, now)?;
        }
        Ok(self.said(now))
    }

    /// The step of what was said since the last one.
    pub(super) fn said(&mut self, now: Millis) -> Step {
        Step { frames: std::mem::take(&mut self.unsaved), ..Step::at(now) }
    }

    /// The step with other tools; `None` where they are those already.
    pub(super) fn set_tools(&mut self, tools: Vec<Value>, now: Millis) -> Option<Step> {
        if tools == self.tools {
            return None;
        }
        self.tools.clone_from(&tools);
        Some(Step { tools: Some(tools), ..self.said(now) })
    }

    /// Whether nothing but ambient facets was said since the last request to this model: they wait for
    /// its answer.
    pub(super) fn waits_for_answer(&self, model: &Model) -> bool {
        let is_ambient = |op: &FacetOp| match &op.change {
            FacetChange::Add(facet) => facet.facet_type == FacetType::AMBIENT,
            _ => self.facet(op.facet_id()).is_some_and(|of| of.facet_type == FacetType::AMBIENT),
        };
        let is_only_ambient =
            |frame: &Frame| frame.events.is_empty() && frame.ops.iter().all(is_ambient);
        self.is_asked(model) && self.later.iter().all(is_only_ambient)
    }

    /// Whether what waits for the answer says something of the facet with this id.
    pub(super) fn changes_later(&self, id: &str) -> bool {
        let mut ops = self.later.iter().flat_map(|frame| &frame.ops);
        ops.any(|op| op.facet_id().as_str() == id)
    }

    /// The facet with this id, as it holds now.
    pub(super) fn facet(&self, id: &str) -> Option<Arc<Facet>> {
        self.history.veil().get(id)
    }

    pub(super) fn awaits(&self) -> Awaits {
        if self.is_asking {
            return Awaits::Answer;
        }
        let open = self.open_calls();
        match open.is_empty() {
            false => Awaits::Results(open),
            true if self.is_unanswered => Awaits::Answer,
            true => Awaits::User,
        }
    }

    /// The calls of the last answer that wait for results, in order.
    pub(super) fn open_calls(&self) -> Vec<ToolCall> {
        let Some(first) = self.answer else { return Vec::new() };
        let pairs = self.history.pairs().all();
        let pairs = pairs.iter().rev().take_while(|pair| pair.result.frame >= first);
        let answered: Vec<PartPlace> = pairs.map(|pair| pair.call).collect();
        let frames = self.history.frames();
        let mut open = Vec::new();
        for index in frames.first_from(first)..frames.len() {
            let Some(frame) = frames.get(index).filter(|frame| frame.source == Source::Agent)
            else {
                continue;
            };
            let parts = calls_and_results(frame.added());
            for (number, facet) in (0_u32..).zip(parts) {
                let block = facet.source().and_then(|source| source.block.as_deref());
                let is_of_provider = block.is_some_and(|block| OF_PROVIDERS.contains(&block));
                let is_open = !answered.contains(&PartPlace { frame: frame.sequence, number });
                if let (Some(call), true, false) = (facet.call(), is_open, is_of_provider) {
                    let written = || Value::from(call.arguments.unwrap_or_default());
                    open.push(ToolCall {
                        id: call.id.unwrap_or_default().to_owned(),
                        name: call.name.to_owned(),
                        arguments: call.parameters.cloned().unwrap_or_else(written),
                    });
                }
            }
        }
        open
    }

    /// Takes the answer to the last request, with its step.
    pub(super) fn answer(
        &mut self,
        body: &str,
        cut: Option<String>,
        now: Millis,
    ) -> Result<(SessionAnswer, Step)> {
        let asked = self.last.as_ref().filter(|_| self.is_asking);
        let Some(LastRequest { model, .. }) = asked else {
            let message = "no request waits for an answer; `Session::request` makes one";
            return Err(Error::new(ErrorKind::Other, message));
        };
        let first = self.history.next_sequence().unwrap_or_default();
        let read = ReplyFrames::of(model.api, body, first, self.next_step(), cut)?;
        let cut = read.answer.cut.map(String::from);
        let frames: Vec<FrameSeq> = read.frames.iter().map(|frame| frame.sequence).collect();
        let speech = read.frames.iter().flat_map(Frame::added);
        let speech = speech.filter(|facet| facet.facet_type == FacetType::SPEECH);
        let text: Vec<&str> = speech.map(|facet| facet.content.as_str()).collect();
        let text = text.join("\n\n");
        // What was said while it was awaited, and is in no step yet, comes behind it there too.
        let unsaved = std::mem::take(&mut self.unsaved);
        let step = Step {
            frames: read.frames.clone(),
            answer: Some(AnswerStep { body: body.to_owned(), cut: cut.clone() }),
            ..Step::at(now)
        };
        self.take_answer(read.frames, cut.is_none(), now)?;
        self.unsaved = unsaved;
        let answer = SessionAnswer {
            text,
            calls: self.open_calls(),
            usage: read.answer.usage,
            stop: read.answer.stop.map(String::from),
            cut,
            frames,
        };
        Ok((answer, step))
    }
}
