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
        /// the id of the checkpoint before it
        parent: Option<String>,
        /// its text, in Markdown
        markdown: String,
    }

    /// A checkpoint to which a delta was applied as far as that can be.
    pub(crate) struct LenientAnswer {
        ..checkpoint: CheckpointAnswer,
        /// what was refused, and why
        left: Vec<Finding>,
    }

    /// A checkpoint that has to fit into so many tokens.
    pub(crate) struct ShrunkAnswer {
        ..checkpoint: CheckpointAnswer,
        /// its tokens
        tokens: usize,
        /// what had no room
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
        /// what it is about: `structural`, `value`, `artifact`, `progress`
        categories: Vec<&'static str>,
        /// entries that are new
        added: Vec<PartAnswer>,
        /// values that are others
        modified: Vec<ChangeAnswer>,
        /// entries that are gone
        removed: Vec<PartAnswer>,
        /// statuses that changed
        status_transitions: Vec<ChangeAnswer>,
        /// its text, in Markdown
        markdown: String,
    }

    /// Entries of a section.
    pub(crate) struct PartAnswer {
        /// what stands over the entries
        label: Option<String>,
        /// the titles of the table, where the entries are rows of one
        columns: Option<Vec<String>>,
        /// the entries: the cells of a row, or one text
        entries: Vec<Vec<String>>,
    }

    /// An item that changed.
    pub(crate) struct ChangeAnswer {
        /// the section, field or item
        item: String,
        /// its value before
        before: String,
        /// its value after
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
        /// with `--against`, of a delta: what each of its lines does, in the order in which it
        /// does it
        effects?: Vec<EffectAnswer>,
    }

    /// Something wrong with a document. Lines and columns count from one; columns and lengths are in
    /// bytes.
    pub(crate) struct Finding {
        /// `error` or `warning`
        severity: &'static str,
        /// what is wrong, for programs: a name that does not change
        code: &'static str,
        /// its line
        line: usize,
        /// its column
        column: usize,
        /// how long the text is that is wrong
        length: usize,
        /// what is wrong, in a sentence
        message: String,
        /// what is expected; empty where the message says all of it
        expected: String,
    }

    /// What a line of a delta does.
    pub(crate) struct EffectAnswer {
        /// the line of the delta
        line: usize,
        /// the section that changes; `front matter` for the header
        section: String,
        /// how many lines of the checkpoint go
        gone: usize,
        /// how many lines come
        come: usize,
    }

    /// Whether a delta leads from one checkpoint to another.
    pub(crate) struct Validated {
        /// whether the delta leads from the one checkpoint to the other
        valid: bool,
        /// the lines in which the result of the delta is not the checkpoint after
        differences: Vec<DifferenceAnswer>,
    }

    /// A line that is another.
    pub(crate) struct DifferenceAnswer {
        /// the line of the checkpoint after; past its last one where the result has more
        line: usize,
        /// what the checkpoint after says there; null where it has no such line
        expected: Option<String>,
        /// what the result says there; null where it has no such line
        found: Option<String>,
    }

    /// Text that had no room.
    pub(crate) struct GoneText {
        /// the section that it was in
        section: String,
        /// its first line in the checkpoint before
        line: usize,
        /// whether a line in its place says how many there were
        summarised: bool,
        /// its text
        text: String,
    }

    /// Whether a new checkpoint is due.
    pub(crate) struct Due {
        /// whether a delta is due
        due: bool,
        /// why: `checkpoint-made`, `direction-changed`, `significant-change` or `audit-required`;
        /// null where none is due
        trigger: Option<&'static str>,
    }

    /// What was pruned.
    pub(crate) struct Pruned {
        /// the files of deltas that a later checkpoint has absorbed
        absorbed: Vec<String>,
        /// the ids of checkpoints that only these deltas lead to
        lost: Vec<String>,
        /// whether the files were removed, as `--remove` asks for
        removed: bool,
    }

    /// The checkpoints of a folder.
    pub(crate) struct HistoryAnswer {
        /// the checkpoints, in their order
        checkpoints: Vec<StoredCheckpoint>,
        /// the deltas between them
        deltas: Vec<StoredDelta>,
        /// what is wrong with the history
        problems: Vec<ProblemAnswer>,
    }

    /// A checkpoint of a history.
    pub(crate) struct StoredCheckpoint {
        /// its id
        checkpoint: String,
        /// its file; null where deltas alone lead to it
        file: Option<String>,
        /// when it was made, in RFC 3339
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
        /// `gap`, `fork`, `loop`, `duplicate`, `unnamed`, `mismatch` or `unknown`
        kind: &'static str,
        /// the file that shows it; null where none does
        file: Option<String>,
        /// what is wrong, in a sentence
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
