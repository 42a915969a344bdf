//! What `afterimage guard` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{Coloring, CounterChoice, CounterChoiceParser, Input, Pricing};

const HELP: &str = "\
Example: afterimage guard traffic.har --max-loss 0.50

Columns of the table:
  #         the number of the request, for `render --request` and `diff FILE@NUMBER`
  TIME      when the request went out
  READ      the tokens that the cache serves by the rules; – where these say nothing
  REPORTED  those that it served
  WRITE     the tokens that are billed as written
  REPORTED  those that were
  LOST      the tokens that the request before left in the cache and that are not served
  PRICE     what the input costs
  LOSS      what is paid because of what was lost
  WHY       the first thing that differs, what takes the cache, or that its time has passed;
            in brackets what the provider itself said

A terminal of less than 120 columns lacks TIME, LOST, PRICE, and what is written.

Tokens are the provider's, fitted to what it reported of the request before. Caches are best effort:
a forecast says what the published rules allow.

The exit code is 1 if a request lost more than `--max-loss`.";

/// Say of each recorded request what the provider's cache would serve of it, and what breaks it
///
/// Compares each request with the one before it in its session, in the order in which the
/// provider's cache takes them. By the published rules it says what is read, what is written, what
/// that costs, and the first thing that differs with who wrote it. Beside it stands what was
/// reported. Requests that were worked out from a transcript have no forecast.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage guard traffic.har --max-loss 0.50",
    after_long_help = HELP
)]
pub(crate) struct Guard {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Go on printing requests as they come, until Ctrl-C: the file is looked at twice a second
    #[arg(long, conflicts_with_all = ["since", "until", "project"])]
    pub(crate) follow: bool,
    /// Warn of each request that pays more than this again for what was cached, in the currency of the
    /// prices; the exit code is then 1
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) max_loss: Option<String>,
    /// The rules of caches as TOML, in place of the table that comes along
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Which tokenizer counts; by default o200k
    #[arg(long, value_parser = CounterChoiceParser, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CounterChoice>,
    /// Print one JSON object per request
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
