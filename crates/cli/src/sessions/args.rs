//! What `afterimage sessions` takes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::totals::{By, Sort};
use crate::args::{Coloring, Pricing, Redaction, SessionFilter};

const HELP: &str = "\
Example: afterimage sessions --since 3d --project harbour

Columns of the table:
  TIME         when its last record was written, in UTC; – where the session says no time
  PROJECT      the folder that it worked in, else the folder that its file is in
  REQUESTS     the requests to a model
  TOKENS       what the provider reported of them, input and output together; ~ is what this
               program counts of their input where nothing was reported, ≥ is a sum in which
               some of them are missing
  COST         the price of that; – where no price is known
  FIRST WORDS  the first words of the user

A – in REQUESTS and TOKENS is a session that is not in the index yet (--quick).";

/// List sessions, newest first: when, where, what it was about, requests, tokens
///
/// Without FOLDER it looks where the agents keep theirs: Claude Code, Codex, pi, Gemini, Kimi, Qwen
/// Code, Copilot, Cline, OpenCode, Continue and goose. An index in the user's cache folder keeps what
/// was read, so that a session is read again only where its file has changed. `AFTERIMAGE_CACHE` names
/// another folder.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage sessions --since 3d --project harbour",
    after_long_help = HELP
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Sessions {
    /// The folders to look in; by default those where the agents keep their sessions
    #[arg(value_name = "FOLDER", value_hint = ValueHint::AnyPath)]
    pub(crate) folders: Vec<PathBuf>,
    /// List only the session whose file changed last
    #[arg(long)]
    pub(crate) last: bool,
    #[command(flatten)]
    pub(crate) filter: SessionFilter,
    /// Add up what the answers used, in place of the sessions: each answer counts once, copies and
    /// subagents too. --since and --until then choose answers, by five minutes
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["quick", "paths"])]
    pub(crate) by: Option<By>,
    /// What comes first; by default the newest, and with --by project, model, client or tool what cost
    /// most
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Read no session that is not in the index: – stands for what is not known of it
    #[arg(long, conflicts_with = "no_index")]
    pub(crate) quick: bool,
    /// Neither read nor write the index
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Print nothing but the path of each session's file, one a line
    #[arg(long, conflicts_with_all = ["json", "redact", "redact_rules", "redact_report"])]
    pub(crate) paths: bool,
    /// Print one JSON object per session
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) redaction: Redaction,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
