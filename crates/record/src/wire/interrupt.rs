use std::{io, sync::Arc};

/// A signal that asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C, which the terminal sends to every process of the foreground.
    Keyboard,
    /// The system or another process asks this one alone: `SIGTERM`, or `SIGHUP`.
    Process,
}

/// What is done with a signal.
pub(super) type Act = Arc<dyn Fn(Interrupt) + Send + Sync>;

/// Hands over the signals of the process from now on; called inside of a runtime.
#[cfg(unix)]
pub(super) fn listen(act: &Act) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for (kind, means) in [
        (SignalKind::interrupt(), Interrupt::Keyboard),
        (SignalKind::terminate(), Interrupt::Process),
        (SignalKind::hangup(), Interrupt::Process),
    ] {
        let (mut signals, act) = (signal(kind)?, Arc::clone(act));
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                act(means);
            }
        });
    }
    survive_full_files()
}

/// Lets a file that may grow no more (`ulimit -f`) be an error of writing to it, as a full disk is:
/// unheard, its signal ends the process.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn survive_full_files() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    /// On all of these systems but Linux on MIPS.
    const SIGXFSZ: i32 = if cfg!(target_arch = "mips") { 31 } else { 25 };
    let mut signals = signal(SignalKind::from_raw(SIGXFSZ))?;
    tokio::spawn(async move { while signals.recv().await.is_some() {} });
    Ok(())
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
fn survive_full_files() -> io::Result<()> {
    Ok(())
}

/// Hands over Ctrl-C from now on; called inside of a runtime.
#[cfg(not(unix))]
pub(super) fn listen(act: &Act) -> io::Result<()> {
    let act = Arc::clone(act);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            act(Interrupt::Keyboard);
        }
    });
    Ok(())
}
