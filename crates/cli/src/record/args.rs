//! The command line of `afterimage record`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueHint};

use crate::args::Redaction;

const HELP: &str = "\
Example: afterimage record -o run -- codex exec 'fix the tests'
Example: afterimage record -o run -- claude -p 'fix the tests'
Example: afterimage record -o run --env MISTRAL_BASE_URL=https://api.mistral.ai/v1 -- python agent.py
Example: afterimage record -o run --listen 127.0.0.1:8787
Example: afterimage record --list

How a command is told where to send its requests:
  any command  a variable of a provider that is set, replaced by a route to its own value; where
               nothing names a base URL, OPENAI_BASE_URL and ANTHROPIC_BASE_URL; --env for others
  a client     as it takes its own settings, files and arguments: `record --list`, docs/record.md

No call reaches a host that it would not reach without the recorder. A command beside a `.env` file
that names a base URL is refused where nobody knows what it takes; --env or --upstream says it.

The exit code is that of the command, 128 and the number of the signal that ended it, or 2 where
nothing was run.";

/// Run an agent and record its requests as they are sent, with what comes back
///
/// The agent talks to a listener on loopback, which passes each request on to the real provider over
/// TLS and writes both down, byte for byte. `requests`, `render --request N`, `diff` and `stats`
/// read the folder, also while it is written. The exit code is that of the command.
/// Bodies are written with any secret that they hold. Of headers and URLs no secret is written.
#[derive(Debug, Args)]
#[command(
    override_usage = "afterimage record [OPTIONS] --output <DIR> [-- <COMMAND>...]\n       \
                      afterimage record --list [--json]",
    after_help = "Example: afterimage record -o run -- codex exec 'fix the tests'",
    after_long_help = HELP
)]
pub(crate) struct Record {
    /// The folder of the recording: it is made, or a later run appends to it
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "list")]
    pub(crate) output: Option<PathBuf>,
    /// Listen at this address of loopback; without COMMAND until Ctrl-C, for agents that are started
    /// elsewhere. By default a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Pass requests on to this base URL, in place of the provider's own; `openai=URL` and
    /// `anthropic=URL` name one of the two
    #[arg(long, value_name = "[NAME=]URL")]
    pub(crate) upstream: Vec<String>,
    /// Set this variable of the command to a base URL that leads to URL
    #[arg(long, value_name = "NAME=URL")]
    pub(crate) env: Vec<String>,
    #[command(flatten)]
    pub(crate) redaction: Redaction,
    /// List the clients that are known: which are led by themselves, and how
    #[arg(long, conflicts_with_all = ["output", "listen", "upstream", "env", "command"])]
    pub(crate) list: bool,
    /// Print the list as one JSON object per client
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// The agent to run, with its arguments
    #[arg(last = true, required_unless_present_any = ["listen", "list"])]
    pub(crate) command: Vec<OsString>,
}
