//! What instructions have done already of what the tables and lists declare: told by what stands in
//! the checkpoint before them and after them.

use super::{
    blocks::Block,
    delta::{Change, Part},
    document::Document,
    names::normal,
    perform::Performing,
};
use crate::Result;

/// The lines, from zero, at which a document says what a change says was before, and what comes.
#[derive(Debug, Default)]
pub(super) struct Presence {
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
}

/// A checkpoint before the instructions of a delta and after them.
#[derive(Clone, Copy)]
pub(super) struct AppliedInstructions<'d> {
    pub(super) base: &'d Document,
    pub(super) told: &'d Document,
}

impl AppliedInstructions<'_> {
    /// Whether the instructions have made a change. Otherwise it is still to be made.
    ///
    /// # Errors
    /// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where they have put what comes
    /// beside what was before, which stands there still.
    pub(super) fn has_change(
        self,
        at: &Performing<'_>,
        change: &Change,
        presence: impl Fn(&Document) -> Presence,
    ) -> Result<bool> {
        let (old, new) = (presence(self.base), presence(self.told));
        let section = |document: &Document, line: usize| {
            let section = document.sections().get(document.section_at(line)?)?;
            Some(normal(&section.title))
        };
        for line in &new.before {
            let place = section(self.told, *line);
            let count = |document: &Document, lines: &[usize]| {
                lines.iter().filter(|line| section(document, **line) == place).count()
            };
            if count(self.told, &new.after) > count(self.base, &old.after) {
                let expected = format!("{:?} in the place of {:?}", change.after, change.before);
                let found = "an instruction that adds it and leaves what was before";
                return Err(at.unmet(expected, found));
            }
        }
        Ok(new.before.is_empty() && !new.after.is_empty())
    }

    /// Whether the instructions have taken an entry of Removed away. Otherwise it is there as it
    /// was. `old` and `new` are the sections in which it is looked for before and after.
    ///
    /// # Errors
    /// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where there was no such entry, and
    /// where the instructions have changed which entries are called so.
    pub(super) fn has_removal(
        self,
        at: &Performing<'_>,
        part: &Part,
        entry: &[String],
        (old, new): (Option<&str>, Option<&str>),
    ) -> Result<bool> {
        let text = entry.first().map(String::as_str).unwrap_or_default();
        let before = at.entries(self.base, text, old)?;
        if before.is_empty() {
            at.wanted(self.base, text, old)?;
        }
        if let (Some(label), None) = (old, new) {
            // The section is gone: its entries went with it, or stand under another name.
            let everywhere = at.entries(self.base, text, None)?.len();
            if at.entries(self.told, text, None)?.len() < everywhere {
                return Ok(true);
            }
            return Err(at.refused(format!("there is no section {label:?}")));
        }
        let after = at.entries(self.told, text, new)?;
        if after.is_empty() {
            let fits = |block: &&Block| at.expect_cells(self.base, part, entry, block).is_ok();
            if !before.iter().any(fits) {
                at.wanted_row(self.base, part, entry, old)?;
            }
            return Ok(true);
        }
        let said = |document: &Document, blocks: &[&Block]| -> Vec<String> {
            blocks.iter().map(|block| document.text_of(block).trim().to_owned()).collect()
        };
        if said(self.base, &before) == said(self.told, &after) {
            return Ok(false);
        }
        let left = at.wanted_row(self.told, part, entry, new)?;
        at.wanted_row(self.base, part, entry, old)?;
        let left = self.told.text_of(left);
        let found = format!("{text:?}, which after the instructions is {:?}", left.trim());
        Err(at.unmet("the whole text of the entry that goes", found))
    }
}
