//! The command line, and what it says of each command.

use clap::{Parser, Subcommand};

#[cfg(feature = "record")]
use crate::record;
use crate::{
    archive, audit, checkpoint, compress, demo, diff, expand, export, formats, frames, guard,
    journal, observe, render, replay, requests, sessions, stats, trace, world,
};

const HELP: &str = "\
Example: afterimage demo

Exit codes:
  0  the question was answered; a record that was not understood is a note
  1  the answer is no: `trace` has no hit, `checkpoint lint` finds an error, `checkpoint validate`
     a difference, `world verify` damage; `checkpoint due` or `observe fresh` says no; a request
     lost more than `guard --max-loss`
  2  the question was not answered: the command line is wrong, a file cannot be read or written,
     or what is asked for is not in it. The other files are still read; 2 outranks 1 and 3
  3  what must stay of a context does not fit its budget";

/// See what an LLM agent actually saw.
///
/// afterimage reads the transcript of an agent, renders it frame by frame into the text that goes
/// to a model, and knows for every byte which facet wrote it and what it costs in tokens.
///
/// Data goes to standard output, everything else to standard error.
///
/// Control characters of a text or a name are shown, and not sent to a terminal. Text and Markdown
/// that go into a pipe or a file keep every byte; JSON holds controls as escapes.
#[derive(Debug, Parser)]
#[command(name = "afterimage", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Example: afterimage demo", after_long_help = HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::args::Demo),
    Frames(frames::args::Frames),
    Render(render::args::Render),
    Trace(trace::args::Trace),
    Stats(stats::args::Stats),
    Archive(archive::args::Archive),
    Compress(compress::args::Compress),
    Expand(expand::args::Expand),
    Replay(replay::args::Replay),
    Audit(audit::args::Audit),
    #[cfg(feature = "record")]
    Record(record::args::Record),
    Requests(requests::args::Requests),
    Guard(guard::args::Guard),
    Export(export::args::Export),
    Diff(diff::args::Diff),
    Checkpoint(checkpoint::args::Checkpoint),
    Observe(observe::args::Observe),
    World(world::args::World),
    Journal(journal::args::Journal),
    Sessions(sessions::args::Sessions),
    Formats(formats::args::Formats),
    /// Print completions for a shell
    #[command(
        after_help = "Example: afterimage completions bash > ~/.local/share/bash-completion/completions/afterimage"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or of one command
    #[command(
        after_help = "Example: afterimage man > afterimage.1; afterimage man trace | man -l -"
    )]
    Man {
        /// The command; by default the program
        command: Option<String>,
    },
}
