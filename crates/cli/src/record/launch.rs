//! A command, and how it is told where to send its requests.

use std::{
    ffi::{OsStr, OsString},
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use afterimage::record::wire::{Interrupt, Wire};

use super::{
    aider,
    argument::Argument,
    claude, codex, continue_dev,
    facts::{Facts, Launcher},
    kimi, llm, open_files, opencode,
    overlay::{Overlay, OverlayFolder},
    pi,
    routes::{Routes, Variable},
    scene::{Scene, which},
    settings_text::SettingsText,
    stale,
};
use crate::failure::{Failure, Outcome, Stop};

/// A command that is to be run.
#[derive(Debug)]
pub(super) struct Launch {
    program: OsString,
    arguments: Vec<Argument>,
    variables: Vec<Variable>,
    overlay: Option<Overlay>,
    /// A variable that holds settings.
    content: Option<(&'static str, SettingsText)>,
}

impl Launch {
    /// The command with what its kind needs; `None` where none is to be run.
    pub(super) fn of(
        facts: &'static Facts,
        command: &[OsString],
        scene: &Scene,
        routes: &mut Routes,
    ) -> Outcome<Option<Self>> {
        let Some((program, _)) = command.split_first() else { return Ok(None) };
        // What a shell starts gets the variables alone.
        let at = scene.arguments_at.unwrap_or(1);
        let (before, rest) = command.split_at_checked(at).unwrap_or((command, &[]));
        let client = scene.client.filter(|_| scene.arguments_at.is_some());
        let plain = |words: &[OsString]| -> Vec<Argument> {
            words.iter().cloned().map(Argument::Plain).collect()
        };
        let (mut overlay, mut content) = (None, None);
        let launcher = client.map(|client| client.launcher).unwrap_or_default();
        if matches!(launcher, Launcher::Pi | Launcher::Kimi | Launcher::Llm) {
            // Before the settings are read: they may come from there.
            stale::restore_all(&std::env::temp_dir());
        }
        let rest = match launcher {
            Launcher::Codex => codex::arguments(rest, routes)?,
            Launcher::Claude => claude::arguments(rest, routes),
            Launcher::Aider => aider::arguments(facts, rest, routes)?,
            Launcher::Continue => continue_dev::arguments(rest, routes),
            Launcher::Pi => {
                overlay = Some(pi::overlay(routes)?);
                plain(rest)
            }
            Launcher::Kimi => {
                overlay = kimi::overlay(routes);
                plain(rest)
            }
            Launcher::Llm => {
                overlay = llm::overlay(routes);
                plain(rest)
            }
            Launcher::OpenCode => {
                content = opencode::content(rest, routes).map(|of| (opencode::CONTENT, of));
                plain(rest)
            }
            Launcher::Variables => plain(rest),
        };
        let mut arguments = plain(before.get(1..).unwrap_or_default());
        arguments.extend(rest);
        routes.lead_variables(Some(scene))?;
        let (program, variables) = (program.clone(), routes.variables().to_vec());
        Ok(Some(Self { program, arguments, variables, overlay, content }))
    }

    /// Runs the command to its end. A failure where it cannot be started, and its exit code where that
    /// is not zero.
    pub(super) fn run(self, wire: &Wire) -> Outcome {
        let base = |route: &str| wire.base_url(route).map(str::to_owned);
        let mut command = Command::new(&self.program);
        let mut files = Vec::new();
        for argument in self.arguments {
            let (argument, file) = argument
                .resolve(base)
                .map_err(|error| Failure::new(format!("cannot write a temporary file: {error}")))?;
            command.arg(argument);
            files.extend(file);
        }
        for Variable { name, route, end, .. } in &self.variables {
            command.env(name, base(route).unwrap_or_default() + end);
        }
        // A proxy would get in clear what is meant for the listener.
        let [upper, lower] = ["NO_PROXY", "no_proxy"].map(|name| (name, std::env::var(name).ok()));
        // A program that reads the one that is not set finds the hosts of the other.
        for (set, other) in [(&upper, &lower), (&lower, &upper)] {
            let hosts = set.1.as_deref().or(other.1.as_deref());
            command.env(set.0, without_proxy(hosts));
        }
        let over = self.overlay.map(|overlay| overlay.create(base)).transpose()?;
        if let Some((variable, path)) = over.as_ref().map(OverlayFolder::variable) {
            command.env(variable, path);
        }
        if let Some((variable, settings)) = self.content {
            command.env(variable, settings.resolve(base).text);
        }
        let failed = |error: std::io::Error| cannot_run(&self.program, &error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        open_files::raise();
        let has_ended = Arc::new(AtomicBool::new(false));
        let passed = pass_signals(wire, &child, &has_ended);
        let status = child.wait();
        // Its number may be that of another process from now on.
        has_ended.store(true, Ordering::SeqCst);
        if let Some(over) = over {
            over.restore();
        }
        drop(files);
        passed?;
        match code(status.map_err(failed)?) {
            0 => Ok(()),
            code => Err(Stop::Command(code)),
        }
    }
}

/// Checks that the program of a command is there.
///
/// # Errors
/// A failure where it is not.
pub(super) fn check(command: &[OsString]) -> Outcome {
    // Elsewhere a program has other names too.
    let Some(program) = command.first().filter(|_| cfg!(unix)) else { return Ok(()) };
    let is_found = |program: &str| which(program).is_some_and(|path| path.exists());
    let is_there = program.to_str().is_none_or(is_found) || std::env::var_os("PATH").is_none();
    if is_there { Ok(()) } else { Err(cannot_run(program, "there is no such program").into()) }
}

fn cannot_run(program: &OsStr, why: &str) -> Failure {
    Failure::new(format!("cannot run {}: {why}", program.display()))
}

/// The hosts that are reached without a proxy, and the loopback.
fn without_proxy(hosts: Option<&str>) -> String {
    let hosts = hosts.filter(|hosts| !hosts.trim().is_empty());
    hosts.into_iter().chain(["127.0.0.1,localhost"]).collect::<Vec<_>>().join(",")
}

/// Ctrl-C reaches the command by itself; other signals are passed on to it.
#[cfg(unix)]
fn pass_signals(wire: &Wire, child: &Child, has_ended: &Arc<AtomicBool>) -> Outcome {
    use rustix::process::{Pid, Signal, kill_process};
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let has_ended = Arc::clone(has_ended);
    wire.on_interrupt(move |interrupt| {
        let process = process.filter(|_| !has_ended.load(Ordering::SeqCst));
        if let (Interrupt::Process, Some(process)) = (interrupt, process) {
            let _ = kill_process(process, Signal::TERM);
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn pass_signals(wire: &Wire, _child: &Child, _has_ended: &Arc<AtomicBool>) -> Outcome {
    wire.on_interrupt(|_: Interrupt| {})?;
    Ok(())
}

#[cfg(unix)]
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(not(unix))]
fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
