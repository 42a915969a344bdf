//! What came of a call, by the shape of its result: whether it failed, and with what words.

use super::{
    Touch,
    envelope::{has_error_member, plain_lines, status_of, unwrap_output},
};
use crate::{
    json::{self, Value},
    text::{
        first_bytes, holds, last_bytes, lower_head, shortened,
        words::outcome::{FAILING_PARTS, FAILING_STARTS, FAILURES, TELLING, VIEWERS},
    },
    veil::CallOutcome,
};

/// What of a failed result is remembered, in bytes.
const REMEMBERED: usize = 3_000;

/// The bytes at the end of a result in which failures are looked for.
const TAIL: usize = 4_000;

/// So many lines of a result are told that tell of a failure.
const MOST_FAILING: usize = 6;

/// Longer results are not looked at as JSON.
const LONGEST_JSON: usize = 1 << 16;

/// What the names of tools hold that run commands.
const RUNNERS: [&str; 7] = ["bash", "shell", "exec", "run", "terminal", "command", "cmd"];

/// What of a call tells how its result is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'c> {
    is_shell: bool,
    program: &'c str,
    only_reads: bool,
}

impl<'c> Asked<'c> {
    /// A call by its tool, its [`key`](super::Action::key) and the files that it touches.
    pub(crate) fn new(tool: &str, key: &'c str, files: &[(Touch, String)]) -> Self {
        let tool = tool.to_ascii_lowercase();
        let is_shell = RUNNERS.iter().any(|word| tool.contains(word));
        let only_reads = !files.is_empty() && files.iter().all(|(touch, _)| *touch == Touch::Read);
        Self { is_shell, program: key.split(' ').next().unwrap_or_default(), only_reads }
    }

    /// Whether the result shows files and nothing else.
    fn shows_files(self) -> bool {
        self.only_reads && !self.is_shell
    }

    /// Whether it runs a program whose output is its own.
    fn runs_program(self) -> bool {
        self.is_shell && !VIEWERS.contains(&self.program)
    }
}

/// What became of a call, as far as its source and its last result tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Done,
    Failed,
    /// The call was not understood, and so not run.
    NotRun,
    Cancelled,
    Denied,
    /// It goes on, and a later call asks for the rest.
    Running,
}

/// Whether a result tells nothing but that its command ended with 1: a search without a hit.
pub(crate) fn is_silent(text: &str) -> bool {
    status_of(text) == Some(1) && plain_lines(text).next().is_none()
}

impl Class {
    /// What became of a call with this result. What the source states stands before words, but for a
    /// statement that all went well: of a shell the last program makes it. It does where the words
    /// are those of a file that the call only reads.
    pub(crate) fn of(stated: CallOutcome, text: &str, asked: Option<Asked<'_>>) -> Self {
        let is_done = stated == CallOutcome::Done || status_of(text) == Some(0);
        let words = if is_done { stated } else { CallOutcome::of_words(unwrap_output(text)) };
        match stated.max(words) {
            CallOutcome::Denied => Self::Denied,
            CallOutcome::Cancelled => Self::Cancelled,
            CallOutcome::Done if asked.is_some_and(Asked::shows_files) => Self::Done,
            _ if status_of(text).is_none() && asks_for_another(text) => Self::NotRun,
            CallOutcome::Failed => Self::Failed,
            _ if is_failure(text) => Self::Failed,
            _ if asked.is_some_and(Asked::runs_program) && tells_failure(text) => Self::Failed,
            _ => Self::Done,
        }
    }

    /// Whether the call did not do what it was to do.
    pub(crate) fn is_failure(self) -> bool {
        self.verb().is_some()
    }

    /// What is said of a call that did not do what it was to do.
    pub(crate) fn verb(self) -> Option<&'static str> {
        match self {
            Self::Done | Self::Running => None,
            Self::Failed => Some("failed"),
            Self::NotRun => Some("not run"),
            Self::Cancelled => Some("cancelled"),
            Self::Denied => Some("denied"),
        }
    }
}

/// Whether a text asks for the call in another form: `Please provide exactly one action`.
fn asks_for_another(text: &str) -> bool {
    let output = unwrap_output(text);
    let head = lower_head(output.trim_start_matches(|c: char| !c.is_alphanumeric()), 64);
    head.starts_with("please ")
        && (head.contains("provide") || head.contains("use ") || head.contains("format"))
        && ["exactly", "valid", "format", "instead"].iter().any(|word| head.contains(word))
}

/// Whether a result says that its call failed.
pub(crate) fn is_failure(text: &str) -> bool {
    if let Some(status) = status_of(text) {
        return status != 0;
    }
    if has_error_member(text) {
        return true;
    }
    let tag = text.trim_start().strip_prefix('<').and_then(|rest| rest.split_once('>'));
    if tag.is_some_and(|(name, _)| name.len() < 40 && name.to_ascii_lowercase().contains("error")) {
        return true;
    }
    let text = unwrap_output(text);
    if text.trim_start().starts_with('{') && text.len() <= LONGEST_JSON {
        return is_json_failure(text);
    }
    let head = lower_head(text.trim_start(), 80);
    FAILURES.iter().any(|start| head.starts_with(start))
        || error_name(&head)
        || has_traceback(text)
        || is_short_error(text)
        || head.lines().next().is_some_and(|line| {
            line.contains(": command not found")
                || line.ends_with(": no such file or directory")
                || line.ends_with(": permission denied")
        })
}

/// Whether the output of a program says that it failed, as compilers and runners of tests do: in a
/// line of its last ones.
pub(crate) fn tells_failure(text: &str) -> bool {
    if status_of(text).is_some() {
        return false;
    }
    last_bytes(text, TAIL).lines().any(|line| {
        let line = line.trim_start();
        FAILING_STARTS.iter().any(|start| line.starts_with(start))
            || FAILING_PARTS.iter().any(|part| line.contains(part))
            || has_failed_count(line)
    })
}

/// `1 failed, 11 passed`, as a runner of tests counts at its end.
fn has_failed_count(line: &str) -> bool {
    let words: Vec<&str> =
        line.split([' ', '=', ',', ';', '.', ':']).filter(|word| !word.is_empty()).collect();
    let is_count = |word: &str| word.parse::<u32>().is_ok_and(|count| count > 0);
    let counts = |what: &str| {
        words
            .windows(2)
            .any(|pair| matches!(pair, [count, word] if is_count(count) && *word == what))
    };
    counts("failed") && (words.len() <= 3 || words.contains(&"passed") || words.contains(&"in"))
}

fn has_traceback(text: &str) -> bool {
    let tail = last_bytes(text, TAIL);
    tail.contains("Traceback (most recent call last)")
        && tail.lines().rev().filter(|line| !line.trim().is_empty()).take(4).any(is_error_line)
}

/// Whether a few lines hold one that begins with an error, behind one that says that it failed.
fn is_short_error(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default().to_lowercase();
    let says = ["failed", "error", "stderr"].iter().any(|word| first.contains(word));
    says && text.len() <= REMEMBERED / 2 && text.lines().take(8).any(is_error_line)
}

/// `SyntaxError: …`, `java.io.IOException: …`, `error[E0308]: …`.
fn error_name(head: &str) -> bool {
    let word = head.split([':', ' ', '[', '(', '\n']).next().unwrap_or_default();
    let after = head.get(word.len()..).and_then(|rest| rest.chars().next());
    let is_name = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '\\'));
    // `state.error = x` is code, `java.io.IOException: x` a name.
    let is_plain = word.chars().all(char::is_alphanumeric);
    (word.ends_with("error") || word.ends_with("exception"))
        && is_name
        && (is_plain || matches!(after, None | Some(':' | '[' | '\n')))
}

/// Whether a line begins with the name of an error.
pub(crate) fn is_error_line(line: &str) -> bool {
    let head = lower_head(line.trim_start(), 60);
    error_name(&head) || head.starts_with("fatal:") || head.starts_with("e  ")
}

fn is_json_failure(text: &str) -> bool {
    let Ok(value) = json::read(text.trim().as_bytes()) else { return false };
    let is_true = |key: &str| value.get(key) == Some(&Value::Bool(true));
    let is_told = |key: &str| match value.get(key) {
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Object(_)) => true,
        _ => false,
    };
    let code = value.get("exit_code").or_else(|| value.get("metadata")?.get("exit_code"));
    is_true("is_error")
        || is_true("isError")
        || is_told("error")
        || value.get("success") == Some(&Value::Bool(false))
        || code.and_then(Value::as_u64).is_some_and(|code| code != 0)
}

/// What a failed result said: whole, or where it is long its beginning and its end.
pub(crate) fn failure(text: &str) -> String {
    let text = text.trim();
    if text.len() <= REMEMBERED {
        return text.to_owned();
    }
    let (head, tail) = (first_bytes(text, REMEMBERED / 4), last_bytes(text, REMEMBERED / 4 * 3));
    format!("{}\n…\n{}", head.trim_end(), tail.trim_start())
}

/// A result that is a single line in tags stands as it is.
pub(crate) fn single_line(text: &str) -> Option<&str> {
    let text = text.trim();
    (text.starts_with('<') && !text.contains('\n')).then_some(text)
}

/// The line that tells what failed: of a traceback the last one, else the first that begins with an
/// error, else the last that speaks of one, else the first. Empty where a result says nothing.
pub(crate) fn telling_line(text: &str) -> &str {
    if let Some(line) = single_line(text) {
        return line;
    }
    let lines = plain_lines(text);
    let mut named = lines.clone().filter(|line| is_error_line(line));
    let named = if has_traceback(text) { named.next_back() } else { named.next() };
    let told = |line: &&str| {
        let lower = line.to_lowercase();
        holds(&lower, &TELLING) && !lower.starts_with("hint")
    };
    let is_whole = |line: &&str| line.split_whitespace().nth(3).is_some();
    let spoken = || lines.clone().rfind(|line| told(line) && is_whole(line));
    named
        .or_else(spoken)
        .or_else(|| lines.clone().rfind(told))
        .or_else(|| lines.clone().next())
        .unwrap_or_default()
}

/// The lines that tell of a failure, those that begin with one first.
pub(crate) fn failing_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = |line: &&str| is_error_line(line) || tells_failure(line);
    lines().filter(begins).take(MOST_FAILING)
}

/// The line that says what failed, in at most `most` bytes; for a traceback with the place.
pub(crate) fn outcome_line(text: &str, most: usize) -> String {
    match (telling_line(text), status_of(text)) {
        ("", Some(status)) => format!("no output, exit code {status}"),
        ("", None) => shortened(text.trim(), most),
        (line, _) => {
            let place = place_of(text).map(|place| format!(" ({place})")).unwrap_or_default();
            let line = shortened(line, most);
            if line.len() + place.len() <= most { format!("{line}{place}") } else { line }
        }
    }
}

/// The last file with a line that a traceback names: `tide.py:31`.
fn place_of(text: &str) -> Option<String> {
    let at = text.rfind("Traceback (most recent call last)").or_else(|| text.find("  File \""))?;
    let frames = text.get(at..)?.lines().rev();
    frames.filter_map(|line| line.trim_start().strip_prefix("File \"")).find_map(|frame| {
        let (file, rest) = frame.split_once("\", line ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let name = file.rsplit('/').take(2).collect::<Vec<_>>();
        let name: Vec<&str> = name.into_iter().rev().collect();
        Some(format!("{}:{}", name.join("/"), rest.get(..end)?))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn compilers_and_runners_of_tests_tell_of_failures_in_their_output() {
        for text in [
            "collected 12 items\nFAILED tests/test_tax.py::test_round - AssertionError\n1 failed, 11 passed in 0.3s",
            "FAIL src/app.test.js\nTests: 1 failed, 3 passed, 4 total",
            "   Compiling a v0.1.0\nerror[E0308]: mismatched types\n --> src/main.rs:1:1",
            "src/app.ts(12,5): error TS2322: Type 'a' is not assignable to type 'b'.",
            "main.c: In function 'main':\nmain.c:5:3: error: expected ';' before 'return'",
            "npm ERR! code ELIFECYCLE",
            "running\nthread 'main' panicked at src/main.rs:3:5:\nout of range",
            "Segmentation fault (core dumped)",
        ] {
            assert!(super::tells_failure(text), "{text}");
        }
        for text in [
            "12 passed in 0.2s",
            "test result: ok. 12 passed; 0 failed; 0 ignored",
            "Error handling is described in chapter 3.",
            "exit code: 0\n1 failed attempt was retried",
        ] {
            assert!(!super::tells_failure(text), "{text}");
        }
    }

    use super::*;

    #[test]
    fn failures_are_told_by_status_and_by_their_first_words() {
        for text in [
            "<returncode>1</returncode>\n<output>\ncat: a: No such file\n</output>",
            "Error: no order with this id",
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
            "Traceback (most recent call last):\n  File \"a.py\"\nValueError: x",
            r#"{"error": "unknown berth"}"#,
            "Process exited with code 2\nOutput: x",
            "bash: frob: command not found",
            "error[E0308]: mismatched types",
        ] {
            assert!(is_failure(text), "{text}");
        }
        for text in [
            "<returncode>0</returncode>\n<output>\nError handling is in a.rs\n</output>",
            "ok",
            r#"{"error": null, "berth": 7}"#,
            "Errors are found in src",
            "this.state.error = event.message;\nlet a = 1;",
            "The manual says that it ends with exit code 2 then.",
            "fn error() {}",
            "",
        ] {
            assert!(!is_failure(text), "{text}");
        }
    }

    #[test]
    fn the_line_that_tells_what_failed_is_found() {
        let check =
            |text: &str, expected: &str| assert_eq!(outcome_line(text, 60), expected, "{text}");
        check(
            "Exit code 1\nSaved the tide.\nab\nThe quay was not found in it\nbye",
            "The quay was not found in it",
        );
        check("Exit code 2\nRunning.\n..F.\n12 tests, 3 failures\n", "12 tests, 3 failures");
        check(
            "Exit code 1\nThe paths are ignored\nhint: use -f for errors",
            "The paths are ignored",
        );
        check("error[E1]: first\nx\nerror: could not compile", "error[E1]: first");
        check("Process exited with code 1\nCount: 0\nOutput:\n", "no output, exit code 1");
        check("Traceback (most recent call last):\nKeyError: a\nValueError: b", "ValueError: b");
        assert!(is_silent("Process exited with code 1\nCount: 0\nOutput:\n"));
        assert!(is_silent("(no output)\n\nCommand exited with code 1"));
        assert!(!is_silent("Exit code 1\nno"));
    }
}
