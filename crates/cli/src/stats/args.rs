//! What `afterimage stats` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{Coloring, Input, Pricing, Rendering};

const HELP: &str = "\
Example: afterimage stats --json session.jsonl

Words of the page:
  tokens        the sum of the chunks' tokens, each chunk counted by itself
  estimate      the same text by the rule of four characters a token, and how far off it is
  messages      of the whole history what the file holds; of a context what the model is sent
  all contexts  the tokens of all requests together as they are rendered here, tags and separators
                included; `requests` counts each text alone
  repeated      the tokens of chunks whose whole text stood in an earlier chunk
  unattributed  the tokens that no facet wrote: turn markers and separators
  formatting    tags and separators, whoever caused them
  none          chunks without a role or a type
  FRAME         the frame in which the facet first appeared";

/// Count what a transcript holds and costs: messages, calls, chunks, tokens by role, type, facet
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage stats --json session.jsonl",
    after_long_help = HELP
)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Add up the context of the request with this number alone, as `afterimage requests` lists it
    #[arg(long, value_name = "NUMBER", conflicts_with = "format")]
    pub(crate) request: Option<usize>,
    /// Show which facets stood in the requests that were paid for, and what each cost
    #[arg(long, conflicts_with = "request")]
    pub(crate) residency: bool,
    /// Fit our counts to the usage that all files report, write the calibration to this file, and say
    /// what it is worth; `--tokenizer calibrated:FILE` counts by it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["request", "residency", "format", "tokenizer", "session", "json"])]
    pub(crate) calibrate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Print one JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
