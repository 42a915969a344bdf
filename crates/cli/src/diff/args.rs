//! What `afterimage diff` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{Branches, Cache, Coloring, Rendering};

const HELP: &str = "\
Example: afterimage diff before.json after.json --cache openai

Words of the page:
  parts at      the first byte that differs
  written by    the frame, chunk and facet of that byte in A
  now by        the same in B
  unchanged     the tokens of B before that byte
  cached        those of them that the cache takes, by the rules of --cache
  billed again  the tokens of B that are sent once more and not served by the cache";

/// Compare two contexts: where they first differ, who wrote that, and what is billed again
///
/// A provider's cache serves what stands before the first difference; everything after it is
/// billed again. A and B are contexts as `render --as messages` or `compress --as …` print
/// them, or transcripts or archives, which are rendered first.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage diff before.json after.json --cache openai",
    after_long_help = HELP
)]
pub(crate) struct Diff {
    /// The context that was sent before; `-` is standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) previous: PathBuf,
    /// The context that is sent next; `-` is standard input
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) next: PathBuf,
    /// Compare this session of files that hold several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) branches: Branches,
    /// The provider whose rules say what its cache takes of an unchanged beginning
    #[arg(long, value_enum, default_value_t)]
    pub(crate) cache: Cache,
    /// Print every line, also of messages that only one of the two has
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print the same as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
