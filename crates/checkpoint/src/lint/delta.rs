use std::collections::BTreeMap;

use afterimage_json::error::Replacement;

use super::{Diagnostic, Findings, Severity};
use crate::{
    apply::exact,
    blocks::BlockKind,
    delta::CheckpointDelta,
    document::{Document, Section},
    grammar::{EXPECTED, Order},
    instructions::WrongInstruction,
    names::{SectionKind, normal},
    unread::{Fault, Role, meant},
};

/// Every finding of a delta, in the order of the text. O(document).
pub(super) fn lint(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Findings::of(document);
    let delta = CheckpointDelta::from_document(document.clone());
    let (of_header, unread): (Vec<Fault>, Vec<Fault>) =
        delta.unread().into_iter().partition(|(code, _)| OF_HEADER.contains(code));
    of_header.into_iter().for_each(|fault| findings.fault(fault));
    header(&mut findings);
    if findings.has("front-matter-place") {
        // Everything else would be said of another document.
        return findings.finish();
    }
    let instructions = delta.instructions();
    sections(&mut findings, &delta);
    findings.rows();
    tables(&mut findings, &delta);
    self::instructions(&mut findings, &delta);
    add_unread(&mut findings, unread, instructions.is_some_and(|found| found.are_exact()));
    decisions(&mut findings, &delta);
    findings.finish()
}

/// The codes of what of a header nothing reads.
const OF_HEADER: [&str; 4] =
    ["front-matter-open", "front-matter-place", "front-matter-field", "duplicate-field"];

fn header(findings: &mut Findings<'_>) {
    if !findings.expect_header("`delta`, `created`, `from` and `to`") {
        return;
    }
    let id = findings.required("missing-delta", "delta", "FROM-to-TO");
    if let Some(text) = findings.required("missing-created", "created", "TIME in ISO 8601") {
        let place = findings.value("created");
        findings.time("created-not-a-time", text, place);
    }
    let from = findings.required("missing-from", "from", "ID of the source checkpoint");
    let to = findings.required("missing-to", "to", "ID of the target checkpoint");
    if let (Some(id), Some(from), Some(to)) = (id, from, to) {
        let expected = format!("{from}-to-{to}");
        if id != expected {
            let place = findings.value("delta");
            let message = format!("`{id}` does not name what the delta is from and to");
            findings.error("delta-id", place, message, format!("`{expected}`"));
        }
    }
}

const CHANGES: [&str; 3] = ["added", "modified", "removed"];

fn sections(findings: &mut Findings<'_>, delta: &CheckpointDelta) {
    let document = findings.document;
    let summary = delta.summary();
    match delta.part("summary") {
        None => {
            let place = findings.end();
            let message = "there is no section Summary";
            findings.error("missing-summary", place, message, "`## Summary` with one sentence");
        }
        Some((_, section)) if summary.trim().is_empty() => {
            let place = findings.line(section.line());
            findings.error("missing-summary", place, "the summary is empty", "one sentence");
        }
        Some((_, section)) => {
            let blocks = document.blocks_of(section);
            if let Some(second) = blocks.get(1) {
                let place = findings.line(second.line());
                let message = "the summary is more than a sentence";
                findings.warning("summary-length", place, message, "one sentence");
            }
        }
    }
    let changes = delta.part("changes");
    if changes.is_none() {
        let place = findings.end();
        findings.error("missing-changes", place, "there is no section Changes", "`## Changes`");
    }
    let present: Vec<&Section> =
        CHANGES.iter().filter_map(|name| delta.part(name)).map(|(_, section)| section).collect();
    if present.is_empty() {
        let place =
            changes.map_or_else(|| findings.end(), |(_, section)| findings.line(section.line()));
        findings.error(
            "no-changes",
            place,
            "there is none of Added, Modified and Removed",
            "at least one of `### Added`, `### Modified` and `### Removed`",
        );
    } else if is_empty(delta) {
        let place = present.first().map_or((1, 1, 0), |section| findings.line(section.line()));
        findings.warning("empty-delta", place, "the delta changes nothing", "a change");
    }
    places(findings, changes.map(|(index, _)| index));
}

/// What nothing would read, where no other finding is about it already. Beside exact instructions
/// nothing needs to be read.
fn add_unread(findings: &mut Findings<'_>, unread: Vec<Fault>, is_exact: bool) {
    for fault in unread {
        let line = fault.1.place().line.map_or(1, |line| line as usize);
        let is_known = |other: &Diagnostic| other.line == line && other.severity == Severity::Error;
        if findings.found.iter().any(is_known) || is_exact && fault.0 == "unread" {
            continue;
        }
        findings.fault(fault);
        if let Some(found) = findings.found.last_mut().filter(|_| is_exact) {
            found.severity = Severity::Warning;
        }
    }
}

fn is_empty(delta: &CheckpointDelta) -> bool {
    let has_entries = |parts: Vec<super::super::Part>| {
        // The one word of an empty delta.
        parts.iter().any(|part| part.entries.iter().any(|entry| entry.join("") != "Nothing."))
    };
    !has_entries(delta.added())
        && !has_entries(delta.removed())
        && delta.modified().is_empty()
        && delta.transitions().is_empty()
        && delta
            .instructions()
            .is_none_or(|found| found.first_line().is_none() && found.whole.is_none())
}

/// Where the sections of a delta stand.
fn places(findings: &mut Findings<'_>, changes: Option<usize>) {
    let document = findings.document;
    for section in document.sections().iter().filter(|section| section.level > 0) {
        let (place, title) = (findings.line(section.line()), &section.title);
        match Role::of(section) {
            Role::Entries | Role::Rows if section.parent != changes || changes.is_none() => {
                let message = format!("{title} is not inside of Changes");
                let expected = format!("`### {title}` below `## Changes`");
                findings.error("section-place", place, message, expected);
            }
            Role::Summary | Role::Changes | Role::Instructions if section.level != 2 => {
                let message = format!("{title} is a heading of level {}", section.level);
                findings.warning("section-level", place, message, "level 2");
            }
            Role::Title => {
                let message = format!("a delta has no section {title:?}");
                let expected = meant(&normal(title), section.level);
                findings.warning("unknown-section", place, message, expected);
            }
            _ => {}
        }
    }
}

/// What takes a decision away or changes it, although decisions only grow.
fn decisions(findings: &mut Findings<'_>, delta: &CheckpointDelta) {
    let is_of_them = |name: &str| SectionKind::from_title(name) == Some(SectionKind::Decisions);
    let mut lines = BTreeMap::new();
    for part in delta.removed() {
        let label = part.label.as_deref().unwrap_or_default();
        if is_of_them(label.split(" (").next().unwrap_or_default()) {
            lines.insert(part.line, "decisions are removed");
        }
    }
    for change in delta.modified() {
        if is_of_them(change.item.split(" / ").next().unwrap_or_default()) {
            lines.insert(change.line, "a decision is changed");
        }
    }
    for (line, order) in delta.instructions().iter().flat_map(|found| &found.orders) {
        if matches!(order, Order::Replace { section, .. } if is_of_them(section)) {
            lines.insert(*line, "decisions are taken away");
        }
    }
    for (line, message) in lines {
        let place = findings.line(line);
        let expected = "decisions that only grow: a new one that says which it takes the place of";
        findings.warning("decision-gone", place, message, expected);
    }
}

fn tables(findings: &mut Findings<'_>, delta: &CheckpointDelta) {
    let of = |titles: &[&[&str]], name: &str, findings: &mut Findings<'_>| {
        let Some((_, section)) = delta.part(name) else { return };
        findings.columns(section, titles);
        let says_something = !findings.document.blocks_of(section).is_empty();
        let is_text = |block: &super::super::Block| matches!(block.kind, BlockKind::Paragraph);
        let is_noted = findings.document.blocks_of(section).iter().all(is_text)
            && delta.broken_table(name).is_none();
        if says_something && !is_noted && !findings.has_table(section) {
            let place = findings.line(section.line());
            let names: Vec<&str> =
                titles.iter().filter_map(|names| names.first().copied()).collect();
            findings.error(
                "expected-table",
                place,
                format!("{} has no table", section.title),
                format!("a table with the columns {}", names.join(", ")),
            );
        }
    };
    let subject = &["Section/Field", "Section", "Field"];
    of(&[subject, &["Before"], &["After"]], "modified", findings);
    of(&[&["Item"], &["Before"], &["After"]], "status transitions", findings);
}

fn instructions(findings: &mut Findings<'_>, delta: &CheckpointDelta) {
    let Some((_, section)) = delta.part("merge instructions") else { return };
    let Some(instructions) = delta.instructions() else {
        let place = findings.line(section.line());
        let message = "there are no instructions";
        findings.warning("no-instructions", place, message, format!("a list, each {EXPECTED}"));
        return;
    };
    for WrongInstruction { line, column, length, error } in &instructions.wrong {
        let at = error.place().line.map_or(*line, |line| line as usize);
        let place = if at == *line { (at, column + 1, *length) } else { findings.line(at) };
        let parts = error.expectation();
        let expected = parts.map_or(EXPECTED, |parts| &parts.expected);
        let found = match parts.map(|parts| &parts.instead) {
            Some(Replacement::Found(found)) => found,
            _ => "this instruction",
        };
        findings.error("instruction", place, format!("{found} cannot be carried out"), expected);
    }
    if let Err(error) = exact(&instructions)
        && instructions.wrong.is_empty()
    {
        let line = error.place().line.map_or(section.line(), |line| line as usize);
        let place = findings.line(line);
        findings.error("instruction", place, error.message(), "instructions that fit together");
    }
}
