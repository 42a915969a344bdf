use std::{collections::BTreeMap, sync::Arc};

use foldhash::HashMap;
use smallvec::SmallVec;

use super::{
    Facet, FacetChange, FacetOp, Frame, TagSet,
    held::{Held, HeldFacets},
    op::rewritten,
    packed::{FrameBatch, LastRead, PackedFacet},
};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetId, FacetType, FrameSeq},
    text::tag_name,
};

/// The facets that hold after a frame.
#[derive(Clone, Debug, Default)]
pub struct Veil {
    facets: HeldFacets,
    ambient: BTreeMap<u64, FacetId>,
    /// The tag of every display name that was ever in the veil.
    tags: Arc<TagSet>,
    added: u64,
}

/// Whether a facet is never packed: it changes, floats, or others ask for it at each frame.
fn stays_at_hand(facet: &Facet) -> bool {
    let types = [FacetType::STATE, FacetType::AMBIENT, FacetType::SYSTEM];
    types.contains(&facet.facet_type)
        || facet.saliency.as_ref().is_some_and(|saliency| saliency.pinned)
}

/// What a frame shows, in order: each facet in the form that it has at the end of the frame.
#[derive(Clone, Debug, Default)]
pub struct VisibleFacets {
    /// The facets that the frame shows.
    pub facets: Vec<Arc<Facet>>,
    /// The [`tag_name`] of every display name that was in the veil up to this frame: what the
    /// content of a facet must not be able to forge.
    pub tags: Arc<TagSet>,
}

/// A frame's effect on the veil, worked out and not yet applied.
pub(super) struct PreparedOps<'f> {
    pub(super) shown: VisibleFacets,
    /// Each facet that the frame changes, in the order in which its ops name them.
    changes: Changes<'f>,
}

/// Most frames change one facet or two.
type Changes<'f> = SmallVec<[(&'f FacetId, Change); 2]>;

/// A frame's effect on one facet, while the frame is being applied.
#[derive(Default)]
struct Change {
    /// The facet before the frame, unless the frame's first op on it is its addition.
    before: Option<Arc<Facet>>,
    /// The facet after the ops so far; `None` where it is gone.
    now: Option<Arc<Facet>>,
    /// Where it appears in what the frame shows: the op that first added it or changed its state.
    appears: Option<usize>,
    /// The op that last added it, which also moves it to the end of the veil.
    added: Option<usize>,
}

impl Veil {
    /// A veil without facets that knows these display names already.
    pub(crate) fn with_display_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let tags: TagSet =
            names.into_iter().map(|name| tag_name(name.as_ref()).into_owned()).collect();
        Self { tags: Arc::new(tags), ..Self::default() }
    }

    /// The facet with this id, in O(1), or in the time to read its frame where a history has packed it.
    /// `None` where it does not hold.
    pub fn get(&self, id: &str) -> Option<Arc<Facet>> {
        self.facets.get(id).and_then(Held::read)
    }

    /// The facet with this id, where it is at hand: all that change, float, are the operator's or are
    /// pinned are. Reads no frame.
    pub(crate) fn at_hand(&self, id: &str) -> Option<&Arc<Facet>> {
        self.facets.live(id)
    }

    /// Whether a facet with this id holds, at the cost of [`Veil::get`].
    pub fn holds(&self, id: &str) -> bool {
        self.facets.get(id).is_some()
    }

    /// As [`Veil::holds`]; a frame that was read `last` is not read again.
    pub(crate) fn holds_after(&self, id: &str, last: &mut LastRead) -> bool {
        self.facets.get_after(id, last).is_some()
    }

    /// The frame with this index in `batch` is `frame`: what it added is read there from now on.
    pub(super) fn pack(&mut self, batch: &Arc<FrameBatch>, row: u32, frame: &Frame) {
        for (op, index) in frame.ops.iter().zip(0..) {
            let FacetChange::Add(facet) = &op.change else { continue };
            if stays_at_hand(facet) {
                continue;
            }
            let Some(held) = self.facets.get_mut(&facet.id) else { continue };
            if matches!(held, Held::Live(live) if Arc::ptr_eq(live, facet)) {
                *held = Held::Packed(PackedFacet::new(batch, row, index));
            }
        }
    }

    /// Gives back what is reserved.
    pub(super) fn shrink_to_fit(&mut self) {
        self.facets.shrink_to_fit();
    }

    /// Refers to the batches that `current` gives by the sequences of their frames. What was
    /// forgotten holds no more.
    pub(super) fn refresh<'b>(
        &mut self,
        current: impl Fn(FrameSeq) -> Option<&'b Arc<FrameBatch>>,
    ) {
        self.facets.retain(|of| {
            let Held::Packed(facet) = &mut of.held else { return true };
            if let Some(batch) = current(facet.batch.sequence(facet.frame)) {
                facet.batch = Arc::clone(batch);
            }
            !facet.batch.is_forgotten(facet.frame)
        });
    }

    /// The number of facets.
    pub fn len(&self) -> usize {
        self.facets.len()
    }

    /// Whether no facet holds.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All facets in the order in which they were added. Sorts them: O(n log n).
    pub fn facets(&self) -> Vec<Arc<Facet>> {
        let mut facets: Vec<_> = self.facets.iter().collect();
        facets.sort_unstable_by_key(|of| of.added);
        let mut last = LastRead::default();
        facets.into_iter().filter_map(|of| of.held.read_after(&mut last)).collect()
    }

    /// The ambient facets in the order in which they were added. O(their number) for all of them.
    pub fn ambient(&self) -> impl Iterator<Item = Arc<Facet>> {
        self.ambient.values().filter_map(|id| self.get(id))
    }

    /// The [`tag_name`] of every display name that was ever in the veil.
    pub fn tags(&self) -> &Arc<TagSet> {
        &self.tags
    }

    /// Applies a frame's ops and answers with what the frame shows. This is the one place where
    /// ops take effect.
    ///
    /// Shown are the facets that the frame adds and the state facets that it changes, each once,
    /// in the form that it has at the end of the frame, where it first appeared in it. A facet
    /// that is added and removed in the frame is not shown. Ambient facets are not shown: they
    /// float. Ephemeral facets are shown and then gone. O(n log n) in the frame's ops.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFacet`] where an op names a facet that does not hold, and
    /// [`ErrorKind::Shape`] where a rewrite makes no facet; both name frame, op and facet. The veil
    /// is then as it was.
    pub fn apply(&mut self, frame: &Frame) -> Result<VisibleFacets> {
        let prepared = self.prepare(frame)?;
        Ok(self.commit(prepared))
    }

    /// Whether [`Veil::apply`] would take a frame. O(ops).
    ///
    /// # Errors
    /// Those of [`Veil::apply`].
    pub fn check(&self, frame: &Frame) -> Result<()> {
        self.prepare(frame).map(drop)
    }

    /// Works out what a frame comes to. Changes nothing.
    pub(super) fn prepare<'f>(&self, frame: &'f Frame) -> Result<PreparedOps<'f>> {
        let changes = self.changes(frame)?;
        let mut tags = Arc::clone(&self.tags);
        for facet in changes.iter().filter_map(|(_, change)| change.now.as_ref()) {
            note_tags(&mut tags, facet);
        }
        let facets = match changes.as_slice() {
            [(_, change)] => change.shown().map(|(_, facet)| facet).into_iter().collect(),
            changes => {
                let shown = changes.iter().filter_map(|(_, change)| change.shown());
                let mut shown: Vec<(usize, Arc<Facet>)> = shown.collect();
                shown.sort_unstable_by_key(|(at, _)| *at);
                shown.into_iter().map(|(_, facet)| facet).collect()
            }
        };
        Ok(PreparedOps { shown: VisibleFacets { facets, tags }, changes })
    }

    fn changes<'f>(&self, frame: &'f Frame) -> Result<Changes<'f>> {
        let mut changes = Changes::with_capacity(frame.ops.len());
        // Most frames have one op or a few; a map of their ids pays only beyond.
        let mut index_of: Option<HashMap<&FacetId, usize>> = None;
        for (index, op) in frame.ops.iter().enumerate() {
            let id = op.facet_id();
            let known = match frame.ops.len() {
                0..=8 => changes.iter().position(|(of, _)| *of == id),
                _ => index_of.get_or_insert_default().get(id).copied(),
            };
            let slot = known.unwrap_or(changes.len());
            if known.is_none() {
                // A facet that is added shows, whatever it replaces.
                let before = match &op.change {
                    FacetChange::Add(_) => None,
                    _ => self.get(id),
                };
                changes.push((id, Change { now: before.clone(), before, ..Change::default() }));
                if let Some(index_of) = &mut index_of {
                    index_of.insert(id, slot);
                }
            }
            let Some((_, change)) = changes.get_mut(slot) else { continue };
            change.take(op, index).map_err(|error| {
                error.at_frame(frame.sequence.get()).at(|place| {
                    place.op = Some(index);
                    place.facet = Some(id.to_string());
                })
            })?;
        }
        Ok(changes)
    }

    /// Puts what was worked out into effect.
    pub(super) fn commit(&mut self, prepared: PreparedOps<'_>) -> VisibleFacets {
        let PreparedOps { shown, mut changes } = prepared;
        // The order of the veil is that of the additions, not that in which ops first name facets.
        changes.sort_by_key(|(_, change)| change.added);
        let mut last = LastRead::default();
        for (id, change) in changes {
            let Some(facet) = change.now.filter(|facet| !facet.ephemeral) else {
                if let Some(before) = self.facets.remove(id, &mut last) {
                    self.ambient.remove(&before.added);
                }
                continue;
            };
            let ambient = (facet.facet_type == FacetType::AMBIENT).then(|| facet.id.clone());
            // One look-up serves what was there and what is there now.
            let (now, before) = self.facets.insert(facet, &mut last);
            if let Some(before) = &before {
                self.ambient.remove(&before.added);
            }
            if change.added.is_some() || before.is_none() {
                self.added += 1;
                now.added = self.added;
            }
            if let Some(id) = ambient {
                self.ambient.insert(now.added, id);
            }
        }
        self.tags = Arc::clone(&shown.tags);
        shown
    }
}

impl Change {
    /// The facet in its final form with where it appears, if the frame shows it.
    fn shown(&self) -> Option<(usize, Arc<Facet>)> {
        let facet = self.now.as_ref().filter(|facet| facet.is_shown_in_frames())?;
        let changed = facet.facet_type == FacetType::STATE && self.now != self.before;
        let appears = self.appears.filter(|_| self.added.is_some() || changed)?;
        Some((appears, Arc::clone(facet)))
    }

    fn take(&mut self, op: &FacetOp, index: usize) -> Result<()> {
        let unknown = || Error::new(ErrorKind::UnknownFacet, "the facet does not exist");
        match &op.change {
            FacetChange::Add(facet) => {
                // What comes back after a removal in the same frame appears where it came back.
                if self.now.is_none() {
                    self.appears = None;
                }
                self.now = Some(Arc::clone(facet));
                self.appears.get_or_insert(index);
                self.added = Some(index);
            }
            FacetChange::Rewrite { changes, unset, .. } => {
                let new = rewritten(self.now.as_ref().ok_or_else(unknown)?, changes, unset)?;
                if new.facet_type == FacetType::STATE {
                    self.appears.get_or_insert(index);
                }
                self.now = Some(Arc::new(new));
            }
            FacetChange::Remove(_) => {
                self.now.take().ok_or_else(unknown)?;
            }
        }
        Ok(())
    }
}

fn note_tags(tags: &mut Arc<TagSet>, facet: &Facet) {
    if let Some(name) = &facet.display_name {
        let tag = tag_name(name);
        if !tags.contains(&tag) {
            Arc::make_mut(tags).insert(tag.into_owned());
        }
    }
    for child in &facet.children {
        note_tags(tags, child);
    }
}
