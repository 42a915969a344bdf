//! What instructions add: entries in the form of where they go.

use super::{
    blocks::{Block, BlockKind},
    contents::{Meaning, ResolvedContent},
    declared::{Claim, says},
    delta::{Change, Part, item_text, mark_width},
    document::{Document, Section},
    edit::{Edit, lines_of},
    grammar::Content,
    modified::{flat, is_all},
    names::{MergeRule, SectionKind, is_status, normal},
    perform::{Performing, is_called, key_of, nested_at},
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
        let Meaning { content, claims } = self.meant(document, content, section)?;
        let place = self.section(document, section)?;
        self.expect_first(&claims, &place.title)?;
        match content {
            ResolvedContent::Lines(lines) if state.is_none() => {
                Ok(append_lines(document, place, &lines))
            }
            ResolvedContent::Lines(_) => {
                Err(self.refused("state each entry's state in the lines below, without \"as\""))
            }
            ResolvedContent::Parts(parts) => self.append_parts(document, place, &parts, state),
            ResolvedContent::Text(text) if text.is_empty() => Err(self.refused(
                "the instruction has no content: write it behind a colon, or in the lines below",
            )),
            ResolvedContent::Text(text) => self.append_words(document, place, &text, state),
        }
    }

    /// Adds parts one behind the other, in the form of what is there.
    fn append_parts(
        &self,
        document: &Document,
        place: &Section,
        parts: &[Part],
        state: Option<&str>,
    ) -> Result<Edit> {
        parts.iter().try_for_each(|part| self.expect_new(document, place, part))?;
        let mut edits = parts.iter().map(|part| self.append_part(document, place, part, state));
        let mut first = edits.next().unwrap_or_else(|| Err(self.missing("entries")))?;
        for edit in edits {
            let edit = edit?;
            if edit.at != first.at {
                return Err(self.unmet("entries of one form", "a table and a list"));
            }
            first.lines.extend(edit.lines);
        }
        Ok(first)
    }

    /// Refuses entries of Added that a section has already: those that say the same, but for what
    /// happened again, and rows about the same file or reference.
    pub(super) fn expect_new(
        &self,
        document: &Document,
        place: &Section,
        part: &Part,
    ) -> Result<()> {
        let rule = place.kind().map(SectionKind::merge_rule);
        let key_at = |titles: &[String]| {
            titles.iter().position(|title| normal(title) == "reference").unwrap_or(0)
        };
        for entry in &part.entries {
            let key = match &part.columns {
                Some(columns) => entry.get(key_at(columns)).map_or("", String::as_str),
                None => entry.first().map_or("", |first| key_of(first)),
            };
            let is_about = |block: &Block| {
                let BlockKind::TableRow { cells, head } = &block.kind else { return false };
                let head = document.blocks().get(*head).map(|head| &head.kind);
                let Some(BlockKind::TableHead { cells: titles }) = head else { return false };
                let cell = cells.get(key_at(titles));
                !key.is_empty() && cell.is_some_and(|cell| normal(cell) == normal(key))
            };
            let is_there = |block: &&Block| {
                rule != Some(MergeRule::Append) && says(document, block, entry)
                    || rule == Some(MergeRule::Update) && is_about(block)
            };
            if let Some(there) = document.blocks_of(place).iter().find(is_there) {
                let text = document.text_of(there);
                let text = text.trim().lines().next().unwrap_or_default();
                let found = format!("{text:?} at line {} of the checkpoint", there.line());
                let expected = format!(
                    "what {:?} does not have yet, or a row of Modified for what it has",
                    place.title
                );
                return Err(self.unmet(expected, found));
            }
        }
        Ok(())
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
            let row = self.row_of_text(&titles, text, state, true)?;
            return document.append_rows(place, vec![row]).ok_or_else(|| self.refused("no table"));
        }
        if text.starts_with('|') && state.is_some() {
            return Err(self.unmet("the state in the row", "`as`"));
        }
        Ok(match state {
            Some(state) => append_text(document, place, &format!("{text} → {state}")),
            None => append_text(document, place, text),
        })
    }

    /// Adds the entries of a part to a section, in the form of what is there; each with a state,
    /// where the instruction says one.
    pub(super) fn append_part(
        &self,
        document: &Document,
        place: &Section,
        part: &Part,
        state: Option<&str>,
    ) -> Result<Edit> {
        let titles = match &part.columns {
            Some(_) => last_titles(document, place),
            None => titles_at_end(document, place),
        };
        if let Some(titles) = titles {
            let rows = part.entries.iter().map(|entry| self.row_for(&titles, part, entry, state));
            let rows = rows.collect::<Result<Vec<String>>>()?;
            return document.append_rows(place, rows).ok_or_else(|| self.refused("no table"));
        }
        if let Some(columns) = &part.columns {
            if let Some(state) = state {
                return Err(self.no_state(state, columns));
            }
            let titles: Vec<&str> = columns.iter().map(String::as_str).collect();
            let rows = part.entries.iter().map(table::row);
            let lines = table::head(&titles).into_iter().chain(rows).collect();
            return Ok(document.append_block(place, lines));
        }
        let item = |(at, entry): (usize, &Vec<String>)| {
            let mark = next_mark(document, place, at);
            let text = entry.join(" ").replace('\n', &format!("\n{}", " ".repeat(mark.len())));
            match state {
                Some(state) => format!("{mark}{text} → {state}"),
                None => format!("{mark}{text}"),
            }
        };
        let items: Vec<String> = part.entries.iter().enumerate().map(item).collect();
        for item in &items {
            self.whole(item)?;
        }
        Ok(document.append_items(place, &items))
    }

    /// Adds a block of the checkpoint to another section, in the form of what is there.
    pub(super) fn append_block(
        &self,
        document: &Document,
        place: &Section,
        block: &Block,
    ) -> Result<Edit> {
        let text = document.text_of(block);
        let (columns, entry) = match &block.kind {
            BlockKind::TableRow { cells, head } => {
                let head = document.blocks().get(*head).map(|head| &head.kind);
                let columns = match head {
                    Some(BlockKind::TableHead { cells }) => cells.clone(),
                    _ => Vec::new(),
                };
                let titles = last_titles(document, place);
                let titles = titles
                    .ok_or_else(|| self.refused(format!("{:?} has no table", place.title)))?;
                if titles == columns {
                    let rows = document.append_rows(place, vec![text]);
                    return rows.ok_or_else(|| self.refused("no table"));
                }
                (Some(columns), cells.clone())
            }
            BlockKind::ListItem { .. } => (None, vec![item_text(&text)]),
            _ => return self.append_words(document, place, &text, None),
        };
        let part = Part { columns, entries: vec![entry], ..Part::default() };
        self.append_part(document, place, &part, None)
    }

    /// A row under other titles: by their names, the state by the instruction or the part's label.
    fn row_for(
        &self,
        titles: &[String],
        part: &Part,
        entry: &[String],
        state: Option<&str>,
    ) -> Result<String> {
        for cell in entry {
            self.whole(cell)?;
        }
        let columns = part.columns.as_deref().unwrap_or_default();
        let of_label = state_of(part.label.as_deref().unwrap_or_default());
        if columns.is_empty() {
            let [entry] = entry else { return Err(self.missing("one text by entry")) };
            if entry.trim_start().starts_with('|') && state.is_none() {
                return Ok(entry.trim().to_owned());
            }
            return self.row_of_text(titles, entry, state.or(of_label), state.is_some());
        }
        if entry.len() > columns.len() {
            let expected = format!("{} cells under {}", columns.len(), columns.join(", "));
            return Err(self.unmet(expected, entry.len()));
        }
        let mut left: Vec<(&str, &String)> =
            columns.iter().map(String::as_str).zip(entry).collect();
        let mut cells = vec![String::new(); titles.len()];
        for (title, cell) in titles.iter().zip(&mut cells) {
            if let Some(at) = left.iter().position(|(column, _)| is_same_column(column, title)) {
                cell.clone_from(left.remove(at).1);
            }
        }
        self.set_state(titles, &mut cells, of_label, state)?;
        left.retain(|(_, value)| !value.is_empty());
        let mut open: Vec<&mut String> = cells
            .iter_mut()
            .zip(titles)
            .filter(|(cell, title)| cell.is_empty() && !is_status(title))
            .map(|(cell, _)| cell)
            .collect();
        match (left.as_slice(), open.as_mut_slice()) {
            ([], _) => {}
            ([(_, value)], [cell]) => (*cell).clone_from(value),
            ([(column, _), ..], _) => {
                let expected = format!("one of the columns {}", titles.join(", "));
                return Err(self.unmet(expected, format_args!("{column:?}")));
            }
        }
        Ok(table::row(cells))
    }

    /// Sets the state of a new row: as the instruction says, else as the label does where the row
    /// has none.
    fn set_state(
        &self,
        titles: &[String],
        cells: &mut [String],
        of_label: Option<&str>,
        state: Option<&str>,
    ) -> Result<()> {
        let cell = titles.iter().zip(cells).find(|(title, _)| is_status(title));
        match (cell, state) {
            (Some((_, cell)), Some(state)) if cell.is_empty() || cell == state => {
                state.clone_into(cell);
            }
            (Some((_, cell)), Some(state)) => {
                let found = format!("{cell:?} in the row and `as {state}`");
                return Err(self.unmet("one state", found));
            }
            (Some((_, cell)), None) if cell.is_empty() => {
                of_label.unwrap_or_default().clone_into(cell);
            }
            (Some(_) | None, None) => {}
            (None, Some(state)) => return Err(self.no_state(state, titles)),
        }
        Ok(())
    }

    fn no_state(&self, state: &str, titles: &[String]) -> crate::Error {
        self.unmet(format_args!("a column Status for `as {state}`"), titles.join(", "))
    }

    /// A row of a text: what it is about in the column by which rows are known, what it says in the
    /// last. Where the instruction itself says the state, there must be a column for it.
    fn row_of_text(
        &self,
        titles: &[String],
        text: &str,
        state: Option<&str>,
        is_asked: bool,
    ) -> Result<String> {
        if let Some(at) = nested_at(text) {
            let below = text.lines().nth(at).unwrap_or_default();
            return Err(
                self.unmet("a text that fits into one row", format_args!("{below:?} below it"))
            );
        }
        let key = key_of(text);
        let start = text.find(key).map_or(0, |at| at + key.len());
        let rest = text.get(start..).unwrap_or_default();
        let rest = rest.trim_start_matches([':', '*', '→', '>', '—', '–', '-', ' ']).trim_end();
        let mut cells = vec![String::new(); titles.len()];
        let at = titles.iter().position(|title| normal(title) == "reference").unwrap_or(0);
        if let Some(cell) = cells.get_mut(at) {
            key.clone_into(cell);
        }
        let asked = state.filter(|_| is_asked);
        self.set_state(titles, &mut cells, state, asked)?;
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
            return Err(self.unmet("the whole text", format_args!("its beginning {text:?}")));
        }
        Ok(())
    }

    /// What a section becomes: what stands below the instruction, what was quoted, the row of
    /// Modified or the entries of Added that the words mean.
    pub(super) fn replacement(
        &self,
        document: &Document,
        section: &Section,
        content: &Content,
    ) -> Result<Vec<String>> {
        let with_mark = |text: &str| match text {
            "" => Vec::new(),
            text => vec![format!("{}{text}", item_mark(document, section))],
        };
        if content.block.is_empty()
            && !content.is_literal
            && let Some((index, row)) = self.row_about(section)?
        {
            self.declared.take(Claim::Modified(index));
            self.whole(&row.before)?;
            self.whole(&row.after)?;
            self.expect_all(document, section, row)?;
            return Ok(with_mark(&row.after));
        }
        match self.meant(document, content, &section.title)?.content {
            ResolvedContent::Lines(lines) => Ok(lines_of(&lines)),
            ResolvedContent::Text(text) => Ok(with_mark(&text)),
            ResolvedContent::Parts(parts) => {
                if section.kind().map(SectionKind::merge_rule) != Some(MergeRule::Replace) {
                    self.expect_declared(document, section, &parts)?;
                }
                let mut lines = Vec::new();
                for part in &parts {
                    if !lines.is_empty() {
                        lines.push(String::new());
                    }
                    lines.extend(self.lines_for(document, section, part)?);
                }
                Ok(lines)
            }
        }
    }

    /// Refuses a row of Modified that does not say all that a section has, where it says what the
    /// section becomes: the rest would be lost.
    fn expect_all(&self, document: &Document, section: &Section, row: &Change) -> Result<()> {
        if is_all(&document.content_of(section), &row.before) {
            return Ok(());
        }
        self.modify(document, row)?;
        let before = flat(&row.before);
        let is_missing = |block: &&Block| !before.contains(&flat(&document.text_of(block)));
        let missing = document.content_blocks(section).find(is_missing);
        let (line, text) = missing.map_or((section.line(), section.title.clone()), |block| {
            (block.line(), document.text_of(block))
        });
        let title = &section.title;
        let expected = format!(
            "all of {title:?} in Before, and all that is new in After, or an instruction that names \
             the entry"
        );
        let text = text.trim().lines().next().unwrap_or_default();
        let found = format!("{text:?} at line {line} of the checkpoint, which Before does not say");
        Err(self.unmet(expected, found))
    }

    /// Refuses entries of Added in the place of what Removed does not name.
    fn expect_declared(
        &self,
        document: &Document,
        section: &Section,
        parts: &[Part],
    ) -> Result<()> {
        let is_named = |block: &Block| {
            let removed = self.declared.removed.iter().flat_map(|part| &part.entries);
            let mut removed = removed.filter_map(|entry| entry.first());
            let mut added = parts.iter().flat_map(|part| &part.entries);
            removed.any(|text| is_called(document, block, &normal(text)))
                || added.any(|entry| says(document, block, entry))
        };
        let is_lost = |block: &&Block| {
            !matches!(block.kind, BlockKind::TableHead { .. } | BlockKind::Rule) && !is_named(block)
        };
        let Some(lost) = document.content_blocks(section).find(is_lost) else { return Ok(()) };
        let title = &section.title;
        let expected = format!(
            "all that goes from {title:?} in Removed, or the new text below the instruction"
        );
        let text = document.text_of(lost);
        let text = text.trim().lines().next().unwrap_or_default();
        Err(self.unmet(expected, format!("{text:?} at line {} of the checkpoint", lost.line())))
    }

    /// The entries of a part as what a section holds: rows under its own titles, or items.
    fn lines_for(
        &self,
        document: &Document,
        section: &Section,
        part: &Part,
    ) -> Result<Vec<String>> {
        let Some(columns) = &part.columns else {
            let item = |entry: &Vec<String>| {
                lines_of(&format!("- {}", entry.join(" ").replace('\n', "\n  ")))
            };
            return Ok(part.entries.iter().flat_map(item).collect());
        };
        let titles = last_titles(document, section).unwrap_or_else(|| columns.clone());
        let rows = part.entries.iter().map(|entry| self.row_for(&titles, part, entry, None));
        let rows = rows.collect::<Result<Vec<String>>>()?;
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        Ok(table::head(&titles).into_iter().chain(rows).collect())
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

/// The state of what a part adds, where its label says one.
fn state_of(label: &str) -> Option<&'static str> {
    let label = normal(label);
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    match () {
        () if has(&["delet", "remov"]) => Some("deleted"),
        () if has(&["modif", "chang", "updat", "edit"]) => Some("modified"),
        () if has(&["renam", "mov"]) => Some("renamed"),
        () if has(&["creat", "new", "add"]) => Some("created"),
        () => None,
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
