//! What stands in quotation marks inside of lines.

use std::ops::Range;

use super::material::{Kind, Material};

/// The marks that are told from apostrophes and from each other by what stands beside them.
const DOUBLE: [char; 19] = [
    '❝', '❞', '〝', '〟', '″', '"', '“', '”', '„', '‟', '＂', '«', '»', '‹', '›', '「', '」', '『',
    '』',
];
const SINGLE: [char; 6] = ['´', '\'', '‘', '’', '‚', '‛'];
const CODE: [char; 1] = ['`'];

/// Whether a character is the mark of a quotation.
pub(super) fn is_mark(c: char) -> bool {
    DOUBLE.contains(&c) || SINGLE.contains(&c) || CODE.contains(&c)
}

/// What a mark does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Opens,
    Closes,
    Neither,
}

/// What a run of marks does, by what stands beside it. `None` stands for a blank or an end.
fn side(mark: char, before: Option<char>, after: Option<char>) -> Side {
    let is_lead = |c: char| c.is_whitespace() || "([{<:=,/—–-…".contains(c) || is_unspaced(c);
    let is_end = |c: char| c.is_whitespace() || !c.is_alphanumeric() || is_unspaced(c);
    let opens = before.is_none_or(is_lead) && after.is_some_and(|c| !c.is_whitespace());
    let closes = before.is_some_and(|c| !c.is_whitespace()) && after.is_none_or(is_end);
    match mark {
        '「' | '『' | '„' | '‟' | '‚' => Side::Opens,
        '」' | '』' => Side::Closes,
        // French sets blanks inside of them, and German turns them round.
        '«' | '‹' if !closes || opens => Side::Opens,
        '»' | '›' if !opens || closes => Side::Closes,
        _ if opens && !closes => Side::Opens,
        _ if closes && !opens => Side::Closes,
        '”' | '»' | '›' if closes => Side::Closes,
        _ if opens => Side::Opens,
        _ => Side::Neither,
    }
}

fn is_unspaced(c: char) -> bool {
    crate::text::is_unspaced(c)
}

/// Adds what stands between quotation marks in a part of a text: within a paragraph, and from a mark
/// that nothing closes there to the one that closes it at the end of a later line; else to the end
/// of the paragraph. O(n).
pub(super) fn quotations(text: &str, part: Range<usize>, found: &mut Vec<Material>) {
    let first = found.len();
    for marks in [&DOUBLE[..], &SINGLE, &CODE] {
        of_marks(text, part.clone(), marks, found);
    }
    // One inside of another is a part of it.
    let new = found.get_mut(first..).unwrap_or_default();
    new.sort_by_key(|of| (of.range.start, std::cmp::Reverse(of.range.end)));
    let mut end = 0;
    let mut at = 0;
    found.retain_mut(|of| {
        at += 1;
        if at <= first {
            return true;
        }
        let is_apart = of.range.start >= end;
        // What overlaps the end of another begins there.
        of.range.start = of.range.start.max(end);
        end = end.max(of.range.end);
        is_apart || of.range.start < of.range.end
    });
    // What stands between two quotations of a paragraph may be quoted, and what looks like their
    // ends marks inside of it.
    found.dedup_by(|next, before| {
        let between = text.get(before.range.end..next.range.start).unwrap_or_default();
        let is_one = [&*next, before].iter().all(|of| of.kind == Kind::Sentences)
            && !between.contains("\n\n");
        if is_one {
            before.range.end = next.range.end;
        }
        is_one
    });
}

fn of_marks(text: &str, part: Range<usize>, marks: &[char], found: &mut Vec<Material>) {
    let Some(of) = text.get(part.clone()) else { return };
    let is_double = marks == DOUBLE;
    // The marks that are open in this paragraph, and one that an earlier one left open.
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut pending = None;
    let (mut paragraph, mut before) = (part.start, None);
    let mut chars = of.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let at = part.start + at;
        let is_blank_line = c == '\n' && before.is_none_or(|before| before == '\n');
        if is_blank_line && at > part.start {
            if let Some((start, mark)) = open.first().copied() {
                if is_double {
                    push(text, start..at, mark, found);
                }
                // An apostrophe may look like a mark.
                let line = text.get(part.start..start).unwrap_or_default();
                let is_begin = line.trim_end_matches([' ', '\t']).ends_with(['\n', ':', '：']);
                if is_double || is_begin || line.trim().is_empty() {
                    pending = pending.or(Some((start, mark)));
                }
            }
            open.clear();
            paragraph = at;
        }
        let mut end = at + c.len_utf8();
        while let Some((_, next)) = chars.next_if(|(_, next)| *next == c && is_mark(c)) {
            end += next.len_utf8();
        }
        // Two single ones are a double one: ``so''.
        let is_run = end - at > c.len_utf8();
        let is_here = if is_double { DOUBLE.contains(&c) || is_run } else { marks.contains(&c) };
        if !is_here || is_run && !is_double {
            // Blanks at the end of a line do not part it from the next.
            if !(matches!(c, ' ' | '\t' | '\r') && before == Some('\n')) {
                before = Some(c);
            }
            continue;
        }
        let after = chars.peek().map(|(_, next)| *next);
        let is_line_end = after.is_none_or(|c| c == '\n' || c == '\r');
        match side(c, before, after) {
            // `("")` is empty.
            Side::Opens if is_run && after == Some(')') => {}
            Side::Opens => open.push((at, c)),
            Side::Closes => match (open.pop(), pending) {
                (Some((start, mark)), _) if open.is_empty() => push(text, start..end, mark, found),
                (None, Some((start, mark))) if is_line_end => {
                    push(text, start..end, mark, found);
                    pending = None;
                }
                // What closes and was not opened may be the end of a quotation.
                (None, _) if is_double && !before.is_some_and(|c| c.is_ascii_digit()) => {
                    push(text, paragraph..end, c, found);
                }
                _ => {}
            },
            Side::Neither => {}
        }
        before = Some(c);
    }
    if let Some((start, mark)) = open.first().copied().filter(|_| is_double) {
        push(text, start..part.end, mark, found);
    }
}

/// A quotation of more bytes is one of sentences.
const LONGEST_NAME: usize = 1_000;

/// What a quotation is, by whether it holds a sentence. O(1).
fn kind_of(quotation: &str) -> Kind {
    if quotation.len() > LONGEST_NAME {
        return Kind::Sentences;
    }
    let inside = quotation.trim_matches(is_mark).trim();
    let ends = |c: char| matches!(c, '.' | '!' | '?' | '。' | '！' | '？');
    let is_sentence = inside.ends_with(ends)
        || inside.contains(['\n', '。', '！', '？'])
        || [". ", "! ", "? "].iter().any(|end| inside.contains(end));
    if is_sentence { Kind::Sentences } else { Kind::Name }
}

fn push(text: &str, range: Range<usize>, mark: char, found: &mut Vec<Material>) {
    let kind = kind_of(text.get(range.clone()).unwrap_or_default());
    let close = match mark {
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        '‹' => '›',
        '「' => '」',
        '『' => '』',
        '„' => '“',
        other => other,
    };
    found.push(Material { range, kind, open: mark.into(), close: close.into(), label: None });
}
