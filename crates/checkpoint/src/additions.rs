//! What comes to a section, in the form of what is there: rows under its titles, or items.

use super::{
    blocks::{Block, BlockKind},
    delta::{item_text, mark_width},
    document::{Document, Section},
    edit::Edit,
    lookup::key_of,
    names::{MergeRule, SectionKind, is_status, normal},
    plan::Addition,
    table,
};
use crate::{Error, Result};

/// Adds entries to the end of a section. `line` is the line of the delta that says so.
pub(super) fn append(
    document: &Document,
    place: &Section,
    addition: &Addition,
    line: usize,
) -> Result<Edit> {
    let Addition { part, state, .. } = addition;
    let titles = document.blocks_of(place).iter().rev().find_map(|block| block.kind.titles());
    let is_row = |entry: &Vec<String>| entry.concat().trim_start().starts_with('|');
    // Rows that are written out are under the titles of where they go.
    let written = titles.filter(|_| part.columns.is_none() && part.entries.iter().all(is_row));
    let entries: Vec<Vec<String>> = match written {
        Some(_) => part.entries.iter().map(|entry| table::cells(entry.concat().trim())).collect(),
        None => part.entries.clone(),
    };
    let columns = written.or(part.columns.as_deref());
    for entry in &entries {
        entry.iter().try_for_each(|text| expect_whole(text, line))?;
        expect_new(document, place, columns, entry, line)?;
    }
    match (columns, titles) {
        (Some(columns), Some(titles)) => {
            let row = |entry: &Vec<String>| row_under(titles, columns, entry, addition, line);
            let edit = document.append_rows(place, entries.iter().map(row).collect::<Result<_>>()?);
            edit.ok_or_else(|| Error::refused(line, format!("{:?} has no table", place.title)))
        }
        (Some(columns), None) if state.is_none() => {
            let rows = entries.iter().map(table::row);
            let lines = table::head(columns).into_iter().chain(rows).collect();
            Ok(document.append_block(place, lines))
        }
        (Some(columns), None) => Err(no_state(columns, line)),
        (None, _) => append_items(document, place, addition, line),
    }
}

/// Adds texts as items of the list that a section ends with, or of a new one.
fn append_items(
    document: &Document,
    place: &Section,
    Addition { part, state, .. }: &Addition,
    line: usize,
) -> Result<Edit> {
    if let Some(columns) = place.kind().and_then(SectionKind::columns) {
        let expected = format!("a row of a table for {:?}: {}", place.title, columns.join(", "));
        let found = part.entries.first().map(|entry| entry.join(" ")).unwrap_or_default();
        return Err(Error::unmet(line, expected, format_args!("the text {found:?}")));
    }
    let item = |(at, entry): (usize, &Vec<String>)| {
        let mark = next_mark(document, place, at);
        let text = entry.join(" ").replace('\n', &format!("\n{}", " ".repeat(mark.len())));
        let state = state.as_ref().map(|state| format!(" → {state}")).unwrap_or_default();
        format!("{mark}{text}{state}")
    };
    let items: Vec<String> = part.entries.iter().enumerate().map(item).collect();
    Ok(document.append_items(place, &items))
}

/// Refuses an entry that a section has already: one that says the same, but for what happened
/// again, and a row about the same file or reference.
fn expect_new(
    document: &Document,
    place: &Section,
    columns: Option<&[String]>,
    entry: &[String],
    line: usize,
) -> Result<()> {
    let rule = place.kind().map(SectionKind::merge_rule);
    let key_at = |titles: &[String]| {
        titles.iter().position(|title| normal(title) == "reference").unwrap_or(0)
    };
    let key = match columns {
        Some(columns) => entry.get(key_at(columns)).map(String::as_str),
        None => entry.first().map(|first| key_of(first)),
    };
    let key = key.map(normal).filter(|key| !key.is_empty());
    let is_about = |block: &Block| {
        let cell = block.kind.row().and_then(|row| row.get(key_at(document.titles_over(block))));
        key.is_some() && cell.map(|cell| normal(cell)) == key
    };
    let is_there = |block: &&Block| {
        rule != Some(MergeRule::Append) && says(document, block, entry)
            || rule == Some(MergeRule::Update) && is_about(block)
    };
    let Some(there) = document.blocks_of(place).iter().find(is_there) else { return Ok(()) };
    let title = &place.title;
    let expected =
        format!("what {title:?} does not have yet, or a row of Modified for what it has");
    let text = document.line(there.line()).trim();
    let found = format!("{text:?} at line {} of the checkpoint", there.line());
    Err(Error::unmet(line, expected, found))
}

/// Whether a block says an entry: all cells of a row, or the text.
fn says(document: &Document, block: &Block, entry: &[String]) -> bool {
    let is = |text: &str| matches!(entry, [only] if normal(only) == normal(text));
    match &block.kind {
        BlockKind::TableRow { cells, .. } => {
            entry.iter().all(|wanted| cells.iter().any(|cell| normal(cell) == normal(wanted)))
        }
        BlockKind::ListItem { .. } => is(&item_text(&document.text_of(block))),
        _ => is(&document.text_of(block)),
    }
}

/// A row under other titles, by their names. Its state is what it says itself, else what the
/// instruction or the label of the part says.
fn row_under(
    titles: &[String],
    columns: &[String],
    entry: &[String],
    Addition { part, state, .. }: &Addition,
    line: usize,
) -> Result<String> {
    if entry.len() > columns.len() {
        let expected = format!("{} cells under {}", columns.len(), columns.join(", "));
        return Err(Error::unmet(line, expected, entry.len()));
    }
    let mut cells = vec![String::new(); titles.len()];
    for (column, value) in columns.iter().zip(entry).filter(|(_, value)| !value.is_empty()) {
        let at = titles.iter().position(|title| is_same_column(column, title));
        match at.and_then(|at| cells.get_mut(at)) {
            Some(cell) if cell.is_empty() => cell.clone_from(value),
            _ => {
                let expected = format!("one of the columns {}", titles.join(", "));
                return Err(Error::unmet(line, expected, format_args!("{column:?}")));
            }
        }
    }
    let cell = titles.iter().zip(&mut cells).find(|(title, _)| is_status(title));
    match (cell, state) {
        (Some((_, cell)), Some(state)) if cell.is_empty() || cell == state => {
            cell.clone_from(state);
        }
        (Some((_, cell)), Some(state)) => {
            let found = format!("{cell:?} in the row and `as {state}`");
            return Err(Error::unmet(line, "one state", found));
        }
        (Some((_, cell)), None) if cell.is_empty() => {
            state_of(part.label.as_deref().unwrap_or_default()).clone_into(cell);
        }
        (None, Some(_)) => return Err(no_state(titles, line)),
        (_, None) => {}
    }
    Ok(table::row(cells))
}

fn no_state(titles: &[String], line: usize) -> Error {
    Error::unmet(line, "a column Status for the state behind `as`", titles.join(", "))
}

/// Refuses a text that was cut short.
pub(super) fn expect_whole(text: &str, line: usize) -> Result<()> {
    if text.trim_end().ends_with('…') {
        return Err(Error::unmet(line, "the whole text", format_args!("its beginning {text:?}")));
    }
    Ok(())
}

/// The mark of the item that comes `after` so many new ones at the end of a section.
fn next_mark(document: &Document, section: &Section, after: usize) -> String {
    let mark = document.blocks_of(section).last().and_then(|block| mark_of(document, block));
    let mark = mark.unwrap_or_else(|| "- ".to_owned());
    let blanks = mark.len() - mark.trim_start().len();
    let digits = mark.trim().trim_end_matches(['.', ')']);
    let Ok(number) = digits.parse::<u64>() else { return mark };
    let (before, sign) = (" ".repeat(blanks), mark.get(blanks + digits.len()..));
    let number = number.saturating_add(1 + after as u64);
    format!("{before}{number}{}", sign.unwrap_or(". "))
}

/// The mark of an item with the blanks around it; `None` for what is no item.
pub(super) fn mark_of(document: &Document, block: &Block) -> Option<String> {
    let BlockKind::ListItem { .. } = block.kind else { return None };
    let line = document.lines.get(block.lines.start);
    let item = line.trim_start();
    let end = line.len() - item.len() + mark_width(item);
    let mark = line.get(..end).filter(|mark| !mark.trim().is_empty())?;
    Some(format!("{} ", mark.trim_end()))
}

/// The state of what a part adds, where its label says one.
fn state_of(label: &str) -> &'static str {
    let label = normal(label);
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    match () {
        () if has(&["delet", "remov"]) => "deleted",
        () if has(&["modif", "chang", "updat"]) => "modified",
        () if has(&["creat", "new", "add"]) => "created",
        () => "",
    }
}

/// Whether two titles name the same column: the format itself calls the columns of files by more
/// than one name.
fn is_same_column(one: &str, other: &str) -> bool {
    let kind = |title: &str| match normal(title).as_str() {
        "action" => "status".to_owned(),
        "description" | "purpose" | "change" => "key change".to_owned(),
        _ if is_status(title) => "status".to_owned(),
        other => other.to_owned(),
    };
    kind(one) == kind(other)
}
