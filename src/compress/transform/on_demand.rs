use std::{fmt, ops::RangeInclusive, sync::Arc};

use super::{
    CompressionTransform,
    range::{Covers, PlannedRange, RangeState},
};
use crate::{
    Error, ErrorKind, Result, compress::walk::runs, id::FrameSeq, snapshot::check_range,
    veil::History,
};

/// What compression of a range on demand takes, and what it leaves as it is.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePlan {
    /// The runs of frames that one block each is to stand for, in order.
    pub goes: Vec<RangeInclusive<FrameSeq>>,
    /// The frames that stay as they are, in order.
    pub stays: Vec<StayingFrames>,
    /// The tokens of what goes: the sum over chunks.
    pub tokens: u64,
    /// What the summaries may have of them.
    pub limit: u64,
}

/// Frames that stay, with why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StayingFrames {
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// Why.
    pub reason: StayReason,
}

/// Why frames of a range cannot be compressed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StayReason {
    /// They hold the operator's words or a pinned facet.
    Pinned,
    /// They hold the user's first message or last instruction.
    UserWords,
    /// They part a call from its result.
    PartsCall,
    /// This block stands for them already.
    InBlock(Arc<str>),
    /// This range holds them, and is not in effect yet.
    Planned(Arc<str>),
    /// They are on a branch that the session left.
    OtherBranch,
    /// The history has forgotten them, or they have no snapshot.
    NotCaptured,
    /// There is no text in them.
    NoText,
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned => f.write_str("the operator's words or a pinned facet"),
            Self::UserWords => f.write_str("the user's first message or last instruction"),
            Self::PartsCall => {
                f.write_str("a call whose result is outside, or the other way round")
            }
            Self::InBlock(id) => write!(f, "the block {id} stands for them"),
            Self::Planned(id) => write!(f, "the range {id} waits for its summary"),
            Self::OtherBranch => f.write_str("another branch of the session"),
            Self::NotCaptured => f.write_str("no snapshot"),
            Self::NoText => f.write_str("no text"),
        }
    }
}

impl fmt::Display for StayingFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, reason } = self;
        if from == to { write!(f, "{from}") } else { write!(f, "{from} to {to}") }?;
        write!(f, " ({reason})")
    }
}

impl CompressionTransform {
    /// Plans a range of the caller's own, whatever the water marks and however new its frames are.
    /// Each run of frames in it that may go becomes one range, which
    /// [`CompressionTransform::next_job`] hands out: closed under calls and results, without the
    /// operator's words and pinned facets.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     compress::CompressionTransform, hud::Hud, id::{FacetType, Millis}, tokens::Chars4,
    ///     veil::{Facet, FacetOp, Frame, History, Source},
    /// };
    ///
    /// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
    /// for n in 0..6_u64 {
    ///     let said = Facet::new(format!("said-{n}"), FacetType::EVENT, "calm ".repeat(90));
    ///     hud.capture(&mut history, Frame::new(n, Source::User).with(FacetOp::add(said)), now)?;
    /// }
    /// let mut transform = CompressionTransform::default();
    /// let plan = transform.compress_range(&history, 2.into()..=4.into())?;
    /// assert_eq!(plan.goes, [2.into()..=4.into()]);
    /// let job = transform.next_job(&history, now)?.unwrap();
    /// assert_eq!(&*job.id, "block-2-4");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// Cost: as [`CompressionTransform::preview_range`].
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where all frames of the range stay: the message says which, and why.
    /// [`ErrorKind::OutOfRange`] where the range runs backwards or the history has no frame in it,
    /// and those of [`CompressionTransform::plan`]. Nothing is planned then.
    pub fn compress_range(
        &mut self,
        history: &History,
        range: RangeInclusive<FrameSeq>,
    ) -> Result<RangePlan> {
        let plan = self.preview_range(history, range.clone())?;
        if plan.goes.is_empty() {
            let stays: Vec<String> = plan.stays.iter().map(ToString::to_string).collect();
            let message = format!(
                "no frame from {} to {} can be compressed: {}",
                range.start(),
                range.end(),
                stays.join(", ")
            );
            let error = Error::new(ErrorKind::Conflict, message);
            return Err(error.at_frame(range.start().get()));
        }
        plan.goes.iter().for_each(|run| self.schedule_run(run));
        Ok(plan)
    }

    /// Plans a run of frames that may go.
    fn schedule_run(&mut self, run: &RangeInclusive<FrameSeq>) {
        let (from, to) = (*run.start(), *run.end());
        let frames = self.walk.within(from, to);
        let tokens = self.tokens_within(&frames);
        let id = format!("block-{from}-{to}").into();
        let range = PlannedRange {
            limit: self.options.block_limit(tokens),
            seen: self.walk.steps().len(),
            ..PlannedRange::waiting(id, Covers::Frames(frames.clone()), 1, tokens)
        };
        self.give_up(from, to);
        if frames.end > self.front {
            self.taken.insert(frames.start, frames.end);
        }
        self.schedule(range);
    }

    /// Whether an engine answered after it had failed.
    pub(crate) fn has_recovered(&self) -> bool {
        self.ranges.iter().any(|range| range.state == RangeState::Ready && range.tried > 1)
    }

    /// Plans frames that were left out, as far as summaries of so many tokens have room for them; says
    /// whether there are any. Those of a range that failed are tried again with it. Costs as much as
    /// [`CompressionTransform::preview_range`] for each of the ranges.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::preview_range`].
    pub(crate) fn plan_left_out(
        &mut self,
        history: &History,
        ranges: Vec<RangeInclusive<FrameSeq>>,
        mut room: u64,
    ) -> Result<bool> {
        let before = self.ranges.len();
        for range in ranges {
            let plan = self.preview_range(history, range)?;
            let has_failed = |run: &RangeInclusive<FrameSeq>| {
                let failed = self.ranges.iter();
                let mut failed = failed.filter(|of| matches!(of.state, RangeState::Failed { .. }));
                failed.any(|of| self.meets(of, *run.start(), *run.end()))
            };
            let goes: Vec<_> = plan.goes.iter().filter(|run| !has_failed(run)).collect();
            let fits = plan.limit <= room && plan.limit > 0;
            if fits && !goes.is_empty() {
                room -= plan.limit;
                goes.into_iter().for_each(|run| self.schedule_run(run));
            }
        }
        Ok(self.ranges.len() > before)
    }

    /// What [`CompressionTransform::compress_range`] would do. Plans nothing.
    ///
    /// Cost: O(frames of the range), and frames that are new to the transform.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::compress_range`], but for [`ErrorKind::Conflict`].
    pub fn preview_range(
        &mut self,
        history: &History,
        range: RangeInclusive<FrameSeq>,
    ) -> Result<RangePlan> {
        check_range(&range)?;
        self.look(history)?;
        let frames = history.frames();
        let asked = frames.first_from(*range.start())..frames.first_after(*range.end());
        if asked.is_empty() {
            let message =
                format!("the history has no frame from {} to {}", range.start(), range.end());
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        let steps = self.walk.steps();
        let mut reasons: Vec<Option<StayReason>> =
            asked.clone().map(|at| self.stays(history, at)).collect();
        // Of each run between frames that stay, the part goes that holds calls with their results.
        let is_closed =
            |at: usize| at.checked_sub(1).is_none_or(|before| super::cut::is_closed(steps, before));
        let mut plan = RangePlan { goes: Vec::new(), stays: Vec::new(), tokens: 0, limit: 0 };
        for run in runs(&reasons, asked.start, Option::is_none) {
            let start = run.clone().find(|at| is_closed(*at)).unwrap_or(run.end);
            let end = (start..=run.end).rev().find(|at| is_closed(*at)).unwrap_or(start);
            let mut keep = |at: usize, why: StayReason| {
                if let Some(reason) = reasons.get_mut(at - asked.start) {
                    *reason = Some(why);
                }
            };
            let parted = (run.start..start).chain(end..run.end);
            parted.for_each(|at| keep(at, StayReason::PartsCall));
            let tokens = self.tokens_within(&(start..end));
            if tokens == 0 {
                (start..end).for_each(|at| keep(at, StayReason::NoText));
            }
            let ends = steps.get(start..end).and_then(|steps| steps.first().zip(steps.last()));
            if let Some((first, last)) = ends.filter(|_| tokens > 0) {
                plan.goes.push(first.sequence..=last.sequence);
                plan.tokens = plan.tokens.saturating_add(tokens);
                plan.limit = plan.limit.saturating_add(self.options.block_limit(tokens));
            }
        }
        for (at, reason) in (asked.start..).zip(reasons) {
            let (Some(reason), Some(frame)) = (reason, frames.sequence(at)) else { continue };
            match plan.stays.last_mut() {
                // Frames that go lie between those of another run.
                Some(last)
                    if last.reason == reason
                        && at.checked_sub(1).and_then(|at| frames.sequence(at))
                            == Some(last.to) =>
                {
                    last.to = frame;
                }
                _ => plan.stays.push(StayingFrames { from: frame, to: frame, reason }),
            }
        }
        Ok(plan)
    }

    /// Why the frame at this index stays whatever goes around it, if it does.
    fn stays(&self, history: &History, at: usize) -> Option<StayReason> {
        let Some(step) = self.walk.steps().get(at) else { return Some(StayReason::NotCaptured) };
        if let Some(block) = self.block_over(step.sequence) {
            return Some(StayReason::InBlock(Arc::clone(&block.id)));
        }
        if history.frames().is_forgotten(at) {
            return Some(StayReason::NotCaptured);
        }
        if step.stays {
            return Some(StayReason::Pinned);
        }
        if step.is_task || self.walk.instruction() == Some(at) {
            return Some(StayReason::UserWords);
        }
        if step.is_fixed() {
            return Some(StayReason::OtherBranch);
        }
        let open = self.pending.iter().chain(self.under_way.keys()).chain(self.ready.keys());
        let holds = |range: &&PlannedRange| matches!(&range.covers, Covers::Frames(frames) if frames.contains(&at));
        let mut open = open.filter_map(|number| self.ranges.get(*number).filter(holds));
        open.next().map(|range| StayReason::Planned(Arc::clone(&range.id)))
    }

    /// The tokens of these frames.
    pub(super) fn tokens_within(&self, frames: &std::ops::Range<usize>) -> u64 {
        let steps = self.walk.steps().get(frames.clone()).unwrap_or_default();
        steps.iter().fold(0, |sum, step| sum.saturating_add(step.tokens))
    }
}
