//! Tables whose rows can be written as they come: the columns' widths are set beforehand.

use std::io::Write;

use anstyle::Style;

use crate::{
    failure::Outcome,
    output::Output,
    style,
    text::{printable, shortened, truncated, width, wrapped},
};

/// The columns that the last cell of a row has, however narrow the terminal is.
const LEAST: usize = 8;
/// How far in rows begin.
const INDENT: usize = 1;
/// How far in a cell stands that is below its row.
const BELOW: usize = 7;

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
}

/// A cell: its text and how it looks.
pub(crate) type Cell = (String, Style);

/// A cell in the plain style.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Style::new())
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect() }
    }

    /// The columns that the last cell of a row may take.
    pub(crate) fn rest(&self, out: &Output) -> usize {
        Self::rest_of(&self.columns, out)
    }

    /// The same of a table with these columns.
    pub(crate) fn rest_of(columns: &[Column], out: &Output) -> usize {
        let before = columns.len().saturating_sub(1);
        let taken: usize = columns.iter().take(before).map(|column| column.width + 2).sum();
        out.width.saturating_sub(INDENT + taken).max(LEAST)
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
        let end = cells.len().saturating_sub(1);
        // What a number that is too long takes, the last cell lacks.
        let mut rest = out.width.saturating_sub(INDENT);
        write!(out, "{:INDENT$}", "")?;
        for (index, (column, (text, style))) in self.columns.iter().zip(cells).enumerate() {
            let is_rest = index == last && !column.is_number;
            let columns = if is_rest { rest.max(LEAST) } else { column.width };
            let text = printable(&text);
            // A number that is too long pushes the row aside rather than losing digits.
            let text = match column.is_number {
                true => text,
                // Who reads a pipe has room for all of it.
                false if !out.is_bounded => text,
                false if index == last => truncated(&text, columns).into_owned().into(),
                false => shortened(&text, columns).into_owned().into(),
            };
            let blanks = if is_rest { 0 } else { columns.saturating_sub(width(&text)) };
            rest = rest.saturating_sub(width(&text) + blanks + 2);
            let (before, after) = match (index == end, column.is_number) {
                (true, false) => (0, 0),
                (true, true) => (blanks, 0),
                (false, true) => (blanks, 2),
                (false, false) => (0, blanks + 2),
            };
            let style = out.paint.style(style);
            write!(out, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
        }
        Ok(writeln!(out)?)
    }

    /// Writes a row whose last cell is never cut: where it has no room it stands below the others.
    pub(crate) fn row_in_full(&self, out: &mut Output, mut cells: Vec<Cell>) -> Outcome {
        let rest = self.rest(out);
        let is_long = |cell: &Cell| out.is_bounded && width(&printable(&cell.0)) > rest;
        let Some((text, style)) = cells.pop_if(|cell| is_long(cell)) else {
            return self.row(out, cells);
        };
        self.row(out, cells)?;
        let style = out.paint.style(style);
        for line in wrapped(&printable(&text), out.width.saturating_sub(BELOW).max(LEAST)) {
            writeln!(out, "{:BELOW$}{style}{line}{style:#}", "")?;
        }
        Ok(())
    }
}
