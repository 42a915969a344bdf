use std::{
    collections::{HashMap, HashSet},
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use super::{
    Remainder, Residency, ResidencyLine, Share,
    layout::Layout,
    share::{ReportedInput, ReportedOutput, TokenRates, apportion},
};
use crate::{
    Result,
    bill::media::{ImageRule, MediaItem, RequestMedia},
    id::{FacetId, FacetType, FrameSeq},
    request::{ClearedBlock, CountedParts, Exchange, PartKind, Recording, Request, RequestPart},
    snapshot::{FrameSnapshot, Substitution},
    steps::{FacetCalls, ToolCall, is_words, words_in},
    transcript::Usage,
    veil::{FacetChange, Frame, Source},
    window::{ContextItem, context_items},
};

/// Tokens of lines, in the order of a request: the index of the line, and the count.
pub(super) type Counts = Vec<(usize, u64)>;

/// Lays out the reported usage of a recording, an exchange at a time.
pub(super) struct Builder<'r> {
    recording: &'r Recording,
    sessions: HashMap<Arc<str>, Session<'r>>,
    pub(super) residency: Residency,
    /// Of each line the last exchange that held it, and the tokens that it had there.
    held: Vec<(u64, u64)>,
    media: RequestMedia<'r>,
    counted: CountedParts,
    /// The lines of images and documents whose cost a model does not know.
    pub(super) unknown: HashSet<usize>,
}

/// The prices of each run of an exchange; none where it has no price.
pub(super) type RatesOf<'p> = &'p dyn Fn(&Exchange) -> Vec<TokenRates>;

/// A session whose frames were counted.
#[derive(Default)]
pub(super) struct Session<'r> {
    /// The frames that show something, in order, with their counts.
    frames: Vec<(FrameSeq, Range<usize>)>,
    counts: Counts,
    /// The lines of each facet: that of its texts, and that of its image or document.
    lines: HashMap<(Option<FacetId>, bool), usize>,
    /// The images, sounds and documents of frames, with their lines.
    pub(super) media: HashMap<FrameSeq, Vec<(usize, MediaItem)>>,
    /// The rule that they were counted by in the layout.
    rule: Option<ImageRule>,
    /// The user's messages that begin turns, in order.
    turns: Vec<FrameSeq>,
    /// What the requests hold, where they are worked out.
    layout: Layout<'r>,
}

impl Session<'_> {
    fn of_frame(&self, frame: FrameSeq) -> &[(usize, u64)] {
        let at = self.frames.binary_search_by_key(&frame, |(frame, _)| *frame);
        let range = at.ok().and_then(|at| self.frames.get(at)).map(|(_, range)| range.clone());
        range.and_then(|range| self.counts.get(range)).unwrap_or_default()
    }

    /// The counts of these frames.
    fn of_frames(&self, range: &RangeInclusive<FrameSeq>) -> &[(usize, u64)] {
        let from = self.frames.partition_point(|(frame, _)| frame < range.start());
        let to = self.frames.partition_point(|(frame, _)| frame <= range.end());
        let frames = self.frames.get(from..to).unwrap_or_default();
        let range = frames.first().zip(frames.last()).map(|(a, b)| a.1.start..b.1.end);
        range.and_then(|range| self.counts.get(range)).unwrap_or_default()
    }

    /// The frames that no block stands for, of so many. Linear in them, and not in those that are
    /// replaced.
    fn beside(&self, blocks: &[Substitution], count: usize) -> Vec<FrameSeq> {
        let frames = self.frames.get(..count).unwrap_or_default();
        let mut from = 0;
        let mut beside = Vec::new();
        for block in blocks {
            let begins = frames.partition_point(|(frame, _)| *frame < block.from);
            beside.extend(frames.get(from..begins).unwrap_or_default().iter().map(|of| of.0));
            from = from.max(frames.partition_point(|(frame, _)| *frame <= block.to));
        }
        beside.extend(frames.get(from..).unwrap_or_default().iter().map(|of| of.0));
        beside
    }

    /// The turn of a frame: the message that began it.
    pub(super) fn turn_of(&self, frame: FrameSeq) -> Option<FrameSeq> {
        let after = self.turns.partition_point(|turn| *turn <= frame);
        self.turns.get(after.checked_sub(1)?).copied()
    }
}

impl<'r> Builder<'r> {
    pub(super) fn new(recording: &'r Recording) -> Self {
        let (sessions, residency, held, counted, unknown) = Default::default();
        let media = RequestMedia::new(recording);
        Self { recording, sessions, residency, held, media, counted, unknown }
    }

    pub(super) fn build(mut self, rates: RatesOf<'_>) -> Result<Residency> {
        for exchange in self.recording.exchanges() {
            if exchange.usage.is_some() {
                // A session is taken out while its lines are added to.
                let session = self.sessions.remove(&exchange.session);
                let mut session = session.unwrap_or_else(|| self.count(&exchange.session));
                let done = self.add(exchange, &mut session, &rates(exchange));
                self.sessions.insert(Arc::clone(&exchange.session), session);
                done?;
            }
        }
        for mut session in std::mem::take(&mut self.sessions).into_values() {
            self.settle(&mut session);
        }
        for exchange in self.recording.reported().filter(|exchange| exchange.is_unlisted) {
            self.add_unlisted(exchange, &rates(exchange));
        }
        Ok(self.residency)
    }

    /// Counts the frames of a session, each once.
    fn count(&mut self, name: &Arc<str>) -> Session<'r> {
        let mut session = Session::default();
        let Some(history) = self.recording.history(name) else { return session };
        let frames = history.frames();
        let (mut follower, mut calls) = (FacetCalls::default(), HashMap::new());
        let mut is_answered = true;
        for index in 0..frames.len() {
            let snapshot = frames.snapshot(index).filter(|snapshot| !snapshot.is_empty());
            let Some((frame, snapshot)) = frames.get(index).zip(snapshot) else { continue };
            let of = follower.push(&frame).into_iter();
            calls.extend(of.filter_map(|of| Some((of.facet, of.call?))));
            match frame.source {
                Source::Agent => is_answered = true,
                Source::User if is_answered && !has_result(&frame) && speaks(&frame) => {
                    is_answered = false;
                    session.turns.push(frame.sequence);
                }
                _ => {}
            }
            let start = session.counts.len();
            let counts = self.count_snapshot(name, &mut session, frame.sequence, &snapshot, &calls);
            self.name_files(&session, &frame);
            session.counts.extend(counts);
            session.frames.push((frame.sequence, start..session.counts.len()));
            self.count_media(name, &mut session, &frame, &calls);
        }
        session
    }

    /// Sets the path of each line of a frame.
    fn name_files(&mut self, session: &Session<'_>, frame: &Frame) {
        for facet in frame.added() {
            let Some(path) = facet.attributes.str_at("path") else { continue };
            let line = session.lines.get(&(Some(facet.id.clone()), false)).copied();
            if let Some(line) = line.and_then(|line| self.residency.lines.get_mut(line)) {
                line.path = Some(path.into());
            }
        }
    }

    fn count_snapshot(
        &mut self,
        name: &Arc<str>,
        session: &mut Session<'r>,
        frame: FrameSeq,
        snapshot: &FrameSnapshot,
        calls: &HashMap<FacetId, ToolCall>,
    ) -> Counts {
        let hud = self.recording.hud();
        let counts = hud.tokens_of_chunks(snapshot);
        let turn = session.turn_of(frame);
        let lines = snapshot.chunks().map(|chunk| {
            let facet = chunk.facet_ids().next();
            let call = facet.and_then(|facet| calls.get(facet));
            self.line(session, (facet.map(FacetId::from), false), || ResidencyLine {
                session: Arc::clone(name),
                frame: Some(frame),
                turn,
                chunk_type: chunk.chunk_type().map(Arc::from),
                call: call.cloned(),
                ..ResidencyLine::default()
            })
        });
        lines.zip(counts).collect()
    }

    /// The line of a facet: of its texts, or of its image or document.
    pub(super) fn line(
        &mut self,
        session: &mut Session<'r>,
        of: (Option<FacetId>, bool),
        new: impl FnOnce() -> ResidencyLine,
    ) -> usize {
        *session.lines.entry(of).or_insert_with_key(|(facet, is_media)| {
            let (facet, is_media) = (facet.clone(), *is_media);
            self.residency.lines.push(ResidencyLine { facet, is_media, ..new() });
            self.held.push((0, 0));
            self.held.len() - 1
        })
    }

    /// Brings the layout of a session to a request up to this frame, with these blocks.
    fn lay_out(
        &mut self,
        (name, model): (&Arc<str>, Option<&str>),
        session: &mut Session<'r>,
        to: FrameSeq,
        blocks: &'r [Substitution],
    ) {
        let end = session.frames.partition_point(|(frame, _)| *frame <= to);
        let rule = model.and_then(ImageRule::of);
        let is_same = session.media.is_empty() || session.rule == rule;
        session.rule = rule;
        if is_same && session.layout.takes(to, blocks) {
            let mut counts = Counts::new();
            for index in session.layout.frames..end {
                let Some((frame, range)) = session.frames.get(index) else { break };
                counts.extend(session.counts.get(range.clone()).unwrap_or_default());
                counts.extend(self.media_of_frame(session, *frame, model));
            }
            session.layout.extend(to, end, counts);
            return;
        }
        self.settle(session);
        let frames = session.beside(blocks, end);
        let mut held = Counts::new();
        let none = HashMap::new();
        for item in context_items(frames.into_iter(), blocks) {
            match item {
                ContextItem::Frame(frame) => {
                    held.extend(session.of_frame(frame));
                    held.extend(self.media_of_frame(session, frame, model));
                }
                ContextItem::Block(block) => {
                    let shown = &block.snapshot;
                    held.extend(self.count_snapshot(name, session, block.to, shown, &none));
                }
            }
        }
        session.layout = Layout::new(to, blocks);
        session.layout.extend(to, end, held);
    }

    /// Ends the layout of a session: its lines have what they came to in it.
    fn settle(&mut self, session: &mut Session<'r>) {
        let layout = std::mem::take(&mut session.layout);
        // A line may have several places: a request that holds the first of them holds the line.
        let mut sums: HashMap<usize, (u64, u64)> = HashMap::new();
        for held in layout.held() {
            let (tokens, requests) = sums.entry(held.line).or_default();
            *tokens = tokens.saturating_add(held.tokens);
            *requests = (*requests).max(held.requests);
            self.pay(held.line, held.share);
        }
        for (line, (tokens, requests)) in sums {
            if let Some(line) = self.residency.lines.get_mut(line) {
                line.tokens = line.tokens.max(tokens);
                line.requests += requests;
            }
        }
    }

    /// The parts of a recorded request: those of a message that is a frame are the frame's facets.
    fn parts(
        &mut self,
        exchange: &Exchange,
        request: &Request,
        session: &mut Session<'r>,
    ) -> Result<Counts> {
        // What the provider cleared was not read: nobody is charged for it.
        let cleared = self.recording.cleared(exchange.number)?;
        let counter = Arc::clone(self.recording.hud().counter());
        let mut parts = request.parts();
        parts.sort_by_key(|part| match part.kind {
            PartKind::Tool { .. } => 0,
            PartKind::System { .. } => 1,
            _ => 2,
        });
        let mut held = Counts::new();
        for part in parts {
            let tokens = self.counted.of(request, &part, &*counter);
            let frames = match &part.kind {
                PartKind::Message { index, .. } => {
                    self.recording.frames_of_message(exchange, *index)
                }
                _ => None,
            };
            let frames = frames.or_else(|| part.frame().map(|frame| frame..=frame));
            let mut counts = match &frames {
                Some(frames) => session.of_frames(frames).to_vec(),
                None => Vec::new(),
            };
            if tokens > 0 && counts.iter().all(|(_, count)| *count == 0) {
                held.push((self.line_of_part(&exchange.session, session, &part), tokens));
            } else if tokens > 0 {
                apportion(&mut counts, tokens);
                let gone = cleared.iter().filter(|block| block.frame == part.frame());
                let gone = gone.filter_map(|block| block.facet.clone());
                let gone: Vec<usize> =
                    gone.filter_map(|of| session.lines.get(&(Some(of), false)).copied()).collect();
                held.extend(counts.into_iter().filter(|(line, _)| !gone.contains(line)));
            }
            for item in self.media.of_part(exchange, request, &part) {
                let is_gone = |of: &ClearedBlock| of.facet.is_some() && of.facet == item.facet;
                if cleared.iter().any(is_gone) {
                    continue;
                }
                let facet = item.facet.clone().or_else(|| Some(part.facet_id()));
                let of = (&exchange.session, part.frame(), None);
                let line = self.line_of_media(session, facet, of);
                held.push((line, self.tokens_of(line, &item, exchange.model.as_deref())));
            }
        }
        Ok(held)
    }

    fn line_of_part(
        &mut self,
        name: &Arc<str>,
        session: &mut Session<'r>,
        part: &RequestPart,
    ) -> usize {
        let (kind, tool) = match &part.kind {
            PartKind::Tool { name, .. } => (FacetType::TOOL.as_str(), Some(name.as_str())),
            PartKind::System { .. } => ("system", None),
            _ => ("message", None),
        };
        let turn = part.frame().and_then(|frame| session.turn_of(frame));
        self.line(session, (Some(part.facet_id()), false), || ResidencyLine {
            session: Arc::clone(name),
            frame: part.frame(),
            turn,
            chunk_type: Some(kind.into()),
            call: tool.map(|tool| ToolCall { tool: tool.into(), ..ToolCall::default() }),
            is_definition: tool.is_some(),
            ..ResidencyLine::default()
        })
    }

    fn add(
        &mut self,
        exchange: &Exchange,
        session: &mut Session<'r>,
        rates: &[TokenRates],
    ) -> Result<()> {
        let Some(usage) = &exchange.usage else { return Ok(()) };
        self.begin(usage);
        let runs = runs(usage);
        // Where nothing is lacking, tools have lines too.
        let is_lacking = !exchange.has_whole_request();
        let in_force = self.recording.in_force(exchange.number).filter(|_| is_lacking);
        let lacking = match in_force {
            Some(_) => Remainder::NotInTranscript,
            None => Remainder::NotCounted,
        };
        for (at, run) in runs.iter().enumerate() {
            let rates = rates.get(at);
            let (mut input, beyond) = ReportedInput::of(run);
            self.residency.add_remainder(Remainder::BeyondInput, beyond);
            if at > 0 {
                // The provider replaced the request by a summary, which ran again.
                let share = input.take(input.left()).at(rates);
                self.residency.add_remainder(lacking, share);
                continue;
            }
            let (counted, whole);
            let mut held = None;
            if let Some((to, blocks)) = in_force {
                let of = (&exchange.session, exchange.model.as_deref());
                self.lay_out(of, session, to, blocks);
                session.layout.hold();
                (counted, whole) = (session.layout.tokens(), input.left());
            } else {
                let request = self.recording.request(exchange.number)?;
                let parts = self.parts(exchange, &request, session)?;
                parts.iter().for_each(|(line, tokens)| self.note_held(*line, *tokens));
                (counted, whole) = (sum(&parts), input.left());
                held = Some(parts);
            }
            let share = input.take(whole.saturating_sub(counted)).at(rates);
            self.residency.add_remainder(lacking, share);
            if counted > whole {
                let (requests, tokens) = &mut self.residency.overcounted;
                (*requests, *tokens) = (*requests + 1, tokens.saturating_add(counted - whole));
                held.iter_mut().for_each(|held| apportion(held, whole));
            }
            match held {
                Some(held) => held.into_iter().for_each(|(line, tokens)| {
                    self.pay(line, input.take(tokens).at(rates));
                }),
                None if counted > whole => session.layout.pay_scaled(&mut input, rates),
                None => session.layout.pay(&mut input, rates, |line, share| self.pay(line, share)),
            }
        }

        let frames = exchange.answer_frames.iter();
        let mut answer: Counts =
            frames.flat_map(|frame| session.of_frame(*frame)).copied().collect();
        let mut output = ReportedOutput::of(runs, rates);
        let (counted, whole) = (sum(&answer), output.left());
        if counted > whole {
            apportion(&mut answer, whole);
        }
        for (line, tokens) in answer {
            if let Some(line) = self.residency.lines.get_mut(line) {
                line.tokens = line.tokens.max(tokens);
            }
            self.pay(line, output.take(tokens));
        }
        self.residency.add_remainder(Remainder::OutputNotKept, output.take(output.left()));
        Ok(())
    }

    fn add_unlisted(&mut self, exchange: &Exchange, rates: &[TokenRates]) {
        let Some(usage) = &exchange.usage else { return };
        self.begin(usage);
        for (at, run) in runs(usage).iter().enumerate() {
            let (mut input, beyond) = ReportedInput::of(run);
            let share = Share { output: run.output.unwrap_or(0), ..input.take(input.left()) };
            self.residency.add_remainder(Remainder::BeyondInput, beyond);
            self.residency.add_remainder(Remainder::Unlisted, share.at(rates.get(at)));
        }
    }

    fn begin(&mut self, usage: &Usage) {
        self.residency.exchanges += 1;
        self.residency.incomplete += u64::from(!usage.is_whole());
    }

    fn note_held(&mut self, line: usize, tokens: u64) {
        let Some(line_held) = self.held.get_mut(line) else { return };
        let Some(line) = self.residency.lines.get_mut(line) else { return };
        let (exchange, held) = line_held;
        if *exchange != self.residency.exchanges {
            (*exchange, *held) = (self.residency.exchanges, 0);
            line.requests += 1;
        }
        *held = held.saturating_add(tokens);
        line.tokens = line.tokens.max(*held);
    }

    fn pay(&mut self, line: usize, share: Share) {
        if let Some(line) = self.residency.lines.get_mut(line) {
            line.share = line.share.plus(share);
        }
    }
}

/// Whether a frame of the user says anything that is not all of programs, such as a hook's feedback.
fn speaks(frame: &Frame) -> bool {
    words_in(frame).is_some() || !frame.added().any(is_words)
}

/// Whether a frame holds a result: some providers have results in messages of the user.
fn has_result(frame: &Frame) -> bool {
    frame.ops.iter().any(|op| match &op.change {
        FacetChange::Add(facet) => facet.is_result(),
        _ => false,
    })
}

/// What the model was run for. Runs that contradict their sums are not told apart.
fn runs(usage: &Usage) -> &[Usage] {
    if usage.unreadable.is_empty() { usage.runs() } else { std::slice::from_ref(usage) }
}

fn sum(counts: &[(usize, u64)]) -> u64 {
    counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}
