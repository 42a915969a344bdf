//! What a reader made of a sample, as text: one line for each frame, facet and count.

use std::fmt::Write;

use super::{
    Tally, Transcript,
    testing::{origin_of, record_of},
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{ContentForm, Facet, FacetChange, Frame},
};

/// Reads `input` and compares what came of it with `expected`; indentation at the front of all
/// lines of `expected` does not count.
pub(super) fn check(input: &str, expected: &str) {
    let found = outline(input.as_bytes());
    let expected: Vec<_> = expected.lines().filter(|line| !line.trim().is_empty()).collect();
    let indent =
        expected.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let expected: Vec<_> = expected.iter().map(|line| line[indent..].trim_end()).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "\n{found}");
}

/// The format, every session with its frames, and the counts.
pub(super) fn outline(input: &[u8]) -> String {
    let mut transcript = Transcript::new(input).unwrap();
    let mut out = format!("{}\n", transcript.format());
    let (mut tally, mut session) = (Tally::default(), None);
    for record in &mut transcript {
        let record = record.unwrap();
        if session.as_ref() != Some(&record.session) {
            writeln!(out, "# {}", record.session).unwrap();
            session = Some(record.session.clone());
        }
        tally.add(&record.frame);
        frame(&mut out, &record.frame);
    }
    let (Tally { messages, tool_calls, tool_results }, report) = (tally, transcript.report());
    writeln!(
        out,
        "messages {messages}, calls {tool_calls}, results {tool_results}, sessions {}, unknown {}, skipped {:?}",
        report.sessions, report.unknown_records, report.skipped
    )
    .unwrap();
    out
}

fn frame(out: &mut String, frame: &Frame) {
    let imported = frame.imported.as_deref().unwrap();
    let kind = if imported.is_message { "message" } else { "-" };
    write!(out, "{} {kind}", frame.source.as_str()).unwrap();
    for name in frame.uuid.iter().chain(&frame.timestamp) {
        write!(out, " {name}").unwrap();
    }
    // The role of a message shows in its source.
    let mut payload = Object::new();
    payload.put_some("form", imported.form.map(ContentForm::as_str));
    payload.put_some("type", imported.kind.as_deref());
    let said = imported.to_json();
    for key in ["answer", "sessionUsage", "copiedBefore"] {
        payload.put_some(key, said.get(key).cloned());
    }
    payload.extend(imported.members.clone());
    if !payload.is_empty() {
        write!(out, " {}", Value::Object(payload)).unwrap();
    }
    out.push('\n');
    for op in &frame.ops {
        let FacetChange::Add(added) = &op.change else { panic!("{op:?}") };
        facet(out, added, 1);
    }
}

fn facet(out: &mut String, facet: &Facet, depth: usize) {
    write!(out, "{}", "  ".repeat(depth)).unwrap();
    if let Some(call) = facet.call() {
        write!(out, "call {} {}", call.name, call.id.unwrap_or("-")).unwrap();
        if let Some(parameters) = call.parameters {
            write!(out, " {parameters}").unwrap();
        } else if let Some(arguments) = call.arguments {
            write!(out, " {arguments:?}").unwrap();
        }
    } else if facet.facet_type == FacetType::UNKNOWN {
        let reason = facet.attributes.str_at("reason").unwrap_or_default();
        let state = || facet.state.clone().unwrap_or_default().to_string();
        let text = record_of(facet).unwrap_or_else(state);
        write!(out, "unknown ({reason}) {text}").unwrap();
    } else {
        write!(out, "{}", facet.facet_type).unwrap();
        if facet.facet_type == FacetType::RESULT {
            let (tool, id) = (facet.tool_name(), facet.call_id());
            write!(out, " {} {}", tool.unwrap_or("-"), id.unwrap_or("-")).unwrap();
            if let Some(stated) = facet.outcome().stated() {
                write!(out, " {stated}").unwrap();
            }
        }
        write!(out, " {:?}", facet.content).unwrap();
    }
    if let Some(origin) = origin_of(facet) {
        write!(out, " <- {origin}").unwrap();
    }
    out.push('\n');
    for child in &facet.children {
        self::facet(out, child, depth + 1);
    }
}
