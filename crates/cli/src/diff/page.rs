//! A comparison for people.

use std::{borrow::Cow, io::Write, ops::Range};

use afterimage::{
    hud::Owner,
    id::{FacetId, FrameSeq},
    request::CacheBreak,
};
use anstyle::Style;
use similar::{ChangeTag, DiffOp, TextDiff};
use unicode_segmentation::UnicodeSegmentation;

use super::{
    Comparison, LoadedContext,
    unit::{Change, Unit},
};
use crate::{
    failure::Outcome,
    labels::SessionLabels,
    output::Output,
    style,
    text::{counted, grouped, line_from, percent, printable, shortened, width},
    view,
};

/// The lines around a change that are shown with it.
const AROUND: usize = 2;
/// The most lines that are shown of a message that is only in one of the two.
const LINES: usize = 8;
/// What changed within lines is sought in changes of at most so many bytes.
const INLINE: usize = 4_000;

pub(super) fn print(comparison: &Comparison<'_>, is_full: bool, out: &mut Output) -> Outcome {
    let messages = comparison.changes.len() as u64;
    let title = title(comparison, out.width.saturating_sub(24));
    view::rule(out, &title, style::HEADING, comparison.next.form())?;
    if comparison.says_same() {
        let tokens = counted(comparison.previous_tokens, "token");
        let same = if comparison.forms.is_empty() {
            "are the same"
        } else {
            "say the same in other forms"
        };
        writeln!(out, " The two contexts {same}: {tokens}.")?;
        return print_forms(comparison, is_full, out);
    }
    head(comparison, out)?;
    writeln!(out)?;
    for change in &comparison.changes {
        print_change(comparison, change, is_full, out)?;
    }
    for change in &comparison.parameters {
        let value = |value: &Option<afterimage::json::Value>| {
            value.as_ref().map_or_else(|| "not set".to_owned(), ToString::to_string)
        };
        let (was, is) = (value(&change.previous), value(&change.next));
        let line = format!("parameter {}: {was} → {is}", change.name);
        writeln!(out, " {}", shortened(&printable(&line), out.width.saturating_sub(1)))?;
    }
    for CacheBreak { cause, from } in &comparison.breaks {
        let line = format!("{cause}: {}", from.billed());
        writeln!(out, " {}", shortened(&printable(&line), out.width.saturating_sub(1)))?;
    }
    print_forms(comparison, is_full, out)?;
    let dim = out.paint.style(style::DIM);
    let messages = messages + comparison.parameters.len() as u64;
    let what = match (comparison.next.request.is_some(), messages) {
        (true, 1) => "part differs",
        (true, _) => "parts differ",
        (false, 1) => "message differs",
        (false, _) => "messages differ",
    };
    Ok(writeln!(out, "{dim}{} {what}{dim:#}", grouped(messages))?)
}

/// What says the same in another form, and what that means for a cache.
fn print_forms(comparison: &Comparison<'_>, is_full: bool, out: &mut Output) -> Outcome {
    let forms = &comparison.forms;
    let most = if is_full || forms.len() == LINES + 1 { forms.len() } else { LINES };
    for content in forms.iter().take(most) {
        writeln!(out, " {}", shortened(&printable(&content.words()), out.width.saturating_sub(1)))?;
    }
    left_out(forms.len().saturating_sub(most), out)?;
    let dim = out.paint.style(style::DIM);
    if forms.iter().any(|content| content.change.is_shape()) {
        writeln!(out, " {dim}A cache that counts forms ends at the first of them.{dim:#}")?;
    }
    if forms.iter().any(|content| !content.change.is_shape()) {
        writeln!(out, " {dim}Marks say up to where a provider's cache keeps a request.{dim:#}")?;
    }
    Ok(())
}

/// The names of both, which together take at most so many columns.
fn title(comparison: &Comparison<'_>, columns: usize) -> String {
    let name = |loaded: &LoadedContext| match &loaded.session {
        Some(session) => format!("{} ({session})", loaded.name),
        None => loaded.name.clone(),
    };
    let (previous, next) = (name(comparison.previous), name(comparison.next));
    let (previous, next) = (printable(&previous), printable(&next));
    if width(&previous) + width(&next) <= columns {
        return format!("{previous} → {next}");
    }
    format!("{} → {}", shortened(&previous, columns / 2), shortened(&next, columns / 2))
}

/// Where they part, who wrote that, and what it costs.
fn head(comparison: &Comparison<'_>, out: &mut Output) -> Outcome {
    let report = &comparison.report;
    let mut rows: Vec<(&str, String)> = Vec::new();
    match comparison.place() {
        None => {
            let said = "nowhere: the first is the beginning of the second";
            rows.push(("parts", said.to_owned()));
        }
        Some(place) => {
            let path = place.divergence.path.to_string();
            let message = match place.message {
                Some(message) => format!("message {message}"),
                None if place.tool.is_some() => {
                    format!("the tool {}", place.tool.unwrap_or_default())
                }
                None if path == "/model" => "the model".to_owned(),
                None if path.starts_with("/system") || path.starts_with("/instructions") => {
                    "the system prompt".to_owned()
                }
                None => "the text".to_owned(),
            };
            let byte = match place.divergence.offset {
                Some(byte) => format!(", byte {}", grouped(byte as u64)),
                None => String::new(),
            };
            let at = if path.is_empty() { String::new() } else { format!("  ({path})") };
            rows.push(("parts at", format!("{message}{byte}{at}")));
            let (was, is) = (comparison.previous, comparison.next);
            rows.push(("written by", owner(was, place.previous_owner)));
            rows.push(("now by", owner(is, place.owner)));
        }
    }
    let (before, after) = (comparison.previous_tokens, report.tokens);
    rows.push(("tokens", format!("{} → {}", grouped(before), grouped(after))));
    let share = percent(report.unchanged, report.tokens);
    rows.push(("unchanged", format!("{} at the beginning, {share}", grouped(report.unchanged))));
    if report.cached != report.unchanged {
        rows.push(("cached", grouped(report.cached)));
    }
    rows.push(("billed again", grouped(comparison.report.billed_again())));
    let (dim, columns) = (out.paint.style(style::DIM), out.width.saturating_sub(15).max(20));
    for (name, value) in rows {
        let value = printable(&value).into_owned();
        writeln!(out, " {dim}{name:<12}{dim:#}  {}", shortened(&value, columns))?;
    }
    Ok(())
}

/// Who wrote it, with the place in the source and the tool call.
fn owner(of: &LoadedContext, owner: Option<&Owner>) -> String {
    let label = owner.and_then(|owner| of.labels.of_owner(owner));
    match label.map(|label| label.words()).filter(|words| !words.is_empty()) {
        Some(words) => format!("{}, {words}", named(owner)),
        None => named(owner),
    }
}

fn named(owner: Option<&Owner>) -> String {
    fn facets(ids: &[FacetId]) -> String {
        match ids {
            [] => "formatting".to_owned(),
            ids => ids.iter().map(FacetId::as_str).collect::<Vec<_>>().join(", "),
        }
    }
    match owner {
        None => "nobody: there is nothing".to_owned(),
        Some(Owner::Framing(Owner::UNRECORDED)) => "not recorded".to_owned(),
        Some(Owner::Framing(name)) => format!("framing: {name}"),
        Some(Owner::Chunk { frame, chunk, facet_ids }) => {
            format!("frame {frame}, chunk {chunk}: {}", facets(facet_ids))
        }
        Some(Owner::Block { block, chunk, .. }) => format!("{block}, chunk {chunk}"),
        Some(Owner::Recorded { facet, frame: Some(frame) }) => format!("frame {frame}: {facet}"),
        Some(Owner::Recorded { facet, frame: None }) => facet.to_string(),
        Some(Owner::Tail { index, facet_ids, .. }) => {
            format!("the tail, chunk {index}: {}", facets(facet_ids))
        }
        Some(other) => format!("{other:?}"),
    }
}

fn print_change(
    comparison: &Comparison<'_>,
    change: &Change,
    is_full: bool,
    out: &mut Output,
) -> Outcome {
    let unit = change.shown();
    let title = printable(&change.title()).into_owned();
    let labels = comparison.labels_of(change);
    let place = unit.frames.map_or_else(String::new, |frames| place(labels, frames));
    let from = if place.is_empty() { unit.from.clone() } else { format!("{}, {place}", unit.from) };
    view::rule(out, &title, style::of_role(unit.role()), &printable(&from))?;
    match change {
        Change::Removed(unit) => whole(unit, Sign::Removed, is_full, out)?,
        Change::Added(unit) => whole(unit, Sign::Added, is_full, out)?,
        Change::Replaced(was, is) => lines(was, is, is_full, out)?,
    }
    Ok(writeln!(out)?)
}

/// Where the frames of a message stand in the source.
fn place(labels: &SessionLabels, (first, last): (FrameSeq, FrameSeq)) -> String {
    let (from, to) = (labels.of(first, None), labels.of(last, None));
    match (from.line(), to.line()) {
        (Some(from), Some(to)) if from != to => format!("lines {from} to {to}"),
        _ => from.words(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Removed,
    Added,
}

impl Sign {
    fn style(self) -> Style {
        match self {
            Sign::Same => style::DIM,
            Sign::Removed => style::REMOVED,
            Sign::Added => style::ADDED,
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Sign::Same => " ",
            Sign::Removed => "-",
            Sign::Added => "+",
        }
    }
}

/// Writes a message that only one of the contexts has.
fn whole(unit: &Unit, sign: Sign, is_full: bool, out: &mut Output) -> Outcome {
    let all = unit.text.lines().count();
    let most = if is_full { all } else { LINES };
    // To leave out a single line would save none.
    let most = if all == most + 1 { all } else { most };
    for line in unit.text.lines().take(most) {
        write_line(sign, &[(false, line)], is_full, out)?;
    }
    left_out(all.saturating_sub(most), out)
}

fn left_out(lines: usize, out: &mut Output) -> Outcome {
    if lines == 0 {
        return Ok(());
    }
    let dim = out.paint.style(style::DIM);
    Ok(writeln!(out, "   {dim}… {} more{dim:#}", counted(lines as u64, "line"))?)
}

/// Writes what changed within a message, with the lines around it.
fn lines(was: &Unit, is: &Unit, is_full: bool, out: &mut Output) -> Outcome {
    if was.role != is.role {
        for (sign, role) in [(Sign::Removed, &was.role), (Sign::Added, &is.role)] {
            write_line(sign, &[(false, &format!("role: {role}"))], is_full, out)?;
        }
    }
    let diff = TextDiff::from_lines(was.text.as_str(), is.text.as_str());
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            let dim = out.paint.style(style::DIM);
            writeln!(out, "   {dim}⋮{dim:#}")?;
        }
        for op in group {
            print_op(&diff, op, is_full, out)?;
        }
    }
    Ok(())
}

fn print_op(diff: &TextDiff<'_, '_, str>, op: &DiffOp, is_full: bool, out: &mut Output) -> Outcome {
    let bytes = |range: Range<usize>, line: &dyn Fn(usize) -> Option<usize>| -> usize {
        range.filter_map(line).sum()
    };
    let size = bytes(op.old_range(), &|at| diff.old_slice(at).map(str::len))
        + bytes(op.new_range(), &|at| diff.new_slice(at).map(str::len));
    let sign = |tag| match tag {
        ChangeTag::Equal => Sign::Same,
        ChangeTag::Delete => Sign::Removed,
        ChangeTag::Insert => Sign::Added,
    };
    let mut counts = [0_usize; 3];
    // Of many lines in a row the first tell enough.
    let mut goes = |sign: Sign| {
        let count = counts.get_mut(sign as usize);
        let count = count.map_or(0, |count| {
            *count += 1;
            *count
        });
        is_full || count <= LINES
    };
    if size <= INLINE {
        // Without a deadline, so that the same contexts look the same on every run.
        for change in diff.iter_inline_changes_deadline(op, None) {
            if goes(sign(change.tag())) {
                write_line(sign(change.tag()), change.values(), is_full, out)?;
            }
        }
    } else {
        let first = |range: Range<usize>| range.start;
        let (old, new) = (first(op.old_range()), first(op.new_range()));
        let pair = diff.old_slice(old).zip(diff.new_slice(new));
        let at = pair.map_or(0, |(old, new)| same(old, new));
        for change in diff.iter_changes(op) {
            let line: &str = change.value();
            if goes(sign(change.tag())) {
                // Of a long line what is around the first difference is shown.
                let from = if is_full || size == 0 { 0 } else { at.saturating_sub(out.width / 2) };
                let from = (0..=from.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
                let from = from.unwrap_or(0);
                let shown: Cow<'_, str> = match line.get(from..) {
                    Some(rest) if from > 0 && change.tag() != ChangeTag::Equal => {
                        format!("…{rest}").into()
                    }
                    _ => line.into(),
                };
                write_line(sign(change.tag()), &[(false, &shown)], is_full, out)?;
            }
        }
    }
    left_out(
        counts
            .iter()
            .map(|count| count.saturating_sub(LINES))
            .max()
            .filter(|_| !is_full)
            .unwrap_or(0),
        out,
    )
}

/// How many bytes two lines begin alike with.
fn same(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// Writes a line, of parts that are marked or not, on as many rows as it takes.
fn write_line(sign: Sign, parts: &[(bool, &str)], is_full: bool, out: &mut Output) -> Outcome {
    let (style, marked) = (sign.style(), sign.style().invert());
    let columns = out.width.saturating_sub(3).max(20);
    // A line may have no end; on a page three rows of it are enough.
    let mut left = if is_full { usize::MAX } else { columns * 3 };
    let mut line: Vec<Glyph> = Vec::new();
    for (is_marked, part) in parts {
        let part = part.strip_suffix('\n').unwrap_or(part);
        let shown = if is_full { printable(part).into_owned() } else { line_from(part, left) };
        left = left.saturating_sub(width(&shown));
        let style = if *is_marked { marked } else { style };
        line.extend(shown.graphemes(true).map(|grapheme| (grapheme.to_owned(), style)));
        if left == 0 {
            break;
        }
    }
    let (mut rest, mut mark) = (line.as_slice(), sign.mark());
    loop {
        let (mut row, after) = if is_full { (rest, &[][..]) } else { split(rest, columns) };
        if let Some(((last, _), before)) = row.split_last().filter(|_| !after.is_empty())
            && last == " "
        {
            row = before;
        }
        write_row(mark, style, row, out)?;
        if after.is_empty() {
            return Ok(());
        }
        (rest, mark) = (after, " ");
    }
}

/// A character as people see it, and how it looks.
type Glyph = (String, Style);

/// What fits on a row, and what is left: broken after a blank where there is one.
fn split(line: &[Glyph], columns: usize) -> (&[Glyph], &[Glyph]) {
    let mut used = 0;
    let fits = line.iter().take_while(|(grapheme, _)| {
        used += width(grapheme);
        used <= columns
    });
    let fits = fits.count().max(1);
    if fits >= line.len() {
        return (line, &[]);
    }
    let blank = line.iter().take(fits).rposition(|(grapheme, _)| grapheme == " ");
    line.split_at(blank.map(|at| at + 1).filter(|at| *at > fits / 2).unwrap_or(fits))
}

fn write_row(mark: &str, style: Style, row: &[Glyph], out: &mut Output) -> Outcome {
    let sign = out.paint.style(style);
    write!(out, " {sign}{mark}{sign:#}{}", if row.is_empty() { "" } else { " " })?;
    for run in row.chunk_by(|(_, one), (_, other)| one == other) {
        let style = out.paint.style(run.first().map_or(style, |(_, style)| *style));
        let text: String = run.iter().map(|(grapheme, _)| grapheme.as_str()).collect();
        write!(out, "{style}{text}{style:#}")?;
    }
    Ok(writeln!(out)?)
}
