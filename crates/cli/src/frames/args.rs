//! What `afterimage frames` takes.

use clap::Args;

use crate::args::{Coloring, Input, Rendering};

const HELP: &str = "\
Example: afterimage frames session.jsonl | afterimage stats -

Columns of the table:
  FRAME   the sequence of the frame
  SOURCE  who made it: user, agent, environment or system
  ROLE    the role of its message; – where it shows nothing
  CHUNKS  the pieces of its text, each with the facets that wrote it
  TOKENS  the sum of the chunks' tokens
  BEGINS  its first words; → names what it calls, ← is a result";

/// Print the frames of transcripts, as JSONL
///
/// A frame is one step of a history: where it came from, and how it changed the facets. A
/// terminal gets a table. A pipe or a file gets JSONL, one frame a line, which every command
/// reads back.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage frames session.jsonl | afterimage stats -",
    after_long_help = HELP
)]
pub(crate) struct Frames {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print JSONL on a terminal too
    #[arg(long, conflicts_with = "table")]
    pub(crate) json: bool,
    /// Print a table of the frames with roles, chunks and tokens, in a pipe too
    #[arg(long)]
    pub(crate) table: bool,
    /// Seal each frame with what it renders to (`renderedSnapshot`)
    #[arg(long, conflicts_with = "table")]
    pub(crate) capture: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
