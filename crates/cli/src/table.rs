//! Tables whose rows can be written as they come: the columns' widths are set beforehand.

use std::io::Write;

use anstyle::Style;

use crate::{
    failure::Outcome,
    output::Output,
    style,
    text::{printable, shortened, truncated, width},
};

/// The columns that the last cell of a row has, however narrow the terminal is.
const LEAST: usize = 8;

/// A column: its title and width. The last column takes what is left.
pub(crate) struct Column {
    title: &'static str,
    width: usize,
    is_number: bool,
}

impl Column {
    pub(crate) const fn text(title: &'static str, width: usize) -> Self {
        Self { title, width, is_number: false }
    }

    pub(crate) const fn number(title: &'static str, width: usize) -> Self {
        Self { title, width, is_number: true }
    }
}

pub(crate) struct Table {
    columns: Vec<Column>,
    indent: usize,
}

/// A cell: its text and how it looks.
pub(crate) type Cell = (String, Style);

/// A cell in the plain style.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Style::new())
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), indent: 1 }
    }

    /// The columns that the last cell of a row may take.
    pub(crate) fn rest(&self, out: &Output) -> usize {
        let before = self.columns.len().saturating_sub(1);
        let taken: usize = self.columns.iter().take(before).map(|column| column.width + 2).sum();
        out.width.saturating_sub(self.indent + taken).max(LEAST)
    }

    /// Gives the numbers of these rows the room that they need, so that none is pushed aside.
    pub(crate) fn fitted(mut self, rows: &[Vec<Cell>]) -> Self {
        for row in rows {
            for (column, (text, _)) in self.columns.iter_mut().zip(row) {
                if column.is_number {
                    column.width = column.width.max(width(text));
                }
            }
        }
        self
    }

    pub(crate) fn head(&self, out: &mut Output) -> Outcome {
        let titles = self.columns.iter().map(|column| (column.title.to_owned(), style::HEADING));
        self.row(out, titles.collect())
    }

    pub(crate) fn row(&self, out: &mut Output, cells: Vec<Cell>) -> Outcome {
        let last = self.columns.len().saturating_sub(1);
        // What a number that is too long takes, the last cell lacks.
        let mut rest = out.width.saturating_sub(self.indent);
        write!(out, "{:1$}", "", self.indent)?;
        for (index, (column, (text, style))) in self.columns.iter().zip(cells).enumerate() {
            let columns = if index == last { rest.max(LEAST) } else { column.width };
            let text = printable(&text);
            // A number that is too long pushes the row aside rather than losing digits.
            let text = match column.is_number {
                true => text,
                // Who reads a pipe has room for all of it.
                false if !out.is_bounded => text,
                false if index == last => truncated(&text, columns).into_owned().into(),
                false => shortened(&text, columns).into_owned().into(),
            };
            let blanks = if index == last { 0 } else { columns.saturating_sub(width(&text)) };
            rest = rest.saturating_sub(width(&text) + blanks + 2);
            let (before, after) = match (index == last, column.is_number) {
                (true, _) => (0, 0),
                (false, true) => (blanks, 2),
                (false, false) => (0, blanks + 2),
            };
            let style = out.paint.style(style);
            write!(out, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
        }
        Ok(writeln!(out)?)
    }
}
