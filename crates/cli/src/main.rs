//! The command-line program of afterimage: see what an LLM agent actually saw.
// `output` writes to the streams, and nobody else.
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod archive;
mod args;
mod checkpoint;
mod compress;
mod demo;
mod diff;
mod expand;
mod failure;
mod fitting;
mod frames;
mod hit;
mod input;
mod journal;
mod json;
mod lens;
mod manual;
mod moment;
mod observe;
mod output;
mod pages;
mod render;
mod replay;
mod session;
mod stats;
mod store;
mod style;
mod table;
mod text;
mod trace;
mod view;
mod visible;
mod wanted;

use std::process::ExitCode;

use args::{Cli, Command, Input, InputFormat};
use clap::{CommandFactory, Parser, error::ErrorKind};
use failure::{Outcome, Stop};

fn main() -> ExitCode {
    let cli = match Cli::try_parse().and_then(checked) {
        Ok(cli) => cli,
        Err(error) => {
            let again = |words| Cli::try_parse_from(words).and_then(checked).err();
            let is_error = output::say_of_command_line(error, again);
            return ExitCode::from(if is_error { 2 } else { 0 });
        }
    };
    match run(&cli.command) {
        Ok(()) | Err(Stop::ClosedPipe) => ExitCode::SUCCESS,
        Err(Stop::Failure(failure) | Stop::Output(failure)) => {
            failure.report();
            ExitCode::FAILURE
        }
        Err(Stop::Reported) => ExitCode::FAILURE,
        Err(Stop::Unfit) => ExitCode::from(3),
    }
}

fn run(command: &Command) -> Outcome {
    if let Some(Input { input_format: Some(InputFormat::List), .. }) = command.input() {
        return manual::formats();
    }
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
        Command::Diff(args) => diff::run(args),
        Command::Checkpoint(args) => checkpoint::run(args),
        Command::Observe(args) => observe::run(args),
        Command::Session(args) => session::run(&args.command, args.coloring.color),
        Command::Journal(args) => journal::run(args),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}

/// Refuses what each argument by itself does not show: a format without a file, an archive without
/// a place, a text that is no regular expression.
fn checked(cli: Cli) -> Result<Cli, clap::Error> {
    let refuse = |kind, message: &str| Err(Cli::command().error(kind, message));
    let lists = |input: &Input| matches!(input.input_format, Some(InputFormat::List));
    match &cli.command {
        command if command.input().is_some_and(lists) => Ok(cli),
        command if command.input().is_some_and(|input| input.files.is_empty()) => {
            refuse(ErrorKind::MissingRequiredArgument, "no FILE was given; `-` is standard input")
        }
        Command::Archive(args::Archive { output: None, .. }) => refuse(
            ErrorKind::MissingRequiredArgument,
            "no DIR was given: `--output DIR` is where the archive goes",
        ),
        Command::Trace(args) => match trace::Phrase::of(&args.target) {
            Err(reason) => refuse(
                ErrorKind::ValueValidation,
                &format!("the text is no regular expression: {reason}"),
            ),
            Ok(_) => Ok(cli),
        },
        _ => Ok(cli),
    }
}
