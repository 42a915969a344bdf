use super::Findings;
use crate::{
    blocks::{Block, BlockKind},
    document::Section,
    names::normal,
    table::cell_ranges,
};

impl Findings<'_> {
    /// Every row of every table: as many cells as its head.
    pub(super) fn rows(&mut self) {
        for block in self.document.blocks() {
            let BlockKind::TableRow { cells, head } = &block.kind else { continue };
            let Some(BlockKind::TableHead { cells: titles }) =
                self.document.blocks().get(*head).map(|head| &head.kind)
            else {
                continue;
            };
            if cells.len() != titles.len() {
                let place = self.line(block.line());
                self.error(
                    "ragged-row",
                    place,
                    format!("this row has {}", count(cells.len())),
                    format!("{}, as the table's head ({})", count(titles.len()), titles.join(", ")),
                );
            }
        }
    }

    /// The columns of a section's tables: one of `titles` at each place.
    pub(super) fn columns(&mut self, section: &Section, titles: &[&[&str]]) {
        let heads = self.document.blocks_of(section).iter();
        let heads: Vec<&Block> =
            heads.filter(|block| matches!(block.kind, BlockKind::TableHead { .. })).collect();
        let expected: Vec<&str> =
            titles.iter().filter_map(|names| names.first().copied()).collect();
        let expected = format!("the columns {}", expected.join(", "));
        for head in heads {
            let BlockKind::TableHead { cells } = &head.kind else { continue };
            if cells.len() != titles.len() {
                let place = self.line(head.line());
                let message = format!("the table of {} has {}", section.title, count(cells.len()));
                self.error("table-columns", place, message, expected.clone());
                continue;
            }
            let ranges = cell_ranges(self.document.line(head.line()));
            for ((cell, names), range) in cells.iter().zip(titles).zip(ranges) {
                if !names.iter().any(|name| normal(name) == normal(cell)) {
                    let place = (head.line(), range.start + 1, range.len());
                    let message = format!("`{cell}` is no column of {}", section.title);
                    let names = names.join("` or `");
                    self.error("table-columns", place, message, format!("`{names}`"));
                }
            }
        }
    }

    /// Whether a section has a table.
    pub(super) fn has_table(&self, section: &Section) -> bool {
        let mut blocks = self.document.blocks_of(section).iter();
        blocks.any(|block| matches!(block.kind, BlockKind::TableHead { .. }))
    }
}

fn count(cells: usize) -> String {
    format!("{cells} {}", if cells == 1 { "cell" } else { "cells" })
}
