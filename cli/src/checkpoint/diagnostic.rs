//! Findings with the line that they are about.

use std::{
    io::{self, Write},
    path::Path,
};

use afterimage::{
    Error, ErrorKind,
    checkpoint::{Diagnostic, Document, Severity},
};
use anstyle::{AnsiColor, Style};

use crate::{
    failure::Stop,
    output::Paint,
    style::DIM,
    text::{last_columns, printable, truncated, width},
};

/// What is shown of a finding.
pub(super) struct Shown<'a> {
    pub(super) path: &'a Path,
    pub(super) document: &'a Document,
    pub(super) paint: Paint,
    /// The columns that a line may take.
    pub(super) columns: usize,
}

impl Shown<'_> {
    /// Writes a finding: what is wrong, where, the line, and below it what was expected.
    pub(super) fn write(&self, out: &mut impl Write, found: &Diagnostic) -> io::Result<()> {
        let (name, color) = match found.severity {
            Severity::Error => ("error", AnsiColor::Red),
            Severity::Warning => ("warning", AnsiColor::Yellow),
        };
        let mark = self.paint.style(color.on_default().bold());
        let bold = self.paint.style(Style::new().bold());
        let message = printable(&found.message);
        writeln!(out, "{mark}{name}[{}]{mark:#}{bold}: {message}{bold:#}", found.code)?;
        self.source(out, found.line, found.column, found.length, &found.expected, color)
    }

    /// Writes a line with a part of it underlined.
    fn source(
        &self,
        out: &mut impl Write,
        line: usize,
        column: usize,
        length: usize,
        expected: &str,
        color: AnsiColor,
    ) -> io::Result<()> {
        let dim = self.paint.style(DIM);
        let mark = self.paint.style(color.on_default().bold());
        let number = line.to_string();
        let blank = " ".repeat(number.len());
        writeln!(out, "{blank}{dim}-->{dim:#} {}:{line}:{column}", self.path.display())?;
        let text = self.document.line(line);
        let room = self.columns.saturating_sub(number.len() + 3).max(20);
        let (before, rest) = text.split_at_checked(column.saturating_sub(1)).unwrap_or((text, ""));
        let (meant, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let before = last_columns(&printable(before), room / 2);
        let meant = printable(meant);
        let meant = truncated(&meant, room - width(&before));
        let after = printable(after);
        let after = truncated(&after, room - width(&before) - width(&meant));
        writeln!(out, "{dim}{number} |{dim:#} {before}{meant}{after}")?;
        let under = "^".repeat(width(&meant).max(1));
        let indent = " ".repeat(width(&before));
        let expected = match expected {
            "" => String::new(),
            expected => format!(" expected {}", printable(expected)),
        };
        writeln!(out, "{blank}{dim} |{dim:#} {indent}{mark}{under}{expected}{mark:#}\n")
    }
}

/// Reports why something cannot be applied, with the line of the delta where there is one.
pub(super) fn refusal(path: &Path, document: &Document, error: Error) -> Stop {
    let Some(line) = error.place().line.filter(|_| error.kind() == ErrorKind::Instruction) else {
        return error.in_file(path).into();
    };
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let text = document.line(line);
    let blanks = text.len() - text.trim_start().len();
    let message = error.message();
    let (found, expected) = match message.strip_prefix("expected ") {
        Some(rest) => match rest.rsplit_once(", found ") {
            Some((expected, found)) => (format!("found {found}"), expected),
            None => ("it cannot be applied".to_owned(), rest),
        },
        None => (message.to_owned(), ""),
    };
    let found = Diagnostic {
        severity: Severity::Error,
        code: "refused",
        line,
        column: blanks + 1,
        length: text.trim().len(),
        message: found,
        expected: expected.to_owned(),
    };
    let shown = Shown { path, document, paint: Paint::stderr(), columns: 100 };
    let mut block = Vec::new();
    // Writing to memory cannot fail, and without a standard error there is nobody to tell.
    let _ = shown.write(&mut block, &found);
    let _ = io::stderr().write_all(&block);
    Stop::Reported
}
