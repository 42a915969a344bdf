//! Many records that were not understood, as one.

use std::fmt::Write;

use super::draft::FrameDraft;
use crate::{
    id::FacetType,
    json::{ObjectExt, Value},
    veil::{Facet, Source},
};

/// A bundle of so many bytes takes no more.
const BYTES: usize = 64 << 10;

/// Records that follow each other, one a line, as they are written.
#[derive(Debug)]
pub(super) struct Bundle {
    line: u64,
    /// Why the first was not understood.
    reason: String,
    text: String,
    records: u64,
    /// The lines that the records come from, as ranges.
    lines: String,
    range: (u64, u64),
}

impl Bundle {
    /// An empty bundle whose first record comes from `line`.
    pub(super) fn new(line: u64, reason: String) -> Self {
        let (text, records, lines) = Default::default();
        Self { line, reason, text, records, lines, range: (line, line) }
    }

    pub(super) fn push(&mut self, line: u64, text: &str) {
        if self.records > 0 {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.records += 1;
        if line > self.range.1 + 1 || line < self.range.1 {
            self.end_range();
            self.range.0 = line;
        }
        self.range.1 = line;
    }

    fn end_range(&mut self) {
        let comma = if self.lines.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match self.range {
            (first, last) if first == last => write!(self.lines, "{comma}{first}"),
            (first, last) => write!(self.lines, "{comma}{first}-{last}"),
        };
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() + self.lines.len() >= BYTES
    }

    /// The record that keeps them.
    pub(super) fn into_draft(mut self) -> FrameDraft {
        self.end_range();
        let mut facet = Facet::new("", FacetType::UNKNOWN, "");
        facet.attributes.put("reason", self.reason);
        facet.attributes.put("records", self.records);
        facet.attributes.put("lines", self.lines);
        facet.state = Some(Value::String(self.text));
        FrameDraft { facets: vec![facet], ..FrameDraft::record(Source::Environment, self.line) }
    }
}
