//! What the commands on checkpoints say as JSON.

use afterimage::checkpoint::{
    Change, Checkpoint, CheckpointDelta, Diagnostic, Difference, Effect, Part, Preview, Problem,
    RemovedText, Severity, ShrunkCheckpoint,
};

use crate::answer::answer;

answer! {
    /// A checkpoint.
    pub(crate) struct CheckpointAnswer {
        /// its id
        checkpoint: Option<String>,
        /// when it was made, in RFC 3339
        created: Option<String>,
        /// the id of the one before it
        parent: Option<String>,
        /// its text
        markdown: String,
    }

    /// A checkpoint to which a delta was applied as far as that can be.
    pub(crate) struct LenientAnswer {
        ..checkpoint: CheckpointAnswer,
        /// what was refused
        left: Vec<Finding>,
    }

    /// A checkpoint that has to fit into so many tokens.
    pub(crate) struct ShrunkAnswer {
        ..checkpoint: CheckpointAnswer,
        /// its tokens
        tokens: usize,
        /// what it no longer says
        gone: Vec<GoneText>,
    }

    /// A delta.
    pub(crate) struct DeltaAnswer {
        /// its id
        delta: Option<String>,
        /// when it was made, in RFC 3339
        created: Option<String>,
        /// the id of the checkpoint before
        from: Option<String>,
        /// the id of the checkpoint after
        to: Option<String>,
        /// what it does, in a sentence
        summary: String,
        /// the categories of the changes
        categories: Vec<&'static str>,
        /// what is new
        added: Vec<PartAnswer>,
        /// what says something else
        modified: Vec<ChangeAnswer>,
        /// what is gone
        removed: Vec<PartAnswer>,
        /// statuses that changed
        status_transitions: Vec<ChangeAnswer>,
        /// its text
        markdown: String,
    }

    /// Entries of a section.
    pub(crate) struct PartAnswer {
        /// what they are called
        label: Option<String>,
        /// the columns, where they are rows of a table
        columns: Option<Vec<String>>,
        /// the entries, each as its lines or cells
        entries: Vec<Vec<String>>,
    }

    /// An item that changed.
    pub(crate) struct ChangeAnswer {
        /// what it is called
        item: String,
        /// what it said
        before: String,
        /// what it says
        after: String,
    }

    /// A file that was looked at.
    pub(crate) struct Linted {
        /// the file
        file: String,
        /// `checkpoint` or `delta`
        kind: &'static str,
        /// how many findings are errors
        errors: u64,
        /// how many are warnings
        warnings: u64,
        /// what is wrong with it
        findings: Vec<Finding>,
        /// with `--against`, of a delta: whether it can be applied
        applies?: bool,
        /// with `--against`, of a delta: what each of its lines does
        effects?: Vec<EffectAnswer>,
    }

    /// Something wrong with a document. Lines and columns count from one; columns and lengths are in
    /// bytes.
    pub(crate) struct Finding {
        /// `error` or `warning`
        severity: &'static str,
        /// its code
        code: &'static str,
        /// the line
        line: usize,
        /// the column
        column: usize,
        /// how long the text is that it is about
        length: usize,
        /// what is wrong
        message: String,
        /// what is expected; empty where the message says all of it
        expected: String,
    }

    /// What a line of a delta does.
    pub(crate) struct EffectAnswer {
        /// the line of the delta
        line: usize,
        /// the section that it changes
        section: String,
        /// how many lines go
        gone: usize,
        /// how many lines come
        come: usize,
    }

    /// Whether a delta leads from one checkpoint to another.
    pub(crate) struct Validated {
        /// whether it does
        valid: bool,
        /// the lines that are others
        differences: Vec<DifferenceAnswer>,
    }

    /// A line that is another.
    pub(crate) struct DifferenceAnswer {
        /// the line
        line: usize,
        /// what the checkpoint after has
        expected: Option<String>,
        /// what the delta gives
        found: Option<String>,
    }

    /// Text that had no room.
    pub(crate) struct GoneText {
        /// its section
        section: String,
        /// its first line, before
        line: usize,
        /// whether something stands for it
        summarised: bool,
        /// the text
        text: String,
    }

    /// Whether a new checkpoint is due.
    pub(crate) struct Due {
        /// whether it is
        due: bool,
        /// `checkpoint-made`, `direction-changed`, `significant-change` or `audit-required`
        trigger: Option<&'static str>,
    }

    /// What was pruned.
    pub(crate) struct Pruned {
        /// the files of deltas that a later checkpoint has absorbed
        absorbed: Vec<String>,
        /// the ids of checkpoints that only these lead to
        lost: Vec<String>,
        /// whether the files were removed
        removed: bool,
    }

    /// The checkpoints of a folder.
    pub(crate) struct HistoryAnswer {
        /// the checkpoints, in their order
        checkpoints: Vec<StoredCheckpoint>,
        /// the deltas
        deltas: Vec<StoredDelta>,
        /// what is wrong
        problems: Vec<ProblemAnswer>,
    }

    /// A checkpoint of a history.
    pub(crate) struct StoredCheckpoint {
        /// its id
        checkpoint: String,
        /// its file; null where deltas alone lead to it
        file: Option<String>,
        /// when it was made
        created: Option<String>,
    }

    /// A delta of a history.
    pub(crate) struct StoredDelta {
        /// its file
        file: String,
        /// the id of the checkpoint before
        from: Option<String>,
        /// the id of the checkpoint after
        to: Option<String>,
        /// whether a later checkpoint has absorbed it
        absorbed: bool,
    }

    /// Something wrong with a history.
    pub(crate) struct ProblemAnswer {
        /// what kind of problem it is
        kind: &'static str,
        /// the file
        file: Option<String>,
        /// what is wrong
        message: String,
    }
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> CheckpointAnswer {
    CheckpointAnswer {
        checkpoint: owned(checkpoint.id()),
        created: owned(checkpoint.created()),
        parent: owned(checkpoint.parent()),
        markdown: checkpoint.text().to_owned(),
    }
}

pub(super) fn delta(delta: &CheckpointDelta) -> DeltaAnswer {
    DeltaAnswer {
        delta: owned(delta.id()),
        created: owned(delta.created()),
        from: owned(delta.from()),
        to: owned(delta.to()),
        summary: delta.summary().clone(),
        categories: delta.categories().iter().map(|category| category.as_str()).collect(),
        added: delta.added().iter().map(part).collect(),
        modified: delta.modified().iter().map(change).collect(),
        removed: delta.removed().iter().map(part).collect(),
        status_transitions: delta.transitions().iter().map(change).collect(),
        markdown: delta.text().to_owned(),
    }
}

fn part(part: &Part) -> PartAnswer {
    let Part { label, columns, entries, .. } = part.clone();
    PartAnswer { label, columns, entries }
}

fn change(change: &Change) -> ChangeAnswer {
    let Change { item, before, after, .. } = change.clone();
    ChangeAnswer { item, before, after }
}

pub(super) fn finding(found: &Diagnostic) -> Finding {
    Finding {
        severity: match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        code: found.code,
        line: found.line,
        column: found.column,
        length: found.length,
        message: found.message.clone(),
        expected: found.expected.clone(),
    }
}

pub(super) fn effects(preview: &Preview) -> Vec<EffectAnswer> {
    let effect = |effect: &Effect| {
        let Effect { line, section, gone, come, .. } = effect.clone();
        EffectAnswer { line, section, gone, come }
    };
    preview.effects().iter().map(effect).collect()
}

pub(super) fn difference(found: &Difference) -> DifferenceAnswer {
    let Difference { line, expected, found, .. } = found.clone();
    DifferenceAnswer { line, expected, found }
}

pub(super) fn problem(problem: &Problem) -> ProblemAnswer {
    let Problem { kind, file, message, .. } = problem.clone();
    ProblemAnswer { kind: kind.as_str(), file, message }
}

pub(super) fn shrunk(shrunk: &ShrunkCheckpoint) -> ShrunkAnswer {
    ShrunkAnswer {
        checkpoint: checkpoint(&shrunk.checkpoint),
        tokens: shrunk.tokens,
        gone: shrunk.gone.iter().map(gone).collect(),
    }
}

fn gone(gone: &RemovedText) -> GoneText {
    let RemovedText { section, line, is_summarised, text, .. } = gone.clone();
    GoneText { section, line, summarised: is_summarised, text }
}
