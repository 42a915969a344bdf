//! Observations in contexts.
//!
//! The summary is an ambient facet: it stands after the last message, where its ages may change
//! without the provider's cache being lost. The payloads that it stands for stay in the history as
//! they were captured; in a context each may give way to one line, once, and for good.

use std::sync::Arc;

use crate::{
    Error, ErrorKind, Result,
    hud::Hud,
    id::{FacetType, FrameSeq, Millis},
    observe::{ObservationInfo, Summary},
    snapshot::{FrameSnapshot, Stands, Substitution},
    veil::{Facet, FacetChange, FacetOp, Frame, History, Shown, Veil},
};

/// The id of the facet that holds the summary.
pub const SUMMARY_FACET: &str = "observations";

/// The summary as the op that shows it from now on, in place of the one before.
///
/// ```
/// use afterimage::{
///     id::Millis,
///     observe::{Moment, Observations, Policy},
///     session::bridge::observed::summary_op,
///     veil::{Frame, Source},
/// };
///
/// let observations = Observations::in_memory(Policy::spacemolt())?;
/// let now = Moment::at(Millis::new(0));
/// let summary = observations.summary_of_agent("agent-1", now, 500)?;
/// let frame = Frame::new(0, Source::Environment).with(summary_op(&summary));
/// assert_eq!(frame.ops.len(), 1);
/// # Ok::<(), afterimage::Error>(())
/// ```
pub fn summary_op(summary: &Summary) -> FacetOp {
    let facet = Facet::new(SUMMARY_FACET, FacetType::AMBIENT, summary.text());
    FacetOp::add(facet.named("observations"))
}

/// The line that stands for a payload. It holds no age, since it stays as it is.
pub fn reference(info: &ObservationInfo) -> String {
    let tick = info.seen.tick.map(|tick| format!(" at tick {tick}")).unwrap_or_default();
    // The arguments of the call stand right before it.
    format!(
        "({}: {} bytes{tick}, kept as an observation. Its summary is below; call {} for all of it.)",
        info.tool, info.bytes, info.tool
    )
}

/// Payloads that were shown, and wait to give way to their lines.
///
/// The summary that the lines point to costs tokens itself, and in a short session more than they
/// save. So nothing is due before all of them together save more than a summary may take, and from
/// then on everything is, at once: a context with lines and a summary is always smaller than the
/// one with the payloads.
///
/// ```
/// use afterimage::session::bridge::observed::Backlog;
///
/// // A summary takes 500 tokens at most.
/// let mut backlog = Backlog::new(500);
/// backlog.add("a status", 300, 30);
/// assert!(backlog.due().is_empty() && !backlog.is_open());
/// backlog.add("a map", 47_000, 30);
/// assert_eq!(backlog.due(), ["a status", "a map"]);
/// // Now a summary belongs into the context.
/// assert!(backlog.is_open());
/// ```
#[derive(Clone, Debug)]
pub struct Backlog<T> {
    /// The tokens that a summary may take.
    summary: u64,
    /// The tokens that all lines save.
    saved: u64,
    waiting: Vec<T>,
}

impl<T> Backlog<T> {
    /// Nothing waits. `summary` is how many tokens a summary may take.
    pub fn new(summary: usize) -> Self {
        Self { summary: summary as u64, saved: 0, waiting: Vec::new() }
    }

    /// Adds what was shown once, with its tokens and those of what is to stand there. What would
    /// become no shorter stays as it is.
    pub fn add(&mut self, payload: T, tokens: u64, line: u64) {
        if line < tokens {
            self.saved = self.saved.saturating_add(tokens - line);
            self.waiting.push(payload);
        }
    }

    /// Whether payloads give way, so that the context needs a summary.
    pub fn is_open(&self) -> bool {
        self.saved > self.summary
    }

    /// What gives way now, in the order in which it was added. Each is due once.
    pub fn due(&mut self) -> Vec<T> {
        if self.is_open() { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}

/// The payloads of a history that gave way to a line.
///
/// The frames and their snapshots are not touched: [`PayloadReferences::expand`] has what stood
/// there. Each replacement costs the provider's cache from its frame on, so it is best done in
/// the turn after the payload was shown, or for many at once; [`Backlog`] says when it pays.
#[derive(Clone, Debug, Default)]
pub struct PayloadReferences {
    /// In the order of their frames.
    replaced: Vec<Substitution>,
}

impl PayloadReferences {
    /// Nothing replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces results of tool calls in a frame by what `reference` says of them; results of
    /// which it says nothing, and everything else in the frame, stay. Says whether anything was
    /// replaced. A frame that was replaced before stays so.
    ///
    /// The line keeps the place of the result: it answers the same call. A frame that changes or
    /// removes facets stays as it is.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the history has no such frame, and those of the format.
    pub fn replace(
        &mut self,
        hud: &Hud,
        history: &History,
        frame: FrameSeq,
        reference: impl Fn(&Facet) -> Option<String>,
        now: Millis,
    ) -> Result<bool> {
        let found = history.get(frame).ok_or_else(|| {
            let message = format!("expected a frame of the history, found sequence {frame}");
            Error::new(ErrorKind::OutOfRange, message)
        })?;
        let at = self.replaced.partition_point(|block| block.from < frame);
        if self.replaced.get(at).is_some_and(|block| block.from == frame) {
            return Ok(true);
        }
        let Some(replaced) = with_references(found, &reference) else { return Ok(false) };
        let shown = Veil::default().apply(&replaced)?;
        let shown = Shown { tags: Arc::clone(history.veil().tags()), ..shown };
        let snapshot = Arc::new(hud.render_frame(&replaced, &shown, now)?);
        let block = format!("observation-{frame}").into();
        self.replaced.insert(
            at,
            Substitution { block, stands: Stands::Shortened, from: frame, to: frame, snapshot },
        );
        Ok(true)
    }

    /// What stands in the place of frames, for [`RenderRequest::substitutions`](crate::hud::RenderRequest::substitutions).
    pub fn substitutions(&self) -> &[Substitution] {
        &self.replaced
    }

    /// As [`PayloadReferences::substitutions`], together with the blocks of a compression: what
    /// lies in one of these is gone with it.
    pub fn beside(&self, blocks: &[Substitution]) -> Vec<Substitution> {
        let is_covered = |own: &&Substitution| {
            blocks.iter().any(|block| block.from <= own.from && own.from <= block.to)
        };
        let own = self.replaced.iter().filter(|own| !is_covered(own));
        let mut all: Vec<Substitution> = own.chain(blocks).cloned().collect();
        all.sort_by_key(|block| block.from);
        all
    }

    /// What a frame rendered to before its payloads were replaced; `None` where none was.
    pub fn expand(&self, history: &History, block: &str) -> Option<Arc<FrameSnapshot>> {
        let block = self.replaced.iter().find(|replaced| &*replaced.block == block)?;
        history.get(block.from)?.rendered_snapshot.clone()
    }
}

/// The frame with references in the place of results; `None` where there is nothing to replace,
/// or where it does more than add facets.
fn with_references(frame: &Frame, reference: &dyn Fn(&Facet) -> Option<String>) -> Option<Frame> {
    let mut is_replaced = false;
    let mut ops = Vec::with_capacity(frame.ops.len());
    for op in &frame.ops {
        let FacetChange::Add(facet) = &op.change else { return None };
        let line = Some(facet).filter(|facet| facet.is_result());
        match line.and_then(|facet| reference(facet)) {
            Some(content) => {
                is_replaced = true;
                let facet = Facet { content, children: Vec::new(), ..Facet::clone(facet) };
                ops.push(FacetOp::add(facet));
            }
            None => ops.push(op.clone()),
        }
    }
    is_replaced.then(|| Frame { ops, ..Frame::new(frame.sequence, frame.source.clone()) })
}
