//! What `afterimage world` takes.

use std::path::PathBuf;

use afterimage::timeline::SnapshotReason;
use clap::{
    Args, Subcommand, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::args::Coloring;

/// Keep a world's state as deltas and snapshots, in a directory that survives a power cut
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage world init tale && afterimage world append tale turns.jsonl"
)]
pub(crate) struct World {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// The session and how the answer looks.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The directory of the session
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// The answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The journal that holds the session, in place of a directory of its own.
#[derive(Debug, Args)]
pub(crate) struct InJournal {
    /// The session is in this journal: a directory, or nats://HOST:PORT/NAME; DIR is its name there
    #[arg(long, value_name = "JOURNAL", value_hint = ValueHint::AnyPath)]
    pub(crate) journal: Option<String>,
    /// A creds file for NATS; `afterimage help journal` names the variables that can stand for it
    #[arg(long, value_name = "FILE", requires = "journal", value_hint = ValueHint::FilePath)]
    pub(crate) creds: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a session
    Init {
        #[command(flatten)]
        target: Target,
        /// The id of the session: the name of the directory by default
        #[arg(long)]
        id: Option<String>,
        /// The state to begin with: a JSON file, `-` is standard input
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        state: Option<PathBuf>,
        /// The configuration: a JSON file
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
    },
    /// Add turns or events, one JSON object a line; says each turn once it is durable
    Append {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        place: InJournal,
        /// The lines; `-` is standard input
        #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Apply deltas that do not fit as well as that can be done, and say so
        #[arg(long)]
        lenient: bool,
        /// A name for these lines, so that they can be given again after a failure: a line that was
        /// appended under this name, at the same place in its file, is not appended again
        ///
        /// Without it each run appends all of its lines.
        #[arg(long, value_name = "NAME", requires = "journal")]
        id: Option<String>,
        /// Sync this many turns together; by default the session's deltaBatchSize
        #[arg(long, value_name = "TURNS", conflicts_with = "journal", value_parser = clap::value_parser!(u64).range(1..))]
        batch: Option<u64>,
    },
    /// The state after a turn
    State {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        place: InJournal,
        /// The turn: the last one by default, 0 is before the first
        #[arg(long, value_name = "N")]
        turn: Option<u64>,
        /// A part of it, as a JSON pointer
        #[arg(long, value_name = "POINTER")]
        path: Option<String>,
    },
    /// The turns
    Log {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        place: InJournal,
        /// From this turn on
        #[arg(long, value_name = "N", default_value_t = 1)]
        from: u64,
        /// Up to this turn
        #[arg(long, value_name = "N")]
        to: Option<u64>,
    },
    /// How the states after two turns differ
    Diff {
        #[command(flatten)]
        target: Target,
        /// The turn of the one
        from: u64,
        /// The turn of the other
        to: u64,
    },
    /// Which turn, event and cause made a value what it is
    Blame {
        #[command(flatten)]
        target: Target,
        /// The value, as a JSON pointer
        #[arg(value_name = "POINTER")]
        path: String,
        /// After this turn: the last one by default
        #[arg(long, value_name = "N")]
        turn: Option<u64>,
    },
    /// Take turns back, by a turn that does so
    Undo {
        #[command(flatten)]
        target: Target,
        /// Back to the state after this turn
        #[arg(long, value_name = "N")]
        to: u64,
    },
    /// Take the last undo back
    Redo {
        #[command(flatten)]
        target: Target,
    },
    /// Another session that shares the past up to a turn, and copies nothing
    Branch {
        #[command(flatten)]
        target: Target,
        /// The directory of the new session
        #[arg(value_name = "NEWDIR", value_hint = ValueHint::DirPath)]
        new: PathBuf,
        /// The last turn that both have
        #[arg(long, value_name = "N")]
        at: u64,
        /// The id of the new session: the name of its directory by default
        #[arg(long)]
        id: Option<String>,
    },
    /// Make a snapshot of the state as it is
    Snapshot {
        #[command(flatten)]
        target: Target,
        /// Why
        #[arg(long, default_value = "manual", value_parser = reason())]
        reason: SnapshotReason,
    },
    /// Check every byte, and every state against what the turns come to
    ///
    /// The exit code is 1 where something is damaged or differs. A torn tail is named as one: what
    /// follows the last whole turn, and was passed over.
    Verify {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        place: InJournal,
        /// Where states have drifted, rebuild them from the turns, and make a recovery snapshot
        #[arg(long, conflicts_with = "journal")]
        recover: bool,
    },
    /// Bring back all that is intact, and keep what is replaced beside
    Repair {
        #[command(flatten)]
        target: Target,
    },
    /// Remove the snapshots that the policy lets go; turns stay
    Prune {
        #[command(flatten)]
        target: Target,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// What the session holds, and how many bytes it takes
    Stats {
        #[command(flatten)]
        target: Target,
    },
}

fn reason() -> impl TypedValueParser<Value = SnapshotReason> {
    PossibleValuesParser::new(SnapshotReason::ALL.map(SnapshotReason::as_str))
        .map(|name| SnapshotReason::from_name(&name).unwrap_or(SnapshotReason::Manual))
}
