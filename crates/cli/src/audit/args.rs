//! What `afterimage audit` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{Branches, Coloring, Pricing};

const HELP: &str = "\
Example: afterimage audit without.jsonl with.jsonl

Rows of the first table, of all sessions of each file:
  requests     the requests that report usage
  input        their tokens, as reported; read, written: those of them that the cache served and took
  output       the tokens of the answers
  cost         by the table of prices; ≥ where some requests have no price
  caches lost  the requests that paid again for what the cache had held
  rewritten    the requests of the session that begin otherwise than the one before

Names that A used are ids, paths and numbers that somebody else had said before. Of B:
  kept        its last request has them
  lost        a request had them, the last one has not; LAST is the number of the last that had,
              FRAMES the first and the last frame in which A used them
  read again  a request had them again after one that had not
  never read  no request had them: the agent went another way, or not so far";

/// Compare two recordings of one task, without and with a compressor: what each cost, and what
/// the second lost
///
/// Adds up the usage that both report. Looks for the names (ids, paths, numbers) that the agent of
/// A used after it had read them in the requests of B: which ones B never read, which ones it
/// still has at its end, and which ones it had and lost.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage audit without.jsonl with.jsonl",
    after_long_help = HELP
)]
pub(crate) struct Audit {
    /// The recording without a compressor
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) without: PathBuf,
    /// The recording with one
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) with: PathBuf,
    /// The session of A; by default the one with the most requests
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session_a: Option<String>,
    /// The session of B; by default the one with the most requests
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session_b: Option<String>,
    /// How many of the names that were lost are listed
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) names: usize,
    #[command(flatten)]
    pub(crate) branches: Branches,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Print one JSON object, with all names
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
