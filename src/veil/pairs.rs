//! Which result answers which call: the one rule, and what it found in a history.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Facet, Frame, Source, VisibleFacets};
use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, PartRef},
};

/// How many calls of a history may wait for their results; the oldest are given up first.
const MOST_OPEN: usize = 4_096;

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
}

/// The calls and results of a history, paired once: when the frame of the result enters it.
///
/// A result answers the latest open call with its id. Without an id it answers the oldest open call
/// of its tool, else the oldest; an id that no open call has answers the oldest call without one.
/// Calls of the agent's last turn come before those of earlier turns.
///
/// ```
/// use afterimage::veil::{Facet, FacetOp, Frame, History, Source};
/// use afterimage::json::Value;
///
/// let mut history = History::new();
/// let call = Facet::tool_call("call-0", Some("c1"), "look", Value::Null);
/// let result = Facet::tool_result("seen-1", None, None, "open");
/// history.push(Frame::new(0, Source::Agent).with(FacetOp::add(call)))?;
/// assert_eq!(history.pairs().open(), 1);
/// history.push(Frame::new(1, Source::Environment).with(FacetOp::add(result)))?;
/// let [pair] = history.pairs().in_frame(1.into()) else { panic!() };
/// assert_eq!((pair.call.frame.get(), pair.in_time), (0, true));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// In the order of the results.
    all: Vec<Pair>,
    open: OpenCalls<PartPlace>,
    /// The calls that wait after each frame.
    waiting: Vec<u32>,
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

    /// How many calls of the agent's last turn wait for their results.
    pub fn open(&self) -> usize {
        self.open.waiting()
    }

    /// How many calls waited after the frame with this index.
    pub(crate) fn waiting_after(&self, index: usize) -> u32 {
        self.waiting.get(index).copied().unwrap_or_default()
    }

    /// Gives back what is reserved.
    pub(super) fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    /// Takes the next frame: what its snapshot holds, else what it shows.
    pub(super) fn push(
        &mut self,
        frame: &Frame,
        shown: &VisibleFacets,
        snapshot: Option<&FrameSnapshot>,
    ) {
        let says_something = match snapshot {
            Some(snapshot) => !snapshot.is_empty(),
            None => shown.facets.iter().any(|facet| facet.says_something()),
        };
        if says_something {
            self.open.next_frame(frame.source == Source::Agent);
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
            Half::Result { id, name } => {
                if let Some(Answered { call, in_time, .. }) = self.open.answer(id, name) {
                    self.all.push(Pair { call, result: place, in_time });
                }
            }
        }
    }
}

/// The calls that wait for their results, and the rule of [`Pairs`] which of them a result answers:
/// for those who see the frames of a session one after the other.
///
/// ```
/// use afterimage::veil::OpenCalls;
///
/// let mut open = OpenCalls::new(1_024);
/// open.next_frame(true);
/// open.call(Some("c1"), "look", "the first");
/// open.call(Some("c2"), "look", "the second");
/// open.next_frame(false);
/// let answered = open.answer(Some("c2"), None).unwrap();
/// assert_eq!((answered.call, &*answered.name, answered.in_time), ("the second", "look", true));
/// ```
#[derive(Clone, Debug)]
pub struct OpenCalls<C> {
    calls: VecDeque<OpenCall<C>>,
    /// More than these do not wait.
    most: usize,
    turn: u64,
    /// Whether the last frame is the agent's.
    is_agents: bool,
    /// How many of them are of the agent's last turn.
    waiting: usize,
}

#[derive(Clone, Debug)]
struct OpenCall<C> {
    id: Option<Box<str>>,
    name: Box<str>,
    turn: u64,
    call: C,
}

/// The call that a result answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<C> {
    /// What was noted of the call.
    pub call: C,
    /// The name of its tool.
    pub name: Box<str>,
    /// Whether the agent has not gone on since.
    pub in_time: bool,
}

impl<C> Default for OpenCalls<C> {
    fn default() -> Self {
        Self::new(MOST_OPEN)
    }
}

impl<C> OpenCalls<C> {
    /// None yet. Of more than `most` that wait the oldest are given up.
    pub fn new(most: usize) -> Self {
        Self { calls: VecDeque::new(), most: most.max(1), turn: 0, is_agents: false, waiting: 0 }
    }

    /// Takes the next frame that shows something. Where a turn of the agent begins with it, the
    /// agent goes on: what waits gets its result too late from now on.
    pub fn next_frame(&mut self, is_agents: bool) {
        let was = std::mem::replace(&mut self.is_agents, is_agents);
        if is_agents && !was {
            self.turn += 1;
            self.waiting = 0;
        }
    }

    /// Takes a call of the frame.
    pub fn call(&mut self, id: Option<&str>, name: &str, call: C) {
        while self.calls.len() >= self.most {
            let given_up = self.calls.pop_front();
            self.waiting -= usize::from(given_up.is_some_and(|call| call.turn == self.turn));
        }
        let (id, name) = (known(id).map(Box::from), name.into());
        self.calls.push_back(OpenCall { id, name, turn: self.turn, call });
        self.waiting += 1;
    }

    /// Takes the call that a result answers; `None` where none waits for it.
    pub fn answer(&mut self, id: Option<&str>, name: Option<&str>) -> Option<Answered<C>> {
        let (calls, turn) = (&self.calls, self.turn);
        let name = known(name);
        let is_last = |call: &OpenCall<C>| call.turn == turn;
        let is_named = |call: &OpenCall<C>| name.is_none_or(|name| *call.name == *name);
        // The oldest of the last turn, else the oldest of all.
        let oldest = |takes: &dyn Fn(&OpenCall<C>) -> bool| {
            let last = calls.len() - self.waiting.min(calls.len());
            let of_last = calls.iter().skip(last).position(|call| is_last(call) && takes(call));
            of_last.map(|at| at + last).or_else(|| calls.iter().position(takes))
        };
        let at = match known(id) {
            Some(id) => calls
                .iter()
                .rposition(|call| call.id.as_deref() == Some(id))
                .or_else(|| oldest(&|call| call.id.is_none() && is_named(call))),
            None => oldest(&is_named).or_else(|| oldest(&|_| true)),
        };
        let answered = self.calls.remove(at?)?;
        let in_time = answered.turn == self.turn;
        self.waiting -= usize::from(in_time);
        Some(Answered { call: answered.call, name: answered.name, in_time })
    }

    /// How many calls of the last turn wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The calls that wait, the oldest first: name and call.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &C)> {
        self.calls.iter().map(|open| (&*open.name, &open.call))
    }
}

/// Providers without ids write `""` for them.
fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// A call or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half<'a> {
    Call { id: Option<&'a str>, name: &'a str },
    Result { id: Option<&'a str>, name: Option<&'a str> },
}

/// The calls and results of a snapshot, each once: a long one is several chunks, and what stands
/// inside of a result is a part of it.
fn halves_of_snapshot<'a>(snapshot: &'a FrameSnapshot, shown: &'a VisibleFacets) -> Vec<Half<'a>> {
    let is_half = |part: PartRef<'_>| matches!(part, PartRef::Call { .. } | PartRef::Result { .. });
    if !snapshot.chunks().any(|chunk| is_half(chunk.part())) {
        return Vec::new();
    }
    let mut names: HashMap<&str, &str> = HashMap::new();
    shown.facets.iter().for_each(|facet| note_names(facet, &mut names));
    let mut taken: HashSet<&str> = HashSet::new();
    // The results, and the facets inside of them.
    let mut results: HashSet<&str> = HashSet::new();
    let half = |chunk: crate::snapshot::ChunkRef<'a>| {
        let facet = chunk.facet_ids().next();
        let around = chunk.structure().and_then(|structure| structure.parent);
        let around = around.and_then(|around| snapshot.chunk(around)?.facet_ids().next());
        let is_inside = around.is_some_and(|around| results.contains(around));
        let half = match chunk.part() {
            PartRef::Call { id, name } => Some(Half::Call { id, name }),
            PartRef::Result { id } => {
                let name = facet.and_then(|facet| names.get(facet).copied());
                Some(Half::Result { id, name })
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

/// The names of the tools of results.
fn note_names<'f>(facet: &'f Facet, names: &mut HashMap<&'f str, &'f str>) {
    if facet.is_result() {
        names.extend(facet.tool_name().map(|name| (facet.id.as_str(), name)));
    } else {
        facet.children.iter().for_each(|child| note_names(child, names));
    }
}

/// The calls and results among what a frame shows.
fn halves_of_facets(shown: &VisibleFacets) -> Vec<Half<'_>> {
    fn gather<'f>(facet: &'f Facet, halves: &mut Vec<Half<'f>>) {
        if let Some(call) = facet.call() {
            halves.push(Half::Call { id: call.id, name: call.name });
        } else if facet.is_result() {
            let id = facet.call_id();
            return halves.push(Half::Result { id, name: facet.tool_name() });
        }
        facet.shown_children().for_each(|child| gather(child, halves));
    }
    let mut halves = Vec::new();
    shown.facets.iter().for_each(|facet| gather(facet, &mut halves));
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps are calls, `>id:name`, results, `id` or `id:name`, and `|`, where the agent goes on.
    /// Gives what the results answer; `!` where they come too late.
    fn check(steps: &str, expected: &str) {
        let mut open = OpenCalls::default();
        open.next_frame(true);
        let mut out = Vec::new();
        for step in steps.split(' ') {
            let (id, name) = step.split_once(':').unwrap_or((step, ""));
            match id.strip_prefix('>') {
                Some(id) => open.call(Some(id), name, ()),
                None if id == "|" => [false, true].into_iter().for_each(|of| open.next_frame(of)),
                None => out.push(match open.answer(Some(id), Some(name)) {
                    Some(Answered { name, in_time: true, .. }) => name.into(),
                    Some(Answered { name, .. }) => format!("{name}!"),
                    None => "-".to_owned(),
                }),
            }
        }
        assert_eq!(out.join(" "), expected, "{steps}");
    }

    #[test]
    fn a_repeated_id_is_the_latest_open_call_that_has_it() {
        check(">a:one a >a:two a a", "one two -");
        check(">a:one >a:two a a", "two one");
    }

    #[test]
    fn without_ids_the_oldest_open_call_is_answered() {
        check(">:one >:two : : :", "one two -");
        check(">a:one >b:two b :", "two one");
        check(">a:one >b:two :two :", "two one");
        check(">a:one :two", "one");
    }

    #[test]
    fn an_id_that_no_call_has_answers_only_a_call_without_one() {
        check(">a:one b", "-");
        check(">a:one >:two b a", "two one");
        check(">:one >:two b:two", "two");
    }

    #[test]
    fn calls_of_the_last_turn_come_first_and_older_ones_come_too_late() {
        check(">:one | >:two : :", "two one!");
        check(">a:one | a", "one!");
        check(">a:one | >a:two a a", "two one!");
        check(">:one | >:two :one", "one!");
        check(">:one | :", "one!");
    }

    #[test]
    fn calls_that_are_never_answered_do_not_pile_up() {
        let mut open = OpenCalls::new(10);
        (0..40).for_each(|call| open.call(None, "shell", call));
        assert_eq!((open.calls.len(), open.waiting()), (10, 10));
        assert_eq!(open.answer(None, None).map(|answered| answered.call), Some(30));
        open.next_frame(true);
        (0..40).for_each(|call| open.call(None, "shell", call));
        assert_eq!((open.calls.len(), open.waiting()), (10, 10));
    }
}
