//! What rows of Modified do: a section, an entry in one, or a field changes from one text to
//! another.

use std::ops::Range;

use super::{
    additions::{expect_whole, mark_of},
    delta::{Change, mark_width},
    document::{Document, Section},
    edit::Edit,
    lookup::{column_of, entry, section},
    names::normal,
    plan::{Scope, is_absent},
};
use crate::{Error, Result};

/// The fields of a checkpoint's header that the format names.
const FIELDS: [&str; 5] = ["checkpoint", "created", "anchor", "parent", "last_delta"];

/// The edit of a modification: of a whole section, or of what `Section`, `Section / entry`,
/// `Section / row / Column`, an entry or a field of the header says.
pub(super) fn modify(document: &Document, change: &Change, scope: Scope) -> Result<Edit> {
    expect_whole(&change.before, change.line)?;
    expect_whole(&change.after, change.line)?;
    let line = change.line;
    if scope != Scope::Text {
        return whole_section(document, section(document, &change.item, line)?, change, scope);
    }
    let path: Vec<&str> = change.item.split(" / ").map(str::trim).collect();
    match path.as_slice() {
        [name] => {
            if let Some(edit) = field(document, name, change)? {
                return Ok(edit);
            }
            if document.named(name).next().is_some() {
                return whole_section(document, section(document, name, line)?, change, scope);
            }
            let block = entry(document, name, None, line)?;
            replace_once(document, block.lines.start..block.lines.start + 1, change)
        }
        [name, row] => {
            let block = entry(document, row, Some(section(document, name, line)?), line)?;
            replace_once(document, block.lines.start..block.lines.start + 1, change)
        }
        [name, row, column] => {
            let block = entry(document, row, Some(section(document, name, line)?), line)?;
            let at = column_of(document, block, column);
            let cell = at.and_then(|at| Some((at, block.kind.row()?.get(at)?)));
            cell.filter(|(_, cell)| normal(cell) == normal(&change.before))
                .and_then(|(at, _)| document.set_cell(block, at, &change.after))
                .ok_or_else(|| {
                    let expected = format!("{column:?} of {row:?} to be {:?}", change.before);
                    Error::missing(line, expected)
                })
        }
        _ => Err(Error::unmet(line, "`Section / row / Column`", format_args!("{:?}", change.item))),
    }
}

/// A field of the header that has the value before; a new one where it says that there was none.
fn field(document: &Document, key: &str, change: &Change) -> Result<Option<Edit>> {
    let Some(front) = document.front_matter() else { return Ok(None) };
    let was_absent = is_absent(&change.before);
    match front.field(key) {
        None if FIELDS.contains(&key) && was_absent => {}
        None => return Ok(None),
        Some(field) if normal(&field.value) == normal(&change.before) => {}
        Some(field) if field.value.is_empty() && was_absent => {}
        Some(field) => {
            let expected = format!("`{key}` to be {:?}", change.before);
            let found = format!("{:?} in the front matter", field.value);
            return Err(Error::unmet(change.line, expected, found));
        }
    }
    Ok(document.set_field(key, &change.after))
}

fn whole_section(
    document: &Document,
    section: &Section,
    change: &Change,
    scope: Scope,
) -> Result<Edit> {
    let is_body = scope == Scope::Text;
    let said = if is_body { document.body_of(section) } else { document.content_of(section) };
    let is_all = flat(&said) == flat(&change.before) || normal(&said) == normal(&change.before);
    if is_all || scope == Scope::AnySection {
        let first = document.blocks_of(section).first();
        let mark = first.and_then(|block| mark_of(document, block)).unwrap_or_default();
        let lines = match change.after.as_str() {
            "" => Vec::new(),
            after => vec![format!("{mark}{after}")],
        };
        return Ok(if is_body {
            document.replace_body(section, lines)
        } else {
            document.replace_content(section, lines)
        });
    }
    if is_body {
        return replace_once(document, section.body..section.lines.end, change);
    }
    let title = &section.title;
    let expected = format!("all of {title:?} in Before or in Removed: it is replaced as a whole");
    let before = flat(&change.before);
    let lost = said.lines().find(|line| !before.contains(&flat(line))).unwrap_or_default();
    Err(Error::unmet(change.line, expected, format_args!("{lost:?}")))
}

/// Puts the text after a change in the place of the one before, which stands in some lines once.
fn replace_once(document: &Document, lines: Range<usize>, change: &Change) -> Result<Edit> {
    let Change { item, before, after, line } = change;
    let expected =
        || Error::missing(*line, format_args!("{item:?} to be or to have once {before:?}"));
    let at = |index| words_at(document.lines.get(index), before).map(move |at| (index, at));
    let mut found = lines.flat_map(at);
    let (Some((index, at)), None) = (found.next(), found.next()) else { return Err(expected()) };
    let old = document.lines.get(index);
    let ends = old.get(..at).zip(old.get(at + before.len()..));
    let (start, rest) = ends.ok_or_else(expected)?;
    let new = format!("{start}{after}{rest}");
    let text = new.trim();
    if text.get(mark_width(text)..).unwrap_or_default().is_empty() {
        let expected = "the text in After, or the entry in Removed";
        return Err(Error::unmet(*line, expected, "nothing in After"));
    }
    Ok(Edit::replace(index..index + 1, vec![new]))
}

/// Where a text stands in a line as words: not as a part of a longer one.
fn words_at<'t>(line: &'t str, text: &'t str) -> impl Iterator<Item = usize> + 't {
    // Scripts without blanks between their words have no borders that could be told.
    let is_of_word = |c: char| (c.is_alphanumeric() && c < '\u{2e80}') || c == '_';
    let parts = move |before: Option<char>, after: Option<char>| {
        !before.is_some_and(is_of_word) || !after.is_some_and(is_of_word)
    };
    let is_whole = move |at: &usize| {
        let before = line.get(..*at).and_then(|before| before.chars().next_back());
        let after = line.get(at + text.len()..).and_then(|after| after.chars().next());
        parts(before, text.chars().next()) && parts(text.chars().next_back(), after)
    };
    let found = line.match_indices(text).map(|(at, _)| at);
    found.filter(move |at| !text.is_empty() && is_whole(at))
}

/// A text on one line, without the marks of items.
pub(super) fn flat(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim();
        line.get(mark_width(line)..).unwrap_or_default()
    });
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    normal(&words.join(" "))
}
