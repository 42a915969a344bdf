//! The policy of Codex: a summary stands for everything but what the user said.

use std::sync::Arc;

use super::{
    dropping::{gap, is_of_user},
    keeper::Asking,
};
use crate::{
    Result,
    compress::{CompressionJob, CompressionTransform, Engine, Passage, Unit},
    hud::RenderedContext,
    id::{FacetType, Role},
    snapshot::{Substitution, SubstitutionKind},
    veil::Facet,
    window::DroppedFrames,
};

/// A summary may have so much of the room: one in.
const SUMMARY: u64 = 8;
/// What a summary may have at least, in tokens.
const LEAST_SUMMARY: u64 = 64;

/// The summary, and what the user said.
#[derive(Debug)]
pub(super) struct KeepUser {
    most: u64,
    /// What stands for the frames that were summarised.
    gaps: Vec<Substitution>,
    dropped: Arc<Vec<DroppedFrames>>,
    /// The summary, and the first frame after what it stands for.
    summary: Option<Passage>,
    end: usize,
    /// Why the last summary failed.
    failed: Vec<(Arc<str>, String)>,
}

impl KeepUser {
    pub(super) fn new(most: u64) -> Self {
        let (gaps, dropped, summary, end, failed) = Default::default();
        Self { most, gaps, dropped, summary, end, failed }
    }

    /// What the summary stands for.
    pub(super) fn dropped(&self) -> Arc<Vec<DroppedFrames>> {
        Arc::clone(&self.dropped)
    }

    /// The summaries that failed, each with why.
    pub(super) fn failed(&self) -> &[(Arc<str>, String)] {
        &self.failed
    }

    /// The context that fits, and whether it has a new summary; `None` where what stays does not.
    pub(super) fn render(
        &mut self,
        asking: &Asking<'_>,
        transform: &CompressionTransform,
        engine: &dyn Engine,
    ) -> Result<Option<(RenderedContext, bool)>> {
        let context = asking.render(&self.gaps)?;
        if context.tokens().total <= asking.room {
            return Ok(Some((context, false)));
        }
        // The last unit is what the agent is to answer.
        let units = transform.units();
        let old = units.split_last().map_or(units, |(_, old)| old);
        let is_new = old.last().is_some_and(|last| last.range().end > self.end);
        if is_new {
            self.summarise(asking, old, engine)?;
        }
        let mut most = self.most.min(asking.room / 2);
        loop {
            self.keep((asking, transform), old, most);
            let context = asking.render(&self.gaps)?;
            if context.tokens().total <= asking.room {
                return Ok(Some((context, is_new)));
            }
            // Where even that is too much, less of the user's words stays, and then no summary.
            if most == 0 && self.summary.take().is_none() {
                return Ok(None);
            }
            most = if most < LEAST_SUMMARY { 0 } else { most / 2 };
        }
    }

    /// Summarises what came since the last summary, and that summary.
    fn summarise(&mut self, asking: &Asking<'_>, old: &[Unit], engine: &dyn Engine) -> Result<()> {
        let Asking { hud, history, room, now, .. } = *asking;
        let frames = history.frames();
        let from = self.end;
        self.end = old.last().map_or(from, |last| last.range().end);
        let new = old.iter().flat_map(Unit::range).filter(|index| *index >= from);
        let new = new.filter_map(|index| {
            let role = frames.snapshot(index)?.chunks().find_map(|chunk| chunk.role());
            Passage::of_frame(history, index, role.unwrap_or(Role::User))
        });
        let passages: Vec<Passage> = self.summary.take().into_iter().chain(new).collect();
        let limit = (room / SUMMARY).max(LEAST_SUMMARY);
        let job = CompressionJob::new(passages, limit);
        match engine.summarize(&job, &**hud.counter()) {
            Ok(text) => {
                let facet = Facet::new(&*job.id, FacetType::SUMMARY, text.trim());
                let tags = history.veil().tags();
                let snapshot = Arc::new(hud.render_facet(&facet, Role::User, tags, now)?);
                self.summary = Some(Passage::new(job.from, job.to, Role::User, snapshot));
            }
            Err(error) => self.failed.push((job.id, error.to_string())),
        }
        Ok(())
    }

    /// What stands for the old units: nothing, but for the last of them the summary. So many tokens
    /// of what the user said last stay.
    fn keep(
        &mut self,
        (asking, transform): (&Asking<'_>, &CompressionTransform),
        old: &[Unit],
        most: u64,
    ) {
        let mut left = most;
        let mut stays = vec![false; old.len()];
        for (unit, stays) in old.iter().zip(&mut stays).rev() {
            if is_of_user(unit, transform) {
                let tokens = unit.tokens + unit.messages * asking.request.framing.per_message;
                let Some(rest) = left.checked_sub(tokens) else { break };
                (left, *stays) = (rest, true);
            }
        }
        // Without a frame to stand for, a summary has no place.
        if stays.iter().all(|stays| *stays)
            && let Some(first) = stays.first_mut()
        {
            *first = false;
        }
        let per_message = asking.request.framing.per_message;
        let mut gaps: Vec<(usize, DroppedFrames)> = Vec::new();
        for (unit, _) in old.iter().zip(&stays).filter(|(_, stays)| !**stays) {
            let tokens = unit.tokens + unit.messages * per_message;
            let range = unit.range();
            if let Some((end, gap)) = gaps.last_mut().filter(|(end, _)| *end == range.start) {
                (*end, gap.to) = (range.end, unit.to);
                gap.tokens += tokens;
            } else {
                let (from, to) = (unit.from, unit.to);
                gaps.push((range.end, DroppedFrames { from, to, tokens, block: None }));
            }
        }
        self.gaps = gaps.iter().map(|(_, dropped)| gap(asking, dropped)).collect();
        self.dropped = Arc::new(gaps.into_iter().map(|(_, dropped)| dropped).collect());
        if let (Some(last), Some(summary)) = (self.gaps.last_mut(), &self.summary) {
            last.block = format!("summary-{}-{}", summary.from, summary.to).into();
            last.stands = SubstitutionKind::Block;
            last.snapshot = Arc::clone(&summary.snapshot);
        }
    }
}
