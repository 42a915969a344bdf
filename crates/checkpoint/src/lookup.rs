//! Where a checkpoint has what a delta names: sections, entries, cells.

use super::{
    blocks::{Block, BlockKind},
    delta::{Part, item_text, nested_at},
    document::{Document, Section},
    modified::flat,
    names::{is_status, normal},
};
use crate::{Error, Result};

/// The one section of that name. `line` is the line of the delta that asks for it.
pub(super) fn section<'d>(document: &'d Document, name: &str, line: usize) -> Result<&'d Section> {
    let mut found = document.named(name);
    let message = match (found.next(), found.next()) {
        (Some(section), None) => return Ok(section),
        (Some(first), Some(second)) => {
            let (one, other) = (first.line(), second.line());
            format!("the checkpoint has two sections {name:?}: at line {one} and at line {other}")
        }
        (None, _) => {
            let titles = document.sections().iter().filter(|section| section.level > 0);
            let titles: Vec<&str> = titles.map(|section| section.title.as_str()).collect();
            format!("the checkpoint has no section {name:?}; it has {}", titles.join(", "))
        }
    };
    Err(Error::refused(line, message))
}

/// The one entry that says `text`, in a section or anywhere.
pub(super) fn entry<'d>(
    document: &'d Document,
    text: &str,
    place: Option<&Section>,
    line: usize,
) -> Result<&'d Block> {
    let wanted = normal(text);
    let blocks = place.map_or(document.blocks(), |section| document.blocks_of(section));
    let mut found = blocks.iter().filter(|block| is_called(document, block, &wanted));
    let message = match (found.next(), found.next(), place) {
        (Some(block), None, _) => return Ok(block),
        (Some(first), Some(second), _) => twice(text, first, second),
        (None, _, Some(section)) => format!("{:?} has no entry {text:?}", section.title),
        (None, _, None) => format!("the checkpoint has no entry {text:?}"),
    };
    Err(Error::refused(line, message))
}

pub(super) fn twice(text: &str, first: &Block, second: &Block) -> String {
    let (one, other) = (first.line(), second.line());
    format!("more than one entry is {text:?}: at line {one} and at line {other}")
}

/// The one entry that an entry of Removed names: its first cell says which, and what else it says
/// must be as in the checkpoint.
pub(super) fn removed_entry<'d>(
    document: &'d Document,
    part: &Part,
    cells: &[String],
    place: Option<&Section>,
    line: usize,
) -> Result<&'d Block> {
    let text = cells.first().map(String::as_str).unwrap_or_default();
    let block = entry(document, text, place, line)?;
    let columns = part.columns.as_deref().unwrap_or_default();
    for (column, cell) in columns.iter().zip(cells).skip(1) {
        let at = column_of(document, block, column);
        let found = at.and_then(|at| block.kind.row()?.get(at));
        if let Some(found) = found.filter(|found| normal(found) != normal(cell)) {
            let expected = format!("{column:?} of {text:?} to be {cell:?}");
            let found = format!("{found:?} at line {} of the checkpoint", block.line());
            return Err(Error::unmet(line, expected, found));
        }
    }
    // An item goes only where all that stands below it is named too.
    let item = document.text_of(block);
    let below = match block.kind {
        BlockKind::ListItem { .. } => nested_at(&item).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let said: Vec<String> = text.lines().map(flat).collect();
    let is_lost =
        |(_, line): &(usize, &str)| !line.trim().is_empty() && !said.contains(&flat(line));
    if let Some((at, text)) = item.lines().enumerate().skip(below).find(is_lost) {
        let found = format!("{:?} at line {} of the checkpoint", text.trim(), block.line() + at);
        let expected = "the entry in Removed with all that stands below it";
        return Err(Error::unmet(line, expected, found));
    }
    Ok(block)
}

/// Whether a block is an entry of this name: a cell, the text, or what stands before its mark.
fn is_called(document: &Document, block: &Block, wanted: &str) -> bool {
    match &block.kind {
        BlockKind::TableRow { .. } => {
            has_cell(document, block, wanted) || normal(document.text_of(block).trim()) == wanted
        }
        BlockKind::Heading { .. } | BlockKind::TableHead { .. } => false,
        BlockKind::ListItem { .. } => {
            let item = item_text(&document.text_of(block));
            normal(&item) == wanted || normal(key_of(&item)) == wanted
        }
        _ => normal(&document.text_of(block)) == wanted,
    }
}

/// Whether a row has a cell that says this; its state is no name, since other rows share it.
pub(super) fn has_cell(document: &Document, row: &Block, wanted: &str) -> bool {
    let titles = document.titles_over(row);
    let is_named = |(at, cell): (usize, &String)| {
        !titles.get(at).is_some_and(|title| is_status(title)) && normal(cell) == wanted
    };
    let cells = row.kind.row().unwrap_or_default();
    !wanted.is_empty() && cells.iter().enumerate().any(is_named)
}

/// The column of a row under this title.
pub(super) fn column_of(document: &Document, row: &Block, title: &str) -> Option<usize> {
    document.titles_over(row).iter().position(|cell| normal(cell) == normal(title))
}

/// What an item is about: what stands before the first colon, arrow or dash.
pub(super) fn key_of(item: &str) -> &str {
    let first = item.split('\n').next().unwrap_or_default();
    let cut = [": ", " → ", " -> ", " — ", " – ", " - "].iter().filter_map(|mark| first.find(mark));
    let key = cut.min().and_then(|at| first.get(..at)).unwrap_or(first);
    // A bold key with its colon inside.
    key.trim().trim_end_matches(':')
}
