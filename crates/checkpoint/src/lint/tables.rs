use super::Findings;
use crate::{document::Section, names::normal};

impl Findings<'_> {
    /// Every row of every table: as many cells as its head.
    pub(super) fn rows(&mut self) {
        for block in self.document.blocks() {
            let Some(cells) = block.kind.row() else { continue };
            let titles = self.document.titles_over(block);
            if cells.len() != titles.len() {
                let place = self.line(block.line());
                let message = format!("this row has {}", count(cells.len()));
                let head = titles.join(", ");
                let expected = format!("{}, as the table's head ({head})", count(titles.len()));
                self.error("ragged-row", place, message, expected);
            }
        }
    }

    /// The columns of a section's tables: one of `titles` at each place.
    pub(super) fn columns(&mut self, section: &Section, titles: &[&[&str]]) {
        for head in self.document.blocks_of(section) {
            let Some(cells) = head.kind.titles() else { continue };
            let is_named = |(cell, names): (&String, &&[&str])| {
                names.iter().any(|name| normal(name) == normal(cell))
            };
            if cells.len() != titles.len() || !cells.iter().zip(titles).all(is_named) {
                let place = self.line(head.line());
                let message = format!("the columns of {} are {}", section.title, cells.join(", "));
                self.error("table-columns", place, message, columns_of(titles));
            }
        }
    }

    /// The columns of a section that is to have a table, and whether it has one.
    pub(super) fn table(&mut self, section: &Section, titles: &[&[&str]]) {
        self.columns(section, titles);
        let mut blocks = self.document.blocks_of(section).iter();
        if !blocks.any(|block| block.kind.titles().is_some()) {
            let place = self.line(section.line());
            let message = format!("{} has no table", section.title);
            let expected = format!("a table with {}", columns_of(titles));
            self.warning("expected-table", place, message, expected);
        }
    }
}

fn columns_of(titles: &[&[&str]]) -> String {
    let names: Vec<String> = titles.iter().map(|names| names.join(" or ")).collect();
    format!("the columns {}", names.join(", "))
}

fn count(cells: usize) -> String {
    format!("{cells} {}", if cells == 1 { "cell" } else { "cells" })
}
