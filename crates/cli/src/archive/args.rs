//! What `afterimage archive` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{Coloring, Input, Rendering};

const HELP: &str = "\
Example: afterimage archive session.jsonl -o session.archive

Columns of the table:
  SESSIONS, FRAMES  how many the file holds
  CHUNKS            the pieces of text that the frames rendered to
  BYTES, TOKENS     the size of that text: the sum over its chunks

A run that is interrupted leaves a directory that is not finished; the next run with the same
--output makes it anew.";

/// Write transcripts and what they rendered to into a directory that every command reads
///
/// The directory stands for its transcripts: every command reads it in their place and answers
/// the same, without rendering and counting again. Another `--format` renders its frames again.
/// An archive is written as a whole and never added to. It may be archived again, with others.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage archive session.jsonl -o session.archive",
    after_long_help = HELP
)]
pub(crate) struct Archive {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The directory to write: empty, or not there yet
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print what was written as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
