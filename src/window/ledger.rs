//! Where things stand, as a message behind the last block.

mod names;
mod save;

use std::{collections::BTreeSet, sync::Arc};

use super::{ContextWindow, change::Change};
use crate::{
    Result,
    compress::{CompressionBlock, CompressionJob, Step},
    id::{FacetId, FacetType, FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind},
    steps::Passage,
    summary::{ContextTexts, Ledger, LedgerLine},
    text::quote::OF_STATE,
    veil::{Facet, History, Saliency},
};

/// The id of what stands there.
const ID: &str = "ledger";

/// The tokens that a format writes around it, at most, and those of its first line.
const AROUND: u64 = 32;

/// The ledger of a window: read up to the last block, written at each epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowLedger {
    read: Arc<Ledger>,
    /// The same up to the last job that was handed out since.
    ahead: Option<Arc<Ledger>>,
    /// The tokens that it may have until the next epoch, where these are fewer than the budget's.
    pub(super) limit: Option<u64>,
    is_stale: bool,
    /// How many branches the session had left.
    outside: usize,
    written: Option<WrittenLedger>,
    /// What was written with a line of names. It stands again where the same lines do.
    named: Option<WrittenLedger>,
}

#[derive(Clone, Debug)]
struct WrittenLedger {
    /// The last frame of the block that it stands behind.
    behind: FrameSeq,
    snapshot: Arc<FrameSnapshot>,
    lines: Arc<Vec<LedgerLine>>,
}

impl WindowLedger {
    /// The tokens that it takes.
    pub(super) fn tokens(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.snapshot.total_tokens())
    }

    /// The frame behind which it stands.
    pub(super) fn behind(&self) -> Option<FrameSeq> {
        self.written.as_ref().map(|written| written.behind)
    }

    /// Its lines; none where it does not stand in the context.
    pub(super) fn lines(&self) -> Arc<Vec<LedgerLine>> {
        self.written.as_ref().map(|written| Arc::clone(&written.lines)).unwrap_or_default()
    }

    pub(super) fn substitution(&self) -> Option<Substitution> {
        self.written.as_ref().map(|written| Substitution {
            block: ID.into(),
            stands: SubstitutionKind::Ledger,
            from: written.behind,
            to: written.behind,
            snapshot: Arc::clone(&written.snapshot),
        })
    }

    /// The ledger with these lines and a line of names, if it was one.
    fn with_names(&self, behind: FrameSeq, lines: &[LedgerLine]) -> Option<&WrittenLedger> {
        let is_same = |named: &&WrittenLedger| {
            let before = named.lines.split_last().map(|(_, before)| before);
            // Names may stand alone behind the head.
            let is_before = before
                .is_some_and(|before| before == lines || lines.is_empty() && before.len() == 1);
            named.behind == behind && is_before && self.limit.is_none()
        };
        self.named.as_ref().filter(is_same)
    }

    /// It is written again for the next context, as large as the budget allows.
    pub(super) fn outdate(&mut self) {
        (self.is_stale, self.limit, self.ahead) = (true, None, None);
    }

    /// It is written again for the next context, in at most `limit` tokens.
    pub(super) fn shrink_to(&mut self, limit: u64) {
        (self.is_stale, self.limit) = (true, Some(limit));
    }
}

impl ContextWindow {
    /// A job with where things stood before its range, and where they stand after it. Reads each
    /// frame since the last block once for all jobs of an epoch.
    pub(super) fn with_ledger(&mut self, history: &History, job: CompressionJob) -> CompressionJob {
        self.leave_branches(history);
        let job = job.with_context(self.standing_words(history), self.budget.ledger);
        if job.level > 1 {
            return job.with_ledger(Arc::clone(&self.ledger.read));
        }
        let last = self.ledger.read.last_frame();
        let follows = |ahead: &Arc<Ledger>| {
            let read = ahead.last_frame();
            read >= last && read.is_none_or(|read| read < job.from)
        };
        let ahead = self.ledger.ahead.take().filter(follows);
        let mut ledger = ahead.unwrap_or_else(|| Arc::clone(&self.ledger.read));
        read_steps(&mut ledger, history, self.transform.steps(), |frame| frame < job.from);
        let before = Arc::clone(&ledger);
        let after = Arc::make_mut(&mut ledger);
        job.passages.iter().for_each(|passage| after.read(passage));
        self.ledger.ahead = Some(Arc::clone(&ledger));
        job.with_ledger(ledger).with_ledger_before(before)
    }

    /// Writes the ledger, where blocks took effect since.
    pub(super) fn refresh_ledger(&mut self, history: &History, now: Millis) -> Result<()> {
        if !std::mem::take(&mut self.ledger.is_stale) {
            return Ok(());
        }
        let before = self.ledger.written.take();
        let limit = self.ledger.limit.unwrap_or(self.budget.ledger).min(self.budget.ledger);
        let behind = self.transform.last_own_block().map(|block| block.to);
        if let Some(behind) = behind.filter(|_| limit > 0) {
            self.leave_branches(history);
            self.read_ledger(history, behind);
            let limit = limit.saturating_sub(AROUND);
            let blocks = self.standing_blocks();
            let elsewhere = self.elsewhere(history, &blocks);
            let lines = self.ledger.read.lines(limit, &elsewhere, &**self.hud.counter());
            let lines = headed(lines);
            self.ledger.written = match self.ledger.with_names(behind, &lines) {
                Some(named) => Some(named.clone()),
                None => self.write_ledger(history, behind, lines, now)?,
            };
        }
        let written = self.ledger.written.as_ref();
        let text = |of: &WrittenLedger| of.snapshot.text().to_owned();
        let is_same = before.as_ref().map(|of| (of.behind, text(of)))
            == written.map(|of| (of.behind, text(of)));
        let from = before.iter().chain(written).map(|of| of.behind).min();
        if !is_same && let Some(from) = from {
            self.note(from, Vec::new());
            self.unsettle();
        }
        Ok(())
    }

    /// The tokens that the ledger will take once a block stands for frames up to `last`.
    pub(super) fn ledger_tokens_after(
        &self,
        history: &History,
        last: FrameSeq,
        now: Millis,
    ) -> Result<u64> {
        let behind = self.transform.last_own_block().map_or(last, |block| block.to.max(last));
        let mut read = Arc::clone(&self.ledger.read);
        read_steps(&mut read, history, self.transform.steps(), |frame| frame <= behind);
        let limit = self.budget.ledger.saturating_sub(AROUND);
        let blocks = self.standing_blocks();
        let elsewhere = self.elsewhere(history, &blocks);
        let lines = headed(read.lines(limit, &elsewhere, &**self.hud.counter()));
        let written = match self.budget.ledger {
            0 => None,
            _ => self.write_ledger(history, behind, lines, now)?,
        };
        Ok(written.map_or(0, |written| written.snapshot.total_tokens()))
    }

    /// Reads the ledger anew where the session has left a branch since: what it said there counts no
    /// more.
    fn leave_branches(&mut self, history: &History) {
        let outside = self.transform.outside_frames();
        if outside != self.ledger.outside {
            let last = self.ledger.read.last_frame();
            let ledger = &mut self.ledger;
            (ledger.read, ledger.ahead, ledger.outside) = (Arc::default(), None, outside);
            last.into_iter().for_each(|last| self.read_ledger(history, last));
        }
    }

    /// Reads the frames up to `last` that were not read.
    fn read_ledger(&mut self, history: &History, last: FrameSeq) {
        let ledger = &mut self.ledger;
        if ledger.read.last_frame().is_some_and(|read| read > last) {
            (ledger.read, ledger.ahead) = (Arc::default(), None);
        }
        read_steps(&mut ledger.read, history, self.transform.steps(), |frame| frame <= last);
    }

    /// What the context says besides the ledger: the user's words that stand there themselves, and
    /// what these blocks say.
    fn elsewhere<'b>(
        &self,
        history: &History,
        blocks: &'b [Arc<CompressionBlock>],
    ) -> ContextTexts<'b> {
        let texts = blocks.iter().map(|block| block.snapshot.text()).collect();
        ContextTexts::new(&self.standing_words(history), texts)
    }

    /// The blocks that the context shows.
    fn standing_blocks(&self) -> Vec<Arc<CompressionBlock>> {
        let is_shown = |block: &&Arc<CompressionBlock>| {
            !matches!(self.change_of(block.from), Some(Change::Dropped(_)))
        };
        self.transform.blocks().filter(is_shown).cloned().collect()
    }

    /// The user's words that stand in the context themselves, as they stand there.
    pub(super) fn standing_words(&self, history: &History) -> Vec<Passage> {
        let steps = self.transform.steps();
        let kept = self.transform.task().into_iter().chain(self.transform.instruction());
        let passage = |at: usize| {
            let step = steps.get(at)?;
            let snapshot = match self.change_of(step.sequence) {
                Some(Change::Shortened { snapshot, .. }) => Arc::clone(snapshot),
                Some(Change::Dropped(_)) => return None,
                None => self.shown(history, step.sequence)?,
            };
            Some(Passage { snapshot, ..Passage::of_frame(history, at, step.role)? })
        };
        kept.filter_map(passage).collect()
    }

    /// The frames that the lines of the ledger are from, in order.
    pub(super) fn ledger_frames(&self, history: &History) -> Vec<Passage> {
        let lines = self.ledger.lines();
        let named: BTreeSet<FrameSeq> = lines.iter().filter_map(|line| line.frame).collect();
        let steps = self.transform.steps();
        let passage = |sequence: FrameSeq| {
            let at = steps.partition_point(|step| step.sequence < sequence);
            let role = steps.get(at).filter(|step| step.sequence == sequence)?.role;
            Passage::of_frame(history, at, role)
        };
        named.into_iter().filter_map(passage).collect()
    }

    fn write_ledger(
        &self,
        history: &History,
        behind: FrameSeq,
        lines: Vec<LedgerLine>,
        now: Millis,
    ) -> Result<Option<WrittenLedger>> {
        if lines.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let mut facet = Facet::new(FacetId::from(ID), FacetType::SUMMARY, texts.join("\n"));
        facet.saliency = Some(Saliency { reference: true, ..Saliency::default() });
        let snapshot = self.hud.render_facet(&facet, Role::User, history.veil().tags(), now)?;
        let (snapshot, lines) = (Arc::new(snapshot), Arc::new(lines));
        Ok(Some(WrittenLedger { behind, snapshot, lines }))
    }
}

/// Lines behind the one that says what they are; none where there are none.
fn headed(mut lines: Vec<LedgerLine>) -> Vec<LedgerLine> {
    if lines.first().is_some_and(|line| line.text != OF_STATE) {
        lines.insert(0, LedgerLine { frame: None, text: OF_STATE.to_owned() });
    }
    lines
}

/// Reads the frames of a history that were not read, as far as `may_read` says.
fn read_steps(
    ledger: &mut Arc<Ledger>,
    history: &History,
    steps: &[Step],
    may_read: impl Fn(FrameSeq) -> bool,
) {
    let is_read = |step: &Step| ledger.last_frame().is_some_and(|read| step.sequence <= read);
    let new = steps.iter().enumerate().skip(steps.partition_point(is_read));
    let mut new = new.take_while(|(_, step)| may_read(step.sequence)).peekable();
    if new.peek().is_none() {
        return;
    }
    let ledger = Arc::make_mut(ledger);
    for (at, step) in new.filter(|(_, step)| !step.is_outside()) {
        let passage = Passage::of_frame(history, at, step.role);
        passage.iter().for_each(|passage| ledger.read(passage));
    }
}
