//! What the command line says of checkpoints.

use std::path::PathBuf;

use afterimage::checkpoint::is_timestamp;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::args::{Coloring, Input, Tokenizer};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Checkpoint {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What documents lack of the form that their kind asks for
    ///
    /// Each finding comes with its line underlined. The exit code is 1 where there are errors;
    /// warnings alone leave it at 0.
    #[command(after_help = "Example: afterimage checkpoint lint chk-002.md delta-002-003.md")]
    Lint(Lint),
    /// The delta from one checkpoint to another, as Markdown
    #[command(
        after_help = "Example: afterimage checkpoint diff chk-001.md chk-002.md > delta-001-002.md"
    )]
    Diff(Diff),
    /// The checkpoint that a delta makes of another, as Markdown
    ///
    /// What cannot be applied is refused with the line of the delta, and nothing is written.
    #[command(
        after_help = "Example: afterimage checkpoint apply chk-001.md delta-001-002.md > chk-002.md"
    )]
    Apply(Apply),
    /// Whether a delta makes one checkpoint of another
    ///
    /// The exit code is 1 where it does not.
    #[command(
        after_help = "Example: afterimage checkpoint validate chk-001.md delta-001-002.md chk-002.md"
    )]
    Validate(Validate),
    /// The order of the checkpoints in a folder, what is wrong with it, or one of them made anew
    #[command(after_help = "Example: afterimage checkpoint history checkpoints --at chk-002")]
    History(History),
    /// A checkpoint drafted from a transcript, or the delta since an earlier one
    ///
    /// No model is asked: the draft says what was asked, done, written and left open. Its id is
    /// the name of the file with the last frame.
    #[command(
        after_help = "Example: afterimage checkpoint draft session.jsonl --tokens 2000",
        override_usage = "afterimage checkpoint draft [OPTIONS] <FILE>"
    )]
    Draft(Draft),
    /// A checkpoint in fewer tokens, by the priorities of its sections
    ///
    /// What went is said on standard error.
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
    /// One JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
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
    pub(crate) since: Option<String>,
    /// The most tokens of the checkpoint
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub(crate) tokens: usize,
    /// The session, where the transcript has several; else the first
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
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
    /// The most tokens that it may have
    #[arg(long, value_name = "N")]
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
