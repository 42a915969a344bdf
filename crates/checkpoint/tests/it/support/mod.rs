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
