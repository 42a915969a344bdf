use super::{recent::Recent, sink::Sink};

/// How often a session may go on from an earlier place. What an event lists grows with it.
const FORKS: usize = 1_024;

/// The branches of one session whose records name their parents, told from the order of the file.
///
/// Records follow each other as they stand in the file, but where one goes on from an earlier place:
/// there a new segment begins. So memory follows how often that happens, and no damage in the
/// parents can make a circle of segments.
#[derive(Debug)]
pub(super) struct Branches {
    places: Recent<Place>,
    /// The line of a record that named a parent which had not been seen, by the parent.
    awaited: Recent<u64>,
    segments: Vec<Segment>,
    /// The line of the last record that nothing may go back before without leaving it.
    last: u64,
}

/// The branches of a session each of whose records may go on from an earlier one.
#[derive(Debug, Default)]
pub(super) struct RecordTree {
    branches: Branches,
    /// The frames that are outside of the context, from the next frame on.
    outside: Option<Vec<(u64, u64)>>,
}

impl RecordTree {
    /// Takes the next record of the session.
    pub(super) fn take(
        &mut self,
        session: &str,
        id: Option<&str>,
        parent: Parent<'_>,
        line: u64,
        sink: &mut Sink,
    ) {
        let begun = self.branches.take(id, parent, line).and_then(|fork| match fork {
            Some(fork) => sink.begin_branch(session, &mut self.branches, fork),
            None => Ok(None),
        });
        match begun {
            Ok(outside) => self.outside = outside.or(self.outside.take()),
            Err(wrong) => sink.note(line, wrong),
        }
    }

    /// What the next frame tells: the frames that are outside of the context from it on, where they
    /// changed.
    pub(super) fn outside(&mut self) -> Option<Vec<(u64, u64)>> {
        self.outside.take()
    }
}

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    /// The line from which records stand on a branch of their own that no prompt has made one yet.
    start: Option<u64>,
    /// Whether an earlier record has the same id.
    is_repeated: bool,
}

/// Records that follow each other.
#[derive(Debug)]
struct Segment {
    /// The segment that it goes on from, always an earlier one, and the last frame of that which is
    /// before it.
    parent: usize,
    fork: Option<u64>,
    line: u64,
    /// Its first frame.
    first: u64,
}

/// What a record says of its place in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parent<'p> {
    /// It says nothing: it follows the record before it.
    Unsaid,
    /// It is the first of a branch.
    Root,
    Record(&'p str),
}

impl<'p> From<Option<&'p str>> for Parent<'p> {
    fn from(id: Option<&'p str>) -> Self {
        id.map_or(Self::Unsaid, Self::Record)
    }
}

/// That a session goes on from an earlier place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    /// The line of the last record that is kept; 0 where none is.
    parent: u64,
    /// The first line of the new branch.
    start: u64,
}

impl Default for Branches {
    fn default() -> Self {
        let root = Segment { parent: 0, fork: None, line: 0, first: 0 };
        let (places, awaited) = Default::default();
        Self { places, awaited, segments: vec![root], last: 0 }
    }
}

impl Branches {
    /// Takes a record that follows the one before it in the file, whatever its parent. One that
    /// `ends` a stretch is something that a later record can go back before.
    pub(super) fn follow(&mut self, id: Option<&str>, line: u64, ends: bool) {
        self.insert(id, Place { line, start: None, is_repeated: false });
        if ends {
            self.last = line;
        }
    }

    /// Takes a record that makes no branch, but may be the first of one that a prompt makes later.
    pub(super) fn pass(&mut self, id: Option<&str>, parent: Parent<'_>, line: u64) {
        let at = match parent {
            Parent::Record(parent) => self.places.get(parent),
            _ => None,
        };
        let place = match at {
            Some(at) if at.start.is_some() => Place { is_repeated: false, ..at },
            Some(at) if self.is_behind(at.line) && !at.is_repeated => {
                Place { start: Some(line), is_repeated: false, ..at }
            }
            _ => Place { line, start: None, is_repeated: false },
        };
        self.insert(id, place);
    }

    /// Takes a record that may go on from an earlier place; says whether it does.
    ///
    /// # Errors
    /// What is wrong with its parent; then it follows the record before it.
    pub(super) fn take(
        &mut self,
        id: Option<&str>,
        parent: Parent<'_>,
        line: u64,
    ) -> Result<Option<Fork>, &'static str> {
        let found = self.find(id, parent, line);
        self.follow(id, line, true);
        found
    }

    fn find(
        &mut self,
        id: Option<&str>,
        parent: Parent<'_>,
        line: u64,
    ) -> Result<Option<Fork>, &'static str> {
        let parent = match parent {
            Parent::Unsaid => return Ok(None),
            Parent::Root if self.last == 0 => return Ok(None),
            Parent::Root => return Ok(Some(Fork { parent: 0, start: line })),
            Parent::Record(parent) => parent,
        };
        if id == Some(parent) {
            return Err("a record that is its own parent");
        }
        let Some(at) = self.places.get(parent) else {
            self.awaited.insert(parent, line);
            return Ok(None);
        };
        let child = id.and_then(|id| self.awaited.get(id));
        if child.is_some_and(|child| child <= at.line) {
            return Err("a record whose parents go in a circle, or are out of order");
        }
        if at.start.is_none() && !self.is_behind(at.line) {
            return Ok(None);
        }
        if at.is_repeated {
            return Err("a record whose parent is the id of several records");
        }
        let begun = self.segments.last().map_or(0, |segment| segment.line);
        let start = at.start.filter(|start| *start > begun).unwrap_or(line);
        Ok(Some(Fork { parent: at.line, start }))
    }

    /// Begins the branch of a fork. Gives the ranges of frames that are outside of the context from
    /// there on. `first` is the first frame of the session, with its line, and `last_before` the
    /// last before a line.
    ///
    /// # Errors
    /// Why it cannot: then the record follows the one before it.
    pub(super) fn begin(
        &mut self,
        fork: Fork,
        first: Option<(u64, u64)>,
        last_before: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<Vec<(u64, u64)>>, &'static str> {
        let Some((first_line, first)) = first else { return Ok(None) };
        let Some(end) = last_before(fork.start) else { return Ok(None) };
        if self.segments.len() > FORKS {
            return Err("a record that goes back once more than 1,024 times");
        }
        let kept = if fork.parent < first_line {
            None
        } else {
            let kept = last_before(fork.parent + 1);
            Some(kept.ok_or("a record that goes back further than 65,536 records")?)
        };
        let parent = self.segment_of(fork.parent);
        let mut inside = vec![(end + 1, u64::MAX)];
        let (mut at, mut to) = (parent, kept);
        while let Some(segment) = self.segments.get(at) {
            let from = segment.first.max(first);
            inside.extend(to.filter(|to| from <= *to).map(|to| (from, to)));
            if at == 0 {
                break;
            }
            (at, to) = (segment.parent, segment.fork);
        }
        let (mut outside, mut next) = (Vec::new(), first);
        for (from, to) in inside.into_iter().rev() {
            if next < from {
                outside.push((next, from - 1));
            }
            next = to.saturating_add(1);
        }
        if outside.is_empty() && self.segments.len() == 1 {
            return Ok(None);
        }
        let line = fork.start;
        self.segments.push(Segment { parent, fork: kept, line, first: end + 1 });
        Ok(Some(outside))
    }

    /// Begins a branch at the frame `next`, which goes on without the frames from `cut` on, of a
    /// session whose first frame is `first`: as [`begin`](Self::begin), where frames are counted and
    /// not lines.
    ///
    /// # Errors
    /// Those of `begin`.
    pub(super) fn go_back(
        &mut self,
        cut: u64,
        first: u64,
        next: u64,
    ) -> Result<Option<Vec<(u64, u64)>>, &'static str> {
        if cut >= next {
            return Ok(None);
        }
        // The line of a frame is the number after it.
        let fork = Fork { parent: cut, start: next + 1 };
        self.begin(fork, Some((first + 1, first)), |line| line.checked_sub(2))
    }

    /// Whether something was said on the current branch after this line, or the line is of another.
    fn is_behind(&self, line: u64) -> bool {
        self.segment_of(line) + 1 != self.segments.len() || line < self.last
    }

    /// The segment that a line belongs to.
    fn segment_of(&self, line: u64) -> usize {
        self.segments.partition_point(|segment| segment.line <= line).saturating_sub(1)
    }

    fn insert(&mut self, id: Option<&str>, place: Place) {
        let Some(id) = id else { return };
        let is_repeated = self.places.get(id).is_some();
        self.places.insert(id, Place { is_repeated, ..place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each record is `id<parent`, one a line and one frame each; `^` is the root. Gives what is
    /// outside after each that goes back, and what is wrong.
    fn forks(records: &[&str]) -> Vec<String> {
        let mut branches = Branches::default();
        let mut out = Vec::new();
        for (line, record) in (1_u64..).zip(records) {
            let (id, parent) = record.split_once('<').unwrap();
            let parent = if parent == "^" { Parent::Root } else { Parent::Record(parent) };
            let told = branches.take(Some(id), parent, line).and_then(|fork| match fork {
                // The frame of a line has the sequence before it.
                Some(fork) => branches.begin(fork, Some((1, 0)), |line| line.checked_sub(2)),
                None => Ok(None),
            });
            match told {
                Ok(Some(outside)) => out.push(format!("{id}{outside:?}")),
                Ok(None) => {}
                Err(wrong) => out.push(format!("{id}: {wrong}")),
            }
        }
        out
    }

    #[test]
    fn a_branch_leaves_what_is_not_on_its_path() {
        assert!(forks(&["a<^", "b<a", "c<b"]).is_empty());
        // a b c, then d after a; e goes on; f returns to c; g after b; h at the root.
        let records = ["a<^", "b<a", "c<b", "d<a", "e<d", "f<c", "g<b", "h<^", "i<e"];
        assert_eq!(
            forks(&records),
            ["d[(1, 2)]", "f[(3, 4)]", "g[(2, 5)]", "h[(0, 6)]", "i[(1, 2), (5, 7)]"]
        );
    }

    #[test]
    fn what_stands_before_a_prompt_belongs_to_its_branch() {
        let mut branches = Branches::default();
        branches.take(Some("a"), Parent::Unsaid, 1).unwrap();
        branches.follow(Some("b"), 2, true);
        branches.pass(Some("m"), Parent::Record("a"), 3);
        branches.pass(Some("n"), Parent::Record("m"), 4);
        let fork = branches.take(Some("c"), Parent::Record("n"), 5).unwrap().unwrap();
        assert_eq!((fork.parent, fork.start), (1, 3));
        let outside = branches.begin(fork, Some((1, 0)), |line| line.checked_sub(2)).unwrap();
        assert_eq!(outside, Some(vec![(1, 1)]));
        // What follows what is said last is no branch.
        branches.pass(Some("o"), Parent::Record("c"), 6);
        assert!(branches.take(Some("d"), Parent::Record("o"), 7).unwrap().is_none());
    }

    #[test]
    fn frames_are_taken_back_by_their_numbers() {
        let mut branches = Branches::default();
        // Frames 2 to 5; the frames 6, 9 and 11 tell.
        assert_eq!(branches.go_back(4, 2, 6), Ok(Some(vec![(4, 5)])));
        assert_eq!(branches.go_back(7, 2, 9), Ok(Some(vec![(4, 5), (7, 8)])));
        assert_eq!(branches.go_back(0, 2, 11), Ok(Some(vec![(2, 10)])));
        // There is nothing to take back.
        assert_eq!(branches.go_back(12, 2, 12), Ok(None));
    }

    #[test]
    fn damage_leaves_the_order_of_the_file() {
        let own = "a: a record that is its own parent";
        assert_eq!(forks(&["a<a", "b<a"]), [own]);
        assert!(forks(&["a<^", "b<gone", "c<b"]).is_empty());
        let circle = "b: a record whose parents go in a circle, or are out of order";
        assert_eq!(forks(&["a<b", "b<a", "c<b"]), [circle]);
        let several = "d: a record whose parent is the id of several records";
        assert_eq!(forks(&["a<^", "b<a", "a<b", "c<a", "d<a"]), [several]);
    }

    #[test]
    fn no_more_branches_are_told_of_than_the_limit() {
        let mut records = vec!["a<^".to_owned()];
        records.extend((0..2 * FORKS).map(|at| format!("r{at}<a")));
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let (told, wrong): (Vec<_>, Vec<_>) =
            forks(&records).into_iter().partition(|told| told.contains('['));
        assert_eq!((told.len(), wrong.len()), (FORKS, FORKS - 1));
    }
}
