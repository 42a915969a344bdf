//! `afterimage record`: an agent's requests, as they are sent.

mod aider;
pub(crate) mod args;
mod argument;
mod claude;
mod codex;
mod continue_dev;
mod dotenv;
mod facts;
mod jsonc;
mod keys;
mod kimi;
mod launch;
mod links;
pub(crate) mod list;
mod llm;
mod open_files;
mod opencode;
mod overlay;
mod pi;
mod redaction;
mod routes;
mod scene;
mod settings_text;
mod stale;
mod toml_text;

use std::{
    collections::BTreeMap,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
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
    facts::{ClientFacts, Facts},
    launch::Launch,
    redaction::Redaction,
    routes::{Routes, Variable},
    scene::Scene,
};
use crate::{
    args::Color,
    failure::{Failure, Outcome, Stop},
    output::{Output, first_stop, note},
    text::{counted, grouped},
};

pub(crate) fn run(args: &Record) -> Outcome {
    match &args.output {
        Some(folder) => record(args, folder),
        None => list::run(args.json),
    }
}

fn record(args: &Record, folder: &Path) -> Outcome {
    keep_out_of_dumps();
    // What cannot be read is told of when it is opened to be written.
    let before = Recording::open(folder).ok().flatten();
    let redaction = Redaction::of(&args.redaction, before.as_ref())?;
    // Of one that is not there, nothing else is said, unless it would be refused.
    let is_there = launch::check(&args.command);
    if is_there.is_ok() {
        note_bodies(folder, redaction.is_some(), before.as_ref());
    }
    drop(before);
    let facts = Facts::get()?;
    let scene = Scene::of(facts, &args.command);
    let mut routes = Routes::of(facts, args)?;
    let launch = Launch::of(facts, &args.command, &scene, &mut routes)?;
    if launch.is_none() {
        routes.lead_variables(None)?;
    }
    is_there?;
    let variables = routes.variables().to_vec();
    let recorder = recorder(folder, redaction.clone())?;
    routes.say();
    hints(&scene, |client| client.is_configured || variables.is_empty())
        .iter()
        .for_each(|of| note(of));
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
            // What did not start asked nobody.
            if matches!(outcome, Ok(()) | Err(Stop::Command(_))) {
                note_counts(folder, &wire, &hints(&scene, |_| true));
            }
            outcome
        }
    };
    let reported = redaction.map_or(Ok(()), |redaction| redaction.report());
    first_stop(outcome, reported)
}

/// Keys pass through this process: no dump of its memory is written, and no other program of the user
/// reads it. What it starts begins anew, and is as it would be.
fn keep_out_of_dumps() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A system that refuses keeps what it had.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// How some of the clients are led that a command may run.
fn hints(scene: &Scene, is_asked: impl Fn(&ClientFacts) -> bool) -> Vec<String> {
    let clients: BTreeMap<&str, &ClientFacts> =
        scene.clients.iter().map(|client| (client.name.as_str(), *client)).collect();
    let asked = clients.into_iter().filter(|(_, of)| !of.hint.is_empty() && is_asked(of));
    asked.map(|(name, of)| format!("{name}: {}", of.hint)).collect()
}

fn note_counts(folder: &Path, wire: &Wire, hints: &[String]) {
    if wire.exchanges() == 0 {
        note(
            "nothing came through the recorder: the command asked no model, or it takes the base URL \
             of its provider from elsewhere than the variables above; what it asked is not recorded",
        );
        match hints {
            [] => note("--env NAME=URL sets the variable that it does take"),
            hints => hints.iter().for_each(|hint| note(hint)),
        }
        return;
    }
    let recorded = counted(wire.exchanges(), "exchange");
    let output = folder.display();
    note(&match wire.exchanges_for_model() {
        0 => format!(
            "recorded {recorded}, none of them a call of a model that can be read; `afterimage \
             requests {output}` says what they are"
        ),
        listed => format!(
            "recorded {recorded}, {} of them for a model; `afterimage requests {output}` lists those",
            grouped(listed)
        ),
    });
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
fn note_bodies(folder: &Path, is_redacted: bool, before: Option<&Recording>) {
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
        folder.display()
    ));
}

/// Whether an earlier run wrote bodies as they are.
fn has_plain_bodies(before: &Recording) -> bool {
    before.exchanges().iter().any(|exchange| !exchange.start.is_redacted)
}

fn recorder(folder: &Path, redaction: Option<Redaction>) -> Outcome<Recorder> {
    let folder = folder.to_owned();
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
    start.is_for_model() && Api::may_be_at(&start.path)
}

/// Says where the listener is, and waits for a signal.
fn serve(wire: &Wire, variables: &[Variable]) -> Outcome {
    let (interrupted, wait) = mpsc::channel();
    wire.on_interrupt(move |_| {
        let _ = interrupted.send(());
    })?;
    let mut out = Output::new(Color::Never);
    for Variable { name, route, end, .. } in variables {
        if let Some(base) = wire.base_url(route) {
            writeln!(out, "{name}={base}{end}")?;
        }
    }
    out.flush()?;
    drop(out);
    open_files::raise();
    let _ = wait.recv();
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use super::keep_out_of_dumps;

    #[test]
    fn keys_of_the_recorder_are_in_no_dump() {
        keep_out_of_dumps();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    }
}
