//! The command-line program of afterimage: see what an LLM agent actually saw.

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
mod viewer;
mod wanted;

use std::process::ExitCode;

use args::{Cli, Command, Input, InputFormat};
use clap::{CommandFactory, Parser, error::ErrorKind};
use failure::{Outcome, Stop};

fn main() -> ExitCode {
    let cli = match Cli::try_parse().and_then(checked) {
        Ok(cli) => cli,
        Err(error) => {
            // Where nobody reads the help, nobody needs it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
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

/// Asks for a file where only the format was given.
fn checked(cli: Cli) -> Result<Cli, clap::Error> {
    match cli.command.input() {
        Some(Input { files, input_format })
            if files.is_empty() && !matches!(input_format, Some(InputFormat::List)) =>
        {
            let message = "no FILE was given; `-` is standard input";
            Err(Cli::command().error(ErrorKind::MissingRequiredArgument, message))
        }
        _ => match &cli.command {
            Command::Archive(args::Archive { output: None, input, .. })
                if !matches!(input.input_format, Some(InputFormat::List)) =>
            {
                let message = "no DIR was given: `--output DIR` is where the archive goes";
                Err(Cli::command().error(ErrorKind::MissingRequiredArgument, message))
            }
            _ => Ok(cli),
        },
    }
}
