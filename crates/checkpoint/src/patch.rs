use std::{collections::BTreeMap, ops::Range};

use super::lines::{EditedLine, Lines};

/// What makes one text of another, line by line: exact in both directions.
///
/// The target is made of lines of the base, each at most once and in any order, and of new lines.
/// What the base's other lines say is kept, so that a patch can be checked and inverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// The number of lines of the base.
    pub(super) base: usize,
    pub(super) target: Vec<Piece>,
    /// The lines of the base that the target does not have, by their index.
    pub(super) removed: BTreeMap<usize, String>,
}

/// A piece of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Lines of the base.
    Copy(Range<usize>),
    /// New lines.
    New(Vec<String>),
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Copy(range) => range.len(),
            Self::New(lines) => lines.len(),
        }
    }
}

/// Collects the pieces of a target; adjacent ones become one.
#[derive(Default)]
pub(super) struct Target(Vec<Piece>);

impl Target {
    pub(super) fn copy(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(Piece::Copy(last)) if last.end == range.start => last.end = range.end,
            _ => self.0.push(Piece::Copy(range)),
        }
    }

    pub(super) fn new_lines(&mut self, lines: impl IntoIterator<Item = String>) {
        if let Some(Piece::New(last)) = self.0.last_mut() {
            last.extend(lines);
            return;
        }
        let lines: Vec<String> = lines.into_iter().collect();
        if !lines.is_empty() {
            self.0.push(Piece::New(lines));
        }
    }

    pub(super) fn pieces(self) -> Vec<Piece> {
        self.0
    }
}

impl Patch {
    /// The first line of `base`, by its index, that is not what the patch takes away, or that is
    /// missing; with what the patch expects.
    pub(super) fn mismatch(&self, base: &Lines) -> Option<(usize, &str)> {
        let mut removed = self.removed.iter().map(|(index, line)| (*index, line.as_str()));
        removed.find(|(index, line)| *index >= base.len() || base.get(*index) != *line)
    }

    /// The lines of the target.
    pub(super) fn edited(&self) -> Vec<EditedLine> {
        let of = |piece: &Piece| -> Vec<EditedLine> {
            match piece {
                Piece::Copy(range) => range.clone().map(EditedLine::Kept).collect(),
                Piece::New(lines) => lines.iter().cloned().map(EditedLine::New).collect(),
            }
        };
        self.target.iter().flat_map(of).collect()
    }

    /// What makes the base of the target.
    pub(super) fn inverted(&self) -> Self {
        let mut place: Vec<Option<usize>> = vec![None; self.base];
        let mut removed = BTreeMap::new();
        let mut at = 0;
        for piece in &self.target {
            match piece {
                Piece::Copy(range) => {
                    for (offset, index) in range.clone().enumerate() {
                        if let Some(place) = place.get_mut(index) {
                            *place = Some(at + offset);
                        }
                    }
                }
                Piece::New(lines) => {
                    removed.extend((at..).zip(lines.iter().cloned()));
                }
            }
            at += piece.len();
        }
        let mut target = Target::default();
        for (index, place) in place.into_iter().enumerate() {
            match place {
                Some(at) => target.copy(at..at + 1),
                None => target.new_lines(self.removed.get(&index).cloned()),
            }
        }
        Self { base: at, target: target.pieces(), removed }
    }

    /// What this patch and then `next` make of the base. `next` is one of this patch's target.
    pub(super) fn then(&self, next: &Self) -> Self {
        let begin = |at: &mut usize, piece: &Piece| Some(std::mem::replace(at, *at + piece.len()));
        let starts: Vec<usize> = self.target.iter().scan(0, begin).collect();
        let line_at = |at: usize| {
            let index = starts.partition_point(|start| *start <= at).checked_sub(1)?;
            let offset = at - starts.get(index)?;
            match self.target.get(index)? {
                Piece::Copy(range) => Some(range.start + offset)
                    .filter(|line| *line < range.end)
                    .map(EditedLine::Kept),
                Piece::New(lines) => lines.get(offset).cloned().map(EditedLine::New),
            }
        };
        let mut target = Target::default();
        for piece in &next.target {
            match piece {
                Piece::New(lines) => target.new_lines(lines.iter().cloned()),
                Piece::Copy(range) => {
                    for line in range.clone().filter_map(line_at) {
                        match line {
                            EditedLine::Kept(at) => target.copy(at..at + 1),
                            EditedLine::New(line) => target.new_lines([line]),
                        }
                    }
                }
            }
        }
        let target = target.pieces();
        let mut removed = self.removed.clone();
        for (at, line) in &next.removed {
            if let Some(EditedLine::Kept(from)) = line_at(*at) {
                removed.insert(from, line.clone());
            }
        }
        Self { base: self.base, target, removed }.without_detours()
    }

    /// A patch without lines that go and come again at their place.
    fn without_detours(self) -> Self {
        let mut removed = self.removed;
        let mut target = Target::default();
        let mut next = 0;
        for piece in self.target {
            match piece {
                Piece::Copy(range) => {
                    next = range.end;
                    target.copy(range);
                }
                Piece::New(lines) => {
                    for line in lines {
                        if removed.get(&next) == Some(&line) {
                            removed.remove(&next);
                            target.copy(next..next + 1);
                            next += 1;
                        } else {
                            target.new_lines([line]);
                        }
                    }
                }
            }
        }
        Self { base: self.base, target: target.pieces(), removed }
    }
}

/// Which of the copies stay where they are while the others move around them: as many as are in the
/// base's order. Runs in O(n log n).
pub(super) fn backbone(pieces: &[Piece]) -> Vec<bool> {
    // The last piece, with where it begins in the base, of the best chain of each length.
    let mut chains: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pieces.len()];
    for (index, (piece, before)) in pieces.iter().zip(&mut before).enumerate() {
        let Piece::Copy(range) = piece else { continue };
        let length = chains.partition_point(|(start, _)| *start < range.start);
        let last = length.checked_sub(1).and_then(|shorter| chains.get(shorter));
        *before = last.map(|(_, index)| *index);
        chains.splice(length..(length + 1).min(chains.len()), [(range.start, index)]);
    }
    let mut stays = vec![false; pieces.len()];
    let mut at = chains.last().map(|(_, index)| *index);
    while let Some(index) = at {
        if let Some(stays) = stays.get_mut(index) {
            *stays = true;
        }
        at = before.get(index).copied().flatten();
    }
    stays
}
