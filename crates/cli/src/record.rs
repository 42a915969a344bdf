//! `afterimage record`: an agent's requests, as they are sent.

pub(crate) mod args;
mod argument;
mod claude;
mod codex;
mod launch;
mod open_files;
mod overlay;
mod pi;
mod redaction;
mod routes;
mod stale;
mod toml_text;

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc,
};

use afterimage::{
    record::{
        Error, ErrorKind, Recorder, RecorderOptions, Recording, RecordingWriter, Redact, Start,
        wire::Wire,
    },
    transcript::Api,
};

use self::{
    args::Record,
    launch::{Client, Launch},
    redaction::Redaction,
    routes::{Routes, Variable},
};
use crate::{
    args::Color,
    failure::{Failure, Outcome, first_stop},
    output::{Output, note},
    text::counted,
};

pub(crate) fn run(args: &Record) -> Outcome {
    // What cannot be read is told of when it is opened to be written.
    let before = Recording::open(&args.output).ok().flatten();
    let redaction = Redaction::of(&args.redaction, before.as_ref())?;
    note_bodies(args, redaction.is_some(), before.as_ref());
    drop(before);
    let client = Client::of(&args.command);
    let mut routes = Routes::of(args, client.ignores_variables())?;
    let launch = Launch::of(&args.command, client, &mut routes)?;
    let variables = routes.variables().to_vec();
    let recorder = recorder(args, redaction.clone())?;
    let listen = args.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let mut wire = Wire::start(listen, routes.into_routes(), recorder)?;
    let outcome = match launch {
        Some(launch) => launch.run(&wire),
        None => serve(&wire, &variables),
    };
    let outcome = match wire.stop() {
        Err(error) if error.kind() == ErrorKind::Removed => lost(outcome, &error),
        stopped => {
            // The command has its answers: what is missing is said, and changes no exit code.
            if let Err(error) = stopped {
                note(&error.to_string());
            }
            note_counts(args, &wire);
            outcome
        }
    };
    let reported = redaction.map_or(Ok(()), |redaction| redaction.report());
    first_stop(outcome, reported)
}

fn note_counts(args: &Record, wire: &Wire) {
    note(&format!(
        "recorded {}, {} of them for a model; `afterimage requests {}` lists those",
        counted(wire.exchanges(), "exchange"),
        wire.exchanges_for_model(),
        args.output.display()
    ));
}

/// The outcome where there is no recording any more: a failure, unless the command has its own.
fn lost(outcome: Outcome, error: &Error) -> Outcome {
    match outcome {
        Ok(()) => Err(Failure::new(error.message()).into()),
        failed => {
            note(error.message());
            failed
        }
    }
}

/// Says before all else what is done with bodies.
fn note_bodies(args: &Record, is_redacted: bool, before: Option<&Recording>) {
    let bodies = if !is_redacted {
        "bodies as they are, with any secret in them"
    } else if before.is_some_and(has_plain_bodies) {
        "bodies with placeholders for the secrets that the rules find; bodies of earlier runs stay \
         there as they are, with any secret in them"
    } else {
        "bodies with placeholders for the secrets that the rules find"
    };
    note(&format!(
        "requests and answers are recorded in {}: {bodies}; the owner of the files alone can read \
         them",
        args.output.display()
    ));
}

/// Whether an earlier run wrote bodies as they are.
fn has_plain_bodies(before: &Recording) -> bool {
    before.exchanges().iter().any(|exchange| !exchange.start.is_redacted)
}

fn recorder(args: &Record, redaction: Option<Redaction>) -> Outcome<Recorder> {
    let folder = args.output.clone();
    let open = move || {
        let (writer, recovery) = RecordingWriter::open_private(&folder)?;
        if let Some(cut) = recovery.cut {
            note(&format!("an earlier run was cut off: {cut}"));
        }
        Ok(writer)
    };
    let redact = redaction.map(|by| Box::new(by) as Box<dyn Redact>);
    let options = RecorderOptions { redact, is_for_model: is_listed, ..RecorderOptions::default() };
    Ok(Recorder::start_with(options, open, note)?)
}

/// Whether `afterimage requests` has a row for an exchange.
fn is_listed(start: &Start) -> bool {
    start.is_for_model() && Api::of_uri(&start.path).is_some()
}

/// Says where the listener is, and waits for a signal.
fn serve(wire: &Wire, variables: &[Variable]) -> Outcome {
    let (interrupted, wait) = mpsc::channel();
    wire.on_interrupt(move |_| {
        let _ = interrupted.send(());
    })?;
    let mut out = Output::new(Color::Never);
    for (variable, route) in variables {
        if let Some(base) = wire.base_url(route) {
            writeln!(out, "{variable}={base}")?;
        }
    }
    out.flush()?;
    drop(out);
    open_files::raise();
    let _ = wait.recv();
    Ok(())
}
