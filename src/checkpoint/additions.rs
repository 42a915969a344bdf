//! What instructions add: entries in the form of where they go.

use super::{
    blocks::BlockKind,
    delta::{Part, mark_width},
    document::{Document, Section},
    edit::{Edit, lines_of},
    grammar::Content,
    names::{is_status, normal},
    perform::{Performing, key_of},
    table,
};
use crate::Result;

impl Performing<'_> {
    pub(super) fn append(
        &self,
        document: &Document,
        content: &Content,
        section: &str,
        state: Option<&str>,
    ) -> Result<Edit> {
        let place = self.section(document, section)?;
        if !content.block.is_empty() {
            return Ok(append_lines(document, place, &content.block));
        }
        let part = if content.is_literal { None } else { self.part_about(&content.text) };
        match part {
            Some(part) => self.append_part(document, place, &part),
            None if content.text.is_empty() => Err(self.refused("expected what is to be added")),
            None => self.append_words(document, place, &content.text, state),
        }
    }

    /// Adds a text as what a section is made of: a row, an item or a paragraph.
    fn append_words(
        &self,
        document: &Document,
        place: &Section,
        text: &str,
        state: Option<&str>,
    ) -> Result<Edit> {
        if let Some(titles) = titles_at_end(document, place)
            && !text.starts_with('|')
        {
            let row = self.row_of_text(&titles, text, state)?;
            return document.append_rows(place, vec![row]).ok_or_else(|| self.refused("no table"));
        }
        Ok(match state {
            Some(state) => append_text(document, place, &format!("{text} → {state}")),
            None => append_text(document, place, text),
        })
    }

    /// Adds the entries of a part to a section, in the form of what is there.
    pub(super) fn append_part(
        &self,
        document: &Document,
        place: &Section,
        part: &Part,
    ) -> Result<Edit> {
        let titles = match &part.columns {
            Some(_) => last_titles(document, place),
            None => titles_at_end(document, place),
        };
        if let Some(titles) = titles {
            let rows = part.entries.iter().map(|entry| self.row_for(&titles, part, entry));
            let rows = rows.collect::<Result<Vec<String>>>()?;
            return document.append_rows(place, rows).ok_or_else(|| self.refused("no table"));
        }
        if let Some(columns) = &part.columns {
            let titles: Vec<&str> = columns.iter().map(String::as_str).collect();
            let rows = part.entries.iter().map(table::row);
            let lines = table::head(&titles).into_iter().chain(rows).collect();
            return Ok(document.append_block(place, lines));
        }
        let item = |(at, entry): (usize, &Vec<String>)| {
            let mark = next_mark(document, place, at);
            let text = entry.join(" ").replace('\n', &format!("\n{}", " ".repeat(mark.len())));
            format!("{mark}{text}")
        };
        let items: Vec<String> = part.entries.iter().enumerate().map(item).collect();
        for item in &items {
            self.whole(item)?;
        }
        Ok(document.append_items(place, &items))
    }

    /// A row under other titles: by their names, the state by the part's label, what is left at
    /// the end.
    fn row_for(&self, titles: &[String], part: &Part, entry: &[String]) -> Result<String> {
        for cell in entry {
            self.whole(cell)?;
        }
        let columns = part.columns.as_deref().unwrap_or_default();
        if columns.is_empty() {
            let [entry] = entry else { return Err(self.refused("expected one text by entry")) };
            if entry.trim_start().starts_with('|') {
                return Ok(entry.trim().to_owned());
            }
            let state = state_of(part.label.as_deref().unwrap_or_default());
            return self.row_of_text(titles, entry, Some(state));
        }
        let mut left: Vec<(&str, &String)> =
            columns.iter().map(String::as_str).chain(std::iter::repeat("")).zip(entry).collect();
        let mut cells = vec![String::new(); titles.len()];
        for (title, cell) in titles.iter().zip(&mut cells) {
            if let Some(at) = left.iter().position(|(column, _)| normal(column) == normal(title)) {
                cell.clone_from(left.remove(at).1);
            } else if is_status(title)
                && !columns.iter().any(|column| is_status(column))
                && columns.len() < titles.len()
            {
                state_of(part.label.as_deref().unwrap_or_default()).clone_into(cell);
            }
        }
        let rest: Vec<&str> = left.iter().map(|(_, value)| value.as_str()).collect();
        if !rest.is_empty() {
            let open = cells.iter_mut().rev().find(|cell| cell.is_empty());
            let Some(open) = open else {
                return Err(self.refused(format!(
                    "the columns {} do not fit the table's {}",
                    columns.join(", "),
                    titles.join(", ")
                )));
            };
            *open = rest.join("; ");
        }
        Ok(table::row(cells))
    }

    /// A row of a text: what it is about in the column by which rows are known, what it says in the
    /// last.
    fn row_of_text(&self, titles: &[String], text: &str, state: Option<&str>) -> Result<String> {
        let key = key_of(text);
        let start = text.find(key).map_or(0, |at| at + key.len());
        let rest = text.get(start..).unwrap_or_default();
        let rest = rest.trim_start_matches([':', '*', '→', '>', '—', '–', '-', ' ']).trim_end();
        let mut cells = vec![String::new(); titles.len()];
        let at = titles.iter().position(|title| normal(title) == "reference").unwrap_or(0);
        for (index, (title, cell)) in titles.iter().zip(&mut cells).enumerate() {
            if index == at {
                key.clone_into(cell);
            } else if is_status(title) {
                state.unwrap_or_default().clone_into(cell);
            }
        }
        if !rest.is_empty() {
            let open = cells.iter_mut().rev().find(|cell| cell.is_empty());
            let titles = || titles.join(", ");
            rest.clone_into(open.ok_or_else(|| {
                self.refused(format!("the text {text:?} does not fit the columns {}", titles()))
            })?);
        }
        Ok(table::row(cells))
    }

    /// Refuses what was cut short.
    pub(super) fn whole(&self, text: &str) -> Result<()> {
        if text.trim_end().ends_with('…') {
            return Err(
                self.refused(format!("expected the whole text, found its beginning {text:?}"))
            );
        }
        Ok(())
    }

    /// The part of Added that the words of a reference name.
    fn part_about(&self, words: &str) -> Option<Part> {
        let wanted: Vec<String> = normal(words).split(' ').map(stem).collect();
        let is_about = |part: &Part| {
            let label = normal(part.label.as_deref().unwrap_or_default());
            let label: Vec<String> = label.split(' ').map(stem).collect();
            wanted.iter().all(|word| label.contains(word))
        };
        let parts = self.delta.added().into_iter();
        parts.filter(|part| !part.entries.is_empty()).find(is_about)
    }

    /// What a section becomes: what stands below the instruction, what was quoted, the part of
    /// Added or the row of Modified that says it, or the words.
    pub(super) fn replacement(
        &self,
        document: &Document,
        section: &Section,
        content: &Content,
    ) -> Vec<String> {
        if !content.block.is_empty() {
            return lines_of(&content.block);
        }
        let row = self.delta.modified().into_iter().find(|change| {
            normal(&change.item) == normal(&section.title)
                && !change.after.trim_end().ends_with('…')
        });
        let text = match row {
            Some(change) if !content.is_literal => change.after,
            _ => match self.part_about(&content.text).filter(|_| !content.is_literal) {
                Some(part) => {
                    let items = part.entries.iter().map(|entry| format!("- {}", entry.join(" ")));
                    return items.collect();
                }
                None => content.text.clone(),
            },
        };
        if text.is_empty() {
            return Vec::new();
        }
        vec![format!("{}{text}", item_mark(document, section))]
    }
}

/// The titles of the last table in a section.
fn last_titles(document: &Document, section: &Section) -> Option<Vec<String>> {
    document.blocks_of(section).iter().rev().find_map(|block| match &block.kind {
        BlockKind::TableHead { cells } => Some(cells.clone()),
        _ => None,
    })
}

/// The titles of the table that a section ends with.
fn titles_at_end(document: &Document, section: &Section) -> Option<Vec<String>> {
    let last = document.blocks_of(section).last()?;
    let is_table = matches!(last.kind, BlockKind::TableRow { .. } | BlockKind::TableHead { .. });
    is_table.then(|| last_titles(document, section)).flatten()
}

/// The mark of the item that comes `after` so many new ones at the end of a section.
fn next_mark(document: &Document, section: &Section, after: usize) -> String {
    let last = document.blocks_of(section).last();
    let Some(item) = last.filter(|block| matches!(block.kind, BlockKind::ListItem { .. })) else {
        return "- ".to_owned();
    };
    let line = document.lines.get(item.lines.start);
    let item = line.trim_start();
    let blanks = line.get(..line.len() - item.len()).unwrap_or_default();
    let mark = item.get(..mark_width(item)).unwrap_or_default().trim_end();
    let digits = mark.trim_end_matches(['.', ')']);
    match digits.parse::<u64>() {
        Ok(number) => {
            let number = number.saturating_add(1 + after as u64);
            format!("{blanks}{number}{} ", mark.get(digits.len()..).unwrap_or_default())
        }
        Err(_) if mark.is_empty() => "- ".to_owned(),
        Err(_) => format!("{blanks}{mark} "),
    }
}

/// The mark that a line in a section begins with: that of its items, where it has some.
pub(super) fn item_mark(document: &Document, section: &Section) -> String {
    let first = document.blocks_of(section).first();
    match first.filter(|block| matches!(block.kind, BlockKind::ListItem { .. })) {
        Some(item) => {
            let line = document.lines.get(item.lines.start);
            line.get(..mark_width(line)).filter(|mark| !mark.is_empty()).unwrap_or("- ").to_owned()
        }
        None => String::new(),
    }
}

/// Appends lines that are Markdown already.
fn append_lines(document: &Document, place: &Section, text: &str) -> Edit {
    let lines = lines_of(text);
    if lines.iter().all(|line| line.trim_start().starts_with('|'))
        && let Some(edit) = document.append_rows(place, lines.clone())
    {
        return edit;
    }
    if lines.first().is_some_and(|line| mark_width(line) > 0) {
        return document.append_items(place, &[text.to_owned()]);
    }
    document.append_block(place, lines)
}

/// Appends a text as what a section is made of: an item, a row that is written out, a paragraph.
fn append_text(document: &Document, place: &Section, text: &str) -> Edit {
    let lines = lines_of(text);
    if text.starts_with('|')
        && let Some(edit) = document.append_rows(place, lines.clone())
    {
        return edit;
    }
    if mark_width(text) > 0 {
        return document.append_items(place, &[text.to_owned()]);
    }
    match document.blocks_of(place).last() {
        Some(last) if !matches!(last.kind, BlockKind::ListItem { .. }) => {
            document.append_block(place, lines)
        }
        _ => document.append_items(place, &[format!("{}{text}", next_mark(document, place, 0))]),
    }
}

/// The state of what a part adds, by its label.
fn state_of(label: &str) -> &'static str {
    let label = normal(label);
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    match () {
        () if has(&["delet", "remov"]) => "deleted",
        () if has(&["modif", "chang", "updat", "edit"]) => "modified",
        () if has(&["renam", "mov"]) => "renamed",
        () => "created",
    }
}

/// A word without its plural.
fn stem(word: &str) -> String {
    word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word).to_owned()
}
