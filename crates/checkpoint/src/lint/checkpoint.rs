use std::collections::BTreeSet;

use super::{Diagnostic, Findings};
use crate::{
    document::{Document, Section},
    full_state::inline_time,
    names::{SectionKind, normal},
    timestamp::{Time, time},
    unread::header_faults,
};

/// Sections without which nobody can go on.
const REQUIRED: [SectionKind; 6] = [
    SectionKind::Problem,
    SectionKind::SessionIntent,
    SectionKind::EssentialInformation,
    SectionKind::Decisions,
    SectionKind::CurrentState,
    SectionKind::NextActions,
];

/// Sections that the format recommends.
const RECOMMENDED: [SectionKind; 4] = [
    SectionKind::TechnicalContext,
    SectionKind::PlayByPlay,
    SectionKind::ArtifactTrail,
    SectionKind::UserRules,
];

/// Every finding of a checkpoint, in the order of the text. O(document).
pub(super) fn lint(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Findings::of(document);
    header_faults(document).into_iter().for_each(|fault| findings.fault(fault));
    header(&mut findings);
    if findings.has("front-matter-place") {
        // Everything else would be said of another document.
        return findings.finish();
    }
    sections(&mut findings);
    tables(&mut findings);
    inline_deltas(&mut findings);
    findings.finish()
}

fn header(findings: &mut Findings<'_>) {
    if !findings.expect_header("`checkpoint` and `created`") {
        return;
    }
    findings.required("missing-checkpoint", "checkpoint", "ID");
    if let Some(text) = findings.required("missing-created", "created", "TIME in ISO 8601") {
        let place = findings.value("created");
        findings.time("created-not-a-time", text, place);
    }
    let document = findings.document;
    let front = document.front_matter();
    if let Some(text) = front.and_then(|front| front.get("last_delta")) {
        let place = findings.value("last_delta");
        findings.time("last-delta-not-a-time", text, place);
    }
}

fn sections(findings: &mut Findings<'_>) {
    let document = findings.document;
    let named =
        || document.sections().iter().filter_map(|section| Some((section.kind()?, section)));
    let known = || named().filter(|(kind, section)| is_of(document, section, *kind));
    let present: BTreeSet<SectionKind> = known().map(|(kind, _)| kind).collect();
    for kind in REQUIRED.into_iter().chain(RECOMMENDED) {
        if present.contains(&kind) {
            continue;
        }
        let message = format!("there is no section {}", kind.title());
        let heading = format!("a heading `{} {}`", "#".repeat(kind.level().into()), kind.title());
        let place = findings.end();
        if REQUIRED.contains(&kind) {
            findings.error("missing-section", place, message, heading);
        } else {
            findings.warning("recommended-section", place, message, heading);
        }
    }
    let mut last: Option<(SectionKind, &str)> = None;
    let mut seen = BTreeSet::new();
    for (kind, section) in known() {
        let place = findings.line(section.line());
        if !seen.insert(kind) {
            let message = format!("{} is there twice", kind.title());
            findings.warning("duplicate-section", place, message, "one section of each name");
            continue;
        }
        if section.level != kind.level() {
            let message = format!("{} is a heading of level {}", kind.title(), section.level);
            findings.warning("section-level", place, message, format!("level {}", kind.level()));
        }
        if let Some((before, title)) = last.filter(|(before, _)| *before > kind) {
            let message = format!("{} stands after {title}", kind.title());
            let expected = format!("{} before {}", kind.title(), before.title());
            findings.warning("section-order", place, message, expected);
        } else {
            last = Some((kind, kind.title()));
        }
        let body = document.content_of(section);
        let is_empty = body.trim().is_empty() && kind != SectionKind::EssentialInformation;
        if is_empty && REQUIRED.contains(&kind) {
            let message = format!("{} says nothing", kind.title());
            findings.warning("empty-section", place, message, "at least one line");
        }
    }
}

/// Whether a section is that of the format, and none of an inline delta.
fn is_of(document: &Document, section: &Section, kind: SectionKind) -> bool {
    let mut parent = section.parent.and_then(|index| document.sections().get(index));
    while let Some(outer) = parent {
        if inline_time(outer).is_some() {
            return false;
        }
        parent = outer.parent.and_then(|index| document.sections().get(index));
    }
    section.kind() == Some(kind)
}

fn tables(findings: &mut Findings<'_>) {
    findings.rows();
    let document = findings.document;
    for section in document.sections() {
        let Some(kind) = section.kind().filter(|kind| is_of(document, section, *kind)) else {
            continue;
        };
        let Some(columns) = kind.columns() else { continue };
        let columns: Vec<[&str; 1]> = columns.into_iter().map(|title| [title]).collect();
        let columns: Vec<&[&str]> = columns.iter().map(<[&str; 1]>::as_slice).collect();
        findings.columns(section, &columns);
        if !findings.has_table(section) && !document.blocks_of(section).is_empty() {
            let place = findings.line(section.line());
            let names: Vec<&str> =
                columns.iter().filter_map(|names| names.first().copied()).collect();
            findings.warning(
                "expected-table",
                place,
                format!("{} has no table", kind.title()),
                format!("a table with the columns {}", names.join(", ")),
            );
        }
    }
}

fn inline_deltas(findings: &mut Findings<'_>) {
    let document = findings.document;
    let mut latest = None;
    for (index, section) in document.sections().iter().enumerate() {
        let Some(text) = inline_time(section) else { continue };
        let (line, column, length) = findings.line(section.line());
        let at = document.line(line).find(text).unwrap_or(0);
        let place =
            if text.is_empty() { (line, column, length) } else { (line, at + 1, text.len()) };
        findings.time("inline-delta-time", text, place);
        latest = time(text).map(Time::approximate).max(latest);
        let inside = document.sections_in(index).filter(|inner| inner.parent == Some(index));
        for inner in inside {
            match normal(&inner.title).as_str() {
                "artifacts" => {
                    findings.columns(
                        inner,
                        &[&["File"], &["Action", "Status"], &["Description", "Key Change"]],
                    );
                }
                "status transitions" => {
                    findings.columns(inner, &[&["Item"], &["Before"], &["After"]]);
                }
                _ => {}
            }
        }
        let says =
            |inner: &Section| inner.parent == Some(index) && normal(&inner.title) == "what changed";
        if !document.sections_in(index).any(says) {
            let message = "the delta does not say what changed";
            findings.warning(
                "inline-delta-summary",
                place,
                message,
                "a heading `### What Changed`",
            );
        }
    }
    let Some(latest) = latest else { return };
    let stated = document.front_matter().and_then(|front| front.get("last_delta"));
    if stated.and_then(time).map(Time::approximate) != Some(latest) {
        let place = findings.value("last_delta");
        findings.warning(
            "last-delta-stale",
            place,
            "`last_delta` is not the time of the last delta",
            format!("`last_delta: {latest}`"),
        );
    }
}
