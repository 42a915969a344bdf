//! Observations in contexts.
//!
//! The summary is an ambient facet: it stands after the last message, where its ages may change
//! without the provider's cache being lost. The payloads that it stands for stay in the history as
//! they were captured; in a context each may give way to one line, once, and for good.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    hud::Hud,
    id::{FacetType, FrameSeq, Millis},
    observe::{Interception, Moment, ObservationInfo, Observations, Summary},
    snapshot::{FrameSnapshot, Substitution, SubstitutionKind},
    veil::{Facet, FacetChange, FacetOp, Frame, History, Veil, VisibleFacets},
};

/// The id of the facet that holds the summary.
pub(crate) const SUMMARY_FACET: &str = "observations";

/// The summary as the op that shows it from now on, in place of the one before. O(its text).
///
/// ```
/// use afterimage::{
///     id::Millis,
///     observe::{Moment, Observations, Policy},
///     session::bridge::observed::summary_op,
///     veil::{Frame, Source},
/// };
///
/// let observations = Observations::in_memory(Policy::default())?;
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

/// Lines in the place of payloads that say what the model has read already.
///
/// A map that is fetched every turn is the same every turn but for its tick. The first answer
/// comes whole, and each that says the same comes as a line: "unchanged since tick 41". Who calls
/// once more right after a line wants the payload, and gets it.
///
/// ```
/// use afterimage::{
///     id::Millis,
///     observe::{Moment, Observations, Pointer, Policy, Response, ToolCall},
///     session::bridge::observed::Repeats,
/// };
///
/// let ticks = vec![Pointer::parse("/current_tick")?];
/// let observations = Observations::in_memory(Policy { ticks, ..Policy::default() })?;
/// let mut repeats = Repeats::new();
/// let mut calls_at = |tick| {
///     let map = format!("{{\"current_tick\":{tick},\"systems\":[{}1]}}", "\"sol\",".repeat(90));
///     let response = Response::text(&map)?;
///     let call = ToolCall::of_account("Ada", "get_map", &response);
///     let outcome = observations.intercept(&call, Moment::at(Millis::new(0)))?;
///     repeats.line(&observations, &outcome)
/// };
/// assert_eq!(calls_at(41)?, None);
/// assert!(calls_at(42)?.is_some_and(|line| line.starts_with("(get_map: unchanged since tick 41")));
/// // Asked again at once, it is given whole.
/// assert_eq!(calls_at(42)?, None);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// Since when a payload stands that was given whole, by account and observation.
    shown: BTreeMap<(String, String), Moment>,
    /// The observation whose line was the last answer.
    last: Option<(String, String)>,
}

impl Repeats {
    /// Nothing was given yet: as at the beginning of a session, which has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The line that says what this answer says, where the model has read its payload in this
    /// session; `None` where it gets the payload. To be asked of each answer, in order. Reads what
    /// is known of all observations of the account.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](crate::observe::ObservationStore).
    pub fn line(
        &mut self,
        observations: &Observations,
        outcome: &Interception,
    ) -> Result<Option<String>> {
        let last = self.last.take();
        let (Some(account), Some(name)) = (&outcome.account, &outcome.stored) else {
            return Ok(None);
        };
        let infos = observations.infos(account)?;
        let Some(info) = infos.into_iter().find(|info| info.name == *name) else {
            return Ok(None);
        };
        let key = (account.clone(), name.clone());
        let is_known = outcome.unchanged_since == Some(info.since)
            && self.shown.get(&key) == Some(&info.since)
            && last.as_ref() != Some(&key);
        let line = unchanged(&info);
        if is_known && (line.len() as u64) < info.bytes {
            self.last = Some(key);
            return Ok(Some(line));
        }
        self.shown.insert(key, info.since);
        Ok(None)
    }
}

/// The line that stands for a payload that is what it was before.
pub fn unchanged(info: &ObservationInfo) -> String {
    let since = match info.since.tick {
        Some(tick) => format!("since tick {tick}"),
        None => "since it was last read".to_owned(),
    };
    format!(
        "({}: unchanged {since}, {} bytes. What it said then still holds; call it again at once \
         for all of it.)",
        info.tool, info.bytes
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
    /// removes facets stays as it is. Renders and counts the frame, and is linear in those that are
    /// replaced after it.
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
        let Some(replaced) = with_references(&found, &reference) else { return Ok(false) };
        let shown = Veil::default().apply(&replaced)?;
        let shown = VisibleFacets { tags: Arc::clone(history.veil().tags()), ..shown };
        let snapshot = Arc::new(hud.render_frame(&replaced, &shown, now)?);
        let block = format!("observation-{frame}").into();
        self.replaced.insert(
            at,
            Substitution {
                block,
                stands: SubstitutionKind::Shortened,
                from: frame,
                to: frame,
                snapshot,
            },
        );
        Ok(true)
    }

    /// What stands in the place of frames, for [`RenderRequest::substitutions`](crate::hud::RenderRequest::substitutions).
    pub fn substitutions(&self) -> &[Substitution] {
        &self.replaced
    }

    /// As [`PayloadReferences::substitutions`], together with the blocks of a compression: what
    /// lies in one of these is gone with it. Copies both lists, without their texts, and sorts them:
    /// O(n log n).
    pub fn beside(&self, blocks: &[Substitution]) -> Vec<Substitution> {
        let mut ends: Vec<_> = blocks.iter().map(|block| (block.from, block.to)).collect();
        ends.sort_unstable();
        // How far the blocks reach that begin up to here: one may lie inside of another.
        let mut reach = FrameSeq::default();
        for (_, to) in &mut ends {
            reach = reach.max(*to);
            *to = reach;
        }
        let is_covered = |own: &&Substitution| {
            let begun = ends.partition_point(|(from, _)| *from <= own.from);
            begun.checked_sub(1).and_then(|at| ends.get(at)).is_some_and(|(_, to)| own.from <= *to)
        };
        let own = self.replaced.iter().filter(|own| !is_covered(own));
        let mut all: Vec<Substitution> = own.chain(blocks).cloned().collect();
        all.sort_by_key(|block| block.from);
        all
    }

    /// What a frame rendered to before its payloads were replaced; `None` where none was. Linear in
    /// the frames that are replaced.
    pub fn expand(&self, history: &History, block: &str) -> Option<Arc<FrameSnapshot>> {
        let block = self.replaced.iter().find(|replaced| &*replaced.block == block)?;
        history.snapshot(block.from)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::FrameSnapshotBuilder, tokens::Chars4};

    #[test]
    fn what_lies_in_a_block_is_gone_with_it_wherever_other_blocks_lie() {
        let snapshot = Arc::new(FrameSnapshotBuilder::new(&Chars4).build(Millis::new(0)));
        let of = |from: u64, to: u64| Substitution {
            block: format!("{from}-{to}").into(),
            stands: SubstitutionKind::Shortened,
            from: from.into(),
            to: to.into(),
            snapshot: Arc::clone(&snapshot),
        };
        let frames = 0..6_u64;
        let replaced = frames.clone().map(|frame| of(frame, frame)).collect();
        let references = PayloadReferences { replaced };
        let ranges = || frames.clone().flat_map(|from| (from..6).map(move |to| (from, to)));
        for (one, other) in ranges().flat_map(|one| ranges().map(move |other| (one, other))) {
            let blocks = [of(one.0, one.1), of(other.0, other.1)];
            let beside = references.beside(&blocks);
            let is_left =
                |frame: u64| beside.iter().any(|left| *left.block == *format!("{frame}-{frame}"));
            for frame in frames.clone() {
                let covers = |(from, to): (u64, u64)| from <= frame && frame <= to;
                let is_block = one == (frame, frame) || other == (frame, frame);
                let expected = is_block || !(covers(one) || covers(other));
                assert_eq!(is_left(frame), expected, "{frame} beside {one:?} and {other:?}");
            }
            assert!(beside.is_sorted_by_key(|left| left.from));
        }
    }
}
