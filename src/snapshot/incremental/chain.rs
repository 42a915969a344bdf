use std::ops::Range;

use super::{
    IncrementalSnapshot,
    snapshot::{Growing, check_kept, sum_of},
};
use crate::{Error, ErrorKind, Result, id::FrameSeq, snapshot::FrameSnapshot};

/// Incremental snapshots that are based on each other, each expanded when it is asked for.
///
/// Nothing is stored twice: a chain of contexts that grow holds each chunk once, and expanding one
/// costs its own text, however many it is based on. The snapshots that others are based on come
/// before them, so there are no loops.
#[derive(Clone, Debug, Default)]
pub struct IncrementalChain {
    links: Vec<Link>,
}

#[derive(Clone, Debug)]
struct Link {
    sequence: FrameSeq,
    snapshot: IncrementalSnapshot,
    /// The link that holds the last chunk that is kept, which is the base or one below it. It
    /// keeps fewer chunks itself.
    base: Option<usize>,
    /// How many chunks it begins with that are not its own.
    kept: usize,
}

impl Link {
    /// The chunks of the full snapshot.
    fn chunks(&self) -> usize {
        self.kept + self.snapshot.delta.len()
    }
}

impl IncrementalChain {
    /// An empty chain.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the snapshot of a frame, after checking that it fits what it is based on. Runs in
    /// O(new chunks) time where it keeps all chunks of its base; else follows the bases to the one
    /// that holds the last chunk that it keeps.
    ///
    /// # Errors
    /// Each names the frame, and leaves the chain as it was. [`ErrorKind::Sequence`] where the
    /// sequence is not greater than the last; [`ErrorKind::Base`] where the base is not in the
    /// chain, does not come before the frame (as in every loop), or has fewer chunks than are
    /// kept of it; [`ErrorKind::Sum`] where `cumulativeTokens` is not what base and new chunks
    /// come to.
    pub fn push(
        &mut self,
        sequence: impl Into<FrameSeq>,
        snapshot: IncrementalSnapshot,
    ) -> Result<()> {
        let sequence = sequence.into();
        let link = self.link(sequence, snapshot).map_err(|e| e.at_frame(sequence.get()))?;
        self.links.push(link);
        Ok(())
    }

    fn link(&self, sequence: FrameSeq, snapshot: IncrementalSnapshot) -> Result<Link> {
        if let Some(last) = self.links.last().filter(|last| sequence <= last.sequence) {
            let last = last.sequence;
            let message =
                format!("sequences rise: expected one greater than {last}, found {sequence}");
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        let (base, kept, tokens) = match snapshot.based_on {
            None => (None, 0, 0),
            Some(base) => self.kept_of(self.base(sequence, base)?, base, snapshot.kept)?,
        };
        let sum = tokens.checked_add(snapshot.delta.total_tokens);
        let sum = sum.ok_or_else(|| Error::new(ErrorKind::Sum, "the tokens exceed 64 bits"))?;
        snapshot.check_total(sum)?;
        Ok(Link { sequence, snapshot, base, kept })
    }

    /// Where the base of a frame is.
    fn base(&self, sequence: FrameSeq, base: FrameSeq) -> Result<usize> {
        let error = |expected: &str| {
            let message = format!("expected {expected} as the base, found frame {base}");
            Err(Error::new(ErrorKind::Base, message).under("basedOn"))
        };
        if base >= sequence {
            return error("a frame before this one");
        }
        self.place(base).map_or_else(|| error("a frame of the chain"), Ok)
    }

    /// The link that holds the last of the chunks kept of a base, how many are kept, and what they
    /// come to.
    fn kept_of(
        &self,
        place: usize,
        base: FrameSeq,
        kept: Option<usize>,
    ) -> Result<(Option<usize>, usize, u64)> {
        let mut next = self.links.get(place).map(|link| (place, link));
        let chunks = next.map_or(0, |(_, link)| link.chunks());
        let kept = kept.unwrap_or(chunks);
        check_kept(kept, base, chunks)?;
        while let Some((place, link)) = next {
            if let Some(own) = kept.checked_sub(link.kept).filter(|own| *own > 0) {
                let IncrementalSnapshot { cumulative_tokens: all, delta, .. } = &link.snapshot;
                // The running total without the chunks that are not kept.
                let tokens = sum_of(delta.chunks.get(own..).unwrap_or_default())?;
                return Ok((Some(place), kept, all.saturating_sub(tokens)));
            }
            next = link.base.and_then(|place| Some((place, self.links.get(place)?)));
        }
        Ok((None, kept, 0))
    }

    fn place(&self, sequence: FrameSeq) -> Option<usize> {
        self.links.binary_search_by_key(&sequence, |link| link.sequence).ok()
    }

    /// The full snapshot of a frame; `None` where the chain has none with this sequence. Copies
    /// its text, and follows the bases that hold some of it.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where the structure of its chunks does not fit together; it names the
    /// frame.
    pub fn expand(&self, sequence: impl Into<FrameSeq>) -> Result<Option<FrameSnapshot>> {
        let sequence = sequence.into();
        let Some(link) = self.place(sequence).and_then(|place| self.links.get(place)) else {
            return Ok(None);
        };
        let (mut pieces, mut next, mut end) = (Vec::new(), Some(link), link.chunks());
        while let Some(link) = next {
            let delta = &link.snapshot.delta;
            pieces.push((delta, 0..end - link.kept));
            (next, end) = (link.base.and_then(|place| self.links.get(place)), link.kept);
        }
        let mut whole = Growing::default();
        let bytes = |(delta, own): &(&FrameSnapshot, Range<usize>)| {
            let last = own.end.checked_sub(1).and_then(|last| delta.chunks.get(last));
            last.map_or(0, |last| last.range.end())
        };
        whole.reserve(link.chunks(), pieces.iter().map(bytes).sum());
        pieces.into_iter().rev().for_each(|(delta, own)| whole.append(delta, own));
        let expanded = link.snapshot.expanded(whole);
        expanded.map(Some).map_err(|error| error.at_frame(sequence.get()))
    }

    /// The number of snapshots.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The snapshot of a frame as it was added. O(log n).
    pub fn get(&self, sequence: FrameSeq) -> Option<&IncrementalSnapshot> {
        self.links.get(self.place(sequence)?).map(|link| &link.snapshot)
    }

    /// The snapshots as they were added, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (FrameSeq, &IncrementalSnapshot)> {
        self.links.iter().map(|link| (link.sequence, &link.snapshot))
    }
}
