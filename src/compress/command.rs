use std::{
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use super::{
    CompressionJob, ContinuedRequest, Engine,
    checked::checked,
    engine::{SummaryRequest, bounded},
    prompt,
};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// An engine of a program: it reads the [`prompt`] from its standard input and writes the summary
/// to its standard output.
///
/// The program runs in a process group of its own where the system has those (Unix). When its time
/// is over, or it writes too much, the group is killed, with whatever the program started in it.
/// An exit status other than zero is an error; the end of what it wrote to its standard error
/// stands in every error. A program that does not read its input is no error. The environment and
/// the working directory are those of the caller.
///
/// Answers are checked as those of [`FnEngine`](super::FnEngine) are: the program runs once more
/// where an answer lost something.
///
/// Needs the feature `command`.
///
/// ```no_run
/// use std::time::Duration;
///
/// use afterimage::compress::CommandEngine;
///
/// let engine = CommandEngine::shell("llm -m gpt-5-mini").time_limit(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct CommandEngine {
    id: Box<str>,
    program: OsString,
    arguments: Vec<OsString>,
    time_limit: Duration,
    is_checked: bool,
    is_continued: bool,
}

/// An answer is read up to this many bytes for each token that it may have, and
/// [`SPARE_OUTPUT`] more.
const BYTES_PER_TOKEN: u64 = 64;

const SPARE_OUTPUT: u64 = 64 * 1024;

/// So much of the error output is kept, from its end.
const ERROR_OUTPUT: usize = 2_000;

/// How long a program that closed its output may take to exit before it is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// How long what is left in the pipes is waited for when a program is gone.
const GRACE: Duration = Duration::from_millis(500);

impl CommandEngine {
    /// The time that a program has unless said otherwise.
    pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(120);

    /// An engine that runs `program` with `arguments`, without a shell. Its id is the program's
    /// name. Copies the arguments.
    pub fn new<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = program.as_ref().to_owned();
        Self {
            id: program.to_string_lossy().into(),
            program,
            arguments: arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect(),
            time_limit: Self::DEFAULT_TIME_LIMIT,
            is_checked: true,
            is_continued: false,
        }
    }

    /// An engine that has the system's shell run `line`: `sh -c` on Unix, `cmd /C` on Windows. Its
    /// id is the line.
    pub fn shell(line: &str) -> Self {
        let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        Self { id: line.into(), ..Self::new(shell, [option, line]) }
    }

    /// Sets how long a program may take.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// The same engine, whose answers stand as they are.
    #[must_use]
    pub fn unchecked(self) -> Self {
        Self { is_checked: false, ..self }
    }

    /// The same engine, whose program reads a [`ContinuedRequest`] as JSON in place of the prompt: the
    /// session's last request with the instruction behind it, which the provider's cache serves.
    #[must_use]
    pub fn continued(self) -> Self {
        Self { is_continued: true, ..self }
    }

    /// Runs the program on the prompt of a job.
    fn ask(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let most = job.token_limit.saturating_mul(BYTES_PER_TOKEN).saturating_add(SPARE_OUTPUT);
        let input = if self.is_continued {
            ContinuedRequest::of(job, counter).to_json().to_string()
        } else {
            prompt(job, counter)
        };
        let answer = self.run(input, most)?;
        String::from_utf8(answer).map_err(|error| {
            let message = format!("{}: the answer is not UTF-8", self.id);
            Error::new(ErrorKind::Utf8, message).with_source(error)
        })
    }

    /// Runs the program on `input`. Returns its output of at most `most` bytes.
    fn run(&self, input: String, most: u64) -> Result<Vec<u8>> {
        let deadline = Instant::now().checked_add(self.time_limit);
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|error| {
            let message = format!("cannot run {}: {error}", self.id);
            Error::new(ErrorKind::Engine, message).with_source(error)
        })?;
        let mut running = Running { child, is_over: false };
        let (output, errors) = running.pipes(input, most)?;

        self.answer(&mut running, &output, most, deadline).map_err(|reason| {
            running.stop();
            self.failed(&errors, &reason)
        })
    }

    /// What the program wrote once it is over, or why there is no answer.
    fn answer(
        &self,
        running: &mut Running,
        output: &Reading,
        most: u64,
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>, String> {
        let late = || format!("took more than {:?}", self.time_limit);
        let answer = receive(output, deadline).ok_or_else(late)?;
        let answer = answer.map_err(|error| format!("could not be read: {error}"))?;
        if answer.len() as u64 > most {
            return Err(format!("wrote more than {most} bytes"));
        }
        let status = running.exit(deadline);
        let status = status.map_err(|error| format!("could not be waited for: {error}"))?;
        let status = status.ok_or_else(late)?;
        if status.success() { Ok(answer) } else { Err(status.to_string()) }
    }

    fn failed(&self, errors: &Reading, reason: &str) -> Error {
        let said = errors.recv_timeout(GRACE).ok().and_then(io::Result::ok).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let mut message = format!("{}: {reason}", self.id);
        if !said.trim().is_empty() {
            message.push_str("; its error output ends: ");
            message.push_str(said.trim());
        }
        Error::new(ErrorKind::Engine, message)
    }
}

impl Engine for CommandEngine {
    fn id(&self) -> &str {
        &self.id
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        self.summarize_noting(job, counter, &mut |_| {})
    }

    fn summarize_noting(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
        note: &mut dyn FnMut(SummaryRequest<'_>),
    ) -> Result<String> {
        let mut ask = |job: &CompressionJob| {
            let answer = self.ask(job, counter);
            note(SummaryRequest { job, answer: answer.as_deref().unwrap_or_default() });
            bounded(&self.id, answer?, job, counter)
        };
        if self.is_checked { checked(job, counter, &mut ask) } else { ask(job) }
    }
}

/// A program that is killed when nobody waits for it any longer.
struct Running {
    child: Child,
    is_over: bool,
}

type Reading = Receiver<io::Result<Vec<u8>>>;

impl Running {
    /// Feeds the program its input, and reads what it writes, each on a thread of its own: a program
    /// that does not read what it is given must not keep this one from reading what it writes.
    fn pipes(&mut self, input: String, most: u64) -> Result<(Reading, Reading)> {
        let unpiped = || Error::new(ErrorKind::Engine, "the program has no pipes");
        let mut stdin = self.child.stdin.take().ok_or_else(unpiped)?;
        let stdout = self.child.stdout.take().ok_or_else(unpiped)?;
        let stderr = self.child.stderr.take().ok_or_else(unpiped)?;
        // A program may close its input without reading it all.
        spawn(move || _ = stdin.write_all(input.as_bytes()))?;
        let (sender, output) = mpsc::channel();
        spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(most.saturating_add(1)).read_to_end(&mut answer);
            // Nobody listens any longer: the time was over.
            _ = sender.send(read.map(|_| answer));
        })?;
        let (sender, errors) = mpsc::channel();
        spawn(move || _ = sender.send(last_of(stderr, ERROR_OUTPUT)))?;
        Ok((output, errors))
    }

    /// How the program exited; `None` where it did not in time.
    fn exit(&mut self, deadline: Option<Instant>) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.is_over = true;
                return Ok(Some(status));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Kills the program and what it started. What cannot be killed is gone already.
    fn stop(&mut self) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        // The group keeps its number at least until the program itself is waited for, below.
        #[cfg(unix)]
        if let Some(group) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name("afterimage-command".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Error::io(error, "cannot start a thread"))
}

/// What the thread sends, where it does before the deadline.
fn receive(from: &Reading, deadline: Option<Instant>) -> Option<io::Result<Vec<u8>>> {
    match deadline {
        None => from.recv().ok(),
        Some(deadline) => {
            from.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
        }
    }
}

/// The last `most` bytes of what there is to read.
fn last_of(mut from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut last = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(last),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        last.extend_from_slice(buffer.get(..read).unwrap_or_default());
        last.drain(..last.len().saturating_sub(most));
    }
}
