//! Compact renderings of what a reader gave, for the unit tests of the formats.

use std::fmt::Write;

use super::{ImportReport, Transcript, TranscriptFormat, Usage};
use crate::{
    id::FacetType,
    json::{self, Object, ObjectExt, Value, object},
    veil::{ContentForm, Facet, FacetChange, PartSource},
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
    if let Some(half) = half_of(facet) {
        let _ = write!(out, " {}", Value::from(half));
    }
    if let Some(origin) = origin_of(facet) {
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
        let is_message = record.frame.imported.as_ref().is_some_and(|of| of.is_message);
        let star = if is_message { "*" } else { "" };
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

/// What is typed of a call or a result.
fn half_of(facet: &Facet) -> Option<Object> {
    let mut half = Object::new();
    if let Some(call) = facet.call() {
        half.put("toolName", call.name);
        half.put_some("toolCallId", call.id);
        half.put_some("arguments", call.arguments);
        half.put_some("parameters", call.parameters.cloned());
    } else if facet.is_result() {
        half.put_some("toolName", facet.tool_name());
        half.put_some("toolCallId", facet.call_id());
        half.put_some("outcome", facet.outcome().stated());
    } else {
        return None;
    }
    Some(half)
}

/// What the source says of a facet: the block by its own names, then what a reader says of it.
pub(super) fn origin_of(facet: &Facet) -> Option<Value> {
    let source = facet.source()?;
    let block = source.to_block();
    let mut origin = match block {
        Some(Value::Object(block)) => block,
        Some(other) => return Some(other),
        None => Object::new(),
    };
    origin.put_some("idFrom", source.id_from.as_deref());
    origin.put_some("field", source.field.as_deref());
    origin.put_some("form", source.form.map(ContentForm::as_str));
    (!origin.is_empty()).then(|| origin.into())
}

fn forget_origin(facet: &mut Facet) {
    facet.part.iter_mut().for_each(|part| part.source = PartSource::default());
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

/// A document of exchanges: address, request, status, response as text.
fn document(exchanges: &[(&str, &str, u64, &str)]) -> String {
    let exchange = |(uri, request, status, response): &(&str, &str, u64, &str)| -> Value {
        object! { "uri": *uri, "request": *request, "status": *status, "response": *response }
            .into()
    };
    Value::from(object! { "interactions": exchanges.iter().map(exchange).collect::<Value>() })
        .to_string()
}

/// As [`check`], of exchanges: address, request, status, response.
#[track_caller]
pub(super) fn check_wire(exchanges: &[(&str, &str, u64, &str)], expected: &str) -> ImportReport {
    check("wire", &document(exchanges), expected)
}

/// What is known of each exchange: model, outcome, failure, usage.
pub(super) fn exchanges(exchanges: &[(&str, &str, u64, &str)]) -> Vec<String> {
    let document = document(exchanges);
    let mut transcript = Transcript::new(document.as_bytes()).unwrap();
    transcript.keep_exchanges();
    transcript.by_ref().for_each(|record| drop(record.unwrap()));
    let said = transcript.take_exchanges().into_iter().map(|exchange| {
        let usage = exchange.usage.as_ref().map_or(Value::Null, Usage::to_json);
        let model = exchange.model.as_deref().unwrap_or("-");
        let failure = exchange.failure.as_deref().unwrap_or("-");
        format!("{} {model} {failure} {usage}", exchange.api)
    });
    said.collect()
}
