//! Which lines of one text are lines of another.
//!
//! Lines that stand once in each are anchors, and grow to runs (Heckel's method); what lies between
//! runs in order is compared line by line. Runs out of order are moves.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{
    lines::Lines,
    patch::{Patch, Piece, Target, backbone},
};

/// How many pairs of lines are compared at most: what lies between two runs is passed over where it
/// has more than are left.
const MOST_PAIRS: usize = 1 << 22;

/// The patch that makes `b` of `a`. Linear in the lines but for a logarithm, and for what lies
/// between two runs, which is bounded.
pub(super) fn patch_between(a: &Lines, b: &Lines) -> Patch {
    let mut matching = Matching::new(a, b);
    matching.ends();
    matching.anchors();
    matching.grow();
    matching.between_runs();
    matching.pair_the_rest();
    let gone = matching.to_b.iter().enumerate().filter(|(_, to)| to.is_none());
    let removed = gone.map(|(index, _)| (index, a.get(index).to_owned())).collect();
    Patch { base: a.len(), target: matching.pieces(|index| b.get(index).to_owned()), removed }
}

struct Matching {
    a: Vec<u32>,
    b: Vec<u32>,
    /// By name: whether the line says enough to be worth a move.
    says: Vec<bool>,
    to_b: Vec<Option<usize>>,
    to_a: Vec<Option<usize>>,
}

impl Matching {
    fn new(a: &Lines, b: &Lines) -> Self {
        let mut names: HashMap<&str, u32> = HashMap::new();
        let mut says = Vec::new();
        let mut name = |line| {
            let next = names.len() as u32;
            *names.entry(line).or_insert_with(|| {
                says.push(says_something(line));
                next
            })
        };
        let ids_of_a: Vec<u32> = a.iter().map(&mut name).collect();
        let ids_of_b: Vec<u32> = b.iter().map(&mut name).collect();
        let (to_b, to_a) = (vec![None; ids_of_a.len()], vec![None; ids_of_b.len()]);
        Self { a: ids_of_a, b: ids_of_b, says, to_b, to_a }
    }

    fn pair(&mut self, a: usize, b: usize) {
        if let (Some(to_b), Some(to_a)) = (self.to_b.get_mut(a), self.to_a.get_mut(b)) {
            *to_b = Some(b);
            *to_a = Some(a);
        }
    }

    fn is_free(&self, a: usize, b: usize) -> bool {
        self.to_b.get(a).is_some_and(Option::is_none)
            && self.to_a.get(b).is_some_and(Option::is_none)
            && self.a.get(a) == self.b.get(b)
    }

    /// Pairs what the texts begin and end with.
    fn ends(&mut self) {
        let mut start = 0;
        while self.is_free(start, start) {
            self.pair(start, start);
            start += 1;
        }
        let (mut a, mut b) = (self.a.len(), self.b.len());
        while a > 0 && b > 0 && self.is_free(a - 1, b - 1) {
            (a, b) = (a - 1, b - 1);
            self.pair(a, b);
        }
    }

    /// Pairs lines that stand once in what is left of each text.
    fn anchors(&mut self) {
        let mut places: HashMap<u32, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (index, id) in free(&self.a, &self.to_b) {
            places.entry(id).or_default().0.push(index);
        }
        for (index, id) in free(&self.b, &self.to_a) {
            places.entry(id).or_default().1.push(index);
        }
        for (id, place) in places {
            let says = self.says.get(id as usize).copied().unwrap_or_default();
            if let (true, [a], [b]) = (says, place.0.as_slice(), place.1.as_slice()) {
                self.pair(*a, *b);
            }
        }
    }

    /// Lets pairs take their equal neighbours along, forward and then backward.
    fn grow(&mut self) {
        for a in 0..self.a.len() {
            if let Some(b) = self.to_b.get(a).copied().flatten()
                && self.is_free(a + 1, b + 1)
            {
                self.pair(a + 1, b + 1);
            }
        }
        for a in (1..self.a.len()).rev() {
            if let Some(b) = self.to_b.get(a).copied().flatten()
                && b > 0
                && self.is_free(a - 1, b - 1)
            {
                self.pair(a - 1, b - 1);
            }
        }
    }

    /// The lines of `b`, as pieces: those that come from `a`, and those that `new` makes.
    fn pieces(&self, new: impl Fn(usize) -> String) -> Vec<Piece> {
        let mut target = Target::default();
        for (index, from) in self.to_a.iter().enumerate() {
            match from {
                Some(from) => target.copy(*from..*from + 1),
                None => target.new_lines([new(index)]),
            }
        }
        target.pieces()
    }

    /// Compares what is left between runs that stay in order.
    fn between_runs(&mut self) {
        // Whatever is new parts what is copied.
        let pieces = self.pieces(|_| String::new());
        let stays = backbone(&pieces);
        let (mut from_a, mut from_b, mut at) = (0, 0, 0);
        let mut gaps = Vec::new();
        for (piece, stays) in pieces.iter().zip(stays) {
            if let (Piece::Copy(range), true) = (piece, stays) {
                gaps.push((from_a..range.start, from_b..at));
                (from_a, from_b) = (range.end, at + range.len());
            }
            at += piece.len();
        }
        gaps.push((from_a..self.a.len(), from_b..self.b.len()));
        let mut left = MOST_PAIRS;
        for (in_a, in_b) in gaps {
            let rows: Vec<usize> = in_a.filter(|a| self.to_b.get(*a) == Some(&None)).collect();
            let columns: Vec<usize> = in_b.filter(|b| self.to_a.get(*b) == Some(&None)).collect();
            let Some(rest) = left.checked_sub(rows.len().saturating_mul(columns.len())) else {
                continue;
            };
            left = rest;
            let ids = |of: &[u32], at: &[usize]| -> Vec<u32> {
                at.iter().filter_map(|index| of.get(*index).copied()).collect()
            };
            let (old, new) = (ids(&self.a, &rows), ids(&self.b, &columns));
            for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
                let DiffOp::Equal { old_index, new_index, len } = op else { continue };
                let pairs = rows.iter().skip(old_index).zip(columns.iter().skip(new_index));
                pairs.take(len).for_each(|(a, b)| self.pair(*a, *b));
            }
        }
    }

    /// Pairs lines that say something and are left in both, in their order.
    fn pair_the_rest(&mut self) {
        let mut left: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, id) in free(&self.a, &self.to_b).rev() {
            if self.says.get(id as usize) == Some(&true) {
                left.entry(id).or_default().push(index);
            }
        }
        let wanted: Vec<(usize, u32)> = free(&self.b, &self.to_a).collect();
        for (b, id) in wanted {
            if let Some(a) = left.get_mut(&id).and_then(Vec::pop) {
                self.pair(a, b);
            }
        }
    }
}

/// The lines without a partner, with their names.
fn free<'m>(
    ids: &'m [u32],
    partners: &'m [Option<usize>],
) -> impl DoubleEndedIterator<Item = (usize, u32)> + 'm {
    let unpaired = ids.iter().zip(partners).enumerate().filter(|(_, (_, to))| to.is_none());
    unpaired.map(|(index, (id, _))| (index, *id))
}

/// Whether a line has a letter or a number: marks of tables, code and rules come again anywhere.
fn says_something(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).nth(2).is_some()
}
