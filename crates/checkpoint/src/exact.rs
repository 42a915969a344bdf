//! Instructions that are exact: lines by their numbers, with what they say before and after.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    ops::Range,
};

use super::{
    document::Document,
    patch::{Patch, Piece, Target, backbone},
};
use crate::{Error, Result};

/// What a patch is from and to: the number of lines and their fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchEnds {
    pub(super) before: End,
    pub(super) after: End,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) lines: usize,
    pub(super) fingerprint: String,
    /// How the lines end, where that is said.
    pub(super) line_ends: Option<String>,
}

impl End {
    pub(super) fn of(document: &Document) -> Self {
        let (lines, fingerprint) = (document.line_count(), document.lines.fingerprint());
        Self { lines, fingerprint, line_ends: None }
    }
}

/// The same lines are the same document, whatever ends them.
impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        (self.lines, &self.fingerprint) == (other.lines, &other.fingerprint)
    }
}

impl Eq for End {}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines with the fingerprint {}", self.lines, self.fingerprint)
    }
}

impl PatchEnds {
    /// The ends of a patch between two documents. How lines end is said where one of them is not in
    /// canonical form.
    pub(super) fn between(before: &Document, after: &Document) -> Self {
        let is_canonical = |document: &Document| document.text() == document.canonical();
        let are_said = !is_canonical(before) || !is_canonical(after);
        let of = |document: &Document| {
            let line_ends = are_said.then(|| document.lines.ends());
            End { line_ends, ..End::of(document) }
        };
        Self { before: of(before), after: of(after) }
    }

    pub(super) fn write(&self) -> String {
        let of = |end: &End, lines: &str| {
            let said = end.line_ends.as_ref().map(|ends| format!(" ({ends})")).unwrap_or_default();
            format!("{}{lines} `{}`{said}", end.lines, end.fingerprint)
        };
        format!("{} become {}.", of(&self.before, " lines"), of(&self.after, ""))
    }

    /// Whether a text begins as one that [`PatchEnds::write`] wrote, whole or not.
    pub(super) fn begins(text: &str) -> bool {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < text.len() && rest.starts_with(" lines `")
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.strip_suffix(['.', ':']).unwrap_or(text);
        let (before, after) = text.split_once(" become ")?;
        Some(Self { before: end(&before.replacen(" lines", "", 1))?, after: end(after)? })
    }
}

fn end(text: &str) -> Option<End> {
    let (lines, rest) = text.trim().split_once(" `")?;
    let (fingerprint, ends) = rest.split_once('`')?;
    let line_ends = match ends {
        "" => None,
        ends => Some(ends.strip_prefix(" (")?.strip_suffix(')')?.to_owned()),
    };
    let is_hex = fingerprint.bytes().all(|b| b.is_ascii_hexdigit());
    let (lines, fingerprint) = (lines.parse().ok()?, fingerprint.to_owned());
    (is_hex && !fingerprint.is_empty()).then_some(End { lines, fingerprint, line_ends })
}

/// A step of a patch: some lines go, and others come. One that only names lines moves them. Lines
/// count from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The lines of the base that the step takes away; none where it only adds.
    pub(super) taken: Range<usize>,
    /// What they say; empty where they move.
    pub(super) old: Vec<String>,
    /// The line of the base before which its lines come.
    pub(super) place: usize,
    pub(super) new: Vec<String>,
}

impl Step {
    fn replace(taken: Range<usize>, old: Vec<String>, new: Vec<String>) -> Self {
        Self { place: taken.start, taken, old, new }
    }

    fn add(place: usize, new: Vec<String>) -> Self {
        Self { taken: 0..0, old: Vec::new(), place, new }
    }

    fn move_to(taken: Range<usize>, place: usize) -> Self {
        Self { taken, old: Vec::new(), place, new: Vec::new() }
    }

    pub(super) fn is_move(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }
}

/// The steps of a patch, in the order of the target.
pub(super) fn steps_of(patch: &Patch) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut cursor = 0;
    let mut inserts: Vec<&Piece> = Vec::new();
    for (piece, stays) in patch.target.iter().zip(backbone(&patch.target)) {
        match piece {
            Piece::Copy(range) if stays => {
                flush(patch, cursor..range.start, &mut inserts, &mut steps);
                cursor = range.end;
            }
            piece => inserts.push(piece),
        }
    }
    flush(patch, cursor..patch.base, &mut inserts, &mut steps);
    steps
}

/// The steps between two lines that stay.
fn flush(patch: &Patch, gap: Range<usize>, inserts: &mut Vec<&Piece>, steps: &mut Vec<Step>) {
    let mut gone: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    for (index, line) in patch.removed.range(gap.clone()) {
        match gone.last_mut() {
            Some((range, lines)) if range.end == *index => {
                range.end += 1;
                lines.push(line.clone());
            }
            _ => gone.push((*index..index + 1, vec![line.clone()])),
        }
    }
    if let ([Piece::New(new)], [(at, old)]) = (inserts.as_slice(), gone.as_slice())
        && at.start == gap.start
    {
        steps.push(Step::replace(at.clone(), old.clone(), new.clone()));
        inserts.clear();
        return;
    }
    steps.extend(gone.into_iter().map(|(at, old)| Step::replace(at, old, Vec::new())));
    for piece in inserts.drain(..) {
        steps.push(match piece {
            Piece::New(new) => Step::add(gap.start, new.clone()),
            Piece::Copy(from) => Step::move_to(from.clone(), gap.start),
        });
    }
}

/// The steps as items of a list, each with the name of the section that it is about.
pub(super) fn write(steps: &[Step], name_at: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for (index, step) in steps.iter().enumerate() {
        let mark = format!("{}. ", index + 1);
        text.push_str(&mark);
        let Step { taken, old, place: at, new } = step;
        let lines = || format!("{}{}", span(taken), name_at(taken.start));
        let sentence = match (old.as_slice(), new.as_slice()) {
            ([], []) => format!("Move {} {}", lines(), place(*at, &name_at)),
            ([], _) => format!("Add {}", place(*at, &name_at)),
            (_, []) => format!("Remove {}", lines()),
            _ => format!("Replace {}", lines()),
        };
        text.push_str(&sentence);
        match inline(old, new) {
            _ if step.is_move() => text.push_str(".\n"),
            Some(quoted) => {
                let _ = writeln!(text, ": {quoted}");
            }
            None => {
                text.push_str(":\n");
                quote(&mut text, mark.len(), old, new);
            }
        }
    }
    text
}

/// Lines that are quoted in the sentence: one that goes, one that comes, or both.
fn inline(old: &[String], new: &[String]) -> Option<String> {
    let is_plain = |line: &String| {
        !line.is_empty() && line.trim() == line && !line.starts_with('`') && !line.ends_with('`')
    };
    let lines: Vec<&String> = old.iter().chain(new).collect();
    if old.len() > 1 || new.len() > 1 || !lines.iter().all(|line| is_plain(line)) {
        return None;
    }
    let longest = lines.iter().map(|line| longest_run(line, '`')).max()?;
    let mark = "`".repeat(longest + 1);
    let quoted: Vec<String> = lines.iter().map(|line| format!("{mark}{line}{mark}")).collect();
    Some(quoted.join(" with "))
}

/// The lines that a sentence quotes.
fn quoted(text: &str) -> Option<Vec<&str>> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let mark = text.get(..ticks)?;
    let parts: Vec<&str> = text.split(mark).collect();
    match parts.as_slice() {
        ["", line, ""] => Some(vec![line]),
        ["", old, " with ", new, ""] => Some(vec![old, new]),
        _ => None,
    }
}

pub(super) fn span(range: &Range<usize>) -> String {
    match range.len() {
        1 => format!("line {}", range.end),
        _ => format!("lines {}-{}", range.start + 1, range.end),
    }
}

/// The place before the line at this index.
fn place(at: usize, name_at: impl Fn(usize) -> String) -> String {
    match at.checked_sub(1) {
        None => "before line 1".to_owned(),
        Some(before) => format!("after line {at}{}", name_at(before)),
    }
}

/// Writes lines that go and lines that come as a difference in fences.
fn quote(text: &mut String, indent: usize, old: &[String], new: &[String]) {
    let longest = old.iter().chain(new).map(|line| longest_run(line, '`')).max().unwrap_or(0);
    let (fence, indent) = ("`".repeat((longest + 1).max(3)), " ".repeat(indent));
    let _ = writeln!(text, "{indent}{fence}diff");
    for (sign, lines) in [('-', old), ('+', new)] {
        for line in lines {
            let _ = writeln!(text, "{indent}{sign}{line}");
        }
    }
    let _ = writeln!(text, "{indent}{fence}");
}

pub(super) fn longest_run(line: &str, sign: char) -> usize {
    line.split(|c| c != sign).map(str::len).max().unwrap_or(0)
}

/// Reads a step; `None` where the instruction is none that names lines. `number` is the line of
/// the delta at which the item begins, from one.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where it names lines, and is not as they are written.
pub(super) fn read(item: &[&str], mark: usize, number: usize) -> Result<Option<Step>> {
    let Some((first, rest)) = item.split_first() else { return Ok(None) };
    let sentence = first.get(mark..).unwrap_or_default().trim();
    let Some((verb, names)) = sentence.split_once(' ') else { return Ok(None) };
    let verb = verb.to_ascii_lowercase();
    if !["line ", "lines ", "after line ", "before line "].iter().any(|start| {
        let (name, number) = names.split_at_checked(start.len()).unwrap_or_default();
        name.eq_ignore_ascii_case(start) && number.starts_with(|c: char| c.is_ascii_digit())
    }) {
        return Ok(None);
    }
    let refused = |expected: &str| Error::unmet(number, expected, format_args!("{sentence:?}"));
    let (names, in_sentence) = names.split_at(names.find('`').unwrap_or(names.len()));
    let (old, new) = if in_sentence.is_empty() {
        difference(rest, mark, number)?
    } else {
        let lines = quoted(in_sentence).ok_or_else(|| refused("one or two lines in backticks"))?;
        match (verb.as_str(), lines.as_slice()) {
            ("replace", [old, new]) => (vec![(*old).to_owned()], vec![(*new).to_owned()]),
            ("remove", [old]) => (vec![(*old).to_owned()], Vec::new()),
            ("add", [new]) => (Vec::new(), vec![(*new).to_owned()]),
            _ => return Err(refused("`LINE` to add or remove, or `OLD` with `NEW` to replace")),
        }
    };
    let lines = || read_span(names).ok_or_else(|| refused("the numbers of lines"));
    let place =
        |text: Option<&str>| text.and_then(read_place).ok_or_else(|| refused("`after line N`"));
    Ok(Some(match verb.as_str() {
        "replace" | "remove" if verb == "replace" || new.is_empty() => {
            let at = lines()?;
            if at.len() != old.len() {
                let lines = if at.len() == 1 { "line" } else { "lines" };
                return Err(refused(&format!("{} {lines} with `-`", at.len())));
            }
            Step::replace(at, old, new)
        }
        "add" if old.is_empty() && !new.is_empty() => Step::add(place(Some(names))?, new),
        "move" if old.is_empty() && new.is_empty() => {
            let behind = place_in(names).and_then(|at| names.get(at + 1..));
            Step::move_to(lines()?, place(behind)?)
        }
        _ => return Err(refused("`Replace`, `Remove`, `Add` or `Move` with the lines it needs")),
    }))
}

/// `line 3` or `lines 3-5`, as a range from zero.
fn read_span(text: &str) -> Option<Range<usize>> {
    let rest = text.strip_prefix("lines ").or_else(|| text.strip_prefix("line "))?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let numbers = rest.get(..end)?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    (first >= 1 && first <= last).then(|| first - 1..last)
}

/// Where a text names the place that something moves to.
pub(super) fn place_in(text: &str) -> Option<usize> {
    text.rfind(" after line ").or_else(|| text.rfind(" before line "))
}

/// `after line 3` or `before line 1`, as the index of the line before which it is.
fn read_place(text: &str) -> Option<usize> {
    let (rest, minus) = match text.strip_prefix("after line ") {
        Some(rest) => (rest, 0),
        None => (text.strip_prefix("before line ")?, 1),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse::<usize>().ok()?.checked_sub(minus)
}

/// The lines with `-` and those with `+` between two fences.
fn difference(lines: &[&str], mark: usize, number: usize) -> Result<(Vec<String>, Vec<String>)> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut fence: Option<&str> = None;
    for (index, line) in lines.iter().enumerate() {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let line = line.get(blanks.min(mark)..).unwrap_or_default();
        let refused =
            |expected: &str| Error::unmet(number + index + 1, expected, format_args!("{line:?}"));
        match fence {
            None if line.trim().is_empty() => {}
            None => {
                let ticks = line.len() - line.trim_start_matches('`').len();
                if ticks < 3 {
                    return Err(refused("a difference between fences of ```"));
                }
                fence = line.get(..ticks);
            }
            Some(open) if line.trim_end() == open => return Ok((old, new)),
            Some(_) => match (line.strip_prefix('-'), line.strip_prefix('+')) {
                (Some(gone), _) if new.is_empty() => old.push(gone.to_owned()),
                (_, Some(come)) => new.push(come.to_owned()),
                _ => return Err(refused("lines with `-`, then lines with `+`")),
            },
        }
    }
    let Some(open) = fence else { return Ok((old, new)) };
    Err(Error::missing(number, format_args!("a line {open} at the end of the difference")))
}

/// The patch that the steps make of a base of so many lines. Each step comes with its line in the
/// delta.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where a step names lines that are not there, or that another step
/// takes away too.
pub(super) fn patch_of(steps: &[(usize, Step)], base: usize) -> Result<Patch> {
    let mut removed = BTreeMap::new();
    let mut taken = vec![false; base];
    let mut inserts: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
    for (number, step) in steps {
        let Step { taken: lines, old, place, new } = step;
        let refused = |message: String| Error::refused(*number, message);
        let last = lines.end.max(*place);
        if last > base {
            return Err(refused(format!("there is no line {last}: the checkpoint has {base}")));
        }
        for index in lines.clone() {
            if taken.get_mut(index).is_none_or(|taken| std::mem::replace(taken, true)) {
                return Err(refused(format!("line {} is taken away twice", index + 1)));
            }
        }
        removed.extend(lines.clone().zip(old.iter().cloned()));
        if step.is_move() {
            inserts.entry(*place).or_default().push(Piece::Copy(lines.clone()));
        } else if !new.is_empty() {
            inserts.entry(*place).or_default().push(Piece::New(new.clone()));
        }
    }
    let mut target = Target::default();
    for index in 0..=base {
        for piece in inserts.remove(&index).unwrap_or_default() {
            match piece {
                Piece::Copy(range) => target.copy(range),
                Piece::New(lines) => target.new_lines(lines),
            }
        }
        if taken.get(index) == Some(&false) {
            target.copy(index..index + 1);
        }
    }
    Ok(Patch { base, target: target.pieces(), removed })
}
