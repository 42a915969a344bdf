use super::{Diagnostic, Findings, Severity};
use crate::{
    Error,
    apply::exact,
    delta::CheckpointDelta,
    document::{Document, Section},
    grammar::{EXPECTED, Order},
    instructions::Instructions,
    names::{SectionKind, normal},
    unread::{Fault, Role, header_faults, meant},
};

/// Every finding of a delta, in the order of the text. O(document).
pub(super) fn lint(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Findings::of(document);
    let delta = CheckpointDelta::from_document(document.clone());
    header_faults(document).into_iter().for_each(|fault| findings.fault(fault));
    header(&mut findings);
    if findings.found.iter().any(|found| found.code == "front-matter-place") {
        // Everything else would be instructions of another document.
        return findings.finish();
    }
    let instructions = delta.instructions();
    sections(&mut findings, &delta, &instructions);
    findings.rows();
    let mut wrong: Vec<Error> = instructions.wrong.iter().map(Error::copy_error).collect();
    wrong.extend(exact(&instructions).err().filter(|_| wrong.is_empty()));
    wrong.into_iter().for_each(|error| findings.fault(("instruction", error)));
    add_unread(&mut findings, delta.unread(), instructions.are_exact());
    decisions(&mut findings, &delta, &instructions);
    findings.finish()
}

fn header(findings: &mut Findings<'_>) {
    if !findings.expect_header("`delta`, `created`, `from` and `to`") {
        return;
    }
    let id = findings.required("missing-delta", "delta", "FROM-to-TO");
    findings.created();
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

fn sections(findings: &mut Findings<'_>, delta: &CheckpointDelta, instructions: &Instructions) {
    let document = findings.document;
    let changes = delta.part("changes");
    let summary = delta.part("summary").map(|(_, section)| section);
    let place = summary.map_or(findings.end(), |section| findings.line(section.line()));
    match summary.map(|section| document.blocks_of(section)) {
        None | Some([]) => {
            let message = "there is no sentence under Summary";
            findings.error("missing-summary", place, message, "`## Summary` with one sentence");
        }
        Some([_]) => {}
        Some([_, second, ..]) => {
            let place = findings.line(second.line());
            let message = "the summary is more than a sentence";
            findings.warning("summary-length", place, message, "one sentence");
        }
    }
    if changes.is_none() {
        let place = findings.end();
        findings.error("missing-changes", place, "there is no section Changes", "`## Changes`");
    }
    let present: Vec<&Section> =
        CHANGES.iter().filter_map(|name| delta.part(name)).map(|(_, section)| section).collect();
    if present.is_empty() {
        let place =
            changes.map_or_else(|| findings.end(), |(_, section)| findings.line(section.line()));
        let message = "there is none of Added, Modified and Removed";
        let expected = "at least one of `### Added`, `### Modified` and `### Removed`";
        findings.error("no-changes", place, message, expected);
    } else if is_empty(delta, instructions) {
        let place = present.first().map_or((1, 1, 0), |section| findings.line(section.line()));
        findings.warning("empty-delta", place, "the delta changes nothing", "a change");
    }
    let section = delta.part("merge instructions").filter(|_| instructions.is_empty());
    if let Some((_, section)) = section {
        let place = findings.line(section.line());
        let message = "there are no instructions";
        findings.warning("no-instructions", place, message, format!("a list, each {EXPECTED}"));
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

fn is_empty(delta: &CheckpointDelta, instructions: &Instructions) -> bool {
    // The one word of an empty delta.
    let says = |entry: &Vec<String>| entry.join("") != "Nothing.";
    let mut parts = delta.added().into_iter().chain(delta.removed());
    !parts.any(|part| part.entries.iter().any(says))
        && delta.modified().is_empty()
        && delta.transitions().is_empty()
        && instructions.first_line().is_none()
        && instructions.whole.is_none()
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
fn decisions(findings: &mut Findings<'_>, delta: &CheckpointDelta, instructions: &Instructions) {
    let is_of_them = |name: &str| SectionKind::from_title(name) == Some(SectionKind::Decisions);
    let is_of = |path: &str, mark| is_of_them(path.split(mark).next().unwrap_or_default());
    let mut warn = |line, message: &str| {
        let place = findings.line(line);
        let expected = "decisions that only grow: a new one that says which it replaces";
        findings.warning("decision-gone", place, message, expected);
    };
    for part in delta.removed() {
        if is_of(part.label.as_deref().unwrap_or_default(), " (") {
            warn(part.line, "decisions are removed");
        }
    }
    for change in delta.modified() {
        if is_of(&change.item, " / ") {
            warn(change.line, "a decision is changed");
        }
    }
    for (line, order) in &instructions.orders {
        if matches!(order, Order::Replace { section, .. } if is_of_them(section)) {
            warn(*line, "decisions are taken away");
        }
    }
}
