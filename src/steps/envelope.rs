//! What programs put around their output: statuses, tags, members such as `Exit Code: 1`, prompts.

use crate::text::{
    first_bytes,
    words::envelope::{MEMBERS, STATUSES},
};

/// The names of members that hold the output, in lower case.
const OUTPUTS: [&str; 3] = ["output", "stdout", "stderr"];

/// The bytes at the beginning and at the end of a result that may tell of its status.
const HEAD: usize = 400;

/// The status that a result says its command ended with.
pub(crate) fn status_of(text: &str) -> Option<i64> {
    let start = text.trim();
    let end = first_bytes(start, HEAD);
    // A status stands at the beginning of its line; elsewhere it is told of.
    let in_head = end.lines().take(8).find_map(status_in);
    in_head.or_else(|| {
        let members = members(start)?;
        members.lines().find_map(status_in)
    })
}

fn status_in(line: &str) -> Option<i64> {
    let line = line.to_ascii_lowercase();
    let (before, rest) = STATUSES.iter().find_map(|mark| line.split_once(mark))?;
    let rest = Some(rest).filter(|_| before.split_whitespace().count() <= 3)?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// The members behind the output of a result that is written as `Name: value` lines.
fn members(text: &str) -> Option<&str> {
    split_members(text).map(|(_, members)| members).filter(|members| !members.is_empty())
}

/// Splits a result of `Name: value` lines into its output and the members behind it.
fn split_members(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    for line in text.split_inclusive('\n').take(8) {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        let is_output = OUTPUTS.iter().any(|output| name.trim().eq_ignore_ascii_case(output));
        if is_output {
            let rest = text.get(from + name.len() + 1..)?;
            let end = members_from(rest);
            return Some((rest.get(..end)?.trim(), rest.get(end..)?.trim()));
        }
        let is_member = name.len() < 32 && name.starts_with(char::is_alphabetic);
        let is_status_line = line.starts_with("Process ") || line.starts_with("Command ");
        if !is_member && !is_status_line {
            return None;
        }
        from += line.len();
    }
    None
}

/// Where the members at the end of a text begin: its length where there are none. An error alone
/// is none: it is what a program said last.
fn members_from(text: &str) -> usize {
    let mut end = text.len();
    let mut found = text.len();
    let mut has_number = false;
    for line in text.split_inclusive('\n').rev().take(10) {
        end -= line.len();
        // The first line stands behind the name of the output.
        let is_member = end > 0 && is_member(line);
        if is_member {
            found = end;
            has_number |= !is_worded(line);
        } else if !line.trim().is_empty() {
            break;
        }
    }
    if has_number { found } else { text.len() }
}

/// Whether the value of a member is words, not a number.
fn is_worded(line: &str) -> bool {
    line.split_once(':').is_some_and(|(_, value)| !is_number(value.trim()))
}

/// A number, or a note that there is none: `(none)`.
fn is_number(value: &str) -> bool {
    value.parse::<i64>().is_ok() || value.starts_with(['(', '['])
}

/// Whether a line is a member that stands behind an output: an error, or a number.
fn is_member(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return false };
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    MEMBERS.contains(&name.as_str()) && (is_number(value) || matches!(&*name, "error" | "stderr"))
}

/// What members behind an output tell of an error, where they do.
fn error_in(members: &str) -> Option<&str> {
    let said = members.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_error = ["error", "stderr"].iter().any(|of| name.trim().eq_ignore_ascii_case(of));
        is_error.then_some(value.trim())
    })?;
    let is_empty =
        matches!(said.trim_matches(['(', ')', '[', ']']), "" | "none" | "empty" | "null");
    (!is_empty).then_some(said)
}

/// Whether one of the members behind an output states an error.
pub(crate) fn has_error_member(text: &str) -> bool {
    members(text.trim()).and_then(error_in).is_some()
}

/// The output in a result, without what programs put around it: a prompt, tags of a status or of an
/// output, members.
pub(crate) fn unwrap_output(text: &str) -> &str {
    let mut text = without_prompt(text.trim());
    if let Some((output, members)) = split_members(text) {
        let is_empty = matches!(output, "" | "(empty)" | "(none)");
        text = error_in(members).filter(|_| is_empty).unwrap_or(output);
    }
    while let Some(rest) = text.strip_prefix('<') {
        let Some((name, after)) = rest.split_once('>') else { break };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
            break;
        }
        let closing = format!("</{name}>");
        match after.split_once(&*closing) {
            // A status before the output.
            Some((inside, behind)) if inside.len() < 16 && !behind.trim().is_empty() => {
                text = behind.trim();
            }
            Some((inside, behind)) if behind.trim().is_empty() => text = inside.trim(),
            _ => break,
        }
    }
    text
}

/// A longer line is no prompt of a shell.
const LONGEST_PROMPT: usize = 80;

/// Whether a line is the prompt of a shell or of an interpreter.
pub(crate) fn is_prompt(line: &str) -> bool {
    line.len() < LONGEST_PROMPT
        && (line.ends_with('$') && !line.contains(". ") || line.ends_with(">>>"))
}

/// A text without the prompt at its end, and the lines `(Name: value)` before it.
fn without_prompt(text: &str) -> &str {
    let Some((before, last)) = text.rsplit_once('\n').or(Some(("", text))) else { return text };
    let is_bare = !last.trim_end_matches(['$', '>']).contains(char::is_whitespace);
    if !is_prompt(last.trim()) || !is_bare {
        return text;
    }
    let mut rest = before.trim_end();
    loop {
        let (before, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
        if !is_note(last) {
            return rest;
        }
        rest = before.trim_end();
    }
}

/// Whether a line is `(Name: value)`, as tools tell of their state.
pub(crate) fn is_note(line: &str) -> bool {
    let inside = line.trim().strip_prefix(['(', '[']);
    let inside = inside.and_then(|inside| inside.strip_suffix([')', ']']));
    inside.and_then(|inside| inside.split_once(": ")).is_some_and(|(name, _)| {
        name.len() < 32 && name.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '_' | '-'))
    })
}

/// The lines of a result that are not blank, without what tells of its status alone.
pub(crate) fn plain_lines(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    let is_status = |line: &&str| line.len() < 48 && status_of(line).is_some();
    let is_shown = move |line: &&str| !line.is_empty() && !is_status(line) && !says_nothing(line);
    unwrap_output(text).lines().map(str::trim).filter(is_shown)
}

/// Whether a line stands for output that a program did not write: `(no output)`.
fn says_nothing(line: &str) -> bool {
    let words = line.trim_matches(|c: char| !c.is_alphanumeric());
    ["no output", "empty output"].iter().any(|nothing| words.eq_ignore_ascii_case(nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_around_an_output_are_no_output() {
        let failed = "Command: dredge 7\nDirectory: (root)\nOutput: sh: line 1: dredge: command \
            not found\nError: (none)\nExit Code: 127\nSignal: 0\nBackground PIDs: (none)";
        assert_eq!(status_of(failed), Some(127));
        assert_eq!(unwrap_output(failed), "sh: line 1: dredge: command not found");
        assert!(!has_error_member(failed));
        let broken = "Command: x\nStdout: (empty)\nError: no such berth\nExit Code: (none)";
        assert_eq!((unwrap_output(broken), has_error_member(broken)), ("no such berth", true));
        let done = "Command: ls\nOutput: a.md\nb.md\nError: (none)\nExit Code: 0";
        assert_eq!((unwrap_output(done), status_of(done)), ("a.md\nb.md", Some(0)));
        assert_eq!(
            unwrap_output("Chunk: e4\nOutput:\nExit code: 3 is a tide"),
            "Exit code: 3 is a tide"
        );
        assert_eq!(status_of("The pilot\nsays that to all Exit Code: 7 is rare"), None);
    }

    #[test]
    fn prompts_and_notes_before_them_are_no_output() {
        let text = "1290\n(Open file: /quay/tide.py)\n(Current directory: /quay)\nbash-$";
        assert_eq!(unwrap_output(text), "1290");
        assert_eq!(unwrap_output("(Open file: n/a)\nsh-5$"), "");
        assert_eq!(unwrap_output("It costs 5 $"), "It costs 5 $");
        assert_eq!(unwrap_output("a (see: b)"), "a (see: b)");
    }
}
