//! What comes to a section, in the form of what is there: rows under its titles, or items.

use super::{
    blocks::{Block, BlockKind},
    delta::{Part, item_text, mark_width},
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
    for entry in &part.entries {
        entry.iter().try_for_each(|text| expect_whole(text, line))?;
        expect_new(document, place, part, entry, line)?;
    }
    let Some(columns) = &part.columns else {
        return append_items(document, place, addition, line);
    };
    if let Some(state) = state {
        let found = format!("`as {state}` for a row of a table");
        return Err(Error::unmet(line, "the state in the row", found));
    }
    let titles = document.blocks_of(place).iter().rev().find_map(|block| block.kind.titles());
    let row = |entry: &Vec<String>| row_under(titles.unwrap_or(columns), part, entry, line);
    let rows: Vec<String> = part.entries.iter().map(row).collect::<Result<_>>()?;
    Ok(document.append_rows(place, rows.clone()).unwrap_or_else(|| {
        document.append_block(place, table::head(columns).into_iter().chain(rows).collect())
    }))
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
    part: &Part,
    entry: &[String],
    line: usize,
) -> Result<()> {
    let rule = place.kind().map(SectionKind::merge_rule);
    let key_at = |titles: &[String]| {
        titles.iter().position(|title| normal(title) == "reference").unwrap_or(0)
    };
    let key = match &part.columns {
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

/// A row under other titles, by their names. Its state is what it says itself, else what the label
/// of the part says.
fn row_under(titles: &[String], part: &Part, entry: &[String], line: usize) -> Result<String> {
    let columns = part.columns.as_deref().unwrap_or_default();
    let mut cells = vec![String::new(); titles.len()];
    let blank = String::new();
    for (at, value) in entry.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        let column = columns.get(at).unwrap_or(&blank);
        let place = titles.iter().position(|title| is_same_column(column, title));
        match place.and_then(|place| cells.get_mut(place)) {
            Some(cell) if cell.is_empty() => cell.clone_from(value),
            _ => {
                let expected = format!("one of the columns {}", titles.join(", "));
                return Err(Error::unmet(line, expected, format_args!("{column:?}")));
            }
        }
    }
    let cell = titles.iter().zip(&mut cells).find(|(title, _)| is_status(title));
    if let Some((_, cell)) = cell.filter(|(_, cell)| cell.is_empty()) {
        state_of(part.label.as_deref().unwrap_or_default()).clone_into(cell);
    }
    Ok(table::row(cells))
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
