//! Which files a tool call touches.

use crate::{
    json::{self, Value},
    veil::Call,
};

/// A file that a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) path: String,
    pub(super) kind: TouchKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TouchKind {
    Read,
    /// Written as a whole.
    Written,
    Edited,
    Deleted,
}

/// The files of a call, with what happens to each. `open` is the file that an editor without an
/// argument for it has open; the call may change it.
pub(super) fn touches(
    name: &str,
    parameters: Option<&Value>,
    arguments: Option<&str>,
    open: &mut Option<String>,
) -> Vec<Touch> {
    let path = || {
        let named = Call::PATHS.iter().find_map(|key| parameters?.str_at(key));
        named.filter(|path| !path.trim().is_empty()).map(str::to_owned)
    };
    let one = |path: Option<String>, kind: TouchKind| -> Vec<Touch> {
        path.into_iter().map(|path| Touch { path, kind }).collect()
    };
    let command = parameters.and_then(|parameters| parameters.str_at("command"));
    match plain(name).as_str() {
        "write" | "writefile" | "writetofile" | "createfile" | "create" | "filewrite" => {
            open.clone_from(&path());
            one(path(), TouchKind::Written)
        }
        "edit" | "multiedit" | "editfile" | "fileedit" | "replace" | "strreplace" | "insert"
        | "notebookedit" | "searchreplace" | "applydiff" => {
            one(path().or_else(|| open.clone()), TouchKind::Edited)
        }
        "strreplaceeditor" | "strreplacebasededittool" | "texteditor" | "editor" => {
            let kind = match command {
                Some("create") => TouchKind::Written,
                Some("view") | None => TouchKind::Read,
                Some(_) => TouchKind::Edited,
            };
            one(path(), kind)
        }
        "applypatch" => {
            let of = |key: &str| parameters?.str_at(key);
            let text = ["input", "patch"].into_iter().find_map(of);
            patched(text.or(parameters.and_then(Value::as_str)).or(arguments).unwrap_or_default())
        }
        "deletefile" | "removefile" => one(path(), TouchKind::Deleted),
        "read" | "readfile" | "open" | "openfile" | "view" | "viewfile" => {
            open.clone_from(&path());
            one(path(), TouchKind::Read)
        }
        name if is_shell(name) => parameters.map(through_shell).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Whether a tool runs commands.
fn is_shell(name: &str) -> bool {
    let parts = ["shell", "bash", "exec", "command", "terminal", "process"];
    matches!(name, "sh" | "zsh" | "run") || parts.iter().any(|part| name.contains(part))
}

/// The files of a patch that a command hands to `apply_patch`.
fn through_shell(parameters: &Value) -> Vec<Touch> {
    let of = |key: &str| -> Option<String> {
        let value = parameters.get(key)?;
        let words = value.as_array().map(|words| words.iter().filter_map(Value::as_str));
        let joined = words.map(|words| words.collect::<Vec<_>>().join("\n"));
        joined.or_else(|| value.as_str().map(str::to_owned))
    };
    let texts = ["command", "cmd", "input", "script", "code"].into_iter().filter_map(of);
    let is_call = |before: &str| before.contains("apply_patch") || before.contains("applypatch");
    let patch = |text: String| {
        let (before, rest) = text.split_once("*** Begin Patch")?;
        is_call(before).then(|| rest.split("*** End Patch").next().unwrap_or(rest).to_owned())
    };
    texts.filter_map(patch).flat_map(|patch| patched(&patch)).collect()
}

/// Whether the result of a call that touches files says that it touched none.
pub(super) fn is_refusal(text: &str) -> bool {
    let starts = [
        "no replacement was performed",
        "your proposed edit has introduced",
        "apply_patch verification failed",
        "patch rejected",
        "rejected by user",
        "aborted",
        "execution error",
        "exec_command failed",
        "command timed out",
        "failed to",
        "invalid patch",
        "invalid context",
        "string to replace not found",
        "file has not been read",
    ];
    let head: String = text.trim_start().chars().take(400).collect();
    let head = head.to_lowercase();
    starts.iter().any(|start| head.starts_with(start))
        || status_of(&head).is_some_and(|s| s != 0)
        || status_in_json(text).is_some_and(|s| s != 0)
}

/// The status in a shell's result that is JSON, where it stands behind all of the output.
fn status_in_json(text: &str) -> Option<u64> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    json::read(text.as_bytes()).ok()?.get("metadata")?.get("exit_code")?.as_u64()
}

/// The status that a shell's result says its command ended with.
fn status_of(head: &str) -> Option<i64> {
    let marks = ["exited with code ", "exit code: ", "\"exit_code\":"];
    let rest = marks.iter().find_map(|mark| head.split_once(mark))?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// The last part of a tool's name, in lower case and without the signs between its words.
fn plain(name: &str) -> String {
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let last = last.rsplit_once("__").map_or(last, |(_, last)| last);
    last.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The files that a patch in the form of `apply_patch` names.
fn patched(patch: &str) -> Vec<Touch> {
    let marks = [
        ("*** Add File: ", TouchKind::Written),
        ("*** Update File: ", TouchKind::Edited),
        ("*** Delete File: ", TouchKind::Deleted),
        ("*** Move to: ", TouchKind::Written),
    ];
    let touch = |line: &str| {
        let named = |(mark, kind): &(&str, TouchKind)| {
            let path = line.strip_prefix(mark)?.trim();
            Some(Touch { path: path.to_owned(), kind: *kind })
        };
        marks.iter().find_map(named)
    };
    patch.lines().filter_map(touch).filter(|touch| !touch.path.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, arguments: &str, expected: &[(&str, TouchKind)]) {
        let parsed = json::read(arguments.as_bytes()).ok();
        let mut open = Some("open.py".to_owned());
        let found = touches(name, parsed.as_ref(), Some(arguments), &mut open);
        let found: Vec<(&str, TouchKind)> =
            found.iter().map(|touch| (touch.path.as_str(), touch.kind)).collect();
        assert_eq!(found, expected, "{name} {arguments}");
    }

    #[test]
    fn files_of_the_usual_tools_are_found() {
        check("Write", r#"{"file_path":"a.rs","content":""}"#, &[("a.rs", TouchKind::Written)]);
        check("mcp__fs__edit_file", r#"{"path":"b.rs"}"#, &[("b.rs", TouchKind::Edited)]);
        check("edit", r#"{"search":"x","replace":"y"}"#, &[("open.py", TouchKind::Edited)]);
        check(
            "str_replace_editor",
            r#"{"command":"create","path":"c"}"#,
            &[("c", TouchKind::Written)],
        );
        check("str_replace_editor", r#"{"command":"view","path":"c"}"#, &[("c", TouchKind::Read)]);
        check(
            "apply_patch",
            "*** Begin Patch\n*** Update File: d.ts\n*** Delete File: e.ts\n*** End Patch",
            &[("d.ts", TouchKind::Edited), ("e.ts", TouchKind::Deleted)],
        );
        check("Bash", r#"{"command":"touch f"}"#, &[]);
    }

    #[test]
    fn files_of_a_patch_that_goes_through_a_shell_are_found() {
        let both = [("f.rs", TouchKind::Written), ("g.rs", TouchKind::Edited)];
        let patch =
            r"*** Begin Patch\n*** Add File: f.rs\n+x\n*** Update File: g.rs\n*** End Patch";
        for (name, arguments) in [
            ("shell", format!(r#"{{"command":["apply_patch","{patch}"]}}"#)),
            (
                "shell",
                format!(r#"{{"command":["bash","-lc","apply_patch <<'EOF'\n{patch}\nEOF"]}}"#),
            ),
            ("exec_command", format!(r#"{{"cmd":"cd a && apply_patch <<'EOF'\n{patch}\nEOF"}}"#)),
            ("Bash", format!(r#"{{"command":"applypatch <<EOF\n{patch}\nEOF"}}"#)),
        ] {
            check(name, &arguments, &both);
        }
        check("shell", &format!(r#"{{"command":["cat","{patch}"]}}"#), &[]);
        check("send_message", &format!(r#"{{"input":"apply_patch {patch}"}}"#), &[]);
    }

    #[test]
    fn a_result_that_says_nothing_was_written_is_a_refusal() {
        for text in [
            "No replacement was performed, old_str did not appear verbatim in a.rs.",
            "Chunk ID: 1\nProcess exited with code 1\nOutput:\n",
            "Exit code: 2\nOutput: x",
            r#"{"output":"","metadata":{"exit_code":1}}"#,
            "apply_patch verification failed: x",
            "patch rejected by user approval settings",
            "aborted by user after 3.2s",
            "execution error: Io(Custom)",
        ] {
            assert!(is_refusal(text), "{text}");
        }
        let long = format!(r#"{{"output":"{}","metadata":{{"exit_code":1}}}}"#, "x ".repeat(500));
        assert!(is_refusal(&long) && !is_refusal(&long.replace(":1}", ":0}")));
        for text in ["Success. Updated the following files:", "Exit code: 0\nfailed to x", "ok"] {
            assert!(!is_refusal(text), "{text}");
        }
    }
}
