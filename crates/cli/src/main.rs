//! The command-line program of afterimage: see what an LLM agent actually saw.
// `output` writes to the streams, and nobody else.
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod answer;
mod archive;
mod args;
mod audit;
mod calibrated;
mod checkpoint;
mod command_line;
mod compress;
mod copies;
mod demo;
mod diff;
mod expand;
mod export;
mod failure;
mod fitting;
mod formats;
mod frames;
mod guard;
mod hit;
mod input;
mod journal;
mod json;
mod labels;
mod lens;
mod manual;
mod moment;
mod observe;
mod output;
mod pages;
mod phrase;
#[cfg(feature = "record")]
mod record;
mod recorded;
mod render;
mod replay;
mod requests;
mod sessions;
mod stats;
mod store;
mod style;
mod table;
mod text;
mod trace;
mod usage;
mod view;
mod visible;
mod wanted;
mod watch;
mod when;
mod world;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};
use command_line::{Cli, Command};
use failure::{Outcome, Stop};

fn main() -> ExitCode {
    let cli = match Cli::try_parse().and_then(checked) {
        Ok(cli) => cli,
        Err(error) => {
            let again = |words| Cli::try_parse_from(words).and_then(checked).err();
            let is_error = output::say_of_command_line(error, again);
            return ExitCode::from(if is_error { UNANSWERED } else { 0 });
        }
    };
    match run(&cli.command) {
        Ok(()) | Err(Stop::ClosedPipe) => ExitCode::SUCCESS,
        Err(Stop::Negative) => ExitCode::from(NEGATIVE),
        Err(Stop::Failure(failure) | Stop::Output(failure)) => {
            output::report(&failure);
            ExitCode::from(UNANSWERED)
        }
        Err(Stop::Reported) => ExitCode::from(UNANSWERED),
        Err(Stop::Unfit) => ExitCode::from(OVER_BUDGET),
        #[cfg(feature = "record")]
        Err(Stop::Command(code)) => ExitCode::from(code),
    }
}

/// The answer is no.
const NEGATIVE: u8 = 1;
/// There is no answer: the command line is wrong, or what it names cannot be read, or is not there.
const UNANSWERED: u8 = 2;
/// What a context must hold is more than its budget.
const OVER_BUDGET: u8 = 3;

fn run(command: &Command) -> Outcome {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Frames(args) => frames::run(args),
        Command::Render(args) => render::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Archive(args) => archive::run(args),
        Command::Compress(args) => compress::run(args),
        Command::Expand(args) => expand::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Export(args) => export::run(args),
        #[cfg(feature = "record")]
        Command::Record(args) => record::run(args),
        Command::Requests(args) => requests::run(args),
        Command::Guard(args) => guard::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Checkpoint(args) => checkpoint::run(args),
        Command::Observe(args) => observe::run(args),
        Command::World(args) => world::run(&args.command, args.coloring.color),
        Command::Journal(args) => journal::run(args),
        Command::Sessions(args) => sessions::run(args),
        Command::Formats(args) => formats::run(args),
        Command::Completions { shell } => manual::completions(*shell, Cli::command()),
        Command::Man { command } => manual::page(command.as_deref(), Cli::command()),
    }
}

/// Refuses what no argument shows by itself: a text that is no regular expression.
fn checked(cli: Cli) -> Result<Cli, clap::Error> {
    if let Command::Trace(args) = &cli.command
        && let Err(reason) = args.target.phrase()
    {
        let message = format!("the text is no regular expression: {reason}");
        return Err(Cli::command().error(ErrorKind::ValueValidation, message));
    }
    Ok(cli)
}
