use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{Facet, FacetOp, Frame, op::rewritten};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetId, FacetType},
};

/// The facets that hold after a frame.
#[derive(Clone, Debug, Default)]
pub struct Veil {
    /// Each facet with the moment of its addition, which orders them.
    facets: HashMap<FacetId, (u64, Arc<Facet>)>,
    ambient: BTreeMap<u64, FacetId>,
    /// Every display name that was ever in the veil: what content must not be able to forge.
    display_names: Arc<BTreeSet<String>>,
    added: u64,
}

/// What a frame shows, in order: each facet in the form that it has at the end of the frame.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The facets that the frame shows.
    pub facets: Vec<Arc<Facet>>,
    /// Every display name that was in the veil up to this frame.
    pub display_names: Arc<BTreeSet<String>>,
}

/// A frame's effect on one facet, while the frame is being applied.
#[derive(Default)]
struct Change {
    /// The facet before the frame.
    before: Option<Arc<Facet>>,
    /// The facet after the ops so far; `None` where it is gone.
    now: Option<Arc<Facet>>,
    /// Where it appears in what the frame shows: the op that first added it or changed its state.
    appears: Option<usize>,
    /// Whether it was added in this frame, which also moves it to the end of the veil.
    added: bool,
}

impl Veil {
    /// The facet with this id, in O(1).
    pub fn get(&self, id: &str) -> Option<&Arc<Facet>> {
        self.facets.get(id).map(|(_, facet)| facet)
    }

    /// The number of facets.
    pub fn len(&self) -> usize {
        self.facets.len()
    }

    /// Whether no facet holds.
    pub fn is_empty(&self) -> bool {
        self.facets.is_empty()
    }

    /// All facets in the order in which they were added. Sorts them: O(n log n).
    pub fn facets(&self) -> Vec<&Arc<Facet>> {
        let mut facets: Vec<_> = self.facets.values().collect();
        facets.sort_unstable_by_key(|(added, _)| *added);
        facets.into_iter().map(|(_, facet)| facet).collect()
    }

    /// The ambient facets in the order in which they were added.
    pub fn ambient(&self) -> impl Iterator<Item = &Arc<Facet>> {
        self.ambient.values().filter_map(|id| self.get(id))
    }

    /// Every display name that was ever in the veil.
    pub fn display_names(&self) -> &Arc<BTreeSet<String>> {
        &self.display_names
    }

    /// Applies a frame's ops and answers with what the frame shows. This is the one place where
    /// ops take effect.
    ///
    /// Shown are the facets that the frame adds and the state facets that it changes, each once,
    /// in the form that it has at the end of the frame, where it first appeared in it. A facet
    /// that is added and removed in the frame is not shown. Ambient facets are not shown: they
    /// float. Ephemeral facets are shown and then gone.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFacet`] where an op names a facet that does not hold, and
    /// [`ErrorKind::Shape`] where a rewrite makes no facet; both name frame, op and facet. The veil
    /// is then as it was.
    pub fn apply(&mut self, frame: &Frame) -> Result<Shown> {
        let changes = self.changes(frame)?;
        let mut shown: Vec<(usize, Arc<Facet>)> = changes
            .values()
            .filter(|change| change.added || change.now != change.before)
            .filter_map(|change| change.appears.zip(change.now.clone()))
            .filter(|(_, facet)| facet.is_shown_in_frames())
            .collect();
        shown.sort_unstable_by_key(|(at, _)| *at);
        self.commit(frame, changes);
        let facets = shown.into_iter().map(|(_, facet)| facet).collect();
        Ok(Shown { facets, display_names: Arc::clone(&self.display_names) })
    }

    /// What the frame's ops come to, facet by facet. Changes nothing.
    fn changes<'f>(&self, frame: &'f Frame) -> Result<HashMap<&'f FacetId, Change>> {
        let mut changes: HashMap<&FacetId, Change> = HashMap::with_capacity(frame.ops.len());
        for (index, op) in frame.ops.iter().enumerate() {
            let id = op.facet_id();
            let change = changes.entry(id).or_insert_with(|| {
                let before = self.get(id).cloned();
                Change { now: before.clone(), before, ..Change::default() }
            });
            Self::change(change, op, index).map_err(|error| {
                error.at_frame(frame.sequence.get()).at(|place| {
                    place.op = Some(index);
                    place.facet = Some(id.to_string());
                })
            })?;
        }
        Ok(changes)
    }

    fn change(change: &mut Change, op: &FacetOp, index: usize) -> Result<()> {
        let unknown = || Error::new(ErrorKind::UnknownFacet, "no facet with this id holds");
        match op {
            FacetOp::Add(facet) => {
                // Added anew after a removal in the same frame, it appears where it came back.
                if change.now.is_none() {
                    change.appears = None;
                }
                change.now = Some(Arc::clone(facet));
                change.appears.get_or_insert(index);
                change.added = true;
            }
            FacetOp::Rewrite { changes, unset, .. } => {
                let old = change.now.as_ref().ok_or_else(unknown)?;
                let new = rewritten(old, changes, unset)?;
                if new.facet_type == FacetType::STATE {
                    change.appears.get_or_insert(index);
                }
                change.now = Some(Arc::new(new));
            }
            FacetOp::Remove(_) => {
                change.now.take().ok_or_else(unknown)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, frame: &Frame, mut changes: HashMap<&FacetId, Change>) {
        // In the order of the ops, so that the order of the veil follows from the frames alone.
        for op in &frame.ops {
            let Some(change) = changes.remove(op.facet_id()) else { continue };
            let id = op.facet_id();
            let old = self.facets.remove(id);
            if let Some((added, _)) = &old {
                self.ambient.remove(added);
            }
            let Some(facet) = change.now else { continue };
            self.note_display_names(&facet);
            if facet.ephemeral {
                continue;
            }
            let added = match old {
                Some((added, _)) if !change.added => added,
                _ => {
                    self.added += 1;
                    self.added
                }
            };
            if facet.facet_type == FacetType::AMBIENT {
                self.ambient.insert(added, facet.id.clone());
            }
            self.facets.insert(facet.id.clone(), (added, facet));
        }
    }

    fn note_display_names(&mut self, facet: &Facet) {
        if let Some(name) = &facet.display_name
            && !self.display_names.contains(name)
        {
            Arc::make_mut(&mut self.display_names).insert(name.clone());
        }
        for child in &facet.children {
            self.note_display_names(child);
        }
    }
}
