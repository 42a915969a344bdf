//! What rows of Modified do: a section, an entry in one, or a field changes from one text to another.

use super::{
    additions::item_mark,
    delta::{Change, mark_width},
    document::{Document, Section},
    edit::Edit,
    names::normal,
    perform::{Performing, column_of},
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
        if document.front_matter().is_some_and(|front| front.field(first.trim()).is_some())
            && let Some(edit) = document.set_field(first.trim(), &change.after)
        {
            return document.edited(vec![edit]);
        }
        let section = self.section(document, first);
        let edit = match (section, rest) {
            (Ok(section), []) => self.modify_section(document, section, change)?,
            (Ok(_), [row]) => self.modify_entry(document, Some(first), row, change)?,
            (Ok(_), [row, column, ..]) => {
                let block = self.wanted(document, row, Some(first))?;
                let at = column_of(document, block, column);
                let is_as_before = |at: &usize| {
                    let cell = block.kind.row().and_then(|cells| cells.get(*at));
                    cell.is_some_and(|cell| normal(cell) == normal(&change.before))
                };
                at.filter(is_as_before)
                    .and_then(|at| document.set_cell(block, at, &change.after))
                    .ok_or_else(|| {
                    self.refused(format!(
                        "expected {column:?} of {row:?} to be {:?}",
                        change.before
                    ))
                })?
            }
            (Err(_), []) => self.modify_entry(document, None, first, change)?,
            (Err(error), _) => return Err(error),
        };
        document.edited(vec![edit])
    }

    fn modify_section(
        &self,
        document: &Document,
        section: &Section,
        change: &Change,
    ) -> Result<Edit> {
        let body = document.body_of(section);
        if flat(&body) == flat(&change.before) || normal(&body) == normal(&change.before) {
            let line = format!("{}{}", item_mark(document, section), change.after);
            let lines = if change.after.is_empty() { Vec::new() } else { vec![line] };
            return Ok(document.replace_body(section, lines));
        }
        self.replace_text(document, &change.before, &change.after, Some(&section.title)).map_err(
            |_| {
                self.refused(format!(
                    "expected {:?} to be or to have once {:?}",
                    section.title, change.before
                ))
            },
        )
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
        if change.before.is_empty() || line.matches(change.before.as_str()).count() != 1 {
            let expected = &change.before;
            return Err(self.refused(format!(
                "expected {entry:?} to have {expected:?} once, found {line:?} at line {} of the \
                 checkpoint",
                index + 1
            )));
        }
        let line = line.replacen(&change.before, &change.after, 1);
        Ok(Edit::replace(index..index + 1, vec![line]))
    }
}

/// A text on one line, without the marks of items.
fn flat(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim();
        line.get(mark_width(line)..).unwrap_or_default()
    });
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    normal(&words.join(" "))
}
