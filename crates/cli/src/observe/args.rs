//! What the command line of `afterimage observe` says.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::args::{Branches, Coloring, Tokenizer, token_limit};

const REPLAY: &str = "\
Example: afterimage observe replay session.jsonl

Columns of the table:
  FRAME    the frame with the agent's answer
  RESULTS  the results of tools since the answer before
  KEPT     those of them that are observations
  WITHOUT  the tokens of the context as it was recorded
  WITH     the tokens of it with references for old observations, and the summary
  SUMMARY  the tokens of the summary
  SAVED    the share of WITHOUT that is not in WITH";

const STATS: &str = "\
Example: afterimage observe --db state.db stats --json

Columns of the table:
  CALLS         the responses of the tool
  FAILED        those of them that were errors
  FRESH         calls for what was known, and not yet stale
  BYTES IN      the bytes of its responses
  SHOWN         the bytes that it took in summaries
  TOKENS SAVED  the tokens of the payloads that it stood for there, less those that it took";

/// Keep what tools told an agent, for each account, and sum it up with the age of each fact
///
/// A database holds the latest response of each tool for each account. A summary says in a few
/// lines what is known, how old it is, and what an action has made stale.
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage observe --db state.db summary --account Ada")]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Observe {
    /// The database; `put` makes it where it is not there
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) db: Option<PathBuf>,
    /// What counts as an observation, in TOML or JSON; without it every tool, for each of its
    /// arguments
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    /// The time, as RFC 3339 or in seconds since 1970; the clock's by default
    #[arg(long, global = true, value_name = "TIME", value_parser = moment)]
    pub(crate) now: Option<i64>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Intercept a response, which is read from standard input
    #[command(
        after_help = "Example: afterimage observe --db state.db put --account Ada --tool get_status --tick 41 < status.json"
    )]
    Put(Put),
    /// Say whether a call can be skipped because its answer is known and fresh
    #[command(
        after_help = "Exit code 0: skip the call. Exit code 1: make it.\n\nExample: afterimage observe --db state.db fresh --account Ada --tool get_map --tick 43"
    )]
    Fresh(Fresh),
    /// Summarise what is known of an account, in a few lines
    #[command(
        after_help = "Example: afterimage observe --db state.db summary --account Ada --tick 43"
    )]
    Summary(Summary),
    /// Print the payload of an observation, or a part of it
    #[command(
        after_help = "Example: afterimage observe --db state.db get --account Ada --tool get_map"
    )]
    Get(Get),
    /// List what is out of date, and why
    #[command(after_help = "Example: afterimage observe --db state.db stale --account Ada")]
    Stale(Stale),
    /// Replace the observation with the answer that was set aside
    #[command(
        after_help = "Example: afterimage observe --db state.db accept --account Ada --tool get_status"
    )]
    Accept(Accept),
    /// List the accounts, and the agent that has each
    #[command(after_help = "Example: afterimage observe --db state.db accounts")]
    Accounts,
    /// Take an account from the agent that has it, and keep what is known of it
    #[command(after_help = "Example: afterimage observe --db state.db release --account Ada")]
    Release(Release),
    /// Forget what is known of an account, or one observation of it
    #[command(
        after_help = "Example: afterimage observe --db state.db clear --account Ada --tool get_map"
    )]
    Clear(Clear),
    /// Count calls, bytes and savings, by tool
    #[command(
        after_help = "Example: afterimage observe --db state.db stats --json",
        after_long_help = STATS
    )]
    Stats,
    /// Run recorded sessions through interception: the size of the context, turn by turn, with and
    /// without
    ///
    /// The figures are those of a simulation: contexts are made of the frames, and the usage that a
    /// provider reported is not read.
    #[command(
        after_help = "Example: afterimage observe replay session.jsonl",
        after_long_help = REPLAY
    )]
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// The account; a response that says that it is of another one is refused
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The tick, where the response does not name one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) tick: Option<u64>,
    /// The arguments of the call, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fresh {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The tick; by default the latest that was seen for the account
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) tick: Option<u64>,
    /// The arguments of the call, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Accept observations younger than this many ticks; by default the policy's limit
    #[arg(long, value_name = "TICKS")]
    pub(crate) within: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The observation
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Release {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// The agent, whatever account it has
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Summary {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The tick; by default the latest that was seen for the account
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) tick: Option<u64>,
    /// How many tokens it may take; 2k is 2000
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = token_limit)]
    pub(crate) tokens: usize,
    /// Who counts them
    #[arg(long, value_enum, default_value_t)]
    pub(crate) tokenizer: Tokenizer,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The observation: a tool, with its arguments behind it where there is one for each
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// A part of it, as a JSON pointer
    #[arg(long, value_name = "POINTER", default_value = "")]
    pub(crate) path: String,
    /// The answer that was set aside, in place of the observation
    #[arg(long, conflicts_with = "path")]
    pub(crate) aside: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Stale {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The tick; by default the latest that was seen for the account
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) tick: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Clear {
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// The observation; all of them by default
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The transcripts, archives of some, or JSON documents that hold responses by tool; `-` is
    /// standard input
    #[arg(value_name = "TRANSCRIPT", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Read only this session of transcripts that hold several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) branches: Branches,
    /// How many tokens a summary may take; 2k is 2000
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = token_limit)]
    pub(crate) tokens: usize,
    /// Who counts them
    #[arg(long, value_enum, default_value_t)]
    pub(crate) tokenizer: Tokenizer,
}

/// A time in milliseconds since 1970.
fn moment(text: &str) -> Result<i64, String> {
    let seconds = text.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000));
    let stamp = || text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
    seconds.or_else(stamp).ok_or_else(|| {
        "expected a time, as in 2026-01-31T12:00:00Z, or seconds since 1970".to_owned()
    })
}
