//! The calls that wait for their results: the one rule which of them a result answers.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
};

use foldhash::HashMap;

/// How many calls of a history may wait for their results; the oldest are given up first.
const MOST_OPEN: usize = 4_096;

/// The calls that wait for their results, and the rule of [`Pairs`](super::Pairs) which of them a
/// result answers: for those who see the frames of a session one after the other.
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
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "SavedCalls<C>", into = "SavedCalls<C>")]
#[serde(bound(serialize = "C: Clone + serde::Serialize"))]
pub struct OpenCalls<C> {
    /// In the order in which they came, by their numbers.
    calls: BTreeMap<u64, OpenCall<C>>,
    by_id: Numbers<Box<str>>,
    by_name: Numbers<Box<str>>,
    /// Those without an id: all of them, and by their names.
    without_id: Numbers<()>,
    without_id_by_name: Numbers<Box<str>>,
    /// More than these do not wait.
    most: usize,
    /// The number of the next call.
    next: u64,
    /// The number of the first call of the agent's last turn.
    turn: u64,
    /// Whether the last frame is the agent's.
    is_agents: bool,
    /// How many of them are of the agent's last turn.
    waiting: usize,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenCall<C> {
    id: Option<Box<str>>,
    name: Box<str>,
    call: C,
}

/// How they are saved.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SavedCalls<C> {
    most: usize,
    /// The oldest first.
    calls: Vec<OpenCall<C>>,
    /// How many of them are older than the agent's last turn.
    older: usize,
    is_agents: bool,
}

impl<C> From<OpenCalls<C>> for SavedCalls<C> {
    fn from(open: OpenCalls<C>) -> Self {
        let older = open.calls.range(..open.turn).count();
        let calls = open.calls.into_values().collect();
        Self { most: open.most, calls, older, is_agents: open.is_agents }
    }
}

impl<C> From<SavedCalls<C>> for OpenCalls<C> {
    fn from(saved: SavedCalls<C>) -> Self {
        let mut open = Self { is_agents: saved.is_agents, ..Self::new(saved.most) };
        for OpenCall { id, name, call } in saved.calls {
            open.call(id.as_deref(), &name, call);
        }
        open.turn = open.next.min(saved.older as u64);
        open.waiting = open.calls.range(open.turn..).count();
        open
    }
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
        let (calls, by_id, by_name, without_id, without_id_by_name) = Default::default();
        Self {
            calls,
            by_id,
            by_name,
            without_id,
            without_id_by_name,
            most: most.max(1),
            next: 0,
            turn: 0,
            is_agents: false,
            waiting: 0,
        }
    }

    /// Takes the next frame that shows something. Where a turn of the agent begins with it, the
    /// agent goes on: what waits gets its result too late from now on.
    pub fn next_frame(&mut self, is_agents: bool) {
        let was = std::mem::replace(&mut self.is_agents, is_agents);
        if is_agents && !was {
            self.turn = self.next;
            self.waiting = 0;
        }
    }

    /// Takes a call of the frame. O(log n) in the calls that wait.
    pub fn call(&mut self, id: Option<&str>, name: &str, call: C) {
        while self.calls.len() >= self.most
            && let Some(oldest) = self.calls.first_key_value().map(|(number, _)| *number)
        {
            self.remove(oldest);
        }
        let (id, name): (Option<Box<str>>, Box<str>) = (known(id).map(Box::from), name.into());
        let number = self.next;
        self.next += 1;
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), number);
        } else {
            self.without_id.insert((), number);
            self.without_id_by_name.insert(name.clone(), number);
        }
        self.by_name.insert(name.clone(), number);
        self.calls.insert(number, OpenCall { id, name, call });
        self.waiting += 1;
    }

    /// Takes the call that a result answers; `None` where none waits for it. O(log n) in the calls
    /// that wait.
    pub fn answer(&mut self, id: Option<&str>, name: Option<&str>) -> Option<Answered<C>> {
        let (name, turn) = (known(name), self.turn);
        let number = match (known(id), name) {
            (Some(id), name) => self.by_id.latest(id).or_else(|| match name {
                Some(name) => self.without_id_by_name.oldest(name, turn),
                None => self.without_id.oldest(&(), turn),
            }),
            (None, name) => {
                let named = name.and_then(|name| self.by_name.oldest(name, turn));
                named.or_else(|| oldest_of(&self.calls, turn))
            }
        };
        let answered = self.remove(number?)?;
        let in_time = number? >= self.turn;
        Some(Answered { call: answered.call, name: answered.name, in_time })
    }

    fn remove(&mut self, number: u64) -> Option<OpenCall<C>> {
        let call = self.calls.remove(&number)?;
        if let Some(id) = &call.id {
            self.by_id.remove(id, number);
        } else {
            self.without_id.remove(&(), number);
            self.without_id_by_name.remove(&call.name, number);
        }
        self.by_name.remove(&call.name, number);
        self.waiting -= usize::from(number >= self.turn);
        Some(call)
    }

    /// How many calls of the last turn wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The calls that wait, the oldest first: name and call. O(n) for all of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &C)> {
        self.calls.values().map(|open| (&*open.name, &open.call))
    }
}

/// The oldest call of the last turn, else the oldest of all.
fn oldest_of<C>(calls: &BTreeMap<u64, OpenCall<C>>, turn: u64) -> Option<u64> {
    let of_turn = calls.range(turn..).next();
    of_turn.or_else(|| calls.first_key_value()).map(|(number, _)| *number)
}

/// The numbers of the calls that have a key.
#[derive(Clone, Debug)]
struct Numbers<K>(HashMap<K, BTreeSet<u64>>);

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Hash + Eq> Numbers<K> {
    fn insert(&mut self, key: K, number: u64) {
        self.0.entry(key).or_default().insert(number);
    }

    fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, number: u64)
    where
        K: Borrow<Q>,
    {
        let Some(numbers) = self.0.get_mut(key) else { return };
        numbers.remove(&number);
        if numbers.is_empty() {
            self.0.remove(key);
        }
    }

    fn latest<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u64>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)?.last().copied()
    }

    /// The oldest of the last turn, else the oldest of all.
    fn oldest<Q: Hash + Eq + ?Sized>(&self, key: &Q, turn: u64) -> Option<u64>
    where
        K: Borrow<Q>,
    {
        let numbers = self.0.get(key)?;
        numbers.range(turn..).next().or_else(|| numbers.first()).copied()
    }
}

/// Providers without ids write `""` for them.
fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
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

    /// The id, the name, the turn, and the number of a call.
    type NaiveCall = (Option<String>, String, u64, usize);

    /// The rule, word by word: looks at every call that waits.
    #[derive(Default)]
    struct Naive {
        calls: Vec<NaiveCall>,
        turn: u64,
    }

    impl Naive {
        fn answer(&mut self, id: Option<&str>, name: Option<&str>) -> Option<(usize, bool)> {
            let turn = self.turn;
            let is_named = |of: &str| name.is_none_or(|name| of == name);
            let oldest = |takes: &dyn Fn(&NaiveCall) -> bool| {
                let of_turn = self.calls.iter().position(|call| call.2 == turn && takes(call));
                of_turn.or_else(|| self.calls.iter().position(takes))
            };
            let at = match id {
                Some(id) => {
                    let latest = self.calls.iter().rposition(|call| call.0.as_deref() == Some(id));
                    latest.or_else(|| oldest(&|call| call.0.is_none() && is_named(&call.1)))
                }
                None => oldest(&|call| is_named(&call.1)).or_else(|| oldest(&|_| true)),
            };
            let (_, _, of, call) = self.calls.remove(at?);
            Some((call, of == turn))
        }
    }

    #[test]
    fn a_result_answers_the_call_that_a_search_of_all_of_them_finds() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut open, mut naive) = (OpenCalls::new(24), Naive::default());
        let mut answered = 0;
        for step in 0..20_000 {
            let id = Some(format!("c{}", next(12))).filter(|_| next(3) > 0);
            let name = format!("t{}", next(4));
            match next(9) {
                0..4 => {
                    if naive.calls.len() == 24 {
                        naive.calls.remove(0);
                    }
                    naive.calls.push((id.clone(), name.clone(), naive.turn, step));
                    open.call(id.as_deref(), &name, step);
                }
                4..8 => {
                    let name = Some(&*name).filter(|_| next(2) > 0);
                    let found = open.answer(id.as_deref(), name);
                    answered += usize::from(found.is_some());
                    let found = found.map(|found| (found.call, found.in_time));
                    assert_eq!(found, naive.answer(id.as_deref(), name), "step {step}");
                }
                _ => {
                    [false, true].into_iter().for_each(|of| open.next_frame(of));
                    naive.turn += 1;
                }
            }
            let waiting = naive.calls.iter().filter(|call| call.2 == naive.turn).count();
            assert_eq!(open.waiting(), waiting, "step {step}");
            let calls: Vec<_> = open.iter().map(|(_, call)| *call).collect();
            assert_eq!(calls, naive.calls.iter().map(|call| call.3).collect::<Vec<_>>());
            // What is gone takes no room.
            let keys = open.by_id.0.len() + open.by_name.0.len() + open.without_id_by_name.0.len();
            assert!(keys <= 3 * open.calls.len(), "step {step}");
        }
        assert!(answered > 3_000, "{answered}");
    }
}
