//! `afterimage record`: an agent's requests, as they are sent.

pub(crate) mod args;
mod claude;
mod codex;
mod launch;
mod open_files;
mod overlay;
mod pi;
mod redaction;
mod routes;
mod stale;

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc,
};

use afterimage::{
    record::{Limits, Recorder, Recording, RecordingWriter, Start, wire::Wire},
    transcript::Api,
};

use self::{
    args::Record,
    launch::Launch,
    redaction::Redaction,
    routes::{Routes, Variable},
};
use crate::{
    args::Color,
    failure::Outcome,
    output::{Output, note},
    text::counted,
};

pub(crate) fn run(args: &Record) -> Outcome {
    let redaction = Redaction::of(&args.redaction)?;
    note_bodies(args, redaction.is_some());
    let (mut routes, variables) = Routes::of(args)?;
    let launch = Launch::of(args, &variables, &mut routes)?;
    let recorder = recorder(args, redaction.clone())?;
    let listen = args.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let wire = Wire::start(listen, routes.into_routes(), recorder)?;
    let outcome = match launch {
        Some(launch) => launch.run(&wire),
        None => serve(&wire, &variables),
    };
    let (count, for_model) = (wire.exchanges(), wire.exchanges_for_model());
    // The command has its answers: what is missing is said, and changes no exit code.
    if let Err(error) = wire.stop() {
        note(&error.to_string());
    }
    note(&format!(
        "recorded {}, {for_model} of them for a model; `afterimage requests {}` lists those",
        counted(count, "exchange"),
        args.output.display()
    ));
    let reported = redaction.map_or(Ok(()), |redaction| redaction.report());
    outcome.and(reported)
}

/// Says before all else what is done with bodies.
fn note_bodies(args: &Record, is_redacted: bool) {
    let bodies = if !is_redacted {
        "bodies as they are, with any secret in them"
    } else if has_plain_bodies(args) {
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

/// Whether an earlier run wrote bodies as they are into the same folder.
fn has_plain_bodies(args: &Record) -> bool {
    // What cannot be read is told of when it is opened to be written.
    let recording = Recording::open(&args.output).ok().flatten();
    recording.is_some_and(|of| of.exchanges().iter().any(|exchange| !exchange.start.is_redacted))
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
    let limits = Limits::default();
    let recorder = match redaction {
        None => Recorder::start(limits, open, note)?,
        Some(by) => Recorder::start_redacting(limits, Box::new(by), open, note)?,
    };
    Ok(recorder.counting_for_model(is_listed))
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
