use std::collections::BTreeMap;

use afterimage_json::error::Replacement;

use super::{Diagnostic, Findings, Severity};
use crate::{
    blocks::BlockKind,
    declared::meant,
    delta::CheckpointDelta,
    document::{Document, Section},
    grammar::EXPECTED,
    instructions::Instruction,
    misplaced::MisplacedHeader,
    names::{SectionKind, normal},
};

/// Every finding of a delta, in the order of the text. O(document).
pub fn lint_delta(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Findings::of(document);
    header(&mut findings);
    if MisplacedHeader::of(document).is_some() {
        // Everything else would be said of another document.
        return findings.finish();
    }
    let delta = CheckpointDelta::from_document(document.clone());
    sections(&mut findings, &delta);
    findings.rows();
    tables(&mut findings, &delta);
    instructions(&mut findings, &delta);
    unread(&mut findings, &delta);
    decisions(&mut findings, &delta);
    findings.finish()
}

fn header(findings: &mut Findings<'_>) {
    if !findings.header("`delta`, `created`, `from` and `to`") {
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

/// What nothing would read, where no other finding is about it already.
fn unread(findings: &mut Findings<'_>, delta: &CheckpointDelta) {
    if delta.instructions().is_some_and(|instructions| instructions.are_exact()) {
        return;
    }
    for error in delta.unread() {
        let found = Diagnostic { code: "unread", ..Diagnostic::refused(&error, findings.document) };
        let mut known = findings.found.iter_mut().filter(|other| other.line == found.line);
        let known =
            known.find(|other| matches!(other.code, "unknown-section" | "duplicate-section"));
        if let Some(known) = known {
            // What such a section holds would be lost.
            known.severity = Severity::Error;
            continue;
        }
        let is_known =
            |other: &Diagnostic| other.line == found.line && other.severity == found.severity;
        if !findings.found.iter().any(is_known) {
            findings.found.push(found);
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
        && delta.instructions().is_none_or(|found| found.given.is_empty() && found.whole.is_none())
}

/// The sections that a delta may have, where they stand, and what others may have been meant as.
fn places(findings: &mut Findings<'_>, changes: Option<usize>) {
    let document = findings.document;
    let known = ["summary", "changes", "merge instructions"];
    let inside = ["added", "modified", "removed", "status transitions"];
    let mut seen: Vec<String> = Vec::new();
    for section in document.sections().iter().filter(|section| section.level > 0) {
        let name = normal(&section.title);
        let place = findings.line(section.line());
        let (is_top, is_inside) = (known.contains(&name.as_str()), inside.contains(&name.as_str()));
        if (is_top || is_inside) && seen.contains(&name) {
            let message = format!("{} is there twice", section.title);
            findings.warning("duplicate-section", place, message, "one section of each name");
        }
        if is_top || is_inside {
            seen.push(name.clone());
        }
        if is_inside && (section.parent != changes || changes.is_none()) {
            let message = format!("{} is not inside of Changes", section.title);
            let expected = format!("`### {}` below `## Changes`", section.title);
            findings.error("section-place", place, message, expected);
        }
        if is_top && section.level != 2 {
            let message = format!("{} is a heading of level {}", section.title, section.level);
            findings.warning("section-level", place, message, "level 2");
        }
        let is_below = section.parent.is_some_and(|index| {
            let outer = document.sections().get(index).map(|outer| normal(&outer.title));
            outer.is_some_and(|outer| {
                inside.contains(&outer.as_str()) || known.contains(&outer.as_str())
            })
        });
        let is_part = is_below && section.parent != changes;
        if !(is_top || is_inside || is_part) {
            let message = format!("a delta has no section {:?}", section.title);
            findings.warning("unknown-section", place, message, meant(&name, section.level));
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
    for given in delta.instructions().iter().flat_map(|instructions| &instructions.given) {
        let Ok(Instruction::Written(order)) = &given.read else { continue };
        if order.takes_from().is_some_and(is_of_them) {
            lines.insert(given.line, "decisions are taken away");
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
    for given in &instructions.given {
        if let Err(error) = &given.read {
            let line = error.place().line.map_or(given.line, |line| line as usize);
            let place = if line == given.line {
                (line, given.column + 1, given.length)
            } else {
                findings.line(line)
            };
            let parts = error.expectation();
            let expected = parts.map_or(EXPECTED, |parts| &parts.expected);
            let found = match parts.map(|parts| &parts.instead) {
                Some(Replacement::Found(found)) => found,
                _ => "this instruction",
            };
            findings.error(
                "instruction",
                place,
                format!("{found} cannot be carried out"),
                expected,
            );
        }
    }
    if let Err(error) = super::super::apply::exact(delta, &instructions)
        && findings.found.iter().all(|found| found.code != "instruction")
    {
        let line = error.place().line.map_or(section.line(), |line| line as usize);
        let place = findings.line(line);
        findings.error("instruction", place, error.message(), "instructions that fit together");
    }
}
