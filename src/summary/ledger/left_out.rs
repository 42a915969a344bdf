//! How a list says that it is cut: how many of its lines are left out, and their kinds.

use super::section::{Section, SectionLine};
use crate::steps::Status;

/// The kinds that are named.
const MOST_KINDS: usize = 6;

/// What stands before and after the number.
const BEFORE: &str = "… ";
const AFTER: &str = " more";

/// The lines of one list that are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    lines: usize,
    /// The kinds with how many lines are of each, the first one first.
    kinds: Vec<(String, usize)>,
}

impl LeftOut {
    /// Counts a line that is left out, or a line that told how many were.
    pub(crate) fn add(&mut self, line: &SectionLine) {
        if let Some(before) = Self::of_text(&line.text) {
            self.lines += before.lines;
            before.kinds.into_iter().for_each(|(kind, count)| self.add_kind(&kind, count));
            return;
        }
        let (kind, count) = kind_of(line);
        self.lines += count;
        if let Some(kind) = kind {
            self.add_kind(&kind, count);
        }
    }

    fn add_kind(&mut self, kind: &str, count: usize) {
        match self.kinds.iter_mut().find(|(of, _)| of == kind) {
            Some((_, of)) => *of += count,
            None => self.kinds.push((kind.to_owned(), count)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Reads a line that tells how many lines are left out.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let (lines, rest) = text.strip_prefix(BEFORE)?.split_once(AFTER)?;
        let lines = lines.parse().ok()?;
        let kinds = match rest.strip_prefix(": ") {
            Some(kinds) => kinds.split(", ").filter_map(named_count).collect(),
            None if rest.is_empty() => Vec::new(),
            None => return None,
        };
        Some(Self { lines, kinds })
    }

    /// What is said of them, the longest form first: `… 9 more: read ×6, search ×3`, `… 9 more`.
    pub(crate) fn forms(&self) -> Vec<String> {
        let plain = format!("{BEFORE}{}{AFTER}", self.lines);
        let mut kinds: Vec<&(String, usize)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let with = |most: usize| {
            let named = kinds.iter().take(most).map(|(kind, count)| format!("{kind} ×{count}"));
            let named: Vec<String> = named.collect();
            format!("{plain}: {}", named.join(", "))
        };
        let most = kinds.len().min(MOST_KINDS);
        let mut forms: Vec<String> =
            [most, most / 2].into_iter().filter(|most| *most > 0).map(with).collect();
        forms.dedup();
        forms.push(plain);
        forms
    }
}

/// `search ×3`
fn named_count(text: &str) -> Option<(String, usize)> {
    let (kind, count) = text.rsplit_once(" ×")?;
    Some((kind.to_owned(), count.parse().ok()?))
}

/// What a line is one of, a call of its tool, a step of its status, a rule of its frame, and how many
/// it stands for.
fn kind_of(line: &SectionLine) -> (Option<String>, usize) {
    let text = line.text.as_str();
    let (kind, count) = match line.section {
        Section::Rules => return (line.frame.map(|frame| format!("[{frame}]")), 1),
        Section::Calls => side_by_side(text).map_or_else(
            || (text.split_once('(').map(|(tool, _)| tool), times(text)),
            |(tool, count)| (Some(tool), count),
        ),
        Section::Plan => {
            let marks = [(Status::Open.mark(), "open"), (Status::InProgress.mark(), "in progress")];
            let of = marks.into_iter().find(|(mark, _)| text.starts_with(mark));
            (of.map(|(_, kind)| kind), 1)
        }
        _ => (None, 1),
    };
    (kind.map(str::to_owned), count)
}

/// The tool and the number of calls that stand side by side: `read ×3: a.rs; b.rs; c.rs`,
/// `read ×3 in src/: a.rs; b.rs; c.rs`.
fn side_by_side(text: &str) -> Option<(&str, usize)> {
    let (tool, rest) = text.split_once(" ×")?;
    let rest_of_count = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_list = rest_of_count.starts_with([':', ' ']) && rest_of_count.contains(": ");
    let count = number_before(rest)?;
    (is_list && !tool.contains('(')).then_some((tool, count))
}

/// The number that a text begins with.
fn number_before(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// How many calls a line stands for: `read(a.rs) ×3 → 9 lines` for three.
fn times(text: &str) -> usize {
    let call = text.split_once(") → ").map_or(text, |(call, _)| call);
    let counted = text.rsplit_once(") ×").filter(|(before, _)| before.len() <= call.len());
    counted.and_then(|(_, rest)| number_before(rest)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FrameSeq;

    fn left_out(texts: &[&str]) -> LeftOut {
        let mut left = LeftOut::default();
        let line = |text: &&str| SectionLine::new(Section::Calls, FrameSeq::new(1), *text);
        texts.iter().map(line).for_each(|line| left.add(&line));
        left
    }

    #[test]
    fn rules_that_are_left_out_are_counted_by_their_frames() {
        let mut left = LeftOut::default();
        for frame in [7, 7, 9] {
            left.add(&SectionLine::new(Section::Rules, FrameSeq::new(frame), "\"Never moor.\""));
        }
        assert_eq!(left.forms(), ["… 3 more: [7] ×2, [9] ×1", "… 3 more: [7] ×2", "… 3 more"]);
    }

    #[test]
    fn lines_that_are_left_out_are_counted_by_their_kinds() {
        let texts = ["moor(berth: 7) ×3 → done", "sound(a) → 4 lines", "moor(berth: 8)"];
        let forms = left_out(&texts).forms();
        assert_eq!(forms, ["… 5 more: moor ×4, sound ×1", "… 5 more: moor ×4", "… 5 more"]);
        let texts = ["moor ×3: 7; 8; 9 → done", "moor ×4 in /quay/: a ×2; b; c", "sound(a ×2: 3)"];
        let forms = left_out(&texts).forms();
        assert_eq!(forms.first().unwrap(), "… 8 more: moor ×7, sound ×1");
    }

    #[test]
    fn what_was_left_out_before_is_counted_too() {
        let texts = ["moor(berth: 7)", "… 9 more: moor ×6, sound ×3"];
        let forms = left_out(&texts).forms();
        assert_eq!(forms.first().unwrap(), "… 10 more: moor ×7, sound ×3");
        let read = LeftOut::of_text(forms.first().unwrap()).unwrap();
        assert_eq!(read.forms(), forms);
        assert_eq!(LeftOut::of_text("… and so on"), None);
        assert_eq!(LeftOut::of_text("… 2 more ropes"), None);
    }
}
