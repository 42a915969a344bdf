use std::collections::BTreeSet;

use super::{Diagnostic, Findings};
use crate::{
    document::{Document, Section},
    full_state::inline_time,
    names::{SectionKind, normal},
    timestamp::{Time, time},
    unread::header_faults,
};

/// Whether nobody can go on without a section. The format recommends all others but Breadcrumbs.
fn is_required(kind: SectionKind) -> bool {
    use SectionKind as Kind;
    matches!(kind, Kind::Problem | Kind::SessionIntent | Kind::EssentialInformation)
        || matches!(kind, Kind::Decisions | Kind::CurrentState | Kind::NextActions)
}

/// Every finding of a checkpoint, in the order of the text. O(document).
pub(super) fn lint(document: &Document) -> Vec<Diagnostic> {
    let mut findings = Findings::of(document);
    header_faults(document).into_iter().for_each(|fault| findings.fault(fault));
    header(&mut findings);
    if findings.found.iter().any(|found| found.code == "front-matter-place") {
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
    findings.created();
    let document = findings.document;
    let front = document.front_matter();
    if let Some(text) = front.and_then(|front| front.get("last_delta")) {
        let place = findings.value("last_delta");
        findings.time("last-delta-not-a-time", text, place);
    }
}

fn sections(findings: &mut Findings<'_>) {
    let document = findings.document;
    let present: BTreeSet<SectionKind> = known(document).map(|(kind, _)| kind).collect();
    let missing = SectionKind::ALL.into_iter().filter(|kind| !present.contains(kind));
    for kind in missing.filter(|kind| *kind != SectionKind::Breadcrumbs) {
        let message = format!("there is no section {}", kind.title());
        let heading = format!("a heading `{} {}`", "#".repeat(kind.level().into()), kind.title());
        let place = findings.end();
        if is_required(kind) {
            findings.error("missing-section", place, message, heading);
        } else {
            findings.warning("recommended-section", place, message, heading);
        }
    }
    let mut last: Option<(SectionKind, &str)> = None;
    let mut seen = BTreeSet::new();
    for (kind, section) in known(document) {
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
        if is_empty && is_required(kind) {
            let message = format!("{} says nothing", kind.title());
            findings.warning("empty-section", place, message, "at least one line");
        }
    }
}

/// The sections of the format, but for those of inline deltas.
fn known(document: &Document) -> impl Iterator<Item = (SectionKind, &Section)> {
    let sections = document.sections().iter().enumerate();
    sections.filter_map(|(index, section)| {
        let is_inline = document.around(index).any(|outer| inline_time(outer).is_some());
        section.kind().filter(|_| !is_inline).map(|kind| (kind, section))
    })
}

fn tables(findings: &mut Findings<'_>) {
    findings.rows();
    let document = findings.document;
    for (kind, section) in known(document) {
        let Some([one, two, three]) = kind.columns() else { continue };
        if !document.blocks_of(section).is_empty() {
            findings.table(section, &[&[one], &[two], &[three]]);
        }
    }
}

fn inline_deltas(findings: &mut Findings<'_>) {
    let document = findings.document;
    let mut latest = None;
    for (index, section) in document.sections().iter().enumerate() {
        let Some(text) = inline_time(section) else { continue };
        let place = findings.line(section.line());
        findings.time("inline-delta-time", text, place);
        latest = time(text).map(Time::approximate).max(latest);
        let mut says_what = false;
        for inner in document.sections_in(index).filter(|inner| inner.parent == Some(index)) {
            let titles: [&[&str]; 3] = match normal(&inner.title).as_str() {
                "artifacts" => [&["File"], &["Action", "Status"], &["Description", "Key Change"]],
                "status transitions" => [&["Item"], &["Before"], &["After"]],
                name => {
                    says_what |= name == "what changed";
                    continue;
                }
            };
            findings.columns(inner, &titles);
        }
        if !says_what {
            let message = "the delta does not say what changed";
            let expected = "a heading `### What Changed`";
            findings.warning("inline-delta-summary", place, message, expected);
        }
    }
    let Some(latest) = latest else { return };
    let stated = document.front_matter().and_then(|front| front.get("last_delta"));
    if stated.and_then(time).map(Time::approximate) != Some(latest) {
        let place = findings.value("last_delta");
        let message = "`last_delta` is not the time of the last delta";
        let expected = format!("`last_delta: {latest}`");
        findings.warning("last-delta-stale", place, message, expected);
    }
}
