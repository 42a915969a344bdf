//! Findings with the line that they are about.

use std::{
    io::{self, Write},
    path::Path,
};

use afterimage::checkpoint::{Diagnostic, Document, Error, ErrorKind, Severity};
use anstyle::{AnsiColor, Style};

use crate::{
    failure::Stop,
    output::{Message, Paint},
    style::DIM,
    text::{last_columns, printable, truncated, width},
};

/// What is shown of a finding.
pub(super) struct DiagnosticView<'a> {
    pub(super) path: &'a Path,
    pub(super) document: &'a Document,
    pub(super) paint: Paint,
    /// The columns that a line may take.
    pub(super) columns: usize,
}

impl DiagnosticView<'_> {
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
        writeln!(
            out,
            "{blank}{dim}-->{dim:#} {}:{line}:{column}",
            printable(&self.path.display().to_string())
        )?;
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
    if error.place().line.is_none() || error.kind() != ErrorKind::Instruction {
        return error.in_file(path).into();
    }
    refusals(path, document, &[error]);
    Stop::Reported
}

/// Reports why something cannot be applied, each reason with its line of the delta.
pub(super) fn refusals(path: &Path, document: &Document, errors: &[Error]) {
    let mut block = Message::new();
    let shown = DiagnosticView { path, document, paint: block.paint, columns: 100 };
    for error in errors {
        // Writing to memory cannot fail.
        let _ = shown.write(&mut block, &Diagnostic::refused(error, document));
    }
    block.send();
}
