//! A transform from JSON, with the history that it was saved beside.

use std::{collections::HashSet, ops::Range, sync::Arc};

use super::{
    CompressionTransform, PlannedRange, RangeState, jobs::RunningJob, range::Covers, save::VERSION,
};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionBlock, NetOps,
        block::{Originals, content_hash},
        saved::{
            expect_version, finish, flag, index, index_of, list, load, number, range_of, text,
        },
    },
    id::{FacetId, FrameSeq, Millis},
    json::{Fields, Value},
    snapshot::FrameSnapshot,
    veil::{Facet, FacetOp, History},
};

impl CompressionTransform {
    /// The transform that [`CompressionTransform::to_json`] saved, for the same history. The history
    /// may be longer by now: what it gained is looked at next. What blocks stand for is found in the
    /// history and verified by its hash; what the history has forgotten expands from an archive
    /// ([`CompressionBlock::expand_from`]).
    ///
    /// A job that was under way when the transform was saved is handed out again.
    ///
    /// Looks at the frames that were looked at before, and leads a veil through those that blocks
    /// stand for.
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
    /// transform.compress_range(&history, 0.into()..=3.into())?;
    /// let saved = transform.to_json();
    /// let mut loaded = CompressionTransform::from_json(saved, &history)?;
    /// assert_eq!(&*loaded.next_job(&history, now)?.unwrap().id, "block-0-3");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// Cost: O(the JSON, and the frames that were looked at).
    ///
    /// # Errors
    /// [`ErrorKind::Version`] for another version. [`ErrorKind::Shape`] for everything else that is
    /// not as `docs/FORMAT.md` says, with the path: members that are missing or not known, numbers
    /// that point at nothing. [`ErrorKind::Sequence`] where the history does not have the frames that
    /// were looked at, or one of them without a snapshot. [`ErrorKind::Conflict`] where its texts or
    /// counts are others than those that were compressed.
    pub fn from_json(saved: Value, history: &History) -> Result<Self> {
        let mut fields = Fields::of(saved, "a saved compression")?;
        expect_version(&mut fields, "compression", VERSION)?;
        let mut of = Self::new(load(&mut fields, "options")?);
        let count = index(&mut fields, "frames", usize::MAX)?;
        let last = fields.u64("last")?.map(FrameSeq::new);
        of.look_back(history, count, last)?;
        let ranges = |fields: &mut Fields, key: &str| -> Result<Vec<Range<usize>>> {
            list(fields, key, |value| range_of(&value, count))
        };
        let (stays, replaced) = (ranges(&mut fields, "stays")?, ranges(&mut fields, "replaced")?);
        of.outside = ranges(&mut fields, "outside")?;
        of.walk.restore(&stays, &replaced, &of.outside);
        of.front = index(&mut fields, "front", count)?;
        let taken = ranges(&mut fields, "taken")?;
        of.taken = taken.into_iter().map(|range| (range.start, range.end)).collect();
        let mut blocks: Vec<Arc<CompressionBlock>> = Vec::new();
        let values = Fields::required(fields.array("blocks")?, "blocks", "a list")?;
        for (at, value) in values.into_iter().enumerate() {
            let block = of.block_from_json(value, &blocks, history);
            blocks.push(Arc::new(block.map_err(|error| error.under(at).under("blocks"))?));
        }
        let block = |value: &Value| -> Result<Arc<CompressionBlock>> {
            let at = index_of(value, blocks.len())?;
            let found = blocks.get(at).cloned();
            found.ok_or_else(|| Error::expected("the number of a block", at))
        };
        of.ranges = list(&mut fields, "ranges", |value| range_from_json(value, count, &block))?;
        for applied in list(&mut fields, "applied", |value| block(&value))? {
            of.applied.insert(applied.from, applied);
        }
        let planned = of.ranges.len();
        let ready = list(&mut fields, "ready", |value| {
            let pair = value.as_array().and_then(|pair| <&[Value; 2]>::try_from(pair).ok());
            let [range, of] = pair.ok_or_else(|| Error::expected("a pair", value.kind()))?;
            let range = index_of(range, planned.saturating_sub(1))?;
            Ok((range, block(of)?))
        })?;
        of.ready = ready.into_iter().collect();
        of.sort_ranges();
        let ids = |fields: &mut Fields, key: &str| -> Result<HashSet<Arc<str>>> {
            let ids = Fields::required(fields.strings(key)?, key, "a list")?;
            Ok(ids.into_iter().map(Arc::from).collect())
        };
        (of.merged, of.imported) = (ids(&mut fields, "merged")?, ids(&mut fields, "imported")?);
        of.adopted = index(&mut fields, "adopted", count)?;
        of.telling = list(&mut fields, "telling", |value| index_of(&value, count))?;
        of.live_tokens = number(&mut fields, "liveTokens")?;
        of.is_settled = flag(&mut fields, "isSettled")?;
        of.is_started = flag(&mut fields, "isStarted")?;
        of.epoch = number(&mut fields, "epoch")?;
        finish(fields)?;
        of.check_counts(history)?;
        Ok(of)
    }

    /// Looks at the frames that were looked at when it was saved.
    fn look_back(&mut self, history: &History, count: usize, last: Option<FrameSeq>) -> Result<()> {
        let frames = history.frames();
        let found = count.checked_sub(1).and_then(|last| frames.sequence(last));
        if found == last {
            self.walk.follow_to(history, count)?;
        }
        if found != last || self.walk.steps().len() != count {
            let last = last.map_or_else(|| "none".to_owned(), |last| last.to_string());
            let message = format!(
                "expected a history with {count} captured frames up to frame {last}, found {} frames",
                frames.len()
            );
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        self.counted = count;
        Ok(())
    }

    fn block_from_json(
        &mut self,
        value: Value,
        known: &[Arc<CompressionBlock>],
        history: &History,
    ) -> Result<CompressionBlock> {
        let mut fields = Fields::of(value, "a block")?;
        let id: Arc<str> = text(&mut fields, "id")?.into();
        let from = FrameSeq::new(number(&mut fields, "from")?);
        let to = FrameSeq::new(number(&mut fields, "to")?);
        let level = u32::try_from(number(&mut fields, "level")?);
        let level = level.map_err(|_| Error::expected("a level", "a larger one").under("level"))?;
        let facet = fields.nested("facet", Facet::from_json)?;
        let facet = Fields::required(facet, "facet", "a facet")?;
        let snapshot = fields.nested("snapshot", FrameSnapshot::from_json)?;
        let snapshot = Fields::required(snapshot, "snapshot", "a snapshot")?;
        let facets = fields.strings("sourceFacets")?;
        let facets =
            facets.map(|ids| ids.iter().map(|id| FacetId::from(id.as_str())).collect::<Vec<_>>());
        let content_hash = text(&mut fields, "contentHash")?;
        let original_tokens = number(&mut fields, "originalTokens")?;
        let engine = text(&mut fields, "engine")?;
        let created_at = fields.i64("createdAt")?;
        let created_at = Millis::new(Fields::required(created_at, "createdAt", "a moment")?);
        let inner = list(&mut fields, "blocks", |value| {
            let at = index_of(&value, known.len())?;
            let expected = "a block before this one";
            known.get(at).cloned().ok_or_else(|| Error::expected(expected, at))
        })?;
        let originals = text(&mut fields, "originals")?;
        let ops = fields.array("ops")?.unwrap_or_default().into_iter();
        let ops = ops.map(FacetOp::from_json).collect::<Result<Vec<_>>>()?;
        finish(fields)?;
        let mut block = CompressionBlock {
            id,
            from,
            to,
            level,
            source_facets: facets.unwrap_or_else(|| facet.target_facet_ids.clone()),
            facet: Arc::new(facet),
            tokens: snapshot.total_tokens(),
            snapshot: Arc::new(snapshot),
            content_hash,
            original_tokens,
            net_ops: NetOps::live(ops),
            engine,
            created_at,
            originals: Originals::Spilled,
            inner,
        };
        match originals.as_str() {
            "held" => self.find_originals(&mut block, history)?,
            "blocks" => {
                block.originals = Originals::Inner;
                block.net_ops = NetOps::joined(block.inner.iter().map(|inner| &inner.net_ops));
            }
            "spilled" => {}
            "forgotten" => block.originals = Originals::Forgotten,
            other => {
                let error = Error::expected("where originals are", format_args!("{other:?}"));
                return Err(error.under("originals"));
            }
        }
        Ok(block)
    }

    /// What a block stands for, from the history.
    fn find_originals(&mut self, block: &mut CompressionBlock, history: &History) -> Result<()> {
        let frames = self.walk.within(block.from, block.to);
        let all = history.frames();
        if frames.clone().any(|at| all.is_forgotten(at)) {
            // It was held by the block alone; an archive may have it.
            return Ok(());
        }
        let passages = self.walk.passages(history, frames.clone())?;
        if content_hash(&passages) != block.content_hash {
            let message = format!("the history holds other text than {} stands for", block.id);
            return Err(Error::new(ErrorKind::Conflict, message).at_frame(block.from.get()));
        }
        block.net_ops = self.walk.net_ops(history, frames)?;
        block.originals = Originals::Held(passages);
        Ok(())
    }

    /// Puts the ranges where they wait, by their states.
    fn sort_ranges(&mut self) {
        for (number, range) in self.ranges.iter().enumerate() {
            match range.state {
                RangeState::Pending { .. } => drop(self.pending.insert(number)),
                RangeState::InProgress { .. } => {
                    self.under_way.insert(number, RunningJob::lost());
                }
                RangeState::Failed { .. } if range.retry_at.is_some() => {
                    self.failed.insert(number);
                }
                RangeState::Ready | RangeState::Failed { .. } | RangeState::Undone => {}
            }
        }
    }

    /// That frames and blocks count what they counted: another tokenizer would plan otherwise.
    fn check_counts(&self, history: &History) -> Result<()> {
        let all = history.frames();
        if self.walk.forgotten(&all) {
            return Ok(());
        }
        let counted = self.count_live();
        if counted != self.live_tokens {
            let message = format!(
                "expected frames and blocks of {} tokens, found {counted}: the history was counted otherwise",
                self.live_tokens
            );
            return Err(Error::new(ErrorKind::Conflict, message).under("liveTokens"));
        }
        Ok(())
    }
}

fn range_from_json(
    value: Value,
    frames: usize,
    block: &impl Fn(&Value) -> Result<Arc<CompressionBlock>>,
) -> Result<PlannedRange> {
    let mut fields = Fields::of(value, "a range")?;
    let id: Arc<str> = text(&mut fields, "id")?.into();
    let covers = match fields.take("frames") {
        Some(value) => {
            Covers::Frames(range_of(&value, frames).map_err(|error| error.under("frames"))?)
        }
        None => Covers::Blocks(list(&mut fields, "blocks", |value| block(&value))?),
    };
    let small = |fields: &mut Fields, key: &str| -> Result<u32> {
        let found = number(fields, key)?;
        u32::try_from(found).map_err(|_| Error::expected("32 bits", found).under(key))
    };
    let moment = |fields: &mut Fields, key: &str| -> Result<Millis> {
        Ok(Millis::new(fields.i64(key)?.unwrap_or(i64::MIN)))
    };
    let level = small(&mut fields, "level")?;
    let tokens = number(&mut fields, "tokens")?;
    let original_tokens = number(&mut fields, "originalTokens")?;
    let limit = number(&mut fields, "limit")?;
    let seen = index(&mut fields, "seen", frames)?;
    let tried = small(&mut fields, "tried")?;
    let handed_out = moment(&mut fields, "handedOut")?;
    let not_before = moment(&mut fields, "notBefore")?;
    let retry_at = fields.i64("retryAt")?.map(Millis::new);
    let handed_after = fields.u64("handedAfter")?.unwrap_or(0);
    let reason = fields.string("reason")?;
    let state = match text(&mut fields, "state")?.as_str() {
        "pending" => RangeState::Pending { tried, not_before },
        "inProgress" => RangeState::InProgress { attempt: tried },
        "ready" => RangeState::Ready,
        "failed" => RangeState::Failed { reason: reason.unwrap_or_default() },
        "undone" => RangeState::Undone,
        other => {
            return Err(Error::expected("a state", format_args!("{other:?}")).under("state"));
        }
    };
    finish(fields)?;
    Ok(PlannedRange {
        id,
        covers,
        level,
        tokens,
        original_tokens,
        limit,
        seen,
        state,
        tried,
        handed_after: usize::try_from(handed_after).unwrap_or(usize::MAX),
        handed_out,
        retry_at,
    })
}
