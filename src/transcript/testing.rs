//! Compact renderings of what a reader gave, for the unit tests of the formats.

use std::fmt::Write;

use super::{ImportReport, MESSAGE_TOPIC, ORIGIN, Transcript, TranscriptFormat};
use crate::{
    id::FacetType,
    json::{self, Value},
    veil::{Facet, FacetChange},
};

/// The record that a facet of type `unknown` keeps as its JSON text; `None` where it is no JSON.
pub(super) fn record_of(facet: &Facet) -> Option<String> {
    let text = facet.state.as_ref().filter(|_| facet.facet_type == FacetType::UNKNOWN)?.as_str()?;
    json::read(text.as_bytes()).ok().map(|_| text.to_owned())
}

/// One line per facet, children indented: type, text, state, origin.
pub(super) fn facet_lines(facets: &[Facet]) -> String {
    let mut out = String::new();
    facets.iter().for_each(|facet| line(&mut out, facet, ""));
    out
}

fn line(out: &mut String, facet: &Facet, indent: &str) {
    let _ = write!(out, "{indent}{} {}", facet.facet_type, Value::from(facet.content.as_str()));
    if let Some(state) = &facet.state {
        let _ = write!(out, " {}", record_of(facet).unwrap_or_else(|| state.to_string()));
    }
    if let Some(origin) = facet.attributes.get(ORIGIN) {
        let _ = write!(out, " origin {origin}");
    }
    out.push('\n');
    facet.children.iter().for_each(|child| line(out, child, &format!("{indent}  ")));
}

/// What a transcript holds: a heading per frame, with its session, its source and a `*` where it
/// is a message, then its facets without their origins.
pub(super) fn outline(input: &str) -> (TranscriptFormat, String, ImportReport) {
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    let mut out = String::new();
    for record in transcript.by_ref() {
        let record = record.unwrap();
        let topic = record.frame.events.first().and_then(|event| event.str_at("topic"));
        let star = if topic == Some(MESSAGE_TOPIC) { "*" } else { "" };
        let _ = writeln!(out, "{}/{}{star}", record.session, record.frame.source.as_str());
        for op in &record.frame.ops {
            if let FacetChange::Add(facet) = &op.change {
                let mut facet = Facet::clone(facet);
                forget_origin(&mut facet);
                line(&mut out, &facet, "  ");
            }
        }
    }
    (transcript.format(), out, transcript.report().clone())
}

fn forget_origin(facet: &mut Facet) {
    facet.attributes.shift_remove(ORIGIN);
    facet.children.iter_mut().for_each(forget_origin);
}

/// Asserts the format by name and the [`outline`] of `input`, and gives the report.
#[track_caller]
pub(super) fn check(format: &str, input: &str, expected: &str) -> ImportReport {
    let (found, lines, report) = outline(input);
    assert_eq!(found.name(), format);
    let expected = expected.trim_matches('\n').trim_end();
    assert!(lines.trim_end() == expected, "expected:\n{expected}\n\nfound:\n{lines}");
    report
}
