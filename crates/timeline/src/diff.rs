use super::{
    Data, Delta, DeltaOperation, List, Map, Targets, change::Items, data::Member, inverse::placed,
};
use crate::json::{Path, PathElement};

/// The most comparisons that are made to find what two arrays have in common.
const MOST_COMPARED: usize = 1 << 14;

/// The deltas that turn one state into another. They say what differs, not who caused it: ids,
/// turn and cause are empty.
///
/// What both states share costs nothing; the rest is read once. Members and elements that stay are
/// not touched: of an array with a changed element that element is set, and others come and go by
/// their place.
///
/// ```
/// use afterimage_timeline::{json, Data, Targets, diff};
///
/// let state = |text: &str| json::read(text.as_bytes()).map(Data::from);
/// let before = state(r#"{"player": {"hp": 10, "bag": ["rope", "lamp"]}}"#)?;
/// let after = state(r#"{"player": {"hp": 10, "bag": ["rope", "oil", "lamp"]}}"#)?;
/// let deltas = diff(&before, &after, &Targets::default());
/// assert_eq!(deltas.len(), 1);
/// assert_eq!(deltas[0].new_value, Some(state(r#"{"index": 1, "item": "oil"}"#)?));
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
pub fn diff(before: &Data, after: &Data, targets: &Targets) -> Vec<Delta> {
    let mut differ = Differ { targets, path: Vec::new(), deltas: Vec::new() };
    differ.value(before, after);
    differ.deltas
}

struct Differ<'t> {
    targets: &'t Targets,
    path: Vec<PathElement>,
    deltas: Vec<Delta>,
}

impl Differ<'_> {
    fn value(&mut self, before: &Data, after: &Data) {
        match (before, after) {
            (Data::Object(a), Data::Object(b)) => self.members(a, b),
            (Data::Array(a), Data::Array(b)) => self.elements(a, b),
            (a, b) if a == b => {}
            (a, b) => self.emit(DeltaOperation::Set, |delta| delta.replacing(a.clone(), b.clone())),
        }
    }

    fn under(&mut self, element: PathElement, walk: impl FnOnce(&mut Self)) {
        self.path.push(element);
        walk(self);
        self.path.pop();
    }

    fn emit(&mut self, operation: DeltaOperation, fill: impl FnOnce(Delta) -> Delta) {
        let (target, path) = self.targets.of_path(&self.path);
        self.deltas.push(fill(Delta::new(target, operation, Path::from(path))));
    }

    fn members(&mut self, before: &Map, after: &Map) {
        for (key, a, b) in differing(before, after) {
            self.under(PathElement::Key(key.to_owned()), |differ| match (a, b) {
                (Some(a), Some(b)) => differ.value(a, b),
                (Some(a), None) => {
                    let is_entity = a.as_object().is_some();
                    let operation =
                        if is_entity { DeltaOperation::Destroy } else { DeltaOperation::Delete };
                    differ.emit(operation, |delta| delta.replacing(a.clone(), None));
                }
                (None, Some(b)) => {
                    let is_entity = b.as_object().is_some();
                    let operation =
                        if is_entity { DeltaOperation::Create } else { DeltaOperation::Set };
                    differ.emit(operation, |delta| delta.replacing(None, b.clone()));
                }
                (None, None) => {}
            });
        }
    }

    fn elements(&mut self, before: &List, after: &List) {
        if before.0.is_same(&after.0) {
            return;
        }
        let (a, b): (Vec<&Data>, Vec<&Data>) = (before.iter().collect(), after.iter().collect());
        let mut length = a.len();
        // From the end, so that the indices of what is left stay as they are.
        for gap in gaps(&a, &b).into_iter().rev() {
            let old = a.get(gap.old.0..gap.old.1).unwrap_or_default();
            let new = b.get(gap.new.0..gap.new.1).unwrap_or_default();
            let both = old.len().min(new.len());
            let index = gap.old.0 + both;
            let (gone, come) =
                (old.get(both..).unwrap_or_default(), new.get(both..).unwrap_or_default());
            if !gone.is_empty() {
                let previous = run(index, gone);
                self.emit(DeltaOperation::Remove, |delta| {
                    delta.replacing(previous, None).of_length(length)
                });
                length -= gone.len();
            } else if !come.is_empty() {
                let is_append = index == length;
                let operation =
                    if is_append { DeltaOperation::Append } else { DeltaOperation::Insert };
                let items: Data = come.iter().copied().cloned().collect();
                let new = if is_append { items } else { run(index, come) };
                self.emit(operation, |delta| delta.replacing(None, new).of_length(length));
                length += come.len();
            }
            for (offset, (old, new)) in old.iter().zip(new).enumerate() {
                self.under(PathElement::Index(gap.old.0 + offset), |differ| differ.value(old, new));
            }
        }
    }
}

fn run(index: usize, items: &[&Data]) -> Data {
    match items {
        [one] => placed(index, Items::One(one)),
        many => {
            let list: List = many.iter().copied().cloned().collect();
            placed(index, Items::Many(&list))
        }
    }
}

/// A member that both may have.
type Pair<'a> = (&'a str, Option<&'a Data>, Option<&'a Data>);

/// The members that are not one and the same in both. What is stored as one is passed over.
fn differing<'a>(before: &'a Map, after: &'a Map) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    if before.0.is_same(&after.0) {
        return pairs;
    }
    let (mut a, mut b) = (Walk::new(before), Walk::new(after));
    loop {
        if a.leaf_start().is_some() && a.leaf_start() == b.leaf_start() {
            a.skip_leaf();
            b.skip_leaf();
            continue;
        }
        match (a.peek(), b.peek()) {
            (None, None) => return pairs,
            (Some((key, value)), None) => {
                pairs.push((key, Some(value), None));
                a.at += 1;
            }
            (None, Some((key, value))) => {
                pairs.push((key, None, Some(value)));
                b.at += 1;
            }
            (Some((key, old)), Some((other, new))) => match key.cmp(other) {
                std::cmp::Ordering::Less => {
                    pairs.push((key, Some(old), None));
                    a.at += 1;
                }
                std::cmp::Ordering::Greater => {
                    pairs.push((other, None, Some(new)));
                    b.at += 1;
                }
                std::cmp::Ordering::Equal => {
                    pairs.push((key, Some(old), Some(new)));
                    a.at += 1;
                    b.at += 1;
                }
            },
        }
    }
}

/// A walk over the members, leaf by leaf.
struct Walk<'a> {
    leaves: std::vec::IntoIter<(usize, &'a [Member])>,
    leaf: Option<(usize, &'a [Member])>,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(map: &'a Map) -> Self {
        let mut leaves = map.0.leaves().into_iter();
        let leaf = leaves.next();
        Self { leaves, leaf, at: 0 }
    }

    fn skip_leaf(&mut self) {
        self.leaf = self.leaves.next();
        self.at = 0;
    }

    fn settle(&mut self) {
        if self.leaf.is_some_and(|(_, members)| self.at >= members.len()) {
            self.skip_leaf();
        }
    }

    /// What tells the leaf apart, where the walk stands at its start.
    fn leaf_start(&mut self) -> Option<usize> {
        self.settle();
        self.leaf.filter(|_| self.at == 0).map(|(identity, _)| identity)
    }

    fn peek(&mut self) -> Option<(&'a str, &'a Data)> {
        self.settle();
        let (_, members) = self.leaf?;
        members.get(self.at).map(|(key, value)| (&**key, value))
    }
}

/// Elements of the one array that give way to elements of the other; ranges of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    old: (usize, usize),
    new: (usize, usize),
}

/// The gaps between what two arrays have in common, in order.
fn gaps(a: &[&Data], b: &[&Data]) -> Vec<Gap> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let end = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let old = a_rest.get(..a_rest.len() - end).unwrap_or_default();
    let new = b_rest.get(..b_rest.len() - end).unwrap_or_default();
    let matches = common(old, new);
    let mut gaps = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (x, y) in matches.into_iter().chain([(old.len(), new.len())]) {
        if x > i || y > j {
            gaps.push(Gap { old: (start + i, start + x), new: (start + j, start + y) });
        }
        (i, j) = (x + 1, y + 1);
    }
    gaps
}

/// A longest common subsequence, as pairs of indices; nothing where finding it would take long, or
/// where the arrays are as long as each other, and so the elements probably changed in their places.
fn common(a: &[&Data], b: &[&Data]) -> Vec<(usize, usize)> {
    let (rows, columns) = (a.len(), b.len());
    if rows == columns || rows.saturating_mul(columns) > MOST_COMPARED {
        return Vec::new();
    }
    // longest[i][j] of a[i..] and b[j..], row by row.
    let width = columns + 1;
    let mut longest = vec![0_u32; (rows + 1) * width];
    let at = |longest: &[u32], i: usize, j: usize| longest.get(i * width + j).copied().unwrap_or(0);
    let same = |i: usize, j: usize| a.get(i) == b.get(j);
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let best = if same(i, j) {
                at(&longest, i + 1, j + 1) + 1
            } else {
                at(&longest, i + 1, j).max(at(&longest, i, j + 1))
            };
            if let Some(slot) = longest.get_mut(i * width + j) {
                *slot = best;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < rows && j < columns {
        if same(i, j) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if at(&longest, i + 1, j) >= at(&longest, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Where two states differ, as paths with both values; absent ones are `None`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Where, as a JSON pointer.
    pub path: String,
    /// What was expected there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Data>,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Data>,
}

/// The places where `found` is not `expected`: of objects the members, of arrays of one length the
/// elements. An array of another length differs as a whole. What both share costs nothing; the rest
/// is read once.
pub fn differences(expected: &Data, found: &Data) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(&mut Vec::new(), Some(expected), Some(found), &mut differences);
    differences
}

fn compare(
    path: &mut Vec<PathElement>,
    expected: Option<&Data>,
    found: Option<&Data>,
    differences: &mut Vec<Difference>,
) {
    let mut under = |element: PathElement, a: Option<&Data>, b: Option<&Data>| {
        path.push(element);
        compare(path, a, b, differences);
        path.pop();
    };
    match (expected, found) {
        (Some(Data::Object(a)), Some(Data::Object(b))) => {
            for (key, a, b) in differing(a, b) {
                under(PathElement::Key(key.to_owned()), a, b);
            }
        }
        (Some(Data::Array(a)), Some(Data::Array(b))) if a.len() == b.len() => {
            if !a.0.is_same(&b.0) {
                for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                    under(PathElement::Index(index), Some(a), Some(b));
                }
            }
        }
        (a, b) if a == b => {}
        (a, b) => differences.push(Difference {
            path: Path::from(path.as_slice()).to_string(),
            expected: a.cloned(),
            found: b.cloned(),
        }),
    }
}
