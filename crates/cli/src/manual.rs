//! What the program says of itself: completions, manual pages.

use std::io::Write;

use clap::Command;

use crate::{
    args::Color,
    failure::{Failure, Outcome},
    output::Output,
};

const NAME: &str = "afterimage";

/// Writes the completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell, mut program: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, NAME, &mut script);
    write(&script)
}

/// Writes the manual page of the program or of a command.
pub(crate) fn page(command: Option<&str>, program: Command) -> Outcome {
    let mut cli = program.name(NAME);
    cli.build();
    let command = match command {
        None => cli,
        Some(name) => {
            let known: Vec<_> =
                cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            let found = cli.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                let failure = Failure::new(format!("there is no command {name:?}"));
                failure.hint(format!("one of {}", known.join(", ")))
            })?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    write(&page)
}

fn write(text: &[u8]) -> Outcome {
    let mut out = Output::new(Color::Never);
    out.write_all(text)?;
    Ok(out.flush()?)
}
