//! What the command line says of checkpoints.

use std::path::PathBuf;

use afterimage::checkpoint::is_timestamp;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::args::{Coloring, Input, Tokenizer, token_limit};

/// Lint, draft and shrink checkpoints in Markdown; compute, apply and check their deltas
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage checkpoint diff chk-001.md chk-002.md")]
#[command(arg_required_else_help = true)]
pub(crate) struct Checkpoint {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check documents against the form of their kind
    ///
    /// Each finding comes with its line underlined. With --against it also says what `apply` would
    /// do with a delta and what it would refuse. The exit code is 1 where there are errors; warnings
    /// alone leave it at 0.
    #[command(
        after_help = "Example: afterimage checkpoint lint delta-002-003.md --against chk-002.md"
    )]
    Lint(Lint),
    /// Compute the delta from one checkpoint to another, as Markdown
    #[command(
        after_help = "Example: afterimage checkpoint diff chk-001.md chk-002.md > delta-001-002.md"
    )]
    Diff(Diff),
    /// Apply a delta to a checkpoint and print the result
    ///
    /// Every change that the delta declares is carried out. What cannot be applied, and what
    /// nothing reads, is refused with the line of the delta, and nothing is written. With --lenient
    /// the result has what can be carried out, standard error lists the rest with its lines, and
    /// the exit code is 1 if there is a rest.
    #[command(
        after_help = "Example: afterimage checkpoint apply chk-001.md delta-001-002.md > chk-002.md"
    )]
    Apply(Apply),
    /// Check that a delta turns one checkpoint into another
    ///
    /// The exit code is 1 where it does not.
    #[command(
        after_help = "Example: afterimage checkpoint validate chk-001.md delta-001-002.md chk-002.md"
    )]
    Validate(Validate),
    /// Invert a delta
    ///
    /// Only an exact delta from `diff` can be inverted: it holds the removed lines.
    #[command(after_help = "Example: afterimage checkpoint invert delta-001-002.md")]
    Invert(Invert),
    /// Combine consecutive deltas into one
    ///
    /// Each must begin where the one before it ends, and be one that `diff` wrote.
    #[command(
        after_help = "Example: afterimage checkpoint compose delta-001-002.md delta-002-003.md"
    )]
    Compose(Compose),
    /// List deltas that a later checkpoint makes unnecessary, or remove them with --remove
    ///
    /// No stored checkpoint is lost. A checkpoint that was not stored can no longer be rebuilt if
    /// only these deltas lead to it; `prune` names it.
    #[command(after_help = "Example: afterimage checkpoint prune checkpoints --remove")]
    Prune(Prune),
    /// Say whether a delta is due between two checkpoints, and why
    ///
    /// The exit code is 1 if no delta is due.
    #[command(after_help = "Example: afterimage checkpoint due chk-001.md draft.md")]
    Due(Due),
    /// Show the order of the checkpoints in a folder and its problems, or rebuild one
    #[command(after_help = "Example: afterimage checkpoint history checkpoints --at chk-002")]
    History(History),
    /// Draft a checkpoint from a transcript, or the delta since an earlier one
    ///
    /// No model is asked: the draft says what was asked, done, written and left open. Its id is
    /// the name of the file with the last frame.
    #[command(
        after_help = "Example: afterimage checkpoint draft session.jsonl --tokens 2000",
        override_usage = "afterimage checkpoint draft [OPTIONS] <FILE>"
    )]
    Draft(Draft),
    /// Shrink a checkpoint to fewer tokens, by the priorities of its sections
    ///
    /// Standard error lists what was removed.
    #[command(after_help = "Example: afterimage checkpoint shrink chk-002.md --tokens 1000")]
    Shrink(Shrink),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    Checkpoint,
    Delta,
}

/// What every command about checkpoints takes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Common {
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// The documents; `-` is standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// What they are, where the documents do not tell
    #[arg(long, value_enum)]
    pub(crate) kind: Option<Kind>,
    /// Say what `apply` would do with the deltas on this checkpoint, and what it would refuse
    #[arg(long, value_name = "BASE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,
    /// One JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Invert {
    /// The delta; `-` is standard input
    #[arg(value_name = "DELTA", value_hint = ValueHint::FilePath)]
    pub(crate) delta: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Compose {
    /// The deltas in their order; `-` is standard input
    #[arg(required = true, num_args = 2.., value_name = "DELTA", value_hint = ValueHint::FilePath)]
    pub(crate) deltas: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The folder; its Markdown files are read
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Remove the files
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Due {
    /// The checkpoint that the last delta led to; `-` is standard input
    #[arg(value_name = "LAST", value_hint = ValueHint::FilePath)]
    pub(crate) last: PathBuf,
    /// The checkpoint as it is now; `-` is standard input
    #[arg(value_name = "NOW", value_hint = ValueHint::FilePath)]
    pub(crate) now: PathBuf,
    /// The event to judge by
    #[arg(long, value_enum, default_value_t)]
    pub(crate) occasion: Occasion,
    /// The share of the tokens whose change asks for a delta, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = share)]
    pub(crate) token_share: f64,
    /// The share of the sections whose change asks for a delta, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub(crate) section_share: f64,
    /// Who counts the tokens
    #[arg(long, value_enum, default_value_t)]
    pub(crate) tokenizer: Tokenizer,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Occasion {
    /// Work went on
    #[default]
    Work,
    /// A checkpoint was made
    Checkpoint,
    /// Someone asks what happened
    Audit,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The checkpoint before; `-` is standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The checkpoint after; `-` is standard input
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// When the delta is made, in ISO 8601: else the time of B, else now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) created: Option<String>,
    /// Limit the delta to the size of B, a header, a sentence and two fences. If most of B changed,
    /// the delta contains all of B and cannot be inverted
    #[arg(long)]
    pub(crate) bounded: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The checkpoint before; `-` is standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The delta; `-` is standard input
    #[arg(value_name = "DELTA", value_hint = ValueHint::FilePath)]
    pub(crate) delta: PathBuf,
    /// Carry out what can be, and list the rest with its lines
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The checkpoint before; `-` is standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The delta; `-` is standard input
    #[arg(value_name = "DELTA", value_hint = ValueHint::FilePath)]
    pub(crate) delta: PathBuf,
    /// The checkpoint after; `-` is standard input
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The folder; its Markdown files are read
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Print this checkpoint, made anew from the others where it is not there
    #[arg(long, value_name = "ID")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Draft {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print the delta since the draft of this id, or of this frame
    #[arg(long, value_name = "ID")]
    pub(crate) delta_since: Option<String>,
    /// The most tokens of the checkpoint; 4k is 4000
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = token_limit)]
    pub(crate) tokens: usize,
    /// When the checkpoint is made, in ISO 8601: else the time of its last frame, else now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) created: Option<String>,
    /// Who counts the tokens
    #[arg(long, value_enum, default_value_t)]
    pub(crate) tokenizer: Tokenizer,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Shrink {
    /// The checkpoint; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The most tokens that it may have; 4k is 4000
    #[arg(long, value_name = "N", value_parser = token_limit)]
    pub(crate) tokens: usize,
    /// Who counts the tokens
    #[arg(long, value_enum, default_value_t)]
    pub(crate) tokenizer: Tokenizer,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn time(text: &str) -> Result<String, String> {
    if text.parse::<jiff::Timestamp>().is_ok() && is_timestamp(text) {
        return Ok(text.to_owned());
    }
    Err("expected a time such as 2025-12-14T16:00:00Z".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
