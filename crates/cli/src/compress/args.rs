//! What `afterimage compress` takes.

use clap::{ArgGroup, Args};

use crate::args::{Coloring, CompressAs, Fitting, Input, Rendering, Selection, budget_or_range};

const HELP: &str = "\
Example: afterimage compress session.jsonl --budget 8k --as openai
Example: afterimage compress session.jsonl --budget 8k --receipt

Words of the page:
  block      a summary that stands in place of frames; `block, 2` is one of blocks
  shortened  a frame of which the middle was left out
  left out   frames of which nothing is in the context
  BEFORE     the tokens of the frames
  AFTER      the tokens of what stands in their place
  --block    the id with which `expand` gives the original back
  rule       a sentence of the user with never, must, only, don't and the like
  path       an identifier with a slash
  name       an identifier: an id, a word of a program, a file, an address
  number     four digits or more without a letter; a date, a time
  FRAME      the first frame that says it";

/// Fit a session into a budget: summaries replace older frames, and the originals stay
///
/// Prints the context after the last frame, as it fits. Blocks replace older frames. If that is
/// not enough, `compress` leaves out what is worth least and shortens what is largest. `expand`
/// gives back what a block stands for. Images and documents take room by their providers' rules,
/// and so do the tools of a recorded request.
/// A line below says what counted, and how far off calibrated counts are; in JSON `tokenizer`,
/// `counts` and `error` do.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage compress session.jsonl --budget 8k --as openai",
    after_long_help = HELP
)]
#[command(mut_arg("budget", budget_or_range))]
#[command(group(ArgGroup::new("aim").args(["budget", "range"]).required(true).multiple(true)))]
pub(crate) struct Compress {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Say what `--range` would do, and compress nothing
    #[arg(long, requires = "range", conflicts_with = "what")]
    pub(crate) preview: bool,
    /// Say what the context no longer says, in place of printing it: what stands for frames, and
    /// the rules, paths, names and numbers that can no longer be read; with --json beside the rest
    #[arg(long, conflicts_with = "preview")]
    pub(crate) receipt: bool,
    /// What to print; by default text
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print what was done, one JSON object per session; with `--as` the context is in it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
