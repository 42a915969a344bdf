//! Checkpoints and deltas as JSON.

use afterimage::{
    checkpoint::{
        Change, Checkpoint, CheckpointDelta, Diagnostic, Difference, Effect, Part, Problem,
        RemovedText, Severity,
    },
    json::{Object, Value},
};

use crate::json::{object, or_null};

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> Object {
    object! {
        "checkpoint": or_null(checkpoint.id()),
        "created": or_null(checkpoint.created()),
        "parent": or_null(checkpoint.parent()),
        "markdown": checkpoint.text(),
    }
}

pub(super) fn delta(delta: &CheckpointDelta) -> Object {
    let categories = delta.categories();
    object! {
        "delta": or_null(delta.id()),
        "created": or_null(delta.created()),
        "from": or_null(delta.from()),
        "to": or_null(delta.to()),
        "summary": delta.summary(),
        "categories": categories.iter().map(|category| category.as_str()).collect::<Value>(),
        "added": delta.added().iter().map(part).collect::<Value>(),
        "modified": delta.modified().iter().map(change).collect::<Value>(),
        "removed": delta.removed().iter().map(part).collect::<Value>(),
        "statusTransitions": delta.transitions().iter().map(change).collect::<Value>(),
        "markdown": delta.text(),
    }
}

fn part(part: &Part) -> Object {
    let texts = |texts: &Vec<String>| texts.iter().map(String::as_str).collect::<Value>();
    object! {
        "label": or_null(part.label.as_deref()),
        "columns": or_null(part.columns.as_ref().map(texts)),
        "entries": part.entries.iter().map(texts).collect::<Value>(),
    }
}

fn change(change: &Change) -> Object {
    object! {
        "item": change.item.as_str(),
        "before": change.before.as_str(),
        "after": change.after.as_str(),
    }
}

pub(super) fn finding(found: &Diagnostic) -> Object {
    object! {
        "severity": match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": found.code,
        "line": found.line as u64,
        "column": found.column as u64,
        "length": found.length as u64,
        "message": found.message.as_str(),
        "expected": found.expected.as_str(),
    }
}

pub(super) fn effect(effect: &Effect) -> Object {
    object! {
        "line": effect.line as u64,
        "section": effect.section.as_str(),
        "gone": effect.gone as u64,
        "come": effect.come as u64,
    }
}

pub(super) fn difference(found: &Difference) -> Object {
    object! {
        "line": found.line as u64,
        "expected": or_null(found.expected.as_deref()),
        "found": or_null(found.found.as_deref()),
    }
}

pub(super) fn problem(problem: &Problem) -> Object {
    object! {
        "kind": problem.kind.as_str(),
        "file": or_null(problem.file.as_deref()),
        "message": problem.message.as_str(),
    }
}

pub(super) fn gone(gone: &RemovedText) -> Object {
    object! {
        "section": gone.section.as_str(),
        "line": gone.line as u64,
        "summarised": gone.is_summarised,
        "text": gone.text.as_str(),
    }
}
