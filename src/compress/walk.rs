use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::{NetOps, Passage, Unit, net, unit::Units};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetId, FacetType, FrameSeq, Role},
    snapshot::{ChunkRef, FrameSnapshot, PartRef},
    steps::WordPlaces,
    veil::{Facet, Frame, Frames, History, Veil},
};

/// The frames of a history as compression sees them, walked once.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    steps: Vec<Step>,
    units: Units,
    veil: Veil,
    /// How far `veil` has been led.
    led: usize,
    /// How often the history had forgotten something when it was looked at.
    forgets: u64,
    words: WordPlaces,
    /// Whether the user's first message stays.
    keeps_words: bool,
}

/// A frame, without its text.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) sequence: FrameSeq,
    pub(crate) tokens: u64,
    pub(crate) role: Role,
    /// Whether it stays as it is: the operator's words, and pinned facets.
    pub(crate) stays: bool,
    /// Whether every call before the end of the frame has its result by then, or gets none.
    pub(crate) is_closed: bool,
    /// The first frame with a call that a result in this one answers.
    answers: Option<usize>,
    /// The frame of the command in the agent's text that this one answers.
    pub(super) command: Option<usize>,
    /// The same, if it holds nothing else.
    output_of: Option<usize>,
    /// Whether the agent may ask for something in its text, which a program answers in the user's
    /// place.
    pub(super) may_ask: bool,
    /// Whether it is the user's first message, which is shortened and never replaced.
    pub(crate) is_task: bool,
    standing: Standing,
}

/// What stands for a frame, blocks of summaries aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Itself,
    /// The block of an imported compaction.
    Imported,
    /// Nothing: it is on a branch that the session left.
    Outside,
}

impl Step {
    /// Whether no range may hold it.
    pub(super) fn is_fixed(&self) -> bool {
        self.stays || self.standing != Standing::Itself
    }

    /// A frame that was forgotten: nobody asks for more of it than where it is.
    fn forgotten(sequence: FrameSeq) -> Self {
        let (standing, is_task) = (Standing::Itself, false);
        let (role, stays, is_closed) = (Role::User, false, true);
        let (answers, command, output_of) = (None, None, None);
        Self {
            sequence,
            tokens: 0,
            role,
            stays,
            is_closed,
            answers,
            command,
            output_of,
            may_ask: false,
            is_task,
            standing,
        }
    }

    /// Whether it is on a branch that the session left.
    pub(crate) fn is_outside(&self) -> bool {
        self.standing == Standing::Outside
    }

    #[cfg(test)]
    pub(super) fn sample(sequence: u64, stays: bool, is_closed: bool) -> Self {
        Self { tokens: 1, stays, is_closed, ..Self::forgotten(sequence.into()) }
    }
}

impl Walk {
    /// A walk that leaves the user's first message alone, if `keeps_words`.
    pub(super) fn new(keeps_words: bool) -> Self {
        Self { keeps_words, ..Self::default() }
    }

    /// Looks at the frames that were not there before, up to the first that has no snapshot. Runs in
    /// time proportional to their chunks.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the history is not the one that was walked before.
    pub(super) fn follow(&mut self, history: &History) -> Result<()> {
        self.follow_to(history, history.frames().len())
    }

    /// As [`Walk::follow`], but no further than the frame at `end`.
    ///
    /// # Errors
    /// Those of [`Walk::follow`].
    pub(super) fn follow_to(&mut self, history: &History, end: usize) -> Result<()> {
        if self.forgets != history.forgets() {
            self.forgets = history.forgets();
            history.refresh(&mut self.veil);
        }
        let frames = history.frames();
        let last = self.steps.len().checked_sub(1);
        let known = last.map(|last| (self.steps.get(last), frames.sequence(last)));
        if let Some((Some(step), sequence)) = known
            && sequence != Some(step.sequence)
        {
            let message = format!(
                "expected the history that was planned up to frame {}, found another",
                step.sequence
            );
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        let new = self.steps.len()..end.min(frames.len()).max(self.steps.len());
        for (index, frame) in new.clone().zip(frames.slice(new)) {
            let Some(snapshot) = &frame.rendered_snapshot else {
                if frames.is_forgotten(index) {
                    self.steps.push(Step::forgotten(frame.sequence));
                    continue;
                }
                break;
            };
            let mut step = self.step(index, &frame, snapshot, history);
            let words = self.words.read(index, &frame.source, snapshot);
            let is_first = words.of_user && self.words.first() == Some(index);
            step.is_task = self.keeps_words && is_first;
            step.may_ask = step.role == Role::Assistant && self.words.may_hold_commands();
            step.command = words.command;
            step.output_of = words.command.filter(|_| words.is_output);
            self.steps.push(step);
            if history.pairs().went_on_at(index) {
                self.give_up_calls(index, history);
            }
        }
        self.units.follow(&self.steps);
        Ok(())
    }

    /// The agent goes on at `end`: calls of the turn before that wait hold nothing open any more.
    /// Linear in the frames since nothing waited.
    fn give_up_calls(&mut self, end: usize, history: &History) {
        let before = self.steps.get(..end).unwrap_or_default();
        let start = before.iter().rposition(|step| step.is_closed).map_or(0, |last| last + 1);
        let mut waiting = vec![0_i64; end - start];
        let mut count = |sequence: FrameSeq, by: i64| {
            let at = self.first_from(sequence);
            if let Some(count) = at.checked_sub(start).and_then(|at| waiting.get_mut(at)) {
                *count += by;
            }
        };
        for step in self.steps.get(start..end).unwrap_or_default() {
            let pairs = history.pairs().in_frame(step.sequence).iter();
            for pair in pairs.filter(|pair| pair.in_time) {
                count(pair.call.frame, 1);
                count(pair.result.frame, -1);
            }
        }
        let mut open = 0;
        let turn = self.steps.get_mut(start..end).unwrap_or_default();
        for (step, change) in turn.iter_mut().zip(waiting) {
            open += change;
            step.is_closed = open == 0;
        }
        self.units.forget(start);
    }

    fn step(
        &self,
        index: usize,
        frame: &Frame,
        snapshot: &FrameSnapshot,
        history: &History,
    ) -> Step {
        let role = snapshot.chunks().find_map(|chunk| chunk.role()).unwrap_or(Role::User);
        let pairs = history.pairs().in_frame(frame.sequence).iter().filter(|pair| pair.in_time);
        let answers = pairs.map(|pair| pair.call.frame).min();
        let answers = answers.map(|call| self.first_from(call));
        let added = added_that_stay(frame);
        let is_pinned = |id: &str| {
            history.veil().at_hand(id).is_some_and(|facet| stays(facet)) || added.contains(id)
        };
        let stays =
            role == Role::System || snapshot.chunks().any(|chunk| chunk.facet_ids().any(is_pinned));
        let is_closed = history.pairs().waiting_after(index) == 0;
        let tokens = snapshot.total_tokens();
        Step { tokens, role, stays, is_closed, answers, ..Step::forgotten(frame.sequence) }
    }

    /// The frames that stay as they are, in runs, by their indices.
    pub(super) fn staying(&self) -> Vec<Range<usize>> {
        self.runs_of(|step| step.stays)
    }

    /// The frames that imported blocks stand for, in runs, by their indices.
    pub(super) fn imported(&self) -> Vec<Range<usize>> {
        self.runs_of(|step| step.standing == Standing::Imported)
    }

    fn runs_of(&self, is_one: impl Fn(&Step) -> bool) -> Vec<Range<usize>> {
        runs(&self.steps, 0, is_one)
    }

    /// Sets what was known of the frames when they were looked at first: which stay may depend on
    /// the facets that held then.
    pub(super) fn restore(
        &mut self,
        stays: &[Range<usize>],
        imported: &[Range<usize>],
        outside: &[Range<usize>],
    ) {
        self.units.forget(0);
        for step in &mut self.steps {
            (step.stays, step.standing) = (false, Standing::Itself);
        }
        let mut set = |ranges: &[Range<usize>], change: fn(&mut Step)| {
            for frames in ranges {
                let steps = self.steps.get_mut(frames.clone()).unwrap_or_default();
                steps.iter_mut().for_each(change);
            }
        };
        set(stays, |step| step.stays = true);
        set(imported, |step| step.standing = Standing::Imported);
        set(outside, |step| step.standing = Standing::Outside);
        self.units.follow(&self.steps);
    }

    /// Whether the history has forgotten one of the frames.
    pub(super) fn forgotten(&self, frames: &Frames<'_>) -> bool {
        self.forgets > 0 && (0..self.steps.len()).any(|at| frames.is_forgotten(at))
    }

    /// The index of the user's first message, where it is kept apart.
    pub(super) fn task(&self) -> Option<usize> {
        self.words.first().filter(|_| self.keeps_words)
    }

    /// The index of the user's last instruction, where it is kept apart.
    pub(super) fn instruction(&self) -> Option<usize> {
        self.words.last().filter(|_| self.keeps_words)
    }

    /// Whether a frame holds words of the user.
    pub(super) fn is_words(&self, index: usize) -> bool {
        self.words.holds(index)
    }

    /// The frame of the command in the agent's text that a frame answers, if it holds nothing else.
    pub(super) fn command_answered(&self, index: usize) -> Option<usize> {
        self.steps.get(index)?.output_of
    }

    /// Whether a block of blocks may take a frame in as it is.
    pub(super) fn may_go(&self, index: usize) -> bool {
        let is_apart =
            |step: &Step| step.is_fixed() || step.is_task || self.instruction() == Some(index);
        self.steps.get(index).is_some_and(|step| !is_apart(step))
    }

    /// An imported block stands for these frames from now on.
    pub(super) fn take(&mut self, frames: Range<usize>) {
        self.units.forget(frames.start);
        for step in self.steps.get_mut(frames).unwrap_or_default() {
            if step.standing == Standing::Itself {
                step.standing = Standing::Imported;
            }
        }
        self.units.follow(&self.steps);
    }

    /// Nothing stands for the frames from this one on any more, but that some of them are on branches
    /// which the session left.
    pub(super) fn release(&mut self, from: usize, outside: &[Range<usize>]) {
        self.units.forget(from);
        for step in self.steps.get_mut(from..).unwrap_or_default() {
            step.standing = Standing::Itself;
        }
        for frames in outside {
            let steps = self.steps.get_mut(frames.clone()).unwrap_or_default();
            steps.iter_mut().for_each(|step| step.standing = Standing::Outside);
        }
        self.units.follow(&self.steps);
    }

    /// The runs of these frames that the block of a compaction may stand for.
    pub(super) fn runs(&self, frames: Range<usize>) -> Vec<Range<usize>> {
        let steps = self.steps.get(frames.clone()).unwrap_or_default();
        let is_apart = |step: &Step| step.stays || step.standing == Standing::Outside;
        runs(steps, frames.start, |step| !is_apart(step))
    }

    /// The last end up to `end` at which frames from `start` on hold each call with its result.
    pub(super) fn whole_end(&self, start: usize, mut end: usize) -> usize {
        let is_closed = |end: usize| {
            end.checked_sub(1).and_then(|last| self.steps.get(last)).is_none_or(|of| of.is_closed)
        };
        while end > start && !is_closed(end) {
            let after = self.steps.get(end..).unwrap_or_default();
            // What comes after the next moment at which nothing waits answers nothing of before.
            let until =
                after.iter().position(|step| step.is_closed).map_or(after.len(), |at| at + 1);
            let answers = after.iter().take(until).filter_map(|step| step.answers);
            match answers.filter(|call| *call < end).min() {
                Some(call) => end = call.max(start),
                None => break,
            }
        }
        end
    }

    /// The first start from `start` on at which frames up to `end` hold no result of a call before
    /// them.
    pub(super) fn whole_start(&self, mut start: usize, end: usize) -> usize {
        loop {
            let parted = |step: &Step| step.answers.is_some_and(|call| call < start);
            let inside = self.steps.get(start..end).unwrap_or_default();
            match inside.iter().rposition(parted) {
                Some(at) => start += at + 1,
                None => return start,
            }
        }
    }

    /// Whether these frames hold a call or a result.
    pub(super) fn has_exchange(&self, history: &History, frames: Range<usize>) -> Result<bool> {
        let is_half = |chunk: ChunkRef<'_>| {
            matches!(chunk.part(), PartRef::Call { .. } | PartRef::Result { .. })
        };
        let passages = self.passages(history, frames)?;
        Ok(passages.iter().any(|passage| passage.snapshot.chunks().any(is_half)))
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The index of the first frame that is not before this one.
    pub(super) fn first_from(&self, frame: FrameSeq) -> usize {
        self.steps.partition_point(|step| step.sequence < frame)
    }

    /// The index of the first frame after this one.
    pub(super) fn first_after(&self, frame: FrameSeq) -> usize {
        self.steps.partition_point(|step| step.sequence <= frame)
    }

    /// The indices of the frames from one to another, both within.
    pub(super) fn within(&self, from: FrameSeq, to: FrameSeq) -> Range<usize> {
        self.first_from(from)..self.first_after(to)
    }

    pub(super) fn units(&self) -> &[Unit] {
        self.units.all()
    }

    /// The frames with these indices as passages.
    pub(super) fn passages(&self, history: &History, frames: Range<usize>) -> Result<Vec<Passage>> {
        let steps = self.steps.get(frames.clone()).unwrap_or_default();
        let passage = |(step, index): (&Step, usize)| {
            let passage = Passage::of_frame(history, index, step.role);
            passage.ok_or_else(|| not_captured(step.sequence))
        };
        let shown = |passage: &Result<Passage>| {
            passage.as_ref().map_or(true, |passage| !passage.snapshot.is_empty())
        };
        steps.iter().zip(frames).map(passage).filter(shown).collect()
    }

    /// What the ops of these frames come to. Where that depends on what held before them, the frames
    /// before are led through once, front to back.
    ///
    /// # Errors
    /// Those of [`Veil::apply`].
    pub(super) fn net_ops(&mut self, history: &History, frames: Range<usize>) -> Result<NetOps> {
        history.expect_known(frames.clone())?;
        if let Some(ops) = net::of_frames(history, frames.clone()) {
            return Ok(ops);
        }
        let all = history.frames();
        let (from, veil) = history.veil_before(frames.start);
        if frames.start < self.led || self.led < from {
            (self.led, self.veil) = (from, veil.clone());
        }
        history.expect_known(self.led..frames.end)?;
        let before = self.led..frames.start;
        for (index, frame) in before.clone().zip(all.slice(before)) {
            history.lead(&mut self.veil, index, &frame)?;
        }
        let ops = net::lead(&mut self.veil, history, frames.clone())?;
        self.led = frames.end;
        Ok(ops)
    }
}

/// Whether compression leaves a facet alone.
fn stays(facet: &Facet) -> bool {
    facet.facet_type == FacetType::SYSTEM
        || facet.saliency.as_ref().is_some_and(|saliency| saliency.pinned)
}

/// The facets that stay of those that the frame adds, with those inside of them. Where an id is
/// added several times, the last addition counts, and the outermost facet of it.
///
/// Runs in time proportional to the facets, once for all chunks of the frame.
fn added_that_stay(frame: &Frame) -> HashSet<&str> {
    // Most frames pin nothing.
    if !frame.added().any(has_one_that_stays) {
        return HashSet::new();
    }
    let mut last: HashMap<&FacetId, bool> = HashMap::new();
    for facet in frame.added() {
        let mut of_facet = HashMap::new();
        note(facet, &mut of_facet);
        last.extend(of_facet);
    }
    last.into_iter().filter_map(|(id, stays)| stays.then_some(id.as_str())).collect()
}

/// Whether the facet stays, or one inside of it.
fn has_one_that_stays(facet: &Facet) -> bool {
    #[cfg(test)]
    tests::look();
    stays(facet) || facet.children.iter().any(has_one_that_stays)
}

/// Notes for the facet and those inside of it whether they stay; the outermost of an id counts.
fn note<'f>(facet: &'f Facet, noted: &mut HashMap<&'f FacetId, bool>) {
    #[cfg(test)]
    tests::look();
    noted.entry(&facet.id).or_insert_with(|| stays(facet));
    facet.children.iter().for_each(|child| note(child, noted));
}

/// The runs of items for which something holds, by their indices; the first item is at `start`.
pub(super) fn runs<T>(items: &[T], start: usize, holds: impl Fn(&T) -> bool) -> Vec<Range<usize>> {
    let (mut end, mut found) = (start, Vec::new());
    for run in items.chunk_by(|a, b| holds(a) == holds(b)) {
        let from = end;
        end += run.len();
        if run.first().is_some_and(&holds) {
            found.push(from..end);
        }
    }
    found
}

fn not_captured(frame: FrameSeq) -> Error {
    let message = "expected a captured frame, found one without a snapshot";
    Error::new(ErrorKind::Shape, message).at_frame(frame.get())
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use super::*;
    use crate::{
        id::{ChunkType, Millis},
        snapshot::{FrameSnapshotBuilder, RenderedChunk},
        tokens::Chars4,
        veil::{FacetOp, Saliency, Source},
    };

    thread_local! {
        static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts a facet that is looked at.
    pub(super) fn look() {
        LOOKED.set(LOOKED.get() + 1);
    }

    /// A frame of so many facets, one chunk each. The last is pinned, if any is.
    fn history(facets: usize, is_pinned: bool) -> History {
        let mut frame = Frame::new(0, Source::User);
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        for number in 0..facets {
            let mut facet = Facet::new(format!("f{number}"), FacetType::EVENT, "a");
            if is_pinned && number + 1 == facets {
                facet.saliency = Some(Saliency { pinned: true, ..Saliency::default() });
            }
            builder.add_chunk(RenderedChunk {
                content: "a".to_owned(),
                facet_ids: Some([facet.id.clone()].into_iter().collect()),
                chunk_type: Some(ChunkType::EVENT),
                role: Some(Role::User),
                ..RenderedChunk::default()
            });
            frame = frame.with(FacetOp::add(facet));
        }
        // What stays is gone from the veil by the end: the frame's own additions say so.
        frame.rendered_snapshot = Some(Arc::new(builder.build(Millis::new(0))));
        let mut history = History::new();
        history.push(frame).unwrap();
        let mut last = Frame::new(1, Source::User);
        for number in 0..facets {
            last = last.with(FacetOp::remove(format!("f{number}")));
        }
        last.rendered_snapshot =
            Some(Arc::new(FrameSnapshotBuilder::new(&Chars4).build(Millis::new(0))));
        history.push(last).unwrap();
        history
    }

    #[test]
    fn a_frame_of_many_facets_is_walked_in_proportion_to_its_facets() {
        for is_pinned in [false, true] {
            for facets in [10, 100, 1_000] {
                let history = history(facets, is_pinned);
                LOOKED.set(0);
                let mut walk = Walk::default();
                walk.follow(&history).unwrap();
                assert_eq!(walk.steps()[0].stays, is_pinned);
                let looked = LOOKED.get();
                assert!((facets..=2 * facets).contains(&looked), "{looked} looks at {facets}");
            }
        }
    }
}
