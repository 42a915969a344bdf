use std::sync::{Arc, Weak};

use indexmap::IndexSet;

use super::{
    CompressionTransform, RangeState,
    between::passages_of,
    range::{Covers, PlannedRange},
};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionBlock, CompressionJob, Engine as _, NetOps, OutlineEngine, Summary,
        block::{Originals, content_hash},
    },
    id::{FacetId, FacetType, Millis},
    snapshot::FrameSnapshot,
    steps::Passage,
    text::quote::{OF_SUMMARY, quoted},
    veil::{Facet, History, Saliency},
};

/// The tokens of the line that says what a block is, about.
const HEAD: u64 = 8;

/// A job that was handed out.
#[derive(Clone, Debug)]
pub(super) struct RunningJob {
    /// Lives as long as a copy of the job.
    lease: Weak<()>,
    /// The job as it was handed out, without the lease: what its block stands for. `None` where it
    /// was handed out before the state was saved.
    job: Option<Arc<CompressionJob>>,
}

impl RunningJob {
    /// A job that nobody has any more.
    pub(super) fn lost() -> Self {
        Self { lease: Weak::new(), job: None }
    }

    /// Whether all copies of the job are gone.
    pub(super) fn is_dropped(&self) -> bool {
        self.lease.strong_count() == 0
    }
}

impl CompressionTransform {
    /// Hands out the next job that waits, as long as no more are under way than the options say.
    /// Where none waits, it is a range that failed and is due to be tried again.
    ///
    /// A job is under way as long as a copy of it lives. Where all were dropped and none was answered
    /// (a future was cancelled, an engine panicked), its range waits again at once; that was a try.
    ///
    /// Shares the snapshots of the range; copies no text. Leads the veil through the frames once.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the history is another one, and those of its ops.
    pub fn next_job(&mut self, history: &History, now: Millis) -> Result<Option<CompressionJob>> {
        self.take_back_dropped();
        if self.under_way.len() >= self.options.max_active {
            return Ok(None);
        }
        let is_due = |range: &&PlannedRange| match range.state {
            RangeState::Pending { not_before, .. } => self.is_due(range, not_before, now),
            _ => false,
        };
        let due = |number: &usize| Some((*number, self.ranges.get(*number).filter(is_due)?));
        let found = self.pending.iter().find_map(due).or_else(|| self.failed_due(now));
        let Some((number, range)) = found else { return Ok(None) };
        let range = range.clone();
        let (passages, net_ops, tail_from, facets) = match &range.covers {
            Covers::Frames(frames) => {
                let passages = self.walk.passages(history, frames.clone())?;
                let facets = Passage::facets_of(&passages);
                (passages, self.walk.net_ops(history, frames.clone())?, frames.end, facets)
            }
            Covers::Blocks(blocks) => {
                let passages = blocks.iter().flat_map(|block| passages_of(block));
                let end = blocks.last().map_or(0, |block| self.walk.first_after(block.to));
                let shown = passages.filter(|passage| !passage.snapshot.is_empty()).collect();
                let facets: IndexSet<FacetId> =
                    blocks.iter().flat_map(|block| block.source_facets.clone()).collect();
                let facets = facets.into_iter().collect();
                (shown, NetOps::joined(blocks.iter().map(|of| &of.net_ops)), end, facets)
            }
        };
        let protected = range.seen.saturating_sub(self.options.protected_frames).max(tail_from);
        let tail = self.walk.passages(history, protected..range.seen)?;
        let Some((first, last)) = self.ends_of(&range) else { return Ok(None) };
        let attempt = range.tried.saturating_add(1);
        self.enter_state(number, RangeState::InProgress { attempt });
        let frames = self.walk.steps().len();
        if let Some(range) = self.ranges.get_mut(number) {
            (range.tried, range.handed_out, range.handed_after) = (attempt, now, frames);
        }
        let job = CompressionJob {
            id: range.id,
            from: first,
            to: last,
            level: range.level,
            passages,
            original_tokens: range.original_tokens,
            source_facets: facets,
            net_ops,
            tail,
            attempt,
            ..CompressionJob::new(Vec::new(), range.limit.saturating_sub(HEAD).max(range.limit / 2))
        };
        let lease = Arc::new(());
        let handed_out = Some(Arc::new(job.clone()));
        let running = RunningJob { lease: Arc::downgrade(&lease), job: handed_out };
        self.under_way.insert(number, running);
        Ok(Some(CompressionJob { lease: Some(lease), ..job }))
    }

    /// Whether a job that was handed out waits for its answer.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Takes the summary of a job that was handed out. Of the job only its id and its attempt count:
    /// passages, ops and limit are those that [`CompressionTransform::next_job`] handed out, whatever
    /// a caller did to its copy. `render` makes of the block's facet what
    /// stands in contexts, for example with `Hud::render_facet`; so the summary is guarded against
    /// forged tags and counted like any other text. The block takes effect with
    /// [`CompressionTransform::apply`]. Costs `render`, and hashes the texts of the passages:
    /// O(their bytes).
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the job is not under way. [`ErrorKind::Limit`] where the
    /// summary is empty, not shorter than what it stands for, or, rendered, longer than the job's
    /// limit with the line that says what it is and the marks of quotes; and those of `render`: tell
    /// [`CompressionTransform::fail`] then, or try another summary. Nothing has changed.
    pub fn complete(
        &mut self,
        job: &CompressionJob,
        summary: Summary<'_>,
        now: Millis,
        render: impl FnOnce(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Arc<CompressionBlock>> {
        let (number, range, job) = self.handed_out(job)?;
        let Summary { text, engine } = summary;
        let summary = text.trim();
        let refused =
            |message: String| Err(Error::new(ErrorKind::Limit, message).at_frame(job.from.get()));
        if summary.is_empty() {
            return refused(format!("the summary of {} is empty", job.id));
        }
        // An outline quotes line by line; what a model wrote may be what it read.
        let is_outline = engine == OutlineEngine.id();
        let outline = text.trim_start_matches('\n').trim_end();
        let said = if is_outline { outline.to_owned() } else { quoted(summary) };
        let summary = format!("{OF_SUMMARY}\n{said}");
        let facet = summary_facet(&job, &summary);
        let snapshot = render(&facet)?;
        let tokens = snapshot.total_tokens();
        // A mark may take a token in each line.
        let most = job.token_limit + HEAD + summary.lines().count() as u64;
        let most = most.min(range.tokens.saturating_sub(1));
        if tokens > most {
            return refused(format!(
                "expected a summary of {} in at most {most} tokens, found {tokens}",
                job.id
            ));
        }
        let (originals, inner) = match &range.covers {
            Covers::Frames(_) => (Originals::Held(job.passages.clone()), Vec::new()),
            Covers::Blocks(blocks) => (Originals::Inner, blocks.clone()),
        };
        let block = Arc::new(CompressionBlock {
            id: Arc::clone(&job.id),
            from: job.from,
            to: job.to,
            level: job.level,
            facet: Arc::new(facet),
            snapshot: Arc::new(snapshot),
            source_facets: job.source_facets.clone(),
            content_hash: content_hash(&job.passages),
            original_tokens: job.original_tokens,
            tokens,
            net_ops: job.net_ops.clone(),
            engine: engine.to_owned(),
            created_at: now,
            originals,
            inner,
        });
        self.enter_state(number, RangeState::Ready);
        self.hasten_retries(number, now);
        self.ready.insert(number, Arc::clone(&block));
        Ok(block)
    }

    /// Takes note that a job failed. Its range waits for another try, and after the last for one
    /// much later: see [`CompressionOptions::retry_most_ms`](super::super::CompressionOptions::retry_most_ms).
    /// O(ranges under way, and those that failed).
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the job is not under way.
    pub fn fail(
        &mut self,
        job: &CompressionJob,
        reason: impl Into<String>,
        now: Millis,
    ) -> Result<()> {
        let (number, ..) = self.handed_out(job)?;
        self.fail_range(number, reason.into(), now);
        Ok(())
    }

    /// The range of a job that is under way, by its number, and the job as it was handed out.
    fn handed_out(&self, job: &CompressionJob) -> Result<HandedOut> {
        let found = self.under_way.iter().find_map(|(number, running)| {
            let range = self.ranges.get(*number)?;
            let is_it = range.id == job.id
                && range.state == RangeState::InProgress { attempt: job.attempt };
            let job = running.job.as_ref().filter(|_| is_it)?;
            Some((*number, range.clone(), Arc::clone(job)))
        });
        found.ok_or_else(|| {
            let message = format!(
                "the job {} is not running in attempt {}; ask `next_job` for another",
                job.id, job.attempt
            );
            Error::new(ErrorKind::Conflict, message).at_frame(job.from.get())
        })
    }
}

/// The number of a range, the range, and its job as it was handed out.
type HandedOut = (usize, PlannedRange, Arc<CompressionJob>);

/// The facet of a summary.
fn summary_facet(job: &CompressionJob, summary: &str) -> Facet {
    let mut facet = Facet::new(FacetId::from(&*job.id), FacetType::SUMMARY, summary);
    facet.target_facet_ids.clone_from(&job.source_facets);
    facet.saliency = Some(Saliency { reference: true, ..Saliency::default() });
    facet
}
