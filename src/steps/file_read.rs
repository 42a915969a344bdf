//! Calls that read lines of one file, and which of them shows what another one showed.

use std::fmt::Write as _;

use super::{
    Touch,
    action::{self, Action},
    envelope::unwrap_output,
    shell,
};
use crate::{json::Value, veil::Call};

/// A call that reads one file and does nothing else.
///
/// The arguments tell: a path and no change, or a command that prints one file (`cat`, `nl`, `head`,
/// `tail -n +N`, `sed -n 'A,Bp'`, or one of the first two before one of the others). Other arguments
/// must be the same in two reads that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRead {
    /// What reads have in common that show the same file in the same way: the tool and all of its
    /// arguments but the lines; of a command the file.
    of: String,
    lines: Lines,
    /// Whether the first line of a file is known to be 1, and not 0.
    counts_from_one: bool,
}

/// The lines that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    /// The first one; 0 where the call names none.
    first: u64,
    /// The last one, where the call names it: as tools count that begin at 0, and at 1.
    last: Option<(u64, u64)>,
}

/// The lines that a result of a [`FileRead`] shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRange {
    first: u64,
    /// The last one: as tools count that begin at 0, and at 1.
    last: (u64, u64),
    counts_from_one: bool,
}

impl LineRange {
    /// Whether all lines of another result stand in this one, if both are of the same tool and
    /// file. Where nothing tells how the tool counts, it must be so for both ways.
    pub(crate) fn cover(&self, other: &Self) -> bool {
        let counts_from_one = self.counts_from_one || other.counts_from_one;
        self.first <= other.first
            && other.last.1 <= self.last.1
            && (counts_from_one || other.last.0 <= self.last.0)
    }
}

/// Arguments that say for whom or how long, and change nothing of what is shown.
const ASIDE: [&str; 6] = ["timeout", "yield_time", "descri", "explan", "justif", "reason"];

/// Arguments that hold the folder in which a command runs.
const FOLDERS: [&str; 5] = ["workdir", "cwd", "directory", "dir", "working_directory"];

/// Arguments that hold the first line, the last one, how many there are, and both ends.
const FIRST: [&str; 4] = ["offset", "start_line", "line_start", "startLine"];
const LAST: [&str; 3] = ["end_line", "line_end", "endLine"];
const COUNT: &str = "limit";
const RANGE: &str = "view_range";

/// A longer line is no mark of what was cut.
const LONGEST_MARK: usize = 160;

/// What a line says that stands for others which were cut.
const CUT: [&str; 6] = ["truncated", "omitted", "clipped", "elided", "left out", "not shown"];

impl FileRead {
    /// The read that a call is, if it is one.
    pub(crate) fn of_call(call: &Call<'_>, action: &Action) -> Option<Self> {
        let read: Option<Value>;
        let value = if let Some(value) = call.parameters {
            value
        } else {
            read = action::arguments(call.arguments?);
            read.as_ref()?
        };
        let path = path_of(action)?;
        if let Some(command) = action::command_in(value) {
            let folder = FOLDERS.iter().find_map(|key| value.str_at(key));
            if let Some(read) = Self::of_shell(&command, folder) {
                return Some(read);
            }
            // The verb of an editor (`view`) names no file; a command does that prints no file.
            if !Action::of_command(&command).touches.is_empty() {
                return None;
            }
        }
        let mut of = format!("{} {path}", call.name);
        for (key, value) in value.as_object()? {
            let is_of_lines = FIRST.contains(&&**key)
                || LAST.contains(&&**key)
                || [COUNT, RANGE].contains(&&**key);
            let is_path = value.as_str().is_some_and(|text| plain(text) == path);
            let lower = key.to_ascii_lowercase();
            let is_aside = ASIDE.iter().any(|part| lower.contains(part));
            if !is_of_lines && !is_path && !is_aside {
                let _ = write!(of, " {key}={value}");
            }
        }
        // Editors whose lines are one argument count from 1.
        let counts_from_one = value.get(RANGE).is_some_and(is_present);
        Some(Self { of, lines: Lines::asked(value)?, counts_from_one })
    }

    /// The read that a command is, if it is one.
    pub(crate) fn of_command(command: &str) -> Option<Self> {
        Self::of_shell(command, None)
    }

    fn of_shell(command: &str, folder: Option<&str>) -> Option<Self> {
        let path = path_of(&Action::of_command(command))?;
        let mut lines = command.lines().filter(|line| !line.trim().is_empty());
        let (line, None) = (lines.next()?, lines.next()) else { return None };
        let mut commands = shell::split(line);
        commands.iter_mut().for_each(leave_out_errors);
        let mut folder = folder.map(str::to_owned);
        if let Some([cd, to]) = commands.first().map(Vec::as_slice)
            && cd == "cd"
        {
            folder = Some(match folder {
                Some(from) if !to.starts_with(['/', '~']) => format!("{from}/{to}"),
                _ => to.clone(),
            });
            commands.remove(0);
        }
        let lines = match commands.as_slice() {
            [read] => printed(read, Some(&path))?,
            [read, cut] if printed(read, Some(&path))? == Lines::ALL => printed(cut, None)?,
            _ => return None,
        };
        let folder = folder.filter(|_| !path.starts_with(['/', '~']));
        let of = format!("$ {} {path}", folder.unwrap_or_default());
        Some(Self { of, lines, counts_from_one: true })
    }

    /// What reads have in common that show the same file in the same way.
    pub(crate) fn of(&self) -> &str {
        &self.of
    }

    /// The lines that a result of it shows. `None` where they cannot be told: some were cut.
    pub(crate) fn shown(&self, result: &str) -> Option<LineRange> {
        let text = unwrap_output(result);
        let is_cut = |line: &str| {
            let line = line.trim();
            line.len() < LONGEST_MARK
                && line.starts_with(['[', '(', '<', '.', '…', '*'])
                && CUT.iter().any(|cut| line.to_ascii_lowercase().contains(cut))
        };
        if text.lines().any(is_cut) || text.contains("truncated…") {
            return None;
        }
        let count = text.lines().count() as u64;
        let first = self.lines.first;
        let end = |first: u64| first.saturating_add(count).saturating_sub(1);
        let ends = (end(first), end(first.max(1)));
        let asked = self.lines.last.unwrap_or(ends);
        let last = (asked.0.min(ends.0), asked.1.min(ends.1));
        Some(LineRange { first, last, counts_from_one: self.counts_from_one })
    }
}

impl Lines {
    const ALL: Self = Self { first: 0, last: None };

    /// The lines that the arguments of a call ask for.
    fn asked(arguments: &Value) -> Option<Self> {
        let number = |keys: &[&str]| {
            let value = keys.iter().find_map(|key| arguments.get(key))?;
            value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        let has = |keys: &[&str]| keys.iter().any(|key| arguments.get(key).is_some_and(is_present));
        if let Some(range) = arguments.get(RANGE).filter(|range| is_present(range)) {
            let [first, last] = range.as_array()? else { return None };
            let last = if last.to_string() == "-1" { None } else { Some(last.as_u64()?) };
            return Self::between(first.as_u64()?, last);
        }
        let (first, last, count) = (number(&FIRST), number(&LAST), number(&[COUNT]));
        let is_read = |keys: &[&str], found: Option<u64>| found.is_some() || !has(keys);
        if !is_read(&FIRST, first) || !is_read(&LAST, last) || !is_read(&[COUNT], count) {
            return None;
        }
        match (first, last, count) {
            (first, None, Some(count)) => {
                // Tools count from 0 or from 1.
                let first = first.unwrap_or_default();
                let most = first.max(1).checked_add(count)?.checked_sub(1)?;
                let least = first.checked_add(count)?.checked_sub(1)?;
                Some(Self { first, last: Some((least, most)) })
            }
            (first, last, None) => Self::between(first.unwrap_or_default(), last),
            (_, Some(_), Some(_)) => None,
        }
    }

    fn between(first: u64, last: Option<u64>) -> Option<Self> {
        let is_range = last.is_none_or(|last| first <= last);
        is_range.then_some(Self { first, last: last.map(|last| (last, last)) })
    }
}

/// The one file that a call reads, if it touches nothing else.
fn path_of(action: &Action) -> Option<String> {
    let [(Touch::Read, path)] = action.touches.as_slice() else { return None };
    let is_more = action.plan.is_some() || action.step.is_some() || action.edits_open_file;
    (!is_more).then(|| plain(path).to_owned())
}

/// A path without `./` before it.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}

fn is_present(value: &Value) -> bool {
    !matches!(value, Value::Null)
}

/// Leaves out of a command where its errors go: `2>/dev/null`.
fn leave_out_errors(words: &mut Vec<String>) {
    while let Some(at) = words.iter().position(|word| word == "2>") {
        words.drain(at..words.len().min(at + 2));
    }
}

/// The lines that a command prints of a file, or of what another one prints where it names none.
fn printed(words: &[String], path: Option<&str>) -> Option<Lines> {
    let (program, arguments) = words.split_first()?;
    let is_file = |word: &str| path == Some(plain(word));
    let named = arguments.iter().filter(|word| is_file(word)).count();
    if named != usize::from(path.is_some()) {
        return None;
    }
    let others: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !is_file(word)).collect();
    match (program.as_str(), others.as_slice()) {
        ("cat", [] | ["-n"]) | ("nl", ["-ba"] | ["-b", "a"]) => Some(Lines::ALL),
        ("sed", ["-n", script]) => {
            let script = script.strip_suffix('p')?;
            let (first, last) = script.split_once(',').unwrap_or((script, script));
            let last = if last.trim() == "$" { None } else { Some(last.trim().parse().ok()?) };
            Lines::between(first.trim().parse().ok()?, last)
        }
        ("head", []) => Lines::between(1, Some(10)),
        ("head", ["-n", count]) => Lines::between(1, Some(count.parse().ok()?)),
        ("head", [flag]) => {
            let count = flag.strip_prefix("-n").or_else(|| flag.strip_prefix('-'))?;
            Lines::between(1, Some(count.parse().ok()?))
        }
        ("tail", ["-n", from]) => Lines::between(from.strip_prefix('+')?.parse().ok()?, None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn lines(count: usize) -> String {
        (0..count).map(|at| format!("line {at}\n")).collect()
    }

    fn call(name: &str, arguments: &str) -> Option<FileRead> {
        let value = json::read(arguments.as_bytes()).unwrap();
        let call = Call { id: None, name, parameters: Some(&value), arguments: None };
        FileRead::of_call(&call, &Action::of_call(&call))
    }

    /// Whether the result of a later read shows what that of an earlier one did.
    fn covers(later: (Option<FileRead>, &str), earlier: (Option<FileRead>, &str)) -> bool {
        let ((Some(later), new), (Some(earlier), old)) = (later, earlier) else { return false };
        let shown = later.shown(new).zip(earlier.shown(old));
        later.of() == earlier.of() && shown.is_some_and(|(later, earlier)| later.cover(&earlier))
    }

    #[test]
    fn a_read_of_the_same_or_of_more_lines_shows_what_one_before_showed() {
        let all = lines(100);
        let read = |arguments: &str| call("read", arguments);
        let check = |later: &str, earlier: &str, expected: bool| {
            let found = covers((read(later), &all), (read(earlier), &all));
            assert_eq!(found, expected, "{later} after {earlier}");
        };
        let whole = r#"{"path":"a.rs"}"#;
        let some = r#"{"path":"./a.rs","offset":11,"limit":20}"#;
        check(whole, some, true);
        check(some, whole, false);
        let rest = read(r#"{"path":"a.rs","view_range":[5,-1]}"#);
        assert!(covers((read(whole), &all), (rest, &lines(96))));
        check(r#"{"path":"a.rs","offset":11,"limit":20}"#, some, true);
        check(r#"{"path":"a.rs","offset":10,"limit":30}"#, some, true);
        check(r#"{"path":"a.rs","offset":12,"limit":20}"#, some, false);
        check(r#"{"path":"a.rs","start_line":1,"end_line":30}"#, some, true);
        check(r#"{"path":"a.rs","start_line":1,"end_line":29}"#, some, false);
        // Tools count from 0 or from 1: what is so for both counts.
        check(r#"{"path":"a.rs","limit":50}"#, r#"{"path":"a.rs","offset":50,"limit":1}"#, false);
        let limited = r#"{"path":"a.rs","limit":50}"#;
        check(limited, limited, true);
        check(limited, r#"{"path":"a.rs","offset":49,"limit":1}"#, true);
        check(r#"{"path":"b.rs"}"#, some, false);
        check(r#"{"path":"a.rs","host":"north"}"#, some, false);
        check(r#"{"path":"a.rs","timeout_ms":9,"yield_time_ms":5}"#, some, true);
        for of_time in ["start_time", "time_range", "timezone"] {
            check(&format!(r#"{{"path":"a.rs","{of_time}":"6"}}"#), some, false);
        }
        check(r#"{"path":"a.rs","description":"again"}"#, some, true);
        check(r#"{"path":"a.rs","offset":"top"}"#, some, false);
        check(r#"{"path":"a.rs","line_number":9}"#, some, false);
        assert!(!covers((call("lint", whole), &all), (read(whole), &all)));
        assert_eq!(read(r#"{"path":"a.rs","content":"x"}"#), None);
        assert_eq!(read(r#"{"path":"src","pattern":"tide"}"#), None);
    }

    #[test]
    fn a_result_that_holds_fewer_lines_than_were_asked_for_shows_those() {
        let whole = || call("read", r#"{"path":"a.rs"}"#);
        let late = || call("read", r#"{"path":"a.rs","offset":2500,"limit":20}"#);
        assert!(!covers((whole(), &lines(2_000)), (late(), &lines(20))));
        assert!(covers((whole(), &lines(2_600)), (late(), &lines(20))));
        // To a tool that counts from 0 this is line 2,001.
        let next = || call("read", r#"{"path":"a.rs","offset":2000,"limit":1}"#);
        assert!(!covers((whole(), &lines(2_000)), (next(), &lines(1))));
        assert!(covers((whole(), &lines(2_001)), (next(), &lines(1))));
        assert!(covers((whole(), &lines(2_000)), (whole(), &lines(2_000))));
        let (all, last) = ("cat a.rs", "sed -n '2000,2000p' a.rs");
        let (all, last) = (FileRead::of_command(all), FileRead::of_command(last));
        assert!(covers((all, &lines(2_000)), (last, &lines(1))));
        let cut = format!("{}[… 400 lines truncated …]\n{}", lines(2_000), lines(2_000));
        assert!(!covers((whole(), &cut), (late(), &lines(20))));
        assert!(!covers((whole(), &lines(9)), (whole(), &lines(12))));
    }

    #[test]
    fn commands_that_print_a_file_are_reads_of_its_lines() {
        let all = lines(100);
        let check = |later: &str, earlier: &str, expected: bool| {
            let later_read = FileRead::of_command(later);
            let found = covers((later_read, &all), (FileRead::of_command(earlier), &all));
            assert_eq!(found, expected, "{later} after {earlier}");
        };
        let some = "sed -n '20,40p' src/a.rs";
        check("cat src/a.rs", some, true);
        check("cat -n src/a.rs 2>/dev/null", some, true);
        check("nl -ba src/a.rs | sed -n '1,60p'", some, true);
        check("nl -ba src/a.rs | sed -n '21,60p'", some, false);
        check("head -n 40 src/a.rs", some, true);
        check("head -30 src/a.rs", some, false);
        check("tail -n +10 src/a.rs", some, true);
        check("tail -n 90 src/a.rs", some, false);
        check(some, "cat src/a.rs", false);
        check("cat src/b.rs", some, false);
        for other in [
            "cat src/a.rs src/b.rs",
            "cat src/a.rs | grep tide",
            "cat src/a.rs && make",
            "cat src/a.rs > src/b.rs",
            "sed -n '1,9p;20,40p' src/a.rs",
            "sed -i 's/a/b/' src/a.rs",
            "wc -l src/a.rs",
            "open src/a.rs 20",
            "cat src/a.rs\nls",
        ] {
            assert_eq!(FileRead::of_command(other), None, "{other}");
        }
        check("cd /quay && cat src/a.rs", "cd /quay && head src/a.rs", true);
        check("cd /dock && cat src/a.rs", "cd /quay && head src/a.rs", false);
        let shell = |arguments: &str| call("shell", arguments);
        let late = shell(r#"{"command":["bash","-lc","cat src/a.rs"],"timeout_ms":9}"#);
        assert!(covers((late, &all), (FileRead::of_command(some), &all)));
        let there = shell(r#"{"cmd":"cat src/a.rs","workdir":"/quay"}"#);
        assert!(!covers((there, &all), (FileRead::of_command(some), &all)));
        let inside = |workdir: &str, cd: &str| {
            shell(&format!(r#"{{"cmd":"cd {cd} && cat a.rs","workdir":"{workdir}"}}"#))
        };
        assert!(covers((inside("/quay", "src"), &all), (inside("/quay", "src"), &all)));
        assert!(!covers((inside("/quay", "src"), &all), (inside("/dock", "src"), &all)));
        assert!(covers((inside("/quay", "/src"), &all), (inside("/dock", "/src"), &all)));
        for other in ["cat src/a.rs | grep tide", "cat src/a.rs && make"] {
            assert_eq!(shell(&format!(r#"{{"cmd":"{other}"}}"#)), None, "{other}");
        }
        let view = r#"{"command":"view","path":"src/a.rs","view_range":[20,40]}"#;
        assert!(call("editor", view).is_some());
    }
}
