use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::args::Coloring;

/// Show what journals hold: sessions, the states that their events lead to, snapshots
///
/// A journal is a directory, or nats://HOST:PORT/NAME on NATS JetStream. Credentials come from
/// --creds, or from the environment: `AFTERIMAGE_NATS_CREDS` (a file), `AFTERIMAGE_NATS_TOKEN`, or
/// `AFTERIMAGE_NATS_USER` with `AFTERIMAGE_NATS_PASSWORD`.
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage journal ls nats://127.0.0.1:4222/afterimage")]
pub(crate) struct Journal {
    #[command(subcommand)]
    pub(crate) command: JournalCommand,
}

const LS: &str = "\
Columns of the table:
  event     the sequence of the newest event
  snapshot  the event after which the newest snapshot was taken; - where there is none
  bytes     what the snapshot takes where it is stored
  taken     when it was taken";

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// The sessions of a journal, with their newest event and snapshot
    ///
    /// Where something is wrong with a snapshot, so that loads pass it over, a line says what.
    #[command(after_long_help = LS)]
    Ls(Ls),
    /// The state of a session, and how it came about
    ///
    /// A session of frames is shown as its veil, one of turns as the state of its world. Of any other
    /// the newest snapshot is shown as it is, with the events after it.
    Load(OfSession),
    /// Take a snapshot of a session of frames or turns
    Snapshot(OfSession),
    /// Accept the loss of expired or removed events, so that a session loads again
    ///
    /// A session of frames or turns whose events expired, or were removed, after its newest snapshot
    /// does not load. This applies the events that are left to that snapshot, says which ones are lost, and takes a
    /// snapshot, so that the session loads again. Where nothing is missing it changes nothing.
    AcceptLoss(OfSession),
    /// Accept the loss of events missing at the end of a log, so that it can be appended to
    ///
    /// A journal in a directory remembers how far each session was acknowledged. If its log ends
    /// earlier, nothing is appended. This command accepts and reports the loss.
    Repair(OfSession),
    /// Remove a session: its snapshots, then its events
    Rm(OfSession),
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A directory, or nats://HOST:PORT/NAME
    #[arg(value_name = "JOURNAL", value_hint = ValueHint::AnyPath)]
    pub(crate) journal: String,
    /// A creds file for NATS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) creds: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) place: Place,
    /// One JSON object a session
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct OfSession {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The name of the session
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
