//! What rows of Modified do: a section, an entry in one, or a field changes from one text to another.

use super::{
    additions::item_mark,
    blocks::Block,
    declared::is_nothing,
    delta::{Change, mark_width},
    document::{Document, Section},
    edit::Edit,
    names::normal,
    perform::{FIELDS, Performing, column_of, is_called},
    presence::Presence,
};
use crate::Result;

impl Performing<'_> {
    /// Carries out a row of Modified: a section, or an entry in one, changes from one text to
    /// another.
    pub(super) fn modify(&self, document: &Document, change: &Change) -> Result<Document> {
        self.whole(&change.before)?;
        self.whole(&change.after)?;
        let path: Vec<&str> = change.item.split(" / ").collect();
        let (first, rest) = path.split_first().unwrap_or((&"", &[]));
        if rest.is_empty()
            && let Some(edit) = self.modify_field(document, first.trim(), change)?
        {
            return document.edited(vec![edit]);
        }
        let section = self.section(document, first);
        let edit = match (section, rest) {
            (Ok(section), []) => self.modify_section(document, section, change)?,
            (Ok(_), [row]) => self.modify_entry(document, Some(first), row, change)?,
            (Ok(_), [row, column]) => {
                let block = self.wanted(document, row, Some(first))?;
                let at = column_of(document, block, column);
                let is_as_before = |at: &usize| {
                    let cell = block.kind.row().and_then(|cells| cells.get(*at));
                    cell.is_some_and(|cell| normal(cell) == normal(&change.before))
                };
                at.filter(is_as_before)
                    .and_then(|at| document.set_cell(block, at, &change.after))
                    .ok_or_else(|| {
                    self.missing(format_args!("{column:?} of {row:?} to be {:?}", change.before))
                })?
            }
            (_, [_, _, _, ..]) => {
                let found = format!("{:?}", change.item);
                return Err(self.unmet("`Section / row / Column`", found));
            }
            (Err(_), []) => self.modify_entry(document, None, first, change)?,
            (Err(error), _) => return Err(error),
        };
        document.edited(vec![edit])
    }

    /// A field of the header that has the value before; a new one where it says that there was none.
    fn modify_field(
        &self,
        document: &Document,
        key: &str,
        change: &Change,
    ) -> Result<Option<Edit>> {
        let Some(front) = document.front_matter() else { return Ok(None) };
        let is_absent =
            is_nothing(&change.before) || matches!(change.before.trim(), "-" | "–" | "—");
        match front.field(key) {
            None if FIELDS.contains(&key) && is_absent => {}
            None => return Ok(None),
            Some(field) if normal(&field.value) == normal(&change.before) => {}
            Some(field) if field.value.is_empty() && is_absent => {}
            Some(field) => {
                let found = format!("{:?} in the front matter", field.value);
                return Err(self.unmet(format_args!("`{key}` to be {:?}", change.before), found));
            }
        }
        Ok(document.set_field(key, &change.after))
    }

    fn modify_section(
        &self,
        document: &Document,
        section: &Section,
        change: &Change,
    ) -> Result<Edit> {
        if is_all(&document.body_of(section), &change.before) {
            let line = format!("{}{}", item_mark(document, section), change.after);
            let lines = if change.after.is_empty() { Vec::new() } else { vec![line] };
            return Ok(document.replace_body(section, lines));
        }
        let lines = section.body..section.lines.end;
        let found: Vec<(usize, String)> = lines
            .flat_map(|index| {
                let line = document.lines.get(index);
                words_at(line, &change.before)
                    .into_iter()
                    .filter_map(move |at| Some((index, replaced(line, at, change)?)))
            })
            .collect();
        match found.as_slice() {
            [(index, line)] => {
                self.expect_rest(line)?;
                Ok(Edit::replace(*index..index + 1, vec![line.clone()]))
            }
            _ => Err(self.missing(format_args!(
                "{:?} to be or to have once {:?}",
                section.title, change.before
            ))),
        }
    }

    fn modify_entry(
        &self,
        document: &Document,
        section: Option<&str>,
        entry: &str,
        change: &Change,
    ) -> Result<Edit> {
        let block = self.wanted(document, entry, section)?;
        let index = block.lines.start;
        let line = document.lines.get(index);
        let made = match words_at(line, &change.before).as_slice() {
            [at] => replaced(line, *at, change),
            _ => None,
        };
        let Some(line) = made else {
            let expected = format!("{entry:?} to have {:?} once", change.before);
            let found = format!("{line:?} at line {} of the checkpoint", index + 1);
            return Err(self.unmet(expected, found));
        };
        self.expect_rest(&line)?;
        Ok(Edit::replace(index..index + 1, vec![line]))
    }

    /// Refuses a change that leaves nothing of an entry but its mark.
    fn expect_rest(&self, line: &str) -> Result<()> {
        let line = line.trim();
        match line.get(mark_width(line)..).unwrap_or_default() {
            "" => Err(self.unmet("the text in After, or the entry in Removed", "nothing in After")),
            _ => Ok(()),
        }
    }
}

/// Whether a section says a text and nothing else.
pub(super) fn is_all(body: &str, text: &str) -> bool {
    flat(body) == flat(text) || normal(body) == normal(text)
}

/// Where a document says what a row of Modified says was before, and what comes.
pub(super) fn presence(document: &Document, change: &Change) -> Presence {
    let path: Vec<&str> = change.item.split(" / ").collect();
    let (first, rest) = path.split_first().unwrap_or((&"", &[]));
    let of_texts = |texts: &mut dyn Iterator<Item = (usize, &str)>| {
        let mut found = Presence::default();
        for (line, text) in texts {
            let is = |wanted: &str| normal(text) == normal(wanted);
            found.before.extend(is(&change.before).then_some(line));
            found.after.extend(is(&change.after).then_some(line));
        }
        found
    };
    let field = document.front_matter().and_then(|front| front.field(first.trim()));
    if let (Some(field), []) = (field, rest) {
        return of_texts(&mut std::iter::once((field.line, field.value.as_str())));
    }
    let section = document.named(first).next();
    let inside = section.map_or(document.blocks(), |section| document.blocks_of(section));
    let entries = |name: &str| {
        let name = normal(name);
        inside.iter().filter(move |block| is_called(document, block, &name))
    };
    match (section, rest) {
        (Some(section), []) => {
            let body = document.body_of(section);
            if is_all(&body, &change.before) || is_all(&body, &change.after) {
                let line = |wanted: &str| is_all(&body, wanted).then_some(section.lines.start);
                let before = line(&change.before).into_iter().collect();
                return Presence { before, after: line(&change.after).into_iter().collect() };
            }
            in_lines(document, section.body..section.lines.end, change)
        }
        (_, [row, column]) => {
            let cell = |block: &Block| {
                let at = column_of(document, block, column)?;
                Some((block.lines.start, block.kind.row()?.get(at)?.clone()))
            };
            let cells: Vec<(usize, String)> = entries(row).filter_map(cell).collect();
            of_texts(&mut cells.iter().map(|(line, text)| (*line, text.as_str())))
        }
        (_, [row]) => in_lines(document, entries(row).map(|block| block.lines.start), change),
        (None, []) => in_lines(document, entries(first).map(|block| block.lines.start), change),
        _ => Presence::default(),
    }
}

/// Where lines say as words what was before and what comes. The one inside of the other is the
/// other.
fn in_lines(document: &Document, lines: impl Iterator<Item = usize>, change: &Change) -> Presence {
    let mut found = Presence::default();
    let (before, after) = (&change.before, &change.after);
    for index in lines {
        let line = document.lines.get(index);
        let come = words_at(line, after);
        let is_inside = |at: &usize| {
            let holds = |start: &usize| *start <= *at && at + before.len() <= start + after.len();
            after.len() > before.len() && come.iter().any(holds)
        };
        let old = words_at(line, before).into_iter().filter(|at| !is_inside(at));
        found.before.extend(old.map(|_| index));
        found.after.extend(come.iter().map(|_| index));
    }
    found
}

/// Where a text stands in a line as words: not as a part of a longer one.
fn words_at(line: &str, text: &str) -> Vec<usize> {
    // Scripts without blanks between their words have no borders that could be told.
    let is_of_word = |c: char| (c.is_alphanumeric() && c < '\u{2e80}') || c == '_';
    let parts = |before: Option<char>, after: Option<char>| {
        !before.is_some_and(is_of_word) || !after.is_some_and(is_of_word)
    };
    let is_whole = |at: &usize| {
        let before = line.get(..*at).and_then(|before| before.chars().next_back());
        let after = line.get(at + text.len()..).and_then(|after| after.chars().next());
        parts(before, text.chars().next()) && parts(text.chars().next_back(), after)
    };
    if text.is_empty() {
        return Vec::new();
    }
    line.match_indices(text).map(|(at, _)| at).filter(is_whole).collect()
}

/// A line with the text after a change in the place of the one before.
fn replaced(line: &str, at: usize, change: &Change) -> Option<String> {
    let (before, rest) = (line.get(..at)?, line.get(at + change.before.len()..)?);
    Some(format!("{before}{}{rest}", change.after))
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
