use std::{fmt, ops::Range, sync::Arc};

use super::{
    bytes::{ByteRuns, ByteWriter},
    decode::Decoder,
    encode::encode,
};
use crate::{
    id::FrameSeq,
    snapshot::{ArchivedFrame, FrameSnapshot, SealedSegment, SegmentBuilder},
    veil::{Facet, FacetChange, FacetOp, Frame, Source},
};

/// An op after so many others is read with its whole frame, which then serves the ops behind it.
const FEW_OPS: u32 = 8;

/// The frames of one segment of the archive.
#[derive(Clone)]
pub(crate) struct FrameBatch {
    segment: SealedSegment,
    /// The bytes of each; none of one that was forgotten, or is whole.
    frames: ByteRuns,
    /// Those that bytes would not give back as they are.
    whole: Vec<(u32, Arc<Frame>)>,
    /// What the model saw besides, when it answered with a frame.
    tails: Vec<(u32, Arc<FrameSnapshot>)>,
}

/// A facet of a frame in a batch, which it keeps alive.
#[derive(Clone)]
pub(crate) struct PackedFacet {
    pub(in crate::veil) batch: Arc<FrameBatch>,
    pub(in crate::veil) frame: u32,
    op: u32,
}

impl PackedFacet {
    pub(in crate::veil) fn new(batch: &Arc<FrameBatch>, frame: u32, op: u32) -> Self {
        Self { batch: Arc::clone(batch), frame, op }
    }

    /// Whether it is the facet with this id. Reads the ops of its frame up to its own, or all of it
    /// where these are many and it was not read `last`.
    pub(in crate::veil) fn has_id(&self, id: &str, last: &mut LastRead) -> bool {
        if self.op < FEW_OPS {
            return self.batch.adds(self.frame, self.op, id);
        }
        self.read(last).is_some_and(|facet| facet.id.as_str() == id)
    }

    /// The facet; `None` where its frame was forgotten. A frame that was read `last` is not read
    /// again.
    pub(in crate::veil) fn read(&self, last: &mut LastRead) -> Option<Arc<Facet>> {
        let is_last = last
            .0
            .as_ref()
            .is_some_and(|(batch, row, _)| Arc::ptr_eq(batch, &self.batch) && *row == self.frame);
        if !is_last {
            let frame = self.batch.frame(self.frame);
            last.0 = Some((Arc::clone(&self.batch), self.frame, frame));
        }
        let (_, _, frame) = last.0.as_ref()?;
        match &frame.ops.get(self.op as usize)?.change {
            FacetChange::Add(facet) => Some(Arc::clone(facet)),
            _ => None,
        }
    }
}

/// The last frame that a facet was read from.
#[derive(Default)]
pub(crate) struct LastRead(Option<(Arc<FrameBatch>, u32, Arc<Frame>)>);

/// An op that is kept: an addition in a packed frame is read there.
#[derive(Clone, Debug)]
pub(crate) enum HeldOp {
    Live(FacetOp),
    Packed(PackedFacet),
}

impl HeldOp {
    /// The op; `None` where its frame was forgotten.
    pub(crate) fn read(&self, last: &mut LastRead) -> Option<FacetOp> {
        match self {
            Self::Live(op) => Some(op.clone()),
            Self::Packed(facet) => facet.read(last).map(|facet| FacetChange::Add(facet).into()),
        }
    }
}

impl FrameBatch {
    /// The batch of as many of these frames as one segment takes, from the first on; `None` where
    /// that is none. All have snapshots.
    pub(in crate::veil) fn of(all: &[Arc<Frame>]) -> Option<Self> {
        let mut builder = SegmentBuilder::for_snapshots(
            all.iter().filter_map(|frame| frame.rendered_snapshot.as_deref()),
        );
        let fits = |frame: &&Arc<Frame>| {
            let shown = frame.rendered_snapshot.as_ref();
            shown.is_some_and(|shown| builder.push(frame.sequence, shown))
        };
        let count = all.iter().take_while(fits).count();
        let segment = builder.finish()?;
        Some(Self::new(segment, all.get(..count)?))
    }

    fn new(segment: SealedSegment, all: &[Arc<Frame>]) -> Self {
        let (mut tails, mut whole, mut bytes) = (Vec::new(), Vec::new(), ByteWriter::default());
        let mut ends = Vec::with_capacity(all.len());
        for (row, frame) in (0..).zip(all) {
            tails.extend(frame.rendered_tail.as_ref().map(|tail| (row, Arc::clone(tail))));
            let start = bytes.len();
            let shown = frame.rendered_snapshot.as_ref();
            let has_json = shown.map(|shown| encode(&mut bytes, frame, shown));
            let is_exact = |bytes: &[u8]| {
                Decoder::new(bytes, &segment, row).frame().is_some_and(|read| same(&read, frame))
            };
            let is_packed = u32::try_from(bytes.len()).is_ok()
                && has_json.is_some_and(|has_json| !has_json || is_exact(bytes.from(start)));
            if is_packed {
                debug_assert!(is_exact(bytes.from(start)), "{frame:?}");
            } else {
                bytes.truncate(start);
                whole.push((row, Arc::clone(frame)));
            }
            ends.push(bytes.len() as u32);
        }
        let frames = ByteRuns::new(bytes, ends);
        tails.shrink_to_fit();
        whole.shrink_to_fit();
        Self { segment, frames, whole, tails }
    }

    fn whole(&self, frame: u32) -> Option<&Arc<Frame>> {
        let at = self.whole.binary_search_by_key(&frame, |(row, _)| *row).ok()?;
        self.whole.get(at).map(|(_, frame)| frame)
    }

    pub(in crate::veil) fn len(&self) -> usize {
        self.segment.len()
    }

    pub(in crate::veil) fn segment(&self) -> &SealedSegment {
        &self.segment
    }

    pub(in crate::veil) fn sequence(&self, frame: u32) -> FrameSeq {
        self.segment.sequence(frame)
    }

    /// Whether a frame was forgotten.
    pub(in crate::veil) fn is_forgotten(&self, frame: u32) -> bool {
        self.frames.get(frame).is_empty() && self.whole(frame).is_none()
    }

    pub(in crate::veil) fn source(&self, frame: u32) -> Source {
        if let Some(whole) = self.whole(frame) {
            return whole.source.clone();
        }
        let source = self.decoder(frame).and_then(|mut decoder| decoder.source());
        source.unwrap_or_default()
    }

    pub(in crate::veil) fn snapshot(&self, frame: u32) -> Option<Arc<FrameSnapshot>> {
        if self.is_forgotten(frame) {
            return None;
        }
        self.segment.snapshot(frame).map(Arc::new)
    }

    /// Whether this op of a frame adds the facet with this id.
    fn adds(&self, frame: u32, op: u32, id: &str) -> bool {
        if let Some(whole) = self.whole(frame) {
            let op = whole.ops.get(op as usize);
            return op.is_some_and(|op| op.facet_id().as_str() == id);
        }
        self.decoder(frame).and_then(|decoder| decoder.facet_id(op)).is_some_and(|of| of == id)
    }

    /// What the frame rendered to, where it lies.
    pub(in crate::veil) fn archived(&self, frame: u32) -> Option<ArchivedFrame> {
        if self.is_forgotten(frame) { None } else { self.segment.archived(frame) }
    }

    /// The frame. One that was forgotten has its sequence and nothing else.
    pub(in crate::veil) fn frame(&self, frame: u32) -> Arc<Frame> {
        if let Some(whole) = self.whole(frame) {
            return Arc::clone(whole);
        }
        let Some(read) = self.read(frame) else {
            return Arc::new(Frame::new(self.sequence(frame), Source::default()));
        };
        let tail = self.tails.binary_search_by_key(&frame, |(row, _)| *row).ok();
        let tail = tail.and_then(|at| self.tails.get(at)).map(|(_, tail)| Arc::clone(tail));
        let rendered_snapshot = self.snapshot(frame);
        Arc::new(Frame { rendered_snapshot, rendered_tail: tail, ..read })
    }

    fn read(&self, frame: u32) -> Option<Frame> {
        self.decoder(frame)?.frame()
    }

    fn decoder(&self, frame: u32) -> Option<Decoder<'_>> {
        let bytes = self.frames.get(frame);
        (!bytes.is_empty()).then(|| Decoder::new(bytes, &self.segment, frame))
    }

    /// The batch without these frames; the text is in `segment`.
    pub(in crate::veil) fn without(&self, segment: SealedSegment, gone: &Range<u32>) -> Self {
        let frames = self.frames.without(gone);
        let tails = self.tails.iter().filter(|(row, _)| !gone.contains(row)).cloned().collect();
        let whole = self.whole.iter().filter(|(row, _)| !gone.contains(row)).cloned().collect();
        let left = Self { segment, frames, whole, tails };
        if !(0..left.len() as u32).all(|row| left.is_forgotten(row)) {
            return left;
        }
        let (frames, whole, tails) = Default::default();
        Self { segment: left.segment.forgotten(), frames, whole, tails }
    }
}

impl fmt::Debug for FrameBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameBatch").field("frames", &self.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for PackedFacet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedFacet")
            .field("frame", &self.batch.sequence(self.frame))
            .field("op", &self.op)
            .finish_non_exhaustive()
    }
}

/// Whether a frame says the same, its snapshots aside.
fn same(read: &Frame, frame: &Frame) -> bool {
    let Frame {
        sequence,
        timestamp,
        uuid,
        source,
        active_stream,
        events,
        imported,
        ops,
        rendered_snapshot: _,
        rendered_tail: _,
        extra,
    } = frame;
    read.sequence == *sequence
        && read.timestamp == *timestamp
        && read.uuid == *uuid
        && read.source == *source
        && read.active_stream == *active_stream
        && read.events == *events
        && read.imported == *imported
        && read.ops == *ops
        && read.extra == *extra
}
