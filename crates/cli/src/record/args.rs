//! The command line of `afterimage record`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueHint};

use crate::args::Redaction;

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The folder of the recording: it is made, or a later run appends to it
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
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
    /// The agent to run, with its arguments
    #[arg(last = true, required_unless_present = "listen")]
    pub(crate) command: Vec<OsString>,
}
