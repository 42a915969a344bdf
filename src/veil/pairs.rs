//! Which result answers which call in a history.

use foldhash::{HashMap, HashSet};

use super::{CallOutcome, Facet, Frame, OpenCalls, Source, VisibleFacets, open_calls::Answered};
use crate::{
    id::{FacetId, FrameSeq},
    snapshot::{FrameSnapshot, PartRef},
};

/// Where a call or a result stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartPlace {
    /// The frame.
    pub frame: FrameSeq,
    /// Its number among the calls and results that the frame shows, from zero.
    pub number: u32,
}

/// A result with the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The call.
    pub call: PartPlace,
    /// The result.
    pub result: PartPlace,
    /// Whether the result came before the agent went on. The request after it holds both as a
    /// pair; a later result is text at its own place, since the requests before it held none.
    pub in_time: bool,
    /// What became of the call, as far as the source states it.
    pub outcome: CallOutcome,
}

/// The calls and results of a history, paired once: when the frame of the result enters it.
///
/// A result answers the latest open call with its id. Without an id it answers the oldest open call
/// of its tool, else the oldest; an id that no open call has answers the oldest call without one.
/// Calls of the agent's last turn come before those of earlier turns.
///
/// ```
/// use afterimage::veil::{CallOutcome, Facet, FacetOp, Frame, History, Source};
/// use afterimage::json::Value;
///
/// let mut history = History::new();
/// let call = Facet::tool_call("call-0", Some("c1"), "look", Value::Null);
/// let result = Facet::tool_result("seen-1", None, None, "open");
/// history.push(Frame::new(0, Source::Agent).with(FacetOp::add(call)))?;
/// assert_eq!(history.pairs().open(), 1);
/// history.push(Frame::new(1, Source::Environment).with(FacetOp::add(result)))?;
/// let [pair] = history.pairs().in_frame(1.into()) else { panic!() };
/// assert_eq!((pair.call.frame.get(), pair.in_time, pair.outcome), (0, true, CallOutcome::Unstated));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// In the order of the results.
    all: Vec<Pair>,
    /// The results that state an outcome, in order.
    stated: Vec<(FrameSeq, (FacetId, CallOutcome))>,
    open: OpenCalls<PartPlace>,
    /// The calls that wait after each frame.
    waiting: Vec<u32>,
    /// The indices of the frames with which the agent went on though calls waited.
    went_on: Vec<usize>,
}

impl Pairs {
    /// All pairs, in the order of the results.
    pub fn all(&self) -> &[Pair] {
        &self.all
    }

    /// The pairs whose results a frame holds, in O(log n).
    pub fn in_frame(&self, frame: FrameSeq) -> &[Pair] {
        let start = self.all.partition_point(|pair| pair.result.frame < frame);
        let rest = self.all.get(start..).unwrap_or_default();
        let end = rest.partition_point(|pair| pair.result.frame == frame);
        rest.get(..end).unwrap_or_default()
    }

    /// The pair of a result, in O(log n); `None` where no call waited for it.
    pub fn of_result(&self, result: PartPlace) -> Option<&Pair> {
        let at = self.all.binary_search_by_key(&result, |pair| pair.result).ok()?;
        self.all.get(at)
    }

    /// The results in a frame that state an outcome, also those that answer no call: the facet, and
    /// how its call ended. O(log n).
    pub fn stated_in(&self, frame: FrameSeq) -> impl Iterator<Item = &(FacetId, CallOutcome)> {
        let start = self.stated.partition_point(|(of, _)| *of < frame);
        let rest = self.stated.get(start..).unwrap_or_default();
        rest.iter().take_while(move |(of, _)| *of == frame).map(|(_, stated)| stated)
    }

    /// How many calls of the agent's last turn wait for their results.
    pub fn open(&self) -> usize {
        self.open.waiting()
    }

    /// How many calls waited after the frame with this index.
    pub(crate) fn waiting_after(&self, index: usize) -> u32 {
        self.waiting.get(index).copied().unwrap_or_default()
    }

    /// Whether the agent went on with the frame with this index though calls waited: their results
    /// come too late from then on.
    pub(crate) fn went_on_at(&self, index: usize) -> bool {
        self.went_on.binary_search(&index).is_ok()
    }

    /// Gives back what is reserved.
    pub(super) fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
        self.stated.shrink_to_fit();
        self.went_on.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    /// Takes the next frame: what its snapshot holds, else what it shows.
    pub(super) fn push(
        &mut self,
        frame: &Frame,
        shown: &VisibleFacets,
        snapshot: Option<&FrameSnapshot>,
    ) {
        let facets = calls_and_results(shown.facets.iter().map(|facet| &**facet));
        let outcomes = facets.into_iter().map(|facet| (&facet.id, facet.outcome()));
        let stated = outcomes.filter(|(_, outcome)| *outcome != CallOutcome::Unstated);
        self.stated.extend(stated.map(|(id, outcome)| (frame.sequence, (id.clone(), outcome))));
        let says_something = match snapshot {
            Some(snapshot) => !snapshot.is_empty(),
            None => shown.facets.iter().any(|facet| facet.says_something()),
        };
        if says_something {
            let waited = self.open.waiting();
            self.open.next_frame(frame.source == Source::Agent);
            if self.open.waiting() < waited {
                self.went_on.push(self.waiting.len());
            }
            let halves = match snapshot {
                Some(snapshot) => halves_of_snapshot(snapshot, shown),
                None => halves_of_facets(shown),
            };
            for (number, half) in (0..).zip(halves) {
                self.take(half, PartPlace { frame: frame.sequence, number });
            }
        }
        self.waiting.push(u32::try_from(self.open.waiting()).unwrap_or(u32::MAX));
    }

    fn take(&mut self, half: Half<'_>, place: PartPlace) {
        match half {
            Half::Call { id, name } => self.open.call(id, name, place),
            Half::Result { id, name, outcome } => {
                if let Some(Answered { call, in_time, .. }) = self.open.answer(id, name) {
                    self.all.push(Pair { call, result: place, in_time, outcome });
                }
            }
        }
    }
}

/// A call or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half<'a> {
    Call { id: Option<&'a str>, name: &'a str },
    Result { id: Option<&'a str>, name: Option<&'a str>, outcome: CallOutcome },
}

impl<'a> Half<'a> {
    fn of(facet: &'a Facet) -> Self {
        match facet.call() {
            Some(call) => Self::Call { id: call.id, name: call.name },
            None => Self::Result {
                id: facet.call_id(),
                name: facet.tool_name(),
                outcome: facet.outcome(),
            },
        }
    }
}

/// The calls and results of a snapshot, each once: a long one is several chunks, and what stands
/// inside of a result is a part of it.
fn halves_of_snapshot<'a>(snapshot: &'a FrameSnapshot, shown: &'a VisibleFacets) -> Vec<Half<'a>> {
    let is_half = |part: PartRef<'_>| matches!(part, PartRef::Call { .. } | PartRef::Result { .. });
    if !snapshot.chunks().any(|chunk| is_half(chunk.part())) {
        return Vec::new();
    }
    let mut of_id: HashMap<&str, &Facet> = HashMap::default();
    // The results, and the facets inside of them.
    let mut results: HashSet<&str> = HashSet::default();
    // A facet without text of its own has no chunk, so that chunks do not say where all facets are.
    let mut inside: HashSet<&str> = HashSet::default();
    shown.facets.iter().for_each(|facet| note_results(facet, &mut of_id, &mut inside));
    let mut taken: HashSet<&str> = HashSet::default();
    let half = |chunk: crate::snapshot::ChunkRef<'a>| {
        let facet = chunk.facet_ids().next();
        let around = chunk.structure().and_then(|structure| structure.parent);
        let around = around.and_then(|around| snapshot.chunk(around)?.facet_ids().next());
        let is_inside = around.is_some_and(|around| results.contains(around))
            || facet.is_some_and(|facet| inside.contains(facet));
        let half = match chunk.part() {
            PartRef::Call { id, name } => Some(Half::Call { id, name }),
            PartRef::Result { id } => {
                let facet = facet.and_then(|facet| of_id.get(facet));
                let name = facet.and_then(|facet| facet.tool_name());
                let outcome = facet.map(|facet| facet.outcome()).unwrap_or_default();
                Some(Half::Result { id, name, outcome })
            }
            _ => None,
        };
        if matches!(half, Some(Half::Result { .. })) || is_inside {
            results.extend(facet);
        }
        let is_new = half.is_some() && facet.is_none_or(|facet| taken.insert(facet));
        half.filter(|_| is_new && !is_inside)
    };
    snapshot.chunks().filter_map(half).collect()
}

/// The results by their ids, and what is inside of them.
fn note_results<'f>(
    facet: &'f Facet,
    of_id: &mut HashMap<&'f str, &'f Facet>,
    inside: &mut HashSet<&'f str>,
) {
    if facet.is_result() {
        of_id.insert(facet.id.as_str(), facet);
        facet.children.iter().for_each(|child| note_inside(child, inside));
    } else {
        facet.children.iter().for_each(|child| note_results(child, of_id, inside));
    }
}

fn note_inside<'f>(facet: &'f Facet, inside: &mut HashSet<&'f str>) {
    inside.insert(facet.id.as_str());
    facet.children.iter().for_each(|child| note_inside(child, inside));
}

/// The calls and results among what a frame shows.
fn halves_of_facets(shown: &VisibleFacets) -> Vec<Half<'_>> {
    let halves = calls_and_results(shown.facets.iter().map(|facet| &**facet));
    halves.into_iter().map(Half::of).collect()
}

/// The calls and results among facets, in order, as [`PartPlace::number`] counts them: what is
/// inside of a result is a part of it.
pub(crate) fn calls_and_results<'f>(facets: impl IntoIterator<Item = &'f Facet>) -> Vec<&'f Facet> {
    fn gather<'f>(facet: &'f Facet, found: &mut Vec<&'f Facet>) {
        if facet.call().is_some() {
            found.push(facet);
        } else if facet.is_result() {
            return found.push(facet);
        }
        facet.shown_children().for_each(|child| gather(child, found));
    }
    let mut found = Vec::new();
    facets.into_iter().for_each(|facet| gather(facet, &mut found));
    found
}
