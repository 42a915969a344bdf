//! Rows of tables in Markdown.

use std::ops::Range;

/// Where the cells of a row stand in it, without the white space around them.
///
/// A `|` behind a backslash is part of a cell, inside of code too, as GitHub reads it.
pub(super) fn cell_ranges(row: &str) -> Vec<Range<usize>> {
    let first = row.len() - row.trim_start().len();
    let first = first + usize::from(row.trim_start().starts_with('|'));
    let mut cells = Vec::new();
    let mut start = first;
    let mut is_escaped = false;
    for (at, c) in row.char_indices().filter(|(at, _)| *at >= first) {
        if c == '|' && !is_escaped {
            cells.push(trimmed(row, start..at));
            start = at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    let last = trimmed(row, start..row.len());
    if !last.is_empty() || cells.is_empty() {
        cells.push(last);
    }
    cells
}

fn trimmed(row: &str, range: Range<usize>) -> Range<usize> {
    let text = row.get(range.clone()).unwrap_or_default();
    let start = range.start + text.len() - text.trim_start().len();
    start..start + text.trim().len()
}

/// The row with another text in one of its cells; everything else stays byte for byte.
pub(super) fn with_cell(row: &str, column: usize, text: &str) -> Option<String> {
    let range = cell_ranges(row).get(column)?.clone();
    let (before, after) = (row.get(..range.start)?, row.get(range.end..)?);
    Some(format!("{before}{}{after}", cell(text)))
}

/// A cell's text as it reads: `\|` is `|`.
fn unescaped(cell: &str) -> String {
    cell.replace("\\|", "|")
}

/// The texts of a row's cells: `\|` is `|`.
pub(super) fn cells(row: &str) -> Vec<String> {
    let text = |range: Range<usize>| unescaped(row.get(range).unwrap_or_default());
    cell_ranges(row).into_iter().map(text).collect()
}

/// A text as a cell: on one line, with its pipes escaped.
pub(super) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut cell = String::with_capacity(text.len());
    let mut is_escaped = false;
    for c in words.join(" ").chars() {
        if c == '|' {
            // A backslash before the pipe would escape the one that escapes it.
            cell.push_str(if is_escaped { " \\" } else { "\\" });
        }
        is_escaped = c == '\\' && !is_escaped;
        cell.push(c);
    }
    if is_escaped {
        cell.push(' ');
    }
    cell
}

/// A row of such cells. O(text).
pub fn row<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut row = String::from("|");
    for text in texts {
        row.push(' ');
        row.push_str(&cell(text.as_ref()));
        row.push_str(" |");
    }
    row
}

/// The two lines that a table begins with. O(titles).
pub fn head<T: AsRef<str>>(titles: &[T]) -> [String; 2] {
    [row(titles), format!("|{}", "---|".repeat(titles.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_at_pipes_that_are_not_escaped() {
        assert_eq!(cells("| a | `b \\| c` | |"), ["a", "`b | c`", ""]);
        assert_eq!(cells("a|b"), ["a", "b"]);
        assert_eq!(cells("|"), [""]);
        assert_eq!(cells("| a \\\\| b |"), ["a \\\\", "b"]);
    }

    #[test]
    fn a_cell_is_changed_and_nothing_around_it() {
        assert_eq!(with_cell("|a |  b|c", 1, "x|y").as_deref(), Some("|a |  x\\|y|c"));
        assert_eq!(with_cell("| a |", 1, "x"), None);
    }

    #[test]
    fn cells_are_read_as_they_were_written() {
        for texts in [["a|b", "`x | y`"], ["", "ünï"], ["a\\", "b"], ["*", "c \\| d"]] {
            let read = cells(&row(texts));
            assert_eq!(read.len(), 2, "{texts:?}");
        }
        assert_eq!(cells(&row(["a|b", "c\nd"])), ["a|b", "c d"]);
    }
}
