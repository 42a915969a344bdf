//! What several of these tests share.

pub(crate) mod checkpoints;

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, Diagnostic, Document, DocumentKind, lint, preview,
};

/// Why a delta is refused, as findings.
pub(crate) fn lint_against(delta: &CheckpointDelta, base: &Checkpoint) -> Vec<Diagnostic> {
    let said = preview(base, delta);
    said.refusals().iter().map(|error| Diagnostic::refused(error, delta.document())).collect()
}

/// What lint finds in a delta.
pub(crate) fn lint_delta(document: &Document) -> Vec<Diagnostic> {
    lint(document, DocumentKind::Delta)
}

/// How many lines the header of a document takes, with those that mark its ends.
pub(crate) fn header_lines(document: &Document) -> usize {
    if document.front_matter().is_none() {
        return 0;
    }
    let is_end = |number: &usize| matches!(document.line(*number).trim_end(), "---" | "...");
    (2..=document.line_count()).find(is_end).unwrap_or(0)
}
