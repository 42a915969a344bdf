//! Running the program on a terminal.

use std::{path::Path, process::Command};

/// What the program writes to a terminal of 100 columns, standard output and standard error alike;
/// `None` where there is no way to make one.
///
/// The terminal is made by `script` of util-linux.
pub(crate) fn on_terminal(args: &[&str], colors: bool) -> Option<String> {
    if !cfg!(target_os = "linux") {
        eprintln!("skipped: the `script` of this system takes other options");
        return None;
    }
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let program = assert_cmd::cargo::cargo_bin!("afterimage");
    let mut line = format!("stty cols 100 rows 40; {}", quoted(&program.display().to_string()));
    for word in args {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(crate::support::root());
    for variable in ["CARGO", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        script.env_remove(variable);
    }
    script.env("TERM", "xterm-256color").env("SHELL", "/bin/sh").stdin(std::process::Stdio::null());
    if !colors {
        script.env("NO_COLOR", "1");
    }
    let Ok(output) = script.output() else {
        let is_required = std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_some();
        assert!(!is_required, "there is no `script` to make a terminal with");
        eprintln!("skipped: there is no `script` to make a terminal with");
        return None;
    };
    let shown = String::from_utf8(output.stdout).expect("a terminal is sent UTF-8");
    // The terminal itself ends lines so.
    Some(shown.replace("\r\n", "\n"))
}

/// What of a text a terminal would act on, beside line feeds, tabs and colours; each with what
/// stands around it.
pub(crate) fn acted_on(shown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = shown;
    while let Some(at) = rest.find(is_control) {
        let (before, from) = rest.split_at(at);
        let numbers = from.strip_prefix("\u{1b}[").unwrap_or_default();
        let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or_default();
        if numbers.get(end..).is_some_and(|after| after.starts_with('m')) {
            rest = &from[2 + end + 1..];
            continue;
        }
        let context: String =
            before.chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect();
        found.push(format!("{context:?} then {:?}", from.chars().take(12).collect::<String>()));
        rest = &from[from.chars().next().map_or(1, char::len_utf8)..];
    }
    found
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name of which every part would do something to a terminal: it writes the clipboard, sets the
/// title, clears the screen, and turns text round, by C0, C1 and bidirectional controls.
pub(crate) const HOSTILE: &str =
    "x\u{1b}]52;c;aGk=\u{7}\u{9b}2J\u{9d}0;t\u{9c}\u{1b}[31m\u{7f}\u{8}\r\u{202e}\u{2066}\u{200f}y";

/// Writes a file with a hostile name in a folder, and gives its path.
pub(crate) fn hostile_file(folder: &Path, ending: &str, text: &str) -> String {
    let path = folder.join(format!("{HOSTILE}.{ending}"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
